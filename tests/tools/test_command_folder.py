"""A command's folder is checked before the port that runs commands is called."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cdd_agent.actions.model import (
    Action,
    ActionStatus,
    CreateFileAction,
    ExecuteAction,
)
from cdd_agent.actions.plan import ActionPlan
from cdd_agent.engine.action_plan import ActionPlanRun
from cdd_agent.errors import ExitCode, NotApproved
from cdd_agent.events.action_events import ActionFinished, ActionOutput
from cdd_agent.events.stream import Event
from cdd_agent.frontend import Nobody
from cdd_agent.process.policy import CommandRunner, IShellExecutor
from cdd_agent.process.run import CommandResult, OutputChunk
from cdd_agent.settings.config import Commands
from cdd_agent.tools.acting import ExecuteCommandTool
from cdd_agent.tools.action_runner import ActionRunner
from cdd_agent.web.pages import PageReader
from cdd_agent.web.search import ScriptedSearcher
from tests.support.tables import each_row

BAD_FOLDERS = [
    "/",
    "/tmp",
    "C:\\Windows",
    "C:/Windows",
    "c:",
    "\\\\server\\share",
    "//server/share",
    "~",
    "~/x",
    "$HOME",
    "file:///tmp",
    "..",
    "../..",
    "../app-evil",
    "src/../..",
    "src/../../app-evil",
    "..\\app-evil",
    "link",
    "link/deeper",
    "loop",
    "a.txt",
    "a.txt/deeper",
    "nul\0",
    "\0",
    "a\nb",
    " ",
    " src",
    "x" * 300,
]
GOOD_FOLDERS = [".", "", "src", "src/..", "./src/", "src\\deep", "new/deep", "inside"]


class RecordingExecutor:
    """Records the calls of the port, and runs nothing."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str | None, Mapping[str, str] | None]] = []

    async def execute(
        self, command: str, cwd: str | None = None, env: Mapping[str, str] | None = None
    ) -> CommandResult:
        self.calls.append((command, cwd, env))
        return CommandResult("out\n", "", 0)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "app"
    (root / "src").mkdir(parents=True)
    (tmp_path / "app-evil").mkdir()
    (root / "link").symlink_to("../app-evil")
    (root / "inside").symlink_to("src")
    (root / "loop").symlink_to("loop")
    (root / "a.txt").write_text("a\n")
    return root


async def no_answer(question: str) -> str:
    raise NotApproved(question)


def action_runner(root: Path, executor: IShellExecutor) -> ActionRunner:
    return ActionRunner(root, executor, PageReader(), ScriptedSearcher(), no_answer)


@each_row("cwd", BAD_FOLDERS)
async def test_a_bad_folder_is_refused_before_the_port_is_called(
    root: Path, cwd: str
) -> None:
    executor = RecordingExecutor()
    tool = ExecuteCommandTool(executor, Commands(), ("ls",), root)
    answer = await tool.execute("ls", cwd)
    result = await action_runner(root, executor).run(ExecuteAction("ls", cwd))
    direct = await CommandRunner(root).execute("ls", cwd)
    assert executor.calls == []
    assert answer == {"error": direct.stderr}
    assert (result.status, result.error) == (ActionStatus.FAILURE, direct.stderr)
    assert (result.return_code, direct.refused) == (126, True)
    assert sorted(path.name for path in root.iterdir()) == [
        "a.txt",
        "inside",
        "link",
        "loop",
        "src",
    ]


@each_row("cwd", GOOD_FOLDERS)
@each_row("env", [None, {"MODE": "test"}])
async def test_a_command_is_passed_to_the_port_unchanged(
    root: Path, cwd: str, env: dict[str, str] | None
) -> None:
    executor = RecordingExecutor()
    tool = ExecuteCommandTool(executor, Commands(), ("ls",), root)
    answer = await tool.execute("ls", cwd, env)
    result = await action_runner(root, executor).run(ExecuteAction("ls", cwd, env))
    assert executor.calls == [("ls", cwd, env)] * 2
    assert (answer["stdout"], answer["cwd"]) == ("out\n", cwd)
    assert (result.status, result.output) == (ActionStatus.SUCCESS, "out\n")


async def test_a_command_without_a_folder_runs_in_the_project(root: Path) -> None:
    executor = RecordingExecutor()
    await ExecuteCommandTool(executor, Commands(), ("ls",), root).execute("ls")
    await action_runner(root, executor).run(ExecuteAction("ls"))
    assert executor.calls == [("ls", ".", None), ("ls", None, None)]


async def test_tool_and_port_take_positional_arguments(root: Path) -> None:
    commands = CommandRunner(root)
    tool = ExecuteCommandTool(commands, commands.settings, commands.allowed, root)
    answer = await tool.execute("pwd", "src")
    result = await commands.execute("pwd", "src")
    assert answer["stdout"] == result.stdout == f"{root.resolve() / 'src'}\n"
    assert (answer["cwd"], answer["success"]) == ("src", True)


@each_row("cwd", BAD_FOLDERS)
async def test_the_actions_after_a_bad_folder_are_carried_out(
    root: Path, cwd: str
) -> None:
    executor = RecordingExecutor()
    actions: tuple[Action, ...] = (
        ExecuteAction("ls", cwd),
        CreateFileAction("new.txt", "new\n"),
        ExecuteAction("ls", "src"),
    )
    events: list[Event] = []
    run = ActionPlanRun(ActionPlan(actions), root, Nobody(), False, events.append)
    await run.run(action_runner(root, executor))
    assert executor.calls == [("ls", "src", None)]
    assert [log.status for log in run.report().action_logs] == [
        ActionStatus.FAILURE,
        ActionStatus.SUCCESS,
        ActionStatus.SUCCESS,
    ]
    assert run.report().failures == 1
    assert run.exit_code is ExitCode.FAILED
    assert (root / "new.txt").read_text() == "new\n"


async def test_output_is_shown_once_and_with_its_action(root: Path) -> None:
    class Streaming(RecordingExecutor):
        async def execute(self, command: str, *more: Any) -> CommandResult:
            if command == "make":
                run.show_output(OutputChunk("out\n", "stdout"))
            return await super().execute(command, *more)

    plan = ActionPlan((ExecuteAction("ls"), ExecuteAction("make"), ExecuteAction("ls")))
    events: list[Event] = []
    run = ActionPlanRun(plan, root, Nobody(), False, events.append)
    await run.run(action_runner(root, Streaming()))
    shown = [event for event in events if isinstance(event, ActionOutput)]
    assert shown == [ActionOutput(number, "out\n") for number in (1, 2, 3)]
    finished = [event for event in events if isinstance(event, ActionFinished)]
    assert [event.number for event in finished] == [1, 2, 3]
