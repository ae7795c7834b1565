"""The cost of showing a check with much output: the check with each face, against its
output into a file.
"""

import asyncio
import io
import subprocess
import sys
import tempfile
from contextlib import redirect_stdout
from pathlib import Path
from time import perf_counter

from textual.app import App, ComposeResult

from cdd_agent.dialogue.redacted_events import RedactedEvents
from cdd_agent.events.step_events import CommandOutput
from cdd_agent.events.stream import Emit, Event
from cdd_agent.faces.printer import JsonPrinter, TextPrinter
from cdd_agent.process.run import run_command
from cdd_agent.text.redaction import Redactor
from cdd_agent.tui.transcript.blocks import BlockKind
from cdd_agent.tui.transcript.widget import Transcript

ROUNDS = 3
CHECKS = {
    "nothing": "",
    "1.5 million lines, 15 MB": (
        "for i in range(1_500_000): sys.stdout.write(f'{i:09d}\\n')"
    ),
    "0.5 million lines, 50 MB": (
        "for i in range(500): sys.stdout.write(('x' * 99 + '\\n') * 1000)"
    ),
}


class OneTranscript(App[None]):
    def compose(self) -> ComposeResult:
        yield Transcript()


def into_a_file(argv: list[str], folder: Path) -> float:
    started = perf_counter()
    with (folder / "output").open("wb") as file:
        subprocess.run(argv, stdout=file, check=True)
    return perf_counter() - started


async def seconds_with(argv: list[str], folder: Path, show: Emit) -> float:
    """Return the seconds from start to result. Output takes the path of a run's
    events.
    """
    emit = RedactedEvents(Redactor(), show).emit
    started = perf_counter()
    await run_command(
        argv,
        cwd=folder,
        limit=600,
        on_output=lambda chunk: emit(CommandOutput(1, chunk.text)),
    )
    return perf_counter() - started


def headless(argv: list[str], folder: Path, *, as_json: bool) -> float:
    with redirect_stdout(io.StringIO()):
        printer = JsonPrinter() if as_json else TextPrinter()
        return asyncio.run(seconds_with(argv, folder, printer.show))


async def in_the_shell(argv: list[str], folder: Path) -> float:
    app = OneTranscript()
    async with app.run_test(size=(120, 40)):
        transcript = app.query_one(Transcript)
        transcript.begin(BlockKind.OUTPUT)

        def show(event: Event) -> None:
            assert isinstance(event, CommandOutput)
            transcript.write(event.text)

        return await seconds_with(argv, folder, show)


def main() -> None:
    print(f"{'':<28}{'file':>8}{'text':>8}{'json':>8}{'shell':>8}{'ratios':>24}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for what, code in CHECKS.items():
            argv = [sys.executable, "-c", f"import sys\n{code}"]
            into_a_file(argv, folder)
            rounds = [
                (
                    into_a_file(argv, folder),
                    headless(argv, folder, as_json=False),
                    headless(argv, folder, as_json=True),
                    asyncio.run(in_the_shell(argv, folder)),
                )
                for _ in range(ROUNDS)
            ]
            file, *faces = (min(times) for times in zip(*rounds, strict=True))
            columns = "".join(f"{seconds:>6.2f} s" for seconds in (file, *faces))
            ratios = "  ".join(f"{seconds / file:6.2f}" for seconds in faces)
            print(f"{what:<28}{columns}{'':>4}{ratios}")


if __name__ == "__main__":
    main()
