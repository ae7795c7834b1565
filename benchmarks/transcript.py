"""The cost of a streamed reply of 1 MB in the transcript, against a Log that receives
the same chunks. Also actions in a transcript of many blocks, or with a plan of many
steps, against the same in a small one.
"""

import asyncio
import gc
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from resource import RUSAGE_SELF, getrusage
from time import perf_counter

from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.widget import Widget
from textual.widgets import Log

from cdd_agent.cost import Cost
from cdd_agent.events.step_events import StepStarted
from cdd_agent.events.step_summary import StepSummary
from cdd_agent.tickets.status import Evidence, StepStatus
from cdd_agent.tui.transcript.blocks import BlockKind
from cdd_agent.tui.transcript.folds import Fold, Foldable, FoldHeader
from cdd_agent.tui.transcript.lines import TranscriptLine
from cdd_agent.tui.transcript.widget import Transcript
from cdd_agent.tui.widgets.steps import StepList

SIZE = 1_000_000

PROSE = (
    "The title is read **once** and kept in `Ticket.slug`, so that later changes of"
    " it, which are *common*, leave [the folder](https://example.org/folder) where it"
    " is; nothing else reads it.\n\n"
)
LISTING = (
    "1. First, run the tests:\n"
    "   - `tests/test_slugs.py`\n"
    "   - and all others\n"
    "2. Then look again.\n\n"
)
TABLE = (
    "| case | before | after |\n"
    "|---|---|--:|\n"
    "| empty | error | 1 |\n"
    "| two words | `two-words` | 12 |\n\n"
)
CODE = (
    "def slug(title: str) -> str:\n"
    "    words = title.split()\n\n"
    '    return "-".join(words)  # one rule\n\n\n'
)
SECTION = (
    "## What changes\n\n"
    f"{PROSE * 4}```python:src/slugs.py\n"
    f"{CODE * 4}```\n\n"
    f"{LISTING}{TABLE}> {PROSE}"
)


def documents() -> Iterator[tuple[str, str]]:
    yield "mixed", (SECTION * (SIZE // len(SECTION) + 1))[:SIZE]
    yield "one fence", "```python\n" + (CODE * (SIZE // len(CODE) + 1))[:SIZE]
    yield "one list", ("- an item\n  that goes on\n\n" * (SIZE // 26))[:SIZE]
    yield (
        "one table",
        "| a | b |\n|---|---|\n" + ("| some | cells |\n" * (SIZE // 17))[:SIZE],
    )


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
    """Return the seconds from the first chunk until the last row is drawn. A chunk
    arrives whenever the app is ready.
    """
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


def fill(transcript: Transcript, blocks: int) -> None:
    for number in range(blocks):
        header = FoldHeader(
            fold=Fold(), title=f"read src/file_{number}.py", ink="action"
        )
        body = [TranscriptLine(text=f"line {line} of {number}") for line in range(5)]
        transcript.add_foldable(Foldable(header, body, f"file {number}"))


async def mebibytes_of(blocks: int) -> float:
    """Return the peak memory of a process that shows this many blocks."""
    transcript = Transcript(max_lines=10 * blocks)
    async with OneWidget(transcript).run_test(size=(100, 40)) as pilot:
        fill(transcript, blocks)
        await pilot.pause()
    return getrusage(RUSAGE_SELF).ru_maxrss / 1024


async def seconds_for_each(blocks: int) -> dict[str, float]:
    """Return the median seconds of user actions in a transcript with this many blocks,
    until the screen is drawn again.
    """
    transcript = Transcript(max_lines=10 * blocks)
    async with OneWidget(transcript).run_test(size=(100, 40)) as pilot:
        fill(transcript, blocks)
        await pilot.pause()
        gc.collect()

        median = partial(_median, pilot)
        medians = {
            "add a line": await median(lambda: transcript.add(BlockKind.NOTE, "a note"))
        }
        transcript.choose_block(-1)
        medians["choose a block"] = await median(lambda: transcript.choose_block(-1))
        medians["open or fold it"] = await median(transcript.action_turn_block)
        medians["scroll a page"] = await median(
            lambda: transcript.scroll_page_up(animate=False)
        )
        medians["find a text"] = await median(lambda: transcript.find("line 3 of 1"))
        return medians


async def _median(pilot: Pilot[None], act: Callable[[], object]) -> float:
    """Return the seconds until the screen is drawn again."""
    seconds = list[float]()
    for _ in range(15):
        started = perf_counter()
        act()
        await pilot.pause()
        seconds.append(perf_counter() - started)
    return statistics.median(seconds)


async def seconds_in_a_plan_of(steps: int) -> dict[str, float]:
    """Return the median seconds of changes in a plan's panel, until the screen is drawn
    again.
    """
    seen, panel = Evidence("", passed=44, fixed=3), StepList()
    views = [
        StepSummary(
            number,
            f"Make the {number}th endpoint answer",
            StepStatus.COMPLETED if number < steps // 2 else StepStatus.PENDING,
            depends_on=tuple(range(max(number - 3, 1), number)),
            seconds=12.0,
            evidence=seen,
            cost=Cost(12_345, 0.08),
        )
        for number in range(1, steps + 1)
    ]
    async with OneWidget(panel).run_test(size=(60, 40)) as pilot:
        panel.show(views)
        panel.focus()
        await pilot.pause()
        gc.collect()

        median = partial(_median, pilot)
        return {
            "show the plan": await median(lambda: panel.show(views)),
            "a step begins": await median(
                lambda: panel.begin(StepStarted(steps // 2, "", 1))
            ),
            "a call is paid": await median(
                lambda: panel.spend(steps // 2, Cost(100, 0.001))
            ),
            "walk a step on": await median(lambda: panel.walk(1)),
        }


async def main() -> None:
    print(f"{'1 MB of':<16}{'Log':>9}{'Transcript':>13}{'ratio':>8}")
    for name, text in documents():
        log = await seconds_to_take(Log(), text)
        transcript = await seconds_to_take(Transcript(), text)
        print(f"{name:<16}{log:>7.2f} s{transcript:>11.2f} s{transcript / log:>8.2f}")
    print(f"{'with blocks:':<16}{'20':>9}{'20,000':>13}{'ratio':>8}")
    few, many = await seconds_for_each(20), await seconds_for_each(20_000)
    for name in few:
        print(
            f"{name:<16}{few[name] * 1000:>6.1f} ms{many[name] * 1000:>10.1f}"
            f" ms{many[name] / few[name]:>8.2f}"
        )
    print(f"{'with steps:':<16}{'20':>9}{'2,000':>13}{'ratio':>8}")
    few, many = await seconds_in_a_plan_of(20), await seconds_in_a_plan_of(2_000)
    for name in few:
        print(
            f"{name:<16}{few[name] * 1000:>6.1f} ms{many[name] * 1000:>10.1f}"
            f" ms{many[name] / few[name]:>8.2f}"
        )

    # 500 and 20,000 lines, six a block
    few_mib, many_mib = (_in_new_process(blocks) for blocks in (80, 3_300))
    print(
        f"memory with 20,000 lines / 500: {many_mib:.0f} / {few_mib:.0f} MiB ="
        f" {many_mib / few_mib:.2f}"
    )


def _in_new_process(blocks: int) -> float:
    command = [sys.executable, "-m", "benchmarks.transcript", str(blocks)]
    return float(
        subprocess.run(command, check=True, capture_output=True, text=True).stdout
    )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(asyncio.run(mebibytes_of(int(sys.argv[1]))))
    else:
        asyncio.run(main())
