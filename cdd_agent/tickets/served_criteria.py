"""Acceptance criteria that a run's steps serve, by digests of their words. When the
spec is edited, evidence stays with the words it was for.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from difflib import SequenceMatcher

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.tickets.criteria import criteria_digests, find_criteria
from cdd_agent.tickets.placeholders import is_placeholder
from cdd_agent.tickets.plan import ImplementationPlan, PlanStep
from cdd_agent.tickets.state import ExecutionState, StepExecution
from cdd_agent.tickets.status import (
    CriterionEdit,
    EditedCriterion,
    RunStatus,
    StepStatus,
    Verification,
)


class CriterionStanding(Struct, frozen=True):
    """A current criterion, with the run's evidence."""

    place: int
    """From 1."""
    text: str
    steps: tuple[int, ...] = ()
    """Numbers of steps that served or will serve its words, in run order; in plan order
    if the plan has errors.
    """
    was_for_all: bool = False
    """True if no step named a criterion, all were over, and one began with these
    words.
    """
    edit: CriterionEdit | None = None
    """None if the run knows its words, or a step will serve them."""


# Notes in the state


def begin_step(
    state: ExecutionState,
    plan: ImplementationPlan,
    step: PlanStep,
    criteria: Sequence[str],
) -> ExecutionState:
    """Begin a step with the words that it serves: all criteria, if no step names
    any.
    """
    serves = _to_begin_with(step, state, criteria)
    is_for_all = not _names_criteria(plan)
    return _begun(state, step.number, serves, criteria, is_for_all=is_for_all)


def skip_step(
    state: ExecutionState, step: PlanStep, criteria: Sequence[str]
) -> ExecutionState:
    """Skip a step, with the words it would have served, and no others."""
    serves = _to_begin_with(step, state, criteria)
    return _begun(state, step.number, serves, criteria, is_for_all=False)


def note_numbers(
    state: ExecutionState, plan: ImplementationPlan, criteria: Sequence[str]
) -> ExecutionState:
    """Record the words that numbers in pending steps mean: a number keeps its meaning
    when criteria move.
    """
    if not state.criteria:
        return state
    steps = dict(state.step_executions)
    for step in plan.steps:
        entry = state.step(step.number)
        if _has_begun(entry) or not any(isinstance(ref, int) for ref in step.serves):
            continue
        serves = _pending_serves(step, entry, criteria)
        if serves != entry.serves:
            steps[step.number] = replace(entry, serves=serves)
    return replace(state, step_executions=steps)


def adopt_criteria(
    state: ExecutionState, plan: ImplementationPlan, criteria: Sequence[str]
) -> ExecutionState:
    """In a state of an earlier version, assume that the current words are known and
    were served.
    """
    if state.criteria or not state.has_begun:
        return state
    is_for_all = not _names_criteria(plan)

    def adopt(entry: StepExecution) -> StepExecution:
        if not _has_begun(entry):
            return entry
        step = plan.step(entry.step_number)
        # A former step may return to the plan, which then says what it serves.
        serves = _find_digests(step, criteria) if step else None
        return replace(
            entry, serves=serves, spec_version=0, is_for_all=is_for_all and bool(step)
        )

    undone = []
    for undo in state.undone:
        undone.append(replace(undo, steps=tuple(map(adopt, undo.steps))))
    return replace(
        state,
        criteria=(criteria_digests(tuple(criteria)),),
        step_executions={n: adopt(e) for n, e in state.step_executions.items()},
        former_steps={n: adopt(e) for n, e in state.former_steps.items()},
        undone=tuple(undone),
    )


# The criteria that steps serve


def served_digests(
    step: PlanStep, state: ExecutionState | None, criteria: Sequence[str]
) -> dict[str, str]:
    """Return reference → digest of the words, for references that name a criterion."""
    entry = state.step(step.number) if state else StepExecution(step.number)
    if _has_begun(entry):
        serves = _begun_serves(step, entry, state, criteria)
    else:
        serves = _pending_serves(step, entry, criteria)
    return {ref: digest for ref, digest in serves.items() if digest is not None}


