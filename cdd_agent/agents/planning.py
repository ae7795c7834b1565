"""The conversation with a model about a ticket's plan.

`planner.py` reads the user's lines, `planner_prompt.py` builds the prompt, and
`plan_desk.py` reads and writes plan.md.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from cdd_agent.agents.document_conversation import DocumentConversation, ReplyForm
from cdd_agent.agents.exploring import Exploration
from cdd_agent.agents.plan_desk import PlanDesk, Present, text_with
from cdd_agent.agents.planner_prompt import (
    FORMS,
    NEW_SPEC,
    SAID,
    WISH,
    Task,
    describe_context,
    describe_findings,
    describe_misfits,
    describe_numbering,
    describe_plan,
    describe_weak_tests,
    make_prompt,
)
from cdd_agent.agents.planning_notes import PlanningNotes
from cdd_agent.agents.planning_replies import (
    MOST_QUESTIONS,
    ChangeReply,
    PlanReply,
    ReplyJudge,
)
from cdd_agent.agents.store import AgentFile, without_secrets
from cdd_agent.context.finder import CodeFinder
from cdd_agent.dialogue.code_search import search_in_thread
from cdd_agent.dialogue.fitted_prompt import FittedPrompt
from cdd_agent.dialogue.limits import Limits
from cdd_agent.dialogue.structured import NoUsableAnswer, add_form
from cdd_agent.dialogue.turns import Added, Dialogue, ToolCalls
from cdd_agent.engine.recording import Recorder
from cdd_agent.errors import BadInput
from cdd_agent.events.notices import Answer, Notice, NoticeKind, Tone
from cdd_agent.events.stream import Event
from cdd_agent.events.ticket_events import PlanChecked, PlanProposed
from cdd_agent.files.atomic import digest
from cdd_agent.llm.port import Message, Model
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.tickets.plan import ImplementationPlan, Problem
from cdd_agent.tickets.plan_changes import ChangeRefused, replace_plan
from cdd_agent.tickets.plan_check import find_misfits
from cdd_agent.tickets.plan_comparison import compare_plans
from cdd_agent.tickets.plan_draft import make_basic_plan
from cdd_agent.tickets.plan_reader import read_plan
from cdd_agent.tickets.plan_writer import write_plan
from cdd_agent.tickets.spec import TicketSpec
from cdd_agent.tickets.spec_prompt import render_spec
from cdd_agent.tools.base import Tool

_ROUNDS = 30
_NO_ONE_ANSWERS = (
    "Nobody can answer questions now. Decide, and write each assumption into"
    " `risks`: `Assumed: …`."
)


class Planning(DocumentConversation[PlanningNotes]):
    def __init__(
        self,
        *,
        desk: PlanDesk,
        file: AgentFile[PlanningNotes],
        model: Callable[[], Model],
        recorder: Recorder,
        tools: Sequence[Tool[Any]],
        tool_calls: ToolCalls,
        may_ask: bool,
        code: CodeFinder | None = None,
    ) -> None:
        """`model` is called on first use, and raises `BadInput` if none is configured.
        `may_ask`: a user can answer questions. `code` finds code that concerns the
        ticket.
        """
        super().__init__(file, desk.root, recorder)
        self.desk = desk
        self.model = model
        self.recorder = recorder
        self.may_ask = may_ask
        self.notes = file.saved or PlanningNotes()
        self._tools = tools
        self._tool_calls = tool_calls
        self._code = code

    # The plan and the proposal

    @property
    def proposal(self) -> ImplementationPlan | None:
        return read_plan(self.notes.proposal) if self.notes.proposal else None

    def text(self) -> str:
        """Return the text of plan.md with the proposal, if any. Raises `BadInput` if
        there is no plan either, or if the proposal cannot be written.
        """
        if self.proposal is not None:
            return self.text_with(self.proposal)
        text = self.desk.present().text
        if not text:
            raise BadInput(
                f"The ticket {self.desk.ticket.slug} has no plan yet",
                refusal=Refusal.NOTHING_TO_PLAN,
            )
        return text

    def text_with(self, plan: ImplementationPlan) -> str:
        """Raise `BadInput` if text of the user would be lost."""
        return text_with(plan, self._base(), is_new=self.notes.is_anew)

    def problems(self) -> list[Problem]:
        """Return the problems of `text`."""
        plan = self.desk.ticket.parse_plan(self.text())
        spec = self.desk.ticket.read_spec()
        return self.desk.problems(plan, spec, self.desk.present())

    def misfits(self) -> list[Problem]:
        """Return the problems by which `text` does not match the spec."""
        return find_misfits(self.problems())

    @property
    def name_of_plan(self) -> str:
        return "Proposed plan" if self.notes.proposal else self.desk.shown_path

    def is_of_another_spec(self) -> bool:
        """True if the spec has changed since the proposal. Raises `BadInput` if the
        spec is incomplete.
        """
        spec = self.desk.complete_spec()
        if not self.notes.proposal or not self.notes.spec:
            return False
        return self.notes.spec != _identity(spec)

    def shown(self) -> list[Event]:
        return self._with_problems(self.proposed())

    def proposed(self) -> PlanProposed:
        """Return the proposal: a new plan, or changes of plan.md. Raises `BadInput`."""
        return self._proposed_after(None if self.notes.is_anew else self.notes.base)

    def _proposed_after(self, base_text: str | None, summary: str = "") -> PlanProposed:
        """Return the proposal as changes of a former text. None: the plan is new."""
        text = self.text()
        plan = self.desk.ticket.parse_plan(text)
        completed = self.desk.present().fixed.completed
        changes = None
        if base_text is not None:
            base_plan = self.desk.ticket.parse_plan(base_text)
            changes = compare_plans(base_plan, plan, completed)
        slug = self.desk.ticket.slug
        return PlanProposed.from_plan(slug, plan, text, completed, changes, summary)

    def _with_problems(self, proposed: PlanProposed) -> list[Event]:
        problems = tuple(self.problems())
        checked = PlanChecked(self.desk.ticket.slug, self.name_of_plan, problems)
        return [proposed, checked]

    def _base(self) -> Present:
        if not self.notes.base.strip():
            return Present()
        plan = self.desk.ticket.parse_plan(self.notes.base)
        return replace(self.desk.present(), text=self.notes.base, plan=plan)

    # Requests of the user

    async def plan(self, guidance: str = "") -> None:
        """Ask the model for a new plan. Earlier notes are dropped."""
        spec = self.desk.complete_spec()
        present = self.desk.present()
        parts = [await self._find_context(spec)]
        if present.plan:
            parts += [
                describe_plan(present.plan),
                "Make a new plan in its place.",
                describe_findings(present.plan),
            ]
        parts.append(await self._find_weak_tests(spec, present))
        if present.plan and present.fixed.is_begun:
            parts.append(describe_numbering(present.fixed, present.plan))
        if guidance:
            parts.append(f"{SAID}\n\n{await self._with_files(guidance)}")
        parts.append("# Task\n\nPlan the ticket.")
        messages = (self._message(parts),)
        self._refuse_too_long("plan", messages)
        self._save(
            PlanningNotes(
                task="plan",
                conversation=messages,
                is_open=True,
                spec=_identity(spec),
                base=present.text,
                is_anew=True,
            )
        )
        await self.resume()

    async def change(self, wish: str) -> None:
        spec = self.desk.complete_spec()
        present = self.desk.present()
        notes = self.notes
        if not notes.proposal:
            notes = replace(notes, base=present.text, is_anew=False)
        plan = self.proposal or present.plan
        if plan is None:
            raise BadInput(
                f"The ticket {self.desk.ticket.slug} has no plan to change",
                refusal=Refusal.NOTHING_TO_PLAN,
            )
        parts = []
        if not notes.conversation:
            notes = replace(notes, spec=_identity(spec))
            parts.append(await self._find_context(spec))
        parts += [
            describe_plan(plan),
            describe_findings(self.desk.ticket.parse_plan(self.text())),
            describe_misfits(self.misfits()),
            await self._find_weak_tests(spec, present),
            describe_numbering(present.fixed.with_steps_of(plan), plan),
            f"{WISH}\n\n{await self._with_files(wish)}",
        ]
        messages = (*notes.conversation, self._message(parts))
        self._refuse_too_long("change", messages)
        self._save(
            replace(
                notes,
                task="change",
                conversation=messages,
                is_open=True,
                questions=(),
                asked=0,
            )
        )
        await self.resume()

    async def answer(self, words: str) -> None:
        """Answer the open questions, or add to an interrupted planning."""
        message = Message("user", f"{SAID}\n\n{await self._with_files(words)}")
        self._save(
            replace(
                self.notes,
                conversation=(*self.notes.conversation, message),
                questions=(),
                is_open=True,
            )
        )
        await self.resume()

    def _message(self, parts: Sequence[str]) -> Message:
        end = "" if self.may_ask else _NO_ONE_ANSWERS
        return Message("user", "\n\n".join(filter(None, (*parts, end))))

    async def _with_files(self, line: str) -> str:
        sent = await self.attach_files(line, self.model(), takes_pictures=False)
        return self.redactor.redact(sent.text)

    async def _find_context(self, spec: TicketSpec) -> str:
        window = self.model().window
        work = partial(describe_context, self.desk, spec, self._code, window)
        return await search_in_thread(
            work, self.emit, "Looking for code about this ticket …"
        )

    async def _find_weak_tests(self, spec: TicketSpec, present: Present) -> str:
        weak = await asyncio.to_thread(self.desk.weak_criteria, spec, present)
        return self.redactor.redact(describe_weak_tests(weak)) if weak else ""

    # A turn of the model

    async def resume(self) -> None:
        """Continue the conversation with the model. Each message is saved at once."""
        spec = self.desk.complete_spec()
        present = self.desk.present()
        messages = self._messages_for(spec)
        judge = self._judge(spec, present)
        exploration = Exploration()
        task = self.notes.task
        prompt = await asyncio.to_thread(self._prompt, task, messages, exploration)

        def save_round(added: Added) -> None:
            nonlocal messages
            messages += added.messages
            self._save(replace(self.notes, conversation=messages))
            if len(added.messages) > 1:
                text = exploration.in_words
                self.emit(Notice(text, Tone.QUIET, kind=NoticeKind.SEARCHING))

        form: ReplyForm[Any] = ReplyForm(FORMS[task], judge.problems)
        reply = (await self.request_reply(prompt, form, save_round)).value
        events = (
            self._ask(reply) if reply.questions else self._propose_reply(reply, judge)
        )
        for event in events:
            self.emit(event)

    def _messages_for(self, spec: TicketSpec) -> tuple[Message, ...]:
        messages = self.notes.conversation
        if self.notes.spec != _identity(spec):
            changed = Message("user", f"{NEW_SPEC}\n\n{render_spec(spec)}")
            messages = (*messages, changed)
            self._save(replace(self.notes, conversation=messages, spec=_identity(spec)))
        # An earlier process ended before it used the answer.
        if messages[-1].role == "assistant":
            again = Message("user", "Continue, and give your answer again.")
            messages = (*messages, again)
        return messages

    def _judge(self, spec: TicketSpec, present: Present) -> ReplyJudge:
        base = None
        if self.notes.task == "change":
            base = self.proposal or present.plan
        remaining = MOST_QUESTIONS - self.notes.asked if self.may_ask else None
        return ReplyJudge(self.desk, spec, present, base, self.text_with, remaining)

    def _ask(self, reply: PlanReply | ChangeReply) -> list[Event]:
        if not self.may_ask:
            name = self.model().name
            question = reply.questions[0].question
            raise NoUsableAnswer(
                f"{name} asked a question instead of planning: {question}",
                hint="Answer it in the spec, or answer there:"
                f" `/plan {self.desk.ticket.slug}` in the shell.",
            )
        questions = tuple(
            f"{asked.question} ({asked.why})" for asked in reply.questions
        )
        self._save(
            replace(
                self.notes,
                questions=questions,
                asked=self.notes.asked + len(questions),
                is_open=False,
            )
        )
        return self.open_questions()

    def _propose_reply(
        self, reply: PlanReply | ChangeReply, judge: ReplyJudge
    ) -> list[Event]:
        try:
            proposal = judge.plan_of(reply)
            self.text_with(proposal)
        except (ChangeRefused, BadInput) as refusal:
            raise NoUsableAnswer(
                f"The plan that {self.model().name} proposed cannot be used: {refusal}",
                hint="Nothing was changed. Rephrase your request, or edit plan.md"
                " by hand.",
            ) from refusal
        former_proposal = self.text() if self.notes.proposal else ""
        self._propose(proposal)
        if not (isinstance(reply, ChangeReply) and reply.changes):
            return self.shown()
        base = former_proposal if self.notes.is_anew else self.notes.base
        proposed = self._proposed_after(base, reply.changes.summary)
        return self._with_problems(proposed)

    def open_questions(self) -> list[Event]:
        questions = enumerate(self.notes.questions, 1)
        lines = [f"{number}. {question}" for number, question in questions]
        return [
            Answer("\n".join(lines)),
            Notice(
                "Answer in your own words, or type `close` to return to chat;"
                " your planning session is saved.",
                kind=NoticeKind.WHAT_NEXT,
            ),
        ]

    def _prompt(
        self,
        task: Task,
        messages: tuple[Message, ...],
        exploration: Exploration,
    ) -> FittedPrompt:
        dialogue = Dialogue(
            self.model(),
            exploration.bounded(self._tools),
            self._tool_calls,
            Limits(rounds=_ROUNDS, seconds=exploration.most_seconds),
            emit=self.emit,
        )
        return make_prompt(self.desk, dialogue, task, messages)

    def _refuse_too_long(self, task: Task, messages: tuple[Message, ...]) -> None:
        """Raise `ContextTooLong` if the conversation exceeds the window."""
        prompt = self._prompt(task, messages, Exploration())
        prompt.dialogue.refuse_too_long(add_form(prompt.messages, FORMS[task]))

    # Without a model

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
                " acceptance criterion",
                refusal=Refusal.NOTHING_TO_PLAN,
            )
        if present.plan:
            plan = replace_plan(present.plan, plan, fixed)
        # This raises before anything is saved if the plan cannot be written.
        text_with(plan, present, is_new=True)
        self._save(PlanningNotes(base=present.text, is_anew=True))
        self._propose(plan)
        return self.shown()

    # Saving and writing

    def _propose(self, plan: ImplementationPlan) -> None:
        self._save(
            replace(self.notes, proposal=write_plan(plan), is_open=False, questions=())
        )

    def _save(self, notes: PlanningNotes) -> None:
        self.notes = notes
        conversation = without_secrets(notes.conversation, self.redactor)
        questions = self.redactor.redacted(notes.questions)
        self.file.write(replace(notes, conversation=conversation, questions=questions))

    def write(self) -> None:
        """Write the proposal to plan.md. Raises `BadInput` on failure, and keeps the
        proposal.
        """
        proposal = self.proposal
        if proposal is None:
            raise BadInput(
                "There is no proposed plan to approve", refusal=Refusal.NOTHING_TO_PLAN
            )
        self.desk.save(
            proposal, self._base(), self.file.lock, is_new=self.notes.is_anew
        )
        self.discard()

    def discard(self) -> None:
        self.file.discard()
        self.notes = PlanningNotes()


def _identity(spec: TicketSpec) -> str:
    return digest(spec.to_yaml().encode("utf-8", errors="replace")) or ""
