"""Finds shell commands in a reply that would change project files.

They are not run, so their changes would be lost. Other commands (install, test, commit)
are explanation.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from msgspec import Struct
from tree_sitter import Node

from cdd_agent.changes.formats.fences import Fence
from cdd_agent.changes.formats.file_names import SHELLS, is_absolute
from cdd_agent.changes.formats.project_names import ProjectNames
from cdd_agent.context.grammars import grammar_of
from cdd_agent.files.hidden_from_models import is_secret_path
from cdd_agent.files.ignore_lists import is_ignored
from cdd_agent.pattern import Pattern

_LANGUAGES = SHELLS | {
    *("console", "shell-session", "shellsession", "sh-session", "terminal"),
    *("powershell", "ps1", "pwsh", "bat", "batch", "cmd", "fish"),
}
_PROMPT = Pattern(r"^[ \t]*(?:\$|PS[^>\n]*>|[\w.@~:/-]+\$)[ \t]+")
_BEFORE_COMMANDS = {"sudo", "command", "time", "nohup", "env"}
_OPTION = Pattern(r"[-+].")
_DYNAMIC = Pattern(r"[$`<>{}]")
"""Signs in a file name that the shell replaces."""
_PATH_OPTIONS = {"-path", "-literalpath", "-filepath"}
"""PowerShell options that precede a file."""
_PLACEHOLDER = Pattern(r"(?<![<&])<[A-Za-z][\w-]*(?: [\w-]+)*>")
"""As in `git revert <commit>`."""
_ASSIGNMENT = Pattern(r"\w+=")
_PATCHED = Pattern(r"^(?:---|\+\+\+) (?:[ab]/)?(\S+)", re.MULTILINE)
_MANY = "several files"
_GLOB = Pattern(r"[*?\[]")


class _Writer(Struct, frozen=True):
    only_last: bool = False
    """True if only the last file changes."""
    edits: str = ""
    """It edits files only with an option that matches this."""
    skipped: int = 0
    """Number of arguments before the files."""
    makes: bool = False
    """True if it creates files."""


_WRITERS = {
    name: writer
    for names, writer in (
        ("rm unlink shred truncate del erase git-rm git-restore", _Writer()),
        ("mv move ren git-mv", _Writer()),
        ("remove-item ri move-item mi rename-item rni", _Writer()),
        ("tee touch git-apply patch", _Writer(makes=True)),
        ("set-content add-content out-file new-item ni", _Writer(makes=True)),
        ("cp copy install copy-item", _Writer(only_last=True, makes=True)),
        ("sed gsed", _Writer(edits=r"-[a-zA-Z]*i|--in-place", skipped=1)),
        ("awk gawk", _Writer(edits="inplace$", skipped=2)),
        ("perl ruby", _Writer(edits=r"-[a-zA-Z0]*i")),
    )
    for name in names.split()
}
_NO_FILES = {"--cached", "--staged", "-itemtype directory"}
"""Options with which a command leaves files alone."""
_OF_CONTENT = {"cat", "echo", "printf", "tee", "write-output"}
"""If their output is redirected, it is a file's content."""


class ShellChange(Struct, frozen=True):
    path: str
    is_edit: bool = False
    """True if the file is changed in place."""


def shell_changes(fence: Fence, project_names: ProjectNames) -> list[ShellChange]:
    """Return the changes in the project that a code block of shell commands would make;
    none for other languages.
    """
    if fence.path is not None or fence.language not in _LANGUAGES | {""}:
        return []
    lines = fence.content.split("\n")
    prompts = {place for place, line in enumerate(lines) if _PROMPT.match(line)}
    if not fence.language and not prompts:
        return []
    code = "\n".join(_PROMPT.sub("", line) for line in lines)
    commands = _ShellCommands(project_names)
    changes: list[ShellChange] = []
    for node in _statements(_PLACEHOLDER.sub("$X", code)):
        # among lines with prompts, one without is output
        if not prompts or node.start_point.row in prompts:
            changes += commands.changes_of(node)
    return changes


def _statements(code: str) -> Iterator[Node]:
    grammar = grammar_of("sh")
    tree = grammar.parse(code.encode()) if grammar else None
    stack = [tree.root_node] if tree else []
    while stack:
        node = stack.pop()
        if node.type in ("command", "redirected_statement"):
            yield node
        stack += reversed(node.named_children)


def _text(node: Node) -> str:
    text = (node.text or b"").decode(errors="replace")
    return re.sub(r"(?s)\A(['\"])(.*)\1\Z", r"\2", text)


