"""A step's prompt. Parts common to all steps come first, because providers cache a
prompt's beginning; parts of one attempt come last.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct

from cdd_agent.context.finder import CodeFinder, CodeSearch
from cdd_agent.context.query import Query
from cdd_agent.dialogue.token_budget import TokenBudget
from cdd_agent.engine.attempt import RankedContext, Shown
from cdd_agent.engine.choices import Choices
from cdd_agent.engine.related_code import (
    MOST,
    MOST_WITH_TOOLS,
    find_related_code,
    follow_failure,
)
from cdd_agent.engine.rules_in_step import edited_rules
from cdd_agent.engine.shown_files import (
    TREE,
    TREE_LINES,
    TREE_LINES_WITH_TOOLS,
    ShownFiles,
    show_files,
    tree,
)
from cdd_agent.engine.step_texts import (
    describe_earlier_steps,
    describe_plan,
    describe_step,
)
from cdd_agent.files.atomic import digest
from cdd_agent.files.line_ranges import Ranges, join_ranges
from cdd_agent.files.walk import Kind, WalkEntry
from cdd_agent.llm.port import ContextTooLong, Message, PromptShare, Request
from cdd_agent.llm.token_estimates import estimate_tokens
from cdd_agent.project.context import entries
from cdd_agent.project.rules import RULES_FOR_AGENTS, project_rules
from cdd_agent.text.sanitize import fenced
from cdd_agent.tickets.declared_files import DeclaredFiles, declare_files
from cdd_agent.tickets.plan import ImplementationPlan, PlanStep
from cdd_agent.tickets.served_criteria import digests_of_step, places_of_step
from cdd_agent.tickets.spec import TicketSpec
from cdd_agent.tickets.spec_prompt import render_spec
from cdd_agent.tickets.state import ExecutionState

LAST_FAILED = "# The last attempt failed"
"""The heading above the reason."""
_MARGIN = 200
"""Tokens for headings, and for the number of omitted files."""
_UNSEEN = "You have not seen these: do not replace them."

# names of parts, in lists of sent and omitted ones
_TICKET_AND_PLAN = "the ticket and the plan"
_PLAN_NOTES = "the other sections of the plan"
_EARLIER_STEPS = "what earlier steps did"
_LEFT_OUT = "what was left out"
_STEP = "the step"
_FAILURE = "why the last attempt failed"
LAST_REPLY = "the last attempt's reply"
_GUIDANCE = "guidance"


class FailedAttempt(Struct, frozen=True):
    """The previous attempt: its failure and the model's reply."""

    reason: str
    reply: str


class _ReplyForm(Struct, frozen=True):
    file: str
    """File with instructions, next to this module."""
    name: str
    """The instructions' name among the parts."""
    repeat: str
    """An order to the model after a failure."""
    tree_lines: int
    most_related: int
    """Most tokens of related code."""


_WITH_TOOLS = _ReplyForm(
    "tools.md",
    "how to work",
    "make every change",
    TREE_LINES_WITH_TOOLS,
    MOST_WITH_TOOLS,
)
_IN_WORDS = _ReplyForm("rules.md", "how to reply", "send every file", TREE_LINES, MOST)


class PromptInputs(Struct, frozen=True):
    root: Path
    """The attempt's tree."""
    spec: TicketSpec
    plan: ImplementationPlan
    state: ExecutionState
    step: PlanStep
    private_paths: Collection[str] = ()
    """This program's files and folders, outside the project."""
    code: CodeFinder | None = None
    """Searches code for a step without named files."""
    choices: Choices = Choices()
    kept_context: RankedContext | None = None
    """Code shown to an earlier attempt."""
    failed: FailedAttempt | None = None
    missed_files: Mapping[str, Ranges] = MappingProxyType({})
    """Files, with lines, that an earlier attempt needed and did not see."""
    guidance: str = ""
    window: int | None = None
    """The model's limit in tokens."""
    reserved: int = 0
    """Tokens to leave free."""
    with_tools: bool = False

    @property
    def form(self) -> _ReplyForm:
        return _WITH_TOOLS if self.with_tools else _IN_WORDS


