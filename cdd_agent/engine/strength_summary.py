"""The saved results of faults as scores of steps and of acceptance criteria."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Self

from msgspec import Struct

from cdd_agent.engine.project_digest import digest_project
from cdd_agent.engine.record import RunRecord
from cdd_agent.engine.saved_faults import MeasuredStep, SavedFaults, path_of_saved
from cdd_agent.engine.saved_run import SavedRun
from cdd_agent.events.strength_events import (
    CriterionStrength,
    StepStrength,
    Strength,
    UnnoticedFault,
)
from cdd_agent.settings.config import Config
from cdd_agent.tickets.plan import ImplementationPlan, PlanStep
from cdd_agent.tickets.served_criteria import CriterionStanding, find_standings
from cdd_agent.tickets.state import ExecutionState, completed_steps
from cdd_agent.verification.strength.fault import Fault
from cdd_agent.verification.strength.score import Score, TriedFault


class StrengthSettings(Struct, frozen=True):
    """The settings of measuring: what the saved results depend on, and limits."""

    test_command: str | None = None
    tickets_dir: str = "tickets"
    threshold: int | None = None
    """The percentage below which a score is weak."""
    most_faults: int = 0
    """The most faults that a measurement tries for a step."""
    most_seconds: float = 0.0
    """The most seconds that a measurement takes for a step."""

    @classmethod
    def from_config(cls, config: Config) -> Self:
        return cls(
            config.test_command,
            config.tickets_dir,
            config.strength,
            config.strength_faults,
            config.strength_seconds,
        )


class StepFaultResults(Struct, frozen=True):
    """The score of a completed step, and its faults in the order of the files."""

    score: StepStrength
    faults: tuple[TriedFault, ...]


class StrengthReading(Struct, frozen=True):
    """The saved measurement of a run."""

    steps: tuple[StepFaultResults, ...] = ()
    """The completed steps, if something was measured with the current files."""
    measured_at: datetime | None = None
    """The time of the last result, also for other files; None without results."""
    completed: int = 0
    """The number of completed steps, which a measurement would try."""
    settings: StrengthSettings = StrengthSettings()


class StrengthSummary(Struct, frozen=True):
    """Scores of the completed steps of a run, from the saved results."""

    plan: ImplementationPlan
    state: ExecutionState
    saved: SavedFaults
    settings: StrengthSettings

    @property
    def completed(self) -> list[PlanStep]:
        return completed_steps(self.plan, self.state)

    def identify(self, step: PlanStep) -> MeasuredStep:
        """Return the key of a step's results. Checks that follow from the project's
        files need no name: the results hold for these files alone.
        """
        checks = step.checks
        if checks is None:
            command = self.settings.test_command
            checks = (command,) if command else ()
        return MeasuredStep(self.state.step(step.number).folder, tuple(checks))

    def results_of(self, step: PlanStep) -> Mapping[Fault, TriedFault]:
        return self.saved.results_of(self.identify(step))

    def summarise_step(
        self, step: PlanStep, untried: int = 0, problem: str = ""
    ) -> StepStrength:
        score = Score.count(self.results_of(step).values())
        return StepStrength(
            step.number,
            step.title,
            self._rate(score),
            _unnoticed(score),
            score.no_result,
            untried,
            problem,
            step.label,
        )

    def list_faults(self, step: PlanStep) -> StepFaultResults:
        """Return the score of a step with all faults that were tried."""
        faults = sorted(
            self.results_of(step).values(),
            key=lambda tried: (tried.fault.path, tried.fault.line, tried.fault.start),
        )
        return StepFaultResults(self.summarise_step(step), tuple(faults))

    def summarise_criteria(
        self, criteria: Sequence[str]
    ) -> tuple[CriterionStrength, ...]:
        """Return the scores of the criteria that completed steps serve."""
        summaries = []
        for standing in find_standings(self.plan, self.state, criteria):
            steps = self._serving(standing)
            if steps:
                labels = tuple(step.label for step in steps)
                score = self._count(steps)
                summary = CriterionStrength(
                    standing.place,
                    standing.text,
                    labels,
                    self._rate(score),
                    _unnoticed(score),
                )
                summaries.append(summary)
        return tuple(summaries)

    def _serving(self, standing: CriterionStanding) -> list[PlanStep]:
        """Return the completed steps that serve a criterion. Where no step of the plan
        names one, these are all.
        """
        if standing.was_for_all and not standing.steps:
            return self.completed
        return [step for step in self.completed if step.number in standing.steps]

    def _count(self, steps: Iterable[PlanStep]) -> Score:
        tried: list[TriedFault] = []
        for step in steps:
            tried += self.results_of(step).values()
        return Score.count(tried)

    def _rate(self, score: Score) -> Strength | None:
        percent, threshold = score.percent, self.settings.threshold
        if percent is None:
            return None
        is_weak = threshold is not None and percent < threshold
        return Strength(score.noticed, score.measured, is_weak)


def _unnoticed(score: Score) -> tuple[UnnoticedFault, ...]:
    return tuple(
        UnnoticedFault(fault.path, fault.line, fault.words, fault.source)
        for fault in score.not_noticed
    )


def load_summary(
    plan: ImplementationPlan,
    state: ExecutionState,
    record: RunRecord,
    settings: StrengthSettings,
) -> StrengthSummary | None:
    """Return the scores that were saved for the current files; None if nothing was
    measured with them. Raises `BadInput` if the file cannot be read.
    """
    if not path_of_saved(record).exists():
        return None
    project = digest_project(record.root, settings.tickets_dir)
    saved = SavedFaults.load(record, project)
    if saved.is_empty:
        return None
    return StrengthSummary(plan, state, saved, settings)


def read_strength(
    run: SavedRun, summary: StrengthSummary | None, settings: StrengthSettings
) -> StrengthReading:
    """Return what was measured. `summary` is that of `load_summary`."""
    path = path_of_saved(run.record)
    measured_at = None
    if path.exists():
        measured_at = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    completed = completed_steps(run.plan, run.state)
    steps: list[StepFaultResults] = []
    if summary is not None:
        steps = [summary.list_faults(step) for step in completed]
    return StrengthReading(tuple(steps), measured_at, len(completed), settings)
