from msgspec.structs import replace

from cdd_agent.events.action_events import ActionOutput
from cdd_agent.events.dialogue_events import ReplyDelta, ThinkingDelta
from cdd_agent.events.step_events import CommandOutput
from cdd_agent.events.stream import Emit, Event, is_beside_the_turn
from cdd_agent.text.redaction import Redactor

StreamedEvent = ReplyDelta | ThinkingDelta | CommandOutput | ActionOutput


class RedactedEvents:
    """Emits events without secrets. The end of a text waits if it may be the beginning
    of a secret.
    """

    def __init__(self, redactor: Redactor, emit: Emit) -> None:
        self._redactor, self._emit = redactor, emit
        self._stream = redactor.stream()
        self._last_piece: StreamedEvent | None = None

    def emit(self, event: Event) -> None:
        if is_beside_the_turn():
            self._emit(self._redactor.redacted(event))
            return
        self._end_stream_of_another_kind(event)
        if not isinstance(event, StreamedEvent):
            self._emit(self._redactor.redacted(event))
            return
        self._last_piece = event
        text = self._stream.feed(event.text)
        if text:
            self._emit(event if text == event.text else replace(event, text=text))

    def forget(self) -> None:
        """Drop the rest of an interrupted stream: half a secret cannot be
        recognised.
        """
        self._stream.end()

    def _end_stream_of_another_kind(self, event: Event) -> None:
        last = self._last_piece
        if last is None or type(event) is type(last):
            return
        rest = self._stream.end()
        if rest:
            self._emit(replace(last, text=rest))
