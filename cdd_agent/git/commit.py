"""Commit the files of a step, and nothing else, on the user's own branch.

Files in a submodule are committed there first, on its branch. Then the repository
around it commits the pointer with its own files. All commits are made before the first
branch moves.

Content that the user has staged is never lost. Before a step, `expect_ready` refuses
declared files that are staged. At the end, `commit_files` leaves out a file with other
staged content, unless the step declares it: then it was staged during the step. After a
commit the index matches it, so that the user's next commit neither deletes nor reverts
the step.

No hook runs: it might change what was verified, or refuse it in the middle of a run.
Otherwise it is a `git commit` of the user's, with their name, filters, attributes and
signature.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Self

from msgspec import Struct, field

from cdd_agent.git.commit_draft import CommitDraft
from cdd_agent.git.commit_git import OR_OFF, CommitGit, CommitRefused, scratch_folder
from cdd_agent.git.commit_message import CommitMessage, carries, carries_prefix
from cdd_agent.git.diff import Change
from cdd_agent.git.index import LIST_INDEX, IndexView, quote_path
from cdd_agent.text.sanitize import sanitize_for_display

Declares = Callable[[str], bool]
"""True for a path of the project that the step declares."""

_SEARCHED_COMMITS = 50
"""Number of recent commits in which a trailer is searched."""
_FLAGGED = "git does not compare it"


def _declares_none(path: str) -> bool:
    return False


class CommittedFiles(Struct, frozen=True):
    name: str | None = None
    """The commit in the project's repository, if there was anything to commit."""
    inside: Mapping[str, str] = field(default_factory=dict)
    """The commits in submodules, by the submodule's path in the project."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """The files that were not committed, with the reasons."""


async def commit_files(
    root: Path,
    paths: Sequence[str],
    message: CommitMessage,
    declares: Declares = _declares_none,
) -> CommittedFiles:
    """Commit the current version of these files (created, changed, deleted) on the
    branch that is checked out, or on a detached HEAD.

    `paths` are relative to `root`, which may be a folder inside the repository, and are
    taken literally. An ignored, untracked file is left out without a reason. Raises
    `CommitRefused`.
    """
    files = [_check_path(path) for path in paths]
    with scratch_folder() as scratch:
        step = _StepCommit(root, scratch, message, declares)
        repository = await _StepRepository.open(root, "", scratch)
        await step.prepare(repository, files)
        return await step.publish()


async def expect_ready(
    root: Path,
    paths: Collection[str] = (),
    declares: Declares = _declares_none,
    trailers: Collection[str] = (),
) -> None:
    """Raise `CommitRefused` if these files could not be committed now: no repository,
    no name, a merge, staged changes, a submodule on no branch.

    `paths` are the existing files that the step declares or names. `trailers` are the
    beginnings of its commits' trailers: a submodule may be one such commit ahead,
    because a kill can leave it so.
    """
    files = [path for path in paths if _is_committable(path)]
    with scratch_folder() as scratch:
        repository = await _StepRepository.open(root, "", scratch)
        await _expect_repository_ready(repository, files, declares, trailers)


async def settle_commits(root: Path) -> None:
    """Unstage the files of an interrupted commit, in all repositories of the
    project.
    """
    with scratch_folder() as scratch:
        try:
            repository = await _StepRepository.open(root, "", scratch)
        except CommitRefused:
            return
        await _settle(repository)


async def already_committed(root: Path, trailer: str) -> str | None:
    """Return the latest commit with this trailer among the last 50 of HEAD's
    first-parent line, or None.

    Call this after `commit_files` found nothing to commit. A step that was undone and
    repeated does have something to commit, although an older commit has its trailer.
    """
    with scratch_folder() as scratch:
        return await _find_by_trailer(await CommitGit.open(root, scratch), trailer)


class _StepRepository(Struct, frozen=True):
    root: Path
    folder: str
    """The submodule's path in the project; empty for the project's own repository."""
    git: CommitGit
    index: IndexView

    @classmethod
    async def open(cls, root: Path, folder: str, scratch: Path) -> Self:
        own_scratch = scratch / (folder or "own").replace("/", "%")
        own_scratch.mkdir(exist_ok=True)
        git = await CommitGit.open(root / folder, own_scratch)
        if folder and git.prefix:  # its `.git` is an empty folder
            raise CommitRefused("it is not a repository.", hint=OR_OFF)
        return cls(root, folder, git, IndexView.parse(await git.ask(*LIST_INDEX)))

    async def open_submodule(self, folder: str) -> Self:
        return await self.open(self.root, folder, self.git.scratch.parent)

    def to_git(self, path: str) -> str:
        if self.folder:
            path = path.removeprefix(f"{self.folder}/")
        return f"{self.git.prefix}{path}"

    def to_project(self, path: str) -> str:
        if not path.startswith(self.git.prefix):
            return ""
        path = path.removeprefix(self.git.prefix)
        return f"{self.folder}/{path}" if self.folder else path

    def split(self, paths: Collection[str]) -> tuple[list[str], dict[str, list[str]]]:
        """Return the paths in this repository, and by folder those in nested ones."""
        paths_here: list[str] = []
        nested: dict[str, list[str]] = {}
        for path in paths:
            folder = self._find_nested(path)
            if folder is None:
                paths_here.append(path)
            else:
                nested.setdefault(folder, []).append(path)
        return paths_here, nested

    def _find_nested(self, path: str) -> str | None:
        inside = PurePosixPath(path)
        for folder in (*reversed(inside.parents[:-1]), inside):
            is_deeper = str(folder).startswith(f"{self.folder}/") or not self.folder
            if is_deeper and self.is_on_disk(f"{folder}/.git"):
                return str(folder)
        return None

    def is_on_disk(self, path: str) -> bool:
        return os.path.lexists(self.root / path)

    def is_submodule(self, folder: str) -> bool:
        return self.to_git(folder) in self.index.submodules

    def has_flag(self, path: str) -> bool:
        """True for `assume-unchanged` and `skip-worktree`."""
        name = self.to_git(path)
        return name in self.index.assumed_unchanged or name in self.index.skipped

    def find_absent_submodule(self, path: str) -> str:
        for folder in PurePosixPath(path).parents:
            if self.is_submodule(str(folder)):
                return str(folder)
        return ""


class _StepCommit(Struct, frozen=True):
    root: Path
    scratch: Path
    message: CommitMessage
    declares: Declares
    left_out: dict[str, str] = field(default_factory=dict)
    inside: dict[str, str] = field(default_factory=dict)
    prepared: list[_PreparedCommit] = field(default_factory=list)
    """In publishing order."""

    async def prepare(
        self, repository: _StepRepository, paths: Collection[str]
    ) -> str | None:
        repository.git.expect_at_rest()
        paths_here, nested = repository.split(paths)
        pointers = {}
        for folder, files in nested.items():
            if pointer := await self._prepare_nested(repository, folder, files):
                pointers[repository.to_git(folder)] = pointer
        draft = await CommitDraft.begin(repository.git)
        staged = await draft.staged()
        files = []
        for path in paths_here:
            if submodule := repository.find_absent_submodule(path):
                self.left_out[path] = f"the submodule {submodule} is not checked out"
            else:
                files.append(repository.to_git(path))
        changes = await draft.take(files, pointers, staged)
        entries = _add_staged(changes, files, staged)
        if held := self._find_held(repository, entries, staged):
            self.left_out.update(held)
            held_paths = {repository.to_git(path) for path in held}
            files = [file for file in files if file not in held_paths]
            changes = await draft.take(files, pointers, staged)
            entries = _add_staged(changes, files, staged)
        if not changes:
            return draft.base
        name = await draft.commit(self.message)
        prepared = _PreparedCommit(repository.folder, draft, entries, staged, name)
        self.prepared.append(prepared)
        return name

    async def publish(self) -> CommittedFiles:
        name = None
        for commit in self.prepared:
            try:
                await commit.draft.publish(
                    commit.entries,
                    commit.staged,
                    commit.name,
                    self.message.first_line,
                )
            except CommitRefused as error:
                raise self._add_published(error) from error
            if commit.folder:
                self.inside[commit.folder] = commit.name
            else:
                name = commit.name
        return CommittedFiles(name, self.inside, self.left_out)

    def _add_published(self, error: CommitRefused) -> CommitRefused:
        if not self.inside:
            return error
        commits = ", ".join(
            f"{folder} {name[:10]}" for folder, name in self.inside.items()
        )
        return CommitRefused(
            f"{error.message} Already committed in submodules: {commits}.",
            hint=f"{error.hint} Then commit the submodules' pointers yourself.".strip(),
        )

    async def _prepare_nested(
        self, outer: _StepRepository, folder: str, paths: Collection[str]
    ) -> str | None:
        """Prepare the commit in a nested repository. Returns the commit that the outer
        one must point to, or None if its pointer must not change.
        """
        if not outer.is_submodule(folder):
            reason = f"{folder} is a repository but not a submodule"
            self.left_out.update(dict.fromkeys(paths, reason))
            return None
        files = [path for path in paths if path != folder]
        if not files:
            return None
        prefix = f"{self.message.trailer.rpartition('/')[0]}/"
        try:
            inner = await outer.open_submodule(folder)
            await _expect_submodule_ready(outer, inner, [prefix])
            head = await self.prepare(inner, files)
        except CommitRefused as error:
            refusal = _in_submodule(error, folder)
            if any(self.declares(path) for path in files):
                raise refusal from error
            self.left_out.update(dict.fromkeys(files, refusal.message.rstrip(".")))
            return None
        if head is not None and all(one.folder != folder for one in self.prepared):
            # its commit was made before a kill
            commit = await _find_by_trailer(inner.git, self.message.trailer)
            if commit is not None:
                self.inside[folder] = commit
        return head

    def _find_held(
        self,
        repository: _StepRepository,
        entries: Sequence[Change],
        staged: Mapping[str, Change],
    ) -> dict[str, str]:
        held = {}
        for change in entries:
            path = repository.to_project(change.path)
            entry = staged.get(change.path)
            if change.path in repository.index.unmerged:
                held[path] = "it has conflicts"
            elif repository.has_flag(path):
                held[path] = _FLAGGED
            elif entry is not None:
                if entry.after != change.after and not self.declares(path):
                    held[path] = "it has staged changes"
            elif blocker := _find_blocker(change.path, staged):
                held[path] = f"{repository.to_project(blocker) or blocker} is staged"
        return held


class _PreparedCommit(Struct, frozen=True):
    folder: str
    """See `_StepRepository.folder`."""
    draft: CommitDraft
    entries: Sequence[Change]
    staged: Mapping[str, Change]
    name: str


async def _expect_repository_ready(
    repository: _StepRepository,
    paths: Collection[str],
    declares: Declares,
    trailers: Collection[str],
) -> None:
    git = repository.git
    git.expect_at_rest()
    await git.expect_identity()
    paths_here, nested = repository.split(paths)
    staged = await (await CommitDraft.begin(git)).staged()
    _expect_not_staged(repository, paths_here, staged, declares)
    _expect_no_flag(repository, paths_here)
    for folder, files in nested.items():
        if not repository.is_submodule(folder):
            continue
        try:
            inner = await repository.open_submodule(folder)
            await _expect_submodule_ready(repository, inner, trailers)
            await _expect_repository_ready(inner, files, declares, trailers)
        except CommitRefused as error:
            raise _in_submodule(error, folder) from error


def _expect_not_staged(
    repository: _StepRepository,
    paths: Collection[str],
    staged: Mapping[str, Change],
    declares: Declares,
) -> None:
    """Raise `CommitRefused` if a declared file has staged changes, or if another staged
    file blocks its path.
    """
    staged_paths = []
    for name in staged:
        path = repository.to_project(name)
        if path and (path in paths or declares(path)):
            staged_paths.append(path)
    for path in paths:
        if blocker := _find_blocker(repository.to_git(path), staged):
            staged_paths.append(repository.to_project(blocker) or blocker)
    if not staged_paths:
        return
    names = dict.fromkeys(staged_paths)
    command = f"git restore --staged {' '.join(map(quote_path, names))}"
    raise CommitRefused(
        "The step declares files with staged changes:"
        f" {sanitize_for_display(', '.join(names))}.",
        hint=f"Unstage them (`{command}`), or commit them. {OR_OFF}",
    )


def _expect_no_flag(repository: _StepRepository, paths: Collection[str]) -> None:
    """Raise `CommitRefused` if git is set not to compare one of the files. It may have
    changes that the user keeps out of commits.
    """
    for path in paths:
        if repository.has_flag(path) and repository.is_on_disk(path):
            command = "git update-index --no-assume-unchanged --no-skip-worktree"
            raise CommitRefused(
                f"The step declares {sanitize_for_display(path)}, but {_FLAGGED}"
                " (`assume-unchanged` or `skip-worktree`).",
                hint=f"Call `{command} {quote_path(path)}`. {OR_OFF}",
            )


async def _expect_submodule_ready(
    outer: _StepRepository, inner: _StepRepository, trailers: Collection[str]
) -> None:
    """Raise `CommitRefused` if the outer repository could not record a commit of the
    submodule.
    """
    folder = quote_path(inner.folder)
    branch = await inner.git.run("symbolic-ref", "--quiet", "HEAD")
    if branch.return_code:
        raise CommitRefused(
            "HEAD is detached (no branch is checked out).",
            hint=f"Check out a branch: `git -C {folder} switch main`. {OR_OFF}",
        )
    name = outer.to_git(inner.folder)
    staged = await (await CommitDraft.begin(outer.git)).staged()
    if name in staged:
        raise CommitRefused(
            "a different commit of it is staged.",
            hint=f"Commit that, or run `git restore --staged {folder}`. {OR_OFF}",
        )
    pointer, head = outer.index.submodules[name], await inner.git.head()
    if head == pointer or await _is_one_ahead(inner.git, pointer, trailers):
        return
    raise CommitRefused(
        "the commit that is checked out is not the one that the project records.",
        hint=(
            f"Commit {folder} in the project, or run `git submodule update {folder}`."
            f" {OR_OFF}"
        ),
    )


async def _is_one_ahead(
    git: CommitGit, pointer: str, trailers: Collection[str]
) -> bool:
    log = await git.run("log", "-1", *_LOG, "--format=%P%n%B", "HEAD", "--")
    parent, _, text = log.stdout.partition("\n")
    return parent == pointer and any(
        carries_prefix(text, trailer) for trailer in trailers
    )


async def _find_by_trailer(git: CommitGit, trailer: str) -> str | None:
    """See `already_committed`."""
    if await git.head() is None:
        return None
    which = ("--first-parent", f"--max-count={_SEARCHED_COMMITS}")
    log = await git.ask("log", "-z", *which, *_LOG, "--format=%H%n%B", "HEAD", "--")
    for entry in log.split("\0"):
        name, _, text = entry.partition("\n")
        if carries(text, trailer):
            return name
    return None


_LOG = ("--no-show-signature", "--no-patch", "--encoding=UTF-8")


async def _settle(repository: _StepRepository) -> None:
    await (await CommitDraft.begin(repository.git)).settle()
    for name in repository.index.submodules:
        folder = repository.to_project(name)
        if folder and repository.is_on_disk(f"{folder}/.git"):
            await _settle(await repository.open_submodule(folder))


def _add_staged(
    changes: Sequence[Change], files: Sequence[str], staged: Mapping[str, Change]
) -> list[Change]:
    changed = {change.path for change in changes}
    same = [
        Change(file, staged[file].after, staged[file].before)
        for file in files
        if file in staged and file not in changed
    ]
    return [*changes, *same]


def _find_blocker(path: str, staged: Mapping[str, Change]) -> str:
    """Return a staged file that needs a folder at the path, or vice versa, or an empty
    text.
    """
    for folder in _parents(path):
        if folder in staged and staged[folder].after is not None:
            return folder
    for other, change in staged.items():
        if change.after is not None and other.startswith(f"{path}/"):
            return other
    return ""


def _parents(path: str) -> Iterator[str]:
    return map(str, PurePosixPath(path).parents[:-1])


def _in_submodule(error: CommitRefused, folder: str) -> CommitRefused:
    text = f"The submodule {sanitize_for_display(folder)}: {error.message}"
    return type(error)(text, hint=error.hint)


def _check_path(text: str) -> str:
    """Raises `CommitRefused` for a path that git must not receive."""
    if not _is_committable(text):
        raise CommitRefused(f"{text!r} is not a file of the project.")
    return str(PurePosixPath(text))


def _is_committable(text: str) -> bool:
    path = PurePosixPath(text)
    leads_away = not path.parts or path.is_absolute() or ".." in path.parts
    is_internal = any(part.lower() == ".git" for part in path.parts)
    is_utf8 = text.encode(errors="replace").decode() == text
    return not (leads_away or is_internal or "\0" in text or not is_utf8)
