"""A run's timeline, from events: attempts and what happened between.

The log is read once; later events are added.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import Struct, field

from cdd_agent.cost import NO_COST, Cost
from cdd_agent.engine.effort import NO_EFFORT, EffortTally, RunEffort
from cdd_agent.engine.log import LogEntry, RunLog, StepFolders
from cdd_agent.events.dialogue_events import (
    ModelReplaced,
    ReplyFinished,
    ReplyLost,
    ReplyStarted,
    ToolFinished,
)
from cdd_agent.events.question_events import (
    ApprovalChanged,
    ChangesReviewed,
    PersonAnswered,
)
from cdd_agent.events.run_events import BaselineTaken, QuestionAsked, RunFinished
from cdd_agent.events.step_events import (
    AttemptFailed,
    ChangesApplied,
    ChangesPutBack,
    GuidanceTaken,
    StepCommitted,
    StepsRedone,
    StepStarted,
    StepsUndone,
    TestsFinished,
)
from cdd_agent.events.step_summary import StepFinished
from cdd_agent.events.stream import Event
from cdd_agent.events.ticket_events import PlanOpened

_OF_ATTEMPTS = (
    ReplyLost,
    ModelReplaced,
    ToolFinished,
    ChangesApplied,
    ChangesPutBack,
    ChangesReviewed,
    TestsFinished,
    GuidanceTaken,
    StepCommitted,
    PersonAnswered,
)
"""Events of the last attempt."""
_OF_THE_RUN = (
    BaselineTaken,
    QuestionAsked,
    StepsUndone,
    StepsRedone,
    ApprovalChanged,
    RunFinished,
)
"""Events between attempts."""


class TimelineEvent(Struct, frozen=True):
    time: datetime
    event: Event
    seconds: float | None = None
    cost: Cost = NO_COST
    model: str = ""


class TimelinePart(Struct, eq=False):
    """An attempt, or the events between attempts."""

    started_at: datetime
    folder: int = 0
    """Number of the step's folder; 0 between attempts."""
    label: str = ""
    title: str = ""
    attempt: int = 0
    events: list[TimelineEvent] = field(default_factory=list)
    outcome: StepFinished | AttemptFailed | None = None
    """None while the attempt runs, or if its process was killed."""

    @property
    def is_attempt(self) -> bool:
        return bool(self.attempt)


class Timeline:
    """The current run's parts, by time."""

    def __init__(self) -> None:
        self.parts: list[TimelinePart] = []
        self.damaged_lines = 0
        """Damaged lines, and unknown events."""
        self._folders = StepFolders()
        self._tally = EffortTally()
        """By position of the part, from 1."""
        self._attempts: dict[int, int] = {}
        """Folder → position of its last attempt."""
        self._current = 0
        """Position of the attempt started last."""
        self._calls: dict[int, tuple[datetime, str]] = {}
        """Folder → time and model of the open call."""

    @classmethod
    def read(cls, log: RunLog, size: int | None = None) -> Timeline:
        """Read the log, or its first `size` bytes. Raises `BadInput` if the file is
        unreadable.
        """
        timeline = cls()
        for entry in log.decoded_lines(size):
            if entry is None:
                timeline.damaged_lines += 1
            else:
                timeline.add(entry)
        return timeline

    def add(self, entry: LogEntry) -> bool:
        """Add an event. True if the timeline shows it."""
        folder = self._folders.folder_of(entry.event)
        is_shown = self._place(entry, folder)
        position = self._attempts.get(folder, 0)
        if folder and not position:
            # the baseline before the first attempt
            position = len(self.parts)
        self._tally.add(entry, position)
        return is_shown

    def asked_model(self, folder: int) -> str:
        """Return the model being asked for a step; empty if none."""
        _, model = self._calls.get(folder, (None, ""))
        return model

    def efforts(self) -> dict[int, RunEffort]:
        """Return position (from 1) → effort."""
        return dict(self._tally.efforts())

    @property
    def effort(self) -> RunEffort:
        return sum(self._tally.efforts().values(), NO_EFFORT)

    def _place(self, entry: LogEntry, folder: int) -> bool:
        event = entry.event
        match event:
            case PlanOpened(resumed=False):
                self.parts.clear()
                self._attempts.clear()
                self._calls.clear()
            case StepStarted():
                self._start_attempt(event, entry.time, folder)
            case ReplyStarted(model=model):
                self._calls[folder] = entry.time, model
                return False
            case ReplyFinished():
                self._add_reply(event, entry.time, folder)
            case AttemptFailed() | StepFinished():
                self._end_attempt(event, entry.time, folder)
            case _ if isinstance(event, _OF_ATTEMPTS) and self._is_in_run(event):
                seconds = getattr(event, "seconds", None)
                moment = TimelineEvent(entry.time, event, seconds)
                self._part_of(folder, entry.time).events.append(moment)
            case _ if isinstance(event, _OF_THE_RUN):
                seconds = getattr(event, "seconds", None)
                moment = TimelineEvent(entry.time, event, seconds)
                self._part_between(entry.time).events.append(moment)
            case _:
                return False
        return True

    def _is_in_run(self, event: Any) -> bool:
        return getattr(event, "step", 0) is not None

    def _start_attempt(self, event: StepStarted, time: datetime, folder: int) -> None:
        position = self._attempts.get(folder, 0)
        part = self.parts[position - 1] if position else None
        is_continued = part is not None and part.attempt == event.attempt
        if part is not None and is_continued:
            part.outcome = None
        else:
            self.parts.append(
                TimelinePart(time, folder, event.label, event.title, event.attempt)
            )
            position = len(self.parts)
        self._attempts[folder] = self._current = position
        self._calls.pop(folder, None)

    def _end_attempt(
        self, event: AttemptFailed | StepFinished, time: datetime, folder: int
    ) -> None:
        part = self._part_of(folder, time)
        # a step's failure repeats its last attempt's
        if part.is_attempt and part.outcome is None:
            part.outcome = event
        elif isinstance(event, StepFinished) and part.is_attempt:
            part.outcome = event
            return
        part.events.append(TimelineEvent(time, event))

    def _add_reply(self, event: ReplyFinished, time: datetime, folder: int) -> None:
        if event.step is None:
            return
        start, model = self._calls.pop(folder, (time, ""))
        cost = event.usage.cost if event.usage else NO_COST
        seconds = max((time - start).total_seconds(), 0.0)
        moment = TimelineEvent(time, event, seconds, cost, model)
        self._part_of(folder, time).events.append(moment)

    def _part_of(self, folder: int, time: datetime) -> TimelinePart:
        position = self._attempts.get(folder, 0)
        if not position and not folder:
            position = self._current
        if position:
            return self.parts[position - 1]
        return self._part_between(time)

    def _part_between(self, time: datetime) -> TimelinePart:
        if not self.parts or self.parts[-1].is_attempt:
            self.parts.append(TimelinePart(time))
        return self.parts[-1]
