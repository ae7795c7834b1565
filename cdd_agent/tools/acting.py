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
    """The port through which tools carry out actions, see `ActionRunner`."""

    async def run(self, action: Action) -> ActionResult:
        """Carry out an action. May raise `CddError`."""
        ...


class _CommandArguments(ExecuteAction, frozen=True):
    cwd: Folder = "."


_RULES = {
    "safe": "Only {allowed}; no shell: no `|`, `>`, `&&`, `*`, `$X`.",
    "ask": (
        "The user is asked before a shell runs `|`, `>` or `&&`, and before programs"
        " other than {allowed}; without a user these are refused. Without a shell `*`,"
        " `~`, `$X` are plain text."
    ),
    "unsafe": "A shell runs it, with any program.",
}


class ExecuteCommandTool(Tool[_CommandArguments]):
    """Run a program in `cwd`: tests, a linter, a build. Files have other tools."""

    name = "execute_command"
    main_argument = "command"
    category = "System"
    tags = ("cli", "command", "execute", "system")
    returns = (
        "Returns the exit code as `returncode` (127: no such program), `stdout`,"
        " `stderr`; or `error`, if refused or too slow."
    )
    unsent = frozenset({"success", "command", "cwd", "return_code"})
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
        self._executor = executor
        self._root = root
        self._settings = settings
        self._allowed = allowed
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
            f"{super().purpose} {rules} Each call starts anew. Time limit:"
            f" {self._settings.timeout:g} s."
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
    """Create a new file, and its folders."""

    name = "create_file"
    main_argument = "file_path"
    tags = ("file", "create", "write")
    returns = "Returns `success`; or `error` and the existing `content`."
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
    """Replace a text in a file."""

    name = "edit_file"
    main_argument = "file_path"
    tags = ("file", "edit", "write")
    returns = "Returns `success`; or `error` and the unchanged `content`."
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
    """Ask the user, where the choice is theirs, and wait for the answer."""

    name = "chat_with_user"
    main_argument = "prompt"
    category = "Conversation"
    tags = ("ask", "user")
    returns = "Returns `output`, the answer; or `error`, if no user can answer."
    examples = (
        {"prompt": "Which database should it use?"},
        {"prompt": "Delete the old endpoint, or keep it for a release?"},
        {"prompt": "Is 30 seconds a good limit?"},
    )
    arguments = ChatWithUserAction


class ResearchTool(_ActionTool[ResearchAction]):
    """Search the web for what is not in the project."""

    name = "research"
    main_argument = "queries"
    category = "Web"
    tags = ("web", "search")
    returns = (
        "Returns `output`, titles, addresses and snippets for each query; or `error`."
    )
    examples = (
        {"queries": ["textual markdown streaming"]},
        {"queries": ["pytest junit xml format", "pytest exit codes"]},
        {"queries": ["python 3.11 tomllib"]},
    )
    arguments = ResearchAction


def acting_tools(
    runner: ActionRunner, commands: CommandRunner
) -> tuple[Tool[Any], ...]:
    """Return the acting tools of a project. They follow the rules of an action plan."""
    return (
        CreateFileTool(runner),
        EditFileTool(runner),
        ExecuteCommandTool(
            runner.executor, commands.settings, commands.allowed, runner.root
        ),
        ChatWithUserTool(runner),
        ResearchTool(runner),
    )
