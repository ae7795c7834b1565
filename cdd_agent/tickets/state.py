"""How far a ticket's plan has been carried out: `execution-state.json`, and the transitions that are allowed.

States are values: a transition gives a new one. Only the engine writes the file.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Self, TypeVar

from msgspec import Struct, field, to_builtins
from msgspec.structs import force_setattr, replace

from cdd_agent.errors import BadInput
from cdd_agent.files.atomic import read_bytes, write_atomic
from cdd_agent.files.json_file import as_json, from_json
from cdd_agent.tickets.drift import Known, fingerprint, is_unchanged, places
from cdd_agent.tickets.plan import ImplementationPlan
from cdd_agent.tickets.plan_step import PlanStep
from cdd_agent.tickets.status import NO_COST, Cost, Evidence, RunStatus, StepStatus, Unproven, Verification


class StateUnreadable(BadInput):
    """The state file is torn, not a state, or that of another ticket."""


_PROMISED = ("ticket_slug", "current_step", "status", "started_at", "completed_at", "step_executions")
_PROMISED_OF_STEP = ("step_number", "status", "started_at", "completed_at", "error", "files_created", "files_modified")
_NO_STEPS = b'"step_executions": {}'
"""Where the steps belong in a state that is written without them. No text in it holds a quote as it is."""
_DEEPEST = 100
"""Levels of what a newer version has added."""


class _Record(Struct, frozen=True, kw_only=True):
    """What the file says of something."""

    more: Any = field(default_factory=dict, name="")
    """What newer versions have added to it, by its keys: it is kept. In the file it has no name of its own."""


class Files(Struct, frozen=True):
    """The files that a step touched."""

    created: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()


NO_FILES = Files()
Kept = TypeVar("Kept", bound=_Record)


class StepExecution(_Record, frozen=True, dict=True):
    """The outcome of one step. Paths are relative to the project."""

    step_number: int
    title: str | None = None
    """As the plan had it when the step was last started, or skipped; None in older files."""
    fingerprint: str | None = None
    """Of the rest of what the plan said then; None in older files."""
    status: StepStatus = StepStatus.PENDING
    started_at: datetime | None = None
    completed_at: datetime | None = None
    place: int = 0
    """Which it was of the steps to be over or to fail; 0 in older files."""
    error: str | None = None
    files_created: tuple[str, ...] = ()
    files_modified: tuple[str, ...] = ()
    files_deleted: tuple[str, ...] = ()
    verification: Verification | None = None
    insufficient: Verification | None = None
    """How a failed step was verified where that was not enough for the run."""
    reason: str | None = None
    """Why it was skipped."""
    evidence: Evidence | None = None
    """The reason why it was completed or failed, with the counts of tests; None in older files."""
    attempts: int = 0
    """Attempts at this step so far; an interrupted one that goes on is counted once."""
    costs: Cost | None = field(default=NO_COST, name="spent")
    """See `spent`; None in older files."""
    taken_back: int = 0
    """The first of them that left nothing behind any more: they were undone."""
    forgotten: int = 0
    """The first of them that a later one is not told of: they were undone, or the plan's step was another one."""
    commit: str | None = None
    """The commit that was made of it."""
    recorded_as: int = 0
    """The number under which the run's record has it, where that is not its own: it stays when steps are renumbered."""

    def __post_init__(self) -> None:
        if self.status is StepStatus.COMPLETED and self.verification is None:
            # Earlier tools did not say how it was verified: nobody saw it.
            force_setattr(self, "verification", Verification.NONE)

    @property
    def spent(self) -> Cost:
        """Of all attempts, also of those that failed, were interrupted or undone."""
        return self.costs or NO_COST

    @cached_property
    def json(self) -> bytes:
        """As the file has it, under its number: of all steps a change of the state makes but one anew."""
        return b'"%d": %s' % (self.step_number, as_json(_laid_out(self), indent=2).replace(b"\n", b"\n    "))

    @property
    def seconds(self) -> float | None:
        """From its start to its end."""
        if self.started_at is None or self.completed_at is None:
            return None
        return (_instant(self.completed_at) - _instant(self.started_at)).total_seconds()

    @property
    def folder(self) -> int:
        """The number by which the run's record knows it."""
        return self.recorded_as or self.step_number

    @property
    def lacks_costs(self) -> bool:
        """Not all of `spent` is there: the file is older, or its process was killed in the middle of an attempt."""
        return self.costs is None or self.status is StepStatus.IN_PROGRESS

    @property
    def was_begun(self) -> bool:
        """Something is known of it, if only that it was undone."""
        return self.status is not StepStatus.PENDING or self.attempts > 0 or self.title is not None

    @property
    def known(self) -> Known:
        """The plan's words for it when it was carried out."""
        return self.title, self.fingerprint

    @property
    def files(self) -> Files:
        return Files(self.files_created, self.files_modified, self.files_deleted)

    @property
    def standing(self) -> range:
        """The attempts of which something may be left."""
        return range(self.taken_back + 1, self.attempts + 1)