class StepPrompt(Struct, frozen=True):
    """A request, and what it shows."""

    request: Request
    shown: Shown
    left_out: tuple[str, ...] = ()
    """Omitted parts, most important first."""
    notes: tuple[str, ...] = ()
    """Warnings for the user, one sentence each."""
    shares: tuple[PromptShare, ...] = ()
    """Tokens of each part, in order."""
    context: RankedContext | None = None
    """Code found by search, for later attempts. None if the step names its files."""

    @property
    def text(self) -> str:
        return "\n\n".join(
            f"<!-- {message.role} -->\n{message.content}"
            for message in self.request.messages
        )


class _Part(Struct, frozen=True):
    text: str
    """Empty to omit the part."""
    name: str


def build_prompt(inputs: PromptInputs) -> StepPrompt:
    """Build an attempt's prompt from the current files.

    In a small window, the step comes first, then its files, then related ones. A file
    that does not fit is shown in part, or only named. A model with tools gets their
    description instead of reply forms, and sees less.

    Raises `ContextTooLong` if not even the step fits.
    """
    root, spec, plan, step = inputs.root, inputs.spec, inputs.plan, inputs.step
    form = inputs.form
    declared = declare_files(root, step, (".cdd", *inputs.private_paths))
    instructions = _Part(_read_instructions(form), form.name)
    ticket = _Part(f"{render_spec(spec)}\n\n{describe_plan(plan)}", _TICKET_AND_PLAN)
    history = _Part(describe_earlier_steps(plan, inputs.state, step), _EARLIER_STEPS)
    task = _Part(describe_step(plan, step, declared, inputs.window), _STEP)
    failure = _Part(_describe_failure(inputs), _FAILURE)
    guidance = _Part(_describe_guidance(inputs), _GUIDANCE)
    room = _open_room(inputs, (instructions, ticket, history, task, failure, guidance))

    rules = project_rules(root)
    edited = edited_rules(
        root, rules, step, declared, inputs.guidance, inputs.missed_files
    )
    rules_text = room.take_text(rules.pointing_to(edited).section, RULES_FOR_AGENTS)
    plan_notes = room.take_text(_describe_plan_notes(plan), _PLAN_NOTES)
    last_reply = room.take_text(_describe_last_reply(inputs), LAST_REPLY)

    unshown = rules.paths.difference(edited)
    search = CodeSearch(inputs.code, _make_query(inputs, declared, unshown))
    shown = ShownFiles(root, room, search, unshown, edited, inputs.choices.pinned)
    project_entries = entries(root, (".cdd", *inputs.private_paths))
    context = _show_code(inputs, declared, shown, project_entries)
    tree_text = tree(project_entries, room, form.tree_lines)

    system = (
        instructions,
        _Part(rules_text, RULES_FOR_AGENTS),
        ticket,
        _Part(plan_notes, _PLAN_NOTES),
    )
    before_step = (
        history,
        _Part(tree_text, TREE),
        _Part(shown.text, ""),
        _Part(context.text if context else "", ""),
        _Part(room.describe_omitted(_UNSEEN), _LEFT_OUT),
    )
    for_attempt = (
        _Part(shown.added, ""),
        failure,
        _Part(last_reply, LAST_REPLY),
        guidance,
    )
    asked = (*before_step, task, *for_attempt)
    messages = (
        Message("system", _join(system)),
        Message("user", _join(asked), pictures=tuple(shown.pictures)),
    )
    shares = (
        *_list_shares((*system, *before_step)),
        *shown.shares,
        *(context.shares if context else ()),
        *_list_shares((task, *for_attempt)),
    )
    return StepPrompt(
        Request(messages),
        _list_shown(inputs, shown, context),
        tuple(room.left_out),
        (*rules.notes, *shown.notes),
        shares,
        context,
    )


def _read_instructions(form: _ReplyForm) -> str:
    return Path(__file__).with_name(form.file).read_text(encoding="utf-8").strip()


def _describe_failure(inputs: PromptInputs) -> str:
    if inputs.failed is None:
        return ""
    return (
        f"{LAST_FAILED}\n\nEverything it wrote was restored, so {inputs.form.repeat}"
        f" that this step needs.\n\nWhat went wrong:\n\n{fenced(inputs.failed.reason)}"
    )


def _describe_last_reply(inputs: PromptInputs) -> str:
    if inputs.failed is None or not inputs.failed.reply:
        return ""
    return f"The reply was:\n\n{fenced(inputs.failed.reply, 'md')}"


