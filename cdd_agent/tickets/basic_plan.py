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
    steps = tuple(
        PlanStep(
            number,
            title=_title(criterion),
            description=f"Make this true, with a test that shows it: {criterion}",
            dependencies=(number - 1,) if number > first else (),
            serves=(criterion_number,),
        )
        for number, (criterion_number, criterion) in enumerate(open_criteria, first)
    )
    return ImplementationPlan(
        ticket_slug=slug,
        ticket_title=spec.title,
        ticket_type=spec.type.value,
        overview=f"{MARK} Give each step its files and its check before it is carried out.\n\n{spec.description}",
        steps=steps,
        risks=("No step names its files: a model is not shown any of them until they are named.",),
    )


def _title(criterion: str) -> str:
    line = " ".join(criterion.split())
    if len(line) <= _LONGEST_TITLE:
        return line.rstrip(".")
    return line[:_LONGEST_TITLE].rpartition(" ")[0] + " …"
