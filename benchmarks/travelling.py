"""Measure the transfer of a run to another copy of a project, against `git push`:
`python -m benchmarks.travelling`.

The run has 50 steps, each with its checkpoints and the files of an attempt, in a tree
of 10,000 files. The remote is empty, or has the project already. `git push` sends the
commit that `cdd push` made. A pull is compared with `git fetch` of the same, and with
`git push`. Each figure has the best time, the processor time (including that of awaited
child processes), and the number of git processes. An argument is another number of
files.
"""

import asyncio
import json
import os
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.checkpoints import git, make_tree, path_of
from cdd_agent.events.stream import Event
from cdd_agent.git.checkpoint import Checkpoints
from cdd_agent.process import run
from cdd_agent.text.redaction import Redactor
from cdd_agent.tickets.store import Ticket
from cdd_agent.travel.pull import pull
from cdd_agent.travel.push import push
from cdd_agent.travel.transfer import Travel

SLUG = "feature-bench"
STEPS = 50
ROUNDS = 3
REFERENCE = f"refs/cdd/runs/{SLUG}"


def unheard(event: Event) -> None:
    """Ignore events."""


def travel(root: Path) -> Travel:
    ticket = Ticket(SLUG, root / "tickets" / SLUG, root)
    return Travel.open(root, ticket, Redactor(), unheard, ["tickets"])


async def make_run(root: Path, files: int) -> None:
    """Create a run like `cdd exec`, but without models and checks."""
    here = travel(root)
    here.ticket.folder.mkdir(parents=True)
    steps = "\n\n".join(
        f"### Step {n}: Change it\n\n**Description:** Change number {n}."
        for n in range(1, STEPS + 1)
    )
    here.ticket.plan_path.write_text(
        f"# Implementation Plan: Bench\n\n## Implementation Steps\n\n{steps}\n"
    )
    here.record.prepare()
    checkpoints = await Checkpoints.open(
        root, here.record.folder / "checkpoints.git", SLUG, here.leave_out
    )
    log = list[str]()
    for step in range(1, STEPS + 1):
        attempt = here.record.attempt(step, 1)
        where = f"step-{step:02}/attempt-1"
        before = await checkpoints.take(f"{where}/{step:04}-before")
        text = "".join(f"number = {line * step}\n" for line in range(50))
        (root / path_of(step * files // (STEPS + 1))).write_text(text)
        after = await checkpoints.take(f"{where}/{step:04}-after")
        attempt.folder.mkdir(parents=True)
        for name in ("request.md", "reply.md", "output.txt"):
            (attempt.folder / name).write_text(f"# {name} of step {step}\n\n{text}")
        span = {
            "before": {"name": before.name, "id": before.id},
            "after": {"name": after.name, "id": after.id},
        }
        (attempt.folder / "span.json").write_text(json.dumps(span))
        log += [
            json.dumps(
                {
                    "time": "2026-11-23T12:00:00+00:00",
                    "event": "notice",
                    "text": text[:200],
                }
            )
        ] * 20
    (here.record.folder / "events.jsonl").write_text("\n".join([*log, ""]))


@dataclass
class Took:
    seconds: float
    processor: float
    calls: int = 1


def processor_time() -> float:
    used = [
        resource.getrusage(who)
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    ]
    return sum(one.ru_utime + one.ru_stime for one in used)


def measured(work: Callable[[], object]) -> Took:
    os.sync()  # earlier writes must not count
    start, used = time.perf_counter(), processor_time()
    work()
    return Took(time.perf_counter() - start, processor_time() - used)


def of_cdd(work: Coroutine[object, object, object]) -> Took:
    calls, started = 0, run.run_command

    async def counted(*given: Any, **options: Any) -> run.CommandResult:
        nonlocal calls
        calls += 1
        return await started(*given, **options)

    run.run_command = counted
    try:
        took = measured(lambda: asyncio.run(work))
    finally:
        run.run_command = started
    return Took(took.seconds, took.processor, calls)


def best(folder: Path, root: Path, base: Path) -> dict[str, Took]:
    """Return the best of some rounds: of `cdd`, and of git doing the same."""
    measurements: dict[str, list[Took]] = {
        "push": [],
        "pull": [],
        "git push": [],
        "git fetch": [],
    }
    for _ in range(ROUNDS):
        remote, theirs, other = (
            folder / "remote.git",
            folder / "theirs.git",
            folder / "other",
        )
        for place in (remote, theirs, other):
            shutil.rmtree(place, ignore_errors=True)
        for place in (remote, theirs):
            shutil.copytree(base, place)
        clone = base if any(base.glob("objects/pack/*.pack")) else root
        git(folder, "clone", "--quiet", "--no-hardlinks", str(clone), str(other))
        (root / ".cdd" / "runs" / SLUG / "whereabouts.json").unlink(missing_ok=True)
        measurements["push"].append(of_cdd(push(travel(root), str(remote))))

        git(root, "fetch", "--quiet", str(remote), f"+{REFERENCE}:refs/bench")
        words = ("push", "--quiet", str(theirs), f"refs/bench:{REFERENCE}")
        measurements["git push"].append(measured(partial(git, root, *words)))
        git(root, "update-ref", "-d", "refs/bench")
        measurements["pull"].append(of_cdd(pull(travel(other), str(remote))))
        shutil.rmtree(other)
        git(folder, "clone", "--quiet", "--no-hardlinks", str(clone), str(other))
        words = ("fetch", "--quiet", str(theirs), f"{REFERENCE}:refs/bench")
        measurements["git fetch"].append(measured(partial(git, other, *words)))
    return {
        name: Took(
            min(one.seconds for one in all_),
            min(one.processor for one in all_),
            all_[-1].calls,
        )
        for name, all_ in measurements.items()
    }


def main() -> None:
    os.environ["GIT_CONFIG_GLOBAL"] = os.devnull
    files = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        os.environ["XDG_STATE_HOME"] = str(folder / "state")
        root = folder / "project"
        make_tree(root, files)
        asyncio.run(make_run(root, files))
        full, empty = folder / "full.git", folder / "empty.git"
        for base in (full, empty):
            git(folder, "init", "--quiet", "--bare", "--initial-branch=main", str(base))
        git(root, "push", "--quiet", str(full), "main")
        print(f"a run of {STEPS} steps, {files} files")
        for what, base in (
            ("an empty remote", empty),
            ("a remote that has the project", full),
        ):
            took = best(folder, root, base)
            theirs = took["git push"]
            print(f"  {what}:")
            for what_, one in took.items():
                shown = (
                    f"    {what_:<9}  {one.seconds:.2f} s, {one.processor:.2f} s of"
                    " processor time"
                )
                times = (
                    f"{one.seconds / theirs.seconds:.1f} and"
                    f" {one.processor / theirs.processor:.1f} times git push"
                )
                print(
                    shown
                    + (f": {times}; {one.calls} calls of git" if one.calls > 1 else "")
                )


if __name__ == "__main__":
    main()
