"""A model that plays a script: for the demo, for tests, and for bug reports that others can replay."""

import asyncio
import re
from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from cdd_agent.errors import BadInput
from cdd_agent.llm.port import (
    AuthenticationFailed,
    BadAnswer,
    ConnectionFailed,
    ContextTooLong,
    Done,
    ModelError,
    ModelEvent,
    ModelNotFound,
    RateLimited,
    Request,
    RequestRejected,
    StopReason,
    TextDelta,
    Usage,
)

ERRORS: dict[str, type[ModelError]] = {
    "authentication_failed": AuthenticationFailed,
    "model_not_found": ModelNotFound,
    "request_rejected": RequestRejected,
    "context_too_long": ContextTooLong,
    "rate_limited": RateLimited,
    "connection_failed": ConnectionFailed,
    "bad_answer": BadAnswer,
}
"""The errors that a script file can name."""
_SLOWEST = 3_600.0


class NoReplyLeft(BadAnswer):
    """A script or a record has nothing to say to a request; asking again would not change that."""

    mends = False


@dataclass(frozen=True)
class ScriptedReply:
    """One entry of a script: a text to say, or an error to raise."""

    text: str = ""
    when: str | None = None
    """The entry is for a request whose last user message has this text in it; None: for any request."""
    error: ModelError | None = None
    stop: StopReason = StopReason.STOP
    cut: int | None = None
    """The connection breaks after this many characters."""
    slow: float = 0.0
    """Seconds until anything comes."""

    def fits(self, request: Request) -> bool:
        return self.when is None or self.when in _last_user_message(request)


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
    ) -> None:
        self.name = name
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
            cut: 20              # optional: the connection breaks after so many characters
            slow: 2              # optional: seconds until anything comes
          - empty: true          # instead of a reply: one with nothing in it
          - error: rate_limited  # instead of a reply: one of `ERRORS`
            retry_after: 2       # optional, of `rate_limited` only: seconds
        """
        if isinstance(source, str):
            pace, script = _ScriptFile("script").read(source)
        else:
            from cdd_agent.guarded_yaml import read_file  # scripts made in code need no YAML

            text = read_file(source)
            if text is None:
                raise BadInput(f"The script {source} is not there.", hint="Check the path of the script.")
            pace, script = _ScriptFile(str(source)).read(text)
        return cls(script, pace=pace)

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

    def warm_up(self) -> None:
        """Nothing is slow here."""

    async def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        reply = self.next_reply(request)
        was_heard = False
        try:
            if reply.slow:
                await asyncio.sleep(reply.slow)
            if reply.error is not None:
                was_heard = True
                raise reply.error
            for piece in pieces(reply.text[: reply.cut]):
                await asyncio.sleep(len(piece) / self.pace if self.pace else 0)
                yield TextDelta(piece)
            was_heard = True
        finally:
            if not was_heard:  # nobody waited for its end: it can be asked for again
                self._left.insert(0, reply)
        if reply.cut is not None:
            raise ConnectionFailed(f"The reply of {self.name} broke off, as its script says.", hint="Try again.")
        yield Done(reply.stop, _usage(request, reply.text))


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


def _last_user_message(request: Request) -> str:
    return next((m.content for m in reversed(request.messages) if m.role == "user"), "")


def _usage(request: Request, reply: str) -> Usage:
    """A word is a token here: close enough to show, and the same on every machine."""
    return Usage(sum(len(message.content.split()) for message in request.messages), len(reply.split()))


class _ScriptFile:
    """The file form of a script. Every refusal names the file, the line and what is allowed."""

    def __init__(self, name: str) -> None:
        self.name = name

    def read(self, text: str) -> tuple[float, list[ScriptedReply]]:
        """Return the pace and the entries."""
        from cdd_agent.guarded_yaml import constructed, list_items, read_mapping

        entries = read_mapping(text, self.name, "a script")
        self._check_keys(1, {str(key): "" for key in entries}, required={"replies"}, optional={"pace"})
        replies = list_items(entries["replies"].node)
        if replies is None:
            line = entries["replies"].line
            raise self._refusal(line, "`replies` is not a list", "Write each reply as `- reply: ...`.")
        pace = self._pace(entries["pace"].line, entries["pace"].value(self.name)) if "pace" in entries else 0.0
        lines = [(node.start_mark.line + 1, node) for node in replies]
        return pace, [self._reply(line, constructed(node, f"{self.name}:{line}")) for line, node in lines]

    def _pace(self, line: int, pace: object) -> float:
        if isinstance(pace, bool) or not isinstance(pace, int | float) or pace < 0:
            raise self._refusal(line, f"`pace` is {pace!r}", "Give characters a second; 0 is at once.")
        return float(pace)

    def _reply(self, line: int, entry: Any) -> ScriptedReply:
        if isinstance(entry, dict) and "error" in entry:
            return self._failure(line, entry)
        if isinstance(entry, dict) and "empty" in entry:
            self._check_keys(line, entry, required={"empty"}, optional={"when", "slow"})
            if entry["empty"] is not True:
                raise self._refusal(line, f"`empty` is {entry['empty']!r}", "Write `empty: true`, or a `reply`.")
            return ScriptedReply(when=self._when(line, entry), slow=self._slow(line, entry))
        self._check_keys(line, entry, required={"reply"}, optional={"when", "stop", "cut", "slow"})
        stop = self._one_of(line, "stop", entry.get("stop", "stop"), list(StopReason))
        cut = entry.get("cut")
        if cut is not None and (isinstance(cut, bool) or not isinstance(cut, int) or cut < 0):
            raise self._refusal(line, f"`cut` is {cut!r}", "Give a number of characters.")
        return ScriptedReply(
            self._text(line, "reply", entry["reply"]),
            when=self._when(line, entry),
            stop=StopReason(stop),
            cut=cut,
            slow=self._slow(line, entry),
        )

    def _failure(self, line: int, entry: dict[str, Any]) -> ScriptedReply:
        limited = {"retry_after"} if entry["error"] == "rate_limited" else set()
        self._check_keys(line, entry, required={"error"}, optional={"when", "slow", *limited})
        kind = self._one_of(line, "error", entry["error"], list(ERRORS))
        error = ERRORS[kind](f"Scripted error: {kind}.")
        if isinstance(error, RateLimited) and "retry_after" in entry:
            error.retry_after = self._seconds(line, "retry_after", entry["retry_after"], longest=10**6)
        return ScriptedReply(when=self._when(line, entry), error=error, slow=self._slow(line, entry))

    def _slow(self, line: int, entry: dict[str, Any]) -> float:
        return self._seconds(line, "slow", entry["slow"], longest=_SLOWEST) if "slow" in entry else 0.0

    def _seconds(self, line: int, key: str, value: object, *, longest: float) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= longest:
            raise self._refusal(line, f"`{key}` is {value!r}", f"Give seconds, at most {longest:,.0f}.")
        return float(value)

    def _when(self, line: int, entry: dict[str, Any]) -> str | None:
        return self._text(line, "when", entry["when"]) if "when" in entry else None

    def _text(self, line: int, key: str, value: object) -> str:
        if not isinstance(value, str):
            raise self._refusal(line, f"`{key}` is {value!r}", f"Give `{key}` a text; quote it if need be.")
        return value

    def _one_of(self, line: int, key: str, value: object, allowed: Sequence[str]) -> str:
        if value not in allowed:
            raise self._refusal(line, f"`{key}` is {value!r}", f"Allowed: {', '.join(allowed)}.")
        return str(value)

    def _check_keys(self, line: int, entry: object, *, required: set[str], optional: set[str]) -> None:
        allowed = f"Allowed: {', '.join(sorted(required | optional, key=str))}; needed: {', '.join(required)}."
        if not isinstance(entry, dict):
            raise self._refusal(line, "not a mapping of keys to values", allowed)
        if wrong := sorted(str(key) for key in entry.keys() - required - optional):
            raise self._refusal(line, f"`{wrong[0]}` is not a key here", allowed)
        if missing := sorted(required - entry.keys()):
            raise self._refusal(line, f"`{missing[0]}` is missing", allowed)

    def _refusal(self, line: int, problem: str, hint: str) -> BadInput:
        return BadInput(f"{self.name}:{line}: {problem}.", hint=hint)
