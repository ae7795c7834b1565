"""Planning a ticket: the dialogue with the model from which a plan, or a change of one,
is proposed.

It knows no screen and no words that a person types; those are `planner.py`'s. What a
plan must be is for `tickets` to say, and `agents/plan_desk.py` writes it.
"""

import asyncio
import difflib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Literal

from msgspec.structs import replace

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
from cdd_agent.context.finder import CodeFinder
from cdd_agent.context.query import Query
from cdd_agent.dialogue.code_context import packed
from cdd_agent.dialogue.fitted_prompt import FittedPrompt, PromptPart, fit
from cdd_agent.dialogue.looking import told_if_slow
from cdd_agent.dialogue.structured import (
    NoUsableAnswer,
    how_to_answer,
    structured,
    with_form,
)
from cdd_agent.dialogue.token_budget import Omitted
from cdd_agent.dialogue.turns import Added, Dialogue, Limits, ToolCalls
from cdd_agent.engine.recording import Recorder
from cdd_agent.errors import BadInput
from cdd_agent.events import About, Answer, Event, Notice, PlanChecked, Tone
from cdd_agent.files.atomic import digest
from cdd_agent.llm.budget import estimated_tokens
from cdd_agent.llm.port import Message, Model
from cdd_agent.project.context import project_context
from cdd_agent.project.rules import RULES_FOR_AGENTS, project_rules
from cdd_agent.sanitize import fenced
from cdd_agent.tickets.plan import ImplementationPlan, Problem
from cdd_agent.tickets.plan_changes import ChangeRefused, FixedSteps, replace_plan
from cdd_agent.tickets.plan_draft import make_basic_plan
from cdd_agent.tickets.plan_reader import read_plan
from cdd_agent.tickets.plan_writer import write_plan
from cdd_agent.tickets.spec import TicketSpec
from cdd_agent.tools.base import Tool

SAID_BEFORE = "what was said and looked at before"
"""The name of it where a prompt had no room for it."""
_ROUNDS = 30
_SAID, _WISH, _NEW_SPEC = (
    "# What the person says",
    "# What to change",
    "The spec was changed. It is now:",
)
_MOST_OF_TREE = 60_000
_MOST_CODE = 4_000
"""Tokens of the code that is shown because the ticket may be about it; a sixteenth of
the window.
"""
_SMALL_WINDOW = 8_192
"""Tokens: up to this, tools and rules are of more use."""
Task = Literal["plan", "change"]
_FORMS: dict[Task, type[PlanReply] | type[ChangeReply]] = {
    "plan": PlanReply,
    "change": ChangeReply,
}
"""Of the answers."""


