"""The composition root: from a folder and its settings to real adapters and a session.

What a run needs is imported when one is opened; a shell that nobody has asked for anything yet stays small.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdd_agent.config import ROLES, Config, Role, fallbacks_of, load_config, of_role
from cdd_agent.errors import BadInput, CddError
from cdd_agent.files.paths import PathRefused, confine, find_root
from cdd_agent.frontend import AnswersTold, ChangesApproved, Frontend
from cdd_agent.llm.budget import Budgeted, Limit, Spent, Tally
from cdd_agent.llm.port import Model, Usage
from cdd_agent.llm.retrying import Clock, Retrying
from cdd_agent.llm.wrapper import SwappableModel
from cdd_agent.session import FindServers, Project, Session
from cdd_agent.tickets.store import Ticket, TicketStore

if TYPE_CHECKING:
    from cdd_agent.agents.base import Agent
    from cdd_agent.agents.chat import ChatAgent, ChatTools
    from cdd_agent.agents.plan_desk import PlanDesk
    from cdd_agent.agents.planning import Planning
    from cdd_agent.engine.engine import Engine
    from cdd_agent.engine.lock import TicketLock
    from cdd_agent.events import Emit, Proposal
    from cdd_agent.llm.local_servers import LocalServer
    from cdd_agent.llm.options import ModelOptions
    from cdd_agent.llm.providers import Endpoint
    from cdd_agent.process.policy import CommandRunner, Permit
    from cdd_agent.redaction import Redactor
    from cdd_agent.tools.action_runner import ActionRunner

_SCRIPT, _REPLAY = "script:", "replay:"
_LONGEST_QUESTION = 100_000
"""Characters of a question that the run's log keeps."""
NO_MODEL_HINT = """\
Choose one of:
- a hosted model: `export ANTHROPIC_API_KEY=...`
  and `model: anthropic/claude-sonnet-4-5`
- a local server: `api_base: http://127.0.0.1:8080/v1`
  and `model: openai/NAME`
- no model at all: `cdd demo`
`/model NAME --save` sets one here. `model` and `api_base` go into .cdd/config.yaml, or CDD_MODEL and CDD_API_BASE;
a key is read from the environment that the shell was started in."""


def open_project(folder: Path, flags: Mapping[str, Any], *, exactly: bool = False) -> Project:
    """The project that `folder` is in, or is, with the settings that hold there. Raises `BadInput`.

    `exactly`: the folder itself is the root, whatever it lies in.
    """
    try:
        if not folder.is_dir():
            raise BadInput(f"{folder} is not a folder")
    except OSError as error:  # a name that is too long, a folder that is closed
        raise BadInput(f"{folder} cannot be used: {error.strerror or error}") from error
    root = folder.resolve() if exactly else find_root(folder)
    config = load_config(root, flags)
    try:
        confine(root, config.tickets_dir)
    except PathRefused as refusal:
        raise BadInput(f"tickets_dir: {refusal.message}", hint="It is a folder inside the project.") from refusal
    return Project(root, config, TicketStore(root, config.tickets_dir))


async def _local_servers() -> Sequence[LocalServer]:
    from cdd_agent.llm.local_servers import find_local_servers

    return await find_local_servers()


