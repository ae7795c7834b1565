"""The Planner model's answers and their problems. msgspec puts the docstrings of the
reply classes into the schema that the model receives.
"""

from collections.abc import Callable
from typing import Annotated

from msgspec import Meta, Struct

from cdd_agent.agents.plan_desk import PlanDesk, Present
from cdd_agent.errors import BadInput
from cdd_agent.tickets.plan import ImplementationPlan, Problem
from cdd_agent.tickets.plan_changes import (
    ChangeRefused,
    FixedSteps,
    change_plan,
    name_served_criteria,
    replace_plan,
)
from cdd_agent.tickets.plan_draft import PlanChanges, PlanDraft
from cdd_agent.tickets.plan_writer import write_plan
from cdd_agent.tickets.spec import TicketSpec

MOST_QUESTIONS = 3


class PlanQuestion(Struct, frozen=True, forbid_unknown_fields=True):
    question: Annotated[str, Meta(min_length=1)]
    why: Annotated[
        str,
        Meta(min_length=1, description="How the answer would change the plan."),
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
    """Finds problems that the reply's type cannot express: broken rules, and problems
    of the compiled plan.
    """

    def __init__(
        self,
        desk: PlanDesk,
        spec: TicketSpec,
        present: Present,
        base: ImplementationPlan | None,
        text_with: Callable[[ImplementationPlan], str],
        remaining_questions: int | None,
    ) -> None:
        """`base` is the plan to change; None for a new plan. `text_with` raises
        `BadInput` if a plan cannot be written. `remaining_questions` is None if no one
        can answer.
        """
        self._desk = desk
        self._spec = spec
        self._present = present
        self._base = base
        self._text_with = text_with
        self._remaining_questions = remaining_questions
        # Progress by the numbers that the model knows.
        shown = base or present.plan or ImplementationPlan()
        self._state = present.state_in(shown)
        self._completed = {step.number for step in present.fixed.completed_steps(shown)}
        # Earlier problems of the plan, which the model need not solve, and warnings
        # that it has received.
        self._known: set[tuple[str, str]] = set()
        if base:
            self._known.update(map(_key, self._find_problems(base)))

    def problems(self, reply: PlanReply | ChangeReply) -> list[str]:
        """Return the problems for the model, with step numbers. Each warning is
        returned once, because it may be about something intended.
        """
        if reply.questions:
            return self._problems_of_questions(len(reply.questions))
        try:
            self._text_with(self.plan_of(reply))
            drafted = self._drafted_plan(reply)
        except ChangeRefused as refusal:
            return str(refusal).splitlines()
        except BadInput as refusal:
            return [
                (
                    f"{refusal.message}: leave alone what need not change, such as"
                    " overview and risks"
                )
            ]
        new = []
        for problem in self._find_problems(drafted):
            if _key(problem) not in self._known:
                new.append(problem)
        self._known.update(_key(problem) for problem in new if problem.is_warning)
        return [problem.text for problem in new]

    def plan_of(self, reply: PlanReply | ChangeReply) -> ImplementationPlan:
        """Return the proposed plan. Raises `ChangeRefused`."""
        present = self._present
        return self._apply(reply, present.plan, self._base, present.fixed)

    def _drafted_plan(self, reply: PlanReply | ChangeReply) -> ImplementationPlan:
        present = self._present.plan
        base = self._base
        fixed = self._present.fixed
        if present:
            fixed = fixed.with_plain_labels(base or present)
            present = present.with_plain_labels()
        if base:
            base = base.with_plain_labels()
        return self._apply(reply, present, base, fixed)

    def _apply(
        self,
        reply: PlanReply | ChangeReply,
        present: ImplementationPlan | None,
        base: ImplementationPlan | None,
        fixed: FixedSteps,
    ) -> ImplementationPlan:
        criteria = self._spec.acceptance_criteria
        match reply:
            case PlanReply(plan=PlanDraft() as draft):
                new = draft.to_plan(self._spec, self._desk.ticket.slug, fixed.used_ids)
                plan = replace_plan(present, new, fixed) if present else new
                return name_served_criteria(plan, present, criteria)
            case ChangeReply(changes=PlanChanges() as changes):
                assert base is not None
                plan = change_plan(base, changes, fixed)
                return name_served_criteria(plan, base, criteria)
            case _:
                raise AssertionError("a reply without questions has a plan or changes")

    def _problems_of_questions(self, count: int) -> list[str]:
        remaining = self._remaining_questions
        if remaining is None:
            return [
                (
                    "Nobody can answer questions now: decide, and write each assumption"
                    " into `risks`."
                )
            ]
        if count > remaining:
            allowed = f"{remaining} more" if remaining > 0 else "no more questions"
            text = f"You may ask {allowed}: decide the rest, and write it into `risks`."
            return [text]
        return []

    def _find_problems(self, plan: ImplementationPlan) -> list[Problem]:
        text = write_plan(plan.with_plain_labels())
        read = self._desk.ticket.parse_plan(text)
        problems = self._desk.compile(read, self._spec, self._state)
        return [problem for problem in problems if problem.step not in self._completed]


def _key(problem: Problem) -> tuple[str, str]:
    return problem.kind, problem.text
