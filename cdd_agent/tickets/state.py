"""Progress of a plan: `execution-state.json` and its transitions.

States are values; transitions return new ones. Only the engine writes the file.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Self

from msgspec import Struct, convert, field, to_builtins
from msgspec.structs import force_setattr, replace

from cdd_agent.cost import NO_COST, Cost
from cdd_agent.errors import BadInput
from cdd_agent.files.json_file import from_json
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.tickets.plan import ImplementationPlan, PlanStep
from cdd_agent.tickets.status import (
    Evidence,
    RunStatus,
    StepOutcome,
    StepStatus,
    Unproven,
    Verification,
)
from cdd_agent.tickets.step_matching import StepIdentity, fingerprint, match_steps
from cdd_agent.tickets.step_tally import StepTally
from cdd_agent.version import VERSION

_REQUIRED_KEYS = (
    "ticket_slug",
    "current_step",
    "status",
    "started_at",
    "completed_at",
    "step_executions",
)
_REQUIRED_STEP_KEYS = (
    "step_number",
    "status",
    "started_at",
    "completed_at",
    "error",
    "files_created",
    "files_modified",
)
_OPTIONAL_KEYS = (
    "former_steps",
    "undone",
    "criteria",
    "done_plan",
    "done_spec",
)


class StateUnreadable(BadInput):
    """The file is torn, not a state, or another ticket's."""

    refusal = Refusal.STATE_UNREADABLE


class StateIsNewer(BadInput):
    """A newer version wrote the file, so it is never renamed."""

    refusal = Refusal.WRITTEN_BY_NEWER


class Files(Struct, frozen=True):
    created: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()


NO_FILES = Files()


