"""A session: a project, the active agent, and the user."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.agents.active_memory import AGENT_NAMES, ActiveMemory
from cdd_agent.agents.base import Agent, GeneralAgent
from cdd_agent.agents.conversation_so_far import conversation_so_far
from cdd_agent.agents.meaning import Meaning
from cdd_agent.agents.mention_completion import files_to_mention
from cdd_agent.agents.pastes import LONGEST, save_long_line
from cdd_agent.agents.plan_desk import PlanDesk
from cdd_agent.agents.run_agent import RunAgent
from cdd_agent.agents.session_undo import RunVisit, SessionUndo
from cdd_agent.agents.step_editing import StepEditing
from cdd_agent.context.finder import CodeFinder
from cdd_agent.engine.approval_mode import ApprovalMode
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
from cdd_agent.session.open_project import Project
from cdd_agent.session.session_lines import read_line_without_agent
from cdd_agent.settings.config import Approval, Config
from cdd_agent.text.redaction import Redactor
from cdd_agent.tickets.slugs import EnoughOfSlug
from cdd_agent.tickets.store import Ticket

if TYPE_CHECKING:
    from cdd_agent.agents.store import LastActive
    from cdd_agent.llm.local_servers import LocalServer


Opener = Callable[..., "Agent"]
"""Opens an agent on a `Ticket`, the first argument; options are keyword arguments.
Raises `CddError`.
"""


_SHOWN_AT_FIRST = 6
"""Maximum models on the first screen."""
FindServers = Callable[[], "Awaitable[Sequence[LocalServer]]"]


class Completed(Struct, frozen=True):
    ticket_slug: str
    agent: str | None = None
    """None for a new ticket."""


class Session(Struct, eq=False, dict=True):
    """The state of a user's work in a project. Lines go to the active agent, otherwise
    to chat.
    """

    project: Project
    openers: Mapping[str, Opener]
    open_chat: Callable[[], GeneralAgent]
    emit: Emit
    tally: Tally
    use: Callable[[Config], None]
    """Switches all agents to these settings and their models. Raises `BadInput` for an
    unknown model, and changes nothing then.
    """
    find_servers: FindServers
    open_desk: Callable[[Ticket], PlanDesk]
    open_code: Callable[[], CodeFinder]
    """Creates the code finder on first use."""
    make_tree: Callable[[Ticket], Awaitable[Ticket]]
    """Creates or checks the worktree of a ticket's run. Returns the ticket in it.
    Raises `CddError`.
    """
    land_run: Callable[..., Awaitable[None]]
    """Merges or rebases a `Ticket`'s run from its worktree into the project. Raises
    `CddError`, and changes nothing then.
    """
    verify: Callable[..., Awaitable[None]]
    """Runs the checks of a `Ticket`'s completed steps again, on a copy of the files.
    With `strength`, the copy contains small faults. Raises `CddError`.
    """
    frontend: Frontend = field(default_factory=Nobody)
    scope: SessionScope = field(default_factory=SessionScope)
    approval: ApprovalMode = field(default_factory=ApprovalMode)
    """Initially the mode in the settings."""
    last_prompt: PromptMade | None = None
    agent: Agent | None = None
    offers: tuple[OfferedModel, ...] = ()
    """Models of servers on this computer, from the last search."""
    _shown: set[tuple[str, str]] = field(default_factory=set)
    """Agents and tickets whose conversation was shown."""
    _completed: Completed | None = None
    _worked_on: str | None = None

    @property
    def last_ticket(self) -> str | None:
        """The slug of the active agent's ticket, otherwise of the last ticket in this
        session.
        """
        return self.agent.ticket_slug if self.agent is not None else self._worked_on

    def find_ticket(self, typed: str | None) -> Ticket | None:
        """Return the ticket of a slug or part of a slug. Without one, return the last
        ticket, if any. Raises `BadInput`.
        """
        if typed is not None:
            return self.project.tickets.find(typed, EnoughOfSlug.PART)
        if self.last_ticket is None:
            return None
        return self.project.tickets.find_slug(self.last_ticket)

    @cached_property
    def memory(self) -> ActiveMemory:
        return ActiveMemory(self.project.root)

    @property
    def redactor(self) -> Redactor:
        return Redactor.of_environment(self.project.config.commands.hide_env)

    @cached_property
    def chat(self) -> GeneralAgent:
        """The general agent, opened on first use."""
        return self.open_chat()

    @cached_property
    def files(self) -> FileIndex:
        """The project's files, for completion of mentions."""
        return files_to_mention(self.project.root)

    def change_approval(self, value: Approval) -> None:
        """Change the approval mode at once, also for the running step. An open run logs
        the change.
        """
        self.approval.change(value)
        emit = self.emit if self.agent is None else self.agent.emit
        with beside_the_turn():
            emit(ApprovalChanged(value))

    def can_engage(self, name: str) -> bool:
        return name in self.openers

    async def look_for_models(self) -> ModelsFound:
        servers = await self.find_servers()
        self.offers = tuple(
            OfferedModel(model, server.name, server.api_base)
            for server in servers
            for model in server.models
        )
        return ModelsFound(
            self.offers, tuple(server.name for server in servers if not server.models)
        )

    def find_unfinished(self) -> LastActive | None:
        return self.memory.find_unfinished(self.project.tickets)

    async def first_look(self, *, first_line: str = "") -> None:
        """Report an unfinished ticket, unless the session starts with a line. If no
        model is configured, report the models found.
        """
        last = await asyncio.to_thread(self.find_unfinished)
        # With a current agent, this session has already started work.
        if last is not None and self.memory.current is None and not first_line:
            text = (
                f"Last time, {AGENT_NAMES[last.agent or '']} was working on"
                f" {last.ticket}. Type `/resume` to continue."
            )
            self.emit(Notice(text, kind=NoticeKind.WHAT_NEXT))
        if self.project.config.model is not None:
            return
        models = await self.look_for_models()
        # The user may have chosen a model during the search.
        has_model = self.project.config.model is not None
        if not has_model and (models.models or models.without_models):
            shown = models.models[:_SHOWN_AT_FIRST]
            more = len(models.models) - len(shown)
            self.emit(replace(models, models=shown, more=more))

    async def engage(
        self, name: str, ticket: Ticket, *, worktree: bool = False, **options: object
    ) -> None:
        """Activate an agent on a ticket, optionally in a worktree. An agent that has
        nothing to do reports that, and is left at once.
        """
        self._leave_ticket(ticket)
        if worktree:
            ticket = await self.make_tree(ticket)
        # If this fails, the active agent stays active.
        agent = self.openers[name](ticket, **options)
        self.leave()
        self.agent = agent
        self._note_work(ticket)
        self.memory.remember(agent.name, ticket.slug)
        self.emit(AgentChanged(agent.name, agent.ticket_slug))
        await self._show_conversation(agent.name, ticket)
        try:
            await agent.begin()
        except RunElsewhere:  # this session cannot continue the run
            self.leave()
            raise
        if agent.is_done:
            self.leave()

    async def _show_conversation(self, name: str, ticket: Ticket) -> None:
        """Show the saved conversation about a spec or a plan, once per session."""
        conversation = (name, ticket.slug)
        if name not in ("socrates", "planner") or conversation in self._shown:
            return
        self._shown.add(conversation)
        record = RunRecord.of_ticket(ticket, self.redactor)
        # The agent itself reports an unreadable file.
        with suppress(BadInput):
            saved = await asyncio.to_thread(conversation_so_far, record, name)
            if saved.events:
                self.emit(saved)

    # Runs

    @property
    def _active_run(self) -> RunAgent | None:
        return self.agent if isinstance(self.agent, RunAgent) else None

    async def send_to_run(
        self, ticket: Ticket, line: str, *, is_look: bool = False
    ) -> None:
        """Send a command to a ticket's run without a change of the active agent.
        `is_look`: the command is read-only.
        """
        with self.visit_run(ticket, is_look=is_look) as run:
            meaning = run.meaning(line)
            # `carry_out` opens the record, which a working agent has open already.
            if is_look and run is self.agent:
                await meaning.act()
            else:
                await run.carry_out(meaning)

    @contextmanager
    def visit_run(self, ticket: Ticket, *, is_look: bool = True) -> Iterator[RunAgent]:
        """Yield the active run, or open the Executor on the ticket's run. The active
        agent does not change. `is_look`: read-only.
        """
        active = self._active_run
        is_active = active is not None and active.ticket_slug == ticket.slug
        if not is_look:
            self._note_work(ticket)
        if active is not None and is_active:
            yield active
            return
        run = self._open_visit(ticket, is_look=is_look)
        try:
            yield run
        finally:
            run.close()

    def _open_visit(self, ticket: Ticket, *, is_look: bool) -> RunAgent:
        ticket = in_its_tree(ticket)
        is_held_here = ticket.root == self.project.root
        run = self.openers["executor"](
            ticket,
            is_visit=True,
            is_look=is_look,
            lock=self._lend_lock(ticket) if is_held_here else None,
        )
        assert isinstance(run, RunAgent)
        return run

    def _lend_lock(self, ticket: Ticket) -> TicketLock | None:
        if self.agent is None or self.agent.ticket_slug != ticket.slug:
            return None
        return self.agent.lock.lent()

    async def land(self, ticket: Ticket, *, rebase: bool) -> None:
        """Bring a run from its worktree into the project. Raises `CddError`, and
        changes nothing then.
        """
        self._leave_ticket(ticket)
        self._note_work(ticket)
        await self.land_run(ticket, rebase=rebase)

    @property
    def undoing(self) -> SessionUndo:
        changes = OutsideChanges.open(self.project.root, self.redactor)
        self.scope.conversations = self.chat.conversations
        return SessionUndo(
            history=ChangeHistory(self.project.tickets, changes, self.redactor),
            scope=self.scope,
            outside=OutsideUndoing(changes, self.emit),
            frontend=self.frontend,
            emit=self.emit,
            visit=self._visit_to_undo,
        )

    def _visit_to_undo(
        self, slug: str, is_look: bool
    ) -> AbstractContextManager[RunVisit]:
        ticket = self.project.tickets.find_slug(slug)
        return self.visit_run(ticket, is_look=is_look)

    def _note_work(self, ticket: Ticket) -> None:
        self._worked_on = ticket.slug
        self.scope.add_ticket(ticket.slug)

    def run_reader(self, slug: str | None = None) -> RunReader:
        """Return a reader of a ticket's run, by default of the current ticket. Raises
        `BadInput` if the ticket does not exist.
        """
        slug = slug or self.last_ticket
        if slug is None:
            raise BadInput(
                "No ticket is open",
                hint="`/exec SLUG` opens the run of a ticket.",
            )
        ticket = self.project.tickets.find_slug(slug)
        config = self.project.config
        return RunReader(
            ticket,
            in_its_tree(ticket),
            self.redactor,
            StrengthSettings.from_config(config),
        )

    async def preview_undo(self, number: int, slug: str) -> UndoPreview:
        """Return the effect of undoing a step. Raises `CddError`."""
        with self.visit_run(self.project.tickets.find_slug(slug)) as run:
            return await run.preview_undo(number)

    def edit_step(self, number: int, slug: str) -> StepEditing:
        """Return an editor for a step of a plan. Raises `BadInput` if the ticket does
        not exist.
        """
        ticket = self.project.tickets.find_slug(slug)
        lend_lock = partial(self._lend_lock, ticket)
        return StepEditing(self.open_desk(ticket), number, lend_lock)

    def take_up_plan(self, slug: str) -> None:
        """Reload a ticket's plan after an edit; its run follows the new plan. No turn
        may be running. Raises `BadInput`.
        """
        if self._active_run is not None and self._active_run.ticket_slug == slug:
            self._active_run.take_up_plan()

    # Lines

    def meaning(self, line: str) -> Meaning:
        """Return the meaning of a line that is not a command, without acting on it. It
        is for the active agent, for a run that is not open, or for chat.
        """
        if self.agent is not None:
            return self.agent.meaning(line)
        return replace(read_line_without_agent(self, line), line=line)

    def steer(self, meaning: Meaning, take: Take) -> bool:
        """Pass a line to the working agent; see `Agent.steer`."""
        if self.agent is None or not meaning.is_for_agent:
            return False
        return self.agent.steer(meaning, take)

    def save_long_line(self, line: str) -> str:
        """Save a very long line in a file, and return its beginning and end. Return
        other lines unchanged.
        """
        if len(line) <= LONGEST or line.lstrip()[:1] in ("/", "!"):
            return line
        return save_long_line(self.project.root, line, self.redactor)

    async def carry_out(self, meaning: Meaning) -> None:
        """Act on a line, in the active agent or in chat. Raises `CddError`."""
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
            if agent.is_done:  # a finished agent accepts no more lines
                self.leave()
            raise
        if agent.is_done:
            for event in agent.closing():
                self.emit(event)
            self.leave()
            if meaning.name != "close":
                self._completed = Completed(agent.ticket_slug, agent.name)

    def note_created(self, ticket: Ticket) -> None:
        self._note_work(ticket)
        self._completed = Completed(ticket.slug)

    def take_completed(self) -> Completed | None:
        """Return what the last line completed, once."""
        completed, self._completed = self._completed, None
        return completed

    def turn_to_chat(self) -> None:
        """Leave the active agent, for a resumed chat."""
        self.leave()
        self.memory.remember(None, None)

    def _leave_ticket(self, ticket: Ticket) -> None:
        """Leave the active agent if it works on this ticket: it may hold the lock."""
        if self.agent is not None and self.agent.ticket_slug == ticket.slug:
            self.leave()

    def leave(self) -> None:
        """Return to chat."""
        if self.agent is not None:
            self.agent.close()
            self.agent = None
            self.emit(AgentChanged(None))
