"""Several tickets' runs, so many at once: one begins when another has ended, and what
they tell becomes the board.
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
from cdd_agent.fleet.place import Ending, Place, TicketJob
from cdd_agent.llm.budget import Limit

_END_ALL = (RunState.NO_BUDGET, RunState.LATER)
"""After one of these no other run is begun: it would stop at the same."""


class Coordinator(Struct):
    """Carries out the runs of a board that are not over."""

    board: Board
    place: Place
    at_once: int
    changed: Callable[[Row, Mapping[str, Any] | None], None]
    """Is told of each row that has changed, and of the event of its run that it was
    changed by, if it was one; also of an event that changes nothing. `board` has the
    row by then. It returns at once.
    """
    limit: Limit = field(default_factory=Limit)
    """Of all runs together."""
    stop_on_failure: bool = False
    clock: Callable[[], float] = time.time
    _waiting: deque[TicketJob] = field(default_factory=deque)
    _workers: list[asyncio.Task[None]] = field(default_factory=list)

    async def carry_out(self) -> ExitCode:
        """See them all to their end, as far as they come. To cancel it stops them
        cleanly; it raises no other error of a run.
        """
        self._waiting.extend(
            row.job for row in self.board.rows.values() if not row.state.is_over
        )
        count = min(self.at_once, len(self._waiting))
        self._workers = [asyncio.create_task(self._work()) for _ in range(count)]
        for result in await asyncio.gather(*self._workers, return_exceptions=True):
            if isinstance(result, BaseException) and not isinstance(
                result, asyncio.CancelledError
            ):
                raise result
        return self.board.exit_code

    @property
    def left(self) -> Limit:
        """What the runs have left of the budget. Of what calls take that are under way
        nothing is known yet.
        """
        spent, limit = self.board.cost, self.limit
        tokens = None if limit.tokens is None else max(limit.tokens - spent.tokens, 0)
        return Limit(
            tokens,
            None if limit.usd is None else max(limit.usd - (spent.usd or 0.0), 0.0),
        )

    async def _work(self) -> None:
        while self._waiting:
            await self._carry_out(self._waiting.popleft())

    async def _carry_out(self, job: TicketJob) -> None:
        self._put(
            replace(
                self.board.rows[job.name],
                state=RunState.RUNNING,
                began=self.clock(),
                why="",
            )
        )

        def tell(event: Mapping[str, Any]) -> None:
            self._put(self.board.rows[job.name].told(event), event)

        ending = Ending(ExitCode.INTERRUPTED)
        try:
            ending = await self.place.carry_out(job, self.left, tell)
        except CddError as error:
            ending = Ending(error.exit_code, error.in_a_line)
        finally:
            row = self.board.rows[job.name].over(ending, self.clock())
            self._put(row)
        if row.state in _END_ALL:
            self._waiting.clear()
        if self.stop_on_failure and row.state is not RunState.DONE:
            self._waiting.clear()
            for worker in self._workers:
                if worker is not asyncio.current_task():
                    worker.cancel()

    def _put(self, row: Row, event: Mapping[str, Any] | None = None) -> None:
        self.board = self.board.with_row(row)
        self.changed(row, event)
