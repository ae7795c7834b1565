"""The prompt of a step: first what stays the same for the whole run (cacheable), last
the step itself.
"""

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace

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
from cdd_agent.files.atomic import digest
from cdd_agent.files.line_ranges import Ranges, describe_ranges, join_ranges
from cdd_agent.files.walk import Kind
from cdd_agent.llm.port import ContextTooLong, Message, PromptShare, Request
from cdd_agent.llm.token_estimates import estimated_tokens
from cdd_agent.project.context import entries
from cdd_agent.project.rules import RULES_FOR_AGENTS, project_rules
from cdd_agent.sanitize import fenced
from cdd_agent.tickets.declared_files import (
    MOST_MATCHES,
    DeclaredFiles,
    declare_files,
)
from cdd_agent.tickets.plan import ImplementationPlan, PlanStep
from cdd_agent.tickets.served_criteria import digests_of_step, places_of_step
from cdd_agent.tickets.spec import TicketSpec
from cdd_agent.tickets.spec_prompt import render_spec
from cdd_agent.tickets.state import ExecutionState
from cdd_agent.tickets.status import StepStatus


class Earlier(Struct, frozen=True):
    """The attempt before this one: why it failed, and what the model replied."""

    reason: str
    reply: str


LAST_FAILED = "# The last attempt failed"
"""The heading above the reason."""
LAST_REPLY = "the last attempt's reply"
"""The name of the reply among the parts that are left out."""
_MARGIN = 200
"""Tokens for the headings of the parts, and for the number of files left out."""
_WINDOW_OF_A_NAME = 100
"""Tokens of the window for each file that is listed below a pattern or folder."""
_UNSEEN = "You have not seen these: do not replace them."
_STEP = "the step"


class _ReplyForm(Struct, frozen=True):
    """A way in which the model acts, and the prompt for it."""

    rules: str
    """A file beside this module."""
    rules_name: str
    again: str
    """A command to the model after a failure."""
    tree_lines: int
    most_related: int
    """Tokens of the code that the step may be about."""


_WITH_TOOLS = _ReplyForm(
    "tools.md",
    "how to work",
    "make every change",
    TREE_LINES_WITH_TOOLS,
    MOST_WITH_TOOLS,
)
_IN_WORDS = _ReplyForm("rules.md", "how to reply", "send every file", TREE_LINES, MOST)


_PLAN_NOTES = "the other sections of the plan"


