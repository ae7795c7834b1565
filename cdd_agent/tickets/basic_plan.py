"""A plan without a model: one step for each acceptance criterion, to be filled in by hand."""

from collections.abc import Collection

from cdd_agent.tickets.plan import ImplementationPlan
from cdd_agent.tickets.plan_step import PlanStep
from cdd_agent.tickets.spec import TicketSpec

MARK = "**Basic plan**, made from the acceptance criteria without a model: nobody has looked at the project for it."
_LONGEST_TITLE = 70


def basic_plan(spec: TicketSpec, slug: str, *, first: int = 1, served: Collection[int] = ()) -> ImplementationPlan:
    """Each step after the one before it, without files and checks: `cdd plan check` names what to fill in.

    `first` is the first step's number; criteria that are `served` already get none.
    """
    open_criteria = [(n, text) for n, text in enumerate(spec.acceptance_criteria, 1) if n not in served]
    steps = []
    for number, (criterion_number, criterion) in enumerate(open_criteria, first):
        title = " ".join(criterion.split())
        if len(title) > _LONGEST_TITLE:
            title = title[:_LONGEST_TITLE].rpartition(" ")[0] + " …"
        description = f"Make this true, with a test that shows it: {criterion}"
        needs = (number - 1,) if number > first else ()
        steps.append(PlanStep(number, title.rstrip("."), description, dependencies=needs, serves=(criterion_number,)))
    return ImplementationPlan(
        ticket_slug=slug,
        ticket_title=spec.title,
        ticket_type=spec.type.value,
        overview=f"{MARK} Give each step its files and its check before it is carried out.\n\n{spec.description}",
        steps=tuple(steps),
        risks=("No step names its files: a model is not shown any of them until they are named.",),
    )