class Undo(_Record, frozen=True):
    """Steps that were undone together, as they were, in the order in which they were over."""

    id: str
    steps: tuple[StepExecution, ...]


class ExecutionState(_Record, frozen=True):
    """How far the executor is."""

    ticket_slug: str
    current_step: int = 1
    """The step to come, see `to_come`: for readers of the file; it is never believed."""
    started_at: datetime | None = None
    completed_at: datetime | None = None
    step_executions: dict[int, StepExecution] = field(default_factory=dict)
    former_steps: dict[int, StepExecution] = field(default_factory=dict)
    """Steps that are no longer in the plan: kept as history, not counted."""
    undone: tuple[Undo, ...] = ()
    """The undos that can be done again, the last one last."""
    done_plan: str | None = None
    """The digest of plan.md as all its steps were over; None before that, and in older files. As long as the file is
    the same, it need not be read to know that."""

    @property
    def status(self) -> RunStatus:
        statuses = {step.status for step in self.step_executions.values()}
        if statuses and all(status.over for status in statuses):
            return RunStatus.COMPLETED
        return RunStatus.FAILED if StepStatus.FAILED in statuses else RunStatus.IN_PROGRESS

    @property
    def done(self) -> int:
        """The number of steps that are over."""
        return sum(step.status.over for step in self.step_executions.values())

    @property
    def known_steps(self) -> dict[int, StepExecution]:
        """Those of the plan, and those that were in it."""
        return {**self.former_steps, **self.step_executions}

    @property
    def begun(self) -> frozenset[int]:
        """The steps that are over, failed or under way: files may be as they left them."""
        return frozenset(n for n, step in self.known_steps.items() if step.status is not StepStatus.PENDING)

    @property
    def over(self) -> frozenset[int]:
        return frozenset(number for number, step in self.known_steps.items() if step.status.over)

    @property
    def is_of_earlier_version(self) -> bool:
        """Whether it was read from the file of a tool that did not keep the words of what it had done."""
        over = (step for step in self.step_executions.values() if step.status.over)
        return any(step.title is None and step.reason is None for step in over)  # that of skipped steps was always kept

    def of(self, number: int) -> StepExecution:
        return self.step_executions.get(number) or self.former_steps.get(number) or StepExecution(step_number=number)

    def with_steps(self, numbers: Iterable[int]) -> Self:
        """The same state with an entry for every step of the plan, in the plan's order, and for no other."""
        known = self.known_steps
        numbers = tuple(numbers)
        folders = {step.folder for step in known.values()}
        free = max((*folders, *known, *numbers), default=0) + 1
        entries = dict[int, StepExecution]()
        for number in numbers:
            entry = known.pop(number, None)
            if entry is None and number in folders:  # an earlier step's record is there
                entry, free = StepExecution(step_number=number, recorded_as=free), free + 1
            entries[number] = entry or StepExecution(step_number=number)
        return replace(self, step_executions=entries, former_steps=known)

    def renumbered(self, numbers: Mapping[int, int]) -> Self:
        """The same state where the steps that were begun have other numbers; their record stays where it is."""

        def moved(step: StepExecution, number: int) -> StepExecution:
            return replace(step, step_number=number, recorded_as=step.folder)

        if all(old == new for old, new in numbers.items()):
            return self
        known = self.known_steps
        entries = {new: known[old] if old == new else moved(known[old], new) for old, new in numbers.items()}
        now = {step.folder: step.step_number for step in entries.values()}
        undone = tuple(
            replace(undo, steps=tuple(moved(step, now.get(step.folder, step.step_number)) for step in undo.steps))
            for undo in self.undone
        )
        return replace(self, step_executions=entries, former_steps={}, undone=undone)

    def started(self, step: PlanStep, now: datetime, *, attempt: int) -> Self:
        """Nothing that was undone before can be done again from here on: the files go another way."""
        previous = self.of(step.number)
        fresh = previous.started_at if previous.status is StepStatus.IN_PROGRESS else now
        entry = StepExecution(
            step_number=step.number,
            title=step.title,
            fingerprint=fingerprint(step),
            status=StepStatus.IN_PROGRESS,
            started_at=fresh or now,
            attempts=attempt,
            taken_back=previous.taken_back,
            forgotten=previous.forgotten,
            recorded_as=previous.recorded_as,
            costs=previous.spent,
        )
        return replace(self._with(entry), started_at=self.started_at or now, completed_at=None, undone=())

    def completed(
        self,
        number: int,
        now: datetime,
        verification: Verification,
        files: Files,
        commit: str | None = None,
        evidence: Evidence | None = None,
    ) -> Self:
        seen = {"verification": verification, "evidence": evidence}
        return self._ended(number, now, files, status=StepStatus.COMPLETED, error=None, commit=commit, **seen)

    def failed(
        self,
        number: int,
        now: datetime,
        error: str,
        files: Files = NO_FILES,
        insufficient: Verification | None = None,
        evidence: Evidence | None = None,
    ) -> Self:
        """The files are those that the failed attempt left behind, for the person to look at."""
        seen = {"insufficient": insufficient, "evidence": evidence}
        return self._ended(number, now, files, status=StepStatus.FAILED, error=error, **seen)

    def skipped(self, step: PlanStep, now: datetime, reason: str, files: Files = NO_FILES) -> Self:
        """The files are those that were kept of a failed attempt. What was undone before cannot be done again."""
        words = {"title": step.title, "fingerprint": fingerprint(step)}
        ended = self._ended(step.number, now, files, status=StepStatus.SKIPPED, reason=reason, **words)
        return replace(ended, undone=())

    def restore(self, number: int) -> Self:
        """An interrupted step is pending again: it left no trace. Its attempt goes on under the same number."""
        before = self.of(number)
        kept = ("title", "fingerprint", "attempts", "taken_back", "forgotten", "recorded_as", "costs")
        return self._with(StepExecution(number, **{name: getattr(before, name) for name in kept}))

    def with_costs(self, costs: Mapping[int, Cost], *, instead: bool = False) -> Self:
        """With what was spent on steps, by the numbers of their folders: beside what is known, or `instead` of it."""
        after = self
        for step in self.known_steps.values() if costs else ():
            if cost := costs.get(step.folder):
                cost = cost if instead else step.spent + cost
                after = after._with(replace(step, costs=cost))
        return after

    def forgot(self, number: int) -> Self:
        """Later attempts at this step are not told of those before."""
        step = self.of(number)
        return self._with(replace(step, forgotten=step.attempts))

    def settled(self) -> tuple[StepExecution, ...]:
        """The steps that are over or failed, in the order in which that came about."""
        settled = (step for step in self.known_steps.values() if step.completed_at)
        return tuple(sorted(settled, key=lambda step: (step.place, _instant(step.completed_at))))

    def interrupted(self) -> tuple[StepExecution, ...]:
        """The steps that were begun and are pending, of which something may be left."""
        return tuple(step for step in self.known_steps.values() if step.status is StepStatus.PENDING and step.standing)

    def undo(self, steps: Sequence[StepExecution], undo_id: str) -> Self:
        """These steps are pending again; `redo` brings them back."""
        after = self
        for step in steps:
            kept = {name: getattr(step, name) for name in ("title", "fingerprint", "recorded_as", "costs")}
            n = step.attempts
            after = after._with(StepExecution(step.step_number, **kept, attempts=n, taken_back=n, forgotten=n))
        return replace(after, undone=(*self.undone, Undo(undo_id, tuple(steps))), completed_at=None)

    def redo(self) -> Self:
        """The steps that were undone last are what they were."""
        *others, last = self.undone
        after = self
        for step in last.steps:
            after = after._with(replace(step, costs=self.of(step.step_number).spent))
        done = max((step.completed_at for step in last.steps), default=None, key=_instant)
        completed_at = done if after.status is RunStatus.COMPLETED else None
        return replace(after, undone=tuple(others), completed_at=completed_at)

    def _ended(self, number: int, now: datetime, files: Files, **update: Any) -> Self:
        update |= {f"files_{kind}": getattr(files, kind) for kind in ("created", "modified", "deleted")}
        update |= {"completed_at": now, "place": max((step.place for step in self.known_steps.values()), default=0) + 1}
        after = self._with(replace(self.of(number), **update))
        return replace(after, completed_at=now if after.status is RunStatus.COMPLETED else None)

    def _with(self, step: StepExecution) -> Self:
        place = "former_steps" if step.step_number in self.former_steps else "step_executions"
        return replace(self, **{place: {**getattr(self, place), step.step_number: step}})

    def to_json(self) -> bytes:
        """The promised keys first, in their order; then whatever else the file held."""
        data = _laid_out(replace(self, step_executions={}, former_steps={}, undone=())) | {
            "status": self.status.value,
            "former_steps": {number: _laid_out(step) for number, step in self.former_steps.items()},
            "undone": [
                {"id": undo.id, "steps": [_laid_out(step) for step in undo.steps]} | undo.more for undo in self.undone
            ],
        }
        for key in ("former_steps", "undone", "done_plan"):
            if not data[key]:
                del data[key]
        whole = as_json({key: data[key] for key in _PROMISED} | data, indent=2) + b"\n"
        if not self.step_executions:
            return whole
        before, _, after = whole.partition(_NO_STEPS)
        steps = b",\n    ".join(step.json for step in self.step_executions.values())
        return b"".join((before, b'"step_executions": {\n    ', steps, b"\n  }", after))

    @classmethod
    def from_json(cls, data: bytes, source: str) -> Self:
        """Raises `StateUnreadable`, with `source` as the file's name, where anything that is promised is missing."""
        try:
            state, content = from_json(data, cls), from_json(data, dict[str, Any])
            state = _completed(state, content, *_PROMISED)
            if not isinstance(state.more.pop("status"), str):  # computed from the steps, never believed
                raise ValueError("its `status` is no text")
            return replace(
                state,
                step_executions=_steps(state.step_executions, content["step_executions"]),
                former_steps=_steps(state.former_steps, content.get("former_steps", {})),
                undone=tuple(map(_undo, state.undone, content.get("undone", ()))),
            )
        except ValueError as error:
            raise StateUnreadable(
                f"{source} is not a readable execution state: {error}",
                hint="`cdd exec` sets it aside, and rebuilds it from the run's record where there is one.",
            ) from error


