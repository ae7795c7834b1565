"""Measure the time that `cdd exec --worktree` adds to a run: `python -m
benchmarks.worktrees`.

It is the time until the run's own tree is ready, with 10,000 files, against `git
worktree add` of the same; and the time if the tree already exists. An argument is
another number of files.
"""

import asyncio
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.checkpoints import git, make_tree
from cdd_agent.engine.record import RunRecord
from cdd_agent.engine.whereabouts import forget_own_tree
from cdd_agent.events.stream import Event
from cdd_agent.text.redaction import Redactor
from cdd_agent.tickets.store import Ticket
from cdd_agent.travel.own_tree import OwnTree

SLUG = "feature-bench"
ROUNDS = 5


def unheard(event: Event) -> None:
    """Ignore events."""


async def make(root: Path) -> float:
    """Return the seconds until the tree is ready."""
    start = time.perf_counter()
    record = RunRecord.of(root, SLUG, Redactor())
    record.prepare()
    own = await OwnTree.open(record, Ticket(SLUG, root / "tickets" / SLUG, root))
    await own.make(unheard)
    await own.expect_own_packages(own.place, unheard)
    return time.perf_counter() - start


def by_git(root: Path) -> float:
    start = time.perf_counter()
    git(root, "worktree", "add", "--quiet", "-b", "other", str(root.parent / "other"))
    return time.perf_counter() - start


def main() -> None:
    os.environ["GIT_CONFIG_GLOBAL"] = os.devnull
    files = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as name:
        root = Path(name).resolve() / "project"
        make_tree(root, files)
        first, again, theirs = list[float](), list[float](), list[float]()
        for _ in range(ROUNDS):
            theirs.append(by_git(root))
            git(root, "worktree", "remove", "--force", str(root.parent / "other"))
            git(root, "branch", "-D", "other")
            first.append(asyncio.run(make(root)))
            again.append(asyncio.run(make(root)))
            record = root / ".cdd" / "runs" / SLUG
            shutil.rmtree(record / "tree")
            forget_own_tree(record)
            git(root, "worktree", "prune")
            git(root, "branch", "-D", f"cdd/{SLUG}")
    print(f"a tree of its own, {files} files")
    print(f"  git worktree add:   {min(theirs):.2f} s")
    print(
        f"  --worktree adds:    {min(first):.2f} s, {min(first) / min(theirs):.1f}"
        " times git"
    )
    print(f"  when it is there:   {min(again):.2f} s")


if __name__ == "__main__":
    main()