class Planning:
    """One ticket's planning. Whatever the model has said is on the disk before anything
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
        """Until `kept`, which has the notes, is closed, nobody else is at work on the
        ticket. `model` is called when one is first needed, and raises `BadInput` where
        none is configured. `recorder` logs and tells what happens, `may_ask` is whether
        somebody is there to answer questions, and `code` finds the code that the ticket
        is about.
        """
        self.desk, self.kept, self.model, self.recorder = desk, kept, model, recorder
        self.tools, self.tool_calls, self.may_ask, self.code = (
            tools,
            tool_calls,
            may_ask,
            code,
        )
        self.notes = kept.found or PlanningNotes()
        self._left_out = Omitted()

    def close(self) -> None:
        """Let go of the ticket. The notes stay."""
        self.kept.close()

    # --------------------------------------------------------------------------
    # what there is

    @property
    def proposal(self) -> ImplementationPlan | None:
        return read_plan(self.notes.proposal) if self.notes.proposal else None

    def text(self) -> str:
        """plan.md as the proposal would leave it; without one, as it is.

        Raises `BadInput` where there is neither, or where the proposal cannot be
        written.
        """
        if self.proposal is not None:
            return self.text_with(self.proposal)
        if not (text := self.desk.present().text):
            raise BadInput(f"The ticket {self.desk.ticket.slug} has no plan yet")
        return text

    def text_with(self, plan: ImplementationPlan) -> str:
        """plan.md as this plan would leave it. Raises `BadInput` where something that a
        person wrote would be lost.
        """
        return text_with(plan, self._base(), anew=self.notes.is_anew)

    def problems(self) -> list[Problem]:
        """Of the proposal, or of the plan that is there; with the lines of `text`."""
        plan = self.desk.ticket.parse_plan(self.text())
        return self.desk.problems(
            plan, self.desk.ticket.read_spec(), self.desk.present()
        )

    @property
    def name_of_plan(self) -> str:
        """The proposal, or else plan.md, as people are told of it."""
        return "The proposed plan" if self.notes.proposal else self.desk.shown_path

    def is_of_another_spec(self) -> bool:
        """The proposal was made of a spec that has changed since. Raises `BadInput` for
        one that no plan can be of.
        """
        spec = self.desk.complete_spec()
        return bool(
            self.notes.proposal and self.notes.spec
        ) and self.notes.spec != _identity(spec)

    def shown(self) -> list[Event]:
        """The proposal, or what it changes, and what compiling it found."""
        text = self.text()
        return self._shown_as(
            text if self.notes.is_anew else _in_diff(self.notes.base, text)
        )

    def _shown_as(self, text: str) -> list[Event]:
        return [
            Answer(text),
            PlanChecked(
                self.desk.ticket.slug, self.name_of_plan, tuple(self.problems())
            ),
        ]

    def _base(self) -> Present:
        """The plan that the proposal was made of."""
        if not self.notes.base.strip():
            return Present()
        plan = self.desk.ticket.parse_plan(self.notes.base)
        return replace(self.desk.present(), text=self.notes.base, plan=plan)

    # --------------------------------------------------------------------------
    # proposing

    async def plan(self, guidance: str = "") -> None:
        """Have a whole plan made; what the notes held is dropped."""
        spec, present = self.desk.complete_spec(), self.desk.present()
        parts = [
            await self._looked(spec),
            (
                f"{_plan_now(present.plan)}\n\nMake a new one in its place."
                if present.plan
                else ""
            ),
            _numbering(present, present.fixed) if present.fixed.is_begun else "",
            f"{_SAID}\n\n{guidance}" if guidance else "",
            "# Task\n\nPlan the ticket.",
        ]
        conversation = (self._message(parts),)
        self._refuse_too_long("plan", conversation)
        notes = PlanningNotes(
            task="plan", conversation=conversation, is_open=True, is_anew=True
        )
        self._keep(notes, spec=_identity(spec), base=present.text)
        await self.go_on()

    async def change(self, wish: str) -> None:
        """Have the proposal, or else the plan that is there, changed as a person
        says.
        """
        spec, present = self.desk.complete_spec(), self.desk.present()
        notes = self.notes
        if not notes.proposal:
            if present.plan is None:
                raise BadInput(
                    f"The ticket {self.desk.ticket.slug} has no plan to change"
                )
            notes = replace(notes, base=present.text, is_anew=False)
        plan = self.proposal or present.plan
        assert plan is not None
        parts = [] if notes.conversation else [await self._looked(spec)]
        parts += [
            _plan_now(plan),
            _numbering(present, present.fixed.with_numbers_of(plan)),
            f"{_WISH}\n\n{wish}",
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
        """Answer the questions that are open, or say more to a planning that was
        interrupted.
        """
        self.model()
        conversation = (
            *self.notes.conversation,
            Message("user", f"{_SAID}\n\n{words}"),
        )
        self._keep(self.notes, conversation=conversation, questions=(), is_open=True)
        await self.go_on()

    async def go_on(self) -> None:
        """Ask the model, from where the conversation is. What was learnt stays, however
        this ends.
        """
        spec, present = self.desk.complete_spec(), self.desk.present()
        exploration = Exploration()
        conversation = self.notes.conversation
        if self.notes.spec != _identity(spec):
            conversation = (
                *conversation,
                Message("user", f"{_NEW_SPEC}\n\n{_spec(spec)}"),
            )
            self._keep(self.notes, conversation=conversation, spec=_identity(spec))
        # it was stopped before its answer was taken up
        if conversation[-1].role == "assistant":
            conversation = (
                *conversation,
                Message("user", "Go on, and give your answer again."),
            )
        left = MOST_QUESTIONS - self.notes.asked if self.may_ask else None
        base = self.proposal or present.plan if self.notes.task == "change" else None
        judge = ReplyJudge(self.desk, spec, present, base, self.text_with, left)
        prompt = await asyncio.to_thread(
            self._prompt, self.notes.task, conversation, exploration
        )
        for notice in self._left_out.news(prompt.left_out):
            self.recorder.emit(notice)
        self.recorder.emit(prompt.made)

        def keep(added: Added) -> None:
            nonlocal conversation
            conversation += added.messages
            self._keep(self.notes, conversation=conversation)
            if len(added.messages) > 1:
                self.recorder.emit(
                    Notice(exploration.in_words, Tone.QUIET, about=About.EXPLORED)
                )

        kind: type[Any] = _FORMS[self.notes.task]
        found = await structured(
            prompt.dialogue, prompt.messages, kind, check=judge.problems, keep=keep
        )
        for event in self._taken_up(found.value, judge):
            self.recorder.emit(event)

    def _taken_up(
        self, reply: PlanReply | ChangeReply, judge: ReplyJudge
    ) -> list[Event]:
        if reply.questions:
            if not self.may_ask:
                raise NoUsableAnswer(
                    f"{self.model().name} asks instead of planning:"
                    f" {reply.questions[0].question}",
                    hint=(
                        "Answer it in the spec, or plan in the shell: /plan"
                        f" {self.desk.ticket.slug}"
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
                f"What {self.model().name} proposes cannot be done: {refusal}",
                hint=(
                    "Nothing was changed. Say it in other words, or change plan.md by"
                    " hand."
                ),
            ) from refusal
        before = self.text() if self.notes.proposal else ""
        self._propose(proposal)
        if not (isinstance(reply, ChangeReply) and reply.changes):
            return self.shown()
        changed_from = before if self.notes.is_anew else self.notes.base
        return [
            Notice(reply.changes.summary, about=About.CHANGES),
            *self._shown_as(_in_diff(changed_from, self.text())),
        ]

    def open_questions(self) -> list[Event]:
        lines = [
            f"{number}. {question}"
            for number, question in enumerate(self.notes.questions, 1)
        ]
        return [
            Answer("\n".join(lines)),
            Notice(
                "Answer in your own words; `exit` leaves, and keeps what was found."
            ),
        ]

    def basic(self) -> list[Event]:
        """Propose a plan without a model: a step for each criterion that no done step
        serves.
        """
        spec, present = self.desk.complete_spec(), self.desk.present()
        done = [
            step
            for step in (present.plan.steps if present.plan else ())
            if step.number in present.fixed.completed
        ]
        served = frozenset(number for step in done for number in step.serves)
        first = present.fixed.next_number if present.fixed.is_begun else 1
        plan = make_basic_plan(
            spec, self.desk.ticket.slug, first_number=first, served=served
        )
        if not plan.steps:
            raise BadInput(
                "Every acceptance criterion is served by a step that is done; nothing"
                " is left to plan"
            )
        plan = replace_plan(present.plan, plan, present.fixed) if present.plan else plan
        text_with(plan, present, anew=True)  # what cannot be written is not kept
        self._keep(PlanningNotes(base=present.text, is_anew=True))
        self._propose(plan)
        return self.shown()

    def _refuse_too_long(self, task: Task, conversation: tuple[Message, ...]) -> None:
        """Raises `ContextTooLong` where the model could not take it in."""
        prompt = self._prompt(task, conversation)
        prompt.dialogue.refuse_too_long(with_form(prompt.messages, _FORMS[task]))

    def _propose(self, plan: ImplementationPlan) -> None:
        self._keep(self.notes, proposal=write_plan(plan), is_open=False, questions=())

    # --------------------------------------------------------------------------
    # ending

    def save(self) -> None:
        """Write the proposal to plan.md. Raises `BadInput` where that cannot be done;
        the proposal stays then.
        """
        proposal = self.proposal
        if proposal is None:
            raise BadInput("There is no proposal to approve")
        self.desk.save(proposal, self._base(), self.kept.lock, anew=self.notes.is_anew)
        self.discard()

    def discard(self) -> None:
        """Drop the conversation and the proposal."""
        self.kept.discard()
        self.notes = PlanningNotes()

    def _keep(self, notes: PlanningNotes, **changes: object) -> None:
        """In the file without secrets; but plans are used again as they are."""
        self.notes = notes = replace(notes, **changes)
        redactor = self.kept.redactor
        conversation, questions = (
            without_secrets(notes.conversation, redactor),
            redactor.redacted(notes.questions),
        )
        self.kept.write(replace(notes, conversation=conversation, questions=questions))

    # --------------------------------------------------------------------------
    # what is asked

    def _prompt(
        self,
        task: Task,
        conversation: tuple[Message, ...],
        exploration: Exploration | None = None,
    ) -> FittedPrompt:
        """The conversation with what is said before it, as far as the model's window
        has room.
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
            beside=estimated_tokens(how_to_answer(_FORMS[task])),
        )

    async def _looked(self, spec: TicketSpec) -> str:
        work = partial(self._context, spec)
        return await told_if_slow(
            work, self.recorder.emit, "Looking for the code that the ticket is about …"
        )

    def _context(self, spec: TicketSpec) -> str:
        """Told once: the spec, the project's files as far as there is room, code that
        it may be about, and how checks may begin.
        """
        tree = project_context(self.desk.root, ()).repo_tree
        # in tokens: as many characters as a third of them are a ninth of it, about
        window = self.model().window
        most = _MOST_OF_TREE if window is None else min(_MOST_OF_TREE, window // 3)
        if len(tree) > most:
            tree = tree[:most].rpartition("\n")[0] + "\n… and more: the tools show them"
        commands = self.desk.commands
        programs = (
            f"`verify` may begin with: {', '.join(commands.allowed)}."
            if commands.settings.mode == "safe"
            else ""
        )
        tests = (
            f"The project's tests: `{self.desk.test_command}`."
            if self.desk.test_command
            else ""
        )
        room = (
            _MOST_CODE
            if window is None
            else min(_MOST_CODE, window // 16)
            if window > _SMALL_WINDOW
            else 0
        )
        criteria = "\n".join(spec.acceptance_criteria)
        about = f"{spec.title}\n{spec.description}\n{criteria}"
        code = (
            f"# Code that it may be about\n\n{found}"
            if (found := self._code_about(about, room))
            else ""
        )
        return "\n\n".join(
            filter(
                None,
                [_spec(spec), f"# Project\n\n{fenced(tree)}", code, tests, programs],
            )
        )

    def _code_about(self, text: str, tokens: int) -> str:
        if self.code is None or not tokens:
            return ""
        return packed(
            self.desk.root,
            self.code.rank(Query(text, without=project_rules(self.desk.root).paths)),
            self.code.outline,
            tokens,
        ).text

    def _message(self, parts: Sequence[str]) -> Message:
        alone = (
            "Nobody can answer questions now. Decide, and write each assumption into"
            " `risks`: `Assumed: …`."
        )
        return Message(
            "user", "\n\n".join(filter(None, (*parts, "" if self.may_ask else alone)))
        )


def _shorter_and_shorter(
    conversation: tuple[Message, ...],
) -> Iterator[tuple[Message, ...]]:
    """The conversation, and what may be left of it: the oldest goes first; the first
    message, the person's last words and what the spec was changed to stay.
    """
    first, *others = conversation
    stay = {_last(others, _SAID, _WISH), _last(others, _NEW_SPEC)}
    for start, message in enumerate([*others, None]):
        if message is None or message.role != "tool":  # that stays with its call
            yield (
                first,
                *(others[place] for place in range(start) if place in stay),
                *others[start:],
            )


def _last(messages: Sequence[Message], *headings: str) -> int:
    """The place of the last message that is told under one of these; -1 without any."""
    told = (
        place
        for place, message in enumerate(messages)
        if message.role == "user"
        and any(heading in message.content for heading in headings)
    )
    return max(told, default=-1)


def _spec(spec: TicketSpec) -> str:
    criteria = "\n".join(
        f"{number}. {text}" for number, text in enumerate(spec.acceptance_criteria, 1)
    )
    return (
        f"# Spec\n\n{fenced(spec.to_yaml(), 'yaml')}\n\n# Acceptance criteria, by"
        f" number\n\n{criteria}"
    )


def _identity(spec: TicketSpec) -> str:
    return digest(spec.to_yaml().encode("utf-8", errors="replace")) or ""


def _plan_now(plan: ImplementationPlan) -> str:
    return f"# The plan as it is now\n\n{fenced(write_plan(plan), 'markdown')}"


def _numbering(present: Present, fixed: FixedSteps) -> str:
    steps = ", ".join(map(present.label_of, sorted(fixed.completed)))
    done = (
        f"Done, and to stay as they are: steps {steps}. Plan what is left. "
        if steps
        else ""
    )
    return (
        f"{done}A new step is numbered from {fixed.next_number} on: the numbers below"
        " are taken."
    )


def _in_diff(before: str, after: str) -> str:
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), "plan.md", "plan.md", lineterm=""
    )
    return fenced("\n".join(lines) or "Nothing is different.", "diff")
