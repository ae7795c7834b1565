"""The recorder of a run: removes secrets from events and logs each before a face gets
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
    """The subscriber between the work on a ticket and a face."""

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
        """Return a separate stream for work that runs side by side: its pieces do not
        mix with others.
        """
        return RedactedEvents(self._redactor, self._emit)

    def note(self, event: Event) -> None:
        """Log an event that faces have already. `check` raises if the disk refuses."""
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
        """Wrap work of the user or a script. At its end, however it comes, `then` is
        called.

        Raises `BadInput` if an event could not be logged, and what `then` raises; but
        an error of the work comes first.
        """
        is_over = False
        try:
            yield
            is_over = True
        finally:
            self.forget()
            refused, self.refused = self.refused, None
            # an error of the work is the one to report
            with nullcontext() if is_over else suppress(CddError):
                then()
                if refused is not None:
                    raise refused
