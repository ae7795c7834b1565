"""Carry out several runs, a number of them in parallel. Their events become the
board.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.errors import CddError, ExitCode
from cdd_agent.fleet.board import Board, Row, RunState
from cdd_agent.fleet.job import Ending
from cdd_agent.fleet.order import Place, RunOrder
from cdd_agent.refusals.kinds import Refusal

_END_ALL = (RunState.NO_BUDGET, RunState.LATER)
"""After one of these no other run begins: it would stop for the same reason."""


class BadEvent(CddError):
    """An event of a run lacks the fields of its kind."""

    refusal = Refusal.PROCESS_FAILED


class Coordinator(Struct):
    board: Board
    orders: Mapping[str, RunOrder]
    """By the names of the runs."""
    place: Place
    at_once: int
    on_change: Callable[[Row, Mapping[str, Any] | None], None]
    """Receives each row that may have changed, with the run's event if that is the
    cause. `board` already has the row. Returns at once.
    """
    stop_on_failure: bool = False
    clock: Callable[[], float] = time.time
    _waiting: deque[str] = field(default_factory=deque)
    _workers: list[asyncio.Task[None]] = field(default_factory=list)

    async def carry_out(self) -> ExitCode:
        """Carry the runs out as far as possible. Cancelling stops them cleanly. Raises
        no error of a run.
        """
        for name, row in self.board.rows.items():
            if not row.state.is_over:
                self._waiting.append(name)
        count = min(self.at_once, len(self._waiting))
        self._workers = [asyncio.create_task(self._work()) for _ in range(count)]
        results = await asyncio.gather(*self._workers, return_exceptions=True)
        for result in results:
            was_stopped = isinstance(result, asyncio.CancelledError)
            if isinstance(result, BaseException) and not was_stopped:
                raise result
        return self.board.exit_code

    async def _work(self) -> None:
        while self._waiting:
            await self._carry_out(self._waiting.popleft())

    async def _carry_out(self, name: str) -> None:
        row = self.board.rows[name]
        self._put(replace(row, state=RunState.RUNNING, began=self.clock(), why=""))

        def on_event(event: Mapping[str, Any]) -> None:
            try:
                row = self.board.rows[name].after_event(event)
            except (LookupError, TypeError, ValueError) as error:
                what = event.get("event")
                raise BadEvent(f"The run reported a damaged event: {what!r}") from error
            self._put(row, event)

        ending = Ending(ExitCode.INTERRUPTED)
        try:
            ending = await self.place.carry_out(self.orders[name], on_event)
        except CddError as error:
            ending = Ending(error.exit_code, error.in_a_line)
        finally:
            row = self.board.rows[name].after_end(ending, self.clock())
            self._put(row)
        if row.state in _END_ALL:
            self._waiting.clear()
        if self.stop_on_failure and not row.state.is_completed:
            self._stop_others()

    def _stop_others(self) -> None:
        self._waiting.clear()
        for worker in self._workers:
            if worker is not asyncio.current_task():
                worker.cancel()

    def _put(self, row: Row, event: Mapping[str, Any] | None = None) -> None:
        self.board = self.board.with_row(row)
        self.on_change(row, event)
