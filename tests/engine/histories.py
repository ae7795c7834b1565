"""Random histories of runs: `python -m tests.engine.histories FROM TO`.

Each seed stands for a project, a plan and what happens (`histories_actions.py`). The
engine carries it out, and a plain model (`histories_model.py`) says what every file
must be. `--shrink` looks for a shorter history with the same fault.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.engine.histories_actions import History, history_of
from tests.engine.histories_play import Play
from tests.engine.histories_project import Projects
from tests.engine.histories_scene import Fault

_SECONDS = 60.0
"""For one history."""


@dataclass(frozen=True)
class Failure:
    """A history that went wrong."""

    history: History
    kind: str
    text: str
    lines: tuple[str, ...]

    def __str__(self) -> str:
        history = self.history
        steps = [
            f"  step {number} declares {', '.join(paths)}"
            for number, paths in enumerate(history.declared, 1)
        ]
        head = f"seed {history.seed}, project {history.variant!r}: {self.kind}"
        story = [f"  {line}" for line in self.lines]
        return "\n".join((head, *steps, *story, f"  FAULT {self.text}"))


def play(projects: Projects, history: History) -> Failure | None:
    """Play a history; None if all is right."""
    playing = Play(projects, history)

    async def limited() -> None:
        async with asyncio.timeout(_SECONDS):
            await playing.play()

    try:
        asyncio.run(limited())
    except Fault as fault:
        return Failure(history, fault.kind, str(fault), tuple(playing.lines))
    except Exception as error:  # noqa: BLE001 whatever the engine raises is a fault
        text = "".join(traceback.format_exception(error))
        kind = f"{type(error).__name__}: {str(error)[:60]}"
        return Failure(history, kind, text, tuple(playing.lines))
    return None


def shrink(projects: Projects, failure: Failure) -> Failure:
    """Leave out of a history whatever its fault does not need."""
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for shorter in failure.history.shorter():
            again = play(projects, shorter)
            if again is not None and again.kind == failure.kind:
                failure, is_smaller = again, True
                break
    return failure


@contextmanager
def isolated() -> Iterator[Projects]:
    """A folder for projects, away from the settings of whoever runs this."""
    memory = Path("/dev/shm")
    place = memory if memory.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="histories-", dir=place) as folder:
        os.environ |= {"HOME": folder, "CDD_TRUST": "1", "GIT_CONFIG_NOSYSTEM": "1"}
        yield Projects(Path(folder).resolve())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int, help="this one is left out")
    parser.add_argument("--shrink", action="store_true")
    parser.add_argument("--show", type=int, default=1, help="histories of each kind")
    parser.add_argument("--variant", help="only projects of this kind")
    options = parser.parse_args()
    kinds, started = Counter[str](), time.monotonic()
    with isolated() as projects:
        for seed in range(options.first, options.last):
            history = history_of(seed)
            if options.variant not in (None, history.variant):
                continue
            failure = play(projects, history)
            if failure is None:
                continue
            kinds[failure.kind] += 1
            if kinds[failure.kind] <= options.show:
                shown = shrink(projects, failure) if options.shrink else failure
                print(shown, end="\n\n", flush=True)
    seconds, count = time.monotonic() - started, options.last - options.first
    for kind, number in kinds.most_common():
        print(f"{number:5} {kind}")
    print(f"{sum(kinds.values())} of {count} failed; {seconds:.1f} s")
    return 1 if kinds else 0


if __name__ == "__main__":
    sys.exit(main())
