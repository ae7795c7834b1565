"""The acceptance criteria that the steps of a run served, kept by the digests of their
words. When the spec is edited, evidence stays with the words that it was for.
"""

from collections.abc import Collection, Iterable, Sequence
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
    StepStatus,
    Verification,
)


class CriterionStanding(Struct, frozen=True):
    """A criterion of the spec as it is now, in the light of the run."""

    place: int
    """From 1."""
    text: str
    steps: tuple[int, ...] = ()
    """The numbers of the steps that served its words, or are to serve it, in the order
    in which they run; in a plan with errors, in its own order.
    """
    edit: CriterionEdit | None = None
    """None if the run knows its words, or a step is to serve them."""


def note_criteria(
    state: ExecutionState, plan: ImplementationPlan, criteria: Sequence[str]
) -> ExecutionState:
    """Return the state with the criteria that each step serves, and with those that the
    run knows.
    """
    steps = dict(state.step_executions)
    for number, serves in served_digests(plan, state, criteria).items():
        steps[number] = replace(state.step(number), serves=serves)
    state = replace(state, step_executions=steps)
    if state.started_at is None:
        return state
    return replace(state, criteria=_known_criteria(state, criteria))


def begin_step(
    state: ExecutionState,
    plan: ImplementationPlan,
    step: PlanStep,
    criteria: Sequence[str],
) -> ExecutionState:
    """Return the state for a step that begins now, or is skipped, for the criteria as
    they are now. Where no step of the plan names a criterion, it is for all of them.
    """
    entry = state.step(step.number).to_pending()
    serves = _find_served(step, entry, criteria, state.criteria)
    begun = replace(state.step(step.number), serves=serves)
    steps = {**state.step_executions, step.number: begun}
    known = state.criteria
    if known is not None and not _names_criteria(plan):
        known = _joined(known, criteria_digests(tuple(criteria)))
    return replace(state, step_executions=steps, criteria=known)


def served_digests(
    plan: ImplementationPlan, state: ExecutionState | None, criteria: Sequence[str]
) -> dict[int, dict[str, str]]:
    """Return, by the number of each step, the criteria that it serves: by the reference
    in the plan, the digest of the criterion. References that name none are left out.
    """
    served = {}
    for step in plan.steps:
        entry = state.step(step.number) if state else StepExecution(step.number)
        known = state.criteria if state else None
        served[step.number] = _find_served(step, entry, criteria, known)
    return served


def find_standings(
    plan: ImplementationPlan, state: ExecutionState | None, criteria: Sequence[str]
) -> tuple[CriterionStanding, ...]:
    """Return every criterion of the spec with the steps that serve its words."""
    digests = criteria_digests(tuple(criteria))
    served = served_digests(plan, state, criteria)
    serving: dict[str, list[int]] = {}
    for step in plan.steps if plan.errors else plan.order():
        for digest in dict.fromkeys(served[step.number].values()):
            serving.setdefault(digest, []).append(step.number)
    edits = _find_edits(state, digests) if state else {}
    standings = []
    for place, (text, digest) in enumerate(zip(criteria, digests, strict=True), 1):
        steps = tuple(serving.get(digest, ()))
        edit = None
        if not steps and not is_placeholder(text):
            edit = edits.get(place)
        standings.append(CriterionStanding(place, text, steps, edit))
    return tuple(standings)


def edited_criteria(
    plan: ImplementationPlan, state: ExecutionState | None, criteria: Sequence[str]
) -> tuple[EditedCriterion, ...]:
    """Return the criteria that are new or were changed, and that no step serves."""
    edited = []
    for standing in find_standings(plan, state, criteria):
        if standing.edit:
            edited.append(EditedCriterion(standing.place, standing.text, standing.edit))
    return tuple(edited)


def _find_served(
    step: PlanStep,
    entry: StepExecution,
    criteria: Sequence[str],
    known: Collection[str] | None,
) -> dict[str, str]:
    """Return the digest of the criterion that each reference of a step means.

    A step that began serves the words with which it began. A reference that the plan
    got later counts for it only if the run knew the words. Any other step follows the
    words that its reference meant first, while the spec has them.
    """
    digests = criteria_digests(tuple(criteria))
    has_begun = entry.status.is_over or entry.status is StepStatus.IN_PROGRESS
    is_noted = has_begun and entry.serves is not None
    before = entry.serves or {}
    places = find_criteria(step.serves, criteria)
    served = {}
    for ref in step.serves:
        noted = before.get(str(ref))
        if noted and (has_begun or noted in digests):
            served[str(ref)] = noted
        elif ref in places:
            digest = digests[places[ref] - 1]
            if not is_noted or known is None or digest in known:
                served[str(ref)] = digest
    return served


def _names_criteria(plan: ImplementationPlan) -> bool:
    return any(step.serves for step in plan.steps)


def _known_criteria(state: ExecutionState, criteria: Sequence[str]) -> tuple[str, ...]:
    """Return the digests of the criteria that the run knows: those that the spec had
    when it began, and those that a step has served since.
    """
    known = state.criteria
    if known is None:
        known = criteria_digests(tuple(criteria))
    for entry in state.step_executions.values():
        if entry.status is not StepStatus.PENDING and entry.serves:
            known = _joined(known, entry.serves.values())
    return known


def _joined(known: Iterable[str], more: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*known, *more]))


def _find_edits(
    state: ExecutionState, digests: Sequence[str]
) -> dict[int, CriterionEdit]:
    """Return what happened to the criteria that the run does not know, by their places.

    One that stands where the spec had other words, which are gone, was changed.
    """
    if state.criteria is None:
        return {}
    known = state.criteria
    verified = _verified_digests(state)
    edits = {}
    matcher = SequenceMatcher(None, known, digests, autojunk=False)
    for _, start, stop, new_start, new_stop in matcher.get_opcodes():
        gone = [digest for digest in known[start:stop] if digest not in digests]
        for index in range(new_start, new_stop):
            if digests[index] in known:
                continue
            if not gone:
                edits[index + 1] = CriterionEdit.NEW
            elif gone.pop(0) in verified:
                edits[index + 1] = CriterionEdit.CHANGED_SINCE_VERIFIED
            else:
                edits[index + 1] = CriterionEdit.CHANGED
    return edits


def _verified_digests(state: ExecutionState) -> set[str]:
    verified: set[str] = set()
    for entry in state.step_executions.values():
        if entry.verification is Verification.PASSED:
            verified.update((entry.serves or {}).values())
    return verified
