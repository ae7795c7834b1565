"""Scores of steps and criteria, from saved results of faults."""

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
    """Settings that saved results depend on, and limits."""

    test_command: str | None = None
    tickets_dir: str = "tickets"
    threshold: int | None = None
    """Scores below this percentage are weak."""
    most_faults: int = 0
    """Most faults to try for a step."""
    most_seconds: float = 0.0
    """Most seconds to measure a step."""

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
    """A completed step's score and faults, in file order."""

    score: StepStrength
    faults: tuple[TriedFault, ...]


class StrengthReading(Struct, frozen=True):
    """A run's saved measurement."""

    steps: tuple[StepFaultResults, ...] = ()
    """Completed steps, if the current files were measured."""
    measured_at: datetime | None = None
    """Time of the last result, for any files; None without results."""
    completed: int = 0
    """Number of completed steps, which a measurement would try."""
    settings: StrengthSettings = StrengthSettings()


class StrengthSummary(Struct, frozen=True):
    """Scores of completed steps, from saved results."""

    plan: ImplementationPlan
    state: ExecutionState
    saved: SavedFaults
    settings: StrengthSettings

    @property
    def completed(self) -> list[PlanStep]:
        return completed_steps(self.plan, self.state)

    def identify(self, step: PlanStep) -> MeasuredStep:
        """Return the key of a step's results. Checks derived from the project's files
        need no name: results hold for these files only.
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
        """Return a step's score with all tried faults."""
        faults = sorted(
            self.results_of(step).values(),
            key=lambda tried: (tried.fault.path, tried.fault.line, tried.fault.start),
        )
        return StepFaultResults(self.summarise_step(step), tuple(faults))

    def summarise_criteria(
        self, criteria: Sequence[str]
    ) -> tuple[CriterionStrength, ...]:
        """Return scores of criteria that completed steps serve."""
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
        """Return completed steps that serve a criterion; all, if no step names one."""
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
    """Return scores for the current files; None without any. Raises `BadInput` if the
    file is unreadable.
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
    """`summary` is from `load_summary`."""
    path = path_of_saved(run.record)
    measured_at = None
    if path.exists():
        measured_at = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    completed = completed_steps(run.plan, run.state)
    steps: list[StepFaultResults] = []
    if summary is not None:
        steps = [summary.list_faults(step) for step in completed]
    return StrengthReading(tuple(steps), measured_at, len(completed), settings)
