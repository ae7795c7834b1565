"""Scripts as files. A user writes YAML; a recording is one JSON object a line. Both
have the same entries: a recorded one has the request that it answers.
"""

import contextlib
import json
import re
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct, to_builtins

from cdd_agent.errors import BadInput
from cdd_agent.files.atomic import append_line
from cdd_agent.guarded_yaml import decode, read_mapping
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
    QuotaUsedUp,
    RateLimited,
    Request,
    RequestRejected,
    StopReason,
    TextDelta,
    ThoughtDelta,
    ToolCall,
    WasThought,
    WebPageAnswered,
)
from cdd_agent.llm.scripted_reply import ScriptedReply, TimedEvent
from cdd_agent.typed_values import RuleBroken, WrongValue, read

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
"""The errors that a script can name."""
_EVENTS: dict[str, type[ModelEvent | Done]] = {
    "text": TextDelta,
    "thinking": ThoughtDelta,
    "was_thought": WasThought,
    "tool_call": ToolCall,
    "done": Done,
}
"""All that one call of an adapter emits, by the names in the file."""
_EVENT_NAMES = {kind: name for name, kind in _EVENTS.items()}
_IS_LINES = re.compile(rb'\s*\{"(?!replies"|pace")')
_MAX_FAULTS = 20
_HINT = "docs/scripted-model.md has all keys; a record is made again with --record."

_Seconds = Annotated[float, Meta(ge=0, le=10**6)]


class Script(Struct, frozen=True):
    """The content of a script's file."""

    replies: tuple[ScriptedReply, ...]
    pace: float = 0.0
    """Characters a second of written replies; 0: at once."""


def read_script(path: Path) -> Script:
    """Raises `BadInput`, with all faults and their lines."""
    data = _read_bytes(path)
    faults: list[str] = []
    if _IS_LINES.match(data):
        pace, numbered = 0.0, _read_lines(data)
    else:
        pace, numbered = _read_yaml(data, str(path), faults)
    replies = []
    for line, entry in numbered:
        try:
            replies.append(read(_form_of(entry), entry).reply_at(line))
        except ValueError as error:
            faults.append(f"{path}:{line}: {error}.")
    if faults:
        shown = faults[:_MAX_FAULTS]
        if len(faults) > _MAX_FAULTS:
            shown.append(f"… and {len(faults) - _MAX_FAULTS} more.")
        raise BadInput("\n".join(shown), hint=_HINT)
    return Script(tuple(replies), pace)


def append_call(path: Path, model: str, reply: ScriptedReply) -> None:
    """Add a recorded call to a file. Raises `BadInput` if the disk refuses."""
    events = []
    for timed in reply.events:
        name = _EVENT_NAMES[type(timed.event)]
        events.append([timed.seconds, name, to_builtins(timed.event)])
    if reply.done is not None:
        events.append([reply.seconds, "done", to_builtins(reply.done)])
    failure = None
    if reply.error is not None:
        failure = _Failure.from_error(reply.error)
    call = {
        "model": model,
        "request": to_builtins(reply.request),
        "events": events,
        "error": to_builtins(failure),
    }
    line = json.dumps(call, ensure_ascii=False) + "\n"
    append_line(path, line.encode("utf-8", errors="replace"))


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise BadInput(
            f"{path} is not there.",
            hint="Check the path of the script, or record one with --record.",
        ) from error
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror or error}.") from error


def _read_lines(data: bytes) -> list[tuple[int, Any]]:
    """Return the entries of a recording and their lines. A line that a killed process
    left unfinished is skipped.
    """
    entries = []
    for number, line in enumerate(data.decode(errors="replace").split("\n"), 1):
        with contextlib.suppress(ValueError, RecursionError):
            entries.append((number, json.loads(line)))
    return entries


def _read_yaml(
    data: bytes, source: str, faults: list[str]
) -> tuple[float, list[tuple[int, Any]]]:
    """Return the pace, and the entries and their lines."""
    content = read_mapping(decode(data, source), source, "a script")
    values = {str(key): entry.value(source) for key, entry in content.items()}
    pace = 0.0
    try:
        pace = read(_ScriptKeys, values).pace
    except WrongValue as error:
        lines = {str(key): entry.line for key, entry in content.items()}
        line = lines.get(str(error.place[0]), 1) if error.place else 1
        faults.append(f"{source}:{line}: {error}.")
    entries = values.get("replies")
    if not isinstance(entries, list):
        return pace, []
    nodes = content["replies"].node.value
    lines_of = [node.start_mark.line + 1 for node in nodes]
    return pace, list(zip(lines_of, entries, strict=True))


def _form_of(entry: Any) -> "type[_Written | _RecordedCall]":
    match entry:
        case {"request": _}:
            return _RecordedCall
        case {"error": _}:
            return _WrittenError
        case {"empty": True}:
            return _EmptyReply
        case _:
            return _WrittenReply