class StepExecution(Struct, frozen=True):
    """The outcome of a step. Paths are relative to the project.

    Files of older versions lack fields that default to None.
    """

    step_number: int
    title: str | None = None
    """The step's title when it was last started or skipped."""
    fingerprint: str | None = None
    """The fingerprint of the rest of the step at that time."""
    step_id: str | None = field(default=None, name="id")
    """The step's id in the plan. Omitted from the file if there is none."""
    status: StepStatus = StepStatus.PENDING
    started_at: datetime | None = None
    completed_at: datetime | None = None
    end_order: int = field(default=0, name="place")
    """Position among ended steps; 0 in older files."""
    error: str | None = None
    files_created: tuple[str, ...] = ()
    files_modified: tuple[str, ...] = ()
    files_deleted: tuple[str, ...] = ()
    verification: Verification | None = None
    insufficient: Verification | None = None
    """A failed step's verification, if the run requires more."""
    reason: str | None = None
    """Why it was skipped."""
    evidence: Evidence | None = None
    attempts: int = 0
    """Number of attempts. A resumed attempt counts once."""
    open_attempt: int = 0
    """A further attempt that got no reply because of the model; the next run resumes
    it. Only in failed steps; else omitted from the file.
    """
    known_cost: Cost | None = field(default=None, name="spent")
    undone_attempts: int = field(default=0, name="taken_back")
    """Number of first attempts that were undone."""
    hidden_attempts: int = field(default=0, name="forgotten")
    """Number of first attempts that later prompts omit."""
    commit: str | None = None
    submodule_commits: dict[str, str] | None = None
    """Path of a submodule → the step's commit there. Omitted from the file if empty."""
    serves: dict[str, str | None] | None = None
    """Reference in the plan → digest of the criterion's words; None if there is no such
    criterion. Omitted from the file if unknown.
    """
    spec_version: int | None = None
    """Index in the state's `criteria` of the spec it last began with. Omitted from the
    file if unknown.
    """
    is_for_all: bool = False
    """True if no step named a criterion when it began. Omitted from the file if
    false.
    """
    record_number: int = field(default=0, name="recorded_as")
    """The step's number in the run's record, if different. Renumbering does not change
    it.
    """
    refusal: str = ""
    """The id of the failure's kind, as `cdd help` explains it. Omitted from the file if
    empty.
    """

    def __post_init__(self) -> None:
        # Earlier tools did not record the verification.
        if self.status is StepStatus.COMPLETED and self.verification is None:
            force_setattr(self, "verification", Verification.NONE)

    @property
    def outcome(self) -> StepOutcome:
        return StepOutcome.from_status(self.status, self.verification, self.evidence)

    @property
    def commits(self) -> tuple[str, ...]:
        inside = (self.submodule_commits or {}).values()
        return (self.commit, *inside) if self.commit else tuple(inside)

    @property
    def spent(self) -> Cost:
        """The cost of all attempts, including failed, interrupted and undone ones."""
        return self.known_cost or NO_COST

    @property
    def lacks_costs(self) -> bool:
        """True if `spent` is incomplete: an older file, or a process killed during an
        attempt.
        """
        return self.known_cost is None or self.status is StepStatus.IN_PROGRESS

    @property
    def seconds(self) -> float | None:
        """The time from start to end."""
        if self.started_at is None or self.completed_at is None:
            return None
        return (
            _with_zone(self.completed_at) - _with_zone(self.started_at)
        ).total_seconds()

    @property
    def folder(self) -> int:
        """The step's number in the run's record."""
        return self.record_number or self.step_number

    @property
    def was_begun(self) -> bool:
        """True if anything is known of the step, even if it was undone."""
        return (
            self.status is not StepStatus.PENDING
            or self.attempts > 0
            or self.title is not None
        )

    @property
    def identity(self) -> StepIdentity:
        return StepIdentity(self.title, self.fingerprint, self.step_id or "")

    @property
    def files(self) -> Files:
        return Files(self.files_created, self.files_modified, self.files_deleted)

    @property
    def last_attempt(self) -> int:
        """Number of the last begun attempt."""
        return max(self.attempts, self.open_attempt)

    @property
    def remaining_attempts(self) -> range:
        return range(self.undone_attempts + 1, self.last_attempt + 1)

    def to_pending(self) -> "StepExecution":
        """Drop the outcome of the last attempt."""
        return StepExecution(
            self.step_number,
            title=self.title,
            fingerprint=self.fingerprint,
            step_id=self.step_id,
            attempts=self.attempts,
            known_cost=self.known_cost,
            undone_attempts=self.undone_attempts,
            hidden_attempts=self.hidden_attempts,
            serves=self.serves,
            spec_version=self.spec_version,
            is_for_all=self.is_for_all,
            record_number=self.record_number,
        )

    def with_number(self, number: int) -> "StepExecution":
        """Renumber the step; its record stays in place."""
        return replace(self, step_number=number, record_number=self.folder)


class Undo(Struct, frozen=True):
    """Steps undone together, in their former state, in the order in which they
    ended.
    """

    id: str
    steps: tuple[StepExecution, ...]


