"""The lanes of a soak: each carries out tickets in its way until they are done."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from cdd_agent.errors import ExitCode
from tests.soak.processes import Starter
from tests.soak.tickets import Ticket
from tests.soak.world import World

MOST_STARTS = 40
"""Processes after which a ticket must be done."""
_CALM_STARTS = 12
"""Processes after which a ticket's processes are no longer disturbed."""
_BATCH = 4
_LATER = 15.0
"""Seconds until a fleet that must come back later is tried again."""
_UNDO_RATE = 0.25


def read_state(root: Path, slug: str) -> dict[str, Any]:
    """Return the state of a ticket; an empty one if it was not begun. Raises
    `ValueError` for a torn one.
    """
    file = root / "tickets" / slug / "execution-state.json"
    if not file.exists():
        return {"status": "none", "step_executions": {}}
    state: dict[str, Any] = json.loads(file.read_text())
    return state


def is_done(world: World, ticket: Ticket) -> bool:
    """True if the state in the project's tree says that the ticket is done."""
    try:
        state = read_state(world.root, ticket.slug)
    except ValueError as error:
        world.find(ticket.slug, f"torn state: {error}")
        return False
    return bool(state["status"] == "completed")


def run_single_lane(world: World, name: str) -> None:
    """Carry out tickets one after the other in the project's tree."""
    starter = Starter(world, name, world.rng(name))
    while ticket := world.take_ticket():
        starts = _run_until_done(world, starter, ticket)
        if starts == 0:
            continue
        if starter.rng.random() < _UNDO_RATE:
            check_undo(world, starter, ticket)
        world.finish(ticket, starts, name)


def _run_until_done(world: World, starter: Starter, ticket: Ticket) -> int:
    """Return the number of processes that it took; 0 if the ticket is not done."""
    for start in range(1, MOST_STARTS + 1):
        starter.run(
            "exec",
            ticket.slug,
            "--yes",
            "--json",
            *world.model_arguments,
            disturb=start < _CALM_STARTS,
        )
        if is_done(world, ticket):
            return start
        _wait_for_disk(world)
    world.find(ticket.slug, f"not done after {MOST_STARTS} processes")
    return 0


def _wait_for_disk(world: World) -> None:
    """Wait a little while the disk is full: a run cannot continue before."""
    if world.disk.filled_at > world.disk.freed_at:
        time.sleep(1)


def check_undo(world: World, starter: Starter, ticket: Ticket) -> None:
    """Undo a ticket and redo it. Both must restore each byte."""
    after = ticket.files(world.root)
    undo = ("undo", ticket.slug, "--step", "1")
    if not _repeat_until(partial(is_undone, world, ticket), world, starter, undo):
        return
    compare_files(world, ticket, "undo", ticket.originals())
    redo = ("redo", ticket.slug)
    if not _repeat_until(partial(is_redone, world, ticket), world, starter, redo):
        return
    compare_files(world, ticket, "redo", after)
    world.count("undo and redo of a ticket")


def is_undone(world: World, ticket: Ticket) -> bool:
    """True if no step is done and no undo is interrupted."""
    steps = read_state(world.root, ticket.slug)["step_executions"].values()
    has_done = any(step["status"] == "completed" for step in steps)
    return not has_done and not _is_going_back(world, ticket)


def is_redone(world: World, ticket: Ticket) -> bool:
    return is_done(world, ticket) and not _is_going_back(world, ticket)


def _is_going_back(world: World, ticket: Ticket) -> bool:
    return (world.root / ".cdd/runs" / ticket.slug / "going-back.json").exists()


def _repeat_until(
    is_reached: Callable[[], bool],
    world: World,
    starter: Starter,
    command: Sequence[str],
) -> bool:
    """Repeat a command that is disturbed until it has reached its end. A command that
    finds an interrupted undo only finishes that.
    """
    for start in range(1, 11):
        starter.run(*command, disturb=start < 4)
        if is_reached():
            return True
        _wait_for_disk(world)
    world.find(" ".join(command), "not carried out after 10 processes")
    return False


def compare_files(
    world: World, ticket: Ticket, command: str, files: Mapping[str, bytes | None]
) -> None:
    """Report files of a ticket that differ from what a command must restore."""
    present = ticket.files(world.root)
    for path, content in files.items():
        if present[path] != content:
            world.find(
                ticket.slug,
                f"{command} left {path} as {present[path]!r}, not {content!r}",
            )


def run_fleet_lane(world: World, name: str) -> None:
    """Carry out several tickets at once, each in a worktree, and land them."""
    starter = Starter(world, name, world.rng(name), usual=12.0)
    while batch := _take_batch(world):
        slugs = [ticket.slug for ticket in batch]
        starts = run_fleet(world, starter, slugs, *slugs)
        for ticket in batch:
            if land(world, starter, ticket):
                world.finish(ticket, starts, name)


def run_all_planned(world: World, tickets: Sequence[Ticket]) -> None:
    """Carry out the last tickets by `cdd exec --all planned`."""
    starter = Starter(world, "all", world.rng("all"), usual=12.0)
    for ticket in tickets:
        world.begin(ticket)
    slugs = [ticket.slug for ticket in tickets]
    starts = run_fleet(world, starter, slugs, "--all", "planned")
    for ticket in tickets:
        if land(world, starter, ticket):
            world.finish(ticket, starts, "all")


def _take_batch(world: World) -> list[Ticket]:
    batch: list[Ticket] = []
    while len(batch) < _BATCH:
        ticket = world.take_ticket()
        if ticket is None:
            break
        batch.append(ticket)
    return batch


def run_fleet(world: World, starter: Starter, slugs: Sequence[str], *which: str) -> int:
    """Run the fleet until all tickets are done. Returns the number of processes."""
    for start in range(1, MOST_STARTS + 1):
        ended = starter.run(
            "exec",
            *which,
            "--jobs",
            "2",
            "--yes",
            "--json",
            *world.model_arguments,
            disturb=start < _CALM_STARTS,
            limit=len(slugs),
        )
        if ended.code == 0:
            return start
        if ended.code == ExitCode.COME_BACK_LATER:
            time.sleep(_LATER)
        _wait_for_disk(world)
    world.find(" ".join(slugs), f"not done after {MOST_STARTS} processes")
    return MOST_STARTS


def land(world: World, starter: Starter, ticket: Ticket) -> bool:
    """Land a ticket's run. True if it is done in the project's tree."""
    for start in range(1, 11):
        ended = starter.run("land", ticket.slug, disturb=start < 4)
        if is_done(world, ticket):
            return True
        if ended.code == 0:
            break
        _wait_for_disk(world)
    text = ended.output.read_text(errors="replace").strip().splitlines()[-1]
    world.find(ticket.slug, f"not landed: {text}")
    return False