def open_session(
    project: Project,
    frontend: Frontend,
    emit: Emit,
    find_servers: FindServers = _local_servers,
    *,
    asked: Callable[[], Model] | None = None,
    clock: Clock | None = None,
) -> Session:
    """A session whose agents use the configured models, made once and when first needed, or ones chosen later. What
    happens in it is told by `emit`.

    `asked` is a model to ask instead.
    """

    @cache
    def configured(role: Role) -> SwappableModel:
        return SwappableModel(make_model(of_role(session.project.config, role), project.root, watched=True))

    def model_of(role: Role) -> Callable[[], Model]:
        def model() -> Model:
            config = of_role(session.project.config, role)
            return with_fallbacks(asked() if asked else configured(role), config, project.root, watched=True)

        return model

    tally = Tally()
    commands = cache(lambda: open_commands(project, frontend))  # what was always allowed stays so for the session

    def open_executor(
        ticket: Ticket, *, start_over: bool = False, is_visit: bool = False, lock: TicketLock | None = None
    ) -> Agent:
        from cdd_agent.agents.executor import ExecutorAgent

        engine = open_engine(
            session.project,
            ticket,
            frontend,
            model_of("executor"),
            commands(),
            start_over=start_over,
            tally=tally,
            clock=clock,
            lock=lock,
            emit=emit,
        )
        if not is_visit:
            prepare_model(engine)
        return ExecutorAgent(engine, is_visit=is_visit)

    def open_socrates(ticket: Ticket, *, start_over: bool = False) -> Agent:
        from cdd_agent.agents.socrates import SocratesAgent

        def of_this_ticket(spent: Spent, lost: Callable[[Usage], None]) -> Model:
            config = of_role(session.project.config, "socrates")
            of_ticket = equipped(model_of("socrates")(), config, tally, spent=spent, lost=lost, clock=clock)
            of_ticket.warm_up()
            return of_ticket

        now = session.project
        return SocratesAgent.open(
            now.tickets,
            ticket,
            _redactor(now.config),
            of_this_ticket,
            emit,
            tool_calls=now.config.tool_calls,
            start_over=start_over,
        )

    def open_planner(ticket: Ticket) -> Agent:
        from cdd_agent.agents.planner import PlannerAgent

        return PlannerAgent(
            open_planning(session.project, ticket, model_of("planner"), commands(), emit, tally=tally, clock=clock)
        )

    def use(config: Config) -> None:
        now, exchanged = session.project.config, dict[Role, Model]()
        for role in ROLES:
            chosen = of_role(config, role)
            if chosen.model and (chosen != of_role(now, role) or config == now):
                exchanged[role] = make_model(chosen, project.root, watched=True)
                equipped(exchanged[role], chosen, tally)  # raises where its budget could not be kept to
        session.project = replace(session.project, config=config)
        for role, model in exchanged.items():
            configured(role).inner = model

    session = Session(
        project,
        {"executor": open_executor, "socrates": open_socrates, "planner": open_planner},
        emit,
        tally,
        use,
        find_servers,
        open_chat=lambda: open_chat(session.project, frontend, model_of("chat"), commands, tally, emit, clock),
    )
    return session


def open_planning(
    project: Project,
    ticket: Ticket,
    model: Callable[[], Model],
    commands: CommandRunner,
    emit: Emit,
    *,
    tally: Tally | None = None,
    clock: Clock | None = None,
    may_ask: bool = True,
) -> Planning:
    """A ticket's planning, which holds the ticket until it is closed. `model` is made when it is asked, and has the
    budget to itself. Raises `BadInput` for a spec that is not complete, and when another process is at work on the
    ticket."""
    from cdd_agent.agents.plan_desk import planning_log
    from cdd_agent.agents.planning import Planning
    from cdd_agent.agents.planning_notes import open_notes
    from cdd_agent.events import ReplyLost
    from cdd_agent.tools.read_only import read_only_tools

    config, root = of_role(project.config, "planner"), project.root
    desk = open_desk(project, ticket, commands)
    desk.complete_spec()
    log = planning_log(desk.record)

    @cache
    def of_this_planning() -> Model:
        return equipped(model(), config, tally or Tally(), lost=lambda usage: log.add(ReplyLost(usage)), clock=clock)

    notes, tools = open_notes(desk.record), read_only_tools(root)
    return Planning(desk, notes, of_this_planning, tools, config.tool_calls, may_ask, emit)