def places_of_step(
    step: PlanStep, state: ExecutionState | None, criteria: Sequence[str]
) -> frozenset[int]:
    """Return the places, from 1, that a step serves."""
    if not step.serves:
        return frozenset()
    served = set(served_digests(step, state, criteria).values())
    digests = criteria_digests(tuple(criteria))
    return frozenset(
        place for place, digest in enumerate(digests, 1) if digest in served
    )


def digests_of_step(
    step: PlanStep,
    plan: ImplementationPlan,
    state: ExecutionState,
    criteria: Sequence[str],
) -> tuple[str, ...]:
    """Return digests of the words that a step serves or will begin with: all, if no
    step names any.
    """
    if _names_criteria(plan):
        digests = set(served_digests(step, state, criteria).values())
    else:
        digests = set(criteria_digests(tuple(criteria)))
    return tuple(sorted(digests))


def find_standings(
    plan: ImplementationPlan, state: ExecutionState | None, criteria: Sequence[str]
) -> tuple[CriterionStanding, ...]:
    """Return every criterion with the steps that serve its words."""
    digests = criteria_digests(tuple(criteria))
    serving: dict[str, list[int]] = {}
    for step in plan.steps if plan.errors else plan.order():
        for digest in dict.fromkeys(served_digests(step, state, criteria).values()):
            serving.setdefault(digest, []).append(step.number)
    for_all = _digests_for_all(state) if state and _was_over(state) else {}
    edits = _find_edits(plan, state, digests, serving) if state else {}
    standings = []
    for place, (text, digest) in enumerate(zip(criteria, digests, strict=True), 1):
        steps = tuple(serving.get(digest, ()))
        edit = None
        if not steps and not is_placeholder(text):
            edit = edits.get(place)
        was_for_all = digest in for_all
        standings.append(CriterionStanding(place, text, steps, was_for_all, edit))
    return tuple(standings)


def edited_criteria(
    plan: ImplementationPlan, state: ExecutionState | None, criteria: Sequence[str]
) -> tuple[EditedCriterion, ...]:
    """Return new or changed criteria that no step serves."""
    edited = []
    for standing in find_standings(plan, state, criteria):
        if standing.edit:
            edited.append(EditedCriterion(standing.place, standing.text, standing.edit))
    return tuple(edited)


def _has_begun(entry: StepExecution) -> bool:
    """True if the step is over or in progress. A failed step will begin again."""
    return entry.status.is_over or entry.status is StepStatus.IN_PROGRESS


def _begun_serves(
    step: PlanStep,
    entry: StepExecution,
    state: ExecutionState | None,
    criteria: Sequence[str],
) -> Mapping[str, str | None]:
    """Return the words that a step began with. If the plan now names others, they count
    if the spec had them then.
    """
    noted = entry.serves
    if noted is not None and noted.keys() == {str(ref) for ref in step.serves}:
        return noted
    digests = _find_digests(step, criteria)
    if state is None or entry.spec_version is None:
        return digests
    criteria_then = state.criteria[entry.spec_version]
    return {
        ref: digest if digest in criteria_then else None
        for ref, digest in digests.items()
    }


def _pending_serves(
    step: PlanStep, entry: StepExecution, criteria: Sequence[str]
) -> dict[str, str | None]:
    """Return the words that a step will serve. Its numbers keep their first meaning
    while the spec has these words. If the plan changes the numbers, all of them refer
    to the current spec.
    """
    serves = _find_digests(step, criteria)
    noted = entry.serves or {}
    numbers = {str(ref) for ref in step.serves if isinstance(ref, int)}
    if numbers != {ref for ref in noted if ref.isascii() and ref.isdecimal()}:
        return serves
    digests = criteria_digests(tuple(criteria))
    for ref in numbers:
        if noted[ref] in digests:
            serves[ref] = noted[ref]
    return serves


def _find_digests(step: PlanStep, criteria: Sequence[str]) -> dict[str, str | None]:
    """Return reference → digest, or None if the reference names no criterion."""
    if not step.serves:
        return {}
    digests = criteria_digests(tuple(criteria))
    places = find_criteria(step.serves, criteria)
    digests_by_reference: dict[str, str | None] = {}
    for ref in step.serves:
        digests_by_reference[str(ref)] = (
            digests[places[ref] - 1] if ref in places else None
        )
    return digests_by_reference


