"""Measure parsing a reply and finding its edits, against reading the same text: `python
-m benchmarks.replies`.

Reading means decoding the bytes and looking at every line once, the minimum for any
program. It grows with the text, and so should everything else. The aims: a reply of 1
MB within 100 times, 500 search blocks in a file of 20,000 lines within 400 times (each
block searches the file once).
"""

import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from cdd_agent.changes.build import change_set
from cdd_agent.changes.parse import parse_reply
from cdd_agent.changes.policy import EditPolicy

ROUNDS = 3
LINES, BLOCKS = 20_000, 500


def seconds(work: Callable[[], object]) -> float:
    """Return the best of a few rounds, so that a busy machine does not count."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def reading(text: str) -> float:
    data = text.encode()
    return seconds(lambda: [line.strip() for line in data.decode().split("\n")])


def source(lines: int) -> list[str]:
    """Return lines of code, many of them similar, as in a real file."""
    body = (
        "    if value > {0}:",
        "        total += value",
        "        count += {0}",
        "    return total",
    )
    return [
        f"def part_{at}(value):" if at % 5 == 0 else body[at % 5 - 1].format(at)
        for at in range(lines)
    ]


def whole_files() -> str:
    """Return a reply of 1 MB."""
    content = "\n".join(source(500))
    files: list[str] = []
    while sum(map(len, files)) < 1_000_000:
        files.append(
            f"Next, part {len(files)}.\n\n"
            f"```text:src/part_{len(files)}.txt\n"
            f"{content}\n"
            "```\n\n"
        )
    return "".join(files)


def search_blocks(lines: list[str], *, shifted: bool) -> str:
    """Return blocks in random order. `shifted`: none matches exactly."""
    places = random.Random(1).sample(range(0, LINES, 10), BLOCKS)
    blocks: list[str] = []
    for place in places:
        find = [("  " if shifted else "") + line for line in lines[place : place + 5]]
        new = [*find[:-1], find[-1] + "  # changed"]
        joined = ("\n".join(part) for part in (find, new))
        blocks.append(
            "part.txt\n<<<<<<< SEARCH\n{}\n=======\n{}\n>>>>>>> REPLACE\n".format(
                *joined
            )
        )
    return "\n".join(blocks)


def main() -> None:
    reply = whole_files()
    base = reading(reply)
    took = seconds(lambda: parse_reply(reply))
    words = f"a reply of {len(reply) / 1e6:.1f} MB in {reply.count('```') // 2} files"
    print(f"{words}: {took:.2f} s, {took / base:.0f} times")
    lines = source(LINES)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "part.txt").write_text("\n".join(lines) + "\n")
        base = reading("\n".join(lines))
        for words, shifted in (("exact", False), ("with other indentation", True)):
            blocks = search_blocks(lines, shifted=shifted)
            took = seconds(
                lambda blocks=blocks: change_set(  # type: ignore[misc]
                    root, parse_reply(blocks).edits, EditPolicy(seen=None)
                )
            )
            print(
                f"{BLOCKS} blocks in {LINES} lines, {words}: {took:.2f} s,"
                f" {took / base:.0f} times"
            )


if __name__ == "__main__":
    main()