def open_desk(project: Project, ticket: Ticket, commands: CommandRunner) -> PlanDesk:
    """Where a ticket's plan is read, compiled and written. Nothing is written by opening it."""
    from cdd_agent.agents.plan_desk import PlanDesk
    from cdd_agent.engine.record import RunRecord

    config, root = project.config, project.root
    record = RunRecord.of(root, ticket.slug, _redactor(config))
    return PlanDesk(root, ticket, record, commands, config.test_command)


def open_chat(
    project: Project,
    frontend: Frontend,
    model: Callable[[], Model],
    commands: Callable[[], CommandRunner],
    tally: Tally,
    emit: Emit,
    clock: Clock | None = None,
) -> ChatAgent:
    """The general agent. Its model and its tools are made when they are first needed."""
    from cdd_agent.agents.chat import ChatAgent

    config = of_role(project.config, "chat")

    @cache
    def tools() -> ChatTools:
        return _chat_tools(project, frontend, commands())

    @cache
    def equipped_model() -> Model:
        return equipped(model(), config, tally, clock=clock)

    return ChatAgent(project.root, equipped_model, tools, _redactor(config), emit, config.tool_calls)


def _chat_tools(project: Project, frontend: Frontend, commands: CommandRunner) -> ChatTools:
    """All but asking the person, who reads along anyway; and searching only where there is something to search with."""
    from dataclasses import replace
    from importlib.util import find_spec

    from cdd_agent.agents.chat import ChatTools
    from cdd_agent.edits.changes import ChangeSet
    from cdd_agent.events import ChangesProposed, Choice
    from cdd_agent.tools.acting import acting_tools
    from cdd_agent.tools.read_only import read_only_tools

    written: list[ChangeSet] = []
    asked = _asked_of_changes(project.config, frontend)

    async def permit(changes: ChangeSet) -> bool:
        proposal = ChangesProposed(None, changes.created, changes.modified, changes.deleted, changes.diff())
        with commands.clock.standing_still():
            return await asked.approve(proposal) is Choice.YES

    runner = replace(open_runner(project, frontend, commands), permit=permit, wrote=written.append)
    left_out = {"chat_with_user"} | ({"research"} if find_spec("ddgs") is None else set())
    acting = [tool for tool in acting_tools(runner) if tool.name not in left_out]
    tools = sorted((*read_only_tools(project.root), *acting), key=lambda tool: tool.category == "Git")
    return ChatTools(tools, written, commands.clock)  # what a small window has no room for is the history


def open_engine(
    project: Project,
    ticket: Ticket,
    frontend: Frontend,
    model: Callable[[], Model],
    commands: CommandRunner,
    *,
    start_over: bool = False,
    tally: Tally | None = None,
    clock: Clock | None = None,
    lock: TicketLock | None = None,
    emit: Emit,
) -> Engine:
    """Open a ticket's run, with its `lock` if somebody here holds it already. `model` is made when a reply is needed;
    `tally` is told what it takes. Raises `BadInput`."""
    from cdd_agent.engine.engine import Engine
    from cdd_agent.engine.step import StepRunner
    from cdd_agent.events import PersonAnswered, ReplyLost
    from cdd_agent.wording import question

    config, root = of_role(project.config, "executor"), project.root

    def log_answer(asked: Proposal | str, answer: str) -> None:
        shown = asked if isinstance(asked, str) else question(asked)
        record = engine.run.record
        record.log.add(record.redactor.redacted(PersonAnswered(shown[:_LONGEST_QUESTION], answer)))

    person = AnswersTold(frontend, log_answer)

    @cache
    def of_this_run() -> Model:
        return equipped(
            model(),
            config,
            tally or Tally(),
            spent=_spent_before(engine),
            lost=lambda usage: engine.run.record.log.add(ReplyLost(usage)),
            clock=clock,
        )

    runner = StepRunner(
        root,
        of_this_run,
        _asked_of_changes(config, person),
        config.test_command,
        config.test_timeout,
        project.tickets.owns,
        replace(commands, permit=_permit_of(person)),
        config.tool_calls,
    )
    own = [*project.tickets.places, *_within(root, config.record)]
    engine = Engine.open(
        root,
        ticket,
        runner,
        emit=emit,
        own=own,
        commits=config.commit == "step",
        require=None if config.require == "off" else config.require,
        start_over=start_over,
        lock=lock,
    )
    return engine


