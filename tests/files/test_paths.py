"""Where a project ends."""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cdd_agent.files.paths import PathRefused, confine, confine_folder, find_root
from tests.support.tables import each_row

OUTSIDE = [
    "/etc/passwd",
    "//server/share",
    "\\\\server\\share\\x",
    "C:\\Windows\\x",
    "c:/x",
    "D:x",
    "~/x",
    "..",
    "../app-evil/x",
    "a/../../x",
    "a/..\\..\\x",
    "",
    " ",
    " a",
    "a ",
    ".",
    "./",
    "a\nb",
    "a\0b",
    "x" * 1001,
]


@each_row("text", OUTSIDE)
def test_what_leaves_the_project_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(PathRefused):
        confine(tmp_path, text)


@each_row(
    ("text", "path"),
    [
        ("a.py", "a.py"),
        ("./a/b.py", "a/b.py"),
        ("a\\b.py", "a/b.py"),
        ("mit Leer zeichen/ä.py", "mit Leer zeichen/ä.py"),
    ],
)
def test_what_stays_inside_is_relative_to_the_project(
    tmp_path: Path, text: str, path: str
) -> None:
    assert confine(tmp_path, text) == PurePosixPath(path)


def test_a_link_that_leads_outside_is_refused(tmp_path: Path) -> None:
    root, outside = tmp_path / "app", tmp_path / "app-evil"
    root.mkdir()
    outside.mkdir()
    (root / "link").symlink_to(outside)
    (root / "inner").mkdir()
    (root / "fine").symlink_to(root / "inner")

    with pytest.raises(PathRefused, match="link"):
        confine(root, "link/x.py")
    assert confine(root, "fine/x.py") == PurePosixPath("fine/x.py")


@each_row(
    ("text", "path"),
    [
        ("", "."),
        (".", "."),
        ("./", "."),
        ("a", "a"),
        ("a/./b/", "a/b"),
        ("a\\b", "a/b"),
        ("a/../b", "b"),
        ("a/..", "."),
        ("missing/../b", "b"),
        ("../app/a", "a"),
        ("fine", "a"),
        ("fine/../b", "b"),
        ("mit Leer zeichen", "mit Leer zeichen"),
        ("..a", "..a"),
    ],
)
def test_a_folder_inside_is_relative_to_the_project_with_its_links_resolved(
    tmp_path: Path, text: str, path: str
) -> None:
    root = tmp_path / "app"
    (root / "a").mkdir(parents=True)
    (root / "fine").symlink_to("a")
    assert confine_folder(root, text) == PurePosixPath(path)


OUTSIDE_FOLDERS = [
    *[text for text in OUTSIDE if text not in ("", ".", "./", "a/../../x")],
    *(
        "a/../..",
        "../..",
        "../app-evil",
        "link",
        "link/x",
        "a/../link",
        "link/../app-evil",
        "C:",
        "C:\\",
        "C:foo",
    ),
    *(
        "\\\\?\\C:\\x",
        "//x",
        "~",
        "~root",
        "/",
        "\\x",
        "file.txt",
        "file.txt/x",
        "a/..\\..",
        "...\\..\\..",
        "\ud800",
    ),
]


@each_row("text", OUTSIDE_FOLDERS)
def test_a_folder_that_leaves_the_project_or_is_none_is_refused(
    tmp_path: Path, text: str
) -> None:
    root, outside = tmp_path / "app", tmp_path / "app-evil"
    (root / "a").mkdir(parents=True)
    outside.mkdir()
    (root / "link").symlink_to(outside)
    (root / "file.txt").touch()
    with pytest.raises(PathRefused):
        confine_folder(root, text)


def test_a_root_behind_a_link_is_the_folder_that_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "real/inner").mkdir(parents=True)
    (tmp_path / "root").symlink_to("real")
    assert confine_folder(tmp_path / "root", "inner") == PurePosixPath("inner")
    with pytest.raises(PathRefused):
        confine_folder(tmp_path / "root", "..")


@each_row("judge", [confine, confine_folder])
@each_row("text", ["a", "b/x", "self", "self/x/y", "into"])
def test_links_in_a_circle_are_refused(
    tmp_path: Path, judge: Callable[[Path, str], PurePosixPath], text: str
) -> None:
    for name, target in {"a": "b", "b": "a", "self": "self", "into": "self/x"}.items():
        (tmp_path / name).symlink_to(target)
    with pytest.raises(PathRefused, match="cannot be used"):
        judge(tmp_path, text)


@given(
    st.text(alphabet=st.sampled_from("./\\~:aA \0\n-é"), max_size=30)
    | st.text(max_size=40)
)
@example("a/../..")
def test_any_text_is_inside_or_refused(text: str) -> None:
    root = Path("/tmp") / f"cdd-any-{os.getpid()}"
    try:
        path = confine(root, text)
    except PathRefused:
        return
    assert (root / path).resolve().is_relative_to(root.resolve())
    assert (root / path).resolve() != root.resolve()


@given(
    st.text(alphabet=st.sampled_from("./\\~:aA \0\n-é"), max_size=30)
    | st.text(max_size=40)
)
@example("a/../..")
def test_any_folder_is_inside_or_refused(text: str) -> None:
    root = Path("/tmp") / f"cdd-any-{os.getpid()}"
    with contextlib.suppress(PathRefused):
        assert (
            (root / confine_folder(root, text)).resolve().is_relative_to(root.resolve())
        )


def test_the_root_is_the_nearest_cdd_folder_then_git_then_here(tmp_path: Path) -> None:
    inner = tmp_path / "repo" / "package" / "deep"
    inner.mkdir(parents=True)
    assert find_root(inner) == inner
    (tmp_path / "repo" / ".git").mkdir()
    assert find_root(inner) == tmp_path / "repo"
    (tmp_path / "repo" / "package" / ".cdd").mkdir()
    assert find_root(inner) == tmp_path / "repo" / "package"


@each_row("text", ["a/../b", "a/b/..", "a/./../b"])
def test_a_path_that_goes_up_is_refused_also_where_it_stays_inside(
    tmp_path: Path, text: str
) -> None:
    with pytest.raises(PathRefused, match=r"contains `\.\.`"):
        confine(tmp_path, text)
