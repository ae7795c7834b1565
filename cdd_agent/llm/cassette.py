"""Cassettes: the calls of a run, one JSON object a line. Here they are written and read; `replay.py` plays them."""

import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from cdd_agent.errors import BadInput
from cdd_agent.llm.port import (
    Done,
    Hear,
    Message,
    Model,
    ModelError,
    ModelEvent,
    RateLimited,
    Request,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    WasThought,
)
from cdd_agent.llm.scripted import ERRORS
from cdd_agent.llm.wrapper import ModelWrapper
from cdd_agent.redaction import Redactor

_KINDS: dict[str, type[ModelEvent | Done]] = {
    "text": TextDelta,
    "thinking": ThinkingDelta,
    "was_thought": WasThought,
    "tool_call": ToolCall,
    "done": Done,
}
"""All that an adapter says, which makes exactly one call, by the names in the file."""
_NAMES = {kind: name for name, kind in _KINDS.items()}
_REQUEST = TypeAdapter(Request)


@dataclass(frozen=True)
class RecordedCall:
    """One call as it was recorded."""

    request: Request
    events: tuple[tuple[float, ModelEvent], ...]
    """Each with its seconds since the beginning of the call."""
    seconds: float
    """The same of its end."""
    end: Done | ModelError


class Recorded(ModelWrapper):
    """Adds each call that came to its end, or failed, to a cassette; one that nobody waited for says nothing.

    Secrets are redacted, also those that come in pieces. Raises `BadInput` when the disk refuses.
    """

    def __init__(self, model: Model, path: Path, redactor: Redactor) -> None:
        super().__init__(model)
        self._path, self._redactor = path, redactor

    async def reply(self, request: Request, hear: Hear) -> Done:
        began, events = time.monotonic(), list[tuple[float, ModelEvent | Done]]()

        def note(event: ModelEvent | Done) -> None:
            events.append((round(time.monotonic() - began, 3), event))

        def tell(event: ModelEvent) -> None:
            note(event)
            hear(event)

        try:
            done = await self.inner.reply(request, tell)
        except ModelError as error:
            self._keep(request, events, error)
            raise
        note(done)
        self._keep(request, events)
        return done

    def _keep(
        self, request: Request, events: list[tuple[float, ModelEvent | Done]], error: ModelError | None = None
    ) -> None:
        line = {
            "model": self.name,
            "request": _REQUEST.dump_python(redacted(request, self._redactor), mode="json"),
            "events": [[at, _NAMES[type(event)], asdict(event)] for at, event in self._presentable(events)],
            "error": self._error(error) if error else None,
        }
        data = json.dumps(line, ensure_ascii=False) + "\n"
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a+b") as file:
                _end_a_torn_line(file)
                file.write(data.encode("utf-8", errors="replace"))
        except OSError as failure:
            raise BadInput(
                f"The record {self._path} could not be written: {failure.strerror or failure}",
                hint="Check that its folder is writable and that the disk has space.",
            ) from failure

    def _presentable(self, events: list[tuple[float, ModelEvent | Done]]) -> Iterator[tuple[float, ModelEvent | Done]]:
        """The same without secrets, which can lie across two pieces."""
        stream, at = self._redactor.stream(), 0.0
        kind: type[TextDelta | ThinkingDelta] = TextDelta
        for at, event in events:
            if type(event) is not kind and (rest := stream.end()):
                yield at, kind(rest)
            if isinstance(event, TextDelta | ThinkingDelta):
                kind = type(event)
                if text := stream.feed(event.text):
                    yield at, kind(text)
            else:
                yield at, self._redactor.redacted(event)
        if rest := stream.end():
            yield at, kind(rest)

    def _error(self, error: ModelError) -> dict[str, Any]:
        kinds = (name for kind in type(error).__mro__ for name, known in ERRORS.items() if known is kind)
        kind = next(kinds, "bad_answer")
        redact = self._redactor.redact
        told = {"kind": kind, "message": redact(error.message), "hint": redact(error.hint)}
        return {**told, "retry_after": error.retry_after} if isinstance(error, RateLimited) else told


def read_calls(path: Path) -> list[RecordedCall]:
    """Raises `BadInput` for a file that is no cassette. A torn line, left by a killed process, is passed over."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError as error:
        why = "is not there" if isinstance(error, FileNotFoundError) else f"cannot be read: {error.strerror or error}"
        raise BadInput(f"The record {path} {why}.", hint="Check its path, or record one with --record.") from error
    calls = list(_calls(lines, path))
    if not calls:
        raise BadInput(f"{path} holds no recorded call", hint="Record one with --record.")
    return calls


def _calls(lines: list[str], path: Path) -> Iterator[RecordedCall]:
    for number, line in enumerate(lines, 1):
        try:
            content = json.loads(line)
        except (ValueError, RecursionError):
            continue
        try:
            yield _call(content)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            hint = "Each line is one, as --record writes it."
            raise BadInput(f"{path}:{number}: this is no recorded call", hint=hint) from error


def _call(line: dict[str, Any]) -> RecordedCall:
    request, told = _REQUEST.validate_python(line["request"]), line["error"]
    events, seconds, end = list[tuple[float, ModelEvent]](), 0.0, None
    for at, kind, fields in line["events"]:
        if (usage := fields.get("usage")) and "reasoning_tokens" in usage:  # as older records call them
            fields = {**fields, "usage": {**usage, "thinking_tokens": usage["reasoning_tokens"]}}  # noqa: PLW2901
        seconds, event = float(at), TypeAdapter(_KINDS[kind]).validate_python(fields)
        if isinstance(event, Done):
            end = event
        else:
            events.append((seconds, event))
    if told is not None:
        error = ERRORS[told["kind"]](told["message"], hint=told["hint"])
        if isinstance(error, RateLimited):
            error.retry_after = told["retry_after"]
        return RecordedCall(request, tuple(events), seconds, error)
    if end is None:
        raise ValueError("it has no end")
    return RecordedCall(request, tuple(events), seconds, end)


def redacted(request: Request, redactor: Redactor) -> Request:
    """As a record has it: without secrets, and of a picture its hash. A tool's definition is the program's own text,
    and holds no secrets."""
    return Request(tuple(redactor.redacted(_brief(message)) for message in request.messages), request.tools)


def _brief(message: Message) -> Message:
    pictures = (replace(picture, data=sha256(picture.data).digest()) for picture in message.pictures)
    return replace(message, pictures=tuple(pictures)) if message.pictures else message


def _end_a_torn_line(file: Any) -> None:
    file.seek(0, os.SEEK_END)
    if file.tell():
        file.seek(-1, os.SEEK_END)
        if file.read(1) != b"\n":
            file.write(b"\n")
