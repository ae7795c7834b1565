"""The composition root: makes the adapters and a session from a folder and its
settings. The engine and the models' adapters are imported when they are first needed,
so that a shell without a run stays small.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.agents.base import Agent
from cdd_agent.agents.chat import ChatAgent
from cdd_agent.agents.plan_desk import PlanDesk
from cdd_agent.agents.planner import PlannerAgent
from cdd_agent.agents.planning import Planning
from cdd_agent.agents.planning_notes import NAME, PlanningNotes
from cdd_agent.agents.socrates import SocratesAgent
from cdd_agent.agents.spec_conversation import SpecConversation
from cdd_agent.agents.store import AgentFile, LastActive
from cdd_agent.changes.review import Review
from cdd_agent.commands.registry import commands
from cdd_agent.context.finder import CodeFinder
from cdd_agent.cost import Cost
from cdd_agent.dialogue.turns import Dialogue
from cdd_agent.engine.approval import Approval
from cdd_agent.engine.approval_mode import ApprovalMode
from cdd_agent.engine.ledger import OpenCheckpoints
from cdd_agent.engine.lock import TicketLock
from cdd_agent.engine.logged_run import LoggedRun
from cdd_agent.engine.record import RunRecord
from cdd_agent.engine.recording import Recorder
from cdd_agent.engine.renamed_ticket import expect_no_tree_of_former_name, follow_rename
from cdd_agent.events.dialogue_events import PromptMade, ReplyLost
from cdd_agent.events.question_events import PersonAnswered, Proposal
from cdd_agent.events.stream import Emit, Event
from cdd_agent.files.json_file import from_json
from cdd_agent.frontend import Frontend, Nobody, ReportedAnswers
from cdd_agent.git.checkpoint import Checkpoints
from cdd_agent.llm.budget import Tally
from cdd_agent.llm.port import Model, Usage
from cdd_agent.llm.purse import SharedCalls
from cdd_agent.llm.retrying import Clock
from cdd_agent.llm.wrapper import SwappableModel
from cdd_agent.process.policy import CommandRunner, RunProgram
from cdd_agent.session.open_project import Project
from cdd_agent.session.session import FindServers, Session
from cdd_agent.settings.config import ROLES, Config, Role
from cdd_agent.settings.models import of_role
from cdd_agent.tickets.store import Ticket, TicketStore
from cdd_agent.tools.read_only import read_only_tools
from cdd_agent.wiring.models import add_fallbacks, equip_model, make_model
from cdd_agent.wiring.projects import (
    list_own_paths,
    list_paths_without_code,
    make_permit,
    make_redactor,
    open_chat_tools,
    open_commands,
    open_desk,
    open_outside_work,
)
from cdd_agent.wiring.runs import (
    keeping_lease,
    measure_ticket,
    open_landing,
    open_own_tree,
    prepare_model,
    verify_ticket,
)
from cdd_agent.wording.question_words import question

if TYPE_CHECKING:
    from cdd_agent.engine.engine import Engine
    from cdd_agent.llm.local_servers import LocalServer

_LONGEST_QUESTION = 100_000
"""Characters of a question in the run's log."""


async def _local_servers() -> Sequence[LocalServer]:
    # late: httpx takes 50 ms to import
    from cdd_agent.llm.local_servers import find_local_servers  # noqa: PLC0415

    return await find_local_servers()


