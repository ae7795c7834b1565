"""The context of a project; and that looking at a project never opens anything outside
it.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cdd_agent.errors import CddError
from cdd_agent.files.paths import PathRefused
from cdd_agent.files.read import read_source
from cdd_agent.project.context import (
    FileContext,
    entries,
    plain_tree,
    project_context,
    repo_tree,
)
from cdd_agent.project.search import glob_files, list_files
from tests.support.tables import each_row


def touch(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    return root


# The whole


def test_a_context_is_the_tree_the_place_and_the_files_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = touch(tmp_path / "shop", "src/app.py", "src/b.log", "README.md")
    (root / "src/app.py").write_text("x = 1")
    (root / ".gitignore").write_text("*.log\n")
    subprocess.run(
        ["git", "init", "--quiet", "--initial-branch=trunk", str(root)], check=True
    )
    monkeypatch.setenv("SHELL", "/usr/bin/zsh")

    context = project_context(root, ["src/app.py", "./src", "nothing.py", "src/app.py"])

    assert context.repo_tree.split() == [
        *(
            "shop/",
            "├──",
            ".gitignore",
            "├──",
            "README.md",
            "└──",
            "src/",
            "└──",
            "app.py",
        ),
    ]
    assert context.gitignore_content == "*.log\n"
    assert context.environment_info.git == "branch trunk"
    assert context.environment_info.shell == "zsh"
    assert context.environment_info.cwd == str(root)
    assert context.environment_info.python == ".".join(map(str, sys.version_info[:3]))
    assert context.file_contexts == (
        FileContext("src/app.py", "x = 1", "found"),
        FileContext("src", "app.py\n", "found"),
        FileContext("nothing.py", None, "not_found"),
        FileContext("src/app.py", "x = 1", "found"),
    )


def test_as_json_it_is_plain_values(tmp_path: Path) -> None:
    context = project_context(touch(tmp_path, "a.py"), ["a.py", "b.py"])
    data = json.loads(json.dumps(context.to_json()))
    assert list(data) == [
        "repo_tree",
        "environment_info",
        "gitignore_content",
        "file_contexts",
        "hidden_files",
    ]
    assert set(data["environment_info"]) == {"os", "python", "shell", "cwd", "git"}
    assert data["file_contexts"] == [
        {"file_path": "a.py", "content": "", "status": "found", "problem": ""},
        {"file_path": "b.py", "content": None, "status": "not_found", "problem": ""},
    ]


def test_as_text_it_is_markdown_whatever_the_files_hold(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("````python\nx = 1\n````")
    text = project_context(tmp_path, ["a.md", "b.md"]).as_text()
    assert text.endswith("## a.md\n\n`````\n````python\nx = 1\n````\n`````\n")
    assert text.startswith("## b.md\n\nNo such file.\n\n## Environment\n\n- os: ")
    assert "## .gitignore" not in text


def test_what_cannot_be_read_is_found_has_no_content_and_says_why(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.png").write_bytes(b"\x89PNG\0")
    touch(tmp_path, ".env")
    os.mkfifo(tmp_path / "pipe")
    context = project_context(tmp_path, ["a.png", ".env", "pipe"])
    assert {(file.status, file.content) for file in context.file_contexts} == {
        ("found", None)
    }
    assert [
        file.problem.split()[0] for file in context.file_contexts if file.problem
    ] == ["a.png", ".env", "pipe"]
    assert f"## pipe\n\n({context.file_contexts[2].problem})\n" in context.as_text()


def test_a_long_file_is_cut_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x\n" * 100_000)
    (tmp_path / ".gitignore").write_text("# x\n" * 10_000)
    context = project_context(tmp_path, ["a"])
    assert (context.file_contexts[0].content or "").splitlines()[-1].startswith("… ")
    assert context.gitignore_content.splitlines()[-1].startswith("… ")
    assert len(context.gitignore_content) < 11_000


@each_row("text", ["../x", "/etc/passwd", "", "a\0b"])
def test_a_path_outside_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(PathRefused):
        project_context(tmp_path, ["a.py", text])


def test_without_a_repository_or_git_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert project_context(tmp_path).environment_info.git == "no repository"
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("SHELL", raising=False)
    environment = project_context(tmp_path).environment_info
    assert (environment.git, environment.shell) == ("not installed", "unknown")


# The tree


def test_a_folder_with_many_entries_is_cut_and_counts_the_rest(tmp_path: Path) -> None:
    touch(tmp_path / "p", "z/y", *(f"a/{number:04}" for number in range(1_203)))
    lines = repo_tree(tmp_path / "p").splitlines()
    assert lines[:3] == ["p/", "├── a/", "│   ├── 0000"]
    assert lines[-4:] == [
        "│   ├── 0199",
        "│   └── … and 1,003 more",
        "└── z/",
        "    └── y",
    ]


def test_levels_that_do_not_fit_are_summed_up(tmp_path: Path) -> None:
    names = [f"{a}/{b}/{c:02}" for a in "abcd" for b in "efgh" for c in range(100)]
    lines = repo_tree(
        touch(tmp_path / "p", *names, "a/e/deep/er/x", "one/two/three")
    ).splitlines()
    assert lines[:4] == [
        "p/",
        "├── a/",
        "│   ├── e/ (101 files)",
        "│   ├── f/ (100 files)",
    ]
    assert lines[-2:] == ["└── one/", "    └── two/ (1 file)"]
    assert len(lines) == 1 + 4 * 5 + 2


def test_a_project_of_ten_thousand_files_still_fits(tmp_path: Path) -> None:
    touch(
        tmp_path,
        *(f"{number % 100:02}/{number % 7}/{number}.py" for number in range(10_000)),
    )
    lines = repo_tree(tmp_path).splitlines()
    assert len(lines) <= 1_001
    shown = sum(
        int(line.partition("(")[2].partition(" ")[0])
        for line in lines
        if line.endswith("files)")
    )
    assert shown == 10_000


def test_deep_folders_and_odd_names_do_no_harm(tmp_path: Path) -> None:
    touch(tmp_path, "/".join("d" * 200) + "/x", "two\nlines", os.fsdecode(b"caf\xe9"))
    (tmp_path / "link").symlink_to("..")
    lines = repo_tree(tmp_path).splitlines()
    assert lines[1] == "├── caf\ufffd"
    assert lines[-3] == "│   " + "    " * 28 + "└── d/ (1 file)"
    assert lines[-2:] == ["├── link (link)", "└── two␊lines"]


def test_without_drawn_lines_it_is_cut_to_what_is_wanted(tmp_path: Path) -> None:
    touch(tmp_path, *(f"a/{number:04}" for number in range(1_203)), "b/c/d")
    found = entries(tmp_path)
    assert plain_tree(found, 1_000).splitlines()[-5:] == [
        "  0199",
        "  … and 1,003 more",
        "b/",
        "  c/",
        "    d",
    ]
    assert plain_tree(found, 200) == "a/ (1,203 files)\nb/ (1 file)\n"


def test_an_empty_project_has_an_empty_tree(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    assert repo_tree(tmp_path / "p") == "p/\n"


# Nothing outside is opened


OPENED: list[str] = []
WATCHED: list[bool] = []


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if not WATCHED or event not in (
        "open",
        "os.scandir",
        "os.listdir",
        "subprocess.Popen",
    ):
        return
    if not isinstance(arguments[0], int):  # a file that is open already
        OPENED.append(os.fsdecode(arguments[0]))  # type: ignore[arg-type]


sys.addaudithook(_note)  # for good: there is no taking it back


@contextmanager
def watched() -> Iterator[list[str]]:
    OPENED.clear()
    WATCHED.append(True)
    try:
        yield OPENED
    finally:
        WATCHED.pop()


@pytest.fixture(scope="module")
def trap(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project full of ways out, beside a folder that must not be opened."""
    outside = touch(tmp_path_factory.mktemp("app-evil"), "secret.txt", "sub/secret.txt")
    root = touch(outside.parent / "app", "a.py", "sub/b.py", "x y", "..a", "~", "C:")
    (root / "out").symlink_to(outside)
    (root / "sub" / "up").symlink_to("../..")
    (root / "file").symlink_to(outside / "secret.txt")
    (root / "inner").symlink_to("sub")
    (root / "loop").symlink_to("loop")
    os.mkfifo(root / "pipe")
    (root / "topipe").symlink_to("pipe")
    return root


