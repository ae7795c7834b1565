"""The context of a project for a model: file tree, environment, requested files."""

import os
import platform
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path, PurePath
from typing import Any, Literal

from msgspec import Struct, field, to_builtins
from msgspec.structs import asdict

from cdd_agent.files.hidden_from_models import (
    BY_NAME,
    HiddenFile,
    HiddenFiles,
    is_secret_path,
)
from cdd_agent.files.read import SourceMissing, SourceUnreadable, read_source
from cdd_agent.files.walk import Kind, WalkEntry, walk
from cdd_agent.git.branch import current_branch
from cdd_agent.process.programs import find_program
from cdd_agent.text.sanitize import fenced, sanitize_for_display
from cdd_agent.values.typed_values import Checked, Written

_LINES = 1_000
_WIDTH = 200
"""Entries of one folder in the tree."""
_DEPTH = 30
_COUNTED = 100_000
"""Entries to read."""
_HIDDEN = 50
"""Hidden files to list in the text."""
_GITIGNORE = 10_000
"""Characters of the `.gitignore` to show."""


class FileContext(Checked, frozen=True):
    file_path: Written
    content: str | None
    status: Literal["found", "not_found"]
    problem: str = ""


class Environment(Checked, frozen=True):
    os: str
    python: str
    shell: str
    cwd: str
    git: str


class ContextResult(Checked, frozen=True):
    repo_tree: str
    environment_info: Environment
    gitignore_content: str
    """The root's `.gitignore`, or empty."""
    file_contexts: tuple[FileContext, ...]
    hidden_files: tuple[HiddenFile, ...] = ()
    """Files and folders that models do not see. Files that only their content hides are
    found when they are read.
    """

    def to_json(self) -> dict[str, Any]:
        result: dict[str, Any] = to_builtins(self)
        return result

    def as_text(self) -> str:
        lines = []
        for name, value in asdict(self.environment_info).items():
            lines.append(f"- {name}: {value}")
        environment = "\n".join(lines)
        requested, refused = [], []
        for file in self.file_contexts:
            section = f"## {file.file_path}\n\n{_shown_content(file)}"
            if file.content is None:
                refused.append(section)
            else:
                requested.append(section)
        parts = [
            # Why a requested file is not shown must not be below a long tree.
            *refused,
            f"## Environment\n\n{environment}",
            f"## Files\n\n{fenced(self.repo_tree)}",
        ]
        if self.gitignore_content:
            parts.append(f"## .gitignore\n\n{fenced(self.gitignore_content)}")
        if self.hidden_files:
            parts.append(f"## Hidden from models\n\n{self._list_hidden()}")
        return "\n\n".join((*parts, *requested)) + "\n"

    def _list_hidden(self) -> str:
        lines = [f"- {file.path}: {file.why}" for file in self.hidden_files]
        more = len(lines) - _HIDDEN
        if more > 0:
            lines = [*lines[:_HIDDEN], f"- … and {more:,} more"]
        return "\n".join(lines)


def _shown_content(file: FileContext) -> str:
    if file.content is not None:
        return fenced(file.content)
    if file.problem:
        return f"({file.problem})"
    return "No such file."


def project_context(root: Path, paths: Iterable[str] = ()) -> ContextResult:
    """Return the context, with these files in full. Raises `PathRefused`."""
    gitignore = ""
    with suppress(SourceUnreadable):
        gitignore = read_source(root, ".gitignore", limit=_GITIGNORE).as_text()
    files = tuple(_read_context(root, path) for path in paths)
    listed, hidden = _list_project(root)
    return ContextResult(
        _draw(root, listed), _environment(root), gitignore, files, hidden
    )


def _environment(root: Path) -> Environment:
    branch = current_branch(root)
    if branch:
        git = f"branch {branch}"
    elif find_program("git"):
        git = "no repository"
    else:
        git = "not installed"
    shell = os.environ.get("SHELL") or os.environ.get("COMSPEC") or "unknown"
    return Environment(
        os=f"{platform.system()} {platform.release()} ({platform.machine()})",
        python=platform.python_version(),
        shell=PurePath(shell).name,
        cwd=sanitize_for_display(str(root.absolute())),
        git=sanitize_for_display(git),
    )


def _read_context(root: Path, text: str) -> FileContext:
    shown = sanitize_for_display(text)
    try:
        source = read_source(root, text)
    except SourceMissing:
        return FileContext(shown, None, "not_found")
    except SourceUnreadable as error:
        return FileContext(shown, None, "found", error.message)
    shown = sanitize_for_display(str(source.path))
    return FileContext(shown, source.as_text(), "found")


