"""Repositories below a project: covered like the project, whatever their kind."""

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest

from cdd_agent.git.checkpoint import Checkpoint, Checkpoints
from cdd_agent.git.restore import CheckpointGone, RestoreResult
from tests.git.checkpoints import opened, restore, state, write
from tests.git.repositories import git
from tests.support.examples import IS_THOROUGH

START = {
    "changed.py": "one\ntwo\nthree\n",
    "deleted.py": "1\n",
    "old name.py": "a\nb\nc\nd\n",
    "mode.sh": "#!/bin/sh\n",
    "deep/er/ä.py": "1\n",
}


def fill(folder: Path) -> None:
    write(folder, dict(START))
    (folder / "link").symlink_to("changed.py")


def make_clone(folder: Path, name: str = "", *, with_commit: bool = True) -> Path:
    place = folder / name if name else folder
    git(folder, "init", "--quiet", str(place))
    fill(place)
    if with_commit:
        git(place, "add", "--all")
        git(place, "commit", "--quiet", "--message=one")
    return place


def in_itself(tmp: Path, project: Path) -> list[str]:
    make_clone(project)
    return [""]


def in_no_repository(tmp: Path, project: Path) -> list[str]:
    fill(project)
    return [""]


def submodule(tmp: Path, project: Path) -> list[str]:
    make_clone(tmp, "library")
    make_clone(project)
    git(project, "submodule", "--quiet", "add", str(tmp / "library"), "lib/core")
    git(project, "commit", "--quiet", "--message=two")
    return ["", "lib/core"]


def submodule_in_a_submodule(tmp: Path, project: Path) -> list[str]:
    make_clone(tmp, "base")
    library = make_clone(tmp, "library")
    git(library, "submodule", "--quiet", "add", str(tmp / "base"), "ba se")
    git(library, "commit", "--quiet", "--message=two")
    make_clone(project)
    git(project, "submodule", "--quiet", "add", str(library), "lib")
    git(project, "submodule", "--quiet", "update", "--init", "--recursive")
    return ["lib", "lib/ba se"]


def clone(tmp: Path, project: Path) -> list[str]:
    make_clone(project)
    make_clone(project, "sub/inner")
    return ["", "sub/inner"]


def clone_without_a_commit(tmp: Path, project: Path) -> list[str]:
    make_clone(project)
    make_clone(project, "inner", with_commit=False)
    return ["inner"]


def ignored_clone(tmp: Path, project: Path) -> list[str]:
    make_clone(project)
    write(project, {".gitignore": "/vendor/\n"})
    make_clone(project, "vendor/inner")
    return ["", "vendor/inner"]


def several_in_a_plain_folder(tmp: Path, project: Path) -> list[str]:
    fill(project)
    make_clone(project, "front")
    make_clone(project, "services/back", with_commit=False)
    return ["", "front", "services/back"]


def linked_worktree(tmp: Path, project: Path) -> list[str]:
    make_clone(project)
    git(project, "worktree", "add", "--quiet", "trees/feature")
    return ["", "trees/feature"]


def in_a_linked_worktree(tmp: Path, project: Path) -> list[str]:
    submodule(tmp, tmp / "first" if (tmp / "first").mkdir() is None else tmp)
    git(tmp / "first", "worktree", "add", "--quiet", str(project / "tree"))
    git(project / "tree", "submodule", "--quiet", "update", "--init")
    return ["", "lib/core"]


def below_the_top_of_a_repository(tmp: Path, project: Path) -> list[str]:
    make_clone(project)
    write(project, {"packages/app/x.py": "1\n"})
    fill(project / "packages/app")
    make_clone(project, "packages/app/inner")
    return ["", "inner"]


def sparse_checkout(tmp: Path, project: Path) -> list[str]:
    make_clone(project)
    write(project, {"elsewhere/x.py": "1\n"})
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "--message=two")
    git(project, "sparse-checkout", "set", "deep")
    make_clone(project, "sub/inner")
    return ["", "sub/inner"]


def clone_of_another_format(tmp: Path, project: Path) -> list[str]:
    make_clone(project)
    git(project, "init", "--quiet", "--object-format=sha256", "inner")
    fill(project / "inner")
    git(project / "inner", "add", "--all")
    git(project / "inner", "commit", "--quiet", "--message=one")
    return ["", "inner"]


