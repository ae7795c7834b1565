"""What is told to a model that answers a question about a run: the ticket, its plan, and how far the run is."""

from pathlib import Path

from cdd_agent.agents.prompt_files import load_prompt
from cdd_agent.harmless import fenced
from cdd_agent.llm.port import Message
from cdd_agent.tickets.plan import ImplementationPlan, PlanStep
from cdd_agent.tickets.spec import TicketSpec
from cdd_agent.tickets.state import ExecutionState

_LONGEST_ERROR = 4_000
"""Characters of what a failed step said."""


def about_the_run(root: Path, spec: TicketSpec, plan: ImplementationPlan, state: ExecutionState) -> Message:
    """The system's message. Raises `BadInput` for a prompt of the project's own that cannot be used."""
    steps = "\n".join(_step(step, state) for step in plan.steps)
    text = [
        load_prompt(root, "question"),
        f"# The ticket {state.ticket_slug}\n\n{fenced(spec.to_yaml(), 'yaml')}",
        f"# Its plan\n\n{fenced(plan.to_markdown(), 'markdown')}",
        f"# The run\n\n{steps}",
    ]
    return Message("system", "\n\n".join(text))


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
