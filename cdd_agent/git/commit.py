"""Commits on the user's own branch: of the files that are named, and of nothing else.

A commit is put together in an index of its own, in a private temporary folder. Only at
the end is something of the user's touched, and in this order: their index, so that it
has what the commit has, then their branch, if it still is where it was. After a kill
between the two, the files are staged and the next try commits them; the other way
round, the index would hold the old content, ready to take the commit back with the
user's next one.

What the user staged is never overwritten: where the index differs from the last commit,
it is left as it is.

No hook is run: what is committed is what was verified, and a hook may rewrite it, or
refuse it half-way through a run. Everything else is as in a `git commit` of theirs:
their name, their filters and attributes, their signature.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Self

from msgspec import Struct

from cdd_agent.errors import CddError
from cdd_agent.git.command import CONFIG, HIDDEN, Git
from cdd_agent.git.commit_message import CommitMessage, carries
from cdd_agent.git.diff import Change, read_raw
from cdd_agent.process.run import CommandResult
from cdd_agent.sanitize import sanitize_for_display

_SECONDS = 120.0
"""For one call of git: a filter may upload, and a person may have to type a passphrase.
"""
_LOOKED_BACK = 50
"""Commits among which one is looked for by its trailer."""
_SAID = 600
"""Characters of git's own words that are passed on."""
_PERSONS_OWN = (
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
)
"""Of the variables that are hidden, those that say who commits and where their settings
are.
"""
_HIDDEN = (*HIDDEN, "GPG_TTY")
"""Nobody asks for a passphrase in the terminal: the shell is there."""
_UNDER_WAY = {
    "MERGE_HEAD": "A merge",
    "rebase-merge": "A rebase",
    "rebase-apply": "A rebase or `git am`",
    "CHERRY_PICK_HEAD": "A cherry-pick",
    "REVERT_HEAD": "A revert",
    "sequencer": "A cherry-pick or revert",
    "BISECT_LOG": "A bisect",
}
"""Left by git in its folder while it is in the middle of something."""
_OR_OFF = "Or set `commit: off`."
_WHO = (
    'In the project: `git config user.name "Your Name"` and `git config user.email'
    " you@example.org`. With --global they are set for all projects."
)
_SIGNING = (
    "`commit.gpgsign` asks for it. Unlock the key in another terminal and try again, or"
    " set it to false."
)
_LOCKED = re.compile(r"Unable to create '(.+\.lock)': File exists")
_NOBODY = re.compile(
    r"Please tell me who you are|empty ident|unable to auto-detect|no (email|name) was"
    r" given"
)


class CommitRefused(CddError):
    """There is no commit: branch and files are as they were."""


async def commit_files(
    root: Path, paths: Sequence[str], message: CommitMessage
) -> str | None:
    """Commit these files (created, changed, deleted) as they are now, where HEAD is, on
    a branch or detached.

    `paths` are relative to `root`, which may be a folder inside the repository, and are
    taken literally. Returns the commit's full name, or None where there is nothing to
    commit. A file that git ignores and does not track is left out. Raises
    `CommitRefused`.
    """
    with _scratch() as scratch:
        git = await _CommitGit.open(root, scratch)
        await git.expect_at_rest()
        draft = await _CommitDraft.begin(git)
        changes = await draft.take([_checked(root, path) for path in paths])
        if not changes:
            return None
        name = await draft.commit(message)
        await draft.publish(changes, name, message.first_line)
        return name


async def expect_ready(root: Path) -> None:
    """Raises `CommitRefused` where no commit could be made now: no repository, nobody's
    name, in a merge.
    """
    with _scratch() as scratch:
        git = await _CommitGit.open(root, scratch)
        await git.expect_at_rest()
        for who in ("GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"):
            await git.ask("var", who)


