"""How long a run takes to another copy of a project, beside `git push`: `python -m benchmarks.travelling`.

A run of 50 steps, each with its checkpoints and the files of an attempt, in a tree of 10,000 files, with a remote that
has nothing yet, and with one that has the project already. What `git push` is given is the commit that `cdd push`
made. Pulling is beside `git fetch` of the same, and `git push`. An argument is another number of files.
"""

import asyncio
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Awaitable
from pathlib import Path

from benchmarks.checkpoints import git, make_tree, path_of
from cdd_agent.events import Event
from cdd_agent.git.checkpoint import Checkpoints
from cdd_agent.redaction import Redactor
from cdd_agent.tickets.store import Ticket
from cdd_agent.travel.travelling import Travel

SLUG = "feature-bench"
STEPS = 50
ROUNDS = 3
REFERENCE = f"refs/cdd/runs/{SLUG}"


def unheard(event: Event) -> None:
    """Nobody reads along."""


def travel(root: Path) -> Travel:
    ticket = Ticket(SLUG, root / "tickets" / SLUG, root)
    return Travel.of(root, ticket, Redactor(), unheard, ["tickets"])


async def make_run(root: Path, files: int) -> None:
    """As `cdd exec` leaves it, but without models and checks."""
    here = travel(root)
    here.ticket.folder.mkdir(parents=True)
    steps = "\n\n".join(f"### Step {n}: Change it\n\n**Description:** Change number {n}." for n in range(1, STEPS + 1))
    here.ticket.plan_path.write_text(f"# Implementation Plan: Bench\n\n## Implementation Steps\n\n{steps}\n")
    here.record.prepare()
    checkpoints = await Checkpoints.open(root, here.record.folder / "checkpoints.git", SLUG, here.leave_out)
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
        span = {"before": {"name": before.name, "id": before.id}, "after": {"name": after.name, "id": after.id}}
        (attempt.folder / "span.json").write_text(json.dumps(span))
        log += [json.dumps({"time": "2026-11-23T12:00:00+00:00", "event": "notice", "text": text[:200]})] * 20
    (here.record.folder / "events.jsonl").write_text("\n".join([*log, ""]))


async def seconds(work: Awaitable[object]) -> float:
    start = time.perf_counter()
    await work
    return time.perf_counter() - start


async def by_git(where: Path, *words: str) -> None:
    git(where, *words)


async def best(folder: Path, root: Path, base: Path) -> dict[str, float]:
    """The best of some rounds: of `cdd`, and of git doing the same."""
    found: dict[str, list[float]] = {"push": [], "pull": [], "git push": [], "git fetch": []}
    for _ in range(ROUNDS):
        remote, theirs, other = folder / "remote.git", folder / "theirs.git", folder / "other"
        for place in (remote, theirs, other):
            shutil.rmtree(place, ignore_errors=True)
        for place in (remote, theirs):
            shutil.copytree(base, place)
        clone = base if any(base.glob("objects/pack/*.pack")) else root
        git(folder, "clone", "--quiet", "--no-hardlinks", str(clone), str(other))
        (root / ".cdd" / "runs" / SLUG / "whereabouts.json").unlink(missing_ok=True)
        found["push"].append(await seconds(travel(root).push(str(remote))))

        git(root, "fetch", "--quiet", str(remote), f"+{REFERENCE}:refs/bench")
        found["git push"].append(await seconds(by_git(root, "push", "--quiet", str(theirs), f"refs/bench:{REFERENCE}")))
        git(root, "update-ref", "-d", "refs/bench")
        found["pull"].append(await seconds(travel(other).pull(str(remote))))
        shutil.rmtree(other)
        git(folder, "clone", "--quiet", "--no-hardlinks", str(clone), str(other))
        words = ("fetch", "--quiet", str(theirs), f"{REFERENCE}:refs/bench")
        found["git fetch"].append(await seconds(by_git(other, *words)))
    return {name: min(times) for name, times in found.items()}


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
        for what, base in (("an empty remote", empty), ("a remote that has the project", full)):
            times = asyncio.run(best(folder, root, base))
            push, pull, theirs = times["push"], times["pull"], times["git push"]
            print(f"  {what}: git push {theirs:.2f} s, git fetch {times['git fetch']:.2f} s")
            print(f"    cdd push: {push:.2f} s, {push / theirs:.1f} times git push")
            print(f"    cdd pull: {pull:.2f} s, {pull / theirs:.1f} times git push")
            print(f"    both: {(push + pull) / (theirs + times['git fetch']):.1f} times git push and git fetch")


if __name__ == "__main__":
    main()
