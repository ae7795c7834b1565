"""One reply of a script: a text, tool calls or an error, in pieces at a pace."""

import json
import re
from collections.abc import Callable, Iterator

from msgspec import Struct

from cdd_agent.llm.port import (
    AuthenticationFailed,
    BadAnswer,
    ConnectionFailed,
    ContextTooLong,
    Done,
    ModelError,
    ModelEvent,
    ModelNotFound,
    NotReachable,
    PicturesRefused,
    ProviderData,
    QuotaUsedUp,
    RateLimited,
    Request,
    RequestRejected,
    StopReason,
    TextDelta,
    ThoughtDelta,
    ToolCall,
    Usage,
    WebPageAnswered,
)

ERRORS: dict[str, type[ModelError]] = {
    "authentication_failed": AuthenticationFailed,
    "model_not_found": ModelNotFound,
    "request_rejected": RequestRejected,
    "pictures_refused": PicturesRefused,
    "context_too_long": ContextTooLong,
    "rate_limited": RateLimited,
    "quota_used_up": QuotaUsedUp,
    "connection_failed": ConnectionFailed,
    "not_reachable": NotReachable,
    "bad_answer": BadAnswer,
    "web_page_answered": WebPageAnswered,
}
"""The errors that a script file can name."""


class ScriptedReply(Struct, frozen=True):
    """An entry of a script that was written: a text to say and tools to call, or an
    error to raise.
    """

    text: str = ""
    when: str | None = None
    """The entry is for a request whose last user message has this text in it; None: for
    any request.
    """
    error: ModelError | None = None
    stop: StopReason = StopReason.STOP
    tool_calls: tuple[ToolCall, ...] = ()
    """Made after the text; none where the reply is cut, as it is with real servers."""
    cut: int | None = None
    """The connection breaks after this many characters."""
    slow: float = 0.0
    """Seconds until anything comes."""
    thinking: str = ""
    """Thoughts that come before the text."""
    provider_data: ProviderData | None = None
    """The data that it wants back with its message."""

    @property
    def is_for_any(self) -> bool:
        return self.when is None

    @property
    def goes_again(self) -> bool:
        return self.when is not None

    @property
    def is_fallback(self) -> bool:
        """True if the reply fits every request, and any other reply is better."""
        return self.when == ""

    @property
    def with_tools(self) -> bool:
        return bool(self.tool_calls)

    def fits(self, request: Request) -> bool:
        said = next(
            (m.content for m in reversed(request.messages) if m.role == "user"), ""
        )
        return self.when is None or self.when in said

    def timeline(
        self, pace: Callable[[], float]
    ) -> Iterator[tuple[float, ModelEvent | None]]:
        """Its pieces at so many characters a second as there are just then, each with
        the seconds to wait before it.
        """
        yield self.slow, None
        for kind, text in (
            (ThoughtDelta, self.thinking),
            (TextDelta, self.text[: self.cut]),
        ):
            for piece in pieces(text):
                speed = pace()
                yield len(piece) / speed if speed else 0.0, kind(piece)
        if self.cut is None and self.stop is StopReason.STOP:
            yield from ((0.0, call) for call in self.tool_calls)

    def end(self, request: Request) -> Done | ModelError:
        if self.error is not None:
            return self.error
        if self.cut is not None:
            return ConnectionFailed(
                "The reply broke off, as its script says.", hint="Try again."
            )
        # A word is a token here: close enough to show, and the same on every machine.
        asked = sum(len(message.content.split()) for message in request.messages)
        for tool in request.tools:
            asked += len(f"{tool.description} {json.dumps(tool.parameters)}".split())
        thought = len(self.thinking.split())
        usage = Usage(asked, thought + len(self.text.split()), thinking_tokens=thought)
        return Done(self.stop, usage, self.provider_data)


def pieces(text: str) -> list[str]:
    """Cut `text` after each word, as models stream it."""
    return re.findall(r"\S+\s*|\s+", text)
