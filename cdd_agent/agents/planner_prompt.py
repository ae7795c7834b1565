from collections.abc import Iterator, Sequence
from typing import Literal

from cdd_agent.agents.attachments import without_files
from cdd_agent.agents.compaction import LONGEST_LINE, shorten
from cdd_agent.agents.plan_desk import PlanDesk
from cdd_agent.agents.planning_replies import ChangeReply, PlanReply
from cdd_agent.agents.prompt_files import load_prompt
from cdd_agent.context.choosing import choose_code
from cdd_agent.context.code_text import CodeReader
from cdd_agent.context.finder import CodeFinder
from cdd_agent.context.query import Query
from cdd_agent.dialogue.fitted_prompt import FittedPrompt, PromptPart, fit
from cdd_agent.dialogue.structured import describe_form
from cdd_agent.dialogue.turns import Dialogue
from cdd_agent.events.strength_events import CriterionStrength
from cdd_agent.llm.port import Message
from cdd_agent.llm.token_estimates import estimate_tokens
from cdd_agent.project.context import project_context
from cdd_agent.project.rules import RULES_FOR_AGENTS, project_rules
from cdd_agent.text.sanitize import fenced
from cdd_agent.tickets.plan import ImplementationPlan, Problem
from cdd_agent.tickets.plan_changes import FixedSteps
from cdd_agent.tickets.plan_writer import write_plan
from cdd_agent.tickets.spec import TicketSpec
from cdd_agent.tickets.spec_prompt import render_spec

SAID_BEFORE = "the earlier conversation"
"""The conversation's name in the notice that it did not fit."""
_SAID_EARLIER = "# What the user said earlier"
SAID = "# What the person says"
WISH = "# What to change"
NEW_SPEC = "The spec was changed. It is now:"
_MOST_OF_TREE = 60_000
_MOST_CODE = 4_000
"""Maximum tokens of code that may concern the ticket; at most a sixteenth of the
window.
"""
_WEAK_TESTS = (
    "Small faults were put into the code, and the tests of these criteria did not"
    " notice enough of them. A step that adds tests for these lines is welcome."
)
_MOST_UNNOTICED = 15
_SMALL_WINDOW = 8_192
"""Tokens of a window up to which no code is shown: tools and rules are more useful."""
Task = Literal["plan", "change"]
FORMS: dict[Task, type[PlanReply] | type[ChangeReply]] = {
    "plan": PlanReply,
    "change": ChangeReply,
}


def make_prompt(
    desk: PlanDesk, dialogue: Dialogue, task: Task, messages: tuple[Message, ...]
) -> FittedPrompt:
    """Return the instructions and the conversation, shortened to the model's window."""
    whole, *shorter = _shorten_conversation(messages)
    parts = (
        PromptPart(load_prompt(desk.root, "planner")),
        PromptPart(project_rules(desk.root).section, RULES_FOR_AGENTS, rank=1),
        PromptPart(whole, SAID_BEFORE, smaller=shorter),
    )
    reserved = estimate_tokens(describe_form(FORMS[task]))
    return fit(dialogue, parts, tools=1, reserved=reserved)


def _shorten_conversation(
    conversation: tuple[Message, ...],
) -> Iterator[tuple[Message, ...]]:
    """Yield the conversation, then shorter and shorter versions. The first message, the
    user's last words and the last change of the spec stay.

    The user's words in dropped messages stay. The shortest versions drop them as well,
    the oldest first.
    """
    first, *others = conversation
    last_places = (_find_last(others, SAID, WISH), _find_last(others, NEW_SPEC))
    remaining: dict[int, Message] = {}
    for place, message in enumerate(others):
        # A tool's answer stays with its call.
        if message.role != "tool":
            yield (first, *remaining.values(), *others[place:])
        words = _words_of_user(message)
        if words:
            remaining[place] = Message("user", f"{_SAID_EARLIER}\n\n{words}")
        if place in last_places:
            remaining[place] = message
    yield (first, *remaining.values())
    for place, message in list(remaining.items()):
        if message.content.startswith(_SAID_EARLIER):
            del remaining[place]
            yield (first, *remaining.values())


def _words_of_user(message: Message) -> str:
    if message.role != "user":
        return ""
    for heading in (WISH, SAID):
        _, heading_found, words = message.content.partition(f"{heading}\n\n")
        if heading_found:
            return shorten(without_files(words), LONGEST_LINE)
    return ""


