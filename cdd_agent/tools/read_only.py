"""The read-only tools, for files, folders and history. Socrates and the Planner have
these and no others.
"""

import asyncio
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from cdd_agent.context.finder import CodeFinder, in_words
from cdd_agent.context.query import Query
from cdd_agent.files.line_list import LineList
from cdd_agent.files.read import read_source
from cdd_agent.git.branch import current_branch
from cdd_agent.git.status import git_diff, git_log, git_status
from cdd_agent.project.search import glob_files, grep_files, list_files
from cdd_agent.threads import in_thread
from cdd_agent.tools.base import A, Answer, Arguments, Tool
from cdd_agent.typed_values import Written

_MOST_LINES = 1000

ProjectPath = Annotated[str, Meta(description="Path in the project.")]
Pattern = Annotated[Written, Meta(description="As in `src/**/*.py`.")]
LineLimit = Annotated[int, Meta(ge=1, le=_MOST_LINES, description="Most lines.")]


class _ReadOnlyTool(Tool[A]):
    category = "Files"
    acts = False

    def __init__(self, root: Path) -> None:
        self._root = root


class ReadArguments(Arguments, frozen=True):
    path: Annotated[Written, Meta(description="Path in the project.")]
    start_line: Annotated[int, Meta(ge=1, description="First line.")] = 1
    end_line: Annotated[int, Meta(ge=1, description="Last line.")] | None = None


class ReadFileTool(_ReadOnlyTool[ReadArguments]):
    """Read a file or some of its lines, or what is in a folder."""

    name = "read_file"
    tags = ("file", "read")
    returns = (
        "`output`, `cut` (true if shortened), a `note` (why, encoding), or `error`."
    )
    examples = (
        {"path": "README.md"},
        {"path": "src/app.py", "start_line": 40, "end_line": 80},
        {"path": "src"},
    )
    arguments = ReadArguments

    async def run(self, arguments: ReadArguments) -> Answer:
        source = await asyncio.to_thread(
            read_source,
            self._root,
            arguments.path,
            start=arguments.start_line,
            end=arguments.end_line,
        )
        note = {"note": source.note} if source.note else {}
        return {"output": source.text, "cut": source.cut, **note}


class _ListArguments(Arguments, frozen=True):
    path: ProjectPath = "."
    limit: LineLimit = 200


class ListFilesTool(_ReadOnlyTool[_ListArguments]):
    """List all files below a folder, without those that git ignores."""

    name = "list_files"
    tags = ("file", "list", "folder")
    returns = "`output` (a path a line), `cut` (true if there are more), or `error`."
    examples = ({}, {"path": "src"}, {"path": "tests", "limit": 50})
    arguments = _ListArguments

    async def run(self, arguments: _ListArguments) -> Answer:
        return _list_answer(
            await asyncio.to_thread(
                list_files, self._root, arguments.path, limit=arguments.limit
            )
        )


class _GlobArguments(Arguments, frozen=True):
    pattern: Pattern
    limit: LineLimit = 200


class GlobFilesTool(_ReadOnlyTool[_GlobArguments]):
    """Find files by a pattern of paths, without those that git ignores."""

    name = "glob_files"
    main_argument = "pattern"
    tags = ("file", "find", "pattern")
    returns = "`output` (a path a line), `cut` (true if there are more), or `error`."
    examples = (
        {"pattern": "**/*.py"},
        {"pattern": "src/**/test_*.py"},
        {"pattern": "*.md", "limit": 20},
    )
    arguments = _GlobArguments

    async def run(self, arguments: _GlobArguments) -> Answer:
        return _list_answer(
            await asyncio.to_thread(
                glob_files, self._root, arguments.pattern, limit=arguments.limit
            )
        )


class _GrepArguments(Arguments, frozen=True):
    pattern: Annotated[Written, Meta(description="Python regular expression.")]
    path: ProjectPath = "."
    glob: Annotated[str | None, Meta(description="Only these files, as in `*.py`.")] = (
        None
    )
    ignore_case: Annotated[bool, Meta(description="Ignore upper and lower case.")] = (
        False
    )
    limit: LineLimit = 200


class GrepFilesTool(_ReadOnlyTool[_GrepArguments]):
    """Search the lines of files for a regular expression, without files that git
    ignores.
    """

    name = "grep_files"
    main_argument = "pattern"
    tags = ("file", "search", "text")
    returns = (
        "`output` (`path:line: text`), `cut` (true if there are more), or `error`."
    )
    examples = (
        {"pattern": "def login"},
        {"pattern": "TODO|FIXME", "path": "src", "glob": "*.py"},
        {"pattern": "user name", "ignore_case": True, "limit": 20},
    )
    arguments = _GrepArguments

    async def run(self, arguments: _GrepArguments) -> Answer:
        lines = await grep_files(
            self._root,
            arguments.pattern,
            arguments.path,
            glob=arguments.glob,
            ignore_case=arguments.ignore_case,
            limit=arguments.limit,
        )
        return _list_answer(lines)


