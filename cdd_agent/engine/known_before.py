"""What is known of the tests before a step, found out while the model is asked already.

The baseline takes as long as the project's tests, and the model's first reply does not
depend on it. So both are under way at once. Whatever changes the project, runs
something in it, or asks a person about it waits here first: the baseline sees the
project as the run found it, and what it leaves behind is no step's doing.
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
    """To be awaited by calling it, as often as one likes, within `async with`; what is
    still under way at its end is stopped.

    What came of a baseline is told when somebody waits for it, and not when it comes:
    so events have the order of the story, whichever of the two takes longer. Where
    nobody has waited it is told at the end.
    """

    def __init__(
        self,
        finding: Coroutine[Any, Any, Before],
        baseline: BaselineStarted | None,
        emit: Emit,
    ) -> None:
        self.baseline = baseline
        """None where none is taken now."""
        self._finding, self._emit = finding, emit
        self._is_awaited = self._is_told = False

    async def __aenter__(self) -> Self:
        self._found = asyncio.create_task(self._finding)
        return self

    async def __aexit__(self, *error: object) -> None:
        self._found.cancel()
        # whoever has waited knows of an error
        (found,) = await asyncio.gather(self._found, return_exceptions=True)
        if isinstance(found, Before):
            self._tell(found)

    async def __call__(self) -> Before:
        """Raises what finding it out raised, such as `BadInput` when the disk
        refuses.
        """
        if self.baseline is not None and not self._is_awaited:
            self._is_awaited = True
            self._emit(BaselineAwaited(self.baseline.step, self.baseline.command))
        before = await asyncio.shield(self._found)
        self._tell(before)
        return before

    def _tell(self, before: Before) -> None:
        if (
            self.baseline is not None
            and before.baseline is not None
            and not self._is_told
        ):
            self._is_told = True
            self._emit(as_event(before.baseline, before.baseline_label))