class _Part(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    pass


class _ScriptKeys(_Part, frozen=True, kw_only=True):
    replies: list[Any]
    pace: Annotated[float, Meta(ge=0)] = 0.0


class _Written(_Part, frozen=True, kw_only=True):
    when: str | None = None
    slow: Annotated[float, Meta(ge=0, le=3_600)] = 0.0

    def reply_at(self, line: int) -> ScriptedReply:
        return ScriptedReply(when=self.when, slow=self.slow)


class _EmptyReply(_Written, frozen=True, kw_only=True):
    empty: bool


class _WrittenCall(_Part, frozen=True, kw_only=True):
    name: str
    arguments: Any = {}

    def call(self, id_: str) -> ToolCall:
        """A text is played unchanged, so that a script can have broken JSON."""
        arguments = self.arguments
        if not isinstance(arguments, str):
            arguments = json.dumps(arguments, ensure_ascii=False, default=str)
        return ToolCall(id_, self.name, arguments)


class _WrittenReply(_Written, frozen=True, kw_only=True):
    reply: str | None = None
    thinking: str = ""
    tool_calls: tuple[_WrittenCall, ...] = ()
    stop: StopReason = StopReason.STOP
    cut: Annotated[int, Meta(ge=0)] | None = None

    def __post_init__(self) -> None:
        if self.reply is None and not self.tool_calls:
            raise RuleBroken(
                "reply", "an entry has `reply`, `tool_calls`, `error` or `empty`"
            )

    def reply_at(self, line: int) -> ScriptedReply:
        calls = []
        for number, call in enumerate(self.tool_calls, 1):
            calls.append(call.call(f"call_{line}_{number}"))
        return ScriptedReply(
            self.reply or "",
            when=self.when,
            stop=self.stop,
            tool_calls=tuple(calls),
            cut=self.cut,
            slow=self.slow,
            thinking=self.thinking,
        )


class _WrittenError(_Written, frozen=True, kw_only=True):
    error: str
    retry_after: _Seconds | None = None

    def __post_init__(self) -> None:
        if self.retry_after is not None and self.error != "rate_limited":
            raise RuleBroken("retry_after", "belongs to `rate_limited` alone")

    def reply_at(self, line: int) -> ScriptedReply:
        message = f"Scripted error: {self.error}."
        error = _make_error(self.error, message, retry_after=self.retry_after)
        return ScriptedReply(when=self.when, error=error, slow=self.slow)


class _Failure(_Part, frozen=True, kw_only=True):
    """The error at the end of a recorded call."""

    kind: str
    message: str
    hint: str
    retry_after: _Seconds | None = None

    @classmethod
    def from_error(cls, error: ModelError) -> "_Failure":
        names = {kind: name for name, kind in ERRORS.items()}
        kind = next(names[kind] for kind in type(error).__mro__ if kind in names)
        retry_after = error.retry_after if isinstance(error, RateLimited) else None
        return cls(
            kind=kind,
            message=error.message,
            hint=error.hint,
            retry_after=retry_after,
        )


class _RecordedCall(_Part, frozen=True, kw_only=True):
    model: str
    request: Request
    events: tuple[tuple[float, str, dict[str, Any]], ...]
    error: _Failure | None

    def reply_at(self, line: int) -> ScriptedReply:
        events, done, seconds = list[TimedEvent](), None, 0.0
        for seconds, name, fields in self.events:
            event = _read_event(name, fields)
            if isinstance(event, Done):
                done = event
            else:
                events.append(TimedEvent(seconds, event))
        error = None
        if self.error is not None:
            failure, done = self.error, None
            error = _make_error(
                failure.kind, failure.message, failure.hint, failure.retry_after
            )
        elif done is None:
            raise ValueError("a call ends with `done` or an error")
        return ScriptedReply(
            request=self.request,
            events=tuple(events),
            seconds=seconds,
            done=done,
            error=error,
        )


def _read_event(name: str, fields: dict[str, Any]) -> ModelEvent | Done:
    if name not in _EVENTS:
        raise ValueError(f"`{name:.60}` is no event; there are {', '.join(_EVENTS)}")
    usage = fields.get("usage")
    if isinstance(usage, dict) and "reasoning_tokens" in usage:
        # as older records call them
        usage = {**usage, "thinking_tokens": usage["reasoning_tokens"]}
        fields = {**fields, "usage": usage}
    return read(_EVENTS[name], fields)


def _make_error(
    name: str, message: str, hint: str = "", retry_after: float | None = None
) -> ModelError:
    if name not in ERRORS:
        raise ValueError(f"`error` is {name!r:.60}; there are {', '.join(ERRORS)}")
    error = ERRORS[name](message, hint=hint)
    if isinstance(error, RateLimited):
        error.retry_after = retry_after
    return error