PIECES = [
    "..",
    ".",
    "/",
    "\\",
    "out",
    "sub",
    "up",
    "file",
    "inner",
    "loop",
    "pipe",
    "topipe",
    "secret.txt",
    "a.py",
    "~",
]
PIECES += [
    "app-evil0",
    "C:",
    "\0",
    "\n",
    " ",
    "*",
    "**",
    "?",
    "{",
    "}",
    ",",
    "[",
    "]",
    "é",
    "\ud800",
    "\udcff",
    "x" * 300,
]
PATHS = st.lists(st.sampled_from(PIECES), max_size=8).map("".join) | st.lists(
    st.sampled_from(PIECES)
).map("/".join)
LOOKS: dict[str, Callable[[Path, str], object]] = {
    "read": read_source,
    "list": list_files,
    "glob": glob_files,
    "context": lambda root, text: project_context(root, [text]),
}


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
@given(text=PATHS | st.text(max_size=30))
@example("out/secret.txt")
@example("sub/up/app-evil0/secret.txt")
@example("inner/../../app-evil0/secret.txt")
@example("{out,sub}/*")
@example("topipe")
def test_whatever_is_asked_for_nothing_outside_is_opened(
    trap: Path, look: Callable[[Path, str], object], text: str
) -> None:
    with watched() as opened, suppress(CddError):
        look(trap, text)

    for place in opened:
        inside = Path(place).resolve()
        assert inside.is_relative_to(trap), place
        assert inside.name != "pipe", place


def test_the_watch_sees_what_is_opened(trap: Path) -> None:
    with watched() as opened:
        read_source(trap, "inner/b.py")
        list_files(trap, "sub")
    assert [Path(place).relative_to(trap).as_posix() for place in opened] == [
        "sub/b.py",
        "sub",
    ]