class ExecutionState(Struct, frozen=True):
    ticket_slug: str
    current_step: int = 1
    """The next step, for readers of the file. The program never reads it."""
    started_at: datetime | None = None
    completed_at: datetime | None = None
    step_executions: dict[int, StepExecution] = field(default_factory=dict)
    former_steps: dict[int, StepExecution] = field(default_factory=dict)
    """Steps removed from the plan: history, not counted."""
    undone: tuple[Undo, ...] = ()
    """Undos that can be redone, oldest first."""
    criteria: tuple[tuple[str, ...], ...] = ()
    """Criteria of each spec that a step began with, as digests of their words, oldest
    first. Empty in older files.
    """
    done_plan: str | None = None
    """Digest of plan.md when all steps were over. While it is the same, the plan need
    not be read.
    """
    done_spec: str | None = None
    """Digest of spec.yaml at that time, if the run knew all its criteria."""

    @property
    def status(self) -> RunStatus:
        statuses = {step.status for step in self.step_executions.values()}
        if statuses and all(status.is_over for status in statuses):
            return RunStatus.COMPLETED
        return (
            RunStatus.FAILED if StepStatus.FAILED in statuses else RunStatus.IN_PROGRESS
        )

    @property
    def tally(self) -> StepTally:
        return StepTally.count(step.outcome for step in self.step_executions.values())

    @property
    def all_steps(self) -> dict[int, StepExecution]:
        return {**self.former_steps, **self.step_executions}

    @property
    def has_begun(self) -> bool:
        """True once a step was started or skipped, even if undone since."""
        return self.started_at is not None or bool(self.begun_numbers)

    @property
    def begun_numbers(self) -> frozenset[int]:
        """Steps that are over, failed or in progress, and may have changed files."""
        steps = self.all_steps.values()
        return frozenset(
            step.step_number for step in steps if step.status is not StepStatus.PENDING
        )

    @property
    def finished_numbers(self) -> frozenset[int]:
        return frozenset(
            step.step_number for step in self.all_steps.values() if step.status.is_over
        )

    @property
    def is_of_earlier_version(self) -> bool:
        """True if the file is from a tool that did not record titles of completed
        steps.
        """
        for step in self.step_executions.values():
            # Skipped steps always had a reason.
            if step.status.is_over and step.title is None and step.reason is None:
                return True
        return False

    def step(self, number: int) -> StepExecution:
        """Return a step of the plan, a former one, or a new one."""
        entry = self.step_executions.get(number) or self.former_steps.get(number)
        return entry or _new_step(number)

    def with_steps(self, numbers: Iterable[int]) -> Self:
        """Make exactly these steps, in order, the plan's; others become former
        steps.
        """
        former = self.all_steps
        numbers = tuple(numbers)
        folders = {step.folder for step in former.values()}
        next_free = max((*folders, *former, *numbers), default=0) + 1
        steps = {}
        for number in numbers:
            step = former.pop(number, None)
            if step is None:
                step = _new_step(number)
                # The record may have another step of this number.
                if number in folders:
                    step = replace(step, record_number=next_free)
                    next_free += 1
            steps[number] = step
        return replace(self, step_executions=steps, former_steps=former)

    def renumbered(self, numbers: Mapping[int, int]) -> Self:
        """Renumber begun steps. Their records stay in place."""
        if all(old == new for old, new in numbers.items()):
            return self
        steps = {}
        for old, new in numbers.items():
            step = self.all_steps[old]
            steps[new] = step if old == new else step.with_number(new)
        number_by_folder = {step.folder: number for number, step in steps.items()}
        undone = []
        for undo in self.undone:
            moved = [
                step.with_number(number_by_folder.get(step.folder, step.step_number))
                for step in undo.steps
            ]
            undone.append(replace(undo, steps=tuple(moved)))
        return replace(
            self, step_executions=steps, former_steps={}, undone=tuple(undone)
        )

    # Transitions

    def started(self, step: PlanStep, now: datetime, *, attempt: int) -> Self:
        """Start or resume a step. Because files change, earlier undos cannot be
        redone.
        """
        previous = self.step(step.number)
        is_resumed = (
            previous.status is StepStatus.IN_PROGRESS
            and previous.started_at is not None
        )
        entry = replace(
            previous.to_pending(),
            title=step.title,
            fingerprint=fingerprint(step),
            step_id=step.id or None,
            status=StepStatus.IN_PROGRESS,
            started_at=previous.started_at if is_resumed else now,
            attempts=attempt,
            known_cost=previous.spent,
        )
        return replace(
            self._with(entry),
            started_at=self.started_at or now,
            completed_at=None,
            undone=(),
        )

    def completed(
        self,
        number: int,
        now: datetime,
        verification: Verification,
        files: Files,
        commit: str | None = None,
        evidence: Evidence | None = None,
        submodule_commits: dict[str, str] | None = None,
    ) -> Self:
        step = replace(
            self.step(number),
            status=StepStatus.COMPLETED,
            error=None,
            refusal="",
            verification=verification,
            commit=commit,
            evidence=evidence,
            submodule_commits=submodule_commits or None,
        )
        return self._ended(step, now, files)

    def failed(
        self,
        number: int,
        now: datetime,
        error: str,
        files: Files = NO_FILES,
        insufficient: Verification | None = None,
        evidence: Evidence | None = None,
        refusal: str = "",
    ) -> Self:
        """`files` remain from the failed attempt, for the user to inspect."""
        step = replace(
            self.step(number),
            status=StepStatus.FAILED,
            error=error,
            refusal=refusal,
            insufficient=insufficient,
            evidence=evidence,
        )
        return self._ended(step, now, files)

    def skipped(
        self, step: PlanStep, now: datetime, reason: str, files: Files = NO_FILES
    ) -> Self:
        """`files` are kept from a failed attempt. Earlier undos cannot be redone."""
        entry = replace(
            self.step(step.number),
            title=step.title,
            fingerprint=fingerprint(step),
            step_id=step.id or None,
            status=StepStatus.SKIPPED,
            reason=reason,
        )
        return replace(self._ended(entry, now, files), undone=())

    def restore(self, number: int) -> Self:
        """Make an interrupted step pending. Its attempt resumes under the same
        number.
        """
        return self._with(self.step(number).to_pending())

    def reinstate(self, failed: StepExecution) -> Self:
        """Restore a step's failure after an attempt without a reply, which resumes
        under the same number.
        """
        last = self.step(failed.step_number)
        return self._with(
            replace(failed, known_cost=last.spent, open_attempt=last.last_attempt)
        )

    def hide_attempts(self, number: int) -> Self:
        """Omit the attempts so far from later prompts."""
        step = self.step(number)
        return self._with(replace(step, hidden_attempts=step.attempts))

    def with_costs(self, costs: Mapping[int, Cost], *, instead: bool = False) -> Self:
        """Add costs, or set them. Keys are numbers in the run's record."""
        state = self
        for step in self.all_steps.values():
            cost = costs.get(step.folder)
            if cost:
                state = state._with(
                    replace(step, known_cost=cost if instead else step.spent + cost)
                )
        return state

    def undo(self, steps: Sequence[StepExecution], undo_id: str) -> Self:
        """Make steps pending again. `redo` reverts that."""
        state = self
        for step in steps:
            pending = step.to_pending()
            state = state._with(
                replace(
                    pending,
                    attempts=step.last_attempt,
                    undone_attempts=step.last_attempt,
                    hidden_attempts=step.last_attempt,
                )
            )
        return replace(
            state, undone=(*self.undone, Undo(undo_id, tuple(steps))), completed_at=None
        )

    def redo(self) -> Self:
        *others, last = self.undone
        state = self
        for step in last.steps:
            state = state._with(
                replace(step, known_cost=self.step(step.step_number).spent)
            )
        completed_at = None
        if state.status is RunStatus.COMPLETED:
            completed_at = max(
                (step.completed_at for step in last.steps), key=_with_zone, default=None
            )
        return replace(state, undone=tuple(others), completed_at=completed_at)

    def ended_steps(self) -> tuple[StepExecution, ...]:
        """Return finished and failed steps in the order in which they ended."""
        ended = [step for step in self.all_steps.values() if step.completed_at]
        return tuple(
            sorted(
                ended, key=lambda step: (step.end_order, _with_zone(step.completed_at))
            )
        )

    def _ended(self, step: StepExecution, now: datetime, files: Files) -> Self:
        last = max((other.end_order for other in self.all_steps.values()), default=0)
        step = replace(
            step,
            completed_at=now,
            end_order=last + 1,
            files_created=files.created,
            files_modified=files.modified,
            files_deleted=files.deleted,
        )
        state = self._with(step)
        return replace(
            state, completed_at=now if state.status is RunStatus.COMPLETED else None
        )

    def _with(self, step: StepExecution) -> Self:
        number = step.step_number
        if number in self.former_steps:
            return replace(self, former_steps={**self.former_steps, number: step})
        return replace(self, step_executions={**self.step_executions, number: step})

    # The file

    def _check_spec_versions(self) -> None:
        """Raise `ValueError` if a step began with a spec that is not in `criteria`."""
        undone = [step for undo in self.undone for step in undo.steps]
        for step in (*self.all_steps.values(), *undone):
            version = step.spec_version
            if version is not None and not 0 <= version < len(self.criteria):
                raise ValueError(
                    f"the `spec_version` of step {step.step_number} is not in"
                    " `criteria`"
                )

    def to_json(self) -> bytes:
        values = to_builtins(self, builtin_types=(datetime,), str_keys=True)
        steps = [*values["step_executions"].values(), *values["former_steps"].values()]
        for undo in values["undone"]:
            steps += undo["steps"]
        for step in steps:
            for key in ("id", "serves", "spec_version", "submodule_commits"):
                if step[key] is None:
                    del step[key]
            for key in ("is_for_all", "open_attempt", "refusal"):
                if not step[key]:
                    del step[key]
        values["status"] = self.status.value
        data = {key: values[key] for key in _REQUIRED_KEYS}
        for key in _OPTIONAL_KEYS:
            if values[key]:
                data[key] = values[key]
        text = json.dumps(
            data, indent=2, ensure_ascii=False, default=datetime.isoformat
        )
        # Models write lone surrogates, which cannot be encoded.
        return f"{text}\n".encode(errors="replace")

    @classmethod
    def from_json(cls, data: bytes, source: str) -> Self:
        """Raises `StateUnreadable`, naming `source`, for a missing key or wrong value,
        and `StateIsNewer`.
        """
        try:
            content = from_json(data, dict[str, Any])
            _require(content, _REQUIRED_KEYS)
            _expect_known_verifications(content, source)
            # The status is computed from the steps, so its value does not matter.
            if not isinstance(content["status"], str):
                raise ValueError("its `status` is not text")
            state = convert(content, cls, str_keys=True)
            for key in ("step_executions", "former_steps"):
                for number, step in content.get(key, {}).items():
                    _require(step, _REQUIRED_STEP_KEYS)
                    if step["step_number"] != int(number):
                        raise ValueError(
                            f"under the key {number} is another `step_number`"
                        )
            state._check_spec_versions()
        except ValueError as error:
            raise StateUnreadable(
                f"{source} is not a readable execution state: {error}",
                hint=(
                    "`cdd exec` renames it, and rebuilds it from the run's record if"
                    " there is one."
                ),
            ) from error
        return state


