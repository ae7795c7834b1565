"""A ticket whose folder was renamed keeps its run; a copied one starts anew."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cdd_agent.agents.store import LastActive
from cdd_agent.commands.listing import view
from cdd_agent.commands.registry import handle
from cdd_agent.engine.lock import TicketLock, TicketTaken
from cdd_agent.engine.whereabouts import (
    OwnTreeMade,
    Phase,
    Whereabouts,
    save_whereabouts,
)
from cdd_agent.errors import BadInput
from cdd_agent.events.notices import NoticeKind
from cdd_agent.events.step_events import StepStarted
from cdd_agent.events.stream import Event
from cdd_agent.wiring.runs import open_travel
from tests.engine.half_done import TWO, half_done
from tests.support.listening import collect
from tests.support.projects import (
    SLUG,
    Sandbox,
    notice,
    noticed,
    run_all,
    says,
)
from tests.support.tables import each_row

NEW = "feature-speech"


def runs(sandbox: Sandbox) -> Path:
    return sandbox.root / ".cdd/runs"


def rename(sandbox: Sandbox, new: str = f"tickets/{NEW}") -> Sandbox:
    place = sandbox.root / new
    place.parent.mkdir(parents=True, exist_ok=True)
    sandbox.ticket.rename(place)
    return replace(sandbox, slug=place.name, tickets=str(Path(new).parent))


def records(sandbox: Sandbox) -> list[str]:
    return sorted(path.parent.name for path in runs(sandbox).glob("*/events.jsonl"))


def slug_in(path: Path) -> str:
    slug: str = json.loads(path.read_text())["ticket_slug"]
    return slug


def contents(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


async def finished(sandbox: Sandbox) -> list[Event]:
    """Carry the rest of the plan out, and check that nothing was done again."""
    events = await collect(run_all(sandbox.replies(says("b.txt", "good"))))
    assert [event.step for event in events if isinstance(event, StepStarted)] == [2]
    assert sandbox.statuses() == ["completed", "completed"]
    return events


# Renamed


def no_copy(sandbox: Sandbox) -> None:
    (runs(sandbox) / SLUG / "state.json").unlink()


def torn_copy(sandbox: Sandbox) -> None:
    (runs(sandbox) / SLUG / "state.json").write_text("{")


def only_a_lock(sandbox: Sandbox) -> None:
    (runs(sandbox) / NEW).mkdir()
    (runs(sandbox) / NEW / "lock").touch()


def empty_folder(sandbox: Sandbox) -> None:
    (runs(sandbox) / NEW).mkdir()


def no_record(sandbox: Sandbox) -> None:
    shutil.rmtree(runs(sandbox) / SLUG)


def no_checkpoints(sandbox: Sandbox) -> None:
    shutil.rmtree(runs(sandbox) / SLUG / "checkpoints.git")


def nothing(sandbox: Sandbox) -> None:
    pass


def killed_after_the_record(sandbox: Sandbox) -> None:
    (runs(sandbox) / SLUG).rename(runs(sandbox) / NEW)


def keys_in_another_order(sandbox: Sandbox) -> None:
    file = sandbox.ticket / "execution-state.json"
    state = json.loads(file.read_text())
    slug = state.pop("ticket_slug")
    file.write_text(json.dumps(state | {"ticket_slug": slug}))


PLACES = [
    f"tickets/{NEW}",
    f"tickets/group/{NEW}",
    "tickets/feature-слова",
    f"specs/tickets/{NEW}",
]


@each_row("place", PLACES)
@each_row(
    "before",
    [
        nothing,
        no_copy,
        torn_copy,
        only_a_lock,
        empty_folder,
        no_record,
        no_checkpoints,
        killed_after_the_record,
        keys_in_another_order,
    ],
    is_sparse=True,
)
async def test_the_run_of_a_renamed_ticket_goes_on(
    half: Sandbox, before: Callable[[Sandbox], None], place: str
) -> None:
    is_moved = before in (killed_after_the_record, only_a_lock, empty_folder)
    if is_moved and Path(place).name != NEW:
        return
    before(half)
    renamed = rename(half, place)

    events = await finished(renamed)

    assert SLUG in notice(events, NoticeKind.TICKET_RENAMED)
    assert records(half) == [renamed.slug]
    assert slug_in(renamed.ticket / "execution-state.json") == renamed.slug
    assert slug_in(runs(half) / renamed.slug / "state.json") == renamed.slug
    assert not (runs(half) / SLUG).exists()
    again = await collect(run_all(renamed.replies()))
    assert NoticeKind.TICKET_RENAMED not in noticed(again)


async def test_a_step_of_before_can_be_undone_after_the_rename(half: Sandbox) -> None:
    renamed = rename(half)
    engine = renamed.engine()
    await collect(engine.recover())

    await collect(engine.undo(1))
    engine.close()

    assert not (half.root / "a.txt").exists()
    assert renamed.statuses() == ["pending", "pending"]


async def test_renamed_twice_and_back(half: Sandbox) -> None:
    there = rename(half)
    await collect(run_all(there.replies(says("b.txt", "bad again"))))
    further = rename(there, "tickets/feature-third")
    back = rename(further, f"tickets/{SLUG}")

    await finished(back)

    assert records(half) == [SLUG]


async def test_a_ticket_of_the_former_name_can_be_made_after_the_run(
    half: Sandbox,
) -> None:
    renamed = rename(half)
    await finished(renamed)
    half.write(*TWO)

    events = await run_all(half.replies(says("a.txt", "good"), says("b.txt", "good")))

    assert noticed(events).count(NoticeKind.STATE_COPIED) == 0
    assert records(half) == [NEW, SLUG]


@each_row(
    "line",
    [
        "/list",
        f"/status {NEW}",
        f"/criteria {NEW}",
        f"/resume {NEW}x",
    ],
)
async def test_commands_that_read_show_the_run_and_write_nothing(
    half: Sandbox, line: str
) -> None:
    renamed = rename(half)
    before = contents(half.root)

    try:
        events = await collect(handle(renamed.session(), line))
    except BadInput:
        assert line.endswith("x")
        events = []

    assert contents(half.root) == before
    words = repr(events)
    if not line.endswith("x"):
        assert NEW in words
        assert "criteria" in line or "FAILED" in words or "failed" in words
    assert SLUG not in words


async def test_a_diff_shows_the_run_and_leaves_its_names(half: Sandbox) -> None:
    renamed = rename(half)

    events = await collect(handle(renamed.session(), f"/diff {NEW} 1"))

    assert "a.txt" in repr(events)
    assert records(half) == [SLUG]
    assert slug_in(renamed.ticket / "execution-state.json") == SLUG
    await finished(renamed)


async def test_an_agent_can_work_on_the_record_before_the_run_is_opened(
    half: Sandbox,
) -> None:
    renamed = rename(half)
    session = renamed.session()
    await collect(handle(session, f"/plan {NEW}"))
    # Its lock is lent to the run.
    await collect(handle(session, f"/undo {NEW} 1"))
    session.leave()

    assert records(half) == [SLUG]
    assert renamed.statuses() == ["pending", "pending"]
    events = await collect(
        run_all(renamed.replies(says("a.txt", "good"), says("b.txt", "good")))
    )
    assert NoticeKind.TICKET_RENAMED in noticed(events)
    assert renamed.statuses() == ["completed", "completed"]
    assert records(half) == [NEW]


async def test_the_agent_that_was_active_last_is_found_under_the_new_name(
    half: Sandbox,
) -> None:
    LastActive(agent="planner", ticket=SLUG).remember(half.root)
    renamed = rename(half)

    found = half.project.tickets.find_once_called(SLUG)
    renamed.engine().close()

    assert found is not None
    assert found.slug == NEW
    assert LastActive.of_project(half.root) == LastActive(agent="planner", ticket=NEW)


async def test_the_former_name_is_told_when_it_is_asked_for(half: Sandbox) -> None:
    rename(half)

    with pytest.raises(BadInput) as caught:
        half.project.tickets.find(SLUG)

    assert NEW in caught.value.hint


async def test_a_record_of_another_run_under_the_new_name_is_an_error(
    half: Sandbox,
) -> None:
    (runs(half) / NEW).mkdir()
    (runs(half) / NEW / "events.jsonl").write_text("")
    renamed = rename(half)
    before = contents(half.root)

    with pytest.raises(BadInput, match=f"{NEW} has the record of another run"):
        renamed.engine()

    assert contents(half.root) == before


async def test_two_tickets_that_exchanged_names_are_an_error(half: Sandbox) -> None:
    other = half.root / "tickets" / NEW
    shutil.copytree(half.ticket, other)
    shutil.copytree(runs(half) / SLUG, runs(half) / NEW)
    for file in (other / "execution-state.json", runs(half) / NEW / "state.json"):
        file.write_text(file.read_text().replace(SLUG, NEW))
    half.ticket.rename(half.root / "x")
    other.rename(half.ticket)
    (half.root / "x").rename(other)
    before = contents(half.root)

    for slug in (SLUG, NEW):
        with pytest.raises(BadInput, match="the record of another run"):
            replace(half, slug=slug).engine()

    assert contents(half.root) == before


async def test_another_process_at_work_keeps_the_record(half: Sandbox) -> None:
    renamed = rename(half)
    lock = TicketLock.take(runs(half) / SLUG, SLUG, "2026-11-26T00:00:00+00:00")
    try:
        with pytest.raises(TicketTaken):
            renamed.engine()
    finally:
        lock.release()

    assert records(half) == [SLUG]
    await finished(renamed)


async def test_a_run_that_travelled_keeps_the_name_that_others_know(
    half: Sandbox,
) -> None:
    known = Whereabouts(Phase.AWAY, "origin", "here", None)
    save_whereabouts(runs(half) / SLUG, known)
    renamed = rename(half)
    ticket = renamed.project.tickets.find(NEW)

    events: list[Event] = []
    with pytest.raises(BadInput, match=SLUG) as caught:
        open_travel(renamed.project, ticket, events.append)
    assert f"back to {SLUG}" in caught.value.hint

    save_whereabouts(runs(half) / SLUG, None)
    open_travel(renamed.project, ticket, events.append)
    assert records(half) == [NEW]


async def test_a_run_that_is_held_here_goes_on_under_the_name_that_others_know(
    half: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    renamed = rename(half)
    monkeypatch.setattr(
        "cdd_agent.engine.renamed_ticket.load_whereabouts", lambda record: "known"
    )

    events = await finished(renamed)

    assert NoticeKind.TICKET_RENAMED not in noticed(events)
    assert records(half) == [SLUG]
    assert slug_in(renamed.ticket / "execution-state.json") == SLUG


def with_own_tree(sandbox: Sandbox, text: str | None = None) -> Path:
    """Make a tree of its own for the run of a ticket."""
    record = runs(sandbox) / SLUG
    OwnTreeMade(branch=f"cdd/{SLUG}", base="0" * 40, is_made=True).keep(record)
    there = record / "tree" / "tickets" / SLUG
    there.mkdir(parents=True)
    plan = text or (sandbox.ticket / "plan.md").read_text()
    (there / "plan.md").write_text(plan)
    return record


async def test_a_ticket_whose_former_run_has_its_own_tree_does_not_begin_another(
    sandbox: Sandbox,
) -> None:
    sandbox.write(*TWO)
    record = with_own_tree(sandbox)
    renamed = rename(sandbox)

    with pytest.raises(BadInput, match=SLUG):
        renamed.engine()
    (record / "tree.json").unlink()
    renamed.engine().close()


async def test_another_plan_in_a_tree_is_no_reason_not_to_begin(
    sandbox: Sandbox,
) -> None:
    sandbox.write(*TWO)
    with_own_tree(sandbox, "### Step 1: Another\n")
    renamed = rename(sandbox)

    renamed.engine().close()


# Copied


@each_row("place", PLACES)
async def test_a_copied_ticket_starts_anew_and_leaves_the_original(
    half: Sandbox, place: str
) -> None:
    folder = half.root / place
    shutil.copytree(half.ticket, folder)
    original = contents(half.ticket), contents(runs(half) / SLUG)
    copied = replace(half, slug=folder.name)

    opened: list[Any] = []
    engine = copied.engine()
    opened += await collect(engine.recover())
    state = engine.run.state
    engine.close()

    assert SLUG in notice(opened, NoticeKind.STATE_COPIED)
    assert state.ticket_slug == folder.name
    assert state.tally.over == 0
    assert (contents(half.ticket), contents(runs(half) / SLUG)) == original
    (aside,) = folder.glob("execution-state.aside-*")
    assert slug_in(aside) == SLUG
    await finished(half)


async def test_a_copied_ticket_is_listed_as_planned(half: Sandbox) -> None:
    shutil.copytree(half.ticket, half.root / "tickets" / NEW)
    before = contents(half.root)

    (listed,) = await collect(handle(half.session(), "/list"))

    assert {view.slug: view.state for view in listed.tickets} == {  # type: ignore[attr-defined]
        SLUG: "failed",
        NEW: "planned",
    }
    assert contents(half.root) == before


async def test_a_copied_ticket_that_is_started_over_says_nothing_of_the_copy(
    half: Sandbox,
) -> None:
    shutil.copytree(half.ticket, half.root / "tickets" / NEW)
    copied = replace(half, slug=NEW)
    replies = says("a.txt", "good"), says("b.txt", "good")

    await run_all(copied.replies(*replies), start_over=True)

    assert copied.statuses() == ["completed", "completed"]
    assert half.statuses() == ["completed", "failed"]


async def test_a_copy_whose_original_is_removed_is_the_ticket(half: Sandbox) -> None:
    shutil.copytree(half.ticket, half.root / "tickets" / NEW)
    shutil.rmtree(half.ticket)

    await finished(replace(half, slug=NEW))


async def test_of_two_copies_only_the_first_that_is_opened_has_the_run(
    half: Sandbox,
) -> None:
    other = half.ticket.with_name("feature-other")
    shutil.copytree(half.ticket, other)
    first = rename(half)
    assert NoticeKind.TICKET_RENAMED in noticed(await finished(first))
    before = contents(runs(half) / NEW)
    second = replace(half, slug=other.name)
    assert view(second.project.tickets.find(other.name)).state == "planned"
    news = await collect(run_all(second.replies(says("a.txt", "bad"))))
    assert NoticeKind.STATE_COPIED in noticed(news)
    assert second.statuses() == ["failed", "pending"]
    assert contents(runs(half) / NEW) == before


@each_row(
    "name", ["", "..", ".x", "a/../b", "a\\b", "a" * 256, "e\u0301" * 120, "a" * 5000]
)
async def test_a_name_that_no_folder_can_have_is_that_of_another_ticket(
    sandbox: Sandbox, name: str
) -> None:
    await half_done(sandbox)
    state = sandbox.state() | {"ticket_slug": name}
    (sandbox.ticket / "execution-state.json").write_text(json.dumps(state))
    assert view(sandbox.project.tickets.find(SLUG)).state == "unreadable"
    assert NoticeKind.STATE_RECOVERED in noticed(await finished(sandbox))
