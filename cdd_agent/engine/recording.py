"""Removes secrets from a run's events, and logs each before a user interface gets
it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress

from cdd_agent.dialogue.redacted_events import RedactedEvents
from cdd_agent.engine.log import RunLog
from cdd_agent.errors import CddError
from cdd_agent.events.stream import Emit, Event
from cdd_agent.text.redaction import Redactor


class Recorder(RedactedEvents):
    """Passes the events of a ticket's work to a user interface."""

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
        """Return a separate stream for concurrent work, so that pieces do not mix."""
        return RedactedEvents(self._redactor, self._emit)

    def note(self, event: Event) -> None:
        """Log an event that was already shown. `check` raises if the disk refuses."""
        if self.refused is None:
            try:
                self._log.add(self._redactor.redacted(event))
            except CddError as error:
                self.refused = error

    def check(self) -> None:
        """Raises `BadInput` if an event could not be logged."""
        if self.refused is not None:
            raise self.refused

    @contextmanager
    def recording(self, then: Callable[[], None] = lambda: None) -> Iterator[None]:
        """Wrap work, and call `then` at its end, even after an error.

        Raises `BadInput` if an event could not be logged, and what `then` raises,
        unless the work raised first.
        """
        is_over = False
        try:
            yield
            is_over = True
        finally:
            self.forget()
            refused, self.refused = self.refused, None
            # an error of the work has priority
            with nullcontext() if is_over else suppress(CddError):
                then()
                if refused is not None:
                    raise refused