def _completed(record: Kept, content: Mapping[str, Any], *promised: str) -> Kept:
    """The record with what its file says beside what this version knows. Raises `ValueError` where it lacks something
    that is promised."""
    if missing := [key for key in promised if key not in content]:
        raise ValueError(f"`{missing[0]}` is missing")
    known = set(record.__struct_encode_fields__) - {""}
    more = {key: value for key, value in content.items() if key not in known}
    if not _is_shallow(more, _DEEPEST):
        raise ValueError("it is nested too deeply")
    return replace(record, more=more)


def _step(step: StepExecution, content: Mapping[str, Any], *promised: str) -> StepExecution:
    step = _completed(step, content, *promised)
    return step if "spent" in content else replace(step, costs=None)


def _steps(steps: Mapping[int, StepExecution], content: Mapping[str, Any]) -> dict[int, StepExecution]:
    if wrong := [number for number, step in steps.items() if step.step_number != number]:
        raise ValueError(f"under the key {wrong[0]} is another `step_number`")
    return {int(key): _step(steps[int(key)], step, *_PROMISED_OF_STEP) for key, step in content.items()}


def _undo(undo: Undo, content: Mapping[str, Any]) -> Undo:
    return replace(_completed(undo, content), steps=tuple(map(_step, undo.steps, content["steps"])))


