"""The prompt of a step: first what stays the same for the whole run (cacheable), last the step itself."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path

from cdd_agent.dialogue.token_budget import TokenBudget
from cdd_agent.engine.attempt import Shown
from cdd_agent.engine.shown_files import ShownFiles, show_files, tree
from cdd_agent.files.atomic import digest
from cdd_agent.llm.budget import estimated_tokens
from cdd_agent.llm.port import ContextTooLong, Message, Request
from cdd_agent.project.context import entries
from cdd_agent.project.rules import RULES_FOR_AGENTS, project_rules
from cdd_agent.sanitize import fenced
from cdd_agent.tickets.plan import ImplementationPlan
from cdd_agent.tickets.plan_step import NO_CHECK, PlanStep
from cdd_agent.tickets.spec import TicketSpec
from cdd_agent.tickets.state import ExecutionState
from cdd_agent.tickets.status import StepStatus


@dataclass(frozen=True)
class Earlier:
    """The attempt before this one: what it did, and why that was not good."""

    reason: str
    reply: str


LAST_FAILED = "# The last attempt failed"
"""The heading above the reason."""
LAST_REPLY = "the last attempt's reply"
"""Its name where a prompt had no room for it."""
_MARGIN = 200
"""Tokens for the headings of the parts, and for how many files more are left out."""
_UNSEEN = "You have not seen these: do not replace them."


@dataclass(frozen=True)
class StepPrompt:
    """A request, and what it shows."""

    request: Request
    shown: Shown
    left_out: tuple[str, ...] = ()
    """The parts that there was no room for, the most important first."""
    notes: tuple[str, ...] = ()
    """Remarks for people on how it was made, a sentence each."""

    def with_tools(self) -> "StepPrompt":
        """The same to a model that is offered tools."""
        first, *others = self.request.messages
        told = replace(first, content=f"{first.content}\n\n{_text('tools.md')}")
        return replace(self, request=Request((told, *others)))

    @property
    def text(self) -> str:
        return "\n\n".join(f"<!-- {message.role} -->\n{message.content}" for message in self.request.messages)


def step_prompt(
    root: Path,
    spec: TicketSpec,
    plan: ImplementationPlan,
    state: ExecutionState,
    step: PlanStep,
    *,
    window: int | None = None,
    beside: int = 0,
    own: Collection[str] = (),
    earlier: Earlier | None = None,
    also_show: frozenset[str] = frozenset(),
    guidance: str = "",
) -> StepPrompt:
    """Build the prompt of one attempt. Reads the project's files as they are now.

    What belongs to the step comes first, then its files, then those that it is related to; a file that does not fit
    under `window`, the tokens that the model takes in, is left out, and named. `beside` of them are for something else.
    `own` are files and folders of this program, which are no part of the project. Raises `ContextTooLong` where not
    even the step itself fits.
    """
    rules = project_rules(root)
    how, what, opening = _text("rules.md"), f"{_ticket(spec)}\n\n{_overview(plan)}", _earlier(plan, state, step)
    asked, failed = _step(plan, step), _failed(earlier)
    guided = f"# Guidance for this step\n\n{guidance}" if guidance else ""
    needed = sum(map(estimated_tokens, (how, what, opening, asked, failed, guided)))
    room = TokenBudget(window, _MARGIN + beside + needed)
    if room.is_over:
        raise ContextTooLong(
            f"Step {step.number} with its spec and plan has more than the {window:,} tokens that the model takes in.",
            hint="Make them shorter, split the step, or use a model with a larger window.",
        )
    system = "\n\n".join(filter(None, (how, room.part(rules.section, RULES_FOR_AGENTS), what)))
    reply = f"The reply was:\n\n{fenced(earlier.reply, 'md')}" if earlier and earlier.reply else ""
    closing = (asked, failed, room.part(reply, LAST_REPLY), guided)
    shown = ShownFiles(root, room)
    found = entries(root, (".cdd", *own))
    show_files(shown, root, state, step, guidance=guidance, also_show=also_show, found=found)
    parts = [opening, tree(root, found, room), shown.text, room.note(_UNSEEN), *closing]
    text = "\n\n".join(part for part in parts if part)
    request = Request((Message("system", system), Message("user", text, pictures=tuple(shown.pictures))))
    identity = Shown(step=step_digest(step, guidance), files=shown.seen)
    return StepPrompt(request, identity, tuple(room.left_out), (*rules.notes, *shown.notes))


def step_digest(step: PlanStep, guidance: str) -> str:
    """Identifies what a step asks for: a reply to something else is not used for it."""
    asked = (step.number, step.title, step.description, [file.path for file in step.files_affected], step.verify)
    return digest(repr((asked, guidance)).encode("utf-8", "surrogatepass")) or ""


def size_with_tools() -> int:
    """Tokens that `with_tools` adds to a prompt."""
    return estimated_tokens(_text("tools.md")) + 1


def _text(name: str) -> str:
    return files("cdd_agent.engine").joinpath(name).read_text(encoding="utf-8").strip()


def _ticket(spec: TicketSpec) -> str:
    parts = [f"# Ticket: {spec.title} ({spec.type})", spec.description]
    if spec.acceptance_criteria:
        parts.append("## Acceptance criteria\n" + _bullets(spec.acceptance_criteria))
    for area, items in spec.implementation_scope.items():
        parts.append(f"## Scope: {area}\n" + _bullets(items))
    if spec.technical_notes:
        parts.append(f"## Technical notes\n{spec.technical_notes}")
    return "\n\n".join(part for part in parts if part.strip())


def _overview(plan: ImplementationPlan) -> str:
    steps = "\n".join(f"{step.number}. {step.title}" for step in plan.steps)
    risks = "\n\n## Risks\n" + _bullets(plan.risks) if plan.risks else ""
    return f"# Plan\n\n{plan.overview}\n\n{steps}{risks}".replace("\n\n\n", "\n\n")


def _earlier(plan: ImplementationPlan, state: ExecutionState, step: PlanStep) -> str:
    lines = []
    for other in plan.steps:
        done = state.of(other.number)
        if other.number == step.number or not done.status.over:
            continue
        if done.status is StepStatus.SKIPPED:
            what = f"skipped ({done.reason}); its result does not exist"
        else:
            what = ", ".join(
                [f"created {path}" for path in done.files_created]
                + [f"changed {path}" for path in done.files_modified]
                + [f"deleted {path}" for path in done.files_deleted]
            )
        needed = " (this step depends on it)" if other.number in step.dependencies else ""
        lines.append(f"- {other.number}. {other.title}{needed}: {what or 'no files'}")
    return "# What earlier steps did\n\n" + "\n".join(lines) if lines else ""


def _step(plan: ImplementationPlan, step: PlanStep) -> str:
    files_affected = _bullets(f"{file.path} ({file.note})" if file.note else file.path for file in step.files_affected)
    head = f"# Step {step.number} of {len(plan.steps)}: {step.title}\n\n{step.description}"
    check = f"\n\nChecked by: {step.verify}" if step.verify not in (None, NO_CHECK) else ""
    return head + (f"\n\nFiles of this step:\n{files_affected}" if files_affected else "") + check


def _failed(earlier: Earlier | None) -> str:
    if earlier is None:
        return ""
    return (
        f"{LAST_FAILED}\n\nEverything it wrote was restored, so send every file that this step needs.\n\n"
        f"What went wrong:\n\n{fenced(earlier.reason)}"
    )


def _bullets(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)
