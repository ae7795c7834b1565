"""Runs for the inspector that are not on the disk."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cdd_agent.engine.log import LogEntry
from cdd_agent.engine.run_inspection import RunInspection
from cdd_agent.engine.step_details import StepDetails
from cdd_agent.engine.timeline import Timeline
from cdd_agent.events.step_events import UndoPreview
from cdd_agent.events.step_summary import StepSummary
from cdd_agent.events.stream import Event
from cdd_agent.tickets.plan import PlanStep
from cdd_agent.tui.inspector.screen import InspectorScreen
from cdd_agent.tui.inspector.source import InspectorTab, RunCommand, RunSource
from tests.support.projects import SLUG

START = datetime(2026, 11, 22, 10, 0, tzinfo=UTC)


def timeline_of(*events: Event, gap: float = 2.0) -> Timeline:
    """Return the timeline of events with this many seconds between them."""
    timeline = Timeline()
    for place, event in enumerate(events):
        timeline.add(LogEntry(START + timedelta(seconds=place * gap), event))
    return timeline


@dataclass
class FakeRun:
    """A run that is read from memory."""

    inspection: RunInspection
    details: Callable[[int], StepDetails] | None = None
    timeline: Timeline = field(default_factory=Timeline)
    steps_read: list[int] = field(default_factory=list)
    root: Path = Path("/nowhere")
    log_size: int = 0

    def read(self) -> RunInspection:
        return self.inspection

    def read_timeline(self, size: int | None = None) -> Timeline:
        return self.timeline

    def read_step(self, number: int) -> StepDetails:
        self.steps_read.append(number)
        if self.details is not None:
            return self.details(number)
        view = self.inspection.step(number)
        assert view is not None
        return StepDetails(SLUG, PlanStep(number, view.title, "Do it."), view, ())


async def no_preview(number: int) -> UndoPreview:
    return UndoPreview((number,), ("a.txt",), ("b.txt",), ())


def inspector(
    run: FakeRun,
    tab: InspectorTab = InspectorTab.STEP,
    number: int | None = None,
    *,
    is_followed: bool = False,
) -> InspectorScreen:
    source = RunSource(
        run.inspection.ticket_slug,
        run,
        no_preview,
        lambda word, label: RunCommand(f"{word} {label}"),
        lambda: is_followed,
        lambda: False,
        lambda: 1000.0,
    )
    return InspectorScreen(source, tab, number)


def inspection_of(steps: Sequence[StepSummary]) -> RunInspection:
    return RunInspection(SLUG, "Say words", has_plan=True, steps=tuple(steps))