def _new_step(number: int) -> StepExecution:
    return StepExecution(number, known_cost=NO_COST)


def _expect_known_verifications(content: Mapping[str, Any], source: str) -> None:
    """Raise `StateIsNewer` for an unknown verification. The conversion finds other
    errors.
    """
    for step in _entries(content):
        value = step.get("verification")
        if isinstance(value, str) and value not in set(Verification):
            raise StateIsNewer(
                f"{source} was written by a newer version of cdd: step"
                f" {step.get('step_number')} has the verification {value!r}, which"
                f" version {VERSION} does not know",
                hint="Update cdd. The file is left unchanged.",
            )


def _entries(content: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    steps: list[Any] = []
    for key in ("step_executions", "former_steps"):
        entries = content.get(key)
        if isinstance(entries, dict):
            steps += entries.values()
    undone = content.get("undone")
    for undo in undone if isinstance(undone, list) else ():
        entries = undo.get("steps") if isinstance(undo, dict) else None
        if isinstance(entries, list):
            steps += entries
    for step in steps:
        if isinstance(step, dict):
            yield step


def _require(content: Mapping[str, Any], keys: Iterable[str]) -> None:
    for key in keys:
        if key not in content:
            raise ValueError(f"`{key}` is missing")


def _with_zone(moment: datetime | None) -> datetime:
    """Make times comparable: in older files they have no zone."""
    moment = moment or datetime.min
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def new_state(slug: str, plan: ImplementationPlan) -> ExecutionState:
    return ExecutionState(slug).with_steps(step.number for step in plan.steps)


def match_state(state: ExecutionState, plan: ImplementationPlan) -> ExecutionState:
    """Match the state with the plan's steps and numbers.

    Raises `BadInput` for another plan's state, or if it is unclear which steps are
    completed.
    """
    begun = {
        number: step.identity
        for number, step in state.step_executions.items()
        if step.was_begun
    }
    former = {
        number: step.identity
        for number, step in state.former_steps.items()
        if step.was_begun
    }
    completed = [
        number for number, step in state.step_executions.items() if step.status.is_over
    ]
    numbers = match_steps(plan, begun, completed, former)
    return state.renumbered(numbers).with_steps(step.number for step in plan.steps)


def renumbered_steps(before: ExecutionState, after: ExecutionState) -> dict[int, int]:
    """Return old number → new number of begun steps."""
    new_numbers = {step.folder: number for number, step in after.all_steps.items()}
    moved = {}
    for number, step in sorted(before.all_steps.items()):
        new_number = new_numbers.get(step.folder, number)
        if step.was_begun and new_number != number:
            moved[number] = new_number
    return moved


def add_missing_identities(
    state: ExecutionState, plan: ImplementationPlan
) -> ExecutionState:
    """Add titles and fingerprints that older tools did not record, and ids of steps
    begun before the plan had ids.
    """
    for step in plan.steps:
        entry = state.step(step.number)
        if entry.status.is_over and entry.title is None:
            entry = replace(entry, title=step.title, fingerprint=fingerprint(step))
        if entry.was_begun and step.id:
            entry = replace(entry, step_id=step.id)
        if entry != state.step(step.number):
            state = state._with(entry)
    return state


def edited_steps(plan: ImplementationPlan, state: ExecutionState) -> tuple[int, ...]:
    """Return finished steps whose text was edited since."""
    numbers = []
    for step in plan.steps:
        entry = state.step(step.number)
        if entry.status.is_over and not entry.identity.is_unchanged(step):
            numbers.append(step.number)
    return tuple(numbers)


def unproven_steps(
    plan: ImplementationPlan, state: ExecutionState
) -> tuple[Unproven, ...]:
    """Return finished or insufficiently verified steps without passing tests, in plan
    order.
    """
    unproven = []
    for step in plan.steps:
        entry = state.step(step.number)
        if entry.insufficient is not None:
            why = StepOutcome.from_verification(entry.insufficient, entry.evidence)
        elif entry.status.is_over:
            why = entry.outcome
        else:
            continue
        if why is not StepOutcome.PASSED:
            unproven.append(Unproven(step.number, step.title, why, step.label))
    return tuple(unproven)


def completed_steps(plan: ImplementationPlan, state: ExecutionState) -> list[PlanStep]:
    steps = []
    for step in plan.order():
        if state.step(step.number).status is StepStatus.COMPLETED:
            steps.append(step)
    return steps


def next_step(plan: ImplementationPlan, state: ExecutionState) -> PlanStep | None:
    """Return the first unfinished step in dependency order."""
    for step in plan.order():
        if not state.step(step.number).status.is_over:
            return step
    return None


def next_step_number(plan: ImplementationPlan, state: ExecutionState) -> int:
    """Return the number of the next step; after the last, one more than the highest."""
    step = next_step(plan, state)
    return step.number if step else max(step.number for step in plan.steps) + 1
