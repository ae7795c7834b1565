"""Shows the board of several runs without the shell: a live table, lines, or JSON."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import convert
from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from cdd_agent.events.notices import Tone
from cdd_agent.events.step_summary import StepFinished
from cdd_agent.events.stream import Event
from cdd_agent.faces.printer import TONES, JsonPrinter, TextPrinter
from cdd_agent.fleet.board import Board, Row, RunState
from cdd_agent.fleet.board_lines import (
    line_to_json,
    runs_finished,
    runs_started,
    ticket_changed,
)
from cdd_agent.fleet.table import Line, doing, money, spent, summary, table
from cdd_agent.llm.budget import Limit
from cdd_agent.wording.step_signs import step_remark

_EACH_SECOND = 2
"""Updates of the table per second."""


class BoardFace(Protocol):
    @property
    def is_on_terminal(self) -> bool: ...

    def begin(self, board: Board) -> None: ...

    def changed(
        self, board: Board, row: Row, event: Mapping[str, Any] | None
    ) -> None: ...

    def show(self, event: Event) -> None: ...

    def end(self, board: Board, exit_code: int) -> None: ...

    def close(self) -> None: ...


def board_face(as_json: bool, limit: Limit) -> BoardFace:
    if as_json:
        return JsonBoard()
    lines = BoardLines(limit)
    console = lines.console
    return (
        LiveBoard(limit)
        if console.is_terminal and not console.is_dumb_terminal
        else lines
    )


class BoardLines(TextPrinter):
    """A line for each change, and the table at the end, for pipes, files and simple
    terminals.
    """

    def __init__(self, limit: Limit) -> None:
        super().__init__(is_live=False)
        self.limit = limit

    @property
    def console(self) -> Console:
        return self._console

    def begin(self, board: Board) -> None:
        self._print_line(summary(board, time.time(), self.limit), Tone.HEADING)

    def changed(self, board: Board, row: Row, event: Mapping[str, Any] | None) -> None:
        name, tally = row.job.name, row.tally
        progress = f"{tally.over}/{tally.total}" if tally.total else ""
        if event is None and row.state is RunState.RUNNING:
            self._print_line(
                f"{name}: begins, on the branch {row.job.branch}", Tone.QUIET
            )
        elif event is None and row.state.is_over:
            effort = ", ".join(
                filter(None, (progress, spent(row.cost), money(row.cost)))
            )
            good = row.state is RunState.DONE
            words = " ".join(
                filter(None, (f"{name}: {row.state.value} ({effort})", doing(row)))
            )
            self._print_line(words, Tone.GOOD if good else Tone.WARNING)
        elif event and event["event"] == "step_finished":
            step = convert(event, StepFinished)
            if step.status.is_over:
                remark = step_remark(step)
                how = f"{step.status}, {remark}" if remark else step.status.value
                self._print_line(f"{name}: {progress} {step.title}: {how}", Tone.PLAIN)

    def end(self, board: Board, exit_code: int) -> None:
        del exit_code
        for line in table(board, time.time(), self._console.width, limit=self.limit):
            if self._console.is_terminal:
                self._console.print(_styled(line))
            else:
                self._print_line(line[0], Tone.PLAIN)


class LiveBoard(BoardLines):
    def __init__(self, limit: Limit) -> None:
        super().__init__(limit)
        self._board: Board | None = None
        self._table = Live(
            console=self._console,
            get_renderable=self._draw,
            refresh_per_second=_EACH_SECOND,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def begin(self, board: Board) -> None:
        self._board = board
        self._table.start()

    def changed(self, board: Board, row: Row, event: Mapping[str, Any] | None) -> None:
        self._board = board

    def end(self, board: Board, exit_code: int) -> None:
        self.close()
        super().end(board, exit_code)

    def close(self) -> None:
        self._table.stop()
        super().close()

    def _draw(self) -> RenderableType:
        width, height = self._console.size
        lines = (
            table(self._board, time.time(), width - 1, height - 1, self.limit)
            if self._board
            else []
        )
        return Text("\n", no_wrap=True, overflow="crop").join(
            _styled(line) for line in lines
        )


class JsonBoard(JsonPrinter):
    """The events of all runs, as in `cdd exec --json` with a `ticket`, and the board's
    own events.
    """

    def begin(self, board: Board) -> None:
        self._print(line_to_json(runs_started(board, time.time())))

    def changed(self, board: Board, row: Row, event: Mapping[str, Any] | None) -> None:
        if event is not None:
            self._print({"ticket": row.job.slug, "run": row.job.name, **event})
        else:
            self._print(line_to_json(ticket_changed(row, time.time())))

    def end(self, board: Board, exit_code: int) -> None:
        self._print(line_to_json(runs_finished(board, exit_code, time.time())))

    def _print(self, value: Mapping[str, Any]) -> None:
        sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")
        sys.stdout.flush()


def _styled(line: Line) -> Any:
    return Text(line[0], TONES[line[1]][1])
