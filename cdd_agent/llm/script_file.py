"""Scripts as files. Users write YAML; a recording has one JSON object per line. Both
have the same entries; a recorded entry also has its request.
"""

import contextlib
import json
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct, to_builtins

from cdd_agent.errors import BadInput
from cdd_agent.files.atomic import append_line
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
from cdd_agent.pattern import Pattern
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.values.guarded_yaml import decode, read_mapping
from cdd_agent.values.typed_values import RuleBroken, WrongValue, read

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
_EVENTS: dict[str, type[ModelEvent | Done]] = {
    "text": TextDelta,
    "thinking": ThoughtDelta,
    "was_thought": WasThought,
    "tool_call": ToolCall,
    "done": Done,
}
"""Everything that one call of an adapter emits, by the names in the file."""
_EVENT_NAMES = {kind: name for name, kind in _EVENTS.items()}
_IS_LINES = Pattern(rb'\s*\{"(?!replies"|pace")')
_MAX_FAULTS = 20
_HINT = "All keys are in docs/reference/models.md. To record again, add --record."


class Script(Struct, frozen=True):
    replies: tuple[ScriptedReply, ...]
    pace: float = 0.0
    """Characters per second of written replies; 0: at once."""


def read_script(path: Path) -> Script:
    """Raises `BadInput`, with all faults and their lines."""
    try:
        data = path.read_bytes()
    except OSError as error:
        hint = "Check the path of the script, or record one with --record."
        reason = f"cannot be read: {error.strerror or error}"
        if isinstance(error, FileNotFoundError):
            reason = "does not exist"
        raise BadInput(
            f"{path} {reason}.", hint=hint, refusal=Refusal.NOT_YAML
        ) from error
    faults: list[str] = []
    if _IS_LINES.match(data):
        pace, entries = 0.0, _read_lines(data)
    else:
        pace, entries = _read_yaml(data, str(path), faults)
    replies = []
    for line, entry in entries:
        try:
            replies.append(read(_Entry, entry).reply_at(line))
        except ValueError as error:
            faults.append(f"{path}:{line}: {error}.")
    if faults:
        shown = faults[:_MAX_FAULTS]
        if len(faults) > _MAX_FAULTS:
            shown.append(f"… and {len(faults) - _MAX_FAULTS} more.")
        raise BadInput("\n".join(shown), hint=_HINT, refusal=Refusal.NOT_YAML)
    return Script(tuple(replies), pace)


def append_call(path: Path, model: str, reply: ScriptedReply) -> None:
    """Append a recorded call to a file. Raises `BadInput` if the disk refuses."""
    events = []
    for timed in reply.events:
        name = _EVENT_NAMES[type(timed.event)]
        events.append([timed.seconds, name, to_builtins(timed.event)])
    if reply.done is not None:
        events.append([reply.seconds, "done", to_builtins(reply.done)])
    call = {
        "model": model,
        "request": to_builtins(reply.request),
        "events": events,
        "error": reply.error and to_builtins(_Failure.from_error(reply.error)),
    }
    line = json.dumps(call, ensure_ascii=False) + "\n"
    append_line(path, line.encode("utf-8", errors="replace"))


def _read_lines(data: bytes) -> list[tuple[int, Any]]:
    """Return the entries of a recording and their lines. Skips an unfinished line of a
    killed process.
    """
    entries = []
    for number, line in enumerate(data.decode(errors="replace").split("\n"), 1):
        with contextlib.suppress(ValueError, RecursionError):
            entries.append((number, json.loads(line)))
    return entries


def _read_yaml(
    data: bytes, source: str, faults: list[str]
) -> tuple[float, list[tuple[int, Any]]]:
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