def _to_begin_with(
    step: PlanStep, state: ExecutionState, criteria: Sequence[str]
) -> dict[str, str | None]:
    return _pending_serves(step, state.step(step.number).to_pending(), criteria)


def _begun(
    state: ExecutionState,
    number: int,
    serves: dict[str, str | None],
    criteria: Sequence[str],
    *,
    is_for_all: bool,
) -> ExecutionState:
    digests = criteria_digests(tuple(criteria))
    if digests not in state.criteria:
        state = replace(state, criteria=(*state.criteria, digests))
    entry = replace(
        state.step(number),
        serves=serves,
        spec_version=state.criteria.index(digests),
        is_for_all=is_for_all,
    )
    return replace(state, step_executions={**state.step_executions, number: entry})


def _names_criteria(plan: ImplementationPlan) -> bool:
    return any(step.serves for step in plan.steps)


# Edited criteria


def _find_edits(
    plan: ImplementationPlan,
    state: ExecutionState,
    digests: Sequence[str],
    served: Container[str],
) -> dict[int, CriterionEdit]:
    """Return place → edit, for criteria unknown to the run.

    A criterion in place of vanished words was changed. While a step will serve all
    criteria, none is unknown.
    """
    if not state.criteria or _will_serve_all(plan, state):
        return {}
    first = state.criteria[0]
    common = set(first).intersection(*state.criteria)
    common.update(_digests_for_all(state))
    edits = {}
    for place, digest in enumerate(digests, 1):
        if digest not in common:
            is_back = digest in first
            edits[place] = CriterionEdit.CHANGED if is_back else CriterionEdit.NEW
    verified = _verified_digests(state)
    for place, former in _find_replaced(state, digests, served).items():
        if former in verified:
            edits[place] = CriterionEdit.CHANGED_SINCE_VERIFIED
        else:
            edits[place] = CriterionEdit.CHANGED
    return edits


def _find_replaced(
    state: ExecutionState, digests: Sequence[str], served: Container[str]
) -> dict[int, str]:
    """Return place → vanished words, where the current words are new to all steps and
    earlier specs.
    """
    former = list(dict.fromkeys([*state.criteria[0], *_begun_digests(state)]))
    replaced = {}
    matcher = SequenceMatcher(None, former, digests, autojunk=False)
    for _, start, stop, new_start, new_stop in matcher.get_opcodes():
        gone = [digest for digest in former[start:stop] if digest not in digests]
        for index in range(new_start, new_stop):
            is_unknown = digests[index] not in former and digests[index] not in served
            if gone and is_unknown:
                replaced[index + 1] = gone.pop(0)
    return replaced


def _was_over(state: ExecutionState) -> bool:
    return state.status is RunStatus.COMPLETED or state.done_plan is not None


def _will_serve_all(plan: ImplementationPlan, state: ExecutionState) -> bool:
    if _names_criteria(plan):
        return False
    return any(not _has_begun(state.step(step.number)) for step in plan.steps)


def _begun_digests(state: ExecutionState) -> dict[str, None]:
    entries = state.step_executions.values()
    return _join_digests(state, filter(_has_begun, entries))


def _digests_for_all(state: ExecutionState) -> dict[str, None]:
    entries = state.step_executions.values()
    for_all = [entry for entry in entries if entry.is_for_all and _has_begun(entry)]
    return _join_digests(state, for_all)


def _verified_digests(state: ExecutionState) -> dict[str, None]:
    entries = state.step_executions.values()
    verified = [entry for entry in entries if entry.verification is Verification.PASSED]
    return _join_digests(state, verified)


def _join_digests(
    state: ExecutionState, entries: Iterable[StepExecution]
) -> dict[str, None]:
    digests: dict[str, None] = {}
    for entry in entries:
        if entry.is_for_all and entry.spec_version is not None:
            digests |= dict.fromkeys(state.criteria[entry.spec_version])
        for digest in (entry.serves or {}).values():
            if digest is not None:
                digests[digest] = None
    return digests
