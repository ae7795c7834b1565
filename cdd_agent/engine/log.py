"""The log of a ticket's runs, `events.jsonl`: appended events with times.

It excludes streams (replies, output) and long texts (diffs), which are in the attempts'
files.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, MsgspecError, Struct, convert
from msgspec.json import Decoder
from msgspec.structs import replace

from cdd_agent.events.action_events import ActionOutput
from cdd_agent.events.dialogue_events import (
    ReplyDelayed,
    ReplyDelta,
    ThinkingDelta,
    ToolFinished,
)
from cdd_agent.events.notices import Notice, NoticeKind
from cdd_agent.events.step_events import (
    ChangesApplied,
    CommandOutput,
    StepDiff,
    TestsFinished,
)
from cdd_agent.events.stream import Event, to_json
from cdd_agent.events.ticket_events import PlanOpened
from cdd_agent.files.atomic import append_line, read_lines, read_tail

_NOT_LOGGED = (
    ReplyDelta,
    ThinkingDelta,
    ReplyDelayed,
    CommandOutput,
    ActionOutput,
    StepDiff,
)
_PLAN_OPENED = b'"event": "plan_opened"'
_FORMER_EVENT = b'"event": "baseline_awaited"'
"""An uninformative event of earlier versions."""
_NAME_WITHIN = 200
"""Leading bytes of a line that contain the event's name."""
_LONGEST = 4 * 1024 * 1024
"""Longest line to read, in bytes."""
_OLDER_KINDS = {
    "next_step": NoticeKind.WHAT_NEXT,
    "run_left": NoticeKind.WHAT_NEXT,
    "going_on": NoticeKind.RESUMED,
    "interrupted": NoticeKind.RESUMED,
    "proposed_before": NoticeKind.RESUMED,
}
"""Version 0.1's names for kinds of notices that still matter."""


class LogEntry(Struct, frozen=True):
    time: datetime
    event: Event


class RunLog(Struct, frozen=True):
    """The log file may be absent. Only the holder of the ticket's lock writes it."""

    path: Path
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    def add(self, event: Event) -> None:
        """Write a line at once. An unfinished line of a killed process is ended first,
        so that it damages no other.

        Raises `BadInput` if the disk refuses.
        """
        if isinstance(event, _NOT_LOGGED):
            return
        fields = {"time": self.clock().isoformat(), **to_json(_shorten(event))}
        line = json.dumps(fields, ensure_ascii=False) + "\n"
        append_line(self.path, line.encode("utf-8", errors="replace"))

    @property
    def size(self) -> int:
        """Number of bytes so far."""
        try:
            return self.path.stat().st_size
        except OSError:
            return 0

    def decoded_lines(self, size: int | None = None) -> Iterator[LogEntry | None]:
        """Yield each line's entry; None if damaged or of an unknown event.

        `size`: read only the lines in these first bytes. Raises `BadInput` if the file
        is unreadable.
        """
        read = 0
        for line in read_lines(self.path, _LONGEST):
            read += len(line)
            if size is not None and read > size:
                return
            if _FORMER_EVENT not in line[:_NAME_WITHIN]:
                yield _decode(line)

    def entries(self) -> Iterator[LogEntry]:
        """Skip damaged lines. Raises `BadInput` if the file is unreadable."""
        for entry in self.decoded_lines():
            if entry is not None:
                yield entry

    def latest(self, most: int) -> list[LogEntry]:
        """Return the current run's entries in the last `most` bytes, except opened
        plans, which can be long. Raises `BadInput` if the file is unreadable.
        """
        entries: list[LogEntry] = []
        for line in read_tail(self.path, most):
            if _PLAN_OPENED in line[:_NAME_WITHIN]:
                if _starts_run(line):
                    entries.clear()
                continue
            entry = _decode(line)
            if entry is not None:
                entries.append(entry)
        return entries


class _Stamp(Struct):
    time: Annotated[datetime, Meta(tz=True)]


class _Opening(Struct):
    resumed: bool


@cache
def _decoders() -> tuple[Decoder[_Stamp], Decoder[Event]]:
    return Decoder(_Stamp), Decoder(Event)


def _decode(line: bytes) -> LogEntry | None:
    stamps, events = _decoders()
    try:
        entry = LogEntry(stamps.decode(line).time, events.decode(line))
    except (MsgspecError, UnicodeDecodeError, RecursionError):
        return _decode_notice(line)
    if isinstance(entry.event, Notice) and b'"about"' in line:
        return _decode_notice(line)
    return entry


def _decode_notice(line: bytes) -> LogEntry | None:
    """Read another version's notice, whose kind is unknown or under `about`."""
    if b'"event": "notice"' not in line[:_NAME_WITHIN]:
        return None
    try:
        fields = json.loads(line)
        time = convert(fields, _Stamp).time
        fields["kind"] = _known_kind(fields)
        return LogEntry(time, convert(fields, Notice))
    except (ValueError, TypeError, RecursionError):
        return None


def _known_kind(fields: dict[str, Any]) -> NoticeKind | None:
    kind = fields.get("kind") or fields.get("about")
    if not isinstance(kind, str):
        return None
    if kind in _OLDER_KINDS:
        return _OLDER_KINDS[kind]
    try:
        return NoticeKind(kind)
    except ValueError:
        return None


def _starts_run(line: bytes) -> bool:
    try:
        return not Decoder(_Opening).decode(line).resumed
    except (MsgspecError, UnicodeDecodeError, RecursionError):
        return False


def _shorten(event: Event) -> Event:
    match event:
        case ToolFinished(files=files):
            files = tuple(replace(file, diff="") for file in files)
            return replace(event, output="", files=files)
        case ChangesApplied(files=files):
            return replace(event, files=tuple(replace(file, diff="") for file in files))
        case TestsFinished(failures=failures):
            return replace(
                event, failures=tuple(replace(each, text="") for each in failures)
            )
        case _:
            return event


class StepFolders:
    """Maps steps to their folders' numbers. The log has the steps' numbers at the time;
    opened plans map these to folders.
    """

    def __init__(self) -> None:
        self._folders: dict[int, int] = {}

    def folder_of(self, event: Event) -> int:
        """Return the folder number of the event's step; 0 if it is about no step.
        Events must come in log order.
        """
        if isinstance(event, PlanOpened):
            self._folders = {
                step.number: step.folder for step in event.steps if step.folder
            }
        number = getattr(event, "step", None) or 0
        return self._folders.get(number, number)


def with_folders(entries: Iterable[LogEntry]) -> Iterator[tuple[LogEntry, int]]:
    """Yield each entry with the folder number of its step."""
    folders = StepFolders()
    for entry in entries:
        yield entry, folders.folder_of(entry.event)
