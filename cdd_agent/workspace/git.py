"""What is shown of a git repository: the branch, and, by the git program, its status, its commits, its changes.

Nothing here changes the repository: no lock is taken and the index is not refreshed. And nothing that the repository
configures is run, because a project that was only downloaded brings its own `.git/config`: no pager, no hooks, no
file-system monitor, no external diff, no textconv, no signature check, no fetching of what is missing. A filter (as
git-lfs has one) cannot be switched off as a whole, so each one that is configured is given empty commands; what such a
filter would have cleaned is then shown as changed when its time stamp is.

The shell shows the branch on its first screen, so what only the questions need is imported by them.
"""

from __future__ import annotations

import re
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from cdd_agent.errors import BadInput, CddError
from cdd_agent.harmless import harmless
from cdd_agent.workspace.walk import git_folder, read_small

if TYPE_CHECKING:
    from cdd_agent.workspace.process import CommandResult
    from cdd_agent.workspace.searching import Found

_REF = "ref: refs/heads/"
_LIMIT = 100_000
"""Characters of an answer that are kept."""
_NAMES = 5_000_000
_COMMITS = 20
_SECONDS = 20.0
GIT_SETTINGS = (
    "core.fsmonitor=false",
    "core.quotePath=false",
    "core.hooksPath=/dev/null",
    "color.status=false",
    "color.ui=false",
    "diff.autoRefreshIndex=false",
    "diff.external=",
    "diff.mnemonicPrefix=false",
    "diff.noprefix=false",
    "diff.orderFile=/dev/null",
    "log.diffMerges=separate",
    "log.showRoot=true",
    "log.showSignature=false",
    "status.relativePaths=true",
    "status.submoduleSummary=false",
)
GIT_ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "",  # a clone that lacks objects does not fetch them
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
GIT_HIDDEN = ("GIT_*",)
"""The variables of a git that this program was started by, in a hook or a rebase: they mean that one's repository."""
_FILTER_OFF = ("clean=", "smudge=", "process=", "required=false")
_PATCH = (
    "--no-ext-diff",
    "--no-textconv",
    "--ignore-submodules=dirty",
    "--submodule=short",
    "--relative",
    "--no-color",
)


class GitUnusable(CddError):
    """There is no git, no repository, or git would not answer."""


def current_branch(root: Path) -> str | None:
    """The branch checked out at `root`, a short commit when HEAD is detached, or None outside a repository.

    Read from git's files: starting git for a header line costs too much.
    """
    for folder in (root, *root.parents):
        git = git_folder(folder)
        if git is not None:
            return _branch(git)
    return None


async def git_status(root: Path) -> Found:
    """The branch, and what differs from the last commit in the project, a line each, as `git status --short` has it."""
    from cdd_agent.workspace.searching import Found

    repository = await _open(root)
    arguments = ("--short", "--branch", "--untracked-files=normal", "--ignore-submodules=dirty", "--", ".")
    lines, cut = await repository.lines("status", *arguments)
    return Found((*map(harmless, lines), *(["No changes."] if len(lines) < 2 else [])), cut)


async def git_log(root: Path, path: str | None = None, limit: int = _COMMITS) -> Found:
    """The last commits, those that touched a path or all that touched the project, the newest first: a line each."""
    from cdd_agent.workspace.searching import Found

    repository = await _open(root)
    spec = _spec(root, path)
    if not await repository.commit("HEAD"):
        return Found(("No commits yet.",))
    arguments = (f"--max-count={limit + 1}", "--date=short", "--format=%h %ad %an: %s", "--encoding=UTF-8")
    lines, cut = await repository.lines("log", *arguments, "--no-color", "--", spec)
    return Found(tuple(map(harmless, lines[:limit])) or ("No commits.",), cut or len(lines) > limit)


async def git_diff(root: Path, path: str | None = None, staged: bool = False, commit: str | None = None) -> Found:
    """What changed in the project, or at a path in it: since the index, in the index, or by one commit.

    Files that hold secrets by their names are left out, and named in the note.
    """
    from cdd_agent.workspace.reading import holds_secrets
    from cdd_agent.workspace.searching import Found

    repository = await _open(root)
    if commit is not None:
        command = ["show", "--format=", "--first-parent", "-m", "--no-notes", await repository.known(commit)]
    else:
        command = ["diff", "--cached"] if staged else ["diff"]
    specs = ["--", _spec(root, path)]
    names, too_many = await repository.ask(*command, *_PATCH, "--no-renames", "--name-only", "-z", *specs, limit=_NAMES)
    if too_many:
        raise GitUnusable("Too many files have changed to show how.", hint="Ask for one folder or file.")
    secrets = [name for name in names.split("\0") if holds_secrets(PurePosixPath(name).name)]
    specs += [f":(exclude,glob){_as_glob(name)}" for name in secrets]
    lines, cut = await repository.lines(*command, *_PATCH, "--find-renames", *specs)
    note = f"not shown, by their names they hold secrets: {harmless(', '.join(secrets))}" if secrets else ""
    return Found(lines or ("No changes.",), cut, note)


