"""The tools that change something or ask somebody: the actions, as a model calls them."""

from collections.abc import AsyncGenerator
from typing import Any, Protocol, TypeVar

from pydantic import Field

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
from cdd_agent.actions.run import ActionRunner
from cdd_agent.actions.tools import Answer, Tool
from cdd_agent.workspace.commands import IShellExecutor, as_tool_answer
from cdd_agent.workspace.process import OutputChunk, result_of


class RunsActions(Protocol):
    """What does actions, one at a time; an `ActionRunner` does."""

    def run(self, action: Action) -> AsyncGenerator[OutputChunk | ActionResult, None]:
        """Yield output as it comes, then one `ActionResult`. May raise `CddError`."""
        ...


class _CommandArguments(ExecuteAction):
    cwd: str = Field(".", description="The folder to run it in, relative to the project; made when missing.")


class ExecuteCommandTool(Tool[_CommandArguments]):
    """Run one command in the project and wait for its end.

    There is no shell: no pipes, no redirection, no `&&`; make several calls instead. Only programs on the project's
    list are run. A command that takes too long is ended.
    """

    name = "execute_command"
    category = "System"
    tags = ("cli", "command", "execute", "system")
    returns = (
        "`success`, `command`, `return_code` (0 is good, 127: there is no such program), `stdout`, `stderr`, `cwd`; or "
        "`error` when it was refused or took too long, with `allowed_commands` if its text is not one that may run."
    )
    examples = (
        {"command": "pytest -q tests/test_user.py"},
        {"command": "ruff check .", "cwd": "src"},
        {"command": "python -m build", "env": {"MODE": "production"}},
    )
    arguments = _CommandArguments

    def __init__(self, commands: IShellExecutor) -> None:
        self._commands = commands

    async def run(self, arguments: _CommandArguments) -> Answer:
        result = await self._commands.execute(arguments.command, arguments.cwd, arguments.env)
        return as_tool_answer(arguments.command, result, arguments.cwd)


B = TypeVar("B", bound=Action)


class _ActionTool(Tool[B]):
    """A tool that is one action, and answers with its result."""

    category = "Files"

    def __init__(self, runner: RunsActions) -> None:
        self._runner = runner

    async def run(self, arguments: B) -> Answer:
        result = await result_of(self._runner.run(arguments))
        if result.status is ActionStatus.FAILURE:
            return {"error": result.error} | ({"content": result.output} if result.output else {})
        return {"success": True} | ({"output": result.output} if result.output else {})


class CreateFileTool(_ActionTool[CreateFileAction]):
    """Create a file that does not exist yet; missing folders are made."""

    name = "create_file"
    tags = ("file", "create", "write")
    returns = "`success`; or `error`, with the present `content` when the file exists already."
    examples = (
        {"file_path": "src/greet.py", "content": "def greet() -> str:\n    return 'hi'\n"},
        {"file_path": "tests/__init__.py"},
        {"file_path": "docs/notes.md", "content": "# Notes\n"},
    )
    arguments = CreateFileAction


class EditFileTool(_ActionTool[EditAction]):
    """Replace a text in a file by another. It must be there exactly, and once; an empty one means the whole file."""

    name = "edit_file"
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
    """Search the web. Each query gets its own list of results."""

    name = "research"
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
        ExecuteCommandTool(runner.commands),
        ChatWithUserTool(runner),
        ResearchTool(runner),
    )
