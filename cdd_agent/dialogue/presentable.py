"""Events as faces get them: without secrets, also where one comes in pieces."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import replace

from cdd_agent.events import ActionOutput, CommandOutput, Event, ReplyDelta, ThinkingDelta
from cdd_agent.redaction import Redactor


class Presentable:
    """Takes secrets out of events, one after the other. What may be the beginning of a secret waits for its end."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._stream = redactor.stream()
        self._streamed: ReplyDelta | ThinkingDelta | CommandOutput | ActionOutput | None = None
        """The last piece of the stream that goes on."""

    def of(self, event: Event) -> Iterator[Event]:
        """What can be told now that this has happened."""
        if self._streamed is not None and type(event) is not type(self._streamed) and (rest := self._stream.end()):
            yield replace(self._streamed, text=rest)
        if isinstance(event, ReplyDelta | ThinkingDelta | CommandOutput | ActionOutput):
            self._streamed = event
            if text := self._stream.feed(event.text):
                yield event if text == event.text else replace(event, text=text)
        else:
            yield self._redactor.redacted(event)

    def forget(self) -> None:
        """The rest of a stream that nobody waits for."""
        self._stream.end()


async def presented(events: AsyncGenerator[Event, None], redactor: Redactor) -> AsyncGenerator[Event, None]:
    """The same events, presentable."""
    presentable = Presentable(redactor)
    async with aclosing(events):
        async for event in events:
            for told in presentable.of(event):
                yield told