Make = Callable[[Path, Path], list[str]]
KINDS: tuple[Make, ...] = (
    in_itself,
    in_no_repository,
    submodule,
    submodule_in_a_submodule,
    clone,
    clone_without_a_commit,
    ignored_clone,
    several_in_a_plain_folder,
    linked_worktree,
    in_a_linked_worktree,
    below_the_top_of_a_repository,
    sparse_checkout,
    clone_of_another_format,
)
ROOTS = {in_a_linked_worktree: "tree", below_the_top_of_a_repository: "packages/app"}


def modify(folder: Path) -> set[str]:
    write(folder, {"changed.py": "one\n2\nthree\n", "deep/er/ä.py": "2\n"})
    return {"changed.py", "deep/er/ä.py"}


def create(folder: Path) -> set[str]:
    write(folder, {"new.py": "1\n", "new/er/x.py": "1\n"})
    return {"new.py", "new/er/x.py"}


def delete(folder: Path) -> set[str]:
    write(folder, {"deleted.py": None, "deep": None})
    return {"deleted.py", "deep/er/ä.py"}


def rename(folder: Path) -> set[str]:
    (folder / "old name.py").rename(folder / "new name.py")
    return {"old name.py", "new name.py"}


def mode(folder: Path) -> set[str]:
    (folder / "mode.sh").chmod(0o755)
    (folder / "changed.py").chmod(0o600)
    return {"mode.sh", "changed.py"}


def symlink(folder: Path) -> set[str]:
    (folder / "link").unlink()
    (folder / "link").symlink_to("deleted.py")
    (folder / "deleted.py").unlink()
    (folder / "deleted.py").symlink_to("nowhere")
    return {"link", "deleted.py"}


def everything(folder: Path) -> set[str]:
    create(folder)
    rename(folder)
    (folder / "mode.sh").chmod(0o755)
    write(folder, {"changed.py": "one\n2\nthree\n"})
    return {
        *("new.py", "new/er/x.py", "old name.py", "new name.py"),
        *("mode.sh", "changed.py"),
    }


EDITS = (modify, create, delete, rename, mode, symlink, everything)


# seven kinds of change in each: most of the repositories have their turn in the slow
# tests
QUICK_KINDS = (in_itself, in_no_repository, submodule, clone, linked_worktree)
BY_COST = [
    pytest.param(kind, marks=() if kind in QUICK_KINDS else pytest.mark.fork)
    for kind in KINDS
]


def edits_for(make: Make) -> Sequence[Callable[[Path], set[str]]]:
    """Return the kinds of change to try: `make test` tries each in some of the
    repositories.
    """
    if IS_THOROUGH or make not in QUICK_KINDS:
        return EDITS
    return EDITS[QUICK_KINDS.index(make) % 2 :: 2]


