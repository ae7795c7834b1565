"""Git for commits in the user's name: their settings, filters, signature; no hooks."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Self

from msgspec import Struct

from cdd_agent.errors import CddError
from cdd_agent.git.command import CONFIG, HIDDEN, Git
from cdd_agent.git.diff import Change, read_raw
from cdd_agent.pattern import Pattern
from cdd_agent.process.run import CommandResult
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.text.sanitize import sanitize_for_display

SECONDS = 120.0
"""Limit of one git command. A filter may upload files, and the user may have to type a
passphrase.
"""
_MOST_QUOTED = 600
"""Characters of git's message to show."""
_IDENTITY = (
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
)
"""Git variables to pass on: the identity and the places of the settings."""
_HIDDEN = (*HIDDEN, "GPG_TTY")
"""The shell uses the terminal, so no program may ask for a passphrase there."""
_IN_PROGRESS = {
    "MERGE_HEAD": "A merge",
    "rebase-merge": "A rebase",
    "rebase-apply": "A rebase or `git am`",
    "CHERRY_PICK_HEAD": "A cherry-pick",
    "REVERT_HEAD": "A revert",
    "sequencer": "A cherry-pick or revert",
    "BISECT_LOG": "A bisect",
}
"""Entries of git's folder that exist during an operation."""
_RAW = ("--raw", "--no-abbrev", "--no-renames", "--ignore-submodules=none", "-z")
OR_OFF = "Or set `commit: off`."
_NAME_HINT = (
    'In the project: `git config user.name "Your Name"` and `git config user.email'
    " you@example.org`. With --global they are set for all projects."
)
_LOCKED = Pattern(r"Unable to create '(.+\.lock)': File exists")
_NO_NAME = Pattern(
    r"Please tell me who you are|empty ident|unable to auto-detect|no (email|name) was"
    r" given"
)


class CommitRefused(CddError):
    """No commit was made: branch and files are unchanged."""

    refusal = Refusal.NOT_COMMITTED


class CommitFailed(CommitRefused):
    """Git or the disk failed. A later attempt may succeed."""

    refusal = Refusal.COMMIT_FAILED


