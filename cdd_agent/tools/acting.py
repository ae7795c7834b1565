"""The tools that change something or ask somebody: the actions, as a model calls them."""

from typing import Annotated, Any, Protocol, TypeVar

from msgspec import Meta
from msgspec.structs import replace

from cdd_agent.actions.model import (
    Action,
    ActionResult,
    ActionStatus,
    ChatWithUserAction,
    CreateFileAction,
    EditAction,
    ExecuteAction,
    ResearchAction,
)
from cdd_agent.config import Commands
from cdd_agent.process.policy import IShellExecutor, as_tool_answer
from cdd_agent.tools.action_runner import ActionRunner
from cdd_agent.tools.base import Answer, Tool


class RunsActions(Protocol):
    """The port by which actions are done, one at a time; `ActionRunner` is one."""

    async def run(self, action: Action) -> ActionResult:
        """Do it. May raise `CddError`."""
        ...


class _CommandArguments(ExecuteAction, frozen=True):
    cwd: Annotated[str, Meta(description="The folder to run it in, relative to the project; made when missing.")] = "."


_RULES = {
    "safe": "There is no shell: pipes, redirection and `&&` are refused, and `*`, `~`, `$X` stay as they are. Make "
    "several calls instead. Only these programs may be run: {allowed}.",
    "ask": "The person is asked before a shell runs what needs one (pipes, redirection, `&&`), and before any other "
    "program is run than {allowed}; where nobody is there to ask, it is refused. Without a shell `*`, `~`, `$X` stay "
    "as they are.",
    "unsafe": "It runs through the system's shell: pipes, redirection and `&&` work, and any program may be run.",
}
_REFUSED = {
    "safe": "it was refused, with `allowed_commands` if its text is not one that may run",
    "ask": "it was refused, or the person said no",
    "unsafe": "its folder is outside the project",
}
_RETURNS = (
    "`success`, `command`, `return_code` and, as the same number, `returncode` (0 is good; 127: there is no such "
    "program; 1 also: it could not be started), `stdout` and `stderr` (of much output the middle is left out), `cwd`. "
    "A command that fails by itself is no error of the call: its code and its output say so. Or `error`, when "
    "{refused}, or when it took too long, with what it had printed."
)


class ExecuteCommandTool(Tool[_CommandArguments]):
    """Run one command in the project and wait for its end.

    Use it when you need to see what a program says: the tests, a linter, a build, a script. Look at files and change
    them with the other tools. It runs in the project's folder, or in `cwd` below it, and has no input. Nothing carries
    over from one call to the next, no folder and no variable.
    """

    name = "execute_command"
    main_argument = "command"
    category = "System"
    tags = ("cli", "command", "execute", "system")
    arguments = _CommandArguments

    def __init__(self, executor: IShellExecutor, settings: Commands, allowed: tuple[str, ...]) -> None:
        """`settings` and `allowed`, the programs that run without a question, are what the model is told."""
        self._executor, self._settings, self._allowed = executor, settings, allowed
        self.returns = _RETURNS.format(refused=_REFUSED[settings.mode])
        self.examples = (
            {"command": "pytest -q tests/test_user.py"},
            {"command": "ruff check .", "cwd": "src"},
            {
                "command": "python -m build" if settings.mode == "safe" else "pytest -q 2>&1 | tail -20",
                "env": {"MODE": "test"},
            },
        )

    @property
    def purpose(self) -> str:
        rules = _RULES[self._settings.mode].format(allowed=", ".join(self._allowed))
        limit = f"After {self._settings.timeout:g} seconds it is ended, with all that it started."
        told = "You are told `return_code`, `stdout`, `stderr` and `cwd`, or `error`."
        return f"{super().purpose}\n\n{rules} {limit} {told}"

    async def run(self, arguments: _CommandArguments) -> Answer:
        result = await self._executor.execute(arguments.command, arguments.cwd, arguments.env)
        if not (result.started or result.refused) and result.return_code != 127:
            why = f"Error executing command: {result.stderr}"
            result = replace(result, return_code=1, stderr=why, started=True)
        answer = as_tool_answer(arguments.command, result, arguments.cwd)
        return answer | ({"returncode": result.return_code} if "return_code" in answer else {})


B = TypeVar("B", bound=Action)


class _ActionTool(Tool[B]):
    """A tool that is one action, and answers with its result."""

    category = "Files"

    def __init__(self, runner: RunsActions) -> None:
        self._runner = runner

    async def run(self, arguments: B) -> Answer:
        result = await self._runner.run(arguments)
        if result.status is ActionStatus.FAILURE:
            return {"error": result.error} | ({"content": result.output} if result.output else {})
        return {"success": True} | ({"output": result.output} if result.output else {})


class CreateFileTool(_ActionTool[CreateFileAction]):
    """Create a file that does not exist yet; missing folders are made. Use it for new files only."""

    name = "create_file"
    main_argument = "file_path"
    tags = ("file", "create", "write")
    returns = "`success`; or `error`, with the present `content` when the file exists already."
    examples = (
        {"file_path": "src/greet.py", "content": "def greet() -> str:\n    return 'hi'\n"},
        {"file_path": "tests/__init__.py"},
        {"file_path": "docs/notes.md", "content": "# Notes\n"},
    )
    arguments = CreateFileAction


class EditFileTool(_ActionTool[EditAction]):
    """Replace a text in a file by another. It must be there exactly, and once; an empty one means the whole file.
    Use it for every change of a file that is there."""

    name = "edit_file"
    main_argument = "file_path"
    tags = ("file", "edit", "write")
    returns = "`success`; or `error`, with the unchanged `content` when the text was not found, or more than once."
    examples = (
        {"file_path": "src/greet.py", "find": "return 'hi'", "replace": "return 'hello'"},
        {"file_path": "README.md", "find": "TODO\n", "replace": ""},
        {"file_path": "VERSION", "find": "", "replace": "1.2.0\n"},
    )
    arguments = EditAction


class ChatWithUserTool(_ActionTool[ChatWithUserAction]):
    """Ask the person a question and wait for the answer. Use it when a choice is theirs to make."""

    name = "chat_with_user"
    main_argument = "prompt"
    category = "Conversation"
    tags = ("ask", "user")
    returns = "`output`: what the person said; or `error` when nobody is there."
    examples = (
        {"prompt": "Which database should it use?"},
        {"prompt": "Delete the old endpoint, or keep it for a release?"},
        {"prompt": "Is 30 seconds a good limit?"},
    )
    arguments = ChatWithUserAction


class ResearchTool(_ActionTool[ResearchAction]):
    """Search the web. Each query gets its own list of results. Use it when the answer is not in the project."""

    name = "research"
    main_argument = "queries"
    category = "Web"
    tags = ("web", "search")
    returns = "`output`: for each query the titles, addresses and snippets found; or `error`."
    examples = (
        {"queries": ["textual markdown streaming"]},
        {"queries": ["pytest junit xml format", "pytest exit codes"]},
        {"queries": ["python 3.11 tomllib"]},
    )
    arguments = ResearchAction


def acting_tools(runner: ActionRunner) -> tuple[Tool[Any], ...]:
    """All of them, over one runner: the same rules as for an action plan."""
    return (
        CreateFileTool(runner),
        EditFileTool(runner),
        ExecuteCommandTool(runner.commands, runner.commands.settings, runner.commands.allowed),
        ChatWithUserTool(runner),
        ResearchTool(runner),
    )