def _redactor(config: Config) -> Redactor:
    """What takes secrets out of all that is kept or shown."""
    from cdd_agent.redaction import Redactor

    return Redactor.of_environment(config.commands.hide_env)


def _asked_of_changes(config: Config, frontend: Frontend) -> Frontend:
    return frontend if config.approval == "ask" else ChangesApproved(frontend)


def _within(root: Path, record: str | None) -> list[str]:
    """A cassette's path as the project knows it, where it is in the project."""
    place = (root / record).resolve() if record else root.parent
    return [place.relative_to(root).as_posix()] if place.is_relative_to(root) else []


def equipped(
    model: Model,
    config: Config,
    tally: Tally,
    *,
    spent: Spent | None = None,
    lost: Callable[[Usage], None] = lambda usage: None,
    clock: Clock | None = None,
) -> Model:
    """An adapter, and its fallbacks, as work needs them: an empty reply is an error, each call is counted at its own
    model's price and must fit the budget; patience is around that, so that every call it makes is one that the budget
    allowed. Raises `BadInput` for an unknown price."""
    from cdd_agent.llm.fallbacks import WithFallbacks
    from cdd_agent.llm.wrapper import RejectEmpty

    account = Tally(spent or Spent())

    def with_patience(adapter: Model) -> Model:
        budgeted = Budgeted(
            RejectEmpty(adapter),
            Limit(config.budget.tokens, config.budget.usd),
            account=account,
            price=lambda: adapter.price,
            spend=tally.add,
            lost=lost,
        )
        return Retrying(budgeted, clock)

    if isinstance(model, WithFallbacks):
        return WithFallbacks(
            with_patience(_sized(model.inner, config)), [with_patience(other) for other in model.others], clock
        )
    return with_patience(_sized(model, config))


def _sized(model: Model, config: Config) -> Model:
    from cdd_agent.llm.window_limited import WindowLimited

    return WindowLimited(model, config.context_window) if config.context_window else model


def _spent_before(engine: Engine) -> Spent:
    """By the earlier processes of a run, as its log tells; a log whose state is gone is another run's."""
    from cdd_agent.engine.effort import effort_of

    if engine.run.state.started_at is None:
        return Spent()
    return effort_of(engine.run.record.log.entries()).spent


def prepare_model(engine: Engine) -> None:
    """Make the model if a step is left to do; where that fails, close the engine and raise `BadInput`."""
    try:
        if engine.run.next_step is not None:
            engine.runner.model().warm_up()
    except CddError:
        engine.close()
        raise


def open_commands(project: Project, frontend: Frontend) -> CommandRunner:
    """What runs commands in a project, under its settings."""
    from cdd_agent.process.policy import CommandRunner

    return CommandRunner(project.root, project.config.commands, _permit_of(frontend))


def _permit_of(frontend: Frontend) -> Permit:
    from cdd_agent.events import Choice, CommandProposed
    from cdd_agent.process.policy import Permission

    permissions = {Choice.YES: Permission.YES, Choice.ALWAYS: Permission.ALWAYS}

    async def permit(command: str, reason: str) -> Permission:
        choice = await frontend.approve(CommandProposed(command, reason))
        return permissions.get(choice, Permission.NO)

    return permit


def open_runner(project: Project, frontend: Frontend, commands: CommandRunner | None = None) -> ActionRunner:
    """What does actions in a project, under its settings; with `commands` that are open already, or its own."""
    from cdd_agent.tools.action_runner import ActionRunner
    from cdd_agent.web.pages import PageReader
    from cdd_agent.web.search import DdgsSearcher

    return ActionRunner(
        project.root,
        commands or open_commands(project, frontend),
        PageReader(project.config.web.private),
        DdgsSearcher(),
        frontend.ask,
        project.tickets.owns,
    )


