"""A script as a file: YAML, as people write one, or the lines of JSON that
`cassette.py` records.
"""

import contextlib
import json
import re
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, convert

from cdd_agent.errors import BadInput
from cdd_agent.guarded_yaml import decode, read_mapping
from cdd_agent.llm.port import (
    Done,
    ModelError,
    ModelEvent,
    RateLimited,
    Request,
    StopReason,
    TextDelta,
    ThoughtDelta,
    ToolCall,
    WasThought,
)
from cdd_agent.llm.recorded_call import RecordedCall
from cdd_agent.llm.scripted_reply import ERRORS, ScriptedReply
from cdd_agent.typed_values import WrongValue, read

EVENTS: dict[str, type[ModelEvent | Done]] = {
    "text": TextDelta,
    "thinking": ThoughtDelta,
    "was_thought": WasThought,
    "tool_call": ToolCall,
    "done": Done,
}
"""All that an adapter says, which makes exactly one call, by the names in the file."""
_IS_LINES = re.compile(rb'\s*\{"(?!replies"|pace")')
_LONGEST_SHOWN = 60
_MOST_TOLD = 20


def read_script(path: Path) -> tuple[float, list[ScriptedReply | RecordedCall]]:
    """The pace and the entries. Raises `BadInput`, with all that is wrong and its
    lines.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        why = (
            "is not there"
            if isinstance(error, FileNotFoundError)
            else f"cannot be read: {error.strerror or error}"
        )
        raise BadInput(
            f"{path} {why}.",
            hint="Check the path of the script, or record one with --record.",
        ) from error
    source, pace, found, wrong = str(path), 0.0, list[tuple[int, Any]](), list[str]()
    if _IS_LINES.match(data):
        for number, text in enumerate(data.decode(errors="replace").split("\n"), 1):
            # torn: its process was killed
            with contextlib.suppress(ValueError, RecursionError):
                found.append((number, json.loads(text)))
    else:
        content = read_mapping(decode(data, source), source, "a script")
        values = {str(key): entry.value(source) for key, entry in content.items()}
        try:
            pace = read(_Script, values).pace
        except WrongValue as error:
            lines = {str(key): entry.line for key, entry in content.items()}
            line = lines.get(str(error.place[0]), 1) if error.place else 1
            wrong.append(f"{source}:{line}: {error}.")
        if isinstance(replies := values.get("replies"), list):
            lines_of = [
                node.start_mark.line + 1 for node in content["replies"].node.value
            ]
            found = list(zip(lines_of, replies, strict=True))
    entries = list[ScriptedReply | RecordedCall]()
    for line, entry in found:
        try:
            entries.append(read(_form(entry), entry).entry(line))
        except ValueError as error:
            wrong.append(f"{source}:{line}: {error}.")
    if wrong:
        more = (
            [f"… and {len(wrong) - _MOST_TOLD} more."]
            if len(wrong) > _MOST_TOLD
            else []
        )
        hint = (
            "docs/scripted-model.md has all keys; a record is made again with --record."
        )
        raise BadInput("\n".join((*wrong[:_MOST_TOLD], *more)), hint=hint)
    return pace, entries


def _event(came: Any) -> tuple[float, ModelEvent | Done]:
    match came:
        case [float(at) | int(at), str(kind), dict(fields)] if kind in EVENTS:
            # as older records call them
            if (usage := fields.get("usage")) and "reasoning_tokens" in usage:
                fields = {
                    **fields,
                    "usage": {**usage, "thinking_tokens": usage["reasoning_tokens"]},
                }
            return float(at), convert(fields, EVENTS[kind])
    raise ValueError(
        f"an event is [seconds, kind, fields]; the kinds are {', '.join(EVENTS)}"
    )


def _error(
    name: str, message: str, hint: str = "", retry_after: float | None = None
) -> ModelError:
    if name not in ERRORS:
        raise ValueError(
            f"`error` is {name!r:.{_LONGEST_SHOWN}}; there are {', '.join(ERRORS)}"
        )
    error = ERRORS[name](message, hint=hint)
    if isinstance(error, RateLimited):
        error.retry_after = retry_after
    return error


_Seconds = Annotated[float, Meta(ge=0, le=10**6)]


class _Part(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    pass


class _Script(_Part, frozen=True, kw_only=True):
    replies: list[Any]
    pace: Annotated[float, Meta(ge=0)] = 0.0


class _WrittenEntry(_Part, frozen=True, kw_only=True):
    when: str | None = None
    slow: Annotated[float, Meta(ge=0, le=3_600)] = 0.0

    def entry(self, line: int) -> ScriptedReply | RecordedCall:
        return ScriptedReply(when=self.when, slow=self.slow)


class _EmptyReply(_WrittenEntry, frozen=True, kw_only=True):
    empty: bool


class _WrittenCall(_Part, frozen=True, kw_only=True):
    name: str
    arguments: Any = {}


class _WrittenReply(_WrittenEntry, frozen=True, kw_only=True):
    reply: str
    thinking: str = ""
    tool_calls: tuple[_WrittenCall, ...] = ()
    stop: StopReason = StopReason.STOP
    cut: Annotated[int, Meta(ge=0)] | None = None

    def entry(self, line: int) -> ScriptedReply:
        calls = []
        for number, call in enumerate(self.tool_calls, 1):
            # a text stays as it is, so that broken JSON can be played, too
            written = call.arguments
            written = (
                written
                if isinstance(written, str)
                else json.dumps(written, ensure_ascii=False, default=str)
            )
            calls.append(ToolCall(f"call_{line}_{number}", call.name, written))
        return ScriptedReply(
            self.reply,
            when=self.when,
            stop=self.stop,
            tool_calls=tuple(calls),
            cut=self.cut,
            slow=self.slow,
            thinking=self.thinking,
        )


class _WrittenCalls(_WrittenReply, frozen=True, kw_only=True):
    reply: str = ""


class _WrittenError(_WrittenEntry, frozen=True, kw_only=True):
    error: str

    def entry(self, line: int) -> ScriptedReply:
        error = _error(self.error, f"Scripted error: {self.error}.")
        return ScriptedReply(when=self.when, error=error, slow=self.slow)


class _WrittenLimit(_WrittenEntry, frozen=True, kw_only=True):
    error: Literal["rate_limited"]
    retry_after: _Seconds | None = None

    def entry(self, line: int) -> ScriptedReply:
        error = _error(
            self.error, "Scripted error: rate_limited.", retry_after=self.retry_after
        )
        return ScriptedReply(when=self.when, error=error, slow=self.slow)


class _RecordedError(_Part, frozen=True, kw_only=True):
    kind: str
    message: str
    hint: str
    retry_after: _Seconds | None = None


class _RecordedEntry(_Part, frozen=True, kw_only=True):
    model: str
    request: Any
    events: list[Any]
    error: _RecordedError | None

    def entry(self, line: int) -> RecordedCall:
        came, failed = [_event(event) for event in self.events], self.error
        seconds, last = came[-1] if came else (0.0, None)
        end = (
            last
            if failed is None
            else _error(failed.kind, failed.message, failed.hint, failed.retry_after)
        )
        if not isinstance(end, Done | ModelError):
            raise ValueError("a call ends with `done` or an error")
        events = tuple((at, event) for at, event in came if not isinstance(event, Done))
        return RecordedCall(convert(self.request, Request), events, seconds, end)


def _form(entry: Any) -> type[_WrittenEntry | _RecordedEntry]:
    match entry:
        case {"request": _}:
            return _RecordedEntry
        case {"error": "rate_limited"}:
            return _WrittenLimit
        case {"error": _}:
            return _WrittenError
        case {"empty": True}:
            return _EmptyReply
        case {"tool_calls": _}:
            return _WrittenCalls
        case _:
            return _WrittenReply