@pytest.mark.parametrize("make", BY_COST, ids=lambda kind: kind.__name__)
async def test_every_kind_of_change_in_every_kind_of_repository(
    tmp_path: Path, make: Make
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    folders = make(tmp_path, project)
    root = project / ROOTS.get(make, "")
    for edit in edits_for(make):
        checkpoints = await opened(root)
        also = [f"{folder}/changed.py" for folder in folders if folder]
        before, was = await checkpoints.take("before", also), state(root)
        expected = {
            str(Path(folder, path))
            for folder in folders
            for path in edit(root / folder)
        }
        after, now = await checkpoints.take("after", also), state(root)
        name = (make.__name__, edit.__name__)

        # the owner saves checkpoints, and another process reads them
        saved = msgspec.json.encode([before, after])
        before, after = msgspec.json.decode(saved, type=list[Checkpoint])
        checkpoints = await opened(root)
        await checkpoints.take("later", also)
        changes = await checkpoints.changes(before, after)
        assert {change.path for change in changes} == expected, name
        diff = await checkpoints.diff(before, after)
        named = [path for path in expected if path not in diff]
        # permissions that git does not know are in no difference
        assert named == [path for path in named if edit is mode], name

        undone = await checkpoints.restore(changes)
        assert (undone.kept, undone.merged) == ((), ()), name
        assert state(root) == was, name
        await restore(checkpoints, after, before)
        assert state(root) == now, name
        assert (await restore(checkpoints, before, after)).kept == ()
        assert state(root) == was, name
        assert checkpoints.uncovered == {}, name


@pytest.mark.parametrize("make", [submodule, clone, linked_worktree])
async def test_the_users_view_of_a_repository_below_stays(
    tmp_path: Path, project: Path, make: Make
) -> None:
    inner = project / make(tmp_path, project)[-1]
    write(inner, {"changed.py": "staged\n"})
    git(inner, "add", "changed.py")

    def seen() -> list[str]:
        asked = (
            ["log", "--all", "--oneline"],
            ["--no-optional-locks", "status", "--porcelain"],
            ["stash", "list"],
            ["config", "--list"],
        )
        return [git(inner, *words) for words in asked]

    was = seen()
    checkpoints = await opened(project)
    before = await checkpoints.take("before")
    write(inner, {"changed.py": "2\n", "new.py": "1\n"})
    after = await checkpoints.take("after")
    assert (await restore(checkpoints, before, after)).restored

    assert seen() == was
    assert git(inner, "for-each-ref", "refs/cdd").count("before") >= 1
    git(inner, "gc", "--quiet", "--prune=now")
    await checkpoints.read(await checkpoints.changes(before, after))
    await checkpoints.forget("before")
    await checkpoints.rename("other")
    left = git(inner, "for-each-ref", "--format=%(refname)", "refs/cdd").split()
    assert {name.split("/")[3] for name in left} == {"other"}


async def test_edits_of_the_user_in_a_submodule_are_merged_or_kept(
    tmp_path: Path, project: Path
) -> None:
    submodule(tmp_path, project)
    inner = project / "lib/core"
    lines = "1\n2\n3\n4\n5\n"
    write(inner, {"merged.py": lines, "kept.py": lines})
    checkpoints = await opened(project)
    before = await checkpoints.take("before")
    write(inner, dict.fromkeys(("merged.py", "kept.py"), lines.replace("1", "one")))
    after = await checkpoints.take("after")
    write(inner, {"merged.py": "one\n2\n3\n4\nfive\n", "kept.py": "mine\n"})

    assert await restore(checkpoints, before, after) == RestoreResult(
        kept=("lib/core/kept.py",), merged=("lib/core/merged.py",)
    )
    assert (inner / "merged.py").read_text() == "1\n2\n3\n4\nfive\n"


async def test_files_and_ignored_files_of_a_submodule_are_found(
    tmp_path: Path, project: Path
) -> None:
    submodule(tmp_path, project)
    inner = project / "lib/core"
    write(inner, {".gitignore": "*.log\n", "x.log": "1\n"})
    checkpoints = await opened(project)
    before = await checkpoints.take("before", ["lib/core/x.log", "lib/core/y.log"])

    found = await checkpoints.find_files(
        before, ["changed.py", "lib/core/changed.py", "lib/core/x.log", "lib/missing"]
    )
    assert {path: bool(entry) for path, entry in found.items()} == {
        "changed.py": True,
        "lib/core/changed.py": True,
        "lib/core/x.log": True,
        "lib/missing": False,
    }
    missing = ["new.py", "lib/core/new.py", "lib/core/z.log"]
    assert await checkpoints.ignored(before, missing) == {"lib/core/z.log"}
    write(inner, {"x.log": "2\n", "y.log": "2\n"})
    after = await checkpoints.take("after")
    changes = await checkpoints.changes(before, after)
    assert await checkpoints.read(changes) == {
        "lib/core/x.log": (b"1\n", b"2\n"),
        "lib/core/y.log": (None, b"2\n"),
    }
    assert "+++ b/lib/core/y.log\n" in await checkpoints.diff(before, after)
    one = await checkpoints.diff(before, after, ["lib/core/x.log"])
    assert "x.log" in one
    assert "y.log" not in one
    async with checkpoints.contents(changes) as contents:
        ids = [change.after.content for change in changes if change.after]
        assert [b"".join(contents.chunks(name)) for name in ids] == [b"2\n"] * 2


# Repositories that come and go


async def test_a_clone_that_a_step_makes_is_left_alone_and_named(
    project: Path,
) -> None:
    make_clone(project)
    checkpoints = await opened(project)
    before = await checkpoints.take("before")
    make_clone(project, "made")
    write(project, {"changed.py": "2\n"})
    after = await checkpoints.take("after")
    was = state(project / "made")

    assert await restore(checkpoints, before, after) == RestoreResult(("changed.py",))
    assert state(project / "made") == was
    assert list(checkpoints.uncovered) == ["made"]
    # from now on it is covered
    write(project / "made", {"changed.py": "3\n"})
    later = await checkpoints.take("later")
    assert (await restore(checkpoints, after, later)).restored == (
        "changed.py",
        "made/changed.py",
    )


def remove_folder(project: Path) -> None:
    shutil.rmtree(project / "lib/core")


def deinit(project: Path) -> None:
    git(project, "submodule", "--quiet", "deinit", "--force", "lib/core")


def remove_submodule(project: Path) -> None:
    git(project, "rm", "--quiet", "--force", "lib/core")


def make_plain(project: Path) -> None:
    (project / "lib/core/.git").unlink()


@pytest.mark.parametrize("go", [remove_folder, deinit, remove_submodule, make_plain])
async def test_a_submodule_that_goes_is_named_and_all_else_is_undone(
    tmp_path: Path, project: Path, go: Callable[[Path], None]
) -> None:
    submodule(tmp_path, project)
    checkpoints = await opened(project)
    before = await checkpoints.take("before")
    write(project, {"changed.py": "2\n"})
    go(project)
    after = await checkpoints.take("after")
    was = {path for path in state(project) if path.startswith("lib/")}

    restored = (await restore(checkpoints, before, after)).restored
    assert {"changed.py"} <= set(restored) <= {"changed.py", ".gitmodules"}
    assert list(checkpoints.uncovered) == ["lib/core"]
    assert {path for path in state(project) if path.startswith("lib/")} == was
    assert not (await opened(project)).has_inner


async def test_changes_in_a_clone_that_was_removed_since_are_gone(
    project: Path,
) -> None:
    clone(project, project)
    checkpoints = await opened(project)
    before = await checkpoints.take("before")
    write(project / "sub/inner", {"changed.py": "2\n"})
    after = await checkpoints.take("after")
    shutil.rmtree(project / "sub/inner")
    await checkpoints.take("later")

    with pytest.raises(CheckpointGone):
        await checkpoints.changes(before, after)
    with pytest.raises(CheckpointGone):
        await (await opened(project)).diff(before, after)


# Repositories that cannot be covered


def damaged(tmp: Path, project: Path) -> None:
    make_clone(project, "bad")
    write(project, {"bad/.git/config": "[broken\n"})


def of_somebody_else(tmp: Path, project: Path) -> None:
    if os.name == "nt" or os.geteuid() != 0:
        pytest.skip("only root can give files away")
    make_clone(project, "bad")
    for place in (project / "bad", project / "bad/.git"):
        os.chown(place, 12345, 12345)


def outside(tmp: Path, project: Path) -> None:
    make_clone(tmp, "elsewhere")
    git(tmp / "elsewhere", "worktree", "add", "--quiet", str(project / "bad"))


def linked_outside(tmp: Path, project: Path) -> None:
    make_clone(project, "bad")
    (project / "bad/.git").rename(tmp / "elsewhere.git")
    (project / "bad/.git").symlink_to(tmp / "elsewhere.git")


def with_data_outside(tmp: Path, project: Path) -> None:
    make_clone(project, "bad")
    make_clone(tmp, "elsewhere")
    write(project, {"bad/.git/commondir": f"{tmp}/elsewhere/.git\n"})


@pytest.mark.parametrize(
    "make", [damaged, of_somebody_else, outside, linked_outside, with_data_outside]
)
async def test_a_repository_that_cannot_be_covered_is_reported_before_the_first_look(
    tmp_path: Path, project: Path, make: Callable[[Path, Path], None]
) -> None:
    make_clone(project)
    make(tmp_path, project)
    was_outside = state(tmp_path / "elsewhere"), state(tmp_path / "elsewhere.git")
    checkpoints = await opened(project)
    assert list(checkpoints.uncovered) == ["bad"]
    assert checkpoints.has_inner
    before = await checkpoints.take("before", ["bad/changed.py"])
    write(project, {"changed.py": "2\n", "bad/changed.py": "2\n"})
    after = await checkpoints.take("after", ["bad/changed.py"])

    assert await restore(checkpoints, before, after) == RestoreResult(("changed.py",))
    assert (project / "bad/changed.py").read_text() == "2\n"
    assert await checkpoints.ignored(before, ["bad/new.py"]) == {"bad/new.py"}
    assert was_outside == (
        state(tmp_path / "elsewhere"),
        state(tmp_path / "elsewhere.git"),
    )


async def test_a_damaged_repository_that_a_step_makes_stops_no_checkpoint(
    tmp_path: Path, project: Path
) -> None:
    make_clone(project)
    checkpoints = await opened(project)
    before = await checkpoints.take("before")
    damaged(tmp_path, project)
    write(project, {"changed.py": "2\n"})
    after = await checkpoints.take("after")

    assert await restore(checkpoints, before, after) == RestoreResult(("changed.py",))
    assert list(checkpoints.uncovered) == ["bad"]


def without_objects(place: Path) -> None:
    shutil.rmtree(place / ".git/objects")


def without_head(place: Path) -> None:
    (place / ".git/HEAD").unlink()


def with_a_torn_config(place: Path) -> None:
    (place / ".git/config").write_text("[broken\n")


@pytest.mark.parametrize("with_commit", [True, False])
@pytest.mark.parametrize("damage", [without_objects, without_head, with_a_torn_config])
async def test_a_repository_that_is_damaged_during_a_step_loses_no_files(
    project: Path, damage: Callable[[Path], None], with_commit: bool
) -> None:
    make_clone(project)
    inner = make_clone(project, "in/ner", with_commit=with_commit)
    checkpoints = await opened(project)
    before = await checkpoints.take("before")
    write(project, {"changed.py": "2\n"})
    write(inner, {"new.py": "1\n"})
    damage(inner)
    after, was = await checkpoints.take("after"), state(inner)

    restored = (await restore(checkpoints, before, after)).restored
    assert restored[0] == "changed.py"
    left = state(inner)
    assert left == was or {*was} - {*left} == {"new.py"}
    later = await (await opened(project)).take("later")
    assert await checkpoints.changes(before, later) == ()


async def test_an_ignored_clone_in_which_nothing_is_asked_for_is_let_be(
    tmp_path: Path, project: Path
) -> None:
    ignored_clone(tmp_path, project)
    checkpoints = await opened(project)
    assert not checkpoints.has_inner
    before = await checkpoints.take("before")
    write(project, {"vendor/inner/changed.py": "2\n"})
    after = await checkpoints.take("after")
    assert before.is_same(after)
    assert checkpoints.uncovered == {}


async def test_a_path_through_a_link_leads_to_no_repository(
    tmp_path: Path, project: Path
) -> None:
    make_clone(project)
    make_clone(tmp_path, "elsewhere")
    (project / "way").symlink_to(tmp_path / "elsewhere")
    checkpoints = await opened(project)
    await checkpoints.take("before", ["way/changed.py", "../elsewhere/changed.py"])
    assert not checkpoints.has_inner
    assert git(tmp_path / "elsewhere", "for-each-ref", "refs/cdd") == ""


async def test_what_is_left_out_is_left_out_below_too(
    tmp_path: Path, project: Path
) -> None:
    submodule(tmp_path, project)
    make_clone(project, "private/inner")
    leave_out = (".cdd/runs", "private", "lib/core/tickets", "**/.cdd-*.tmp")
    checkpoints = await Checkpoints.open(
        project, project / ".cdd/runs/login", "login", leave_out
    )
    before = await checkpoints.take("before", ["private/inner/changed.py"])
    write(project / "lib/core", {"tickets/a": "1\n", ".cdd-x.tmp": "1\n"})
    write(project, {"private/inner/changed.py": "2\n"})
    after = await checkpoints.take("after", ["private/inner/changed.py"])
    assert await checkpoints.changes(before, after) == ()
    assert list(before.inner) == ["lib/core"]


async def test_names_that_are_no_text_come_back_from_json(project: Path) -> None:
    if os.name == "nt":
        pytest.skip("names are text there")
    name = os.fsdecode(b"caf\xe9")
    make_clone(project)
    make_clone(project, name)
    odd = project / name / os.fsdecode(b"\xff.py")
    odd.write_text("1\n")
    odd.chmod(0o600)
    checkpoints = await opened(project)
    before = await checkpoints.take("before")
    odd.write_text("2\n")
    odd.chmod(0o640)
    after = await checkpoints.take("after")
    saved = msgspec.json.encode([before, after])
    before, after = msgspec.json.decode(saved, type=list[Checkpoint])

    restored = (await restore(await opened(project), before, after)).restored
    assert restored == (f"{name}/{odd.name}",)
    assert (odd.read_text(), odd.stat().st_mode & 0o777) == ("1\n", 0o600)