def _describe_guidance(inputs: PromptInputs) -> str:
    if not inputs.guidance:
        return ""
    return f"# Guidance for this step\n\n{inputs.guidance}"


def _describe_plan_notes(plan: ImplementationPlan) -> str:
    return f"# Other sections of the plan\n\n{plan.notes}" if plan.notes else ""


def _open_room(inputs: PromptInputs, parts: Iterable[_Part]) -> TokenBudget:
    """Return the room next to the required parts. Raises `ContextTooLong` if these do
    not fit.
    """
    needed = sum(estimate_tokens(part.text) for part in parts)
    room = TokenBudget(inputs.window, _MARGIN + inputs.reserved + needed)
    if not room.is_over:
        return room
    raise ContextTooLong(
        f"Step {inputs.step.label} with its spec and plan does not fit into the"
        f" model's window of {inputs.window:,} tokens.",
        hint="Make them shorter, split the step, or use a model with a larger window.",
    )


def _make_query(
    inputs: PromptInputs, declared: DeclaredFiles, unshown: Collection[str]
) -> Query:
    spec, step, state = inputs.spec, inputs.step, inputs.state
    words = [step.title, step.description]
    words += [f"{file.path} {file.file.note}" for file in declared.files]
    words += step.checks or ()
    for place in sorted(places_of_step(step, state, spec.acceptance_criteria)):
        words.append(spec.acceptance_criteria[place - 1])
    words.append(spec.title)
    touched: list[str] = []
    for other in inputs.plan.steps:
        execution = state.step(other.number)
        touched += [*execution.files_created, *execution.files_modified]
    return Query(
        "\n".join(filter(None, words)),
        touched=tuple(touched),
        pinned=frozenset(inputs.choices.pinned),
        without=frozenset({*inputs.choices.without, *unshown}),
    )


def _show_code(
    inputs: PromptInputs,
    declared: DeclaredFiles,
    shown: ShownFiles,
    project_entries: Sequence[WalkEntry],
) -> RankedContext | None:
    """Show the files of the step and of the failure. Return code that the step may be
    about.
    """
    step, choices = inputs.step, inputs.choices
    show_files(
        shown,
        inputs.state,
        step,
        declared,
        guidance=inputs.guidance,
        missed=inputs.missed_files,
        choices=choices,
        entries=project_entries,
    )
    context = find_related_code(
        shown,
        declared,
        step_digest(step, ""),
        choices,
        inputs.kept_context,
        inputs.form.most_related,
    )
    if inputs.failed is not None:
        files = set()
        for entry in project_entries:
            if entry.kind is Kind.FILE and not choices.leaves_out(entry.text):
                files.add(entry.text)
        follow_failure(shown, inputs.failed.reason, inputs.missed_files, files)
    return context


def _join(parts: Iterable[_Part]) -> str:
    return "\n\n".join(part.text for part in parts if part.text)


def _list_shares(parts: Iterable[_Part]) -> list[PromptShare]:
    shares = []
    for part in parts:
        if part.text and part.name:
            shares.append(PromptShare(part.name, estimate_tokens(part.text)))
    return shares


def _list_shown(
    inputs: PromptInputs, shown: ShownFiles, context: RankedContext | None
) -> Shown:
    files = dict(shown.seen)
    in_part = dict(shown.in_part)
    if context is not None:
        files = {**context.files, **shown.seen}
        for path, lines in context.in_part.items():
            if path in in_part or path not in shown.seen:
                in_part[path] = join_ranges((*in_part.get(path, ()), *lines))
    criteria = digests_of_step(
        inputs.step, inputs.plan, inputs.state, inputs.spec.acceptance_criteria
    )
    return Shown(
        step=step_digest(inputs.step, inputs.guidance),
        files=files,
        in_part=in_part,
        criteria=criteria,
    )


def step_digest(step: PlanStep, guidance: str) -> str:
    """Return a digest of the task. Saved replies apply only to the same digest."""
    places = [file.place for file in step.files_affected]
    fields = (step.number, step.title, step.description, places, step.check_lines)
    content = repr((fields, guidance)).encode("utf-8", "surrogatepass")
    return digest(content) or ""
