"""The context that a model is given of a project before it is asked: its files, where
it runs, files in full.
"""

import os
import platform
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path, PurePath
from typing import Any, Literal

from msgspec import Struct, field, to_builtins
from msgspec.structs import asdict

from cdd_agent.files.read import SourceMissing, SourceUnreadable, read_source
from cdd_agent.files.walk import Kind, WalkEntry, walk
from cdd_agent.forms import Captured, CapturedName, Checked
from cdd_agent.git.branch import current_branch
from cdd_agent.process.programs import find_program
from cdd_agent.sanitize import fenced, sanitize_for_display

_LINES = 1_000
"""Lines of the tree, about."""
_WIDTH = 200
"""Entries of one folder in the tree."""
_DEPTH = 30
_COUNTED = 100_000
"""Entries that are looked at."""
_GITIGNORE = 10_000
"""Characters of the `.gitignore` that are shown."""


class FileContext(Checked, frozen=True):
    """A requested file. `content` is None when the file does not exist or cannot be
    read.
    """

    file_path: CapturedName
    content: Captured | None
    status: Literal["found", "not_found"]
    problem: Captured = ""
    """Why it cannot be read."""


class Environment(Checked, frozen=True):
    """Where commands will run."""

    os: Captured
    python: Captured
    shell: Captured
    cwd: Captured
    git: Captured


class ContextResult(Checked, frozen=True):
    """The context of a project."""

    repo_tree: Captured
    environment_info: Environment
    gitignore_content: Captured
    """The `.gitignore` at the root; empty without one."""
    file_contexts: tuple[FileContext, ...]

    def to_json(self) -> dict[str, Any]:
        result: dict[str, Any] = to_builtins(self)
        return result

    def as_text(self) -> str:
        """All of it in Markdown, whatever the files hold."""
        environment = "\n".join(
            f"- {name}: {value}"
            for name, value in asdict(self.environment_info).items()
        )
        parts = [
            f"## Environment\n\n{environment}",
            f"## Files\n\n{fenced(self.repo_tree)}",
        ]
        if self.gitignore_content:
            parts.append(f"## .gitignore\n\n{fenced(self.gitignore_content)}")
        for file in self.file_contexts:
            without = f"({file.problem})" if file.problem else "There is no such file."
            shown = without if file.content is None else fenced(file.content)
            parts.append(f"## {file.file_path}\n\n{shown}")
        return "\n\n".join(parts) + "\n"


def project_context(root: Path, paths: Iterable[str] = ()) -> ContextResult:
    """The context of a project, with some of its files (or folders: what is in them) in
    full.

    Raises `PathRefused` when one of the paths is outside the project.
    """
    branch = current_branch(root)
    without_branch = "no repository" if find_program("git") else "not installed"
    environment = Environment(
        os=f"{platform.system()} {platform.release()} ({platform.machine()})",
        python=platform.python_version(),
        shell=PurePath(
            os.environ.get("SHELL") or os.environ.get("COMSPEC") or "unknown"
        ).name,
        cwd=sanitize_for_display(str(root.absolute())),
        git=sanitize_for_display(f"branch {branch}" if branch else without_branch),
    )
    gitignore = ""
    with suppress(SourceUnreadable):
        gitignore = read_source(root, ".gitignore", limit=_GITIGNORE).as_text()
    return ContextResult(
        repo_tree(root),
        environment,
        gitignore,
        tuple(_file(root, path) for path in paths),
    )


def _file(root: Path, text: str) -> FileContext:
    try:
        source = read_source(root, text)
    except SourceMissing:
        return FileContext(sanitize_for_display(text), None, "not_found")
    except SourceUnreadable as error:
        return FileContext(sanitize_for_display(text), None, "found", error.message)
    return FileContext(
        sanitize_for_display(str(source.path)), source.as_text(), "found"
    )


class _Node(Struct):
    """A file or folder of the tree."""

    entry: WalkEntry
    inner: list["_Node"] = field(default_factory=list)
    files: int = 0
    """How many are in it, at any depth."""

    @property
    def line(self) -> str:
        """Of most files of a large project it is never shown."""
        return self.entry.shown_name

    @property
    def count(self) -> str:
        """The same in words, where it is a folder that is not opened; empty for a
        file.
        """
        return (
            f" ({self.files:,} file{'' if self.files == 1 else 's'})"
            if self.inner
            else ""
        )


def entries(root: Path, without: Collection[str] = ()) -> list[WalkEntry]:
    """All that is in a project, as far as it is looked at; `without` some files, and
    folders with what is in them.
    """
    inside = tuple(f"{place}/" for place in without)
    found = (
        entry
        for entry in walk(root)
        if entry.text not in without and not entry.text.startswith(inside)
    )
    return list(islice(found, _COUNTED + 1))


def repo_tree(root: Path) -> str:
    """The project's files as a tree: as many of its levels as fit, with counts for what
    does not.
    """
    found = entries(root)
    top = _tree(sanitize_for_display(root.absolute().name) or ".", found[:_COUNTED])
    return (
        "\n".join([top.line, *_drawn(top, _levels(top, _LINES)), *_unseen(found)])
        + "\n"
    )


def plain_tree(found: Sequence[WalkEntry], lines: int) -> str:
    """The same in about so many lines at most, without the root and by indentation
    alone: to a model drawn lines say no more, and cost more than the names.
    """
    top = _tree("", found[:_COUNTED])
    return "\n".join((*_indented(top, _levels(top, lines)), *_unseen(found))) + "\n"


def _unseen(found: Sequence[WalkEntry]) -> list[str]:
    return (
        [f"… and more: only {_COUNTED:,} entries were looked at"]
        if len(found) > _COUNTED
        else []
    )


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


def _levels(top: _Node, most: int) -> int:
    """How many levels of the tree fit into so many lines; the first always does."""
    levels, level, lines = 0, [top], 0
    while level and levels < _DEPTH:
        level = [inner for node in level for inner in node.inner[:_WIDTH]]
        lines += len(level)
        if lines > most:
            break
        levels += 1
    return levels


def _drawn(folder: _Node, levels: int, indent: str = "") -> Iterator[str]:
    """A folder, down to a level; below that, how much there is."""
    shown, more = folder.inner[:_WIDTH], len(folder.inner) - _WIDTH
    for node in shown:
        is_last = node is shown[-1] and more <= 0
        branch = "└── " if is_last else "├── "
        yield f"{indent}{branch}{node.line}{node.count if levels == 1 else ''}"
        if levels > 1:
            yield from _drawn(
                node, levels - 1, indent + ("    " if is_last else "│   ")
            )
    if more > 0:
        yield f"{indent}└── … and {more:,} more"


def _indented(folder: _Node, levels: int, indent: str = "") -> Iterator[str]:
    """The same without lines."""
    for node in folder.inner[:_WIDTH]:
        yield f"{indent}{node.line}{node.count if levels == 1 else ''}"
        if levels > 1:
            yield from _indented(node, levels - 1, f"{indent}  ")
    if (more := len(folder.inner) - _WIDTH) > 0:
        yield f"{indent}… and {more:,} more"
