"""The log of a ticket's runs: `events.jsonl`, one event a line with its time, only ever added to.

What streams (a reply, a command's output) and what can be long (a diff) is not in it: attempts' own files hold that.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import get_args

from pydantic import AwareDatetime, TypeAdapter

from cdd_agent.events import (
    ActionOutput,
    CommandOutput,
    Event,
    PlanOpened,
    ReplyDelayed,
    ReplyDelta,
    StepDiff,
    ThinkingDelta,
    event_name,
    to_json,
)
from cdd_agent.files.atomic import append_line, read_lines

_NOT_LOGGED = (ReplyDelta, ThinkingDelta, ReplyDelayed, CommandOutput, ActionOutput, StepDiff)
_LONGEST = 4 * 1024 * 1024
"""Bytes of a line that is read; of a longer one there are only pieces, which are no entries."""
_KINDS: dict[str, type[Event]] = {event_name(kind): kind for kind in get_args(Event)}
_TIME: TypeAdapter[datetime] = TypeAdapter(AwareDatetime)


@dataclass(frozen=True)
class LogEntry:
    """One event, and when it was."""

    time: datetime
    event: Event


@dataclass(frozen=True)
class RunLog:
    """The log in one file, which need not be there yet. One process at a time adds to it (the ticket's lock)."""

    path: Path
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    def add(self, event: Event) -> None:
        """Write one line at once; a line that a killed process left unfinished is ended first, and so harms no other.

        Raises `BadInput` when the disk refuses.
        """
        if isinstance(event, _NOT_LOGGED):
            return
        line = json.dumps({"time": self.clock().isoformat(), **to_json(event)}, ensure_ascii=False) + "\n"
        append_line(self.path, line.encode("utf-8", errors="replace"))

    def entries(self) -> Iterator[LogEntry]:
        """The events, read line by line. Torn lines, and events that this version does not know, are left out.

        Raises `BadInput` when the file cannot be read.
        """
        for line in read_lines(self.path, _LONGEST):
            try:
                fields = json.loads(line)
                time, name = _TIME.validate_python(fields.pop("time")), fields.pop("event")
                entry = LogEntry(time, _adapter(name).validate_python(fields))
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                continue
            yield entry


def with_folders(entries: Iterable[LogEntry]) -> Iterator[tuple[LogEntry, int]]:
    """Each entry with the number of the folder of the step that it is about, 0 where it is about none: the log has the
    numbers that steps had at the time, and where a plan is opened, which is which."""
    folders: dict[int, int] = {}
    for entry in entries:
        if isinstance(entry.event, PlanOpened):
            folders = {step.number: step.folder for step in entry.event.steps if step.folder}
        number = getattr(entry.event, "step", None) or 0
        yield entry, folders.get(number, number)


@cache
def _adapter(name: str) -> TypeAdapter[Event]:
    return TypeAdapter(_KINDS[name])
