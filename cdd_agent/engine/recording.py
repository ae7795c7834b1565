"""What faces get of a run: its events without secrets, each written to the run's log before it is shown."""

from cdd_agent.dialogue.redacted_events import RedactedEvents
from cdd_agent.engine.log import RunLog
from cdd_agent.errors import CddError
from cdd_agent.events import Emit, Event
from cdd_agent.redaction import Redactor


class Recorder:
    """Between the work on a ticket and a face: whatever is told goes through here."""

    def __init__(self, redactor: Redactor, log: RunLog, emit: Emit) -> None:
        self._log, self._emit = log, emit
        self._redacted = RedactedEvents(redactor, self._record)
        self.refused: CddError | None = None
        """What the disk said when an event could not be logged."""

    def emit(self, event: Event) -> None:
        self._redacted.emit(event)

    def check(self) -> None:
        """Raises `BadInput` where the disk refused to keep an event."""
        if self.refused is not None:
            raise self.refused

    def settle(self) -> None:
        """What was done is over: the rest of a stream that broke off is dropped. Raises as `check` does."""
        self._redacted.forget()
        self.check()

    def _record(self, event: Event) -> None:
        if self.refused is None:
            try:
                self._log.add(event)
            except CddError as error:
                self.refused = error
        self._emit(event)
