"""The prompt of a step: first what stays the same for the whole run (cacheable), last
the step itself.
"""

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct

from cdd_agent.context.finder import CodeFinder
from cdd_agent.context.query import Query
from cdd_agent.dialogue.token_budget import TokenBudget
from cdd_agent.edits.excerpts import Ranges, joined
from cdd_agent.engine.attempt import RankedContext, Shown
from cdd_agent.engine.choices import Choices
from cdd_agent.engine.related_code import MOST, MOST_WITH_TOOLS, follow, ranked_context
from cdd_agent.engine.shown_files import (
    TREE,
    TREE_LINES,
    TREE_LINES_WITH_TOOLS,
    CodeLook,
    ShownFiles,
    show_files,
    tree,
)
from cdd_agent.files.atomic import digest
from cdd_agent.files.walk import Kind
from cdd_agent.llm.budget import estimated_tokens
from cdd_agent.llm.port import ContextTooLong, Message, PromptShare, Request
from cdd_agent.project.context import entries
from cdd_agent.project.rules import RULES_FOR_AGENTS, project_rules
from cdd_agent.sanitize import fenced
from cdd_agent.tickets.plan import ImplementationPlan, PlanStep
from cdd_agent.tickets.spec import TicketSpec
from cdd_agent.tickets.state import ExecutionState
from cdd_agent.tickets.status import StepStatus


class Earlier(Struct, frozen=True):
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


class StepPrompt(Struct, frozen=True):
    """A request, and what it shows."""

    request: Request
    shown: Shown
    left_out: tuple[str, ...] = ()
    """The parts that there was no room for, the most important first."""
    notes: tuple[str, ...] = ()
    """Remarks for people on how it was made, a sentence each."""
    shares: tuple[PromptShare, ...] = ()
    """Its parts, in their order."""
    context: RankedContext | None = None
    """The code that was looked for; to be kept for the next attempts. None where none
    was.
    """

    @property
    def text(self) -> str:
        return "\n\n".join(
            f"<!-- {message.role} -->\n{message.content}"
            for message in self.request.messages
        )


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
    also_show: Mapping[str, Ranges] = MappingProxyType({}),
    guidance: str = "",
    code: CodeFinder | None = None,
    choices: Choices = Choices(),  # noqa: B008
    kept: RankedContext | None = None,
    with_tools: bool = False,
) -> StepPrompt:
    """Build the prompt of one attempt. Reads the project's files as they are now.

    What belongs to the step comes first, then its files, then those that it is related
    to; a file that does not fit under `window`, the tokens that the model takes in, is
    shown in part or left out, and named. `beside` of them are for something else. `own`
    are files and folders of this program, which are no part of the project. `code`
    finds what a step is about that names no files; `kept` is what it found for the
    first attempt. A model that acts `with_tools` is told of these instead of the forms
    of a reply, and shown less of what it can look at by itself. What is for this
    attempt alone comes after all that is the same for each: providers keep the
    beginning of a prompt.

    Raises `ContextTooLong` where not even the step itself fits.
    """
    rules = project_rules(root)
    rules_file = Path(__file__).with_name("tools.md" if with_tools else "rules.md")
    how = rules_file.read_text(encoding="utf-8").strip()
    what, opening = f"{_ticket(spec)}\n\n{_overview(plan)}", _earlier(plan, state, step)
    asked, failed = (
        _step(plan, step) + _fields_about_tests(step),
        _failed(earlier, "make every change" if with_tools else "send every file"),
    )
    guided = f"# Guidance for this step\n\n{guidance}" if guidance else ""
    needed = sum(map(estimated_tokens, (how, what, opening, asked, failed, guided)))
    room = TokenBudget(window, _MARGIN + beside + needed)
    if room.is_over:
        raise ContextTooLong(
            f"Step {step.number} with its spec and plan has more than the {window:,}"
            " tokens that the model takes in.",
            hint=(
                "Make them shorter, split the step, or use a model with a larger"
                " window."
            ),
        )
    rules_said = room.part(rules.section, RULES_FOR_AGENTS)
    reply = (
        f"The reply was:\n\n{fenced(earlier.reply, 'md')}"
        if earlier and earlier.reply
        else ""
    )
    replied = room.part(reply, LAST_REPLY)
    done = (state.step(other.number) for other in plan.steps)
    touched = tuple(
        path for other in done for path in (*other.files_created, *other.files_modified)
    )
    pinned, without = frozenset(choices.pinned), frozenset(choices.without)
    query = Query(_query(spec, step), touched=touched, pinned=pinned, without=without)
    shown = ShownFiles(root, room, CodeLook(code, query))
    found = entries(root, (".cdd", *own))
    show_files(
        shown,
        root,
        state,
        step,
        guidance=guidance,
        missed=also_show,
        choices=choices,
        found=found,
    )
    context = ranked_context(
        shown,
        step,
        step_digest(step, ""),
        choices,
        kept,
        MOST_WITH_TOOLS if with_tools else MOST,
    )
    if earlier is not None:
        there = {
            entry.text
            for entry in found
            if entry.kind is Kind.FILE and not choices.leaves_out(entry.text)
        }
        follow(shown, earlier.reason, also_show, query, there)
    parts = [
        (opening, "what earlier steps did"),
        (tree(found, room, TREE_LINES_WITH_TOOLS if with_tools else TREE_LINES), TREE),
        (shown.text, ""),
        (context.text if context else "", ""),
        (room.note(_UNSEEN), "what was left out"),
        (asked, "the step"),
        (shown.added, ""),
        (failed, "why the last attempt failed"),
        (replied, LAST_REPLY),
        (guided, "guidance"),
    ]
    files_shown = [*shown.shares, *(context.shares if context else ())]
    system = [
        (how, "how to work" if with_tools else "how to reply"),
        (rules_said, RULES_FOR_AGENTS),
        (what, "the ticket and the plan"),
    ]
    text = "\n\n".join(part for part, _ in parts if part)
    first = "\n\n".join(part for part, _ in system if part)
    request = Request(
        (
            Message("system", first),
            Message("user", text, pictures=tuple(shown.pictures)),
        )
    )
    seen = {**(context.files if context else {}), **shown.seen}
    in_part = dict(shown.in_part)
    for path, lines in (context.in_part if context else {}).items():
        if path in in_part or path not in shown.seen:
            in_part[path] = joined((*in_part.get(path, ()), *lines))
    identity = Shown(step=step_digest(step, guidance), files=seen, in_part=in_part)
    shares = [
        PromptShare(name, estimated_tokens(part))
        for part, name in (*system, *parts)
        if part and name
    ]
    at = next(place for place, share in enumerate(shares) if share.name == "the step")
    notes = (*rules.notes, *shown.notes)
    everything = (*shares[:at], *files_shown, *shares[at:])
    return StepPrompt(
        request, identity, tuple(room.left_out), notes, everything, context
    )


