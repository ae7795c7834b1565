"""The actions, as a model calls them: tools that change something or ask the user."""

from pathlib import Path
from typing import Any, Protocol, TypeVar

from msgspec.structs import replace

from cdd_agent.actions.model import (
    Action,
    ActionResult,
    ActionStatus,
    ChatWithUserAction,
    CreateFileAction,
    EditAction,
    ExecuteAction,
    Folder,
    ResearchAction,
)
from cdd_agent.process.policy import (
    CommandRunner,
    IShellExecutor,
    as_tool_answer,
    execute_inside,
)
from cdd_agent.settings.config import Commands
from cdd_agent.tools.action_runner import ActionRunner
from cdd_agent.tools.base import Answer, Tool


class RunsActions(Protocol):
    """The port through which tools carry out actions. `ActionRunner` implements it."""

    async def run(self, action: Action) -> ActionResult:
        """Carry out an action. May raise `CddError`."""
        ...


class _CommandArguments(ExecuteAction, frozen=True):
    cwd: Folder = "."


_RULES = {
    "safe": (
        "There is no shell: no pipes, redirection, `&&`, `*` or `$X`. Only these"
        " programs may be run: {allowed}."
    ),
    "ask": (
        "The user is asked before a shell runs pipes, redirection or `&&`, and before"
        " other programs than {allowed} run; without a user these are refused. Without"
        " a shell `*`, `~`, `$X` are plain text."
    ),
    "unsafe": "It runs through the system's shell, and any program may be run.",
}


class ExecuteCommandTool(Tool[_CommandArguments]):
    """Run a command in the project. Use it when you need the output of a program:
    tests, a linter, a build. Files have other tools.
    """

    name = "execute_command"
    main_argument = "command"
    category = "System"
    tags = ("cli", "command", "execute", "system")
    returns = (
        "`success` (also if the command fails), `command`, `stdout`, `stderr` (both"
        " shortened in the middle), `cwd`, and the exit code as `return_code` and"
        " `returncode` (127: no such program); or `error`, if it was refused or took"
        " too long."
    )
    arguments = _CommandArguments

    def __init__(
        self,
        executor: IShellExecutor,
        settings: Commands,
        allowed: tuple[str, ...],
        root: Path,
    ) -> None:
        """The description for the model names the mode of `settings` and the `allowed`
        programs. Commands run inside `root`.
        """
        self._executor, self._root = executor, root
        self._settings, self._allowed = settings, allowed
        last = "pytest -q 2>&1 | tail -20"
        if settings.mode == "safe":
            last = "python -m build"
        self.examples = (
            {"command": "pytest -q tests/test_user.py"},
            {"command": "ruff check .", "cwd": "src"},
            {"command": last, "env": {"MODE": "test"}},
        )

    @property
    def purpose(self) -> str:
        rules = _RULES[self._settings.mode].format(allowed=", ".join(self._allowed))
        return (
            f"{super().purpose} {rules} After {self._settings.timeout:g} seconds it is"
            " ended. Nothing carries over to the next call."
        )

    async def run(self, arguments: _CommandArguments) -> Answer:
        command, cwd, env = arguments.command, arguments.cwd, arguments.env
        result = await execute_inside(self._root, self._executor, command, cwd, env)
        if not (result.started or result.refused) and result.return_code != 127:
            reason = f"Error executing command: {result.stderr}"
            result = replace(result, return_code=1, stderr=reason, started=True)
        answer = as_tool_answer(command, result, cwd)
        if "return_code" in answer:
            answer["returncode"] = result.return_code
        return answer


B = TypeVar("B", bound=Action)


class _ActionTool(Tool[B]):
    """A tool that is one action, and answers with its result."""

    category = "Files"

    def __init__(self, runner: RunsActions) -> None:
        self._runner = runner

    async def run(self, arguments: B) -> Answer:
        result = await self._runner.run(arguments)
        answer: Answer = {"success": True}
        key = "output"
        if result.status is ActionStatus.FAILURE:
            answer = {"error": result.error}
            key = "content"
        if result.output:
            answer[key] = result.output
        return answer


class CreateFileTool(_ActionTool[CreateFileAction]):
    """Create a file, and the folders it needs. Use it for new files only."""

    name = "create_file"
    main_argument = "file_path"
    tags = ("file", "create", "write")
    returns = "`success`; or `error`, with the `content` of a file that exists already."
    examples = (
        {
            "file_path": "src/greet.py",
            "content": "def greet() -> str:\n    return 'hi'\n",
        },
        {"file_path": "tests/__init__.py"},
        {"file_path": "docs/notes.md", "content": "# Notes\n"},
    )
    arguments = CreateFileAction


class EditFileTool(_ActionTool[EditAction]):
    """Replace a text in a file. Use it for every change of an existing file."""

    name = "edit_file"
    main_argument = "file_path"
    tags = ("file", "edit", "write")
    returns = (
        "`success`; or `error`, with the unchanged `content` if the text is not unique."
    )
    examples = (
        {
            "file_path": "src/greet.py",
            "find": "return 'hi'",
            "replace": "return 'hello'",
        },
        {"file_path": "README.md", "find": "TODO\n", "replace": ""},
        {"file_path": "VERSION", "find": "", "replace": "1.2.0\n"},
    )
    arguments = EditAction


class ChatWithUserTool(_ActionTool[ChatWithUserAction]):
    """Ask the user a question and wait for the answer. Use it when the choice is
    theirs.
    """

    name = "chat_with_user"
    main_argument = "prompt"
    category = "Conversation"
    tags = ("ask", "user")
    returns = "`output`: the user's answer; or `error` if no user can answer."
    examples = (
        {"prompt": "Which database should it use?"},
        {"prompt": "Delete the old endpoint, or keep it for a release?"},
        {"prompt": "Is 30 seconds a good limit?"},
    )
    arguments = ChatWithUserAction


class ResearchTool(_ActionTool[ResearchAction]):
    """Search the web. Each query gets its own list of results. Use it when the answer
    is not in the project.
    """

    name = "research"
    main_argument = "queries"
    category = "Web"
    tags = ("web", "search")
    returns = "`output`: for each query the titles, addresses and snippets; or `error`."
    examples = (
        {"queries": ["textual markdown streaming"]},
        {"queries": ["pytest junit xml format", "pytest exit codes"]},
        {"queries": ["python 3.11 tomllib"]},
    )
    arguments = ResearchAction


def acting_tools(
    runner: ActionRunner, commands: CommandRunner
) -> tuple[Tool[Any], ...]:
    """Return all of them for one project. They follow the rules of an action plan."""
    return (
        CreateFileTool(runner),
        EditFileTool(runner),
        ExecuteCommandTool(
            runner.executor, commands.settings, commands.allowed, runner.root
        ),
        ChatWithUserTool(runner),
        ResearchTool(runner),
    )
