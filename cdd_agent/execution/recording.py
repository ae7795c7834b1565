"""What faces get of a run: its events without secrets, each written to the run's log before it is shown."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, nullcontext, suppress

from cdd_agent.dialogue.presentable import Presentable
from cdd_agent.errors import CddError
from cdd_agent.events import Event
from cdd_agent.execution.engine import Engine
from cdd_agent.execution.report import Report
from cdd_agent.execution.report_page import save


class Recorder:
    """Between an engine and a face: whatever the engine tells goes through here."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._presentable = Presentable(engine.record.redactor)

    async def recorded(self, events: AsyncGenerator[Event, None]) -> AsyncGenerator[Event, None]:
        """The same events, logged and redacted; when they end, or nobody listens any more, the report is saved.

        Raises `BadInput` when the disk refuses; the events are closed then.
        """
        is_over = False
        try:
            async with aclosing(events):
                async for event in events:
                    for presentable in self._told(event):
                        yield presentable
            is_over = True
        finally:
            self._presentable.forget()
            with nullcontext() if is_over else suppress(CddError):  # what is told is why it ended early
                self.save_report()

    def news(self) -> list[Event]:
        """What the engine could tell nobody, as `Engine.news`."""
        return [presentable for event in self._engine.news() for presentable in self._told(event)]

    def save_report(self) -> None:
        """Beside the log, once something was run. Raises `BadInput` when the disk refuses."""
        engine = self._engine
        if engine.state.started_at is not None:
            save(Report.of(engine.spec.title, engine.plan, engine.state, engine.record), engine.record.folder)

    def _told(self, event: Event) -> Iterator[Event]:
        for presentable in self._presentable.of(event):
            self._engine.record.log.add(presentable)
            yield presentable