def _is_shallow(value: object, levels: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels > 0 and all(_is_shallow(each, levels - 1) for each in inner)


def _laid_out(record: _Record) -> dict[str, Any]:
    """A record as the file has it: UTC as `+00:00`, and what newer versions have added at the end."""
    data: dict[str, Any] = to_builtins(record)
    for key in ("started_at", "completed_at"):
        if moment := data[key]:
            data[key] = moment.replace("Z", "+00:00")
    if data.get("spent", NO_COST) is None:  # of an older file: it still is not known
        del data["spent"]
    more: dict[str, Any] = data.pop("")
    return data | more


def read_state(path: Path, slug: str) -> ExecutionState | None:
    """The state as it was saved, or None when nothing has been run. Raises `StateUnreadable`."""
    data = read_bytes(path)
    if data is None:
        return None
    state = _state_in(data, str(path))
    if state.ticket_slug != slug:
        raise StateUnreadable(f"{path} is the state of another ticket, {state.ticket_slug}")
    return state


@lru_cache(maxsize=4)
def _state_in(data: bytes, source: str) -> ExecutionState:
    """A state is a value: one that is looked at again and again is read once."""
    return ExecutionState.from_json(data, source)


def load_state(path: Path, slug: str, plan: ImplementationPlan) -> ExecutionState | None:
    """The state beside a plan, or None when nothing has been run. Raises `StateUnreadable`, or `BadInput`."""
    state = read_state(path, slug)
    return None if state is None else of_plan(state, plan)


def of_plan(state: ExecutionState, plan: ImplementationPlan) -> ExecutionState:
    """The state with the plan's steps, under the numbers that they have there. Raises `BadInput` if it is the state of
    another plan, or it cannot be told which steps are done."""
    begun = {number: step.known for number, step in state.step_executions.items() if step.was_begun}
    former = {number: step.known for number, step in state.former_steps.items() if step.was_begun}
    over = [number for number, step in state.step_executions.items() if step.status.over]
    return state.renumbered(places(plan, begun, over, former)).with_steps(step.number for step in plan.steps)


def moved_steps(before: ExecutionState, after: ExecutionState) -> dict[int, int]:
    """The steps that have another number now: which it was, and which it is."""
    was, now = ({step.folder: n for n, step in state.known_steps.items()} for state in (before, after))
    moved = {number: now[folder] for folder, number in was.items() if now.get(folder, number) != number}
    return {number: moved[number] for number in sorted(moved) if before.of(number).was_begun}


def with_words_of(state: ExecutionState, plan: ImplementationPlan) -> ExecutionState:
    """The state with what the plan says now of steps that are over without words: it is not known what it said then,
    but from now on."""
    for step in plan.steps:
        known = state.of(step.number)
        if known.status.over and known.title is None:
            words = {"title": step.title, "fingerprint": fingerprint(step)}
            state = state._with(replace(known, **words))
    return state


def changed_steps(plan: ImplementationPlan, state: ExecutionState) -> tuple[int, ...]:
    """The steps that are over, and of which the plan says something else now than when they were carried out."""
    over = ((step, state.of(step.number)) for step in plan.steps if state.of(step.number).status.over)
    return tuple(step.number for step, done in over if not is_unchanged(step, done.known))


def unproven(plan: ImplementationPlan, state: ExecutionState) -> tuple[Unproven, ...]:
    """The steps of which nobody has seen that they are done, in the plan's order."""
    found: list[Unproven] = []
    for step in plan.steps:
        now = state.of(step.number)
        why = now.status if now.status is StepStatus.SKIPPED else now.insufficient or now.verification
        if why not in (None, Verification.PASSED):
            found.append(Unproven(step.number, step.title, why))
    return tuple(found)


def new_state(slug: str, plan: ImplementationPlan) -> ExecutionState:
    """The state of a plan of which nothing has been run."""
    return ExecutionState(ticket_slug=slug).with_steps(step.number for step in plan.steps)


def save_state(state: ExecutionState, *paths: Path) -> None:
    """In each of these files, one after the other."""
    data = state.to_json()
    for path in paths:
        write_atomic(path, data)


def ready(plan: ImplementationPlan, state: ExecutionState) -> PlanStep | None:
    """The first step, in dependency order, that is not over: so all that it depends on are."""
    return next((step for step in plan.order() if not state.of(step.number).status.over), None)


def to_come(plan: ImplementationPlan, state: ExecutionState) -> int:
    """The number of the step to come: the one that is under way, failed, or next; after the last one, one more."""
    step = ready(plan, state)
    return step.number if step is not None else max(step.number for step in plan.steps) + 1


def _instant(moment: datetime | None) -> datetime:
    """For comparing. Older files have times without a zone, and they stay so in the file."""
    if moment is None:
        return datetime.min.replace(tzinfo=UTC)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