class StepPrompt(Struct, frozen=True):
    """A request, and what it shows."""

    request: Request
    shown: Shown
    left_out: tuple[str, ...] = ()
    """The parts that did not fit, the most important first."""
    notes: tuple[str, ...] = ()
    """Warnings for the user, a sentence each."""
    shares: tuple[PromptShare, ...] = ()
    """The tokens of its parts, in their order."""
    context: RankedContext | None = None
    """The code that was searched, for the next attempts. None if the step names its
    files.
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
    """Build the prompt of one attempt from the project's current files.

    The step comes first, then its files, then related files. A file that does not fit
    into the `window`, in tokens, is shown in part or left out and named. `beside` is
    the number of tokens that the prompt must leave free. `own` are files and folders
    of this program, which do not belong to the project. `code` searches the code for a
    step that names no files; `kept` is the result for the first attempt. A model that
    acts `with_tools` reads about these instead of the forms of a reply, and is shown
    less. Parts for this attempt alone come last: providers cache the beginning of a
    prompt.

    Raises `ContextTooLong` if not even the step fits.
    """
    form = _WITH_TOOLS if with_tools else _IN_WORDS
    rules = project_rules(root)
    declared = declare_files(root, step, (".cdd", *own))
    edited = edited_rules(root, rules, step, declared, guidance, also_show)
    how = Path(__file__).with_name(form.rules).read_text(encoding="utf-8").strip()
    what = f"{render_spec(spec)}\n\n{_overview(plan)}"
    opening = _earlier(plan, state, step)
    asked = _step(plan, step, declared, window) + _fields_about_tests(step)
    failed = _failed(earlier, form.again)
    guided = f"# Guidance for this step\n\n{guidance}" if guidance else ""
    needed = sum(map(estimated_tokens, (how, what, opening, asked, failed, guided)))
    room = TokenBudget(window, _MARGIN + beside + needed)
    if room.is_over:
        raise ContextTooLong(
            f"Step {step.label} with its spec and plan has more than the {window:,}"
            " tokens that the model takes in.",
            hint=(
                "Make them shorter, split the step, or use a model with a larger"
                " window."
            ),
        )
    rules_said = room.part(rules.pointing_to(edited).section, RULES_FOR_AGENTS)
    notes = f"# Other sections of the plan\n\n{plan.notes}" if plan.notes else ""
    plan_notes = room.part(notes, _PLAN_NOTES)
    replied = room.part(_reply_of(earlier), LAST_REPLY)
    unshown = rules.paths.difference(edited)
    query = _query(spec, plan, state, step, declared, choices, unshown)
    search = CodeSearch(code, query)
    shown = ShownFiles(root, room, search, unshown, edited, choices.pinned)
    found = entries(root, (".cdd", *own))
    show_files(
        shown,
        state,
        step,
        declared,
        guidance=guidance,
        missed=also_show,
        choices=choices,
        found=found,
    )
    identity = step_digest(step, "")
    context = find_related_code(
        shown, declared, identity, choices, kept, form.most_related
    )
    if earlier is not None:
        there = {
            entry.text
            for entry in found
            if entry.kind is Kind.FILE and not choices.leaves_out(entry.text)
        }
        follow_failure(shown, earlier.reason, also_show, there)
    system = [
        (how, form.rules_name),
        (rules_said, RULES_FOR_AGENTS),
        (what, "the ticket and the plan"),
        (plan_notes, _PLAN_NOTES),
    ]
    parts = [
        (opening, "what earlier steps did"),
        (tree(found, room, form.tree_lines), TREE),
        (shown.text, ""),
        (context.text if context else "", ""),
        (room.note(_UNSEEN), "what was left out"),
        (asked, _STEP),
        (shown.added, ""),
        (failed, "why the last attempt failed"),
        (replied, LAST_REPLY),
        (guided, "guidance"),
    ]
    pictures = tuple(shown.pictures)
    messages = (
        Message("system", _join(system)),
        Message("user", _join(parts), pictures=pictures),
    )
    listed = _list_shown(step_digest(step, guidance), shown, context)
    criteria = digests_of_step(step, plan, state, spec.acceptance_criteria)
    return StepPrompt(
        Request(messages),
        replace(listed, criteria=criteria),
        tuple(room.left_out),
        (*rules.notes, *shown.notes),
        _list_shares([*system, *parts], shown, context),
        context,
    )


def _join(parts: Iterable[tuple[str, str]]) -> str:
    return "\n\n".join(part for part, _ in parts if part)


def _reply_of(earlier: Earlier | None) -> str:
    if earlier is None or not earlier.reply:
        return ""
    return f"The reply was:\n\n{fenced(earlier.reply, 'md')}"


def _list_shown(
    identity: str, shown: ShownFiles, context: RankedContext | None
) -> Shown:
    """Return the files whose content the prompt has, and the lines of those that it
    shows in part.
    """
    if context is None:
        return Shown(step=identity, files=dict(shown.seen), in_part=dict(shown.in_part))
    in_part = dict(shown.in_part)
    for path, lines in context.in_part.items():
        if path in in_part or path not in shown.seen:
            in_part[path] = join_ranges((*in_part.get(path, ()), *lines))
    files = {**context.files, **shown.seen}
    return Shown(step=identity, files=files, in_part=in_part)


def _list_shares(
    parts: Iterable[tuple[str, str]],
    shown: ShownFiles,
    context: RankedContext | None,
) -> tuple[PromptShare, ...]:
    """Return the tokens of each part. The files come before the step."""
    shares = []
    for part, name in parts:
        if name == _STEP:
            shares += shown.shares
            shares += context.shares if context else ()
        if part and name:
            shares.append(PromptShare(name, estimated_tokens(part)))
    return tuple(shares)


def step_digest(step: PlanStep, guidance: str) -> str:
    """Return a digest of what a step asks for. A saved reply is used only for the same
    digest.
    """
    asked = (
        step.number,
        step.title,
        step.description,
        [file.place for file in step.files_affected],
        step.check_lines,
    )
    return digest(repr((asked, guidance)).encode("utf-8", "surrogatepass")) or ""


def _query(
    spec: TicketSpec,
    plan: ImplementationPlan,
    state: ExecutionState,
    step: PlanStep,
    declared: DeclaredFiles,
    choices: Choices,
    unshown: Collection[str],
) -> Query:
    """Return the search for the code that a step is about."""
    words = [step.title, step.description]
    words += [f"{file.path} {file.file.note}" for file in declared.files]
    words += step.checks or ()
    for place in sorted(places_of_step(step, state, spec.acceptance_criteria)):
        words.append(spec.acceptance_criteria[place - 1])
    words.append(spec.title)
    touched: list[str] = []
    for other in plan.steps:
        done = state.step(other.number)
        touched += [*done.files_created, *done.files_modified]
    return Query(
        "\n".join(filter(None, words)),
        touched=tuple(touched),
        pinned=frozenset(choices.pinned),
        without=frozenset({*choices.without, *unshown}),
    )


def _overview(plan: ImplementationPlan) -> str:
    steps = "\n".join(f"{step.label}. {step.title}" for step in plan.steps)
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
        lines.append(f"- {other.label}. {other.title}{needed}: {what or 'no files'}")
    return "# What earlier steps did\n\n" + "\n".join(lines) if lines else ""


def _step(
    plan: ImplementationPlan,
    step: PlanStep,
    declared: DeclaredFiles,
    window: int | None,
) -> str:
    parts = [
        f"# Step {step.label} of {len(plan.steps)}: {step.title}",
        step.description,
    ]
    if declared:
        most = MOST_MATCHES if window is None else window // _WINDOW_OF_A_NAME
        files = "\n".join(_list_files(declared, most))
        parts.append(f"Files of this step:\n{files}")
    places = [
        f"Look at {describe_ranges((lines,))} of {path}."
        for path in declared.named
        for lines in declared.lines(path)
    ]
    parts.append("\n".join(places))
    if step.checks and len(step.checks) == 1:
        parts.append(f"Checked by: {step.checks[0]}")
    elif step.checks:
        parts.append(f"All of these checks must pass:\n{_bullets(step.checks)}")
    return "\n\n".join(filter(None, parts))


def _list_files(declared: DeclaredFiles, most: int) -> list[str]:
    """Return the files of a step as a list. Below each pattern or folder are the files
    that match, at `most` this many in all.
    """
    lines = []
    unlisted = set(declared.matched)
    for file in declared.files:
        line = f"- {file.path}"
        if file.file.note:
            line += f" ({file.file.note})"
        matches = [path for path in file.matches if path in unlisted]
        unlisted.difference_update(matches)
        if matches:
            line += ":"
        elif file.glob and not file.matches and not file.file.is_created:
            line += ": no file matches yet"
        lines.append(line)
        listed = matches[:most]
        most -= len(listed)
        lines += [f"  - {path}" for path in listed]
        if len(listed) < len(matches):
            lines.append(f"  - and {len(matches) - len(listed)} more")
    return lines


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
