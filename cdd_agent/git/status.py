"""What is shown of a git repository: the branch, and, by the git program, its status, its commits, its changes.

Nothing here changes the repository: no lock is taken and the index is not refreshed. And nothing that the repository
configures is run, because a project that was only downloaded brings its own `.git/config`: no pager, no hooks, no
file-system monitor, no external diff, no textconv, no signature check, no fetching of what is missing. A filter (as
git-lfs has one) cannot be switched off as a whole, so each one that is configured is given empty commands; what such a
filter would have cleaned is then shown as changed when its time stamp is.

The shell shows the branch on its first screen, so what only the questions need is imported by them.
"""

import re
from dataclasses import replace
from pathlib import Path, PurePosixPath

from cdd_agent.errors import BadInput
from cdd_agent.files.found import Found
from cdd_agent.files.walk import git_folder, read_small
from cdd_agent.git.command import CONFIG, Git, GitUnusable, NoRepository, refusal
from cdd_agent.sanitize import sanitize_for_display

_REF = "ref: refs/heads/"
_LIMIT = 100_000
"""Characters of an answer that are kept."""
_NAMES = 5_000_000
_COMMITS = 20
_SECONDS = 20.0
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
    git = await _git(root)
    arguments = ("--short", "--branch", "--untracked-files=normal", "--ignore-submodules=dirty", "--", ".")
    lines, cut = await _lines(git, "status", *arguments)
    return Found((*map(sanitize_for_display, lines), *(["No changes."] if len(lines) < 2 else [])), cut)


async def git_log(root: Path, path: str | None = None, limit: int = _COMMITS) -> Found:
    """The last commits, those that touched a path or all that touched the project, the newest first: a line each."""
    git = await _git(root)
    spec = _spec(root, path)
    if not await _commit(git, "HEAD"):
        return Found(("No commits yet.",))
    arguments = (f"--max-count={limit + 1}", "--date=short", "--format=%h %ad %an: %s", "--encoding=UTF-8")
    lines, cut = await _lines(git, "log", *arguments, "--no-color", "--", spec)
    return Found(tuple(map(sanitize_for_display, lines[:limit])) or ("No commits.",), cut or len(lines) > limit)


async def git_diff(root: Path, path: str | None = None, staged: bool = False, commit: str | None = None) -> Found:
    """What changed in the project, or at a path in it: since the index, in the index, or by one commit.

    Files that hold secrets by their names are left out, and named in the note.
    """
    from cdd_agent.files.read import holds_secrets

    git = await _git(root)
    if commit is not None:
        command = ["show", "--format=", "--first-parent", "-m", "--no-notes", await _known_commit(git, commit)]
    else:
        command = ["diff", "--cached"] if staged else ["diff"]
    specs = ["--", _spec(root, path)]
    names = await git(*command, *_PATCH, "--no-renames", "--name-only", "-z", *specs, most=_NAMES)
    if names.cut:
        raise GitUnusable("Too many files have changed to show how.", hint="Ask for one folder or file.")
    secrets = [name for name in names.stdout.split("\0") if holds_secrets(PurePosixPath(name).name)]
    specs += [f":(exclude,glob){_as_glob(name)}" for name in secrets]
    lines, cut = await _lines(git, *command, *_PATCH, "--find-renames", *specs)
    note = f"not shown, by their names they hold secrets: {sanitize_for_display(', '.join(secrets))}" if secrets else ""
    return Found(lines or ("No changes.",), cut, note)


async def _lines(git: Git, *words: str) -> tuple[tuple[str, ...], bool]:
    """What git answers line by line, and whether there is more; of an answer that is cut, only whole lines."""
    answer = await git(*words, most=_LIMIT)
    *lines, last = answer.stdout.split("\n")
    return (*lines, *([last] if last and not answer.cut else [])), answer.cut


async def _commit(git: Git, text: str) -> str | None:
    """The full name of the commit that a text means."""
    answer = await git.run("rev-parse", "--verify", "--quiet", f"{text}^{{commit}}", most=_LIMIT)
    return answer.stdout.strip() if answer.return_code == 0 else None


async def _known_commit(git: Git, text: str) -> str:
    if text.startswith("-") or not text.isprintable() or not (name := await _commit(git, text)):
        raise BadInput(f"{text!r} is no commit of this repository")
    return name


async def _git(root: Path) -> Git:
    """The git program in a project, every filter that the repository configures switched off."""
    git = Git(root, config=_CONFIG, seconds=_SECONDS)
    inside = await git.run("rev-parse", "--is-inside-work-tree", most=_LIMIT)
    if inside.started and "not a git repository" in inside.stderr:
        raise NoRepository(root)
    if inside.return_code or inside.timed_out:
        raise refusal("rev-parse", inside)
    if inside.stdout.strip() != "true":  # `core.worktree` can be any folder
        raise GitUnusable(f"The repository at {root} is set up for the files of another folder, or for none.")
    names = await git.run("config", "--null", "--name-only", "--get-regexp", r"^filter\.", most=_NAMES)
    if names.cut or names.return_code not in (0, 1):  # 1: none is configured
        raise GitUnusable("The repository's configuration could not be read.")
    *keys, _ = names.stdout.split("\0")  # each one ends with it
    drivers = {key.removeprefix("filter.").rpartition(".")[0] for key in keys}  # one may have an empty name
    unspeakable = [driver for driver in drivers if "=" in driver or "\ufffd" in driver]
    if unspeakable:
        raise GitUnusable(
            f"The repository configures a filter that cannot be switched off: {sanitize_for_display(unspeakable[0])}"
        )
    off = [f"filter.{driver}.{name}" for driver in sorted(drivers) for name in _FILTER_OFF]
    return replace(git, config=(*_CONFIG, *off))


def _spec(root: Path, path: str | None) -> str:
    """A path as git must take it: literally, and the whole project where none is given."""
    from cdd_agent.files.read import locate

    return "." if path is None else f":(literal){locate(root, path)}"


def _as_glob(name: str) -> str:
    """A pattern for a name that git wrote, of which some bytes may have been lost in decoding."""
    return re.sub(r"([*?\[\\])", r"\\\1", name).replace("\ufffd", "*")


def _branch(git: Path) -> str | None:
    head = read_small(git / "HEAD", 4096).strip()
    if head.startswith(_REF):
        return head.removeprefix(_REF)
    return head[:8] or None
