"""What a streamed reply of 1 MB costs in the transcript, against a Log that takes the same chunks."""

import asyncio
import gc
from collections.abc import Iterator
from random import Random
from time import perf_counter

from textual.app import App, ComposeResult
from textual.widget import Widget
from textual.widgets import Log

from cdd_agent.tui.transcript.widget import Transcript

SIZE = 1_000_000

PROSE = (
    "The title is read **once** and kept in `Ticket.slug`, so that later changes of it, which are *common*, "
    "leave [the folder](https://example.org/folder) where it is; nothing else reads it.\n\n"
)
LISTING = "1. First, run the tests:\n   - `tests/test_slugs.py`\n   - and all others\n2. Then look again.\n\n"
TABLE = "| case | before | after |\n|---|---|--:|\n| empty | error | 1 |\n| two words | `two-words` | 12 |\n\n"
CODE = 'def slug(title: str) -> str:\n    words = title.split()\n\n    return "-".join(words)  # one rule\n\n\n'
SECTION = f"## What changes\n\n{PROSE * 4}```python:src/slugs.py\n{CODE * 4}```\n\n{LISTING}{TABLE}> {PROSE}"


def documents() -> Iterator[tuple[str, str]]:
    yield "mixed", (SECTION * (SIZE // len(SECTION) + 1))[:SIZE]
    yield "one fence", "```python\n" + (CODE * (SIZE // len(CODE) + 1))[:SIZE]
    yield "one list", ("- an item\n  that goes on\n\n" * (SIZE // 26))[:SIZE]
    yield "one table", "| a | b |\n|---|---|\n" + ("| some | cells |\n" * (SIZE // 17))[:SIZE]


def chunks(text: str) -> Iterator[str]:
    random = Random(text[:10])
    start = 0
    while start < len(text):
        end = start + random.randint(20, 200)
        yield text[start:end]
        start = end


class OneWidget(App[None]):
    def __init__(self, widget: Widget) -> None:
        super().__init__()
        self.widget = widget

    def compose(self) -> ComposeResult:
        yield self.widget


async def seconds_to_take(widget: Log | Transcript, text: str) -> float:
    """From the first chunk until the last row is drawn; a chunk comes whenever the app is ready for one."""
    async with OneWidget(widget).run_test(size=(100, 40)) as pilot:
        gc.collect()
        started = perf_counter()
        for chunk in chunks(text):
            widget.write(chunk)
            await asyncio.sleep(0)
        if isinstance(widget, Transcript):
            widget.settle()
        await pilot.pause()
        return perf_counter() - started


async def main() -> None:
    print(f"{'1 MB of':<16}{'Log':>9}{'Transcript':>13}{'ratio':>8}")
    for name, text in documents():
        log = await seconds_to_take(Log(), text)
        transcript = await seconds_to_take(Transcript(), text)
        print(f"{name:<16}{log:>7.2f} s{transcript:>11.2f} s{transcript / log:>8.2f}")


if __name__ == "__main__":
    asyncio.run(main())
