"""One reply of a script, written by a user or recorded from a model."""

import json
import re
from collections.abc import Callable, Iterator
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.llm.port import (
    ConnectionFailed,
    Done,
    ModelError,
    ModelEvent,
    ProviderData,
    Request,
    StopReason,
    TextDelta,
    ThoughtDelta,
    ToolCall,
    Usage,
)


class TimedEvent(Struct, frozen=True):
    seconds: float
    """Since the call began."""
    event: ModelEvent


class ScriptedReply(Struct, frozen=True):
    """A reply of a script. A written one has text and calls; a recorded one has a
    call's request, events and end.
    """

    text: str = ""
    when: str | None = None
    """A text in the last user message of the requests to answer; None: any request."""
    error: ModelError | None = None
    stop: StopReason = StopReason.STOP
    tool_calls: tuple[ToolCall, ...] = ()
    """Made after the text. Like a real server, a cut reply makes none."""
    cut: int | None = None
    """The connection breaks after this many characters."""
    slow: float = 0.0
    """Seconds until anything arrives."""
    thinking: str = ""
    provider_data: ProviderData | None = None
    """Data to send back with the reply's message."""
    request: Request | None = None
    """The recorded request: no other request is answered."""
    events: tuple[TimedEvent, ...] = ()
    seconds: float = 0.0
    """Duration of the recorded call."""
    done: Done | None = None
    """The end of the recorded call, unless it failed."""

    @property
    def is_whole(self) -> bool:
        """True if the reply becomes a message of the conversation."""
        has_content = bool(self.text or self.calls)
        return self.error is None and self.cut is None and has_content

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        if self.cut is not None or self.stop is not StopReason.STOP:
            return ()
        return self.tool_calls

    @property
    def uses_tools(self) -> bool:
        if self.request is not None:
            return bool(self.request.tools)
        return bool(self.tool_calls)

    def at_once(self) -> "ScriptedReply":
        events = tuple(replace(timed, seconds=0.0) for timed in self.events)
        return replace(self, events=events, seconds=0.0)

    def timeline(
        self, pace: Callable[[], float]
    ) -> Iterator[tuple[float, ModelEvent | None]]:
        """Yield each event after its delay in seconds; None is the end. `pace` is
        called before each piece of a written reply: characters per second, or 0.
        """
        if self.request is None:
            yield from self._written_timeline(pace)
            return
        last = 0.0
        for timed in self.events:
            yield max(0.0, timed.seconds - last), timed.event
            last = timed.seconds
        yield max(0.0, self.seconds - last), None

    def _written_timeline(
        self, pace: Callable[[], float]
    ) -> Iterator[tuple[float, ModelEvent | None]]:
        yield self.slow, None
        thoughts = map(ThoughtDelta, pieces(self.thinking))
        texts = map(TextDelta, pieces(self.text[: self.cut]))
        for event in chain[ThoughtDelta | TextDelta](thoughts, texts):
            speed = pace()
            yield len(event.text) / speed if speed else 0.0, event
        for call in self.calls:
            yield 0.0, call

    def end(self, request: Request) -> Done | ModelError:
        if self.error is not None:
            return self.error
        if self.cut is not None:
            return ConnectionFailed(
                "The reply broke off, as its script says.", hint="Try again."
            )
        if self.done is not None:
            return self.done
        return Done(self.stop, self._count_words(request), self.provider_data)

    def _count_words(self, request: Request) -> Usage:
        asked = 0
        for message in request.messages:
            asked += len(message.content.split())
        for tool in request.tools:
            asked += len(f"{tool.description} {json.dumps(tool.parameters)}".split())
        thought = len(self.thinking.split())
        return Usage(asked, thought + len(self.text.split()), thinking_tokens=thought)


def pieces(text: str) -> list[str]:
    """Split `text` after each word, as models stream it."""
    return re.findall(r"\S+\s*|\s+", text)
