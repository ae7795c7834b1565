"""A model that plays a script: for the demo, for tests, and for bug reports that others can replay."""

import asyncio
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from cdd_agent.llm.known_models import FREE, Price
from cdd_agent.llm.port import (
    AuthenticationFailed,
    BadAnswer,
    ConnectionFailed,
    ContextTooLong,
    Done,
    Hear,
    ModelError,
    ModelNotFound,
    PicturesRefused,
    ProviderData,
    QuotaUsedUp,
    RateLimited,
    Request,
    RequestRejected,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    Usage,
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
    "bad_answer": BadAnswer,
}
"""The errors that a script file can name."""


class NoReplyLeft(BadAnswer):
    """A script or a record has nothing to say to a request; asking again would not change that."""

    is_transient = False


@dataclass(frozen=True)
class ScriptedReply:
    """One entry of a script: a text to say and tools to call, or an error to raise."""

    text: str = ""
    when: str | None = None
    """The entry is for a request whose last user message has this text in it; None: for any request."""
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
    """What it wants back with its message."""

    def fits(self, request: Request) -> bool:
        said = next((m.content for m in reversed(request.messages) if m.role == "user"), "")
        return self.when is None or self.when in said


class ScriptedModel:
    """Plays replies in order, and keeps what it was asked.

    A reply whose `when` fits the request goes first, otherwise the next one without `when`. So a run that is
    resumed in a new process, with the same script, still gets the reply that belongs to its step. Each is played
    once; only one with `when` is played again, if no other fits: a step may be asked for once more.
    """

    def __init__(
        self,
        script: Iterable[str | ModelError | ScriptedReply],
        *,
        pace: float = 0.0,
        name: str = "scripted",
        window: int | None = None,
        sees: bool | None = True,
    ) -> None:
        self.name = name
        self.window = window
        self.sees = sees
        self.pace = pace
        """Characters a second; 0: as fast as they are read."""
        self.requests: list[Request] = []
        self._script = [_entry(line) for line in script]
        self._left = list(self._script)

    @classmethod
    def from_yaml(cls, source: Path | str) -> Self:
        """Read a script: a `Path` is a file, a `str` is the text itself.

        pace: 400                # optional: characters a second
        replies:
          - when: "Step 2"       # optional: a text that the last user message must contain
            reply: "..."
            stop: length         # optional: stop, length or refused
            tool_calls:          # optional, and enough without a reply
              - {name: read_file, arguments: {path: a.py}}
            cut: 20              # optional: the connection breaks after so many characters
            slow: 2              # optional: seconds until anything comes
            thinking: "..."      # optional: thoughts that come before the reply
          - empty: true          # instead of a reply: one with nothing in it
          - error: rate_limited  # instead of a reply: one of `ERRORS`
            retry_after: 2       # optional, of `rate_limited` only: seconds
        """
        from cdd_agent.llm.script_file import ScriptFile  # scripts made in code need no YAML

        pace, script = ScriptFile("script").read(source) if isinstance(source, str) else ScriptFile.at(source)
        return cls(script, pace=pace)

    @property
    def calls_tools(self) -> bool:
        """Some reply of the script does."""
        return any(entry.tool_calls for entry in self._script)

    def next_reply(self, request: Request) -> ScriptedReply:
        """Take the entry for `request` out of the script; one that was played goes again where no other fits."""
        self.requests.append(request)
        fitting = [entry for entry in self._left if entry.fits(request)]
        fitting = fitting or [entry for entry in self._script if entry.when is not None and entry.fits(request)]
        if not fitting:
            raise NoReplyLeft(
                f"The script has no reply left for request {len(self.requests)}.",
                hint="Add a reply to the script, or a `when` that fits the request.",
            )
        chosen = next((entry for entry in fitting if entry.when is not None), fitting[0])
        self._left = [entry for entry in self._left if entry is not chosen]
        return chosen

    @property
    def price(self) -> Price:
        return FREE

    def warm_up(self) -> None:
        """Nothing is slow here."""

    async def reply(self, request: Request, hear: Hear) -> Done:
        reply = self.next_reply(request)
        was_heard = False
        try:
            if reply.slow:
                await asyncio.sleep(reply.slow)
            if reply.error is not None:
                was_heard = True
                raise reply.error
            for kind, text in ((ThinkingDelta, reply.thinking), (TextDelta, reply.text[: reply.cut])):
                for piece in pieces(text):
                    await asyncio.sleep(len(piece) / self.pace if self.pace else 0)
                    hear(kind(piece))
            was_heard = True
        finally:
            if not was_heard:  # nobody waited for its end: it can be asked for again
                self._left.insert(0, reply)
        if reply.cut is not None:
            raise ConnectionFailed(f"The reply of {self.name} broke off, as its script says.", hint="Try again.")
        if reply.stop is StopReason.STOP:
            for call in reply.tool_calls:
                hear(call)
        return Done(reply.stop, _usage(request, reply), reply.provider_data)


def pieces(text: str) -> list[str]:
    """Cut `text` after each word, as models stream it."""
    return re.findall(r"\S+\s*|\s+", text)


def _entry(line: str | ModelError | ScriptedReply) -> ScriptedReply:
    match line:
        case str():
            return ScriptedReply(line)
        case ModelError():
            return ScriptedReply(error=line)
        case ScriptedReply():
            return line


def _usage(request: Request, reply: ScriptedReply) -> Usage:
    """A word is a token here: close enough to show, and the same on every machine."""
    asked = sum(len(message.content.split()) for message in request.messages)
    thought = len(reply.thinking.split())
    return Usage(asked, thought + len(reply.text.split()), thinking_tokens=thought)
