"""The composition root: from a folder and its settings to real adapters and a session.

The engine and the models' adapters are imported when they are first needed, so a shell
that runs no plan stays small.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import cache, cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.agents.base import Agent
from cdd_agent.agents.chat import ChatAgent, ChatTools
from cdd_agent.agents.plan_desk import PlanDesk
from cdd_agent.agents.planner import PlannerAgent
from cdd_agent.agents.planning import Planning
from cdd_agent.agents.planning_notes import NAME, PlanningNotes
from cdd_agent.agents.socrates import SocratesAgent
from cdd_agent.agents.spec_conversation import SpecConversation
from cdd_agent.agents.store import AgentFile, LastActive
from cdd_agent.approval_mode import ApprovalMode
from cdd_agent.changes.change_set import ChangeSet
from cdd_agent.changes.review import Review
from cdd_agent.commands.model_setup import NO_MODEL
from cdd_agent.commands.registry import commands
from cdd_agent.context.finder import CodeFinder
from cdd_agent.cost import Cost
from cdd_agent.dialogue.turns import Dialogue
from cdd_agent.engine.approval import Approval, ask_about
from cdd_agent.engine.ledger import OpenCheckpoints, no_part
from cdd_agent.engine.lock import TicketLock
from cdd_agent.engine.logged_run import LoggedRun
from cdd_agent.engine.outside import OutsideChanges
from cdd_agent.engine.outside_work import (
    OutsideWork,
    RecordedCommands,
    open_in_repository,
)
from cdd_agent.engine.record import RunRecord
from cdd_agent.engine.recording import Recorder
from cdd_agent.engine.renamed_ticket import (
    expect_no_tree_of_former_name,
    follow_rename,
)
from cdd_agent.engine.strength_summary import StrengthSettings
from cdd_agent.engine.whereabouts import (
    CAME_BACK,
    expect_arrived,
    in_its_tree,
    load_whereabouts,
)
from cdd_agent.errors import BadInput, CddError
from cdd_agent.events.dialogue_events import PromptMade, ReplyLost
from cdd_agent.events.question_events import (
    Choice,
    CommandProposed,
    PersonAnswered,
    Proposal,
)
from cdd_agent.events.stream import Emit, Event
from cdd_agent.events.verify_events import VerifyFinished
from cdd_agent.files.json_file import from_json
from cdd_agent.frontend import Frontend, Nobody, ReportedAnswers
from cdd_agent.git.checkpoint import Checkpoints
from cdd_agent.llm.added_adapters import AddedAdapter, adapter_for
from cdd_agent.llm.budget import Account, Budgeted, Limit, TalliedModel, Tally
from cdd_agent.llm.fallbacks import WithFallbacks
from cdd_agent.llm.options import Effort, ModelOptions
from cdd_agent.llm.port import Model, Usage
from cdd_agent.llm.providers import PROVIDERS, Endpoint, endpoint_of
from cdd_agent.llm.purse import SharedCalls
from cdd_agent.llm.recording import RecordingModel
from cdd_agent.llm.request_comparison import hide_folder
from cdd_agent.llm.retrying import Clock, Retrying
from cdd_agent.llm.scripted import ScriptedModel
from cdd_agent.llm.window_limited import WindowLimited
from cdd_agent.llm.wrapper import RejectEmpty, SwappableModel
from cdd_agent.model_names import provider_of
from cdd_agent.open_project import Project
from cdd_agent.process.policy import (
    CommandRunner,
    IShellExecutor,
    Permission,
    Permit,
    RunProgram,
)
from cdd_agent.process.run import OnOutput, ignore_output
from cdd_agent.redaction import Redactor
from cdd_agent.session import FindServers, Session
from cdd_agent.settings.config import ROLES, Config, Role
from cdd_agent.settings.models import fallbacks_of, of_role
from cdd_agent.tickets.spec import SpecEmpty
from cdd_agent.tickets.state import load_state, new_state
from cdd_agent.tickets.store import Ticket, TicketStore
from cdd_agent.tools.acting import acting_tools
from cdd_agent.tools.action_runner import ActionRunner
from cdd_agent.tools.read_only import read_only_tools
from cdd_agent.travel.came_back import put_what_came_back
from cdd_agent.travel.keeping import lease_kept
from cdd_agent.travel.landing import Landing
from cdd_agent.travel.own_tree import OwnTree
from cdd_agent.travel.travelling import Travel
from cdd_agent.web.search import DdgsSearcher
from cdd_agent.wording.question_words import question

if TYPE_CHECKING:
    from cdd_agent.engine.engine import Engine
    from cdd_agent.engine.verify import Subject
    from cdd_agent.llm.local_servers import LocalServer

_SCRIPT, _REPLAY = "script:", "replay:"
_LONGEST_QUESTION = 100_000
"""Characters of a question that the run's log keeps."""