class _Node(Struct):
    """A file or folder of the tree."""

    entry: WalkEntry
    inner: list["_Node"] = field(default_factory=list)
    files: int = 0
    """Number of files in the folder, at any depth."""

    def line(self, *, is_closed: bool) -> str:
        """Return the name; for a closed folder with its number of files."""
        name = self.entry.shown_name
        if not is_closed or not self.inner:
            return name
        if self.files == 1:
            return f"{name} (1 file)"
        return f"{name} ({self.files:,} files)"


def _list_project(root: Path) -> tuple[list[WalkEntry], tuple[HiddenFile, ...]]:
    hidden: list[HiddenFile] = []
    listed = entries(root, on_hidden=hidden.append)
    files = HiddenFiles(root)
    for entry in listed:
        if entry.kind is Kind.LINK:
            if why := files.why_by_name(entry.text):
                hidden.append(HiddenFile(entry.text, why))
        elif entry.kind is not Kind.FOLDER and is_secret_path(entry.text):
            # faster than `why_by_name`: the walk has applied the lists
            hidden.append(HiddenFile(entry.text, BY_NAME))
    shown = [
        HiddenFile(sanitize_for_display(file.path), sanitize_for_display(file.why))
        for file in hidden
    ]
    return listed, tuple(sorted(shown, key=lambda file: file.path))


def entries(
    root: Path,
    without: Collection[str] = (),
    *,
    on_hidden: Callable[[HiddenFile], None] | None = None,
) -> list[WalkEntry]:
    """List the entries of a project except some files and folders, up to one more than
    `_COUNTED`. For `on_hidden` see `walk`.
    """
    inside = tuple(f"{place}/" for place in without)
    listed = (
        entry
        for entry in walk(root, on_hidden=on_hidden)
        if entry.text not in without and not entry.text.startswith(inside)
    )
    return list(islice(listed, _COUNTED + 1))


def repo_tree(root: Path) -> str:
    """Draw the project's files as a tree, with all levels that fit."""
    return _draw(root, entries(root))


def _draw(root: Path, listed: Sequence[WalkEntry]) -> str:
    top = _tree(sanitize_for_display(root.absolute().name) or ".", listed[:_COUNTED])
    drawn = _drawn(top, _levels_that_fit(top, _LINES))
    return "\n".join([top.entry.shown_name, *drawn, *_note_of_more(listed)]) + "\n"


def plain_tree(listed: Sequence[WalkEntry], lines: int) -> str:
    """Return the tree in about this number of lines. It has no branches, which cost
    tokens and do not help a model.
    """
    top = _tree("", listed[:_COUNTED])
    indented = _indented(top, _levels_that_fit(top, lines))
    return "\n".join((*indented, *_note_of_more(listed))) + "\n"


def _note_of_more(listed: Sequence[WalkEntry]) -> list[str]:
    if len(listed) <= _COUNTED:
        return []
    return [f"… and more: only {_COUNTED:,} entries were read"]


def _tree(name: str, entries: Iterable[WalkEntry]) -> _Node:
    top = _Node(WalkEntry(name, Kind.FOLDER))
    above = [top]
    for entry in entries:
        del above[entry.text.count("/") + 1 :]
        node = _Node(entry)
        above[-1].inner.append(node)
        if entry.kind is Kind.FOLDER:
            above.append(node)
        else:
            for folder in above:
                folder.files += 1
    return top


def _levels_that_fit(top: _Node, most: int) -> int:
    levels, level, lines = 0, [top], 0
    while level and levels < _DEPTH:
        level = [inner for node in level for inner in node.inner[:_WIDTH]]
        lines += len(level)
        if lines > most:
            break
        levels += 1
    return levels


def _drawn(folder: _Node, levels: int, indent: str = "") -> Iterator[str]:
    shown, more = folder.inner[:_WIDTH], len(folder.inner) - _WIDTH
    for node in shown:
        is_last = node is shown[-1] and more <= 0
        branch = "└── " if is_last else "├── "
        yield f"{indent}{branch}{node.line(is_closed=levels == 1)}"
        if levels > 1:
            below = "    " if is_last else "│   "
            yield from _drawn(node, levels - 1, indent + below)
    if more > 0:
        yield f"{indent}└── … and {more:,} more"


def _indented(folder: _Node, levels: int, indent: str = "") -> Iterator[str]:
    for node in folder.inner[:_WIDTH]:
        yield f"{indent}{node.line(is_closed=levels == 1)}"
        if levels > 1:
            yield from _indented(node, levels - 1, f"{indent}  ")
    more = len(folder.inner) - _WIDTH
    if more > 0:
        yield f"{indent}… and {more:,} more"