def make_model(config: Config, root: Path, *, watched: bool) -> Model:
    """The configured model. `watched`: somebody reads along, so a script keeps its natural pace, and thoughts that come
    only if they are asked for are. Raises `BadInput`.

    What is recorded is the adapter's own calls: a failed one is in the cassette, and so is the one that came after it.
    """
    model = _adapter(config, root, watched=watched)
    if config.record is None:
        return model
    from cdd_agent.llm.cassette import Recorded

    return Recorded(model, root / config.record, _redactor(config))


def configured_model(config: Config, root: Path, *, watched: bool) -> Model:
    """The configured model with its fallbacks. Raises `BadInput`."""
    return with_fallbacks(make_model(config, root, watched=watched), config, root, watched=watched)


def with_fallbacks(model: Model, config: Config, root: Path, *, watched: bool) -> Model:
    """The model that these settings name, with those to ask where it cannot be. Raises `BadInput`."""
    if not config.fallbacks:
        return model
    from cdd_agent.llm.fallbacks import WithFallbacks

    if config.model and config.model.startswith(_REPLAY):  # its record has what the others said
        return WithFallbacks(model, [model for _ in fallbacks_of(config)])
    return WithFallbacks(model, [_sized(make_model(c, root, watched=watched), c) for c in fallbacks_of(config)])


class NoModel(BadInput):
    """A model is to be asked, and none is configured."""

    def __init__(self) -> None:
        super().__init__(
            "No model is configured",
            hint="In the shell `/model NAME --save` sets one; or put `model: NAME` into .cdd/config.yaml. "
            "`cdd doctor` says which ones there are, and what is missing.",
        )


def _adapter(config: Config, root: Path, *, watched: bool) -> Model:
    if config.model is None:
        raise NoModel
    if config.model.startswith(_SCRIPT):
        from cdd_agent.llm.scripted import ScriptedModel

        scripted = ScriptedModel.from_yaml(root / config.model.removeprefix(_SCRIPT))
        scripted.pace *= watched
        scripted.sees = scripted.sees if config.pictures is None else config.pictures
        return scripted
    if config.model.startswith(_REPLAY):
        from cdd_agent.llm.replay import ReplayedModel

        cassette = root / config.model.removeprefix(_REPLAY)
        return ReplayedModel.from_file(cassette, _redactor(config), in_time=watched)
    if endpoint := direct_endpoint(config):
        from cdd_agent.llm.direct.model import DirectModel

        return DirectModel(config.model, endpoint, _options(config, watched=watched))
    from cdd_agent.llm.litellm_adapter import LitellmModel, expect_provider

    expect_provider(config.model, config.api_base)
    return LitellmModel(config.model, config.api_base, _options(config, watched=watched))


def _options(config: Config, *, watched: bool) -> ModelOptions:
    from cdd_agent.llm.options import Effort, ModelOptions

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


def direct_endpoint(config: Config) -> Endpoint | None:
    """Where the configured model is asked directly; None where litellm asks it. Raises `BadInput`."""
    from cdd_agent.llm.providers import PROVIDERS, endpoint_of

    if config.model is None or config.model_adapter == "litellm":
        return None
    endpoint = endpoint_of(config.model, config.api_base)
    if endpoint is None and config.model_adapter == "direct":
        raise BadInput(
            f"The direct adapter does not know how to ask {config.model}",
            hint=f"It knows {', '.join(PROVIDERS)}, and any server of chat completions as openai/NAME with `api_base`, "
            "of Responses as openai/responses/NAME; "
            "`model_adapter: auto` leaves the others to litellm.",
        )
    return endpoint
