"""A script as a file: YAML, as people write one, or the lines of JSON that `cassette.py` records."""

import contextlib
import json
import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from cdd_agent.errors import BadInput
from cdd_agent.guarded_yaml import decoded, read_mapping
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
from cdd_agent.llm.scripted import ERRORS, ScriptedReply

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
Part = TypeVar("Part", bound=BaseModel)


def read_script(path: Path) -> tuple[float, list[ScriptedReply | RecordedCall]]:
    """The pace and the entries. Raises `BadInput`, with the line of what is wrong."""
    try:
        data = path.read_bytes()
    except OSError as error:
        why = "is not there" if isinstance(error, FileNotFoundError) else f"cannot be read: {error.strerror or error}"
        raise BadInput(f"{path} {why}.", hint="Check the path of the script, or record one with --record.") from error
    source, pace, found = str(path), 0.0, list[tuple[int, Any]]()
    if _IS_LINES.match(data):
        for number, line in enumerate(data.decode(errors="replace").split("\n"), 1):
            with contextlib.suppress(ValueError, RecursionError):  # torn: its process was killed
                found.append((number, json.loads(line)))
    else:
        content = read_mapping(decoded(data, source), source, "a script")
        values = {str(key): entry.value(source) for key, entry in content.items()}
        script = _valid(_Script, values, source, {str(key): entry.line for key, entry in content.items()})
        lines = [node.start_mark.line + 1 for node in content["replies"].node.value]
        pace, found = script.pace, list(zip(lines, script.replies, strict=True))
    return pace, [_valid(_form(entry), entry, source, {"": line}).entry(line) for line, entry in found]


def _event(came: Any) -> tuple[float, ModelEvent | Done]:
    match came:
        case [float(at) | int(at), str(kind), dict(fields)] if kind in EVENTS:
            if (usage := fields.get("usage")) and "reasoning_tokens" in usage:  # as older records call them
                fields = {**fields, "usage": {**usage, "thinking_tokens": usage["reasoning_tokens"]}}
            return float(at), TypeAdapter(EVENTS[kind]).validate_python(fields)
    raise ValueError(f"[seconds, kind, fields]; the kinds are {', '.join(EVENTS)}")


def _error(name: str) -> str:
    if name not in ERRORS:
        raise ValueError(f"allowed: {', '.join(ERRORS)}")
    return name


_Error = Annotated[str, AfterValidator(_error)]
_Seconds = Annotated[float | None, Field(strict=True, ge=0, le=10**6)]


class _ScriptPart(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Script(_ScriptPart):
    replies: list[Any]
    pace: Annotated[float, Field(strict=True, ge=0)] = 0.0


class _WrittenEntry(_ScriptPart):
    when: str | None = None
    slow: Annotated[float, Field(strict=True, ge=0, le=3_600)] = 0.0

    def entry(self, line: int) -> ScriptedReply | RecordedCall:
        return ScriptedReply(when=self.when, slow=self.slow)


class _EmptyReply(_WrittenEntry):
    empty: bool


class _WrittenCall(_ScriptPart):
    name: str
    arguments: Any = {}


class _WrittenReply(_WrittenEntry):
    reply: str
    thinking: str = ""
    tool_calls: tuple[_WrittenCall, ...] = ()
    stop: StopReason = StopReason.STOP
    cut: Annotated[int, Field(strict=True, ge=0)] | None = None

    def entry(self, line: int) -> ScriptedReply:
        calls = []
        for number, call in enumerate(self.tool_calls, 1):
            written = call.arguments  # a text stays as it is, so that broken JSON can be played, too
            written = written if isinstance(written, str) else json.dumps(written, ensure_ascii=False, default=str)
            calls.append(ToolCall(f"call_{line}_{number}", call.name, written))
        return ScriptedReply(self.reply, tool_calls=tuple(calls), **self.model_dump(exclude={"reply", "tool_calls"}))


class _WrittenCalls(_WrittenReply):
    reply: str = ""


class _WrittenError(_WrittenEntry):
    error: _Error

    def entry(self, line: int) -> ScriptedReply:
        error = ERRORS[self.error](f"Scripted error: {self.error}.")
        return ScriptedReply(when=self.when, error=error, slow=self.slow)


class _WrittenLimit(_WrittenEntry):
    error: Literal["rate_limited"]
    retry_after: _Seconds = None

    def entry(self, line: int) -> ScriptedReply:
        error = RateLimited("Scripted error: rate_limited.", retry_after=self.retry_after)
        return ScriptedReply(when=self.when, error=error, slow=self.slow)


class _RecordedError(_ScriptPart):
    kind: _Error
    message: str
    hint: str
    retry_after: _Seconds = None

    def error(self) -> ModelError:
        error = ERRORS[self.kind](self.message, hint=self.hint)
        if isinstance(error, RateLimited):
            error.retry_after = self.retry_after
        return error


class _RecordedEntry(_ScriptPart):
    model: str
    request: Request
    events: list[Annotated[Any, BeforeValidator(_event)]]
    error: _RecordedError | None

    def entry(self, line: int) -> RecordedCall:
        events = tuple((at, event) for at, event in self.events if not isinstance(event, Done))
        seconds, end = self.events[-1] if self.events else (0.0, Done())
        return RecordedCall(self.request, events, seconds, self.error.error() if self.error else end)

    @model_validator(mode="after")
    def _has_an_end(self) -> Self:
        if self.error is None and not (self.events and isinstance(self.events[-1][1], Done)):
            raise ValueError("a call ends with `done` or an error")
        return self


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


def _valid(form: type[Part], content: Any, source: str, lines: dict[str, int]) -> Part:
    """`lines`: of the keys, and as "" that of the whole."""
    try:
        return form.model_validate(content)
    except ValidationError as error:
        details = error.errors()  # a key that is not known says more than the one that it was meant to be
        detail = next((one for one in details if one["type"] == "extra_forbidden"), details[0])
    key, shown = ".".join(map(str, detail["loc"])), repr(detail["input"])
    place = f"{source}:{lines.get(str((detail['loc'] or ('',))[0]), lines.get('', 1))}"
    problem, hint = f"`{key}` is {shown[:_LONGEST_SHOWN]}", f"{detail['msg'].removeprefix('Value error, ')}."
    if not key:
        problem = "not an entry of a script"
    elif detail["type"] in {"extra_forbidden", "missing"}:
        problem = f"`{key}` is {'missing' if detail['type'] == 'missing' else 'not a key here'}"
        hint = f"Allowed: {', '.join(form.model_fields)}."
    raise BadInput(f"{place}: {problem}.", hint=hint)
