"""The read-only tools, for files, folders and history. Socrates and the Planner have no
others.
"""

import asyncio
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from cdd_agent.context.finder import CodeFinder, in_words
from cdd_agent.context.query import Query
from cdd_agent.files.globs import is_glob
from cdd_agent.files.line_list import LineList
from cdd_agent.files.read import SourceMissing, read_source
from cdd_agent.git.branch import current_branch
from cdd_agent.git.status import git_diff, git_log, git_status
from cdd_agent.project.search import glob_files, grep_files, list_files
from cdd_agent.threads import in_thread
from cdd_agent.tools.base import A, Answer, Arguments, Tool
from cdd_agent.values.typed_values import Written

_MOST_PATHS = 200

ProjectPath = Annotated[str, Meta(description="File or folder.")]
OptionalPath = Annotated[
    str | None, Meta(description="File or folder; by default all.")
]


class _ReadOnlyTool(Tool[A]):
    category = "Files"
    acts = False

    def __init__(self, root: Path) -> None:
        self._root = root


class ReadArguments(Arguments, frozen=True):
    path: Annotated[Written, Meta(description="In the project, or like `src/**/*.py`.")]
    start_line: Annotated[int, Meta(ge=1, description="First line.")] = 1
    end_line: Annotated[int, Meta(ge=1, description="Last line.")] | None = None


class ReadFileTool(_ReadOnlyTool[ReadArguments]):
    """Read a file, or list the paths of a folder or pattern."""

    name = "read_file"
    tags = ("file", "read")
    returns = "Returns `output`, perhaps `cut` and a `note`; or `error`."
    examples = (
        {"path": "README.md"},
        {"path": "src/app.py", "start_line": 40, "end_line": 80},
        {"path": "tests/**/test_*.py"},
    )
    arguments = ReadArguments

    async def run(self, arguments: ReadArguments) -> Answer:
        return await asyncio.to_thread(self._read, arguments)

    def _read(self, arguments: ReadArguments) -> Answer:
        path, start, end = arguments.path, arguments.start_line, arguments.end_line
        try:
            source = read_source(self._root, path, start=start, end=end)
        except SourceMissing:
            if not is_glob(path):
                raise
            return _list_answer(glob_files(self._root, path, limit=_MOST_PATHS))
        answer: Answer = {"output": source.text}
        if source.cut:
            answer["cut"] = True
        if source.note:
            answer["note"] = source.note
        return answer


class _ListArguments(Arguments, frozen=True):
    path: ProjectPath = "."


class ListFilesTool(_ReadOnlyTool[_ListArguments]):
    """List all files below a folder, without those that git ignores."""

    name = "list_files"
    tags = ("file", "list", "folder")
    returns = "Returns `output`, a path a line; or `error`."
    examples = ({}, {"path": "src"}, {"path": "tests/unit"})
    arguments = _ListArguments

    async def run(self, arguments: _ListArguments) -> Answer:
        return _list_answer(
            await asyncio.to_thread(
                list_files, self._root, arguments.path, limit=_MOST_PATHS
            )
        )


class _GlobArguments(Arguments, frozen=True):
    pattern: Annotated[Written, Meta(description="Like `src/**/*.py`.")]


class GlobFilesTool(_ReadOnlyTool[_GlobArguments]):
    """Find files by their paths, without those that git ignores."""

    name = "glob_files"
    main_argument = "pattern"
    tags = ("file", "find", "pattern")
    returns = "Returns `output`, a path a line; or `error`."
    examples = (
        {"pattern": "**/*.py"},
        {"pattern": "src/**/test_*.py"},
        {"pattern": "*.md"},
    )
    arguments = _GlobArguments

    async def run(self, arguments: _GlobArguments) -> Answer:
        return _list_answer(
            await asyncio.to_thread(
                glob_files, self._root, arguments.pattern, limit=_MOST_PATHS
            )
        )


class _GrepArguments(Arguments, frozen=True):
    pattern: Annotated[
        Written, Meta(description="Python regular expression; `(?i)` ignores case.")
    ]
    path: ProjectPath = "."
    glob: Annotated[str | None, Meta(description="Only these, like `*.py`.")] = None
    limit: Annotated[int, Meta(ge=1, le=1000, description="Most lines.")] = 200


