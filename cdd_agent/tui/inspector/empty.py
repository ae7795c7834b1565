from __future__ import annotations

from msgspec import Struct

from cdd_agent.engine.run_inspection import InspectionProblem, RunInspection
from cdd_agent.engine.timeline import Timeline
from cdd_agent.tui.inspector.source import InspectorTab
from cdd_agent.tui.inspector.words import count_of, moment


class EmptyState(Struct, frozen=True):
    text: str
    command: str = ""
    """Empty if no command helps."""
    is_problem: bool = False

    @property
    def in_words(self) -> str:
        if not self.command:
            return self.text
        return f"{self.text} Next: `{self.command}` (Enter)."


READING = EmptyState("Reading the run …")


def find_empty_state(
    tab: InspectorTab,
    inspection: RunInspection,
    timeline: Timeline,
    timeline_problem: InspectionProblem | None,
) -> EmptyState | None:
    match tab:
        case InspectorTab.STEP:
            return _empty_step(inspection)
        case InspectorTab.CRITERIA:
            return _empty_criteria(inspection)
        case InspectorTab.TIMELINE:
            return _empty_timeline(inspection, timeline, timeline_problem)
        case InspectorTab.STRENGTH:
            return _empty_strength(inspection)


def _problem(problem: InspectionProblem) -> EmptyState:
    text = problem.message.rstrip(".")
    return EmptyState(f"{text}. {problem.hint}".strip(), is_problem=True)


def _empty_step(inspection: RunInspection) -> EmptyState | None:
    slug = inspection.ticket_slug
    if inspection.plan_problem is not None:
        return _problem(inspection.plan_problem)
    if not inspection.has_plan:
        return EmptyState("This ticket has no plan yet.", f"/plan {slug}")
    if not inspection.steps:
        return EmptyState("The plan has no steps yet.", f"/plan {slug}")
    return None


def _empty_criteria(inspection: RunInspection) -> EmptyState | None:
    problem = inspection.criteria_problem or inspection.plan_problem
    if problem is not None:
        return _problem(problem)
    if inspection.criteria:
        return None
    return EmptyState(
        "The spec has no acceptance criteria yet.",
        f"/socrates {inspection.ticket_slug}",
    )


def _empty_timeline(
    inspection: RunInspection,
    timeline: Timeline,
    timeline_problem: InspectionProblem | None,
) -> EmptyState | None:
    if timeline_problem is not None:
        return _problem(timeline_problem)
    if timeline.parts or inspection.undone:
        return None
    if timeline.damaged_lines:
        lines = count_of(timeline.damaged_lines, "line")
        text = f"The log of the run cannot be read: {lines} damaged."
        return EmptyState(text, is_problem=True)
    empty = _empty_step(inspection)
    if empty is not None:
        return empty
    slug = inspection.ticket_slug
    if inspection.has_begun:
        return EmptyState("The run has no log, so its timeline is not known.")
    return EmptyState("No step has run yet.", f"/exec {slug}")


def _empty_strength(inspection: RunInspection) -> EmptyState | None:
    problem = inspection.strength_problem or inspection.plan_problem
    if problem is not None:
        return _problem(problem)
    empty = _empty_step(inspection)
    if empty is not None:
        return empty
    strength, slug = inspection.strength, inspection.ticket_slug
    if strength.steps:
        return None
    if not strength.completed:
        text = "Not measured: no step is completed yet."
        return EmptyState(text, f"/exec {slug}")
    if strength.measured_at is not None:
        text = (
            f"Measured {moment(strength.measured_at)}, but files have changed since,"
            " so the results no longer count."
        )
        return EmptyState(text, f"/verify {slug} --strength")
    text = "The strength of the tests is not measured."
    return EmptyState(text, f"/verify {slug} --strength")
