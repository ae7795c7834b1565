"""A model's answers when it plans: questions, a whole plan, or changes of one; and what
is wrong with them.
"""

from collections.abc import Callable
from typing import Annotated

from msgspec import Meta, Struct

from cdd_agent.agents.plan_desk import PlanDesk, Present
from cdd_agent.errors import BadInput
from cdd_agent.tickets.plan import ImplementationPlan, Problem
from cdd_agent.tickets.plan_changes import ChangeRefused, change_plan, replace_plan
from cdd_agent.tickets.plan_draft import PlanChanges, PlanDraft
from cdd_agent.tickets.spec import TicketSpec

MOST_QUESTIONS = 3


class PlanQuestion(Struct, frozen=True, forbid_unknown_fields=True):
    question: Annotated[str, Meta(min_length=1)]
    why: Annotated[
        str,
        Meta(
            min_length=1,
            description="What would be different in the plan, by the answer.",
        ),
    ]


class _Reply(Struct, frozen=True, forbid_unknown_fields=True):
    questions: Annotated[
        tuple[PlanQuestion, ...],
        Meta(
            max_length=MOST_QUESTIONS,
            description="Instead of a plan, if you cannot plan without the answers.",
        ),
    ] = ()


class PlanReply(_Reply, frozen=True):
    """Questions or a whole plan."""

    plan: PlanDraft | None = None

    def __post_init__(self) -> None:
        if bool(self.questions) == (self.plan is not None):
            raise ValueError("give either `questions` or `plan`")


class ChangeReply(_Reply, frozen=True):
    """Questions or the changes."""

    changes: PlanChanges | None = None

    def __post_init__(self) -> None:
        if bool(self.questions) == (self.changes is not None):
            raise ValueError("give either `questions` or `changes`")


class ReplyJudge:
    """Finds what is wrong with a reply beyond its form: by the rules of plans, and by
    compiling it.
    """

    def __init__(
        self,
        desk: PlanDesk,
        spec: TicketSpec,
        present: Present,
        base: ImplementationPlan | None,
        text_with: Callable[[ImplementationPlan], str],
        questions_left: int | None,
    ) -> None:
        """`base` is the plan that is to be changed, None where one is made; `text_with`
        raises `BadInput` for a plan that cannot be written; without `questions_left`
        there is nobody to answer any.
        """
        self._desk, self._spec, self._present, self._base = desk, spec, present, base
        self._text_with, self._questions_left = text_with, questions_left
        self._known = (
            {_told(problem) for problem in self._found(base)}
            if base
            else set[tuple[str, str]]()
        )
        """Problems that were there before, which nobody asked the model to see to; and
        warnings that it was told.
        """

    def _found(self, plan: ImplementationPlan) -> list[Problem]:
        found = self._desk.problems(plan, self._spec, self._present)
        return [
            problem
            for problem in found
            if problem.step not in self._present.fixed.completed
        ]

    def problems(self, reply: PlanReply | ChangeReply) -> list[str]:
        """Of each warning it is told only once: it may be meant."""
        left = self._questions_left
        if reply.questions and left is None:
            return [
                (
                    "Nobody can answer questions now: decide, and write each assumption"
                    " into `risks`."
                )
            ]
        if reply.questions and left is not None:
            is_too_much = len(reply.questions) > left
            return [
                (
                    f"You may ask {left or 'no'} more: decide the rest, and write it"
                    " into `risks`."
                )
            ] * is_too_much
        try:
            plan = self.plan_of(reply)
            self._text_with(plan)
        except ChangeRefused as refusal:
            return str(refusal).splitlines()
        except BadInput as refusal:
            return [
                (
                    f"{refusal.message}: leave alone what need not be different, such"
                    " as overview and risks"
                )
            ]
        new = [
            problem
            for problem in self._found(plan)
            if _told(problem) not in self._known
        ]
        self._known |= {_told(problem) for problem in new if problem.is_warning}
        return [problem.text for problem in new]

    def plan_of(self, reply: PlanReply | ChangeReply) -> ImplementationPlan:
        """Raises `ChangeRefused`."""
        present = self._present
        match reply:
            case PlanReply(plan=PlanDraft() as draft):
                new = draft.to_plan(self._spec, self._desk.ticket.slug)
                return (
                    replace_plan(present.plan, new, present.fixed)
                    if present.plan
                    else new
                )
            case ChangeReply(changes=PlanChanges() as changes):
                assert self._base is not None
                return change_plan(
                    self._base, changes, present.fixed.with_numbers_of(self._base)
                )
            case _:
                raise AssertionError("a reply without questions has a plan or changes")


def _told(problem: Problem) -> tuple[str, str]:
    return problem.kind, problem.text
