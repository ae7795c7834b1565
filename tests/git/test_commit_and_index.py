"""The user's index and the commits of steps: whatever the index says of a file of the
step, the user's next commit neither reverts the step nor loses what they staged.
"""

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pytest

from cdd_agent.git.commit import commit_files, expect_ready
from cdd_agent.git.commit_git import CommitRefused
from cdd_agent.git.commit_message import CommitMessage
from tests.git.repositories import git
from tests.support.examples import IS_THOROUGH
from tests.support.tables import each_row

MESSAGE = CommitMessage("A step", "Of a ticket.", "Cdd-Step: feature-x/1/1")
HEAD, STAGED, STEP = "as committed\n", "as staged\n", "as the step wrote it\n"


@dataclass(frozen=True)
class Place:
    """A project and the repository that its files are in."""

    root: Path
    repository: Path
    inside: str = ""
    """The folder of the files in the project, with a slash at the end."""

    @property
    def folder(self) -> Path:
        return self.root / self.inside

    def entries(self) -> dict[str, list[str]]:
        """The entries of the index, with flags, by the path in the project."""
        found: dict[str, list[str]] = {}
        listing = git(self.folder, "ls-files", "--stage", "-v", "-z")
        for entry in filter(None, listing.split("\0")):
            what, _, name = entry.partition("\t")
            found.setdefault(self.inside + name, []).append(what)
        return found

    def committed(self) -> dict[str, str]:
        """Mode and content of each file in the last commit."""
        found = {}
        listing = git(self.folder, "ls-tree", "-r", "-z", "HEAD", ".")
        for entry in filter(None, listing.split("\0")):
            what, _, name = entry.partition("\t")
            mode, _, content = what.split()
            found[self.inside + name] = f"{mode} {content}"
        return found


def start(root: Path) -> Path:
    root.mkdir(parents=True)
    git(root, "init", "--quiet", "--initial-branch=main")
    git(root, "config", "user.name", "Ann")
    git(root, "config", "user.email", "ann@example.org")
    (root / "other.txt").write_text(HEAD)
    commit_all(root)
    return root


def commit_all(root: Path) -> None:
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message=theirs")


def plain(folder: Path) -> Place:
    root = start(folder / "project")
    return Place(root, root)


def split_index(folder: Path) -> Place:
    place = plain(folder)
    git(place.root, "config", "core.splitIndex", "true")
    git(place.root, "update-index", "--split-index")
    return place


def subfolder(folder: Path) -> Place:
    repository = start(folder / "project")
    root = repository / "packages" / "app"
    root.mkdir(parents=True)
    return Place(root, repository)


def worktree(folder: Path) -> Place:
    first = start(folder / "first")
    git(first, "worktree", "add", "--quiet", "-b", "side", "../project")
    return Place(folder / "project", folder / "project")


def submodule(folder: Path) -> Place:
    root = add_submodule(start(folder / "project"), "lib/core")
    return Place(root, root / "lib/core", "lib/core/")


def add_submodule(root: Path, path: str) -> Path:
    """Add a submodule that has its branch `main` checked out."""
    source = start(root.parent / f"source of {path.replace('/', ' ')}")
    git(root, "submodule", "--quiet", "add", str(source), path)
    for name, value in (("user.name", "Ann"), ("user.email", "ann@example.org")):
        git(root / path, "config", name, value)
    commit_all(root)
    return root


KINDS = (plain, split_index, subfolder, worktree, submodule)


# The states of a path in the index


