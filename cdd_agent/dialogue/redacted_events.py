"""Events as faces get them: without secrets, also where one comes in pieces."""

from msgspec.structs import replace

from cdd_agent.events.action_events import ActionOutput
from cdd_agent.events.dialogue_events import ReplyDelta, ThinkingDelta
from cdd_agent.events.step_events import CommandOutput
from cdd_agent.events.stream import Emit, Event, is_beside_the_turn
from cdd_agent.redaction import Redactor


class RedactedEvents:
    """Takes secrets out of events before they are told. What may be the beginning of a
    secret waits for its end.
    """

    def __init__(self, redactor: Redactor, emit: Emit) -> None:
        self._redactor, self._emit = redactor, emit
        self._stream = redactor.stream()
        self._streamed: (
            ReplyDelta | ThinkingDelta | CommandOutput | ActionOutput | None
        ) = None
        """The last piece of the stream that goes on."""

    def emit(self, event: Event) -> None:
        """This has happened: tell what can be told now."""
        if is_beside_the_turn():
            self._emit(self._redactor.redacted(event))
            return
        if (
            self._streamed is not None
            and type(event) is not type(self._streamed)
            and (rest := self._stream.end())
        ):
            self._emit(replace(self._streamed, text=rest))
        if isinstance(event, ReplyDelta | ThinkingDelta | CommandOutput | ActionOutput):
            self._streamed = event
            if text := self._stream.feed(event.text):
                self._emit(event if text == event.text else replace(event, text=text))
        else:
            self._emit(self._redactor.redacted(event))

    def forget(self) -> None:
        """Drop the rest of a stream that broke off: half a secret would not be known as
        one.
        """
        self._stream.end()