class _Part(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    pass


class _ScriptKeys(_Part, frozen=True, kw_only=True):
    replies: list[Any]
    pace: Annotated[float, Meta(ge=0)] = 0.0


class _Call(_Part, frozen=True, kw_only=True):
    name: str
    arguments: Any = {}
    """A text is played unchanged, so that a script can have broken JSON."""


class _Failure(_Part, frozen=True, kw_only=True):
    kind: str
    message: str
    hint: str = ""
    retry_after: Annotated[float, Meta(ge=0, le=10**6)] | None = None

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

    def to_error(self) -> ModelError:
        if self.kind not in ERRORS:
            names = ", ".join(ERRORS)
            raise ValueError(f"`error` is {self.kind!r:.60}; there are {names}")
        error = ERRORS[self.kind](self.message, hint=self.hint)
        if isinstance(error, RateLimited):
            error.retry_after = self.retry_after
        return error


class _Entry(_Part, frozen=True, kw_only=True):
    """A written entry, or a recorded one with a request and events."""

    when: str | None = None
    slow: Annotated[float, Meta(ge=0, le=3_600)] = 0.0
    reply: str | None = None
    thinking: str = ""
    tool_calls: tuple[_Call, ...] = ()
    stop: StopReason = StopReason.STOP
    cut: Annotated[int, Meta(ge=0)] | None = None
    empty: bool = False
    error: str | _Failure | None = None
    retry_after: Annotated[float, Meta(ge=0, le=10**6)] | None = None
    model: str = ""
    request: Request | None = None
    events: tuple[tuple[float, str, dict[str, Any]], ...] = ()

    def __post_init__(self) -> None:
        has_reply = self.reply is not None or bool(self.tool_calls)
        is_recorded = self.request is not None
        if self.empty and has_reply:
            raise RuleBroken("empty", "an empty reply has no text and no calls")
        if is_recorded and (has_reply or self.when is not None):
            raise RuleBroken("request", "a recorded call has `events` and no `reply`")
        if not any((has_reply, self.empty, self.error, is_recorded)):
            raise RuleBroken(
                "reply", "an entry has `reply`, `tool_calls`, `error` or `empty`"
            )
        if self.retry_after is not None and self.error != "rate_limited":
            raise RuleBroken("retry_after", "it belongs to `rate_limited` alone")

    def reply_at(self, line: int) -> ScriptedReply:
        """Raises `ValueError`."""
        error = self._make_error()
        if self.request is None:
            return ScriptedReply(
                self.reply or "",
                when=self.when,
                error=error,
                stop=self.stop,
                tool_calls=self._make_calls(line),
                cut=self.cut,
                slow=self.slow,
                thinking=self.thinking,
            )
        events: list[TimedEvent] = []
        done, seconds = None, 0.0
        for seconds, name, fields in self.events:
            event = _read_event(name, fields)
            if isinstance(event, Done):
                done = event
            else:
                events.append(TimedEvent(seconds, event))
        if done is None and error is None:
            raise ValueError("a call must end with `done` or an error")
        return ScriptedReply(
            request=self.request,
            events=tuple(events),
            seconds=seconds,
            done=done,
            error=error,
        )

    def _make_calls(self, line: int) -> tuple[ToolCall, ...]:
        calls = []
        for number, call in enumerate(self.tool_calls, 1):
            arguments = call.arguments
            if not isinstance(arguments, str):
                arguments = json.dumps(arguments, ensure_ascii=False, default=str)
            calls.append(ToolCall(f"call_{line}_{number}", call.name, arguments))
        return tuple(calls)

    def _make_error(self) -> ModelError | None:
        failure = self.error
        if isinstance(failure, str):
            message = f"Scripted error: {failure}."
            failure = _Failure(
                kind=failure, message=message, retry_after=self.retry_after
            )
        return None if failure is None else failure.to_error()


def _read_event(name: str, fields: dict[str, Any]) -> ModelEvent | Done:
    if name not in _EVENTS:
        raise ValueError(f"`{name:.60}` is no event; there are {', '.join(_EVENTS)}")
    usage = fields.get("usage")
    if isinstance(usage, dict) and "reasoning_tokens" in usage:
        # the name in older records
        usage = {**usage, "thinking_tokens": usage["reasoning_tokens"]}
        fields = {**fields, "usage": usage}
    return read(_EVENTS[name], fields)
