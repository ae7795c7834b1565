"""One commit in one repository, from the files on disk to the user's branch.

The commit is made with a private index. Only `publish` changes anything of the user's,
in this order:

1. a reference, `refs/worktree/cdd/commit`, names the new commit; 2. the entries of its
paths in the user's index are set to the commit's content; 3. the branch moves, if no
one moved it, and the reference is deleted.

A kill between 2 and 3 leaves the files staged: a `git commit` of the user's then
includes them, and nothing is lost. `settle` finds the reference and unstages them. In
the reverse order the index would keep the old content, and the user's next commit would
revert the step.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Self

from msgspec import Struct

from cdd_agent.files.spelling import has_entry
from cdd_agent.git.commit_git import (
    CommitFailed,
    CommitGit,
    check_result,
    lacks_name,
    quote_error,
)
from cdd_agent.git.commit_message import CommitMessage
from cdd_agent.git.diff import Change, TreeEntry

_PENDING = "refs/worktree/cdd/commit"
"""The commit that is being published, separate for each linked worktree."""
_SUBMODULE = "160000"
_SIGNING = (
    "Unlock the key in another terminal and try again, or set `commit.gpgsign` to"
    " false."
)


class CommitDraft(Struct, frozen=True):
    """A commit on top of the last one, if any."""

    git: CommitGit
    base: str | None
    tree: str
    """The tree of the last commit, or an empty tree."""

    @classmethod
    async def begin(cls, git: CommitGit) -> Self:
        last = await git.run("rev-parse", "HEAD^{commit}", "HEAD^{tree}")
        if last.return_code == 0:
            base, tree = last.stdout.split()
            return cls(git, base, tree)
        empty = await git.ask("hash-object", "-t", "tree", "--stdin")
        return cls(git, None, empty.strip())

    async def staged(self) -> dict[str, Change]:
        """Return the differences between the last commit and the user's index."""
        return {change.path: change for change in await self.git.differences(self.tree)}

    async def take(
        self,
        files: Collection[str],
        pointers: Mapping[str, str],
        staged: Mapping[str, Change],
    ) -> list[Change]:
        """Put the current files and the commits of submodules into the private index.
        Returns the differences from the last commit, without files that are ignored and
        untracked.
        """
        await self._ask("read-tree", self.tree)
        present = [file for file in files if _is_file(self.git.top, file)]
        # Deletions first, because a folder may have become a file. Other entries stay:
        # they keep the mode and line ends that the disk does not store.
        await self._update("--force-remove", sorted({*files} - {*present}))
        await self._update("--add", present)
        links = [
            Change(path, None, TreeEntry(_SUBMODULE, commit))
            for path, commit in pointers.items()
        ]
        await self.git.write_index(links, self._index)
        changes = await self.git.differences(self.tree, self._index)
        ignored = await self._ignored(changes, staged)
        await self._update("--force-remove", sorted(ignored))
        return [change for change in changes if change.path not in ignored]

    async def commit(self, message: CommitMessage) -> str:
        """Write the commit object, not yet on any branch. Returns its id."""
        # a partial clone lacks unchanged content
        tree = (await self._ask("write-tree", "--missing-ok")).strip()
        text = self.git.scratch / "message"
        text.write_text(message.text, encoding="utf-8", newline="\n")
        words = ["commit-tree"]
        if self.base is not None:
            words += ["-p", self.base]
        words += ["-F", str(text), tree]
        signs = await self.git.run("config", "--type=bool", "--get", "commit.gpgsign")
        if signs.return_code != 1:  # 1: it is not set
            check_result("config", signs)
        if signs.stdout.strip() != "true":
            return (await self._ask(*words)).strip()
        result = await self.git.run(*words, "-S", index=self._index)
        if result.return_code and not result.timed_out and not lacks_name(result):
            raise CommitFailed(
                f"The commit could not be signed: {quote_error(result)}", hint=_SIGNING
            )
        check_result("commit-tree", result)
        return result.stdout.strip()

    async def publish(
        self,
        entries: Sequence[Change],
        staged: Mapping[str, Change],
        name: str,
        subject: str,
    ) -> None:
        """Set these entries in the user's index, which has `staged` changes, and move
        the branch to the commit: both or neither. Cancelling waits for the end.
        """
        back = _reversed(entries, staged)
        publishing = asyncio.ensure_future(self._publish(entries, back, name, subject))
        try:
            await asyncio.shield(publishing)
        except asyncio.CancelledError:
            while not publishing.done():
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait([publishing])
            publishing.exception()
            raise

    async def _publish(
        self, entries: Sequence[Change], back: Sequence[Change], name: str, subject: str
    ) -> None:
        git = self.git
        await git.ask("update-ref", _PENDING, name)
        try:
            await git.write_index(entries)
            await self._move_branch(name, subject)
        except CommitFailed as error:
            with contextlib.suppress(CommitFailed):
                await git.write_index(back)
                await git.ask("update-ref", "-d", _PENDING)
            if await git.head() != self.base:
                raise CommitFailed(
                    "The branch moved while the commit was being made; nothing was"
                    " committed.",
                    hint=(
                        "The files are unchanged. Try again when no other process is"
                        " committing."
                    ),
                ) from error
            raise

    async def _move_branch(self, name: str, subject: str) -> None:
        base = self.base or "0" * len(name)
        given = ("update HEAD", name, base, f"delete {_PENDING}", name)
        reason = f"cdd: {subject}"
        await self.git.ask("update-ref", "-m", reason, "--stdin", "-z", given=given)

    async def settle(self) -> None:
        """Finish an interrupted `publish`: delete the reference, and unstage the files
        if the branch has not moved.
        """
        git = self.git
        name = await git.find_commit(_PENDING)
        if name is None:
            return
        if await git.find_commit(f"{_PENDING}~") == self.base:
            staged = await self.staged()
            differences = await git.tree_differences(self.tree, name)
            ours = [
                change for change in differences if staged.get(change.path) == change
            ]
            await git.write_index(_reversed(ours, {}))
        await git.ask("update-ref", "-d", _PENDING)

    async def _ignored(
        self, changes: Sequence[Change], staged: Mapping[str, Change]
    ) -> set[str]:
        untracked = []
        for change in changes:
            entry = staged.get(change.path)
            is_tracked = change.before if entry is None else entry.after
            if change.after and not is_tracked:
                untracked.append(change.path)
        if not untracked:
            return set()
        # `check-ignore` has no literal paths. A leading dot disables the special
        # characters, and without the index no path matches as a pattern.
        given = [f"./{path}" for path in untracked]
        result = await self.git.run(
            "check-ignore", "--no-index", "-z", "--stdin", given=given
        )
        if result.return_code != 1:  # 1: none is
            check_result("check-ignore", result)
        return {path.removeprefix("./") for path in result.stdout.split("\0") if path}

    async def _update(self, how: str, paths: Sequence[str]) -> None:
        if paths:
            await self._ask("update-index", how, "-z", "--stdin", given=paths)

    async def _ask(self, *words: str, given: Iterable[str] = ()) -> str:
        return await self.git.ask(*words, given=given, index=self._index)

    @property
    def _index(self) -> Path:
        return self.git.scratch / "index"


def _reversed(changes: Sequence[Change], staged: Mapping[str, Change]) -> list[Change]:
    back = []
    for change in changes:
        before = change.before
        if change.path in staged:
            before = staged[change.path].after
        back.append(Change(change.path, change.after, before))
    return back


def _is_file(top: Path, path: str) -> bool:
    """True for a file or link of exactly this name, wherever the link leads."""
    place = top / path
    try:
        is_there = has_entry(top, path)
    except OSError:
        return False
    return is_there and (place.is_symlink() or not place.is_dir())
