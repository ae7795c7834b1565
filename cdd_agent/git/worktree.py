"""Working trees beside the person's own, and bringing a branch over from one.

What the repository configures for checking files out (filters, merge drivers) counts,
as in a `git worktree add` and a `git merge` of the person's own; no hook is run.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from cdd_agent.errors import CddError
from cdd_agent.files.atomic import remove_folder
from cdd_agent.git.command import Git, GitUnusable
from cdd_agent.sanitize import sanitize_for_display

_PERSONS_OWN = (
    *(
        "GIT_AUTHOR_NAME",
        "GIT_AUTHOR_EMAIL",
        "GIT_COMMITTER_NAME",
        "GIT_COMMITTER_EMAIL",
    ),
    *("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"),
)
_NAMED = 20
"""Files that a message names."""


class Conflict(CddError):
    """Two branches cannot be brought together by git alone: nothing was changed."""

    def __init__(self, branch: str, files: Sequence[str]) -> None:
        shown = "\n".join(f"  {sanitize_for_display(name)}" for name in files[:_NAMED])
        more = f"\n  … and {len(files) - _NAMED} more" if len(files) > _NAMED else ""
        super().__init__(
            f"{branch} and your branch have changed the same places:\n{shown}{more}",
            hint=f"Nothing was changed. `git merge {branch}` by hand lets you decide.",
        )
        self.files = tuple(files)


class Trees(Struct, frozen=True):
    """The working trees of one repository, from the person's own."""

    top: Path
    git: Git

    @classmethod
    def of(cls, top: Path) -> Trees:
        """`top` is the folder of the person's own tree."""
        return cls(top, _git(top))

    async def add(
        self,
        place: Path,
        commit: str,
        branch: str | None = None,
        *,
        is_empty: bool = False,
    ) -> None:
        """Make a tree in this place, on a new branch or on none. What was left there by
        one that was killed is replaced. `is_empty`: nothing is there, and no file is
        written into it. Raises `GitUnusable`, `BadInput`.
        """
        if not is_empty:
            await self.remove(place)
        how = ["-b", branch] if branch else ["--detach"]
        how += ["--no-checkout"] if is_empty else []
        await self.git("worktree", "add", "--quiet", *how, "--", str(place), commit)

    async def expect_files(self, place: Path, commit: str) -> None:
        """Let git in a tree that was made empty know the files of its commit, else
        every one would be new to it.
        """
        await _git(place)("read-tree", commit)

    async def remove(self, place: Path) -> None:
        """Remove a tree with all that is in it, or what is left of one. Raises
        `BadInput`.
        """
        remove_folder(place)
        forget = ("worktree", "remove", "--force", "--force", "--", str(place))
        await self.git(*forget, codes=(0, 128))  # 128: it was not known as one

    async def commit_of(self, name: str) -> str | None:
        words = ("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        return (await self.git(*words, codes=(0, 1, 128))).stdout.strip() or None

    async def has_landed(self, commit: str) -> bool:
        """Whether it is part of the person's branch."""
        answer = await self.git(
            "merge-base", "--is-ancestor", commit, "HEAD", codes=(0, 1, 128)
        )
        return answer.return_code == 0

    async def delete_branch(self, branch: str) -> None:
        await self.git("update-ref", "-d", f"refs/heads/{branch}")

    async def changed(self, place: Path, *, untracked: bool) -> tuple[str, ...]:
        """The files of a tree that are not as its last commit has them; or those that
        it does not have.
        """
        how = "all" if untracked else "no"
        found = await _git(place)(
            "status", "--porcelain", "-z", "--no-renames", f"--untracked-files={how}"
        )
        entries = [entry for entry in found.stdout.split("\0") if entry]
        return tuple(
            entry[3:] for entry in entries if entry.startswith("??") == untracked
        )

    async def merged(
        self, place: Path, branch: str, message: str, *, rebase: bool
    ) -> str:
        """Bring a branch and the commit of the tree in this place together there; the
        result. Raises `Conflict`.
        """
        git = _git(place)
        base = (await git("rev-parse", "HEAD")).stdout.strip()
        if rebase:
            await git("checkout", "--quiet", "--detach", branch)
            done = await git.run(
                "-c", "rebase.autoStash=false", "rebase", "--quiet", base
            )
        else:
            done = await git.run("merge", "--quiet", "--no-edit", "-m", message, branch)
        if done.timed_out or done.return_code:
            listed = await git("diff", "--name-only", "--diff-filter=U", "-z")
            files = [name for name in listed.stdout.split("\0") if name]
            if files:
                raise Conflict(branch, files)
            said = sanitize_for_display(
                " ".join((done.stderr.strip() or done.stdout.strip()).split())
            )
            raise GitUnusable(f"git {'rebase' if rebase else 'merge'} failed: {said}")
        return (await git("rev-parse", "HEAD")).stdout.strip()

    async def forward(self, commit: str) -> None:
        """Move the person's branch and files on to a commit that has theirs in its
        history.

        What they have not committed stays. Raises `GitUnusable` where that is in the
        way; nothing was changed then.
        """
        done = await self.git.run("merge", "--quiet", "--ff-only", commit)
        if done.timed_out or done.return_code:
            said = sanitize_for_display(" ".join(done.stderr.split()))
            raise GitUnusable(f"Your files could not be moved on: {said}")


def _git(folder: Path) -> Git:
    return Git(
        folder, {name: os.environ[name] for name in _PERSONS_OWN if name in os.environ}
    )
