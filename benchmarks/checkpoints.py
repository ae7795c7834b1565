"""Measure a checkpoint against `git add --all && git commit` of the same files: `python
-m benchmarks.checkpoints`.

Between two checkpoints, no file or ten files change, in a tree of 2,000 files and in
one of 40,000. All are committed and packed at the beginning, as in a clone. The first
checkpoint reads every file; the others only check times. Arguments are other numbers of
files.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cdd_agent.git.checkpoint import Checkpoints

SIZES = (2_000, 40_000)
IN_FOLDER = 100
CHANGED = 10
ROUNDS = 5


def git(root: Path, *arguments: str) -> None:
    author = (
        "-c",
        "user.name=Ann",
        "-c",
        "user.email=ann@example.org",
        "-c",
        "gc.auto=0",
    )
    subprocess.run(
        ["git", *author, *arguments], cwd=root, check=True, capture_output=True
    )


def make_tree(root: Path, files: int) -> None:
    """Create a repository through `git fast-import`, which is much faster than `git
    add`.
    """
    git(root.parent, "init", "--quiet", str(root))
    stream = [
        "commit refs/heads/main\ncommitter Ann <ann@example.org> 0 +0000\ndata 0\n"
    ]
    for number in range(files):
        text = f"number = {number}\n"
        stream.append(f"M 644 inline {path_of(number)}\ndata {len(text)}\n{text}\n")
    importing = ["git", "fast-import", "--quiet"]
    subprocess.run(importing, cwd=root, input="".join(stream).encode(), check=True)
    git(root, "symbolic-ref", "HEAD", "refs/heads/main")
    git(root, "reset", "--hard", "--quiet")


def path_of(number: int) -> str:
    folder = number // IN_FOLDER
    return f"package_{folder % 20}/part_{folder}/module_{number}.py"


def change(root: Path, files: int, text: str) -> None:
    for number in range(0, files, files // CHANGED):
        (root / path_of(number)).write_text(f"number = {text!r}\n")


async def measure(root: Path, files: int) -> float:
    """Print the figures of a tree, and return the seconds of a checkpoint."""
    start = time.perf_counter()
    checkpoints = await Checkpoints.open(
        root, root / ".cdd" / "runs" / "bench", "bench", (".cdd",)
    )
    await checkpoints.take("first")
    first = time.perf_counter() - start
    same, ours, theirs, back = [], [], [], []
    for round_ in range(ROUNDS):
        before = await checkpoints.take("before")
        start = time.perf_counter()
        await checkpoints.take("same")
        same.append(time.perf_counter() - start)
        change(root, files, f"round {round_}")
        start = time.perf_counter()
        after = await checkpoints.take("after")
        ours.append(time.perf_counter() - start)
        start = time.perf_counter()
        result = await checkpoints.restore(await checkpoints.changes(before, after))
        back.append(time.perf_counter() - start)
        assert len(result.restored) == CHANGED
        change(root, files, f"round {round_} of git")
        start = time.perf_counter()
        git(root, "add", "--all", ":!.cdd")
        git(root, "commit", "--quiet", "--message=change")
        theirs.append(time.perf_counter() - start)
    best, commit = min(ours), min(theirs)
    print(f"{files} files, {CHANGED} changed")
    print(f"  git add && git commit: {commit:.3f} s")
    print(f"  the first checkpoint:  {first:.3f} s, {first / commit:.1f} times git")
    idle = min(same)
    print(f"  with nothing changed:  {idle:.3f} s, {idle / commit:.1f} times git")
    print(f"  a checkpoint:          {best:.3f} s, {best / commit:.1f} times git")
    print(
        f"  taking it back:        {min(back):.3f} s, {min(back) / commit:.1f}"
        " times git"
    )
    return best


def main() -> None:
    os.environ["GIT_CONFIG_GLOBAL"] = os.devnull
    seen = []
    for files in [int(size) for size in sys.argv[1:]] or SIZES:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder).resolve() / "project"
            make_tree(root, files)
            seen.append(asyncio.run(measure(root, files)))
    print(f"the larger tree: {seen[-1] / seen[0]:.1f} times the smaller one")


if __name__ == "__main__":
    main()
