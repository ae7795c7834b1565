"""The inspector's access to a run and to the shell."""

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
    STEP = "step"
    CRITERIA = "criteria"
    TIMELINE = "timeline"
    STRENGTH = "strength"


class RunCommand(Struct, frozen=True):
    line: str
    note: str = ""


class InspectorResult(Struct, frozen=True):
    line: str
    is_sent: bool = False
    """True if the user confirmed the line. Otherwise it goes into the prompt."""


class ReadableRun(Protocol):
    """The files of a run. Its methods read the disk: call them in a thread."""

    @property
    def root(self) -> Path:
        """The run's working tree."""

    @property
    def log_size(self) -> int:
        """The size of the log in bytes."""

    def read(self) -> RunInspection:
        """Read everything except the log. Problems are in the result."""

    def read_timeline(self, size: int | None = None) -> Timeline:
        """Read the first `size` bytes of the log. Raises `BadInput`."""

    def read_step(self, number: int) -> StepDetails:
        """Read one step with its attempts. Raises `BadInput`."""


class RunSource(Struct, frozen=True):
    slug: str
    reader: ReadableRun
    preview_undo: Callable[[int], Awaitable[UndoPreview]]
    """Returns the effect of undoing a step. Raises `CddError`."""
    command: Callable[[str, str], RunCommand]
    """Returns the line for a word, such as `undo`, and a step's label."""
    is_followed: Callable[[], bool]
    """True if the shell's events are from this run."""
    is_busy: Callable[[], bool]
    now: Callable[[], float]
