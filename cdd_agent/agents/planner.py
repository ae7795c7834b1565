"""The Planner: the user's side of the conversation about a plan."""

from collections.abc import Awaitable, Collection

from msgspec.structs import replace

from cdd_agent.agents.document_agent import DocumentAgent
from cdd_agent.agents.meaning import Meaning
from cdd_agent.agents.plan_desk import state_of
from cdd_agent.agents.planning import Planning
from cdd_agent.agents.planning_notes import PlanningNotes
from cdd_agent.agents.ticket_agent import word
from cdd_agent.engine.retelling import LONGEST_TEXT
from cdd_agent.errors import BadInput
from cdd_agent.events.notices import Answer, Notice, NoticeKind, Tone
from cdd_agent.events.shell_events import PersonSaid
from cdd_agent.events.stream import Event
from cdd_agent.events.ticket_events import PlanChecked, PlanOpened
from cdd_agent.tickets.plan import without_step_ids


def _proposal(agent: "PlannerAgent") -> str:
    return agent._planning.notes.proposal


class PlannerAgent(DocumentAgent):
    """Writes plan.md only after `approve`."""

    name = "planner"
    ADDRESS = "the Planner"
    OTHERS = (
        (
            "anything else",
            ("your answer to the Planner's questions, or what to change in the plan"),
        ),
        ("`> keep it`", "the same, even if the text looks like a command"),
    )

    def __init__(self, planning: Planning, slash: Collection[str]) -> None:
        super().__init__(planning, planning.desk.ticket, slash)
        self._planning = planning

    @property
    def placeholder(self) -> str:
        notes = self._planning.notes
        if notes.questions:
            return "your answer …"
        if notes.proposal:
            return f"approve, {self._leaving_word}, or what to change …"
        if notes.is_open:
            return "continue, discard, or instructions …"
        return "regenerate, basic, or what to change …"

    @property
    def _leaving_word(self) -> str:
        """The word that ends the proposal. Without a plan, there is nothing to keep."""
        return "keep" if self._planning.notes.base.strip() else "discard"

    def view(self) -> list[Event]:
        """Return the current plan's steps, or its problems if it cannot run; then the
        proposal, and what the user can do next.
        """
        desk = self._planning.desk
        proposal = []
        try:
            present = desk.present()
            spec = desk.ticket.read_spec()
            if self._planning.notes.proposal:
                proposal = [replace(self._planning.proposed(), in_full=False)]
        except BadInput as error:
            # The user has edited a file.
            return [Notice(error.message, Tone.WARNING)]
        if present.plan is None:
            return [*proposal, self._what_next()]
        if present.plan.errors:
            problems = desk.problems(present.plan, spec, present)
            checked = PlanChecked(self.ticket_slug, desk.shown_path, tuple(problems))
            return [checked, *proposal, self._what_next()]
        opened = PlanOpened.from_run(
            spec.title,
            present.plan,
            state_of(present, self.ticket_slug),
            spec.acceptance_criteria,
        )
        return [opened, *proposal, self._what_next()]

    async def begin(self) -> None:
        planning = self._planning
        notes = planning.notes
        with planning.recorder.recording():
            self.report_ticket()
            if notes.proposal:
                text = "You have not approved this proposed plan yet."
                shown = planning.shown()
                if notes.questions:
                    # The questions follow, and must stay visible.
                    shown = [replace(planning.proposed(), in_full=False)]
                self.report(Notice(text, kind=NoticeKind.RESUMED), *shown)
            elif planning.desk.present().plan is not None:
                opened = [
                    event for event in self.view() if isinstance(event, PlanOpened)
                ]
                self.report(*opened, self._checked())
            elif not notes.conversation:
                await self._plan()
                return
            await self._show_open()

    async def carry_out(self, meaning: Meaning) -> None:
        with self._planning.recorder.recording():
            self._planning.recorder.note(PersonSaid(meaning.line[:LONGEST_TEXT]))
            await meaning.act()

    @property
    def text_hint(self) -> str:
        if self._planning.notes.proposal:
            return "Enter: ask the Planner for this change"
        return super().text_hint

    @word(
        *("approve", "yes", "y"),
        does="write the proposed plan to plan.md and return to chat",
        hint=lambda self: f"Enter: write {self._planning.desk.shown_path}",
        about=_proposal,
    )
    async def _approve(self) -> None:
        desk = self._planning.desk
        checked = None
        if self._planning.is_of_another_spec():
            checked = self._checked()
        self._planning.write()
        self.is_done = True
        if checked is not None:
            text = (
                "The spec has changed since this plan was made. The plan was"
                " checked again:"
            )
            self.report(
                Notice(text, Tone.WARNING, kind=NoticeKind.SPEC_CHANGED), checked
            )
        text = f"Wrote {desk.shown_path}. Next: `/exec {self.ticket_slug}` runs it."
        self.emit(Notice(text, Tone.GOOD, kind=NoticeKind.PLAN_WRITTEN))

    @word(
        "keep",
        does="discard the proposal, keep plan.md unchanged, and return to chat",
        hint="Enter: keep the plan unchanged",
        about=_proposal,
    )
    async def _keep(self) -> None:
        desk = self._planning.desk
        if desk.present().plan is None:
            self.report(Notice("There is no plan yet."), self._what_next())
            return
        self._planning.discard()
        self.is_done = True
        text = (
            f"{desk.shown_path} is unchanged. Next: `/exec {self.ticket_slug}` runs it."
        )
        self.emit(Notice(text, kind=NoticeKind.PLAN_KEPT))

    @word(
        "regenerate",
        does="make a new plan; completed steps stay",
        hint="Enter: make a new plan",
    )
    async def _plan(self, guidance: str = "") -> None:
        try:
            self._planning.model()
        except BadInput as error:
            # `basic` needs no model.
            self.emit(
                Notice(
                    f"{error.message.rstrip('.')}. {error.hint}",
                    Tone.WARNING,
                    kind=NoticeKind.NOT_DONE,
                )
            )
            self.emit(
                Notice(
                    "Type `basic` for a plan without a model: one step for each"
                    " acceptance criterion."
                )
            )
            return
        await self._propose(self._planning.plan(guidance))

    @word(
        "basic",
        does="propose a plan without a model: one step for each acceptance criterion",
        hint="Enter: propose a plan without a model",
    )
    async def _basic(self) -> None:
        self.report(*self._planning.basic(), self._what_next())

    @word(
        "show",
        does="show the proposed plan, or the current one",
        hint="Enter: show the plan",
    )
    async def _show(self) -> None:
        self.emit(Answer(without_step_ids(self._planning.text())))

    @word(
        "check",
        does="check the plan and show its problems",
        hint="Enter: check the plan",
    )
    async def _check(self) -> None:
        self.emit(self._checked())

    @word(
        *("continue", "c", "retry"),
        does="resume an interrupted planning session",
        hint="Enter: resume the planning session",
    )
    async def _continue(self) -> None:
        if self._planning.notes.is_open:
            await self._propose(self._planning.resume())
        else:
            await self._show_open()

    @word("", hint=lambda self: self._hint_of_enter())
    async def _show_open(self) -> None:
        if self._planning.notes.questions:
            self.report(*self._planning.open_questions())
        else:
            self.report(self._what_next())

    def _hint_of_enter(self) -> str:
        if self._planning.notes.questions:
            return "Enter: show open questions"
        if self._planning.notes.proposal:
            return (
                "approve: write the plan · other words: change it · Enter: show what"
                " to type"
            )
        return "Enter: show what to type next"

    @word(
        "discard",
        does="discard the proposal and the conversation; the Planner stays open",
        hint="Enter: discard the proposal and the conversation",
        about=_proposal,
    )
    async def _discard(self) -> None:
        self._planning.discard()
        self.report(
            Notice("Proposal discarded; plan.md unchanged.", kind=NoticeKind.PLAN_KEPT),
            self._what_next(),
        )

    @word(
        "close",
        does="return to chat; a proposal is saved, `/plan` shows it again",
        hint="Enter: return to chat; a proposal is saved",
    )
    async def _leave(self) -> None:
        self.is_done = True
        note = ""
        if self._planning.notes != PlanningNotes():
            note = " Your planning session is saved."
        self.emit(
            Notice(
                f"Left the Planner for {self.ticket_slug}.{note}",
                kind=NoticeKind.AGENT_LEFT,
            )
        )

    async def use_text(self, text: str) -> None:
        """Use an answer, a requested change, or guidance for a first plan."""
        planning = self._planning
        if planning.notes.questions or planning.notes.is_open:
            await self._propose(planning.answer(text))
        elif planning.notes.proposal or planning.desk.present().plan is not None:
            await self._propose(planning.change(text))
        else:
            await self._plan(text)

    async def _propose(self, planning: Awaitable[None]) -> None:
        await planning
        if not self._planning.notes.questions:
            self.emit(self._what_next())

    def _checked(self) -> PlanChecked:
        return PlanChecked(
            self.ticket_slug,
            self._planning.name_of_plan,
            tuple(self._planning.problems()),
        )

    def _what_next(self) -> Notice:
        notes = self._planning.notes
        if notes.questions:
            return Notice("Answer the Planner's questions.")
        if notes.is_open:
            text = (
                "Your planning session was interrupted and has been saved. Type"
                " `continue` or `discard`."
            )
            return Notice(text, kind=NoticeKind.RESUMED)
        if notes.proposal:
            ends = {
                "keep": "`keep` to leave plan.md unchanged",
                "discard": "`discard` to drop the proposal",
            }
            text = (
                f"Type `approve` to write the plan, {ends[self._leaving_word]}, or say"
                " what to change."
            )
        elif self._planning.desk.present().plan is not None:
            text = (
                "Type `keep`, `regenerate`, `show` or `check`, or say what to"
                " change in the plan."
            )
            if self._planning.misfits():
                text = f"The plan no longer matches the spec. {text}"
        else:
            text = (
                "Type `regenerate` for a new plan, `basic` for one without a"
                " model, or add instructions."
            )
        return Notice(text, kind=NoticeKind.WHAT_NEXT)