def _find_last(messages: Sequence[Message], *headings: str) -> int:
    last = -1
    for place, message in enumerate(messages):
        has_heading = any(heading in message.content for heading in headings)
        if message.role == "user" and has_heading:
            last = place
    return last


def describe_context(
    desk: PlanDesk, spec: TicketSpec, code: CodeFinder | None, window: int | None
) -> str:
    """Return the first message: the spec, the files, code that may concern the ticket,
    and the programs that a check may run.
    """
    tree = project_context(desk.root, ()).repo_tree
    most_characters = _MOST_OF_TREE
    most_code = _MOST_CODE
    if window is not None:
        # A third of the window in characters is about a ninth in tokens.
        most_characters = min(_MOST_OF_TREE, window // 3)
        most_code = min(_MOST_CODE, window // 16) if window > _SMALL_WINDOW else 0
    if len(tree) > most_characters:
        tree = tree[:most_characters].rpartition("\n")[0]
        tree += "\n… and more: the tools show them"
    parts = [render_spec(spec), f"# Project\n\n{fenced(tree)}"]
    if code is not None and most_code:
        criteria = "\n".join(spec.acceptance_criteria)
        about = f"{spec.title}\n{spec.description}\n{criteria}"
        query = Query(about, without=project_rules(desk.root).paths)
        reader = CodeReader(desk.root)
        chosen = choose_code(reader, code.rank(query), code.outline, most_code).text
        if chosen:
            parts.append(f"# Code that it may be about\n\n{chosen}")
    if desk.test_command:
        parts.append(f"The project's tests: `{desk.test_command}`.")
    if desk.commands.settings.mode == "safe":
        programs = ", ".join(desk.commands.allowed)
        parts.append(f"Each of `checks` may begin with: {programs}.")
    return "\n\n".join(parts)


def describe_plan(plan: ImplementationPlan) -> str:
    """Return the plan for the model, with numbers as labels, and the labels that the
    user knows.
    """
    text = fenced(write_plan(plan.with_plain_labels()), "markdown")
    parts = [f"# The present plan\n\n{text}"]
    labels = []
    for step in plan.steps:
        if step.label != str(step.number):
            labels.append(f"step {step.number} is `{step.label}`")
    if labels:
        parts.append(
            "The user and plan.md call these steps by other labels:"
            f" {', '.join(labels)}. Name steps by the numbers above in your answer."
        )
    return "\n\n".join(parts)


def describe_findings(plan: ImplementationPlan) -> str:
    """Return the problems of plan.md that `describe_plan` does not show."""
    warnings = [finding for finding in plan.findings if finding.is_warning]
    lines = []
    for problem in (*plan.errors, *warnings):
        kind = "warning" if problem.is_warning else "error"
        lines.append(f"- line {problem.line}, {kind}: {problem.text}")
    if not lines:
        return ""
    listed = "\n".join(lines)
    return (
        "# Problems of plan.md\n\nThe lines and the labels of steps are those of"
        f" plan.md.\n\n{listed}"
    )


def describe_weak_tests(weak: Sequence[CriterionStrength]) -> str:
    lines = [
        "# Weak tests",
        "",
        _WEAK_TESTS,
    ]
    for criterion in weak:
        assert criterion.strength is not None
        share = f"{criterion.strength.percent} % noticed"
        lines += ["", f"Criterion {criterion.number}, {share}: {criterion.text}", ""]
        for fault in criterion.unnoticed[:_MOST_UNNOTICED]:
            place = f"{fault.path}:{fault.line}"
            lines.append(f"- {place}, {fault.words}: `{fault.source}`")
        more = len(criterion.unnoticed) - _MOST_UNNOTICED
        if more > 0:
            lines.append(f"- and {more} more")
    return "\n".join(lines)


def describe_misfits(problems: Sequence[Problem]) -> str:
    if not problems:
        return ""
    listed = "\n".join(f"- {problem.text}" for problem in problems)
    return f"# Where the plan does not fit the spec\n\n{listed}"


def describe_numbering(fixed: FixedSteps, plan: ImplementationPlan) -> str:
    completed = [str(step.number) for step in fixed.completed_steps(plan)]
    done = ""
    if completed:
        done = (
            f"Done, and to stay unchanged: steps {', '.join(completed)}. Plan the rest."
            " "
        )
    return (
        f"{done}A new step is numbered from {fixed.next_number} on: the numbers below"
        " are taken."
    )