def stage(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    git(folder, "add", "--", name)


def unmerge(folder: Path, name: str) -> None:
    content = git(folder, "rev-parse", f"HEAD:./{name}")
    path = git(folder, "rev-parse", "--show-prefix") + name
    entries = [f"0 {'0' * 40}\t{path}"]
    entries += [f"100644 {content} {number}\t{path}" for number in (1, 2, 3)]
    subprocess.run(
        ["git", "update-index", "--index-info"],
        cwd=git(folder, "rev-parse", "--show-toplevel"),
        input="\n".join(entries) + "\n",
        text=True,
        check=True,
    )


def rename(folder: Path, name: str) -> None:
    git(folder, "mv", f"source-{name}", name)


TRACKED = {
    "clean": lambda folder, name: None,
    "staged older": lambda folder, name: stage(folder, name, STAGED),
    "staged deletion": lambda folder, name: git(folder, "rm", "-q", "--cached", name),
    "unmerged": unmerge,
    "assume-unchanged": lambda folder, name: git(
        folder, "update-index", "--assume-unchanged", name
    ),
    "skip-worktree": lambda folder, name: git(
        folder, "update-index", "--skip-worktree", name
    ),
    "taken for new again": lambda folder, name: [
        git(folder, "rm", "-q", "--cached", name),
        git(folder, "add", "--intent-to-add", name),
    ],
}
NEW: dict[str, Callable[[Path, str], object]] = {
    "absent": lambda folder, name: None,
    "intent-to-add": lambda folder, name: git(folder, "add", "--intent-to-add", name),
    "staged new": lambda folder, name: stage(folder, name, STAGED),
    "staged rename": rename,
}
NEVER_COMMITTED = {"unmerged", "assume-unchanged", "skip-worktree"}
NOT_STAGED = {"clean", "absent"}
CHANGES = ("written", "deleted")


@dataclass(frozen=True)
class Row:
    state: str
    change: str
    is_declared: bool

    @property
    def is_left_out(self) -> bool:
        """True if the user's work in the index would be lost otherwise."""
        if self.state in NEVER_COMMITTED:
            return True
        is_as_staged = self.state == "staged deletion" and self.change == "deleted"
        is_staged = self.state not in NOT_STAGED and not is_as_staged
        return is_staged and not self.is_declared

    @property
    def name(self) -> str:
        declared = "declared" if self.is_declared else "undeclared"
        return f"{self.state}-{self.change}-{declared}".replace(" ", "_")


ROWS = [Row(*values) for values in product((*TRACKED, *NEW), CHANGES, (True, False))]


def prepare(place: Place) -> None:
    """Put each row's file into the state that the row names."""
    for row in ROWS:
        if row.state in TRACKED:
            (place.folder / row.name).write_text(HEAD + row.name)
        if row.state == "staged rename":
            (place.folder / f"source-{row.name}").write_text(HEAD + row.name)
    commit_all(place.repository)
    if place.inside:
        commit_all(place.root)
    for row in ROWS:
        if row.state in ("absent", "intent-to-add"):
            (place.folder / row.name).write_text("the user's\n")
        {**TRACKED, **NEW}[row.state](place.folder, row.name)


def carry_out(place: Place) -> None:
    for row in ROWS:
        if row.change == "deleted":
            (place.folder / row.name).unlink()
        else:
            (place.folder / row.name).write_text(STEP + row.name)


@pytest.fixture(autouse=True)
def no_settings(isolate_from_user: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
async def test_the_users_next_commit_loses_neither_the_step_nor_what_they_staged(
    kind: Callable[[Path], Place], tmp_path: Path
) -> None:
    place = kind(tmp_path)
    prepare(place)
    entries, before = place.entries(), place.committed()
    carry_out(place)
    declared = {place.inside + row.name for row in ROWS if row.is_declared}

    done = await commit_files(
        place.root,
        [place.inside + row.name for row in ROWS],
        MESSAGE,
        declared.__contains__,
    )

    assert sorted(done.left_out) == sorted(
        place.inside + row.name for row in ROWS if row.is_left_out
    )
    after, committed = place.entries(), place.committed()
    wrong = []
    for row in ROWS:
        path = place.inside + row.name
        if row.is_left_out:
            if entries.get(path) != after.get(path):
                wrong.append((row, "left out, and its entry has changed"))
            if before.get(path) != committed.get(path):
                wrong.append((row, "left out, and committed"))
            continue
        if (path in committed) is (row.change == "deleted"):
            wrong.append((row, "the last commit does not have it"))
        if path in committed and committed[path] == before.get(path):
            wrong.append((row, "the last commit has the old content"))
        in_head = [f"H {committed[path]} 0"] if path in committed else []
        if after.get(path, []) != in_head:
            wrong.append((row, "its entry differs from the commit"))
    assert not wrong

    for row in ROWS:  # the user solves the conflicts
        if row.state == "unmerged":
            git(place.folder, "add", "--all", "--", row.name)
    (place.repository / "other.txt").write_text("the user's next work\n")
    git(place.repository, "add", "other.txt")
    git(place.repository, "commit", "--quiet", "--message=next")

    later = place.committed()
    for row in ROWS:
        path = place.inside + row.name
        if not row.is_left_out and later.get(path) != committed.get(path):
            wrong.append((row, "the next commit changes it"))
    assert not wrong
    assert git(place.repository, "for-each-ref", "refs/worktree") == ""


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
async def test_a_declared_file_with_staged_changes_is_refused_before_the_step(
    kind: Callable[[Path], Place], tmp_path: Path
) -> None:
    place = kind(tmp_path)
    prepare(place)
    wrong = []
    states = (*TRACKED, *NEW)
    if not IS_THOROUGH and kind is not plain:
        states = states[::3]
    for state in states:
        path = place.inside + Row(state, "written", is_declared=True).name
        for paths, declares in (
            ([path], lambda _: False),
            ([], lambda other, path=path: other == path),
        ):
            is_flagged = state in NEVER_COMMITTED - {"unmerged"}
            is_fine = state in NOT_STAGED or (is_flagged and not paths)
            try:
                # a path that exists leads into the submodule
                known = [*paths, f"{place.inside}other.txt"]
                await expect_ready(place.root, known, declares)
            except CommitRefused as refusal:
                if is_fine or path not in refusal.message or "off" not in refusal.hint:
                    wrong.append((state, refusal))
            else:
                if not is_fine:
                    wrong.append((state, "not refused"))
    assert not wrong


SPARSE = {
    "cone": ("--cone", "src"),
    "sparse index": ("--cone", "--sparse-index", "src"),
    "patterns": ("--no-cone", "/src/"),
}


@each_row("arguments", SPARSE.values(), ids=SPARSE)
async def test_in_a_sparse_checkout_the_other_files_stay_in_the_commit(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    root = start(tmp_path / "project")
    for name in ("src/a.txt", "old/b.txt", "old/deep/c.txt"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(HEAD)
    commit_all(root)
    git(root, "sparse-checkout", "set", *arguments)
    flags = git(root, "ls-files", "-t", "old")
    (root / "old").mkdir()
    for name in ("src/a.txt", "old/new.txt", "src/new.txt"):
        (root / name).write_text(STEP)

    await commit_files(root, ["src/a.txt", "old/new.txt", "src/new.txt"], MESSAGE)

    changed = git(root, "show", "--format=", "--name-status", "HEAD").splitlines()
    assert changed == ["A\told/new.txt", "M\tsrc/a.txt", "A\tsrc/new.txt"]
    assert git(root, "status", "--porcelain") == ""
    lines = git(root, "ls-files", "-t", "old").splitlines()
    assert [line for line in lines if "new" not in line] == flags.splitlines()
    (root / "src/a.txt").write_text("the user's\n")
    git(root, "commit", "--quiet", "--all", "--message=next")
    assert git(root, "show", "--format=", "--name-only", "HEAD") == "src/a.txt"
