"""The log of a ticket's runs: `events.jsonl`, one event a line with its time, only ever
added to.

What streams (a reply, a command's output) and what can be long (a diff) is not in it:
attempts' own files hold that.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, get_args

from msgspec import Meta, Struct, convert
from msgspec.structs import replace

from cdd_agent.events import (
    ActionOutput,
    ChangesApplied,
    CommandOutput,
    Event,
    PlanOpened,
    ReplyDelayed,
    ReplyDelta,
    StepDiff,
    TestsFinished,
    ThinkingDelta,
    ToolFinished,
    event_name,
    to_json,
)
from cdd_agent.files.atomic import append_line, read_lines, read_tail

_NOT_LOGGED = (
    ReplyDelta,
    ThinkingDelta,
    ReplyDelayed,
    CommandOutput,
    ActionOutput,
    StepDiff,
)
_ANEW = b'"resumed": false'
"""In the event with which the log of another run begins."""
_LONGEST = 4 * 1024 * 1024
"""Bytes of a line that is read; of a longer one there are only pieces, which are no
entries.
"""
_KINDS: dict[str, type[Event]] = {event_name(kind): kind for kind in get_args(Event)}


class LogEntry(Struct, frozen=True):
    """One event, and when it was."""

    time: datetime
    event: Event


class RunLog(Struct, frozen=True):
    """The log in one file, which need not be there yet. One process at a time adds to
    it (the ticket's lock).
    """

    path: Path
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    def add(self, event: Event) -> None:
        """Write one line at once; a line that a killed process left unfinished is ended
        first, and so harms no other.

        Raises `BadInput` when the disk refuses.
        """
        if isinstance(event, _NOT_LOGGED):
            return
        line = (
            json.dumps(
                {"time": self.clock().isoformat(), **to_json(_in_short(event))},
                ensure_ascii=False,
            )
            + "\n"
        )
        append_line(self.path, line.encode("utf-8", errors="replace"))

    def entries(self) -> Iterator[LogEntry]:
        """The events, read line by line. Torn lines, and events that this version does
        not know, are left out.

        Raises `BadInput` when the file cannot be read.
        """
        for line in read_lines(self.path, _LONGEST):
            if entry := _entry(line):
                yield entry

    def latest(self, most: int) -> list[LogEntry]:
        """The entries of the run that goes on which stand in the last so many bytes;
        without the plans that were opened, which can be long. Raises `BadInput` when
        the file cannot be read.
        """
        plan, found = f'"event": "{event_name(PlanOpened)}"'.encode(), list[LogEntry]()
        for line in read_tail(self.path, most):
            if plan in line[:200]:
                if _ANEW in line[-1000:]:
                    found.clear()
            elif entry := _entry(line):
                found.append(entry)
        return found


def _entry(line: bytes) -> LogEntry | None:
    try:
        fields = json.loads(line)
        time: datetime = convert(fields.pop("time"), Annotated[datetime, Meta(tz=True)])
        event: Event = convert(fields, _KINDS[fields.pop("event")])
        return LogEntry(time, event)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _in_short(event: Event) -> Event:
    """The event without what can be long."""
    match event:
        case ToolFinished():
            return replace(
                event,
                output="",
                files=tuple(replace(file, diff="") for file in event.files),
            )
        case ChangesApplied():
            return replace(
                event, files=tuple(replace(file, diff="") for file in event.files)
            )
        case TestsFinished():
            return replace(
                event,
                failures=tuple(replace(failure, text="") for failure in event.failures),
            )
        case _:
            return event


def with_folders(entries: Iterable[LogEntry]) -> Iterator[tuple[LogEntry, int]]:
    """Each entry with the number of the folder of the step that it is about, 0 where it
    is about none: the log has the numbers that steps had at the time, and where a plan
    is opened, which is which.
    """
    folders: dict[int, int] = {}
    for entry in entries:
        if isinstance(entry.event, PlanOpened):
            folders = {
                step.number: step.folder for step in entry.event.steps if step.folder
            }
        number = getattr(entry.event, "step", None) or 0
        yield entry, folders.get(number, number)
