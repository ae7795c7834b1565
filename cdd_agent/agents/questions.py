"""The prompt of a question about a run: the ticket, its plan, and how far the run
is.
"""

from collections.abc import Sequence
from pathlib import Path

from cdd_agent.agents.prompt_files import load_prompt
from cdd_agent.dialogue.fitted_prompt import FittedPrompt, PromptPart, fit
from cdd_agent.dialogue.turns import Dialogue
from cdd_agent.llm.port import Message
from cdd_agent.sanitize import fenced
from cdd_agent.tickets.outcome_words import remark_on
from cdd_agent.tickets.plan import ImplementationPlan, PlanStep
from cdd_agent.tickets.plan_writer import write_plan
from cdd_agent.tickets.spec import TicketSpec
from cdd_agent.tickets.state import ExecutionState
from cdd_agent.tickets.status import StepStatus

PLAN_TEXT = "the plan's text"
"""Its name where a prompt had no room for it."""
PLACES = "Places in the code that the question may be about"
MOST_FILES = 6
"""With places."""
_LONGEST_ERROR = 4_000
"""Characters of what a failed step said."""


def about_the_run(
    root: Path,
    spec: TicketSpec,
    plan: ImplementationPlan,
    state: ExecutionState,
    dialogue: Dialogue,
    asked: Sequence[Message],
    places: str = "",
) -> FittedPrompt:
    """The request for a question, the last of those `asked`: with how far the run is,
    `places` in the code, and what else there is room for.

    Raises `BadInput` for a prompt of the project's own that cannot be used.
    """
    *earlier, question = asked
    questions = tuple(message for message in earlier if message.role == "user")
    parts = (
        PromptPart(load_prompt(root, "question")),
        PromptPart(
            f"# The ticket {state.ticket_slug}\n\n{fenced(spec.to_yaml(), 'yaml')}",
            "the ticket's spec",
            rank=1,
        ),
        PromptPart(
            f"# Its plan\n\n{fenced(write_plan(plan), 'markdown')}", PLAN_TEXT, rank=3
        ),
        PromptPart(
            "# The run\n\n" + "\n".join(_step(step, state) for step in plan.steps)
        ),
        PromptPart(places and f"# {PLACES}\n\n{places}", PLACES, rank=4),
        PromptPart(
            tuple(earlier), "earlier questions", rank=4, smaller=[questions, ()]
        ),
        PromptPart((question,)),
    )
    return fit(dialogue, parts, tools=2)


def _step(step: PlanStep, state: ExecutionState) -> str:
    now = state.step(step.number)
    how = now.status.value
    if now.status is StepStatus.COMPLETED:
        how += f", {remark_on(now.outcome, now.evidence) or 'its tests have passed'}"
    lines = [f"- Step {step.label} ({step.title}): {how}"]
    touched = (
        ("created", now.files_created),
        ("changed", now.files_modified),
        ("deleted", now.files_deleted),
    )
    lines += [f"  - {what} {path}" for what, paths in touched for path in paths]
    lines += [f"  - reason: {now.reason}"] if now.reason else []
    lines += [f"  - it failed with: {now.error[:_LONGEST_ERROR]}"] if now.error else []
    return "\n".join(lines)