class GrepFilesTool(_ReadOnlyTool[_GrepArguments]):
    """Search the lines of files that git does not ignore."""

    name = "grep_files"
    main_argument = "pattern"
    tags = ("file", "search", "text")
    returns = "Returns `output`, lines as `path:number:text`; or `error`."
    examples = (
        {"pattern": "def login"},
        {"pattern": "TODO|FIXME", "path": "src", "glob": "*.py"},
        {"pattern": "(?i)user name", "limit": 20},
    )
    arguments = _GrepArguments

    async def run(self, arguments: _GrepArguments) -> Answer:
        lines = await grep_files(
            self._root,
            arguments.pattern,
            arguments.path,
            glob=arguments.glob,
            limit=arguments.limit,
        )
        return _list_answer(lines)


class _CodeArguments(Arguments, frozen=True):
    query: Annotated[Written, Meta(description="Words, names, an error message.")]
    limit: Annotated[int, Meta(ge=1, le=50, description="Most files.")] = 8


class FindCodeTool(_ReadOnlyTool[_CodeArguments]):
    """Find the code that some words are about, best first."""

    name = "find_code"
    main_argument = "query"
    tags = ("code", "search", "definition")
    returns = "Returns `output`, files with reasons and lines; or `error`."
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
        text = await in_thread(lambda: self._search(arguments), name=self.name)
        return {"output": text}

    def _search(self, arguments: _CodeArguments) -> str:
        ranked = self._code.rank(Query(arguments.query), most=arguments.limit)
        return in_words(self._root, ranked) or "Nothing in the project is about that."


class _NoArguments(Arguments, frozen=True):
    pass


class _GitTool(_ReadOnlyTool[A]):
    category = "Git"


class GitStatusTool(_GitTool[_NoArguments]):
    """Show the branch, and the changed and new files."""

    name = "git_status"
    tags = ("git", "status")
    returns = "Returns `output`, as `git status --short`; or `error`."
    examples = ({},)
    arguments = _NoArguments

    async def run(self, arguments: _NoArguments) -> Answer:
        return _list_answer(await git_status(self._root))


class _LogArguments(Arguments, frozen=True):
    path: OptionalPath = None
    limit: Annotated[int, Meta(ge=1, le=200, description="Most commits.")] = 20


class GitLogTool(_GitTool[_LogArguments]):
    """Show the latest commits: hash, date, author and subject."""

    name = "git_log"
    tags = ("git", "history")
    returns = "Returns `output`, a commit a line; or `error`."
    examples = ({}, {"path": "src/app.py"}, {"limit": 5})
    arguments = _LogArguments

    async def run(self, arguments: _LogArguments) -> Answer:
        return _list_answer(await git_log(self._root, arguments.path, arguments.limit))


class _DiffArguments(Arguments, frozen=True):
    path: OptionalPath = None
    staged: Annotated[bool, Meta(description="Staged changes only.")] = False
    commit: Annotated[Written | None, Meta(description="A hash, or like `HEAD~1`.")] = (
        None
    )


class GitDiffTool(_GitTool[_DiffArguments]):
    """Show changes: unstaged, staged, or those of a commit."""

    name = "git_diff"
    tags = ("git", "changes")
    returns = "Returns `output`, a unified diff; or `error`."
    examples = ({}, {"path": "src/app.py", "staged": True}, {"commit": "HEAD~1"})
    arguments = _DiffArguments

    async def run(self, arguments: _DiffArguments) -> Answer:
        return _list_answer(
            await git_diff(
                self._root, arguments.path, arguments.staged, arguments.commit
            )
        )


READ_ONLY_TOOLS = frozenset(
    tool.name
    for tool in (
        *(ReadFileTool, ListFilesTool, GlobFilesTool, GrepFilesTool, FindCodeTool),
        *(GitStatusTool, GitLogTool, GitDiffTool),
    )
)


def read_only_tools(
    root: Path, code: CodeFinder | None = None
) -> tuple[Tool[Any], ...]:
    """Return the read-only tools of a project. `find_code` needs the index `code`, and
    the git tools need a repository.
    """
    tools: list[Tool[Any]] = [
        ReadFileTool(root),
        ListFilesTool(root),
        GlobFilesTool(root),
        GrepFilesTool(root),
    ]
    if code:
        tools.append(FindCodeTool(root, code))
    if current_branch(root):
        tools += [GitStatusTool(root), GitLogTool(root), GitDiffTool(root)]
    return tuple(tools)


def _list_answer(lines: LineList) -> Answer:
    answer: Answer = {"output": lines.as_text()}
    if lines.cut:
        answer["cut"] = True
    return answer