@dataclass(frozen=True)
class _Repository:
    """The git program, in a project."""

    root: Path
    config: tuple[str, ...] = GIT_SETTINGS

    async def ask(self, command: str, *arguments: str, limit: int = _LIMIT) -> tuple[str, bool]:
        """What git answers, and whether there is more. Raises `GitUnusable` when it does not."""
        text, result = await self.run(command, *arguments, limit=limit)
        _check(command, result)
        return text[:limit], len(text) > limit

    async def lines(self, command: str, *arguments: str) -> tuple[tuple[str, ...], bool]:
        """The same line by line; of an answer that is cut, only whole ones."""
        text, cut = await self.ask(command, *arguments)
        *lines, last = text.split("\n")
        return (*lines, *([last] if last and not cut else [])), cut

    async def run(self, command: str, *arguments: str, limit: int = _LIMIT) -> tuple[str, CommandResult | None]:
        """What git writes, and how it ended; None when it was stopped because that was enough."""
        from cdd_agent.workspace.process import CommandResult, run_command

        pieces, length = list[str](), 0
        settings = [word for setting in self.config for word in ("-c", setting)]
        argv = ["git", "--no-pager", *settings, command, *arguments]
        output = run_command(argv, cwd=self.root, limit=_SECONDS, env=GIT_ENVIRONMENT, hide=GIT_HIDDEN)
        async with aclosing(output) as items:
            async for item in items:
                if isinstance(item, CommandResult):
                    return "".join(pieces), item
                if item.stream == "stdout":
                    pieces.append(item.text)
                    length += len(item.text)
                if length > limit:
                    break
        return "".join(pieces), None

    async def commit(self, text: str) -> str | None:
        """The full name of the commit that a text means."""
        name, result = await self.run("rev-parse", "--verify", "--quiet", f"{text}^{{commit}}")
        return name.strip() if result is not None and result.return_code == 0 else None

    async def known(self, text: str) -> str:
        if text.startswith("-") or not text.isprintable() or not (name := await self.commit(text)):
            raise BadInput(f"{text!r} is no commit of this repository")
        return name


async def _open(root: Path) -> _Repository:
    """The repository that a project is in, every filter that it configures switched off."""
    repository = _Repository(root)
    inside, result = await repository.run("rev-parse", "--is-inside-work-tree")
    if result is not None and result.started and "not a git repository" in result.stderr:
        raise GitUnusable(f"{root} is in no git repository.", hint="`git init` makes one.")
    _check("rev-parse", result)
    if inside.strip() != "true":  # `core.worktree` can be any folder
        raise GitUnusable(f"The repository at {root} is set up for the files of another folder, or for none.")
    names, result = await repository.run("config", "--null", "--name-only", "--get-regexp", r"^filter\.", limit=_NAMES)
    if result is None or result.return_code not in (0, 1):  # 1: none is configured
        raise GitUnusable("The repository's configuration could not be read.")
    *keys, _ = names.split("\0")  # each one ends with it
    drivers = {key.removeprefix("filter.").rpartition(".")[0] for key in keys}  # one may have an empty name
    unspeakable = [driver for driver in drivers if "=" in driver or "\ufffd" in driver]
    if unspeakable:
        raise GitUnusable(f"The repository configures a filter that cannot be switched off: {harmless(unspeakable[0])}")
    off = [f"filter.{driver}.{name}" for driver in sorted(drivers) for name in _FILTER_OFF]
    return _Repository(root, (*GIT_SETTINGS, *off))


def _check(command: str, result: CommandResult | None) -> None:
    """Raise `GitUnusable` for a git that did not do what it was told; None is one that was stopped in the middle."""
    if result is not None and result.return_code == 127:
        raise GitUnusable("git was not found.", hint="Install git, or see that it is on the PATH.")
    if result is not None and result.timed_out:
        raise GitUnusable(f"git {command} took longer than {_SECONDS:.0f} s.")
    if result is not None and result.return_code != 0:
        _, _, why = result.stderr.rpartition("fatal: ")
        raise GitUnusable(f"git {command} failed: {harmless(why.strip())}")


def _spec(root: Path, path: str | None) -> str:
    """A path as git must take it: literally, and the whole project where none is given."""
    from cdd_agent.workspace.reading import locate

    return "." if path is None else f":(literal){locate(root, path)}"


def _as_glob(name: str) -> str:
    """A pattern for a name that git wrote, of which some bytes may have been lost in decoding."""
    return re.sub(r"([*?\[\\])", r"\\\1", name).replace("\ufffd", "*")


def _branch(git: Path) -> str | None:
    head = read_small(git / "HEAD", 4096).strip()
    if head.startswith(_REF):
        return head.removeprefix(_REF)
    return head[:8] or None
