"""Makes the adapters that all work in a project shares: commands, actions, the desk of
plans, the tools of chat.
"""

from __future__ import annotations

from importlib.util import find_spec

from msgspec.structs import replace

from cdd_agent.agents.chat import ChatTools
from cdd_agent.agents.plan_desk import PlanDesk
from cdd_agent.changes.change_set import ChangeSet
from cdd_agent.context.finder import CodeFinder
from cdd_agent.engine.approval import ask_about
from cdd_agent.engine.approval_mode import ApprovalMode
from cdd_agent.engine.ledger import OpenCheckpoints, no_part
from cdd_agent.engine.outside import OutsideChanges
from cdd_agent.engine.outside_work import (
    OutsideWork,
    RecordedCommands,
    open_in_repository,
)
from cdd_agent.engine.record import RunRecord
from cdd_agent.engine.strength_summary import StrengthSettings
from cdd_agent.events.question_events import Choice, CommandProposed
from cdd_agent.events.stream import Emit
from cdd_agent.frontend import Frontend
from cdd_agent.process.policy import CommandRunner, IShellExecutor, Permission, Permit
from cdd_agent.process.run import OnOutput, ignore_output
from cdd_agent.session.open_project import Project
from cdd_agent.settings.config import Config
from cdd_agent.settings.models import list_script_files
from cdd_agent.text.redaction import Redactor
from cdd_agent.tickets.store import Ticket
from cdd_agent.tools.acting import acting_tools
from cdd_agent.tools.action_runner import ActionRunner
from cdd_agent.tools.read_only import read_only_tools
from cdd_agent.web.search import DdgsSearcher


def make_redactor(config: Config) -> Redactor:
    """Return what removes secrets from everything that is saved or shown."""
    return Redactor.of_environment(config.commands.hide_env)


def list_own_paths(project: Project, config: Config) -> list[str]:
    """Return the paths outside of `.cdd` that cdd writes, relative to the root."""
    root = project.root
    paths = list(project.tickets.folders)
    if config.record:
        record = (root / config.record).resolve()
        if record.is_relative_to(root):
            paths.append(record.relative_to(root).as_posix())
    return paths


def list_paths_without_code(project: Project) -> list[str]:
    """Return the project's tickets and scripts, which are never related code."""
    scripts = list_script_files(project.config, project.root)
    return [*project.tickets.folders, *scripts]


def open_commands(
    project: Project, frontend: Frontend, on_output: OnOutput = ignore_output
) -> CommandRunner:
    return CommandRunner(
        project.root,
        project.config.commands,
        make_permit(frontend),
        trusted_checks=project.trust.checks,
        on_output=on_output,
    )


def make_permit(frontend: Frontend) -> Permit:
    permissions = {Choice.YES: Permission.YES, Choice.ALWAYS: Permission.ALWAYS}

    async def permit(command: str, reason: str) -> Permission:
        choice = await frontend.approve(CommandProposed(command, reason))
        return permissions.get(choice, Permission.NO)

    return permit


def open_runner(
    project: Project, frontend: Frontend, executor: IShellExecutor
) -> ActionRunner:
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


def open_desk(project: Project, ticket: Ticket, commands: CommandRunner) -> PlanDesk:
    """Open a ticket's plan. This writes nothing."""
    config = project.config
    return PlanDesk(
        root=project.root,
        ticket=ticket,
        record=RunRecord.of_ticket(ticket, make_redactor(config)),
        commands=commands,
        test_command=config.test_command,
        strength=StrengthSettings.from_config(config),
    )


def open_outside_work(
    project: Project, emit: Emit, open_checkpoints: OpenCheckpoints | None = None
) -> OutsideWork:
    config = project.config
    return OutsideWork(
        OutsideChanges.open(project.root, make_redactor(config)),
        emit,
        leave_out=no_part(project.root, list_own_paths(project, config)),
        open_checkpoints=open_checkpoints or open_in_repository,
    )


def open_chat_tools(
    project: Project,
    frontend: Frontend,
    mode: ApprovalMode,
    commands: CommandRunner,
    code: CodeFinder,
    work: OutsideWork,
) -> ChatTools:
    """Return the tools of chat: all except `chat_with_user`, and `research` only if the
    package `ddgs` is installed.
    """
    written: list[ChangeSet] = []
    redactor = make_redactor(project.config)

    async def permit(changes: ChangeSet) -> tuple[ChangeSet, str]:
        if not mode.asks_before_edits():
            return changes, ""
        with commands.clock.standing_still():
            answer, accepted = await ask_about(
                changes, None, frontend, project.root, project.tickets.owns
            )
        refused = (
            ""
            if accepted.changes or answer.reason
            else "The user did not approve this change"
        )
        return accepted, redactor.redact(
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
    # A small window shortens the history, not the tools.
    return ChatTools(tools, written, commands.clock, work)
