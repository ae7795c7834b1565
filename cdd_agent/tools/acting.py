"""The tools that change something or ask somebody: the actions, as a model calls
them.
"""

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
    cwd: str = "."


_RULES = {
    "safe": (
        "There is no shell: no pipes, redirection, `&&`, `*` or `$X`. Only these"
        " programs may be run: {allowed}."
    ),
    "ask": (
        "The person is asked before a shell runs what needs one (pipes, redirection,"
        " `&&`), and before any other program is run than {allowed}; where nobody is"
        " there, that is refused. Without a shell `*`, `~`, `$X` stay as they are."
        " Nothing carries over to the next call."
    ),
    "unsafe": (
        "It runs through the system's shell, and any program may be run. Nothing"
        " carries over to the next call."
    ),
}
_REFUSED = {
    "safe": (
        "it was refused, with `allowed_commands` if its text is not one that may run"
    ),
    "ask": "it was refused, or the person said no",
    "unsafe": "its folder is outside the project",
}
_RETURNS = (
    "`success`, `command`, `return_code` and, as the same number, `returncode` (0 is"
    " good; 127: there is no such program; 1 also: it could not be started), `stdout`"
    " and `stderr` (of much output the middle is left out), `cwd`. A command that fails"
    " by itself is no error of the call: its code and its output say so. Or `error`,"
    " when {refused}, or when it took too long, with what it had printed."
)


class ExecuteCommandTool(Tool[_CommandArguments]):
    """Run a command in the project. Use it when you need to see what a program says:
    tests, a linter, a build. For files there are other tools.
    """

    name = "execute_command"
    main_argument = "command"
    category = "System"
    tags = ("cli", "command", "execute", "system")
    arguments = _CommandArguments

    def __init__(
        self, executor: IShellExecutor, settings: Commands, allowed: tuple[str, ...]
    ) -> None:
        """`settings` and `allowed`, the programs that run without a question, are what
        the model is told.
        """
        self._executor, self._settings, self._allowed = executor, settings, allowed
        self.returns = _RETURNS.format(refused=_REFUSED[settings.mode])
        self.examples = (
            {"command": "pytest -q tests/test_user.py"},
            {"command": "ruff check .", "cwd": "src"},
            {
                "command": (
                    "python -m build"
                    if settings.mode == "safe"
                    else "pytest -q 2>&1 | tail -20"
                ),
                "env": {"MODE": "test"},
            },
        )

    @property
    def purpose(self) -> str:
        rules = _RULES[self._settings.mode].format(allowed=", ".join(self._allowed))
        return (
            f"{super().purpose} {rules} After {self._settings.timeout:g} seconds it is"
            " ended."
        )

    async def run(self, arguments: _CommandArguments) -> Answer:
        result = await self._executor.execute(
            arguments.command, arguments.cwd, arguments.env
        )
        if not (result.started or result.refused) and result.return_code != 127:
            why = f"Error executing command: {result.stderr}"
            result = replace(result, return_code=1, stderr=why, started=True)
        answer = as_tool_answer(arguments.command, result, arguments.cwd)
        return answer | (
            {"returncode": result.return_code} if "return_code" in answer else {}
        )


B = TypeVar("B", bound=Action)


class _ActionTool(Tool[B]):
    """A tool that is one action, and answers with its result."""

    category = "Files"

    def __init__(self, runner: RunsActions) -> None:
        self._runner = runner

    async def run(self, arguments: B) -> Answer:
        result = await self._runner.run(arguments)
        if result.status is ActionStatus.FAILURE:
            return {"error": result.error} | (
                {"content": result.output} if result.output else {}
            )
        return {"success": True} | ({"output": result.output} if result.output else {})


class CreateFileTool(_ActionTool[CreateFileAction]):
    """Create a file, and the folders it needs. Use it for new files only."""

    name = "create_file"
    main_argument = "file_path"
    tags = ("file", "create", "write")
    returns = (
        "`success`; or `error`, with the present `content` when the file exists"
        " already."
    )
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
    """Replace a text in a file by another. Use it for every change. `find` must be
    there exactly, and once; empty, it means the whole file.
    """

    name = "edit_file"
    main_argument = "file_path"
    tags = ("file", "edit", "write")
    returns = (
        "`success`; or `error`, with the unchanged `content` when the text was not"
        " found, or more than once."
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
    """Ask the person a question and wait for the answer. Use it when a choice is theirs
    to make.
    """

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
    """Search the web. Each query gets its own list of results. Use it when the answer
    is not in the project.
    """

    name = "research"
    main_argument = "queries"
    category = "Web"
    tags = ("web", "search")
    returns = (
        "`output`: for each query the titles, addresses and snippets found; or `error`."
    )
    examples = (
        {"queries": ["textual markdown streaming"]},
        {"queries": ["pytest junit xml format", "pytest exit codes"]},
        {"queries": ["python 3.11 tomllib"]},
    )
    arguments = ResearchAction


def acting_tools(runner: "ActionRunner") -> tuple[Tool[Any], ...]:
    """All of them, over one runner: the same rules as for an action plan."""
    return (
        CreateFileTool(runner),
        EditFileTool(runner),
        ExecuteCommandTool(
            runner.commands, runner.commands.settings, runner.commands.allowed
        ),
        ChatWithUserTool(runner),
        ResearchTool(runner),
    )
