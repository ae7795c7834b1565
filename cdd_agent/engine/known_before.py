"""The test results before a step. They are found while the model is asked.

The baseline takes as long as the project's tests, and the model's first reply does not
need it, so both run at once. Code that changes the project, runs something in it, or
asks the user waits here first. So the baseline sees the project as the run found it,
and the files that it leaves belong to no step.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Self

from cdd_agent.events.run_events import BaselineAwaited, BaselineStarted
from cdd_agent.events.stream import Emit
from cdd_agent.verification.baseline import as_event
from cdd_agent.verification.before import Before


class KnownBefore:
    """Await it by a call, as often as needed, inside `async with`. At the end of the
    block, work that still runs is stopped.

    The result of a baseline is reported when it is first awaited, or at the end of the
    block. So the order of events does not depend on the time it takes.
    """

    def __init__(
        self,
        finding: Coroutine[Any, Any, Before],
        baseline: BaselineStarted | None,
        emit: Emit,
    ) -> None:
        self.baseline = baseline
        """None if no baseline is taken now."""
        self._finding, self._emit = finding, emit
        self._is_awaited = self._is_reported = False

    async def __aenter__(self) -> Self:
        self._found = asyncio.create_task(self._finding)
        return self

    async def __aexit__(self, *error: object) -> None:
        self._found.cancel()
        # a caller that awaited the results has seen an error
        (found,) = await asyncio.gather(self._found, return_exceptions=True)
        if isinstance(found, Before):
            self._report(found)

    async def __call__(self) -> Before:
        """Return the results. Raises what the work raised, such as `BadInput` if the
        disk refuses.
        """
        if self.baseline is not None and not self._is_awaited:
            self._is_awaited = True
            self._emit(BaselineAwaited(self.baseline.step, self.baseline.command))
        before = await asyncio.shield(self._found)
        self._report(before)
        return before

    def _report(self, before: Before) -> None:
        """Report the baseline, once."""
        if self._is_reported or self.baseline is None or before.baseline is None:
            return
        self._is_reported = True
        self._emit(as_event(before.baseline, before.baseline_label))