def step_digest(step: PlanStep, guidance: str) -> str:
    """Identifies what a step asks for: a reply to something else is not used for it."""
    asked = (
        step.number,
        step.title,
        step.description,
        [file.place for file in step.files_affected],
        step.check_lines,
    )
    return digest(repr((asked, guidance)).encode("utf-8", "surrogatepass")) or ""


def _query(spec: TicketSpec, step: PlanStep) -> str:
    """The words by which the code of a step is looked for."""
    files_affected = (f"{file.path} {file.note}" for file in step.files_affected)
    serves = (
        spec.acceptance_criteria[number - 1]
        for number in step.serves
        if number <= len(spec.acceptance_criteria)
    )
    check = "\n".join(step.checks or ())
    return "\n".join(
        filter(
            None,
            (step.title, step.description, *files_affected, check, *serves, spec.title),
        )
    )


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
        done = state.step(other.number)
        if other.number == step.number or not done.status.is_over:
            continue
        if done.status is StepStatus.SKIPPED:
            what = f"skipped ({done.reason}); its result does not exist"
        else:
            did = (
                ("created", done.files_created),
                ("changed", done.files_modified),
                ("deleted", done.files_deleted),
            )
            what = ", ".join(
                [f"{verb} {path}" for verb, paths in did for path in paths]
            )
        needed = (
            " (this step depends on it)" if other.number in step.dependencies else ""
        )
        lines.append(f"- {other.number}. {other.title}{needed}: {what or 'no files'}")
    return "# What earlier steps did\n\n" + "\n".join(lines) if lines else ""


def _step(plan: ImplementationPlan, step: PlanStep) -> str:
    files_affected = _bullets(
        f"{file.path} ({file.note})" if file.note else file.path
        for file in step.files_affected
    )
    head = (
        f"# Step {step.number} of {len(plan.steps)}: {step.title}\n\n{step.description}"
    )
    check = ""
    if step.checks:
        check = f"\n\nChecked by: {step.checks[0]}"
    if step.checks and len(step.checks) > 1:
        check = f"\n\nAll of these checks must pass:\n{_bullets(step.checks)}"
    return (
        head
        + (f"\n\nFiles of this step:\n{files_affected}" if files_affected else "")
        + check
    )


def _fields_about_tests(step: PlanStep) -> str:
    text = ""
    if step.removes_tests is not None:
        names = ", ".join(step.removes_tests) or "none"
        text += f"\n\nTests that this step may remove, skip or weaken: {names}"
    if step.may_fail:
        tests = []
        for item in step.may_fail:
            until = f" (until step {item.until})" if item.until else ""
            tests.append(f"{item.tests}{until}")
        text += f"\n\nTests that need not pass yet: {', '.join(tests)}"
    return text


def _failed(earlier: Earlier | None, again: str) -> str:
    if earlier is None:
        return ""
    return (
        f"{LAST_FAILED}\n\nEverything it wrote was restored, so {again} that this step"
        f" needs.\n\nWhat went wrong:\n\n{fenced(earlier.reason)}"
    )


def _bullets(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)