class CommitGit(Struct, frozen=True):
    """Git at the top of a working tree. Paths are relative to it."""

    top: Path
    prefix: str
    """The project's folder relative to `top`, ending with a slash, or empty."""
    folder: Path
    """The repository's `.git` folder; in a linked worktree, the private one."""
    scratch: Path
    """A private folder for git's input and for a private index."""

    @classmethod
    async def open(cls, root: Path, scratch: Path) -> Self:
        """Open the repository around a folder. Raises `CommitRefused`."""
        repository = cls(root, "", root, scratch)
        what = ("--is-bare-repository", "--is-inside-work-tree", "--show-prefix")
        result = await repository.run("rev-parse", *what)
        if result.started and "not a git repository" in result.stderr:
            raise CommitRefused(
                f"{root} is not in a git repository.",
                hint=f"Create one with `git init`. {OR_OFF}",
            )
        check_result("rev-parse", result)
        bare, inside, prefix = result.stdout.removesuffix("\n").split("\n", 2)
        if inside != "true":  # `core.worktree` can be any folder
            why = "has its work tree in another folder"
            if bare == "true":
                why = "is bare"
            raise CommitRefused(
                f"The repository at {root} {why}: nothing can be committed from here.",
                hint=OR_OFF,
            )
        places = await repository.ask(
            "rev-parse", "--show-toplevel", "--absolute-git-dir"
        )
        top, folder, *more = places.split("\n")
        if "\ufffd" in places + prefix or more != [""]:
            raise CommitRefused(
                f"The name of the folder {root} is not UTF-8, or has a line break.",
                hint=f"Rename it. {OR_OFF}",
            )
        return cls(Path(top), prefix, Path(folder), scratch)

    def expect_at_rest(self) -> None:
        """Raise `CommitRefused` during a merge or a similar operation, which would
        absorb the commit.
        """
        for name, what in _IN_PROGRESS.items():
            if os.path.lexists(self.folder / name):
                raise CommitRefused(
                    f"{what} is in progress.",
                    hint="Finish it, or abort it, and try again.",
                )

    async def expect_identity(self) -> None:
        for who in ("GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"):
            await self.ask("var", who)

    async def head(self) -> str | None:
        """Return the commit that is checked out; None on a branch without commits."""
        return await self.find_commit("HEAD")

    async def find_commit(self, name: str) -> str | None:
        commit_name = f"{name}^{{commit}}"
        result = await self.run("rev-parse", "--verify", "--quiet", commit_name)
        return result.stdout.strip() if result.return_code == 0 else None

    async def ask(
        self, *words: str, given: Iterable[str] = (), index: Path | None = None
    ) -> str:
        """Return git's output. Raises `CommitFailed`."""
        result = await self.run(*words, given=given, index=index)
        check_result(words[0], result)
        return result.stdout

    async def run(
        self, *words: str, given: Iterable[str] = (), index: Path | None = None
    ) -> CommandResult:
        """Run git, with any exit code. Its input is the items of `given`, each ended by
        a NUL. `index` replaces the user's.
        """
        config = [*CONFIG, "i18n.commitEncoding=UTF-8"]
        env = {name: os.environ[name] for name in _IDENTITY if name in os.environ}
        if index:
            config.append("core.splitIndex=false")
            env["GIT_INDEX_FILE"] = str(index)
        stdin = self.scratch / "stdin"
        stdin.write_bytes("".join(f"{item}\0" for item in given).encode())
        git = Git(self.top, env, tuple(config), _HIDDEN, SECONDS)
        return await git.run(*words, stdin=stdin)

    async def differences(self, tree: str, index: Path | None = None) -> list[Change]:
        """Return the differences between a tree and an index. An entry added with
        `--intent-to-add` is an empty file.
        """
        words = ("diff-index", "--cached", "--ita-visible-in-index", *_RAW, tree, "--")
        return list(read_raw(await self.ask(*words, index=index)))

    async def tree_differences(self, before: str, after: str) -> list[Change]:
        return list(read_raw(await self.ask("diff-tree", "-r", *_RAW, before, after)))

    async def write_index(
        self, changes: Sequence[Change], index: Path | None = None
    ) -> None:
        """Set the entries of these paths to the content after the changes, deletions
        first. Git's lock ensures that all or none are written.
        """
        entries = []
        for change in sorted(changes, key=lambda change: change.after is not None):
            if change.after is not None:
                entry = change.after
                entries.append(f"{entry.mode} {entry.content}\t{change.path}")
            elif change.before is not None:
                entries.append(f"0 {change.before.content}\t{change.path}")
        if entries:
            await self.ask(
                "update-index", "-z", "--index-info", given=entries, index=index
            )


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    try:
        with tempfile.TemporaryDirectory(
            prefix="cdd-commit-", ignore_cleanup_errors=True
        ) as folder:
            yield Path(folder).resolve()
    except OSError as error:
        raise CommitFailed(
            f"The commit could not be prepared: {error.strerror or error}"
        ) from error


def check_result(command: str, result: CommandResult) -> None:
    """Raise `CommitFailed` with a hint if git failed."""
    if result.return_code == 0:
        return
    if result.return_code == 127:
        raise CommitFailed(
            "git was not found.",
            hint=f"Install git, or add it to the PATH. {OR_OFF}",
        )
    if result.timed_out:
        raise CommitFailed(f"git {command} took longer than {SECONDS:.0f} s.")
    if locked := _LOCKED.search(result.stderr):
        hint = (
            "Wait for the other git process. If none is running, remove"
            f" {sanitize_for_display(locked[1])}"
        )
        raise CommitFailed("The repository is locked.", hint=hint)
    if lacks_name(result):
        raise CommitFailed("git does not know who you are.", hint=_NAME_HINT)
    raise CommitFailed(f"git {command} failed: {quote_error(result)}")


def lacks_name(result: CommandResult) -> bool:
    """True if git failed because it does not know who commits."""
    return bool(_NO_NAME.search(result.stderr))


def quote_error(result: CommandResult) -> str:
    lines = (line.strip() for line in result.stderr.splitlines())
    return sanitize_for_display("; ".join(filter(None, lines)))[:_MOST_QUOTED]
