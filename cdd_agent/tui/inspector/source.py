"""The run that the inspector shows, and the shell's part in acting on it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from cdd_agent.engine.run_inspection import RunInspection
from cdd_agent.engine.step_details import StepDetails
from cdd_agent.engine.timeline import Timeline
from cdd_agent.events.step_events import UndoPreview


class InspectorTab(StrEnum):
    """The tabs, in their order."""

    STEP = "step"
    CRITERIA = "criteria"
    TIMELINE = "timeline"
    STRENGTH = "strength"


class RunCommand(Struct, frozen=True):
    """A line that the shell can send for the user."""

    line: str
    note: str = ""
    """A remark for the user; may be empty."""


class InspectorResult(Struct, frozen=True):
    """The line with which the inspector is closed."""

    line: str
    is_sent: bool = False
    """True if the user confirmed the line; otherwise it goes into the prompt."""


class ReadableRun(Protocol):
    """The files of a run. Its methods read the disk: call them in a thread."""

    @property
    def root(self) -> Path:
        """The tree of the run."""

    @property
    def log_size(self) -> int:
        """The bytes of the log so far."""

    def read(self) -> RunInspection:
        """Read all but the log. Never fails: problems are in the result."""

    def read_timeline(self, size: int | None = None) -> Timeline:
        """Read the first `size` bytes of the log. Raises `BadInput`."""

    def read_step(self, number: int) -> StepDetails:
        """Read one step with its attempts. Raises `BadInput`."""


class RunSource(Struct, frozen=True):
    """The run of one ticket."""

    slug: str
    reader: ReadableRun
    preview_undo: Callable[[int], Awaitable[UndoPreview]]
    """Returns the effect of undoing a step. Raises `CddError`."""
    command: Callable[[str, str], RunCommand]
    """Returns the line for a word (`undo`) and the label of a step."""
    is_followed: Callable[[], bool]
    """True if the events of the shell are of this run."""
    is_busy: Callable[[], bool]
    now: Callable[[], float]
    """The time of keys."""
