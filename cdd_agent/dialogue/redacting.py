"""Events without secrets, also where a secret comes in pieces of a stream."""

from collections.abc import Iterator
from dataclasses import replace

from cdd_agent.events import CommandOutput, Event, ReplyDelta
from cdd_agent.workspace.redaction import Redactor


class Redacting:
    """Between whoever tells events and a face. Of a stream, only what may be a part of a secret has to wait."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._stream = redactor.stream()
        self._streamed: ReplyDelta | CommandOutput | None = None
        """The last piece of the stream that goes on."""

    def told(self, event: Event) -> Iterator[Event]:
        """What can be shown now."""
        if isinstance(event, ReplyDelta | CommandOutput):
            self._streamed = event
            if text := self._stream.feed(event.text):
                yield event if text == event.text else replace(event, text=text)
            return
        rest = self._stream.end()
        if rest and self._streamed:
            yield replace(self._streamed, text=rest)
        yield self._redactor.redacted(event)

    def end(self) -> None:
        """Forget the rest of a stream that nobody waits for."""
        self._stream.end()
