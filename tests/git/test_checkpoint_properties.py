"""Whatever a step does to a project, it is restored whole; and whatever a person does
afterwards, it stays.
"""

import asyncio
import os
import shutil
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.git.checkpoints import opened, restore, state
from tests.git.repositories import git
from tests.support.examples import fewer

PATHS = ("a", "a/b", "a/b/c", "b", "b/a", "c d", "x.sh", "x.sh/y")
CONTENTS = st.one_of(
    st.sampled_from([b"", b"1\n", b"1\r\n", b"\0\xff"]), st.binary(max_size=20)
)
Edit = tuple[str, str, bytes]
KINDS = ("write", "write", "remove", "link", "mode", "folder")
EDITS = st.lists(
    st.tuples(st.sampled_from(KINDS), st.sampled_from(PATHS), CONTENTS), max_size=8
)


def apply(root: Path, edits: list[Edit]) -> None:
    """As commands would: what is in the way is replaced."""
    for kind, path, content in edits:
        place = root / path
        if kind == "mode":
            if place.is_file() and not place.is_symlink():
                place.chmod((0o644, 0o755, 0o600, 0o700)[len(content) % 4])
            continue
        for parent in reversed([place, *place.parents]):
            if parent.is_relative_to(root) and (
                parent.is_symlink() or parent.is_file()
            ):
                parent.unlink()
        if place.is_dir():
            shutil.rmtree(place)
        if kind == "remove":
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        if kind == "write":
            place.write_bytes(content)
        elif kind == "link":
            place.symlink_to(("nowhere", "b", "..", "a/b")[len(content) % 4])
        else:
            place.mkdir()


PLACES = st.sampled_from(("plain", "repository", "clone in a repository", "clone"))
"""What a project is, and where the changes are."""


def project(folder: str, place: str) -> tuple[Path, Path]:
    """Make a project; return its root and the folder in which files change."""
    root = Path(folder).resolve() / "project"
    root.mkdir()
    if "repository" in place:
        git(root, "init", "--quiet")
    if "clone" not in place:
        return root, root
    git(root, "init", "--quiet", "in/ner")
    return root, root / "in/ner"


@fewer(8)
@given(start=EDITS, step=EDITS, place=PLACES)
def test_a_step_is_taken_back_and_done_again(
    start: list[Edit], step: list[Edit], place: str
) -> None:
    async def story(root: Path, inside: Path) -> None:
        apply(inside, start)
        checkpoints = await opened(root)
        before, was = await checkpoints.take("before"), state(root)
        apply(inside, step)
        after, now = await checkpoints.take("after"), state(root)

        assert (await restore(checkpoints, before, after)).kept == ()
        assert state(root) == was
        assert (await restore(checkpoints, after, before)).kept == ()
        assert state(root) == now

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(story(*project(folder, place)))


@fewer(8)
@given(start=EDITS, step=EDITS, person=EDITS, place=PLACES)
def test_what_a_person_touched_stays_and_all_else_comes_back(
    start: list[Edit], step: list[Edit], person: list[Edit], place: str
) -> None:
    async def story(root: Path, inside: Path) -> None:
        apply(inside, start)
        checkpoints = await opened(root)
        before, was = await checkpoints.take("before"), state(root)
        apply(inside, step)
        after, now = await checkpoints.take("after"), state(root)
        apply(inside, person)
        theirs = state(root)

        taken = await restore(checkpoints, before, after)
        left = state(root)
        for path in was.keys() | now.keys() | theirs.keys():
            if path in taken.merged:
                continue
            if theirs.get(path) != now.get(path):
                assert_left_alone(path, was, now, theirs, left, taken.kept)
            elif left.get(path) != was.get(path):
                # something of the person's is where it has to go
                assert path in taken.kept
                assert any(is_in_the_way(other, path) for other in left)

        again = await restore(checkpoints, before, after)
        assert (again.kept, state(root)) == (taken.kept, left)

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(story(*project(folder, place)))


State = dict[str, tuple[str, object]]


def assert_left_alone(
    path: str, was: State, now: State, theirs: State, left: State, kept: tuple[str, ...]
) -> None:
    """A file that a person touched is as they left it, and named unless that is what it
    was before.

    Permissions alone are the person's only where the step changed nothing but
    permissions.
    """
    mine, before, mode = theirs.get(path), was.get(path), now.get(path)
    if same_but_for_permissions(mine, mode):
        return
    assert left.get(path) == mine or (
        mine is None and left.get(path) == before and before == mode is None
    )
    assert path in kept or mode == before or same_but_for_permissions(mine, before)


def same_but_for_permissions(
    one: tuple[str, object] | None, other: tuple[str, object] | None
) -> bool:
    if one is None or other is None:
        return one is other
    return one[1] == other[1] and is_executable(one[0]) == is_executable(other[0])


def is_executable(mode: str) -> bool | str:
    return mode if mode == "link" else bool(int(mode, 8) & 0o100)


def is_in_the_way(other: str, path: str) -> bool:
    return (
        other.startswith(f"{path}{os.sep}")
        or path.startswith(f"{other}{os.sep}")
        or other == path
    )