class _CodeArguments(Arguments, frozen=True):
    query: Annotated[Written, Meta(description="Plain words, names, an error message.")]
    limit: Annotated[int, Meta(ge=1, le=50, description="Most files.")] = 8


class FindCodeTool(_ReadOnlyTool[_CodeArguments]):
    """Find the files and places in the code that a text is about, best first. Use it
    where you do not know the name.
    """

    name = "find_code"
    main_argument = "query"
    tags = ("code", "search", "definition")
    returns = "`output` (files with reasons and places), or `error`."
    examples = (
        {"query": "where is the rate limit handled?"},
        {"query": "TypeError in parse_range", "limit": 5},
        {"query": "retry with backoff"},
    )
    arguments = _CodeArguments

    def __init__(self, root: Path, code: CodeFinder) -> None:
        super().__init__(root)
        self._code = code

    async def run(self, arguments: _CodeArguments) -> Answer:
        return {
            "output": await in_thread(lambda: self._search(arguments), name=self.name)
        }

    def _search(self, arguments: _CodeArguments) -> str:
        ranked = self._code.rank(Query(arguments.query), most=arguments.limit)
        return in_words(self._root, ranked) or "Nothing in the project is about that."


class _NoArguments(Arguments, frozen=True):
    pass


class _GitTool(_ReadOnlyTool[A]):
    category = "Git"


class GitStatusTool(_GitTool[_NoArguments]):
    """Show the branch, and which files are changed, staged or new."""

    name = "git_status"
    tags = ("git", "status")
    returns = "`output` (as of `git status --short`), or `error`."
    examples = ({},)
    arguments = _NoArguments

    async def run(self, arguments: _NoArguments) -> Answer:
        return _list_answer(await git_status(self._root))


class _LogArguments(Arguments, frozen=True):
    path: Annotated[
        str | None, Meta(description="File or folder; all if left out.")
    ] = None
    limit: Annotated[int, Meta(ge=1, le=200, description="Most commits.")] = 20


class GitLogTool(_GitTool[_LogArguments]):
    """Show the latest commits: hash, date, author and subject."""

    name = "git_log"
    tags = ("git", "history")
    returns = "`output` (a commit a line), `cut` (true if there are more), or `error`."
    examples = ({}, {"path": "src/app.py"}, {"limit": 5})
    arguments = _LogArguments

    async def run(self, arguments: _LogArguments) -> Answer:
        return _list_answer(await git_log(self._root, arguments.path, arguments.limit))


class _DiffArguments(Arguments, frozen=True):
    path: Annotated[
        str | None, Meta(description="File or folder; all if left out.")
    ] = None
    staged: Annotated[bool, Meta(description="Show staged changes only.")] = False
    commit: Annotated[
        Written | None,
        Meta(description="A hash, or as `HEAD~1`."),
    ] = None


class GitDiffTool(_GitTool[_DiffArguments]):
    """Show changes as a diff: unstaged ones, staged ones, or those of a commit."""

    name = "git_diff"
    tags = ("git", "changes")
    returns = "`output` (a unified diff), `cut` (true if shortened), or `error`."
    examples = ({}, {"path": "src/app.py", "staged": True}, {"commit": "HEAD~1"})
    arguments = _DiffArguments

    async def run(self, arguments: _DiffArguments) -> Answer:
        return _list_answer(
            await git_diff(
                self._root, arguments.path, arguments.staged, arguments.commit
            )
        )


LOOKING = frozenset(
    tool.name
    for tool in (
        *(ReadFileTool, ListFilesTool, GlobFilesTool, GrepFilesTool, FindCodeTool),
        *(GitStatusTool, GitLogTool, GitDiffTool),
    )
)
"""The names of all of them, whether a project has use for each or not."""


def read_only_tools(
    root: Path, code: CodeFinder | None = None
) -> tuple[Tool[Any], ...]:
    """All of them, for one project; with what finds `code` where there is that, and
    with git's in a repository.
    """
    return (
        ReadFileTool(root),
        ListFilesTool(root),
        GlobFilesTool(root),
        GrepFilesTool(root),
        *([FindCodeTool(root, code)] if code else []),
        *(
            (GitStatusTool(root), GitLogTool(root), GitDiffTool(root))
            if current_branch(root)
            else ()
        ),
    )


def _list_answer(lines: LineList) -> Answer:
    return {"output": lines.as_text(), "cut": lines.cut}
