"""Views of a repository through GitPython's commands: status, commits, changes.

Nothing here changes the repository: no lock is taken, and the index is not refreshed. A
downloaded project brings its own `.git/config`, so nothing that it configures may run:
no pager, hooks, file-system monitor, external diff, textconv, signature check, or
fetching of missing objects. Filters such as git-lfs cannot be disabled as a whole, so
each one gets empty commands. A file that such a filter would clean counts as changed
when its time stamp changes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from cdd_agent.errors import BadInput
from cdd_agent.files.hidden_from_models import HiddenFiles, secret_in
from cdd_agent.files.line_list import LineList
from cdd_agent.files.read import locate
from cdd_agent.git.command import CONFIG, GitUnusable, NoRepository, refusal
from cdd_agent.process.run import CommandResult
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.text.sanitize import sanitize_for_display

if TYPE_CHECKING:
    from cdd_agent.git.look import LookingGit

_LIMIT = 100_000
"""Maximum characters of an answer."""
_COMMITS = 20
_CONFIG = (
    *CONFIG,
    "color.status=false",
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
_FILTER_OFF = ("clean=", "smudge=", "process=", "required=false")
_PATCH = (
    "--no-ext-diff",
    "--no-textconv",
    "--ignore-submodules=dirty",
    "--submodule=short",
    "--relative",
    "--no-color",
)


async def git_status(root: Path) -> LineList:
    """Return the branch and the project's differences from the last commit, one a line,
    like `git status --short`.
    """
    git = await _git(root)
    arguments = (
        "--short",
        "--branch",
        "--untracked-files=normal",
        "--ignore-submodules=dirty",
        "--",
        ".",
    )
    lines, cut = _lines(await git.status(*arguments))
    shown = list(map(sanitize_for_display, lines))
    if len(lines) < 2:
        shown.append("No changes.")
    return LineList(tuple(shown), cut)


async def git_log(
    root: Path, path: str | None = None, limit: int = _COMMITS
) -> LineList:
    """Return the last commits that touched a path or the project, newest first, one a
    line.
    """
    git = await _git(root)
    spec = _spec(root, path)
    if not await _commit(git, "HEAD"):
        return LineList(("No commits yet.",))
    how = ("--date=short", "--format=%h %ad %an: %s", "--encoding=UTF-8", "--no-color")
    lines, cut = _lines(await git.log(f"--max-count={limit + 1}", *how, "--", spec))
    return LineList(
        tuple(map(sanitize_for_display, lines[:limit])) or ("No commits.",),
        cut or len(lines) > limit,
    )


async def git_diff(
    root: Path, path: str | None = None, staged: bool = False, commit: str | None = None
) -> LineList:
    """Return changes in the project or at a path: since the index, in the index, or of
    one commit. Leaves out files that are hidden from models, and names them in the
    note.
    """
    git = await _git(root)
    run, which = git.diff, ["--cached"] if staged else []
    if commit is not None:
        name = ""
        if commit.isprintable() and not commit.startswith("-"):
            name = await _commit(git, commit)
        if not name:
            raise BadInput(
                f"{commit!r} is not a commit of this repository",
                refusal=Refusal.GIT_UNUSABLE,
            )
        run, which = git.show, ["--format=", "--first-parent", "-m", "--no-notes", name]
    specs = ["--", _spec(root, path)]
    names = await run(*which, *_PATCH, "--no-renames", "--name-only", "-z", *specs)
    if names.cut:
        raise GitUnusable(
            "Too many files have changed to show their differences.",
            hint="Name one folder or file.",
        )
    files = HiddenFiles(root)
    hidden: dict[str, str] = {}
    for name in filter(None, names.stdout.split("\0")):
        why = files.why_by_name(name)
        if why:
            hidden[name] = why
    # decoding may have lost some bytes of a name
    globs = [
        re.sub(r"([*?\[\\])", r"\\\1", name).replace("\ufffd", "*") for name in hidden
    ]
    specs += [f":(exclude,glob){glob}" for glob in globs]
    lines, cut = _lines(await run(*which, *_PATCH, "--find-renames", *specs))
    lines = _without_keys(lines)
    return LineList(lines or ("No changes.",), cut, _note_of_hidden(hidden))


def _note_of_hidden(hidden: Mapping[str, str]) -> str:
    by_reason: dict[str, list[str]] = {}
    for name, why in hidden.items():
        by_reason.setdefault(why, []).append(name)
    notes = [
        f"not shown ({why}): {', '.join(names)}" for why, names in by_reason.items()
    ]
    return sanitize_for_display("; ".join(notes))


def _without_keys(lines: tuple[str, ...]) -> tuple[str, ...]:
    files: list[list[str]] = [[]]
    for line in lines:
        if line.startswith("diff --git "):
            files.append([])
        files[-1].append(line)
    shown: list[str] = []
    for file in files:
        head = file[0] if file else ""
        why = secret_in(head, "\n".join(file).encode())
        if why:
            shown += [head, f"(not shown: {why})"]
        else:
            shown += file
    return tuple(shown)


def _lines(answer: CommandResult) -> tuple[tuple[str, ...], bool]:
    """Return the lines of git's answer, and whether it is truncated. Only whole lines
    count.
    """
    cut = answer.cut or len(answer.stdout) > _LIMIT
    lines = answer.stdout[:_LIMIT].split("\n")
    last = lines.pop()
    if last and not cut:
        lines.append(last)
    return tuple(lines), cut


async def _commit(git: LookingGit, text: str) -> str:
    """Return the full name of a commit, or an empty text."""
    answer = await git.rev_parse(
        "--verify", "--quiet", f"{text}^{{commit}}", with_exceptions=False
    )
    return "" if answer.return_code else answer.stdout.strip()


async def _git(root: Path) -> LookingGit:
    """Return a git that runs nothing that the repository configures, with all filters
    disabled.
    """
    # late: GitPython takes 65 ms to import
    from cdd_agent.git.look import LookingGit  # noqa: PLC0415

    git = LookingGit(root, _CONFIG)
    inside = await git.rev_parse("--is-inside-work-tree", with_exceptions=False)
    if inside.started and "not a git repository" in inside.stderr:
        raise NoRepository(root)
    if inside.return_code or inside.timed_out:
        raise refusal("rev-parse", inside)
    if inside.stdout.strip() != "true":  # `core.worktree` can be any folder
        raise GitUnusable(
            f"The repository at {root} is bare or has its work tree in another folder."
        )
    names = await git.config(
        "--null", "--name-only", "--get-regexp", r"^filter\.", with_exceptions=False
    )
    if names.cut or names.return_code not in (0, 1):  # 1: none is configured
        raise GitUnusable("The repository's configuration could not be read.")
    *keys, _ = names.stdout.split("\0")  # a NUL ends each key
    # a driver may have an empty name
    drivers = {key.removeprefix("filter.").rpartition(".")[0] for key in keys}
    unspeakable = [driver for driver in drivers if "=" in driver or "\ufffd" in driver]
    if unspeakable:
        raise GitUnusable(
            "The repository configures a filter that cannot be switched off:"
            f" {sanitize_for_display(unspeakable[0])}"
        )
    filters = [
        f"filter.{one}.{name}" for one in sorted(drivers) for name in _FILTER_OFF
    ]
    return LookingGit(root, (*_CONFIG, *filters))


def _spec(root: Path, path: str | None) -> str:
    return "." if path is None else f":(literal){locate(root, path)}"
