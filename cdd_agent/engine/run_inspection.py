"""A ticket's run for the inspector: steps, criteria, timeline and strength.

Each part is read separately, so that a damaged file hides only what needs it.
"""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.engine.criteria import trace_criteria, unplanned_criteria
from cdd_agent.engine.record import RunRecord
from cdd_agent.engine.saved_run import SavedRun
from cdd_agent.engine.step_details import StepDetails, step_details
from cdd_agent.engine.strength_summary import (
    StrengthReading,
    StrengthSettings,
    StrengthSummary,
    load_summary,
    read_strength,
)
from cdd_agent.engine.timeline import Timeline
from cdd_agent.errors import CddError
from cdd_agent.events.step_events import StepStarted
from cdd_agent.events.step_summary import StepFinished, StepSummary
from cdd_agent.events.stream import Event
from cdd_agent.events.ticket_events import CriterionProof
from cdd_agent.text.redaction import Redactor
from cdd_agent.tickets.spec import TicketSpec
from cdd_agent.tickets.status import StepStatus
from cdd_agent.tickets.store import Ticket


class InspectionProblem(Struct, frozen=True):
    """Why a part cannot be shown, and what to do."""

    message: str
    hint: str = ""

    @classmethod
    def from_error(cls, error: CddError) -> InspectionProblem:
        return cls(error.message, error.hint or "")


class RunInspection(Struct, frozen=True):
    """A run's files, without its log. Parts with problems are empty."""

    ticket_slug: str
    title: str = ""
    has_plan: bool = False
    steps: tuple[StepSummary, ...] = ()
    undone: tuple[StepSummary, ...] = ()
    """Steps of the last undo, which `redo` restores."""
    criteria: tuple[CriterionProof, ...] = ()
    strength: StrengthReading = StrengthReading()
    plan_problem: InspectionProblem | None = None
    """About the plan or state, which all but the timeline need."""
    criteria_problem: InspectionProblem | None = None
    strength_problem: InspectionProblem | None = None

    @property
    def has_begun(self) -> bool:
        return any(step.status is not StepStatus.PENDING for step in self.steps)

    @property
    def current_step(self) -> int | None:
        """Number of the running or failed step, else the next, else the last."""
        for statuses in (
            (StepStatus.IN_PROGRESS, StepStatus.FAILED),
            (StepStatus.PENDING,),
        ):
            for step in self.steps:
                if step.status in statuses:
                    return step.number
        return self.steps[-1].number if self.steps else None

    def step(self, number: int | None) -> StepSummary | None:
        for step in self.steps:
            if step.number == number:
                return step
        return None

    def number_of(self, folder: int) -> int | None:
        """Return the number of the step with this folder; None if the plan lacks it."""
        for step in self.steps:
            if step.folder == folder:
                return step.number
        return None

    def with_event(self, event: Event) -> RunInspection:
        if isinstance(event, StepFinished):
            return self._with_step(event.summary)
        if not isinstance(event, StepStarted):
            return self
        step = self.step(event.step)
        if step is None:
            return self
        started = replace(
            step,
            status=StepStatus.IN_PROGRESS,
            attempts=event.attempt,
            evidence=None,
            error=None,
            seconds=None,
        )
        return self._with_step(started)

    def _with_step(self, changed: StepSummary) -> RunInspection:
        return replace(
            self, steps=_swap(self.steps, changed), criteria=self._swap_all(changed)
        )

    def _swap_all(self, changed: StepSummary) -> tuple[CriterionProof, ...]:
        return tuple(
            replace(criterion, steps=_swap(criterion.steps, changed))
            for criterion in self.criteria
        )


def _swap(
    steps: tuple[StepSummary, ...], changed: StepSummary
) -> tuple[StepSummary, ...]:
    return tuple(changed if step.number == changed.number else step for step in steps)


class RunReader(Struct, frozen=True):
    """Reads a ticket's run, without its lock."""

    ticket: Ticket
    """With the user's spec."""
    run_ticket: Ticket
    redactor: Redactor
    settings: StrengthSettings

    @property
    def root(self) -> Path:
        """The run's tree."""
        return self.run_ticket.root

    @property
    def log_size(self) -> int:
        """In bytes."""
        return self._record.log.size

    @property
    def _record(self) -> RunRecord:
        return RunRecord.of_ticket(self.run_ticket, self.redactor)

    def read_timeline(self, size: int | None = None) -> Timeline:
        """Read the log, or its first `size` bytes. Raises `BadInput` if the log is
        unreadable.
        """
        return Timeline.read(self._record.log, size)

    def read_step(self, number: int) -> StepDetails:
        """Raises `BadInput` if there is no such step, or a file is damaged."""
        return step_details(self.run_ticket, number, self.redactor)

    def read(self) -> RunInspection:
        """Read the run. Unreadable files become problems of the result."""
        inspection = RunInspection(self.ticket.slug)
        spec, spec_problem = self._read_spec()
        inspection = replace(
            inspection,
            title=spec.title if spec else "",
            criteria_problem=spec_problem,
        )
        if not self.run_ticket.plan_path.exists():
            criteria = unplanned_criteria(spec) if spec else ()
            return replace(inspection, criteria=criteria)
        inspection = replace(inspection, has_plan=True)
        try:
            run = SavedRun.load(self.run_ticket, self.redactor)
            if not run.plan.steps:
                run.plan.check()
        except CddError as error:
            return replace(inspection, plan_problem=InspectionProblem.from_error(error))
        undone = run.state.undone[-1].steps if run.state.undone else ()
        order = run.plan.steps if run.plan.errors else run.plan.order()
        inspection = replace(
            inspection,
            steps=tuple(
                StepSummary.from_state(run.state.step(step.number), run.plan)
                for step in order
            ),
            undone=tuple(StepSummary.from_state(step, run.plan) for step in undone),
        )
        inspection, summary = self._with_strength(inspection, run)
        return self._with_criteria(inspection, run, spec, summary)

    def _read_spec(self) -> tuple[TicketSpec | None, InspectionProblem | None]:
        try:
            return self.ticket.read_spec(), None
        except CddError as error:
            return None, InspectionProblem.from_error(error)

    def _with_strength(
        self, inspection: RunInspection, run: SavedRun
    ) -> tuple[RunInspection, StrengthSummary | None]:
        try:
            summary = load_summary(run.plan, run.state, run.record, self.settings)
            strength = read_strength(run, summary, self.settings)
        except CddError as error:
            problem = InspectionProblem.from_error(error)
            return replace(inspection, strength_problem=problem), None
        return replace(inspection, strength=strength), summary

    def _with_criteria(
        self,
        inspection: RunInspection,
        run: SavedRun,
        spec: TicketSpec | None,
        summary: StrengthSummary | None,
    ) -> RunInspection:
        if spec is None:
            return inspection
        try:
            criteria = trace_criteria(spec.acceptance_criteria, run, summary)
        except CddError as error:
            problem = InspectionProblem.from_error(error)
            return replace(inspection, criteria_problem=problem)
        return replace(inspection, criteria=criteria)
