"""Plan a ticket: the dialogue with the model that proposes a plan, or changes of a
plan.

`planner.py` has the words that the user types, `tickets` the rules of plans, and
`plan_desk.py` writes plan.md.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Literal

from msgspec.structs import replace

from cdd_agent.agents.attachments import attach_files, room_for_files, without_files
from cdd_agent.agents.compaction import LONGEST_LINE, shorten
from cdd_agent.agents.exploring import Exploration
from cdd_agent.agents.plan_desk import PlanDesk, Present, text_with
from cdd_agent.agents.planning_notes import PlanningNotes
from cdd_agent.agents.planning_replies import (
    MOST_QUESTIONS,
    ChangeReply,
    PlanReply,
    ReplyJudge,
)
from cdd_agent.agents.prompt_files import load_prompt
from cdd_agent.agents.store import AgentFile, without_secrets
from cdd_agent.context.choosing import choose_code
from cdd_agent.context.code_text import CodeReader
from cdd_agent.context.finder import CodeFinder
from cdd_agent.context.query import Query
from cdd_agent.dialogue.code_search import search_in_thread
from cdd_agent.dialogue.fitted_prompt import FittedPrompt, PromptPart, fit
from cdd_agent.dialogue.limits import Limits
from cdd_agent.dialogue.structured import (
    NoUsableAnswer,
    add_form,
    ask_structured,
    describe_form,
)
from cdd_agent.dialogue.token_budget import Omitted
from cdd_agent.dialogue.turns import Added, Dialogue, ToolCalls
from cdd_agent.engine.recording import Recorder
from cdd_agent.errors import BadInput
from cdd_agent.events.notices import Answer, Notice, NoticeKind, Tone
from cdd_agent.events.stream import Event
from cdd_agent.events.strength_events import CriterionStrength
from cdd_agent.events.ticket_events import PlanChecked, PlanProposed
from cdd_agent.files.atomic import digest
from cdd_agent.llm.port import Message, Model
from cdd_agent.llm.token_estimates import estimate_tokens
from cdd_agent.project.context import project_context
from cdd_agent.project.rules import RULES_FOR_AGENTS, project_rules
from cdd_agent.sanitize import fenced
from cdd_agent.tickets.plan import ImplementationPlan, Problem
from cdd_agent.tickets.plan_changes import ChangeRefused, FixedSteps, replace_plan
from cdd_agent.tickets.plan_check import find_misfits
from cdd_agent.tickets.plan_comparison import compare_plans
from cdd_agent.tickets.plan_draft import make_basic_plan
from cdd_agent.tickets.plan_reader import read_plan
from cdd_agent.tickets.plan_writer import write_plan
from cdd_agent.tickets.spec import TicketSpec
from cdd_agent.tickets.spec_prompt import render_spec
from cdd_agent.tools.base import Tool

SAID_BEFORE = "the earlier conversation"
"""The name of the conversation in the notice that a prompt had no room for it."""
_ROUNDS = 30
_SAID_EARLIER = "# What the user said earlier"
_SAID, _WISH, _NEW_SPEC = (
    "# What the person says",
    "# What to change",
    "The spec was changed. It is now:",
)
_MOST_OF_TREE = 60_000
_MOST_CODE = 4_000
"""Maximum number of tokens of code that may be about the ticket; at most a sixteenth of
the window.
"""
_WEAK_TESTS = (
    "Small faults were put into the code, and the tests of these criteria did not"
    " notice enough of them. A step that adds tests for these lines is welcome."
)
_MOST_UNNOTICED = 15
"""Unnoticed faults of a criterion that the prompt shows."""
_SMALL_WINDOW = 8_192
"""Tokens of a window up to which no code is shown: tools and rules are of more use."""
Task = Literal["plan", "change"]
_FORMS: dict[Task, type[PlanReply] | type[ChangeReply]] = {
    "plan": PlanReply,
    "change": ChangeReply,
}
"""The forms of the answers."""


class Planning:
    """The planning of one ticket. Each message of the model is saved before anything
    else is done with it.
    """

    def __init__(
        self,
        desk: PlanDesk,
        kept: AgentFile[PlanningNotes],
        model: Callable[[], Model],
        recorder: Recorder,
        tools: Sequence[Tool[Any]],
        tool_calls: ToolCalls,
        may_ask: bool,
        code: CodeFinder | None = None,
    ) -> None:
        """`kept` has the notes, and holds the ticket's lock until it is closed. `model`
        is called when a model is first needed, and raises `BadInput` if none is
        configured. `may_ask` is true if a user can answer questions. `code` finds the
        code that the ticket is about.
        """
        self.desk = desk
        self.kept = kept
        self.model = model
        self.recorder = recorder
        self.tools = tools
        self.tool_calls = tool_calls
        self.may_ask = may_ask
        self.code = code
        self.notes = kept.found or PlanningNotes()
        self._left_out = Omitted()

    def close(self) -> None:
        """Release the ticket. The notes stay."""
        self.kept.close()

    # The plan and the proposal

    @property
    def proposal(self) -> ImplementationPlan | None:
        return read_plan(self.notes.proposal) if self.notes.proposal else None

    def text(self) -> str:
        """Return the text of plan.md with the proposal; without one, the present text.

        Raises `BadInput` if there is neither, or if the proposal cannot be written.
        """
        if self.proposal is not None:
            return self.text_with(self.proposal)
        text = self.desk.present().text
        if not text:
            raise BadInput(f"The ticket {self.desk.ticket.slug} has no plan yet")
        return text

    def text_with(self, plan: ImplementationPlan) -> str:
        """Return the text of plan.md with this plan. Raises `BadInput` if text of the
        user would be lost.
        """
        return text_with(plan, self._base(), is_new=self.notes.is_anew)

    def problems(self) -> list[Problem]:
        """Return the problems of the proposal, or of the present plan, with the lines
        of `text`.
        """
        plan = self.desk.ticket.parse_plan(self.text())
        return self.desk.problems(
            plan, self.desk.ticket.read_spec(), self.desk.present()
        )

    def misfits(self) -> list[Problem]:
        """Return the problems by which the proposal, or the present plan, does not fit
        the spec.
        """
        return find_misfits(self.problems())

    @property
    def name_of_plan(self) -> str:
        """The name of the proposal, or else of plan.md, in messages."""
        return "Proposed plan" if self.notes.proposal else self.desk.shown_path

    def is_of_another_spec(self) -> bool:
        """True if the spec has changed since the proposal was made. Raises `BadInput`
        if the spec is not complete.
        """
        spec = self.desk.complete_spec()
        if not self.notes.proposal or not self.notes.spec:
            return False
        return self.notes.spec != _identity(spec)

    def shown(self) -> list[Event]:
        """Return the proposal and its problems."""
        return self._with_problems(self.proposed())

    def proposed(self) -> PlanProposed:
        """Return the proposal: a new plan, or changes of plan.md. Raises `BadInput`."""
        return self._proposed_after(None if self.notes.is_anew else self.notes.base)

    def _proposed_after(self, former: str | None, summary: str = "") -> PlanProposed:
        """Return the proposal as changes of a former text. None: the plan is new."""
        text = self.text()
        plan = self.desk.ticket.parse_plan(text)
        completed = self.desk.present().fixed.completed
        changes = None
        if former is not None:
            before = self.desk.ticket.parse_plan(former)
            changes = compare_plans(before, plan, completed)
        slug = self.desk.ticket.slug
        return PlanProposed.from_plan(slug, plan, text, completed, changes, summary)

    def _with_problems(self, proposed: PlanProposed) -> list[Event]:
        problems = tuple(self.problems())
        checked = PlanChecked(self.desk.ticket.slug, self.name_of_plan, problems)
        return [proposed, checked]

    def _base(self) -> Present:
        """Return the plan that the proposal changes."""
        if not self.notes.base.strip():
            return Present()
        plan = self.desk.ticket.parse_plan(self.notes.base)
        return replace(self.desk.present(), text=self.notes.base, plan=plan)

    # Proposing

    async def plan(self, guidance: str = "") -> None:
        """Have the model make a whole plan. The former notes are dropped."""
        spec = self.desk.complete_spec()
        present = self.desk.present()
        parts = [await self._find_context(spec)]
        if present.plan:
            parts += [_present_plan(present.plan), "Make a new plan in its place."]
            parts.append(_findings(present.plan))
        parts.append(await self._find_weak_tests(spec, present))
        if present.plan and present.fixed.is_begun:
            parts.append(_numbering(present.fixed, present.plan))
        if guidance:
            parts.append(f"{_SAID}\n\n{await self._with_files(guidance)}")
        parts.append("# Task\n\nPlan the ticket.")
        conversation = (self._message(parts),)
        self._refuse_too_long("plan", conversation)
        notes = PlanningNotes(
            task="plan", conversation=conversation, is_open=True, is_anew=True
        )
        self._keep(notes, spec=_identity(spec), base=present.text)
        await self.go_on()

    async def change(self, wish: str) -> None:
        """Have the model change the proposal, or else the present plan, as the user
        says.
        """
        spec = self.desk.complete_spec()
        present = self.desk.present()
        notes = self.notes
        if not notes.proposal:
            if present.plan is None:
                raise BadInput(
                    f"The ticket {self.desk.ticket.slug} has no plan to change"
                )
            notes = replace(notes, base=present.text, is_anew=False)
        plan = self.proposal or present.plan
        assert plan is not None
        parts = []
        if not notes.conversation:
            parts.append(await self._find_context(spec))
        parts += [
            _present_plan(plan),
            _findings(self.desk.ticket.parse_plan(self.text())),
            _misfits(self.misfits()),
            await self._find_weak_tests(spec, present),
            _numbering(present.fixed.with_steps_of(plan), plan),
            f"{_WISH}\n\n{await self._with_files(wish)}",
        ]
        conversation = (*notes.conversation, self._message(parts))
        self._refuse_too_long("change", conversation)
        if not notes.conversation:
            notes = replace(notes, spec=_identity(spec))
        self._keep(
            notes,
            task="change",
            conversation=conversation,
            is_open=True,
            questions=(),
            asked=0,
        )
        await self.go_on()

    async def answer(self, words: str) -> None:
        """Answer the open questions, or add to a planning that was interrupted."""
        said = Message("user", f"{_SAID}\n\n{await self._with_files(words)}")
        conversation = (*self.notes.conversation, said)
        self._keep(self.notes, conversation=conversation, questions=(), is_open=True)
        await self.go_on()

    async def _with_files(self, line: str) -> str:
        """Return a line of the user with the files that it mentions."""
        room = room_for_files(self.model())
        sent = await asyncio.to_thread(
            attach_files, self.desk.root, line, room, takes_pictures=False
        )
        for notice in sent.notices:
            self.recorder.emit(notice)
        return self.kept.redactor.redact(sent.text)

    async def go_on(self) -> None:
        """Continue the conversation with the model. Each message is saved, however this
        ends.
        """
        spec = self.desk.complete_spec()
        present = self.desk.present()
        exploration = Exploration()
        conversation = self.notes.conversation
        if self.notes.spec != _identity(spec):
            conversation = (
                *conversation,
                Message("user", f"{_NEW_SPEC}\n\n{render_spec(spec)}"),
            )
            self._keep(self.notes, conversation=conversation, spec=_identity(spec))
        # The last planning ended before it used the answer.
        if conversation[-1].role == "assistant":
            conversation = (
                *conversation,
                Message("user", "Continue, and give your answer again."),
            )
        remaining = MOST_QUESTIONS - self.notes.asked if self.may_ask else None
        base = None
        if self.notes.task == "change":
            base = self.proposal or present.plan
        judge = ReplyJudge(self.desk, spec, present, base, self.text_with, remaining)
        prompt = await asyncio.to_thread(
            self._prompt, self.notes.task, conversation, exploration
        )
        for notice in self._left_out.new_notices(prompt.left_out):
            self.recorder.emit(notice)
        self.recorder.emit(prompt.made)

        def keep(added: Added) -> None:
            nonlocal conversation
            conversation += added.messages
            self._keep(self.notes, conversation=conversation)
            if len(added.messages) > 1:
                self.recorder.emit(
                    Notice(exploration.in_words, Tone.QUIET, kind=NoticeKind.SEARCHING)
                )

        kind: type[Any] = _FORMS[self.notes.task]
        answer = await ask_structured(
            prompt.dialogue, prompt.messages, kind, check=judge.problems, keep=keep
        )
        for event in self._use_reply(answer.value, judge):
            self.recorder.emit(event)

    def _use_reply(
        self, reply: PlanReply | ChangeReply, judge: ReplyJudge
    ) -> list[Event]:
        """Keep the questions or the proposal of a reply, and return what the user
        sees.
        """
        if reply.questions:
            if not self.may_ask:
                raise NoUsableAnswer(
                    (
                        f"{self.model().name} asked a question instead of planning:"
                        f" {reply.questions[0].question}"
                    ),
                    hint=(
                        "Answer it in the spec, or answer there:"
                        f" `/plan {self.desk.ticket.slug}` in the shell."
                    ),
                )
            questions = tuple(
                f"{asked.question} ({asked.why})" for asked in reply.questions
            )
            self._keep(
                self.notes,
                questions=questions,
                asked=self.notes.asked + len(questions),
                is_open=False,
            )
            return self.open_questions()
        try:
            proposal = judge.plan_of(reply)
            self.text_with(proposal)
        except (ChangeRefused, BadInput) as refusal:
            raise NoUsableAnswer(
                f"The plan that {self.model().name} proposed cannot be used: {refusal}",
                hint="Nothing was changed. Rephrase your request, or edit plan.md"
                " by hand.",
            ) from refusal
        before = self.text() if self.notes.proposal else ""
        self._propose(proposal)
        if not (isinstance(reply, ChangeReply) and reply.changes):
            return self.shown()
        former = before if self.notes.is_anew else self.notes.base
        proposed = self._proposed_after(former, reply.changes.summary)
        return self._with_problems(proposed)

    def open_questions(self) -> list[Event]:
        lines = [
            f"{number}. {question}"
            for number, question in enumerate(self.notes.questions, 1)
        ]
        return [
            Answer("\n".join(lines)),
            Notice(
                "Answer in your own words, or type `close` to return to chat;"
                " your planning session is saved."
            ),
        ]

    def basic(self) -> list[Event]:
        """Propose a plan without a model: a step for each criterion that no completed
        step serves.
        """
        spec = self.desk.complete_spec()
        present = self.desk.present()
        fixed = present.fixed
        plan = make_basic_plan(
            spec,
            self.desk.ticket.slug,
            first_number=fixed.next_number if fixed.is_begun else 1,
            served=present.served_by_completed(spec.acceptance_criteria),
            used_ids=fixed.used_ids,
        )
        if not plan.steps:
            raise BadInput(
                "There is nothing to plan: a completed step covers each"
                " acceptance criterion"
            )
        if present.plan:
            plan = replace_plan(present.plan, plan, fixed)
        # Raises before anything is kept if the plan cannot be written.
        text_with(plan, present, is_new=True)
        self._keep(PlanningNotes(base=present.text, is_anew=True))
        self._propose(plan)
        return self.shown()

    def _refuse_too_long(self, task: Task, conversation: tuple[Message, ...]) -> None:
        """Raise `ContextTooLong` if the conversation does not fit into the window."""
        prompt = self._prompt(task, conversation)
        prompt.dialogue.refuse_too_long(add_form(prompt.messages, _FORMS[task]))

    def _propose(self, plan: ImplementationPlan) -> None:
        self._keep(self.notes, proposal=write_plan(plan), is_open=False, questions=())

    # Ending

    def save(self) -> None:
        """Write the proposal to plan.md. Raises `BadInput` if that is not possible; the
        proposal stays then.
        """
        proposal = self.proposal
        if proposal is None:
            raise BadInput("There is no proposed plan to approve")
        self.desk.save(
            proposal, self._base(), self.kept.lock, is_new=self.notes.is_anew
        )
        self.discard()

    def discard(self) -> None:
        """Drop the conversation and the proposal."""
        self.kept.discard()
        self.notes = PlanningNotes()

    def _keep(self, notes: PlanningNotes, **changes: object) -> None:
        """Save the notes: the conversation without secrets, the plans unchanged."""
        self.notes = replace(notes, **changes)
        redactor = self.kept.redactor
        conversation = without_secrets(self.notes.conversation, redactor)
        questions = redactor.redacted(self.notes.questions)
        self.kept.write(
            replace(self.notes, conversation=conversation, questions=questions)
        )

    # The prompt

    def _prompt(
        self,
        task: Task,
        conversation: tuple[Message, ...],
        exploration: Exploration | None = None,
    ) -> FittedPrompt:
        """Return the instructions and the conversation, shortened to the model's
        window.
        """
        exploration = exploration or Exploration()
        dialogue = Dialogue(
            self.model(),
            exploration.bounded(self.tools),
            self.tool_calls,
            Limits(rounds=_ROUNDS, seconds=exploration.most_seconds),
            emit=self.recorder.emit,
        )
        whole, *shorter = _shorter_and_shorter(conversation)
        parts = (
            PromptPart(load_prompt(self.desk.root, "planner")),
            PromptPart(project_rules(self.desk.root).section, RULES_FOR_AGENTS, rank=1),
            PromptPart(whole, SAID_BEFORE, smaller=shorter),
        )
        return fit(
            dialogue,
            parts,
            tools=1,
            reserved=estimate_tokens(describe_form(_FORMS[task])),
        )

    async def _find_context(self, spec: TicketSpec) -> str:
        work = partial(self._context, spec)
        return await search_in_thread(
            work, self.recorder.emit, "Looking for code about this ticket …"
        )

    async def _find_weak_tests(self, spec: TicketSpec, present: Present) -> str:
        """Return the part of the prompt about criteria whose tests are weak."""
        work = partial(self.desk.weak_criteria, spec, present)
        weak = await asyncio.to_thread(work)
        return self.kept.redactor.redact(_weak_tests(weak)) if weak else ""

    def _context(self, spec: TicketSpec) -> str:
        """Return the first part of the conversation: the spec, the project's files, the
        code that the ticket may be about, and the programs that a check may run.
        """
        tree = project_context(self.desk.root, ()).repo_tree
        window = self.model().window
        most_characters = _MOST_OF_TREE
        most_code = _MOST_CODE
        if window is not None:
            # A third of the window in characters is about a ninth of it in tokens.
            most_characters = min(_MOST_OF_TREE, window // 3)
            most_code = min(_MOST_CODE, window // 16) if window > _SMALL_WINDOW else 0
        if len(tree) > most_characters:
            tree = tree[:most_characters].rpartition("\n")[0]
            tree += "\n… and more: the tools show them"
        criteria = "\n".join(spec.acceptance_criteria)
        about = f"{spec.title}\n{spec.description}\n{criteria}"
        code = self._code_about(about, most_code)
        parts = [render_spec(spec), f"# Project\n\n{fenced(tree)}"]
        if code:
            parts.append(f"# Code that it may be about\n\n{code}")
        if self.desk.test_command:
            parts.append(f"The project's tests: `{self.desk.test_command}`.")
        commands = self.desk.commands
        if commands.settings.mode == "safe":
            programs = ", ".join(commands.allowed)
            parts.append(f"Each of `checks` may begin with: {programs}.")
        return "\n\n".join(parts)

    def _code_about(self, text: str, tokens: int) -> str:
        if self.code is None or not tokens:
            return ""
        root = self.desk.root
        ranked = self.code.rank(Query(text, without=project_rules(root).paths))
        return choose_code(CodeReader(root), ranked, self.code.outline, tokens).text

    def _message(self, parts: Sequence[str]) -> Message:
        alone = (
            "Nobody can answer questions now. Decide, and write each assumption into"
            " `risks`: `Assumed: …`."
        )
        end = "" if self.may_ask else alone
        return Message("user", "\n\n".join(filter(None, (*parts, end))))


def _shorter_and_shorter(
    conversation: tuple[Message, ...],
) -> Iterator[tuple[Message, ...]]:
    """Yield the conversation, then shorter versions without its oldest messages. The
    first message, the user's last words and the last change of the spec stay.

    The user's own words of a dropped message stay. The shortest versions drop
    them as well, the oldest first.
    """
    first, *others = conversation
    kept: dict[int, Message] = {}
    for place, message in enumerate(others):
        # The answer of a tool stays with its call.
        if message.role != "tool":
            yield (first, *kept.values(), *others[place:])
        if words := _words_of(message):
            kept[place] = Message("user", f"{_SAID_EARLIER}\n\n{words}")
        if place in (_last(others, _SAID, _WISH), _last(others, _NEW_SPEC)):
            kept[place] = message
    yield (first, *kept.values())
    for place, message in list(kept.items()):
        if message.content.startswith(_SAID_EARLIER):
            del kept[place]
            yield (first, *kept.values())


def _words_of(message: Message) -> str:
    """Return what the user said in a message: of a long text, the beginning and the
    end.
    """
    for heading in (_WISH, _SAID):
        _, found, words = message.content.partition(f"{heading}\n\n")
        if found and message.role == "user":
            return shorten(without_files(words), LONGEST_LINE)
    return ""


def _last(messages: Sequence[Message], *headings: str) -> int:
    """Return the position of the user's last message with one of these headings, or
    -1.
    """
    last = -1
    for place, message in enumerate(messages):
        has_heading = any(heading in message.content for heading in headings)
        if message.role == "user" and has_heading:
            last = place
    return last


def _identity(spec: TicketSpec) -> str:
    return digest(spec.to_yaml().encode("utf-8", errors="replace")) or ""


def _present_plan(plan: ImplementationPlan) -> str:
    """Return the plan as the model reads it, with numbers for labels, and with the
    labels that the user knows.
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


def _findings(plan: ImplementationPlan) -> str:
    """Return the problems of plan.md that the text of `_present_plan` does not show."""
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


def _weak_tests(weak: Sequence[CriterionStrength]) -> str:
    """Return the lines whose faults no test notices, for the model."""
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


def _misfits(problems: Sequence[Problem]) -> str:
    if not problems:
        return ""
    listed = "\n".join(f"- {problem.text}" for problem in problems)
    return f"# Where the plan does not fit the spec\n\n{listed}"


def _numbering(fixed: FixedSteps, plan: ImplementationPlan) -> str:
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