class Wiring(Struct, frozen=True, dict=True):
    """Builds a session and its agents. Models are made once, when they are first
    needed, or when the user chooses others. `emit` receives all events.
    """

    project: Project
    """The project at the start; `session.project` has the current settings."""
    frontend: Frontend
    emit: Emit
    find_servers: FindServers = _local_servers
    asked: Callable[[], Model] | None = None
    clock: Clock | None = None
    watched: bool = True
    """See `make_model`."""
    run_program: RunProgram | None = None
    """None: real processes."""
    open_checkpoints: OpenCheckpoints | None = None
    """Opens the checkpoints of runs; None: git."""
    shared: SharedCalls | None = None
    """The budget and limits that several runs share."""
    tally: Tally = field(default_factory=Tally)
    models: dict[Role, SwappableModel] = field(default_factory=dict)
    environments: dict[Path, Mapping[str, str]] = field(default_factory=dict)
    """By root: the variables for commands in the separate trees of runs."""

    @cached_property
    def session(self) -> Session:
        return Session(
            project=self.project,
            openers={
                "executor": self.open_executor,
                "socrates": self.open_socrates,
                "planner": self.open_planner,
            },
            open_chat=self.open_chat,
            emit=self.emit,
            tally=self.tally,
            use=self.use,
            find_servers=self.find_servers,
            open_desk=self.open_desk,
            open_code=lambda: self.code,
            make_tree=self.make_tree,
            land_run=self.land,
            verify=self.verify,
            frontend=self.frontend,
            approval=self.approval,
        )

    def open_desk(self, ticket: Ticket) -> PlanDesk:
        return open_desk(self.session.project, ticket, self.commands)

    @cached_property
    def approval(self) -> ApprovalMode:
        return ApprovalMode(self.project.config.approval)

    def emit_of_agent(self, event: Event) -> None:
        """Emit an event of an agent. The session remembers the last prompt."""
        if isinstance(event, PromptMade):
            self.session.last_prompt = event
        self.emit(event)

    @cached_property
    def slash(self) -> Collection[str]:
        return tuple(commands())

    @cached_property
    def commands(self) -> CommandRunner:
        """Shared by the whole session, so that `always` stays in effect."""
        commands = open_commands(self.project, self.frontend)
        if self.watched:
            # `cdd exec --yes` accepts changes, but asks about commands
            commands = replace(
                commands, asks=lambda: self.approval.asks_before_commands
            )
        if self.run_program is not None:
            commands = replace(commands, run_program=self.run_program)
        return commands

    @cached_property
    def code(self) -> CodeFinder:
        """The map of the project's code."""
        return CodeFinder(self.project.root, list_paths_without_code(self.project))

    def open_executor(
        self,
        ticket: Ticket,
        *,
        start_over: bool = False,
        is_visit: bool = False,
        is_look: bool = False,
        lock: TicketLock | None = None,
    ) -> Agent:
        # late: the engine; a shell that runs no plan stays small
        from cdd_agent.agents.executor import ExecutorAgent  # noqa: PLC0415

        engine = self.engine(
            ticket,
            start_over=start_over,
            runs_steps=not is_visit,
            lock=lock,
            is_look=is_look,
        )
        if not is_visit:
            prepare_model(engine)
        return ExecutorAgent(
            engine,
            self.slash,
            partial(keeping_lease, engine.run.record, engine.run.emit),
            is_visit=is_visit,
            own_tree=ticket.root != self.project.root,
        )

    async def make_tree(self, ticket: Ticket) -> Ticket:
        own_tree = await open_own_tree(self.session.project, ticket)
        self.environments[own_tree.root] = await own_tree.prepare(self.emit_of_agent)
        return own_tree.ticket_in_it

    async def land(self, ticket: Ticket, *, rebase: bool) -> None:
        project = self.session.project
        own_tree = await open_own_tree(project, ticket)
        await open_landing(project, own_tree, self.frontend, self.emit_of_agent).land(
            rebase=rebase
        )

    async def verify(self, ticket: Ticket, *, strength: bool = False) -> None:
        project = self.session.project
        if strength:
            await measure_ticket(project, ticket, self.commands, self.emit_of_agent)
        else:
            await verify_ticket(project, ticket, self.commands, self.emit_of_agent)

    def open_socrates(self, ticket: Ticket, *, start_over: bool = False) -> Agent:
        project = self.session.project

        def make_dialogue(spent: Cost, lost: Callable[[Usage], None]) -> Dialogue:
            config = of_role(project.config, "socrates")
            model = self.equipped("socrates", config, spent=spent, lost=lost)
            model.warm_up()
            tools = read_only_tools(ticket.root, self.code)
            return Dialogue(model, tools, project.config.tool_calls)

        conversation = SpecConversation.open(
            ticket=ticket,
            tickets=project.tickets,
            redactor=make_redactor(project.config),
            make_dialogue=make_dialogue,
            emit=self.emit_of_agent,
            code=self.code,
            start_over=start_over,
        )
        return SocratesAgent(conversation, ticket, self.slash)

    def open_planner(self, ticket: Ticket) -> Agent:
        return PlannerAgent(self.planning(ticket), self.slash)

    def open_chat(self) -> ChatAgent:
        project = self.session.project
        config = of_role(project.config, "chat")
        model = cache(lambda: self.equipped("chat", config))
        work = open_outside_work(project, self.emit_of_agent, self.open_checkpoints)
        tools = cache(
            lambda: open_chat_tools(
                project=project,
                frontend=self.frontend,
                mode=self.approval,
                commands=self.commands,
                code=self.code,
                work=work,
            )
        )
        return ChatAgent(
            root=project.root,
            model=model,
            tools=tools,
            redactor=make_redactor(config),
            emit=self.emit_of_agent,
            tool_calls=config.tool_calls,
        )

    def planning(self, ticket: Ticket, *, may_ask: bool = True) -> Planning:
        """Open the planning of a ticket. It holds the ticket until it is closed, and
        has a separate budget. Raises `BadInput` if the spec is incomplete or another
        process works on the ticket.
        """
        project = self.session.project
        config = of_role(project.config, "planner")
        desk = open_desk(project, ticket, self.commands)
        desk.complete_spec()

        @cache
        def model() -> Model:
            return self.equipped(
                "planner", config, lost=lambda usage: desk.log.add(ReplyLost(usage))
            )

        read_notes = partial(from_json, kind=PlanningNotes)
        return Planning(
            desk=desk,
            file=AgentFile.open(desk.record, NAME, read_notes),
            model=model,
            recorder=Recorder(desk.record.redactor, desk.log, self.emit_of_agent),
            tools=read_only_tools(project.root, self.code),
            tool_calls=config.tool_calls,
            may_ask=may_ask,
            code=self.code,
        )

    def engine(
        self,
        ticket: Ticket,
        *,
        start_over: bool = False,
        runs_steps: bool = True,
        lock: TicketLock | None = None,
        is_look: bool = False,
    ) -> Engine:
        """Open a ticket's run. `lock` is the ticket's lock if the caller holds it.
        Without `runs_steps`, the plan may have checks that are not allowed. `is_look`:
        the run of a renamed ticket keeps its former name. Raises `BadInput`.
        """
        # late: the engine; a shell that runs no plan stays small
        from cdd_agent.engine.engine import Engine  # noqa: PLC0415
        from cdd_agent.engine.step import StepRunner  # noqa: PLC0415

        # A caller with the lock has the current record.
        if lock is None and not is_look:
            self.follow_rename(ticket)
            expect_no_tree_of_former_name(ticket)
        project = self.session.project
        code = self.code
        commands = self.commands
        config = of_role(project.config, "executor")
        root = ticket.root
        if root != project.root:
            config = replace(config, commit="step")
            tickets = TicketStore(root, project.config.tickets_dir)
            project = replace(project, root=root, tickets=tickets)
            code = CodeFinder(root, list_paths_without_code(project))
            commands = replace(commands, root=root, env=self.environments.get(root, {}))

        record = RunRecord.of_ticket(ticket, make_redactor(config))

        def log_answer(asked: Proposal | Review | str, answer: str) -> None:
            shown = asked if isinstance(asked, str) else question(asked)
            record.log.add(
                record.redactor.redacted(
                    PersonAnswered(shown[:_LONGEST_QUESTION], answer)
                )
            )

        @cache
        def model() -> Model:
            # Otherwise the log belongs to another run, whose state is lost.
            has_begun = engine.run.state.started_at is not None
            spent = LoggedRun.read(record.log).effort.cost if has_begun else Cost()
            return self.equipped("executor", config, spent=spent, lost=engine.run.lost)

        user = ReportedAnswers(self.frontend, log_answer)
        # `cdd exec --yes` asks no questions.
        asks_user = self.watched or self.approval.value != "auto"
        runner = StepRunner(
            root=root,
            model=model,
            approval=Approval(user, self.approval, record.folder),
            test_command=config.test_command,
            test_timeout=config.test_timeout,
            protected=project.tickets.owns,
            commands=replace(commands, permit=make_permit(user)),
            tool_calls=config.tool_calls,
            code=code,
            user=user if asks_user else Nobody(),
        )
        engine = Engine.open(
            root,
            ticket,
            runner,
            emit=self.emit_of_agent,
            own=list_own_paths(project, config),
            commits=config.commit == "step",
            jobs=config.jobs,
            require=None if config.require == "off" else config.require,
            start_over=start_over,
            runs_steps=runs_steps,
            lock=lock,
            open_checkpoints=self.open_checkpoints or Checkpoints.open,
        )
        return engine

    def follow_rename(self, ticket: Ticket) -> None:
        """Rename the run of a renamed ticket, and report it. Raises `BadInput`."""
        former, project = ticket.former_slug, self.session.project
        for notice in follow_rename(
            ticket,
            make_redactor(project.config),
            self.open_checkpoints or Checkpoints.open,
        ):
            self.emit_of_agent(notice)
            last = LastActive.of_project(project.root)
            if last is not None and last.ticket == former:
                replace(last, ticket=ticket.slug).remember(project.root)

    def equipped(
        self,
        role: Role,
        config: Config,
        *,
        spent: Cost | None = None,
        lost: Callable[[Usage], None] = lambda usage: None,
    ) -> Model:
        return equip_model(
            self.model(role),
            config,
            self.tally,
            spent=spent,
            lost=lost,
            clock=self.clock,
            shared=self.shared,
        )

    def model(self, role: Role) -> Model:
        """Return the current model of a role, with its fallbacks. Raises `BadInput`."""
        config = of_role(self.session.project.config, role)
        model = self.asked() if self.asked else self.swappable(role)
        return add_fallbacks(model, config, self.project.root, watched=self.watched)

    def swappable(self, role: Role) -> SwappableModel:
        if role not in self.models:
            config = of_role(self.session.project.config, role)
            self.models[role] = SwappableModel(
                make_model(config, self.project.root, watched=self.watched)
            )
        return self.models[role]

    def use(self, config: Config) -> None:
        """Use these settings, and replace the models that they change. Raises
        `BadInput`, and changes nothing then.
        """
        current = self.session.project.config
        exchanged = dict[Role, Model]()
        for role in ROLES:
            chosen = of_role(config, role)
            is_changed = chosen != of_role(current, role) or config == current
            if not chosen.model or not is_changed:
                continue
            model = make_model(chosen, self.project.root, watched=self.watched)
            # Raises `BadInput` if its budget cannot be checked.
            equip_model(model, chosen, self.tally)
            exchanged[role] = model
        self.session.project = replace(self.session.project, config=config)
        for role, model in exchanged.items():
            self.swappable(role).inner = model
