"""What is told to a model that answers a question about a run: the ticket, its plan, and how far the run is."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from cdd_agent.agents.prompt_files import load_prompt
from cdd_agent.dialogue.fitted_prompt import FittedPrompt
from cdd_agent.dialogue.token_budget import MARGIN, TokenBudget, for_answers
from cdd_agent.dialogue.turns import Dialogue
from cdd_agent.llm.budget import estimated_prompt
from cdd_agent.llm.port import Message, Request
from cdd_agent.sanitize import fenced
from cdd_agent.tickets.plan import ImplementationPlan
from cdd_agent.tickets.plan_step import PlanStep
from cdd_agent.tickets.spec import TicketSpec
from cdd_agent.tickets.state import ExecutionState

PLAN_TEXT = "the plan's text"
"""Its name where a prompt had no room for it."""
_LONGEST_ERROR = 4_000
"""Characters of what a failed step said."""


def about_the_run(
    root: Path,
    spec: TicketSpec,
    plan: ImplementationPlan,
    state: ExecutionState,
    dialogue: Dialogue,
    asked: Sequence[Message],
) -> FittedPrompt:
    """The request for a question, the last of those `asked`: with how far the run is, and what else there is room for.

    Raises `BadInput` for a prompt of the project's own that cannot be used.
    """
    prompt, window = load_prompt(root, "question"), dialogue.model.window
    run = "# The run\n\n" + "\n".join(_step(step, state) for step in plan.steps)
    *earlier, question = asked
    needed = replace(dialogue, tools=()).size((Message("system", f"{prompt}\n\n{run}"), question))
    room = TokenBudget(window, needed + MARGIN)

    ticket = room.part(f"# The ticket {state.ticket_slug}\n\n{fenced(spec.to_yaml(), 'yaml')}", "the ticket's spec")
    equipped = dialogue.with_tools_that_fit(room, for_answers(window))
    whole = room.part(f"# Its plan\n\n{fenced(plan.to_markdown(), 'markdown')}", PLAN_TEXT)
    if not room.takes(estimated_prompt(Request(tuple(earlier)))):
        earlier = []
        room.leave_out("earlier questions")
    parts = (prompt, ticket, whole, run, room.note())
    system = Message("system", "\n\n".join(filter(None, parts)))
    return FittedPrompt(equipped, (system, *earlier, question), tuple(room.left_out))


def _step(step: PlanStep, state: ExecutionState) -> str:
    now = state.of(step.number)
    verified = f", verified: {now.verification.value}" if now.verification else ""
    lines = [f"- Step {step.number} ({step.title}): {now.status.value}{verified}"]
    lines += [f"  - {what} {path}" for what, paths in _files(step, state) for path in paths]
    lines += [f"  - reason: {now.reason}"] if now.reason else []
    lines += [f"  - it failed with: {now.error[:_LONGEST_ERROR]}"] if now.error else []
    return "\n".join(lines)


def _files(step: PlanStep, state: ExecutionState) -> tuple[tuple[str, tuple[str, ...]], ...]:
    now = state.of(step.number)
    return ("created", now.files_created), ("changed", now.files_modified), ("deleted", now.files_deleted)