class _ShellCommands:
    """Commands in sequence, following `cd`."""

    def __init__(self, project_names: ProjectNames) -> None:
        self._project_names = project_names
        self._folder = PurePosixPath()

    def changes_of(self, node: Node) -> Iterator[ShellChange]:
        if node.type == "redirected_statement":
            yield from self._redirected(node)
            return
        words = _words(node)
        if not words:
            return
        if words[0] in ("cd", "pushd") and len(words) > 1:
            self._enter(words[1])
        if words[0] in SHELLS and "-c" in words[:-1]:
            for inner in _statements(words[words.index("-c") + 1]):
                yield from self.changes_of(inner)
        if words[0] not in ("find", "xargs"):
            yield from self._written(*_as_git_command(words))
        elif _edits_many(words[1:]):
            yield ShellChange(_MANY, is_edit=True)

    def _written(self, program: str, *arguments: str) -> Iterator[ShellChange]:
        name = program.lower()
        writer = _WRITERS.get(name)
        if writer is None:
            return
        for path in _files_of(name, writer, arguments):
            place = self._place(path, is_made=writer.makes)
            if place and not (name == "touch" and self._project_names.is_file(place)):
                yield ShellChange(place, bool(writer.edits))

    def _enter(self, folder: str) -> None:
        entered = self._folder / folder
        if self._project_names.is_folder(str(entered)):
            self._folder = entered

    def _redirected(self, node: Node) -> Iterator[ShellChange]:
        """Yield the targets of redirections. Program output counts only for an existing
        or requested file.
        """
        body = node.child_by_field_name("body")
        words = _words(body) if body is not None and body.type == "command" else []
        has_text = body is None or any(word in _OF_CONTENT for word in words[:1])
        has_text |= any(child.type == "heredoc_redirect" for child in node.children)
        if " ".join(words[:2]) == "git apply" or words[:1] == ["patch"]:
            yield from self._patched(_text(node))
        for redirect in _redirects(node):
            target = redirect.child_by_field_name("destination")
            signs = {child.type for child in redirect.children}
            if target is None or not signs & {">", ">>", "&>", "&>>", ">|"}:
                continue
            if place := self._place(_text(target), is_made=has_text):
                yield ShellChange(place)

    def _patched(self, patch: str) -> Iterator[ShellChange]:
        for path in _PATCHED.findall(patch):
            if place := self._place(path, is_made=True):
                yield ShellChange(place, is_edit=True)

    def _place(self, path: str, *, is_made: bool) -> str:
        """Return the path from the root; empty if it is not the project's. With
        `is_made`, the file may be new.
        """
        name, root = self._path_from_root(path), self._project_names.root
        if not name or name in self._project_names.listed:
            return name
        if root is None:
            return name if is_made else ""
        # secrets are made by the user
        if is_secret_path(name) or name.partition("/")[0] == ".git":
            return ""
        for each in _expand_glob(root, name):
            exists = self._project_names.is_file(each) or self._project_names.is_folder(
                each
            )
            if (exists or is_made) and not is_ignored(root, PurePosixPath(each)):
                return each
        return ""

    def _path_from_root(self, path: str) -> str:
        """Return the path from the root; empty if it is outside, or only the shell can
        expand it.
        """
        if is_absolute(path) or not re.match(r"[\w.*?\[]", path):
            return ""
        place = self._folder / path
        if _DYNAMIC.search(path) or ".." in place.parts or not place.parts:
            return ""
        return str(place)


def _as_git_command(words: list[str]) -> list[str]:
    """Join the words of a git command: `git-restore`."""
    if words[0] == "git" and len(words) > 1:
        words = [f"git-{words[1]}", *words[2:]]
    if words[0] == "git-checkout" and "--" in words:
        words = ["git-restore", *words[words.index("--") :]]
    return words


def _redirects(node: Node) -> Iterator[Node]:
    for child in node.children:
        if child.type == "file_redirect":
            yield child
        elif child.type == "heredoc_redirect":
            yield from _redirects(child)


def _words(command: Node) -> list[str]:
    words = []
    for child in command.named_children:
        if child.type != "variable_assignment" and "redirect" not in child.type:
            words.append(_text(child))
    while words and (words[0] in _BEFORE_COMMANDS or _ASSIGNMENT.match(words[0])):
        words = words[1:]
    if words:  # `/bin/rm`, and `\rm`, which skips aliases
        words[0] = PurePosixPath(words[0].removeprefix("\\")).name
    return words


def _edits_many(arguments: Sequence[str]) -> bool:
    """True if `find` or `xargs` runs an editing command."""
    for place, word in enumerate(arguments):
        writer = _WRITERS.get(word)
        if writer is not None and writer.edits:
            return any(re.match(writer.edits, each) for each in arguments[place + 1 :])
    return False


def _files_of(name: str, writer: _Writer, arguments: Sequence[str]) -> list[str]:
    line = " ".join(arguments).lower()
    if any(option in line for option in _NO_FILES):
        return []
    if writer.edits and not any(re.match(writer.edits, word) for word in arguments):
        return []
    if "-" in name and not name.startswith("git-"):
        named = [
            place
            for place, word in enumerate(arguments)
            if word.lower() in _PATH_OPTIONS
        ]
        if named:
            return list(arguments[named[0] + 1 : named[0] + 2])
        return [word for word in arguments if not _OPTION.match(word)][:1]
    files = [word for word in arguments if word and not _OPTION.match(word)]
    files = files[writer.skipped :]
    return files[-1:] if writer.only_last else files


def _expand_glob(root: Path, name: str) -> Iterator[str]:
    if not _GLOB.search(name):
        yield name
        return
    try:
        for place in root.glob(name):
            yield place.relative_to(root).as_posix()
    except (OSError, ValueError, NotImplementedError):
        return
