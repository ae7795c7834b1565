"""What faces get of a run: its events without secrets, each written to the run's log before it is shown."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, nullcontext, suppress
from dataclasses import dataclass, field

from cdd_agent.dialogue.presentable import Presentable
from cdd_agent.engine.engine import Engine
from cdd_agent.engine.log import RunLog
from cdd_agent.engine.report import Report
from cdd_agent.engine.report_page import save
from cdd_agent.errors import CddError
from cdd_agent.events import Event
from cdd_agent.redaction import Redactor


@dataclass
class Presented:
    """Takes secrets out of events, also out of those that stream, and logs what is left."""

    redactor: Redactor
    log: RunLog
    _presentable: Presentable = field(init=False)

    def __post_init__(self) -> None:
        self._presentable = Presentable(self.redactor)

    async def presented(self, events: AsyncGenerator[Event, None]) -> AsyncGenerator[Event, None]:
        """The same events, logged and redacted. Raises `BadInput` when the disk refuses; the events are closed then."""
        try:
            async with aclosing(events):
                async for event in events:
                    for presentable in self.one(event):
                        yield presentable
        finally:
            self._presentable.forget()

    def one(self, event: Event) -> Iterator[Event]:
        """What can be shown at this event."""
        for presentable in self._presentable.of(event):
            self.log.add(presentable)
            yield presentable


class Recorder:
    """Between an engine and a face: whatever the engine tells goes through here."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._presented = Presented(engine.run.record.redactor, engine.run.record.log)

    async def recorded(self, events: AsyncGenerator[Event, None]) -> AsyncGenerator[Event, None]:
        """The same events, logged and redacted; when they end, or nobody listens any more, the report is saved.

        Raises `BadInput` when the disk refuses; the events are closed then.
        """
        is_over = False
        try:
            async with aclosing(self._presented.presented(events)) as presented:
                async for presentable in presented:
                    yield presentable
            is_over = True
        finally:
            with nullcontext() if is_over else suppress(CddError):  # what is told is why it ended early
                self.save_report()

    def news(self) -> list[Event]:
        """What the engine could tell nobody, as `Run.news`."""
        return [presentable for event in self._engine.run.news() for presentable in self._presented.one(event)]

    def save_report(self) -> None:
        """Beside the log, once something was run. Raises `BadInput` when the disk refuses."""
        run = self._engine.run
        if run.state.started_at is not None:
            save(Report.of(run.spec.title, run.plan, run.state, run.record, run.require), run.record.folder)
