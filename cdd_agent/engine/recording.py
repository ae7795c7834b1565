"""A run's events as faces get them: without secrets, each written to the run's log
before it is shown.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress

from cdd_agent.dialogue.redacted_events import RedactedEvents
from cdd_agent.engine.log import RunLog
from cdd_agent.errors import CddError
from cdd_agent.events import Emit, Event
from cdd_agent.redaction import Redactor


class Recorder(RedactedEvents):
    """Between the work on a ticket and a face: whatever is told goes through here."""

    def __init__(self, redactor: Redactor, log: RunLog, emit: Emit) -> None:
        self.refused: CddError | None = None
        """The disk's refusal when an event could not be logged."""

        def record(event: Event) -> None:
            if self.refused is None:
                try:
                    log.add(event)
                except CddError as error:
                    self.refused = error
            emit(event)

        super().__init__(redactor, record)
        self._log = log

    def beside(self) -> RedactedEvents:
        """For work beside other work, whose pieces are not to be taken for pieces of
        one.
        """
        return RedactedEvents(self._redactor, self._emit)

    def note(self, event: Event) -> None:
        """Log what faces know already. Where the disk refuses, `check` says so."""
        if self.refused is None:
            try:
                self._log.add(self._redactor.redacted(event))
            except CddError as error:
                self.refused = error

    def check(self) -> None:
        """Raises `BadInput` where the disk refused to keep an event."""
        if self.refused is not None:
            raise self.refused

    @contextmanager
    def recording(self, then: Callable[[], None] = lambda: None) -> Iterator[None]:
        """Around whatever a person or a script has done; at its end, however it comes,
        `then` is called.

        Raises what that raises, and `BadInput` where the disk refused to keep an event;
        but what ended it early first.
        """
        is_over = False
        try:
            yield
            is_over = True
        finally:
            self.forget()
            refused, self.refused = self.refused, None
            # what is told is why it ended early
            with nullcontext() if is_over else suppress(CddError):
                then()
                if refused is not None:
                    raise refused
