"""Working trees next to the user's, and merging a branch from one of them.

The repository's settings for checking out files (filters, merge drivers) apply, as in
the user's `git worktree add` and `git merge`. No hook runs.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from cdd_agent.errors import CddError
from cdd_agent.files.atomic import remove_folder
from cdd_agent.git.command import Git, GitUnusable
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.text.sanitize import sanitize_for_display

_USERS_VARIABLES = (
    *(
        "GIT_AUTHOR_NAME",
        "GIT_AUTHOR_EMAIL",
        "GIT_COMMITTER_NAME",
        "GIT_COMMITTER_EMAIL",
    ),
    *("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"),
)
_NAMED = 20
"""Number of files that a message names."""


class Conflict(CddError):
    """git cannot merge two branches. Nothing was changed."""

    refusal = Refusal.BRANCH_CONFLICT

    def __init__(self, branch: str, files: Sequence[str]) -> None:
        shown = "\n".join(f"  {sanitize_for_display(name)}" for name in files[:_NAMED])
        more = ""
        if len(files) > _NAMED:
            more = f"\n  … and {len(files) - _NAMED} more"
        super().__init__(
            f"{branch} and your branch changed the same lines:\n{shown}{more}",
            hint=f"Nothing was changed. To resolve the conflicts yourself, run `git"
            f" merge {branch}`.",
        )
        self.files = tuple(files)


class Trees(Struct, frozen=True):
    """The working trees of one repository, seen from the user's tree."""

    top: Path
    git: Git

    @classmethod
    def of(cls, top: Path) -> Trees:
        return cls(top, _git(top))

    async def add(
        self,
        place: Path,
        commit: str,
        branch: str | None = None,
        *,
        is_empty: bool = False,
    ) -> None:
        """Create a tree, on a new branch or on none. Replaces leftovers of a killed
        process. `is_empty`: no file is written into it. Raises `GitUnusable` or
        `BadInput`.
        """
        if not is_empty:
            await self.remove(place)
        options = ["--detach"]
        if branch:
            options = ["-b", branch]
        if is_empty:
            options.append("--no-checkout")
        await self.git("worktree", "add", "--quiet", *options, "--", str(place), commit)

    async def expect_files(self, place: Path, commit: str) -> None:
        """Fill the index of an empty tree from its commit. Otherwise git would see
        every file as new.
        """
        await _git(place)("read-tree", commit)

    async def remove(self, place: Path) -> None:
        """Remove a tree, or leftovers of one, with all files. Raises `BadInput`."""
        remove_folder(place)
        forget = ("worktree", "remove", "--force", "--force", "--", str(place))
        await self.git(*forget, codes=(0, 128))  # 128: git does not know the tree

    async def commit_of(self, name: str) -> str | None:
        words = ("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        return (await self.git(*words, codes=(0, 1, 128))).stdout.strip() or None

    async def has_landed(self, commit: str) -> bool:
        """True if the commit is part of the user's branch."""
        answer = await self.git(
            "merge-base", "--is-ancestor", commit, "HEAD", codes=(0, 1, 128)
        )
        return answer.return_code == 0

    async def unpublished_submodules(self, place: Path, branch: str) -> list[str]:
        """Return submodules in which the branch uses a commit that exists only in the
        tree. The user's copy of the submodule and its remotes lack it.
        """
        command = ("diff-tree", "-r", "-z", "--no-renames", "HEAD", branch)
        fields = (await self.git(*command)).stdout.split("\0")
        missing = []
        for entry, path in zip(fields[::2], fields[1::2], strict=False):
            _, mode, _, commit, _ = entry.split()
            if mode != "160000" or not (place / path / ".git").exists():
                continue
            words = ("cat-file", "-e", f"{commit}^{{commit}}")
            if (self.top / path / ".git").exists():
                answer = await _git(self.top / path)(*words, codes=(0, 1, 128))
                if answer.return_code == 0:
                    continue
            remotes = ("for-each-ref", "--contains", commit, "refs/remotes")
            answer = await _git(place / path)(*remotes, codes=(0, 1, 128, 129))
            if answer.return_code or not answer.stdout:
                missing.append(path)
        return missing

    async def delete_branch(self, branch: str) -> None:
        await self.git("update-ref", "-d", f"refs/heads/{branch}")

    async def changed(self, place: Path, *, untracked: bool) -> tuple[str, ...]:
        """Return the tree's files that differ from its last commit. With `untracked`,
        those that the commit lacks.
        """
        how = "all" if untracked else "no"
        result = await _git(place)(
            "status", "--porcelain", "-z", "--no-renames", f"--untracked-files={how}"
        )
        entries = [entry for entry in result.stdout.split("\0") if entry]
        return tuple(
            entry[3:] for entry in entries if entry.startswith("??") == untracked
        )

    async def merged(
        self, place: Path, branch: str, message: str, *, rebase: bool
    ) -> str:
        """Merge a branch with the commit of the tree in `place`. Returns the new
        commit. Raises `Conflict`.
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
            text = done.stderr.strip() or done.stdout.strip()
            why = sanitize_for_display(" ".join(text.split()))
            raise GitUnusable(f"git {'rebase' if rebase else 'merge'} failed: {why}")
        return (await git("rev-parse", "HEAD")).stdout.strip()

    async def forward(self, commit: str) -> None:
        """Fast-forward the user's branch and files to `commit`. Uncommitted changes
        stay. Raises `GitUnusable` if they are in the way; then nothing was changed.
        """
        done = await self.git.run("merge", "--quiet", "--ff-only", commit)
        if done.timed_out or done.return_code:
            why = sanitize_for_display(" ".join(done.stderr.split()))
            raise GitUnusable(f"Your files could not be updated: {why}")


def _git(folder: Path) -> Git:
    return Git(
        folder,
        {name: os.environ[name] for name in _USERS_VARIABLES if name in os.environ},
    )