async def _local_servers() -> Sequence[LocalServer]:
    # late: httpx takes 50 ms to import
    from cdd_agent.llm.local_servers import find_local_servers  # noqa: PLC0415

    return await find_local_servers()


class Wiring(Struct, frozen=True, dict=True):
    """Builds a session and its agents. Models are made once, when they are first
    needed, or when the user chooses others. `emit` receives all events.
    """

    project: Project
    """The project as it was opened; `session.project` has the current settings."""
    frontend: Frontend
    emit: Emit
    find_servers: FindServers = _local_servers
    asked: Callable[[], Model] | None = None
    """A model to ask instead of those configured."""
    clock: Clock | None = None
    watched: bool = True
    """True if the user watches the output; see `make_model`."""
    run_program: RunProgram | None = None
    """Runs commands and checks; None for real processes."""
    open_checkpoints: OpenCheckpoints | None = None
    """Opens the checkpoints of runs; None for git."""
    shared: SharedCalls | None = None
    """The budget and limits that a run's model calls share with other runs."""
    tally: Tally = field(default_factory=Tally)
    models: dict[Role, SwappableModel] = field(default_factory=dict)
    environments: dict[Path, Mapping[str, str]] = field(default_factory=dict)
    """The variables that commands need in the separate trees of runs, by root."""

    @cached_property
    def session(self) -> Session:
        openers = {
            "executor": self.open_executor,
            "socrates": self.open_socrates,
            "planner": self.open_planner,
        }

        def desk(ticket: Ticket) -> PlanDesk:
            return open_desk(self.session.project, ticket, self.commands)

        given = self.emit, self.tally, self.use, self.find_servers
        trees = self.make_tree, self.land, self.verify
        return Session(
            self.project,
            openers,
            self.open_chat,
            *given,
            desk,
            lambda: self.code,
            *trees,
            frontend=self.frontend,
            approval=self.approval,
        )

    @cached_property
    def approval(self) -> ApprovalMode:
        """The approval mode of the session. Every question reads it."""
        return ApprovalMode(self.project.config.approval)

    def tell(self, event: Event) -> None:
        """Emit an event of an agent. The session remembers the last prompt."""
        if isinstance(event, PromptMade):
            self.session.last_prompt = event
        self.emit(event)

    @cached_property
    def slash(self) -> Collection[str]:
        """The names of the shell's commands."""
        return tuple(commands())

    @cached_property
    def commands(self) -> CommandRunner:
        """The runner of commands for the whole session, so that `always` stays in
        effect.
        """
        commands = open_commands(self.project, self.frontend)
        if self.watched:
            # `cdd exec --yes` accepts changes, and asks about commands
            commands = replace(
                commands, asks=lambda: self.approval.asks_before_commands
            )
        if self.run_program is not None:
            commands = replace(commands, run_program=self.run_program)
        return commands

    @cached_property
    def code(self) -> CodeFinder:
        """The map of the project's code, made once, when it is first needed."""
        return CodeFinder(self.project.root, self.project.tickets.folders)

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
        kept = partial(keeping_lease, engine.run.record, engine.run.emit)
        own_tree = ticket.root != self.project.root
        return ExecutorAgent(
            engine, self.slash, kept, is_visit=is_visit, own_tree=own_tree
        )

    async def make_tree(self, ticket: Ticket) -> Ticket:
        own = await open_own_tree(self.session.project, ticket)
        self.environments[own.root] = await own.prepare(self.tell)
        return own.ticket_in_it

    async def land(self, ticket: Ticket, *, rebase: bool) -> None:
        project = self.session.project
        own = await open_own_tree(project, ticket)
        await open_landing(project, own, self.frontend, self.tell).land(rebase=rebase)

    async def verify(self, ticket: Ticket, *, strength: bool = False) -> None:
        project = self.session.project
        if strength:
            await measure_ticket(project, ticket, self.commands, self.tell)
        else:
            await verify_ticket(project, ticket, self.commands, self.tell)

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
            redactor=_redactor(project.config),
            make_dialogue=make_dialogue,
            emit=self.tell,
            code=self.code,
            start_over=start_over,
        )
        return SocratesAgent(conversation, ticket, self.slash)

    def open_planner(self, ticket: Ticket) -> Agent:
        return PlannerAgent(self.planning(ticket), self.slash)

    def open_chat(self) -> ChatAgent:
        """Open chat. Its model and tools are made when they are first needed."""
        project = self.session.project
        config = of_role(project.config, "chat")
        model = cache(lambda: self.equipped("chat", config))
        work = open_outside_work(project, self.tell, self.open_checkpoints)
        tools = cache(
            lambda: _chat_tools(
                project, self.frontend, self.approval, self.commands, self.code, work
            )
        )
        return ChatAgent(
            project.root, model, tools, _redactor(config), self.tell, config.tool_calls
        )

    def planning(self, ticket: Ticket, *, may_ask: bool = True) -> Planning:
        """Open the planning of a ticket, which holds the ticket until it is closed. Its
        model is made at the first call and has a separate budget. Raises `BadInput` if
        the spec is incomplete or another process works on the ticket.
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
            recorder=Recorder(desk.record.redactor, desk.log, self.tell),
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
        """Open a ticket's run, with its `lock` if the caller holds it. The model is
        made when a reply is needed. A ticket in a separate tree belongs to another
        project with the same settings.

        Without `runs_steps` the plan may have checks that are not allowed. `is_look`:
        the run of a renamed ticket keeps its former name. Raises `BadInput`.
        """
        # late: the engine; a shell that runs no plan stays small
        from cdd_agent.engine.engine import Engine  # noqa: PLC0415
        from cdd_agent.engine.step import StepRunner  # noqa: PLC0415

        # A caller with the lock has the current record.
        if lock is None and not is_look:
            self.follow_rename(ticket)
            expect_no_tree_of_former_name(ticket)
        project, code, commands = self.session.project, self.code, self.commands
        config, root = of_role(project.config, "executor"), ticket.root
        if root != project.root:
            config = replace(config, commit="step")
            tickets = TicketStore(root, project.config.tickets_dir)
            project = replace(project, root=root, tickets=tickets)
            code = CodeFinder(root, tickets.folders)
            commands = replace(commands, root=root, env=self.environments.get(root, {}))

        record = RunRecord.of_ticket(ticket, _redactor(config))

        def log_answer(asked: Proposal | Review | str, answer: str) -> None:
            shown = asked if isinstance(asked, str) else question(asked)
            record.log.add(
                record.redactor.redacted(
                    PersonAnswered(shown[:_LONGEST_QUESTION], answer)
                )
            )

        @cache
        def model() -> Model:
            # else the log belongs to another run, whose state is gone
            has_begun = engine.run.state.started_at is not None
            spent = LoggedRun.read(record.log).effort.cost if has_begun else Cost()
            return self.equipped("executor", config, spent=spent, lost=engine.run.lost)

        person = ReportedAnswers(self.frontend, log_answer)
        runner = StepRunner(
            root,
            model,
            Approval(person, self.approval, record.folder),
            config.test_command,
            config.test_timeout,
            project.tickets.owns,
            replace(commands, permit=_permit_of(person)),
            config.tool_calls,
            code,
            # `cdd exec --yes` asks nothing
            user=person if self.watched or self.approval.value != "auto" else Nobody(),
        )
        engine = Engine.open(
            root,
            ticket,
            runner,
            emit=self.tell,
            own=_own(project, config),
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
            _redactor(project.config),
            self.open_checkpoints or Checkpoints.open,
        ):
            self.tell(notice)
            last = LastActive.of(project.root)
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
        return equipped(
            self.model(role),
            config,
            self.tally,
            spent=spent,
            lost=lost,
            clock=self.clock,
            shared=self.shared,
        )

    def model(self, role: Role) -> Model:
        """Return the model of a role in the current settings, with its fallbacks.
        Raises `BadInput`.
        """
        config = of_role(self.session.project.config, role)
        model = self.asked() if self.asked else self.swappable(role)
        return with_fallbacks(model, config, self.project.root, watched=self.watched)

    def swappable(self, role: Role) -> SwappableModel:
        if role not in self.models:
            config = of_role(self.session.project.config, role)
            self.models[role] = SwappableModel(
                make_model(config, self.project.root, watched=self.watched)
            )
        return self.models[role]

    def use(self, config: Config) -> None:
        """Use these settings, and replace the models that they change. Raises
        `BadInput`; then nothing was changed.
        """
        now, exchanged = self.session.project.config, dict[Role, Model]()
        for role in ROLES:
            chosen = of_role(config, role)
            if chosen.model and (chosen != of_role(now, role) or config == now):
                exchanged[role] = make_model(
                    chosen, self.project.root, watched=self.watched
                )
                # raises if its budget cannot be checked
                equipped(exchanged[role], chosen, self.tally)
        self.session.project = replace(self.session.project, config=config)
        for role, model in exchanged.items():
            self.swappable(role).inner = model


def open_desk(project: Project, ticket: Ticket, commands: CommandRunner) -> PlanDesk:
    """Open the desk that reads, compiles and writes a ticket's plan. Opening it writes
    nothing.
    """
    config, root = project.config, project.root
    record = RunRecord.of_ticket(ticket, _redactor(config))
    strength = StrengthSettings.from_config(config)
    return PlanDesk(root, ticket, record, commands, config.test_command, strength)


def open_outside_work(
    project: Project, emit: Emit, open_checkpoints: OpenCheckpoints | None = None
) -> OutsideWork:
    """Return the recorder of changes outside of tickets."""
    config = project.config
    return OutsideWork(
        OutsideChanges.open(project.root, _redactor(config)),
        emit,
        leave_out=no_part(project.root, _own(project, config)),
        open_checkpoints=open_checkpoints or open_in_repository,
    )


def _chat_tools(
    project: Project,
    frontend: Frontend,
    mode: ApprovalMode,
    commands: CommandRunner,
    code: CodeFinder,
    work: OutsideWork,
) -> ChatTools:
    """Return the tools of chat: all except asking the user, and web search only if the
    package `ddgs` is installed.
    """
    written: list[ChangeSet] = []
    redactor = _redactor(project.config)

    async def permit(changes: ChangeSet) -> tuple[ChangeSet, str]:
        if not mode.asks_before_edits():
            return changes, ""
        with commands.clock.standing_still():
            answer, taken = await ask_about(
                changes, None, frontend, project.root, project.tickets.owns
            )
        refused = (
            ""
            if taken.changes or answer.reason
            else "The user did not approve this change"
        )
        return taken, redactor.redact(
            answer.review.answer_model(answer.reason)
        ) or refused

    runner = replace(
        open_runner(project, frontend, RecordedCommands(commands, work)),
        permit=permit,
        writing=lambda changes, title: work.writing(changes, "chat"),
        wrote=written.append,
    )
    left_out = {"chat_with_user"} | (
        {"research"} if find_spec("ddgs") is None else set()
    )
    acting = [
        tool for tool in acting_tools(runner, commands) if tool.name not in left_out
    ]
    tools = sorted(
        (*read_only_tools(project.root, code), *acting),
        key=lambda tool: tool.category == "Git",
    )
    # a small window shortens the history, not the tools
    return ChatTools(tools, written, commands.clock, work)


def open_travel(project: Project, ticket: Ticket, emit: Emit) -> Travel:
    """Open what pushes a run to another copy of the project and pulls it from there.
    Raises `BadInput` for a renamed ticket whose run has travelled.
    """
    config = of_role(project.config, "executor")
    redactor = _redactor(config)
    for notice in follow_rename(ticket, redactor, Checkpoints.open):
        emit(notice)
    if former := ticket.former_slug:
        raise BadInput(
            f"{ticket.slug} was renamed from {former}, and other copies know its run"
            " by that name",
            hint=f"Rename its folder back to {former} to push or pull it.",
        )
    return Travel.of(project.root, ticket, redactor, emit, _own(project, config))


async def open_own_tree(project: Project, ticket: Ticket, name: str = "") -> OwnTree:
    """Open the separate tree of a run, which may not exist yet. `name` selects another
    run of the ticket. Work that came back from another machine is put into the tree.
    Raises `BadInput`.
    """
    config = of_role(project.config, "executor")
    redactor = _redactor(config)
    if name and name != ticket.slug:
        record = RunRecord.of(project.root, name, redactor)
    else:
        record = RunRecord.of_ticket(ticket, redactor)
    own = await OwnTree.of(record, ticket)
    if (record.folder / CAME_BACK).exists():
        await put_what_came_back(
            own,
            no_part(own.root, (*_own(project, config), ticket.shown(ticket.folder))),
        )
    return own


def keeping_lease(record: RunRecord, emit: Emit) -> AbstractAsyncContextManager[None]:
    """Keep the lease during work on a run: see `lease_kept`."""
    if load_whereabouts(record.folder) is None:  # the run never travelled
        return nullcontext()
    return lease_kept(record, emit)


def open_landing(
    project: Project, own: OwnTree, frontend: Frontend, emit: Emit
) -> Landing:
    """Open what merges the work of a run's separate tree into the user's tree."""
    config = of_role(project.config, "executor")
    permit = _permit_of(frontend)
    record = RunRecord.of(own.root, own.ticket.slug, own.record.redactor)
    return Landing(
        own,
        record,
        lambda root, env: CommandRunner(
            root,
            config.commands,
            permit,
            env=env,
            noted_in=record.folder,
            trusted_checks=project.trust.checks,
        ),
        config.test_command,
        config.test_timeout,
        no_part(
            own.root, (*_own(project, config), own.ticket.shown(own.ticket.folder))
        ),
        emit,
    )


async def verify_ticket(
    project: Project,
    ticket: Ticket,
    commands: CommandRunner,
    emit: Emit,
) -> VerifyFinished:
    """Run the checks of a ticket's completed steps again. `commands` runs commands in
    the project. Raises `CddError`.
    """
    # late: the engine; a shell that runs no plan stays small
    from cdd_agent.engine.verify import Verifier  # noqa: PLC0415

    config = of_role(project.config, "executor")
    subject = _completed_work(ticket, config)
    commands = replace(commands, root=subject.record.root)
    verifier = Verifier(commands, config.test_command, config.test_timeout, emit)
    return await verifier.verify(subject)


async def measure_ticket(
    project: Project,
    ticket: Ticket,
    commands: CommandRunner,
    emit: Emit,
) -> None:
    """Measure how many small faults the checks of a ticket's completed steps notice.
    `commands` runs commands in the project. Raises `CddError`.
    """
    # late: the engine; a shell that runs no plan stays small
    from cdd_agent.engine.strength import StrengthMeter  # noqa: PLC0415

    config = of_role(project.config, "executor")
    subject = _completed_work(ticket, config)
    meter = StrengthMeter(
        replace(commands, root=subject.record.root),
        StrengthSettings.from_config(config),
        config.test_timeout,
        emit,
        config.strength_faults,
        config.strength_seconds,
    )
    await meter.measure(subject)


def _completed_work(ticket: Ticket, config: Config) -> Subject:
    """Read the run of a ticket where its tree is. Raises `BadInput`."""
    # late: the engine; a shell that runs no plan stays small
    from cdd_agent.engine import verify  # noqa: PLC0415

    criteria = _criteria(ticket)
    if ticket.record.exists():
        ticket = in_its_tree(ticket)
    record = RunRecord.of_ticket(ticket, _redactor(config))
    expect_arrived(record.folder)
    plan = ticket.read_plan()
    plan.check(ticket.shown(ticket.plan_path))
    state = load_state(ticket, plan) or new_state(ticket.slug, plan)
    return verify.Subject(plan, state, record, criteria)


def _criteria(ticket: Ticket) -> tuple[str, ...]:
    try:
        return ticket.read_spec().acceptance_criteria
    except SpecEmpty:
        return ()


def _own(project: Project, config: Config) -> list[str]:
    """Return the files and folders outside of `.cdd` that cdd writes, relative to the
    root.
    """
    root = project.root
    own = list(project.tickets.folders)
    if config.record:
        record = (root / config.record).resolve()
        if record.is_relative_to(root):
            own.append(record.relative_to(root).as_posix())
    return own


def _redactor(config: Config) -> Redactor:
    """Return what removes secrets from everything that is saved or shown."""
    return Redactor.of_environment(config.commands.hide_env)


def equipped(
    model: Model,
    config: Config,
    tally: Tally,
    *,
    spent: Cost | None = None,
    lost: Callable[[Usage], None] = lambda usage: None,
    clock: Clock | None = None,
    shared: SharedCalls | None = None,
) -> Model:
    """Return an adapter with fallbacks, budget and retries. An empty reply is an error.
    Each call is counted at the price of its model. Retries are outermost, so the budget
    checks each of their calls. Raises `BadInput` for an unknown price.
    """
    limit = Limit(config.budget.tokens, config.budget.usd)
    account: Account = Tally(spent or Cost())
    if shared:
        limit, account = shared.limit, shared.account(spent or Cost())

    def with_patience(adapter: Model, asked: Config) -> Model:
        budgeted = Budgeted(
            RejectEmpty(adapter),
            limit,
            account=account,
            price=lambda: adapter.price,
            spend=tally.add,
            lost=lost,
        )
        waits = None
        if shared:
            provider = f"{provider_of(asked.model)} {asked.api_base or ''}"
            waits = shared.waits_for(provider.strip())
        return Retrying(TalliedModel(budgeted, tally), clock, waits)

    if isinstance(model, WithFallbacks):
        asked = fallbacks_of(config) if shared else [config] * len(model.others)
        others = [
            with_patience(*other) for other in zip(model.others, asked, strict=True)
        ]
        return WithFallbacks(
            with_patience(_sized(model.inner, config), config), others, clock
        )
    return with_patience(_sized(model, config), config)


def _sized(model: Model, config: Config) -> Model:
    return (
        WindowLimited(model, config.context_window) if config.context_window else model
    )


def prepare_model(engine: Engine) -> None:
    """Make the model if a step remains. If that fails, close the engine and raise
    `BadInput`.
    """
    try:
        if engine.run.next_step is not None:
            engine.runner.model().warm_up()
    except CddError:
        engine.close()
        raise


def open_commands(
    project: Project, frontend: Frontend, on_output: OnOutput = ignore_output
) -> CommandRunner:
    """Return a runner of commands in a project, under its settings. `on_output`
    receives the output of commands as it comes.
    """
    permit = _permit_of(frontend)
    return CommandRunner(
        project.root,
        project.config.commands,
        permit,
        trusted_checks=project.trust.checks,
        on_output=on_output,
    )


def _permit_of(frontend: Frontend) -> Permit:
    permissions = {Choice.YES: Permission.YES, Choice.ALWAYS: Permission.ALWAYS}

    async def permit(command: str, reason: str) -> Permission:
        choice = await frontend.approve(CommandProposed(command, reason))
        return permissions.get(choice, Permission.NO)

    return permit


def open_runner(
    project: Project, frontend: Frontend, executor: IShellExecutor
) -> ActionRunner:
    """Return a runner of actions in a project, under its settings."""
    # late: httpx takes 50 ms to import
    from cdd_agent.web.pages import PageReader  # noqa: PLC0415

    return ActionRunner(
        project.root,
        executor,
        PageReader(project.config.web.private),
        DdgsSearcher(),
        frontend.ask,
        project.tickets.owns,
    )


def make_model(config: Config, root: Path, *, watched: bool) -> Model:
    """Return the configured model. `watched`: the user watches the output, so a script
    keeps its natural pace and optional thoughts are requested. Raises `BadInput`.

    A record has every call of the adapter, also failed calls and retries.
    """
    model = _adapter(config, root, watched=watched)
    if config.record is None:
        return model
    redactor = hide_folder(_redactor(config), root)
    return RecordingModel(model, root / config.record, redactor)


def with_fallbacks(model: Model, config: Config, root: Path, *, watched: bool) -> Model:
    """Return the model of these settings, with its fallbacks. Raises `BadInput`."""
    if not config.fallbacks:
        return model
    # its record has the replies of the others
    if config.model and config.model.startswith(_REPLAY):
        return WithFallbacks(model, [model for _ in fallbacks_of(config)])
    return WithFallbacks(
        model,
        [_sized(make_model(c, root, watched=watched), c) for c in fallbacks_of(config)],
    )


class NoModel(BadInput):
    """No model is configured."""

    def __init__(self) -> None:
        super().__init__(
            NO_MODEL,
            hint=(
                "Choose one with `/model`, or set `model: NAME` in .cdd/config.yaml."
                " `cdd doctor` shows what is missing."
            ),
        )


def _adapter(config: Config, root: Path, *, watched: bool) -> Model:
    if config.model is None:
        raise NoModel
    if config.model.startswith((_SCRIPT, _REPLAY)):
        script = root / config.model.removeprefix(_SCRIPT).removeprefix(_REPLAY)
        scripted = ScriptedModel.from_file(
            script, _redactor(config), root, in_time=watched
        )
        scripted.sees = scripted.sees if config.pictures is None else config.pictures
        return scripted
    if endpoint := direct_endpoint(config):
        # late: httpx takes 50 ms to import
        from cdd_agent.llm.direct.model import DirectModel  # noqa: PLC0415

        return DirectModel(config.model, endpoint, _options(config, watched=watched))
    options = _options(config, watched=watched)
    if adapter := added_adapter(config):
        return adapter.make(config.model, config.api_base, options)
    # late: litellm takes seconds to import
    from cdd_agent.llm.litellm_adapter import (  # noqa: PLC0415
        LitellmModel,
        expect_provider,
    )

    expect_provider(config.model, config.api_base)
    return LitellmModel(config.model, config.api_base, options)


def _options(config: Config, *, watched: bool) -> ModelOptions:
    return ModelOptions(
        Effort(config.effort) if config.effort else None,
        config.temperature,
        config.max_output_tokens,
        config.request.body,
        config.request.headers,
        config.pictures,
        watched=watched,
        window=config.context_window,
    )


def added_adapter(config: Config) -> AddedAdapter | None:
    """Return the configured adapter of another package; None if cdd has its own for the
    model.
    """
    if config.model is None or config.model_adapter != "auto":
        return None
    return adapter_for(config.model)


def direct_endpoint(config: Config) -> Endpoint | None:
    """Return the endpoint of the direct adapter; None if litellm is used. Raises
    `BadInput`.
    """
    if config.model is None or config.model_adapter == "litellm":
        return None
    endpoint = endpoint_of(config.model, config.api_base)
    if endpoint is None and config.model_adapter == "direct":
        raise BadInput(
            f"The direct adapter does not support {config.model}",
            hint=(
                f"It knows {', '.join(PROVIDERS)}, and any server of chat completions"
                " as openai/NAME with `api_base`, of Responses as"
                " openai/responses/NAME; `model_adapter: auto` leaves the others to"
                " litellm."
            ),
        )
    return endpoint
