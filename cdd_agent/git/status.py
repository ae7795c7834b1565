"""A git repository as it is shown, by GitPython's commands: its status, its commits,
its changes.

Nothing here changes the repository: no lock is taken and the index is not refreshed.
And nothing that the repository configures is run, because a project that was only
downloaded brings its own `.git/config`: no pager, no hooks, no file-system monitor, no
external diff, no textconv, no signature check, no fetching of what is missing. A filter
(as git-lfs has one) cannot be switched off as a whole, so each one that is configured
is given empty commands; what such a filter would have cleaned is then shown as changed
when its time stamp is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from cdd_agent.errors import BadInput
from cdd_agent.files.found import Found
from cdd_agent.files.hidden_from_models import HiddenFiles, secret_in
from cdd_agent.files.read import locate
from cdd_agent.git.command import CONFIG, GitUnusable, NoRepository, refusal
from cdd_agent.process.run import CommandResult
from cdd_agent.sanitize import sanitize_for_display

if TYPE_CHECKING:
    from cdd_agent.git.look import LookingGit

_LIMIT = 100_000
"""Characters of an answer that are shown."""
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


async def git_status(root: Path) -> Found:
    """The branch, and what differs from the last commit in the project, a line each, as
    `git status --short` has it.
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
    return Found(
        (
            *map(sanitize_for_display, lines),
            *(["No changes."] if len(lines) < 2 else []),
        ),
        cut,
    )


async def git_log(root: Path, path: str | None = None, limit: int = _COMMITS) -> Found:
    """The last commits, those that touched a path or all that touched the project, the
    newest first: a line each.
    """
    git = await _git(root)
    spec = _spec(root, path)
    if not await _commit(git, "HEAD"):
        return Found(("No commits yet.",))
    how = ("--date=short", "--format=%h %ad %an: %s", "--encoding=UTF-8", "--no-color")
    lines, cut = _lines(await git.log(f"--max-count={limit + 1}", *how, "--", spec))
    return Found(
        tuple(map(sanitize_for_display, lines[:limit])) or ("No commits.",),
        cut or len(lines) > limit,
    )


async def git_diff(
    root: Path, path: str | None = None, staged: bool = False, commit: str | None = None
) -> Found:
    """The changes in the project, or at a path in it: since the index, in the index, or
    by one commit.

    Files that are hidden from models are left out, and named in the note.
    """
    git = await _git(root)
    ask, which = git.diff, ["--cached"] if staged else []
    if commit is not None:
        if (
            commit.startswith("-")
            or not commit.isprintable()
            or not (name := await _commit(git, commit))
        ):
            raise BadInput(f"{commit!r} is no commit of this repository")
        ask, which = git.show, ["--format=", "--first-parent", "-m", "--no-notes", name]
    specs = ["--", _spec(root, path)]
    names = await ask(*which, *_PATCH, "--no-renames", "--name-only", "-z", *specs)
    if names.cut:
        raise GitUnusable(
            "Too many files have changed to show how.",
            hint="Ask for one folder or file.",
        )
    files = HiddenFiles(root)
    hidden = {
        name: why
        for name in names.stdout.split("\0")
        if name and (why := files.why_by_name(name))
    }
    # Some bytes of a name may have been lost in decoding.
    globs = [
        re.sub(r"([*?\[\\])", r"\\\1", name).replace("\ufffd", "*") for name in hidden
    ]
    specs += [f":(exclude,glob){glob}" for glob in globs]
    lines, cut = _lines(await ask(*which, *_PATCH, "--find-renames", *specs))
    lines = _without_keys(lines)
    return Found(lines or ("No changes.",), cut, _note_of_hidden(hidden))


def _note_of_hidden(hidden: Mapping[str, str]) -> str:
    """Return the files by the reasons why they are hidden."""
    by_reason: dict[str, list[str]] = {}
    for name, why in hidden.items():
        by_reason.setdefault(why, []).append(name)
    notes = [
        f"not shown ({why}): {', '.join(names)}" for why, names in by_reason.items()
    ]
    return sanitize_for_display("; ".join(notes))


def _without_keys(lines: tuple[str, ...]) -> tuple[str, ...]:
    """Return a diff without the changes of files whose content is secret."""
    files: list[list[str]] = [[]]
    for line in lines:
        if line.startswith("diff --git "):
            files.append([])
        files[-1].append(line)
    shown: list[str] = []
    for file in files:
        head = file[0] if file else ""
        if why := secret_in(head, "\n".join(file).encode()):
            shown += [head, f"(not shown: {why})"]
        else:
            shown += file
    return tuple(shown)


def _lines(answer: CommandResult) -> tuple[tuple[str, ...], bool]:
    """An answer of git line by line, and whether there is more; of an answer that is
    cut, only whole lines.
    """
    cut = answer.cut or len(answer.stdout) > _LIMIT
    *lines, last = answer.stdout[:_LIMIT].split("\n")
    return (*lines, *([last] if last and not cut else [])), cut


async def _commit(git: LookingGit, text: str) -> str:
    """The full name of the commit that a text means; empty where it means none."""
    answer = await git.rev_parse(
        "--verify", "--quiet", f"{text}^{{commit}}", with_exceptions=False
    )
    return "" if answer.return_code else answer.stdout.strip()


async def _git(root: Path) -> LookingGit:
    """Git in a project, with nothing that the repository configures, and every filter
    switched off.
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
            f"The repository at {root} is set up for the files of another folder, or"
            " for none."
        )
    names = await git.config(
        "--null", "--name-only", "--get-regexp", r"^filter\.", with_exceptions=False
    )
    if names.cut or names.return_code not in (0, 1):  # 1: none is configured
        raise GitUnusable("The repository's configuration could not be read.")
    *keys, _ = names.stdout.split("\0")  # each one ends with it
    # one may have an empty name
    drivers = {key.removeprefix("filter.").rpartition(".")[0] for key in keys}
    unspeakable = [driver for driver in drivers if "=" in driver or "\ufffd" in driver]
    if unspeakable:
        raise GitUnusable(
            "The repository configures a filter that cannot be switched off:"
            f" {sanitize_for_display(unspeakable[0])}"
        )
    return LookingGit(
        root,
        (
            *_CONFIG,
            *(
                f"filter.{driver}.{name}"
                for driver in sorted(drivers)
                for name in _FILTER_OFF
            ),
        ),
    )


def _spec(root: Path, path: str | None) -> str:
    """A path as git must take it: literally, and the whole project where none is
    given.
    """
    return "." if path is None else f":(literal){locate(root, path)}"