async def already_committed(root: Path, trailer: str) -> str | None:
    """The latest commit with this trailer among the last 50 of HEAD's first-parent
    line; None where there is none.

    For a run that goes on after a kill. Of work that was undone and done again, the
    former commit has the same trailer: ask after `commit_files` found nothing to
    commit, and each is told from the other.
    """
    with _scratch() as scratch:
        git = await _CommitGit.open(root, scratch)
        if await git.head() is None:
            return None
        which = (
            "--first-parent",
            f"--max-count={_LOOKED_BACK}",
            "--no-show-signature",
            "--no-patch",
        )
        log = await git.ask(
            "log", "-z", *which, "--encoding=UTF-8", "--format=%H%n%B", "HEAD", "--"
        )
    commits = (entry.partition("\n") for entry in log.split("\0"))
    return next((name for name, _, text in commits if carries(text, trailer)), None)


class _CommitGit(Struct, frozen=True):
    """Git at the top of the user's files. Every path it is told, and tells, is relative
    to there.
    """

    top: Path
    prefix: str
    """The project's folder, ending in a slash; empty where it is the top."""
    scratch: Path
    """A private folder for what git is given to read, and for another index than the
    user's.
    """

    @classmethod
    async def open(cls, root: Path, scratch: Path) -> Self:
        """In the repository that the project is in."""
        here = cls(root, "", scratch)
        what = ("--is-bare-repository", "--is-inside-work-tree", "--show-prefix")
        result = await here.run("rev-parse", *what)
        if result.started and "not a git repository" in result.stderr:
            raise CommitRefused(
                f"{root} is in no git repository.",
                hint=f"`git init` makes one. {_OR_OFF}",
            )
        _check("rev-parse", result)
        bare, inside, prefix = result.stdout.removesuffix("\n").split("\n", 2)
        if inside != "true":  # `core.worktree` can be any folder
            why = (
                "is bare"
                if bare == "true"
                else "is set up for the files of another folder"
            )
            raise CommitRefused(
                f"The repository at {root} {why}: nothing can be committed from here.",
                hint=_OR_OFF,
            )
        top = (await here.ask("rev-parse", "--show-toplevel")).removesuffix("\n")
        if "\ufffd" in top + prefix:
            raise CommitRefused(
                f"The name of the folder {root} is not UTF-8.",
                hint=f"Give it another one. {_OR_OFF}",
            )
        return cls(Path(top), prefix, scratch)

    async def expect_at_rest(self) -> None:
        """Raise `CommitRefused` in the middle of a merge or the like: a commit would be
        taken for a part of it.
        """
        folder = Path(
            (await self.ask("rev-parse", "--absolute-git-dir")).removesuffix("\n")
        )
        if what := _under_way(folder):
            raise CommitRefused(
                f"{what} is in progress.", hint="Finish it, or abort it, and try again."
            )

    async def head(self) -> str | None:
        """The commit that is checked out; None on a branch that has none yet."""
        result = await self.run("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        return result.stdout.strip() if result.return_code == 0 else None

    async def ask(
        self, *words: str, given: Iterable[str] = (), index: Path | None = None
    ) -> str:
        """Git's answer. Raises `CommitRefused` when there is none."""
        result = await self.run(*words, given=given, index=index)
        _check(words[0], result)
        return result.stdout

    async def run(
        self, *words: str, given: Iterable[str] = (), index: Path | None = None
    ) -> CommandResult:
        """Run git, however it ends. It reads what is `given`, and uses `index` for the
        user's.
        """
        config = (
            *CONFIG,
            "i18n.commitEncoding=UTF-8",
            *(("core.splitIndex=false",) if index else ()),
        )
        env = {name: os.environ[name] for name in _PERSONS_OWN if name in os.environ}
        if index:
            env["GIT_INDEX_FILE"] = str(index)
        stdin = self.scratch / "stdin"
        stdin.write_bytes("".join(f"{item}\0" for item in given).encode())
        return await Git(self.top, env, config, _HIDDEN, _SECONDS).run(
            *words, stdin=stdin
        )

    async def differences(self, tree: str, index: Path | None = None) -> list[Change]:
        """Where an index differs from a tree."""
        words = (
            "diff-index",
            "--cached",
            "--raw",
            "--no-abbrev",
            "--no-renames",
            "-z",
            tree,
            "--",
        )
        return list(read_raw(await self.ask(*words, index=index)))

    async def write_index(self, changes: Sequence[Change]) -> None:
        """Give the user's index what these changes lead to, what goes away before what
        comes; under git's own lock, all or none.
        """
        entries = []
        for change in sorted(changes, key=lambda change: change.after is not None):
            known = change.after or change.before
            if known:
                entries.append(
                    f"{known.mode if change.after else 0}"
                    f" {known.content}\t{change.path}"
                )
        if entries:
            await self.ask("update-index", "-z", "--index-info", given=entries)


class _CommitDraft(Struct, frozen=True):
    """A commit in the making, in an index of its own, on the last commit or on
    nothing.
    """

    git: _CommitGit
    base: str | None
    tree: str
    """Of the last commit; an empty one without it."""

    @classmethod
    async def begin(cls, git: _CommitGit) -> Self:
        base = await git.head()
        words = (
            ("rev-parse", f"{base}^{{tree}}")
            if base
            else ("hash-object", "-t", "tree", "--stdin")
        )
        return cls(git, base, (await git.ask(*words)).strip())

    async def take(self, paths: Sequence[str]) -> list[Change]:
        """Take the project's files as they are. Returns how the commit will differ from
        its base.
        """
        await self._ask("read-tree", self.tree)
        files = [f"{self.git.prefix}{path}" for path in paths]
        there = [file for file in files if _is_file(self.git.top / file)]
        # What is gone makes room: a folder may have become a file. What stays is not
        # removed first, so that it keeps its mode and its line ends where those are not
        # the disk's.
        await self._update("--force-remove", sorted({*files} - {*there}))
        await self._update("--add", there)
        changes = await self.git.differences(self.tree, self._index)
        ignored = await self._ignored(changes)
        await self._update("--force-remove", sorted(ignored))
        return [change for change in changes if change.path not in ignored]

    async def commit(self, message: CommitMessage) -> str:
        """Write the commit; nothing points to it yet. Returns its name."""
        # a partial clone lacks what did not change
        tree = (await self._ask("write-tree", "--missing-ok")).strip()
        text = self.git.scratch / "message"
        text.write_text(message.text, encoding="utf-8", newline="\n")
        words = [
            "commit-tree",
            *(("-p", self.base) if self.base else ()),
            "-F",
            str(text),
            tree,
        ]
        signs = await self.git.run("config", "--type=bool", "--get", "commit.gpgsign")
        if signs.return_code != 1:  # 1: it is not set
            _check("config", signs)
        if signs.stdout.strip() != "true":
            return (await self._ask(*words)).strip()
        result = await self.git.run(*words, "-S", index=self._index)
        if (
            result.return_code
            and not result.timed_out
            and not _NOBODY.search(result.stderr)
        ):
            raise CommitRefused(
                f"The commit could not be signed: {_said(result)}", hint=_SIGNING
            )
        _check("commit-tree", result)
        return result.stdout.strip()

    async def publish(self, changes: Sequence[Change], name: str, subject: str) -> None:
        """Make the commit the branch's last one, and have the user's index know of it.
        Both become true, or neither.
        """
        git = self.git
        free = _not_staged(changes, await git.differences(self.tree))
        await git.write_index(free)
        try:
            await git.ask(
                "update-ref", "-m", f"cdd: {subject}", "HEAD", name, self.base or ""
            )
        except CommitRefused as error:
            # somebody holds the index: what was to be committed stays staged
            with contextlib.suppress(CommitRefused):
                await git.write_index(
                    [
                        Change(change.path, change.after, change.before)
                        for change in free
                    ]
                )
            if await git.head() != self.base:
                raise CommitRefused(
                    "The branch moved while the commit was being made; nothing was"
                    " committed.",
                    hint=(
                        "The files are as they were. Try again when nobody else is at"
                        " work on the branch."
                    ),
                ) from error
            raise

    async def _ignored(self, changes: Sequence[Change]) -> set[str]:
        """Which files the user keeps out of the repository: they are ignored, and are
        not in the user's index.
        """
        staged = {
            change.path: bool(change.after)
            for change in await self.git.differences(self.tree)
        }
        untracked = [
            one.path
            for one in changes
            if one.after and not staged.get(one.path, bool(one.before))
        ]
        if not untracked:
            return set()
        # No path can be said to be literal here. But a leading dot takes the magic
        # away, and without the index nothing is matched.
        given = [f"./{path}" for path in untracked]
        result = await self.git.run(
            "check-ignore", "--no-index", "-z", "--stdin", given=given
        )
        if result.return_code != 1:  # 1: none is
            _check("check-ignore", result)
        return {path.removeprefix("./") for path in result.stdout.split("\0") if path}

    async def _update(self, how: str, paths: Sequence[str]) -> None:
        if paths:
            await self._ask("update-index", how, "-z", "--stdin", given=paths)

    async def _ask(self, *words: str, given: Iterable[str] = ()) -> str:
        return await self.git.ask(*words, given=given, index=self._index)

    @property
    def _index(self) -> Path:
        return self.git.scratch / "index"


def _not_staged(changes: Sequence[Change], staged: Sequence[Change]) -> list[Change]:
    """The changes whose place in the index is as the last commit left it, and takes
    nobody else's place.
    """
    files = {PurePosixPath(change.path) for change in staged if change.after}
    taken = {PurePosixPath(change.path) for change in staged} | {
        folder for file in files for folder in file.parents
    }

    def is_free(path: PurePosixPath) -> bool:
        return path not in taken and files.isdisjoint(path.parents)

    return [change for change in changes if is_free(PurePosixPath(change.path))]


@contextlib.contextmanager
def _scratch() -> Iterator[Path]:
    try:
        with tempfile.TemporaryDirectory(
            prefix="cdd-commit-", ignore_cleanup_errors=True
        ) as folder:
            yield Path(folder).resolve()
    except OSError as error:
        raise CommitRefused(
            f"The commit could not be prepared: {error.strerror or error}"
        ) from error


def _under_way(folder: Path) -> str | None:
    return next(
        (what for name, what in _UNDER_WAY.items() if os.path.lexists(folder / name)),
        None,
    )


def _checked(root: Path, text: str) -> str:
    """A path in the project, as git is told it. Raises `CommitRefused` for one that git
    must not be told.
    """
    path = PurePosixPath(text)
    leads_away = not path.parts or path.is_absolute() or ".." in path.parts
    is_gits_own = any(part.lower() == ".git" for part in path.parts)
    is_utf8 = text.encode(errors="replace").decode() == text
    if leads_away or is_gits_own or "\0" in text or not is_utf8:
        raise CommitRefused(f"{text!r} names no file of the project.")
    for place in (path, *path.parents[:-1]):
        if os.path.lexists(root / place / ".git"):
            why = (
                "is in a repository of its own"
                if place != path
                else "is a repository of its own"
            )
            raise CommitRefused(
                f"{sanitize_for_display(text)} {why}.",
                hint=f"Commit it there. {_OR_OFF}",
            )
    return str(path)


def _is_file(place: Path) -> bool:
    """Whether git could have something here: a link is, wherever it leads; a folder is
    not.
    """
    return os.path.lexists(place) and (place.is_symlink() or not place.is_dir())


def _check(command: str, result: CommandResult) -> None:
    """Raise `CommitRefused` for a git that did not do what it was told, with what a
    person can do about it.
    """
    if result.return_code == 0:
        return
    if result.return_code == 127:
        raise CommitRefused(
            "git was not found.",
            hint=f"Install git, or see that it is on the PATH. {_OR_OFF}",
        )
    if result.timed_out:
        raise CommitRefused(f"git {command} took longer than {_SECONDS:.0f} s.")
    if locked := _LOCKED.search(result.stderr):
        hint = (
            "Another git is at work there; if none is, remove"
            f" {sanitize_for_display(locked[1])}"
        )
        raise CommitRefused("The repository is locked.", hint=hint)
    if _NOBODY.search(result.stderr):
        raise CommitRefused("git does not know who you are.", hint=_WHO)
    raise CommitRefused(f"git {command} failed: {_said(result)}")


def _said(result: CommandResult) -> str:
    """Git's own words, in one line."""
    said = "; ".join(
        line.strip() for line in result.stderr.splitlines() if line.strip()
    )
    return sanitize_for_display(said)[:_SAID]
