"""A session: the project, the agent that receives plain text, and the user."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.agents.base import Agent, GeneralAgent
from cdd_agent.agents.conversation_so_far import conversation_so_far
from cdd_agent.agents.line_guesses import shell_name
from cdd_agent.agents.meaning import LineKind, Meaning
from cdd_agent.agents.mention_completion import files_to_mention
from cdd_agent.agents.pastes import LONGEST, save_long_line
from cdd_agent.agents.plan_desk import PlanDesk
from cdd_agent.agents.run_lines import (
    NO_RUN,
    RunLine,
    no_run_open,
    read_run_line,
)
from cdd_agent.agents.session_undo import RunVisit, SessionUndo
from cdd_agent.agents.step_editing import StepEditing
from cdd_agent.agents.store import LastActive
from cdd_agent.approval_mode import ApprovalMode
from cdd_agent.context.finder import CodeFinder
from cdd_agent.engine.change_history import ChangeHistory, SessionScope
from cdd_agent.engine.lock import TicketLock
from cdd_agent.engine.outside import OutsideChanges
from cdd_agent.engine.outside_undo import OutsideUndoing
from cdd_agent.engine.record import RunRecord
from cdd_agent.engine.run_inspection import RunReader
from cdd_agent.engine.steering import Take
from cdd_agent.engine.strength_summary import StrengthSettings
from cdd_agent.engine.whereabouts import RunElsewhere, in_its_tree
from cdd_agent.errors import BadInput, CddError
from cdd_agent.events.dialogue_events import PromptMade
from cdd_agent.events.notices import Notice, NoticeKind
from cdd_agent.events.question_events import ApprovalChanged
from cdd_agent.events.shell_events import AgentChanged, ModelsFound
from cdd_agent.events.step_events import UndoPreview
from cdd_agent.events.stream import Emit, beside_the_turn
from cdd_agent.files.index import FileIndex
from cdd_agent.frontend import Frontend, Nobody
from cdd_agent.llm.budget import Tally
from cdd_agent.llm.offered_model import OfferedModel
from cdd_agent.open_project import Project
from cdd_agent.redaction import Redactor
from cdd_agent.settings.config import Approval, Config
from cdd_agent.tickets.run_outcome import judge_run
from cdd_agent.tickets.state import load_state
from cdd_agent.tickets.status import RunStatus
from cdd_agent.tickets.store import Ticket

if TYPE_CHECKING:
    from cdd_agent.llm.local_servers import LocalServer


Opener = Callable[..., "Agent"]
"""Opens an agent on a `Ticket`, its first argument; its options are keyword arguments.
Raises `CddError`.
"""


_NAMES = {"executor": "the Executor", "planner": "the Planner", "socrates": "Socrates"}
NO_AGENT = "No agent is active: this is chat."
_SHOWN_AT_FIRST = 6
"""Models that the first screen has room for."""
FindServers = Callable[[], "Awaitable[Sequence[LocalServer]]"]


class Completed(Struct, frozen=True):
    """A ticket that was created, or whose spec, plan or run was completed."""

    ticket_slug: str
    agent: str | None = None
    """The agent that completed it; None for a ticket that was created."""


class Session(Struct, eq=False, dict=True):
    """The state of a user's work in a project. Lines go to the active agent, else to
    chat.
    """

    project: Project
    openers: Mapping[str, Opener]
    """The openers of agents that work on tickets, by the agent's name."""
    open_chat: Callable[[], GeneralAgent]
    emit: Emit
    """Receives the events of the session."""
    tally: Tally
    """The cost of all model calls of this session."""
    use: Callable[[Config], None]
    """Uses these settings, and their models in all agents. Raises `BadInput` if there
    is no such model; then nothing was changed.
    """
    find_servers: FindServers
    open_desk: Callable[[Ticket], PlanDesk]
    """Opens the desk on which a ticket's plan is read and written."""
    open_code: Callable[[], CodeFinder]
    """Finds code; created when it is first needed."""
    make_tree: Callable[[Ticket], Awaitable[Ticket]]
    """Creates or checks the worktree of a ticket's run; returns the ticket in it.
    Raises `CddError`.
    """
    land_run: Callable[..., Awaitable[None]]
    """Brings a `Ticket`'s run over from its own tree, by `rebase` or by merging. Raises
    `CddError`.
    """
    verify_run: Callable[..., Awaitable[None]]
    """Runs the checks of a `Ticket`'s completed steps again, on a copy of the files, or
    with `strength` with small faults in them.
    Raises `CddError`.
    """
    frontend: Frontend = field(default_factory=Nobody)
    """Answers questions before an undo."""
    scope: SessionScope = field(default_factory=SessionScope)
    """The changes that belong to this session."""
    approval: ApprovalMode = field(default_factory=ApprovalMode)
    """The approval mode, at first the one of the settings."""
    last_prompt: PromptMade | None = None
    """The last prompt."""
    agent: Agent | None = None
    offers: tuple[OfferedModel, ...] = ()
    """The models of this computer's servers, from the last search."""
    _shown: set[tuple[str, str]] = field(default_factory=set)
    """The agents and tickets whose conversation the user has seen."""
    _completed: Completed | None = None
    _worked_on: str | None = None
    _remembered: LastActive | None = None

    @property
    def last_ticket(self) -> str | None:
        """The slug of the active agent's ticket, or else of the one that was worked on
        last.
        """
        return self.agent.ticket_slug if self.agent is not None else self._worked_on

    def find_ticket(self, typed: str | None) -> Ticket | None:
        """Return the ticket that was typed, also as a part of its slug, or without one
        the one that was worked on last, if there is one. Raises `BadInput`.
        """
        if typed is not None:
            return self.project.tickets.find(typed, by_part=True)
        if self.last_ticket is None:
            return None
        return self.project.tickets.find_slug(self.last_ticket)

    @cached_property
    def _active_before(self) -> LastActive | None:
        """The agent that was active last in an earlier session."""
        return LastActive.of(self.project.root)

    @cached_property
    def chat(self) -> GeneralAgent:
        """The general agent, opened when it is first needed."""
        return self.open_chat()

    @cached_property
    def files(self) -> FileIndex:
        """The files of the project that a line can mention, for finding them while it
        is typed.
        """
        return files_to_mention(self.project.root)

    def change_approval(self, value: Approval) -> None:
        """Use another approval mode at once, also for the step that runs. An open run
        logs it.
        """
        self.approval.change(value)
        emit = self.emit if self.agent is None else self.agent.emit
        with beside_the_turn():
            emit(ApprovalChanged(value))

    def can_engage(self, name: str) -> bool:
        """True if an agent of this name works on tickets."""
        return name in self.openers

    async def look_for_models(self) -> ModelsFound:
        """Return the models that servers on this computer offer now."""
        servers = await self.find_servers()
        self.offers = tuple(
            OfferedModel(model, server.name, server.api_base)
            for server in servers
            for model in server.models
        )
        return ModelsFound(
            self.offers, tuple(server.name for server in servers if not server.models)
        )

    async def first_look(self) -> None:
        """Report an unfinished ticket, and the models found if none is configured."""
        last = await asyncio.to_thread(self.left_open)
        # otherwise this session has begun it
        if last is not None and self._remembered is None:
            who = _NAMES[last.agent or ""]
            self.emit(
                Notice(
                    f"Last time, {who} was working on {last.ticket}. Type `/resume` to"
                    " continue.",
                    kind=NoticeKind.WHAT_NEXT,
                )
            )
        if self.project.config.model is None:
            found = await self.look_for_models()
            is_chosen = (
                self.project.config.model is not None
            )  # a model may have been chosen
            if not is_chosen and (found.models or found.without_models):
                shown = found.models[:_SHOWN_AT_FIRST]
                self.emit(
                    replace(found, models=shown, more=len(found.models) - len(shown))
                )

    async def engage(
        self, name: str, ticket: Ticket, *, worktree: bool = False, **options: object
    ) -> None:
        """Make an agent the active one, on a ticket, perhaps in a separate worktree. If
        it has nothing to do, report that and leave it.
        """
        # it may hold the ticket's lock
        if self.agent is not None and self.agent.ticket_slug == ticket.slug:
            self.leave()
        if worktree:
            ticket = await self.make_tree(ticket)
        # if that fails, the active agent stays active
        agent = self.openers[name](ticket, **options)
        self.leave()
        self.agent = agent
        self._note_work(ticket)
        self._remember(LastActive(agent=agent.name, ticket=ticket.slug))
        self.emit(AgentChanged(agent.name, agent.ticket_slug))
        await self._show_conversation(agent.name, ticket)
        try:
            await agent.begin()
        except RunElsewhere:  # the run is elsewhere: this session cannot continue it
            self.leave()
            raise
        if agent.done:
            self.leave()

    async def _show_conversation(self, name: str, ticket: Ticket) -> None:
        """Show the saved conversation about a spec or a plan, once in this session."""
        conversation = (name, ticket.slug)
        if name not in ("socrates", "planner") or conversation in self._shown:
            return
        self._shown.add(conversation)
        record = RunRecord.of_ticket(ticket, self._redactor)
        # the agent reports a file that cannot be read
        with suppress(BadInput):
            saved = await asyncio.to_thread(conversation_so_far, record, name)
            if saved.events:
                self.emit(saved)

    async def tell(self, ticket: Ticket, line: str, *, is_look: bool = False) -> None:
        """Send a command to a ticket's run. The active agent stays active. `is_look`:
        the command changes nothing.
        """
        with self._visiting(ticket, is_look=is_look) as visited:
            meaning = visited.meaning(line)
            # a working agent has not finished its record
            if is_look and visited is self.agent:
                await meaning.act()
            else:
                await visited.carry_out(meaning)

    @contextmanager
    def _visiting(self, ticket: Ticket, *, is_look: bool) -> Iterator[Agent]:
        """Open the Executor on a ticket's run, or yield the active one."""
        agent = self.agent
        is_active = agent is not None and agent.ticket_slug == ticket.slug
        if agent is not None and is_active and agent.name == "executor":
            visited = agent
        else:
            visited = self._open_visit(ticket, is_look=is_look)
        if not is_look:
            self._note_work(ticket)
        try:
            yield visited
        finally:
            if visited is not agent:
                visited.close()

    async def land(self, ticket: Ticket, *, rebase: bool) -> None:
        """Bring a run over from its own tree. Raises `CddError`; then nothing was
        changed.
        """
        # it may hold a lock
        if self.agent is not None and self.agent.ticket_slug == ticket.slug:
            self.leave()
        self._note_work(ticket)
        await self.land_run(ticket, rebase=rebase)

    async def verify(self, ticket: Ticket, *, strength: bool = False) -> None:
        """Run the checks of a ticket's completed steps again, or with `strength` try
        small faults with them. Raises `CddError`.
        """
        await self.verify_run(ticket, strength=strength)

    @property
    def _redactor(self) -> Redactor:
        return Redactor.of_environment(self.project.config.commands.hide_env)

    @property
    def undoing(self) -> SessionUndo:
        """Undo, redo and diff of the changes of this session."""
        project = self.project
        changes = OutsideChanges.open(project.root, self._redactor)
        self.scope.conversations = self.chat.conversations
        return SessionUndo(
            history=ChangeHistory(project.tickets, changes, self._redactor),
            scope=self.scope,
            outside=OutsideUndoing(changes, self.emit),
            frontend=self.frontend,
            emit=self.emit,
            visit=self._visit_to_undo,
        )

    @contextmanager
    def _visit_to_undo(self, slug: str, is_look: bool) -> Iterator[RunVisit]:
        # late: the Executor brings the whole engine
        from cdd_agent.agents.executor import ExecutorAgent  # noqa: PLC0415

        ticket = self.project.tickets.find_slug(slug)
        with self._visiting(ticket, is_look=is_look) as visited:
            assert isinstance(visited, ExecutorAgent)
            yield visited

    def _note_work(self, ticket: Ticket) -> None:
        self._worked_on = ticket.slug
        self.scope.add_ticket(ticket.slug)

    def run_reader(self, slug: str | None = None) -> RunReader:
        """Return what reads the run of a ticket, by default of the current one. Raises
        `BadInput` if there is no such ticket.
        """
        slug = slug or self.last_ticket
        if slug is None:
            raise BadInput(
                "No ticket is open",
                hint="Name one: `/criteria SLUG`, or open its run: `/exec SLUG`.",
            )
        ticket = self.project.tickets.find_slug(slug)
        config = self.project.config
        return RunReader(
            ticket,
            in_its_tree(ticket),
            self._redactor,
            StrengthSettings.from_config(config),
        )

    async def preview_undo(self, number: int, slug: str) -> UndoPreview:
        """Return the effect of undoing a step of a ticket. Raises `CddError`."""
        # late: the Executor brings the whole engine
        from cdd_agent.agents.executor import ExecutorAgent  # noqa: PLC0415

        if isinstance(self.agent, ExecutorAgent) and self.agent.ticket_slug == slug:
            return await self.agent.preview_undo(number)
        ticket = self.project.tickets.find_slug(slug)
        visited = self._open_visit(ticket, is_look=True)
        try:
            assert isinstance(visited, ExecutorAgent)
            return await visited.preview_undo(number)
        finally:
            visited.close()

    def _open_visit(self, ticket: Ticket, *, is_look: bool = False) -> Agent:
        """Open the Executor on a ticket's run; the active agent stays active.
        `is_look`:
        nothing is changed.
        """
        ticket = in_its_tree(ticket)
        active, lock = self.agent, None
        if active is not None and active.ticket_slug == ticket.slug:
            is_held = ticket.root == self.project.root
            lock = active.lock.lent() if is_held else None
        return self.openers["executor"](
            ticket, is_visit=True, is_look=is_look, lock=lock
        )

    def edit_step(self, number: int, slug: str) -> StepEditing:
        """Return the editor of a step's text in a plan. Raises `BadInput` if there is
        no such ticket.
        """
        ticket = self.project.tickets.find_slug(slug)

        def held() -> TicketLock | None:
            is_ours = self.agent is not None and self.agent.ticket_slug == ticket.slug
            return (
                self.agent.lock.lent() if self.agent is not None and is_ours else None
            )

        return StepEditing(self.open_desk(ticket), number, held)

    def take_up_plan(self, slug: str) -> None:
        """Load a ticket's plan after an edit, while no turn runs: its run follows the
        new plan. Raises `BadInput`.
        """
        # late: the Executor brings the whole engine
        from cdd_agent.agents.executor import ExecutorAgent  # noqa: PLC0415

        if isinstance(self.agent, ExecutorAgent) and self.agent.ticket_slug == slug:
            self.agent.take_up_plan()

    def meaning(self, line: str) -> Meaning:
        """Return the meaning of a line that is no command: for the active agent, for a
        run that is not open, or for chat. Nothing is done for it.
        """
        if self.agent is not None:
            return self.agent.meaning(line)
        run_line = read_run_line(line)
        meaning = None
        if run_line is not None:
            meaning = self._meaning_without_run(run_line)
        if meaning is None:
            meaning = self._meaning_in_chat(line)
        return replace(meaning, line=line)

    def steer(self, meaning: Meaning, take: Take) -> bool:
        """Pass a line to the working agent; see `Agent.steer`."""
        if self.agent is None or not meaning.is_for_agent:
            return False
        return self.agent.steer(meaning, take)

    def save_long_line(self, line: str) -> str:
        """Return a line in the form in which it is kept and sent: the beginning and the
        end of a very long one, which is saved in a file.
        """
        if len(line) <= LONGEST or line.lstrip()[:1] in ("/", "!"):
            return line
        redactor = Redactor.of_environment(self.project.config.commands.hide_env)
        return save_long_line(self.project.root, line, redactor)

    async def carry_out(self, meaning: Meaning) -> None:
        """Do what a line means for the active agent or for chat. Raises `CddError`."""
        line = self.save_long_line(meaning.line)
        if line != meaning.line:
            meaning = self.meaning(line)
        agent = self.agent
        if agent is None:
            await meaning.act()
            return
        try:
            await agent.carry_out(meaning)
        except CddError:
            if agent.done:  # a finished agent takes no more lines
                self.leave()
            raise
        if agent.done:
            for event in agent.closing():
                self.emit(event)
            self.leave()
            if meaning.name != "close":
                self._completed = Completed(agent.ticket_slug, agent.name)

    def note_created(self, ticket: Ticket) -> None:
        """A ticket was created in this session."""
        self._note_work(ticket)
        self._completed = Completed(ticket.slug)

    def take_completed(self) -> Completed | None:
        """Return what the last line completed, once."""
        completed, self._completed = self._completed, None
        return completed

    def _meaning_in_chat(self, line: str) -> Meaning:
        """Return the meaning of a line for chat. A few words are answered here."""
        text = line.strip().lower()
        if not text:
            return Meaning(LineKind.NOTHING, "nothing", "", _do_nothing)
        answer = None
        if (command := shell_name(text)) in ("exit", "help", "clear"):
            answer = Notice(f"Type `/{command}` instead.")
        elif text == "close":
            answer = Notice(NO_AGENT)
        elif text in ("approve", "approve anyway"):
            slug = self.last_ticket or "SLUG"
            answer = Notice(
                "No question is open. To continue with the ticket, type"
                f" `/socrates {slug}` or `/plan {slug}`.",
                kind=NoticeKind.NOT_DONE,
            )
        if answer is not None:
            return self._answer(answer, answer.text)
        return Meaning(LineKind.TEXT, "chat", "", partial(self._send_to_chat, line))

    async def _send_to_chat(self, line: str) -> None:
        self._remember(LastActive(agent=None, ticket=None))
        await self.chat.say(line)

    def _meaning_without_run(self, said: RunLine) -> Meaning | None:
        """Return the meaning of a command for a run while none is open; None if the
        line can be part of a conversation.
        """
        if said.is_from_log and not said.step:
            newest = {
                "undo": self.undoing.undo,
                "redo": self.undoing.redo,
                "diff": self.undoing.diff,
            }
            act = newest[said.word]
            hint = said.hint("")
            return Meaning(LineKind.WORD, said.word, hint, act, about=said.word)
        is_chat = self._remembered is not None and self._remembered.agent is None
        if is_chat and said.is_conversation:
            return None
        last = self._remembered or self._active_before
        slug = self.last_ticket or (last.ticket if last is not None else None)
        if slug is None or last is None or last.agent != "executor":
            answer = no_run_open(said, slug, is_first=not self._remembered)
            return self._answer(answer, NO_RUN)
        if not said.is_from_log:
            act = partial(self._tell_how_far, slug, said)
            hint = said.hint(slug)
            return Meaning(LineKind.WORD, "how far", hint, act, about=(slug, said.word))
        if self._remembered is None:
            return self._answer(no_run_open(said, slug, is_first=True), NO_RUN)
        act = partial(self._tell_closed_run, slug, said)
        hint = said.hint(slug)
        return Meaning(LineKind.WORD, said.word, hint, act, about=(slug, said.step))

    def _answer(self, notice: Notice, reason: str) -> Meaning:
        """Return the meaning of a line that only shows a notice."""

        async def act() -> None:
            self.emit(notice)

        hint = f"Enter does nothing. {reason}"
        return Meaning(LineKind.NOTHING, "nothing", hint, act)

    async def _tell_closed_run(self, slug: str, said: RunLine) -> None:
        """Send the line to the run that was closed last. Raises `CddError`."""
        ticket = self.project.tickets.find_slug(slug)
        await self.tell(ticket, said.as_typed, is_look=said.word == "diff")

    async def _tell_how_far(self, slug: str, said: RunLine) -> None:
        """Show that all steps of a closed run are over, or how to open it."""
        try:
            ticket = in_its_tree(self.project.tickets.find_slug(slug))
            status = await asyncio.to_thread(_run_status, ticket)
        except CddError:
            self.emit(no_run_open(said, slug))
            return
        if said.word == "status":
            await self.tell(ticket, "status", is_look=True)
        elif status is RunStatus.COMPLETED:
            await self._report_all_done(ticket)
        else:
            has_own_tree = ticket.root != self.project.root
            run = f"{slug} --worktree" if has_own_tree else slug
            self.emit(no_run_open(said, run))

    async def _report_all_done(self, ticket: Ticket) -> None:
        # late: the Executor brings the whole engine
        from cdd_agent.agents.executor import ExecutorAgent  # noqa: PLC0415

        visited = self._open_visit(ticket, is_look=True)
        try:
            assert isinstance(visited, ExecutorAgent)
            await visited.report_all_done()
        finally:
            visited.close()

    def left_open(self) -> LastActive | None:
        """Return the agent that was active last, if it has unfinished work."""
        last = LastActive.of(self.project.root)
        if last is None or last.ticket is None or last.agent not in _NAMES:
            return None
        try:
            ticket = self.project.tickets.find_once_called(last.ticket)
            if ticket is None:
                return None
            last = replace(last, ticket=ticket.slug)
            if last.agent != "executor":
                return last
            status = _run_status(in_its_tree(ticket))
        except CddError:
            return None
        is_left = status is not None and status is not RunStatus.COMPLETED
        return last if is_left else None

    def _remember(self, last: LastActive) -> None:
        if last != self._remembered:
            self._remembered = last
            last.remember(self.project.root)

    def turn_to_chat(self) -> None:
        """Leave the active agent for a conversation that was resumed."""
        self.leave()
        self._remember(LastActive(agent=None, ticket=None))

    def leave(self) -> None:
        """Return to chat if an agent is active."""
        if self.agent is not None:
            self.agent.close()
            self.agent = None
            self.emit(AgentChanged(None))


def _run_status(ticket: Ticket) -> RunStatus | None:
    """Return the state of a run; None if it has not begun. Raises `CddError`."""
    plan = ticket.read_plan()
    state = load_state(ticket, plan)
    if state is None:
        return None
    return judge_run(plan, state, ticket.read_spec().acceptance_criteria).status


async def _do_nothing() -> None:
    """Carry out a blank line."""
