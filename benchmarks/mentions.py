"""Complete `@file` in a project of 100,000 files: `python -m benchmarks.mentions`.

After each key, all names are searched and ranked. The reference is the least that a
Python program needs to look at every name once, without ranking. Also measured: the
longest pause of the event loop while a thread builds the index, against the same loop
while a thread only walks the folders (`os.walk`).
"""

import asyncio
import os
import random
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from cdd_agent.agents.mention_completion import complete_mention, files_to_mention
from cdd_agent.files.index import FileIndex
from cdd_agent.threads import in_thread

FOLDERS, FILES = 1_000, 100
WORDS = (
    "user order cart login model view test util parse render token stream engine plan"  # noqa: SIM905
    " step check prompt".split()
)
TYPED = ("prompt", "userord", "test_us", "engine/pl", "zzzzz", "lgnvw", "e_9")
ROUNDS = 5


def make_tree(root: Path) -> None:
    choose = random.Random(1).choice
    for number in range(FOLDERS):
        folder = root / f"{choose(WORDS)}_{number % 25}" / f"{choose(WORDS)}_{number}"
        folder.mkdir(parents=True)
        for file in range(FILES):
            (folder / f"{choose(WORDS)}_{choose(WORDS)}_{file}.py").touch()


def named(paths: list[str], typed: str) -> list[str]:
    return [path for path in paths if typed in path.casefold()]


def best(work: Callable[[], object]) -> float:
    """Return the best of a few rounds, so that a busy machine does not count."""
    times = list[float]()
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return min(times)


async def longest_pause(work: Callable[[], object]) -> float:
    """Return the longest pause of an event loop that wakes every millisecond while a
    thread works.
    """
    task, longest, last = (
        asyncio.ensure_future(in_thread(work, name="work")),
        0.0,
        time.perf_counter(),
    )
    while not task.done():
        await asyncio.sleep(0.001)
        now = time.perf_counter()
        longest, last = max(longest, now - last), now
    await task
    return longest


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        make_tree(root)
        index: FileIndex = files_to_mention(root)
        ours = min(asyncio.run(longest_pause(index.build)) for _ in range(ROUNDS))
        walked = min(
            asyncio.run(longest_pause(lambda: list(os.walk(root))))
            for _ in range(ROUNDS)
        )
        paths = [indexed.path for indexed in index._paths]
        print(f"{len(index):,} files and folders")
        slowest, ratio = 0.0, 0.0
        for word in TYPED:
            for end in range(2, len(word) + 1):
                typed = word[:end]
                plain = best(partial(named, paths, typed))
                duration = best(partial(complete_mention, index, f"explain @{typed}"))
                slowest, ratio = max(slowest, duration), max(ratio, duration / plain)
        print(
            f"a key: {slowest * 1000:.1f} ms at most, {ratio:.1f} times looking at each"
            " name once"
        )
        print(
            f"longest pause while the index is built: {ours * 1000:.1f} ms,"
            f" {ours / walked:.1f} times os.walk's"
        )


if __name__ == "__main__":
    main()
