"""The files that belong to a project: compared with what git says, and where git is not
asked.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping
from itertools import islice
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cdd_agent.files.regular_files import open_file
from cdd_agent.files.walk import Kind, walk
from tests.support.tables import each_row


def git(folder: Path, *arguments: str) -> bytes:
    return subprocess.run(
        ["git", *arguments], cwd=folder, check=True, capture_output=True
    ).stdout


def make(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def walked(root: Path, under: str = ".", *, deep: bool = True) -> list[str]:
    return [entry.shown for entry in walk(root, PurePosixPath(under), deep=deep)]


def files(root: Path) -> set[str]:
    return {entry.text for entry in walk(root) if entry.kind in (Kind.FILE, Kind.LINK)}


def listed_by_git(root: Path) -> set[str]:
    names = git(
        root, "ls-files", "-z", "--others", "--cached", "--exclude-standard"
    ).split(b"\0")
    return {os.fsdecode(name) for name in names if name}


# What git ignores


@each_row(
    ("ignore", "left"),
    [
        ("", "a.log a.py build/keep/a.log build/x.py src/a.log src/build"),
        ("*.log", "a.py build/x.py src/build"),
        ("build", "a.log a.py src/a.log"),
        ("build/", "a.log a.py src/a.log src/build"),
        ("/build", "a.log a.py src/a.log src/build"),
        ("src/*.log", "a.log a.py build/keep/a.log build/x.py src/build"),
        ("**/a.log", "a.py build/x.py src/build"),
        ("build/**\n!build/x.py", "a.log a.py build/x.py src/a.log src/build"),
        ("build/**\n!build/keep", "a.log a.py src/a.log src/build"),
        (
            "build/**\n!build/**/\n!build/**/*.log",
            "a.log a.py build/keep/a.log src/a.log src/build",
        ),
        ("*.log\n!build/\n", "a.py build/x.py src/build"),
        (
            "build/**\n!build/keep/\n!build/keep/**",
            "a.log a.py build/keep/a.log src/a.log src/build",
        ),
        ("build/\n!build/x.py", "a.log a.py src/a.log src/build"),
        ("*\n!*/\n!*.py", "a.py build/x.py"),
        ("*.log\n!a.log", "a.log a.py build/keep/a.log build/x.py src/a.log src/build"),
        ("[ab].???", "a.py build/x.py src/build"),
        (
            "# a.py\n\\#a\r\na.py   \n",
            "a.log build/keep/a.log build/x.py src/a.log src/build",
        ),
        (
            "[z-a]\n[[:nonsense:]]\nfoo\\\n[\n!\n/\n//",
            "a.log a.py build/keep/a.log build/x.py src/a.log src/build",
        ),
    ],
)
def test_patterns_mean_what_they_mean_to_git(
    tmp_path: Path, ignore: str, left: str
) -> None:
    make(
        tmp_path,
        dict.fromkeys(
            [
                "a.py",
                "a.log",
                "src/a.log",
                "src/build",
                "build/x.py",
                "build/keep/a.log",
            ],
            "",
        ),
    )
    make(tmp_path, {".gitignore": ignore})
    git(tmp_path, "init", "--quiet")

    assert files(tmp_path) - {".gitignore"} == set(left.split())
    assert files(tmp_path) == listed_by_git(tmp_path)


NAMES = [
    "a",
    "b",
    "ab",
    "foo",
    "bar.py",
    "x.log",
    "A b",
    "[x]",
    "é",
    "a-b",
    "!n",
    "#h",
    "b ",
    "x\\y",
    "]",
    ".h",
    "日本",
]
GLOBS = [
    "*",
    "**",
    "*.py",
    "a*",
    "*b",
    "?",
    "??",
    "f?o",
    "[!a]",
    "[ab]*",
    "[^]]",
    "[[]x]",
    "*a*b*",
    "é*",
    "[é]",
]
GLOBS += ["\\[x\\]", "\\!n", "\\#h", "b\\ "]
PATTERNS = st.tuples(
    st.sampled_from(["", "", "", "!"]),
    st.sampled_from(["", "", "/"]),
    st.lists(st.sampled_from(NAMES + GLOBS), min_size=1, max_size=3).map("/".join),
    st.sampled_from(["", "", "", "/", "/*", "/**", " ", "\\ ", "\r"]),
).map("".join)
IGNORE = st.lists(PATTERNS, max_size=5).map("\n".join)
PATHS = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map("/".join)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("repository")
    git(root, "init", "--quiet")
    return root


@given(
    paths=st.lists(PATHS, min_size=1, max_size=12),
    ignores=st.dictionaries(
        st.lists(st.sampled_from(NAMES), max_size=2).map("/".join),
        IGNORE,
        min_size=1,
        max_size=3,
    ),
    exclude=IGNORE,
)
@example(
    paths=["b/a", "b/foo/x.log"],
    ignores={"": "foo\n*.log", "b": "!foo\n!x.log"},
    exclude="a",
)
@example(paths=["a/a/b", "a-b"], ignores={"": "/*a*b*"}, exclude="")
def test_it_is_what_git_lists(
    repository: Path, paths: list[str], ignores: dict[str, str], exclude: str
) -> None:
    for item in repository.iterdir():
        if item.name != ".git":
            shutil.rmtree(item) if item.is_dir() else item.unlink()
    for path in paths:
        place = repository / path
        if not any(parent.is_file() for parent in place.parents) and not place.exists():
            make(repository, {path: ""})
    for folder, text in ignores.items():
        if (repository / folder).is_dir():
            (repository / folder / ".gitignore").write_bytes(text.encode())
    (repository / ".git" / "info" / "exclude").write_bytes(exclude.encode())

    assert files(repository) == listed_by_git(repository)


def test_the_deeper_file_decides_and_a_closed_folder_stays_closed(
    tmp_path: Path,
) -> None:
    make(
        tmp_path,
        {
            ".gitignore": "*.log\nout/\n",
            "a/.gitignore": "!keep.log\n",
            "out/.gitignore": "!*\n",
        },
    )
    make(
        tmp_path,
        {
            "a/keep.log": "",
            "a/other.log": "",
            "a/b/keep.log": "",
            "keep.log": "",
            "out/x": "",
        },
    )

    assert files(tmp_path) == {
        ".gitignore",
        "a/.gitignore",
        "a/keep.log",
        "a/b/keep.log",
    }


def test_a_project_inside_a_repository_obeys_the_files_above_it(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    make(
        tmp_path,
        {
            ".gitignore": "*.log\n/packages/app/local\n",
            "packages/.gitignore": "!keep.log\n",
        },
    )
    root = make(
        tmp_path / "packages" / "app",
        {"keep.log": "", "b.log": "", "local/x": "", "a.py": ""},
    )
    (tmp_path / ".git" / "info" / "exclude").write_text("packages/app/mine\n")
    make(root, {"mine": ""})

    assert walked(root) == ["a.py", "keep.log"]
    assert files(root) == listed_by_git(root)


def test_without_a_repository_the_files_above_do_not_count(tmp_path: Path) -> None:
    make(tmp_path, {".gitignore": "*.py\n", "app/a.py": ""})
    assert walked(tmp_path / "app") == ["a.py"]


def test_a_repository_inside_the_project_has_its_own_rules(tmp_path: Path) -> None:
    make(
        tmp_path,
        {
            ".gitignore": "*.log\n",
            "inner/a.log": "",
            "inner/a.tmp": "",
            "empty/a.log": "",
        },
    )
    git(tmp_path, "init", "--quiet", "inner")
    (tmp_path / "inner/.git/info/exclude").write_text("*.tmp\n")
    (tmp_path / "empty/.git").mkdir()  # a name does not make a repository

    assert files(tmp_path) == {".gitignore", "inner/a.log"}


def test_a_worktree_shares_the_list_of_its_repository(tmp_path: Path) -> None:
    main = make(tmp_path / "main", {"a.py": ""})
    git(main, "init", "--quiet")
    git(main, "add", ".")
    git(
        main,
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b",
        "commit",
        "--quiet",
        "--message=a",
    )
    git(main, "worktree", "add", "--quiet", "../other")
    (main / ".git/info/exclude").write_text("*.log\n")
    make(tmp_path / "other", {"b.log": "", "b.py": ""})

    assert (
        files(tmp_path / "other")
        == {"a.py", "b.py"}
        == listed_by_git(tmp_path / "other")
    )


def test_what_is_asked_for_is_walked_even_if_it_is_ignored(tmp_path: Path) -> None:
    make(
        tmp_path,
        {
            ".gitignore": "dist/\n*.pyc\n",
            "dist/a.py": "",
            "dist/a.pyc": "",
            "dist/b/c.py": "",
        },
    )

    assert walked(tmp_path, "dist") == ["dist/a.py", "dist/b/", "dist/b/c.py"]
    assert walked(tmp_path, "dist", deep=False) == ["dist/a.py", "dist/b/"]


# What is never walked, and what is odd


def test_git_and_the_runs_are_left_out_wherever_one_begins(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    make(
        tmp_path,
        {
            ".cdd/config.yaml": "",
            ".cdd/runs/x/reply.md": "",
            "runs/a": "",
            "sub/.git": "gitdir: /nowhere",
        },
    )

    assert walked(tmp_path) == [".cdd/", ".cdd/config.yaml", "runs/", "runs/a", "sub/"]
    for under in (".git", ".git/info", ".cdd/runs", ".cdd/runs/x", "nothing", "runs/a"):
        assert walked(tmp_path, under) == []


def test_links_are_named_but_not_followed(tmp_path: Path) -> None:
    root = make(tmp_path / "app", {"src/a.py": ""})
    (root / "out").symlink_to(tmp_path)
    (root / "loop").symlink_to(root)
    (root / "nowhere").symlink_to("gone")

    kinds = {entry.text: entry.kind for entry in walk(root)}
    assert kinds == {
        "loop": "link",
        "nowhere": "link",
        "out": "link",
        "src": "folder",
        "src/a.py": "file",
    }


def test_only_files_folders_and_links_belong_to_a_project(tmp_path: Path) -> None:
    make(tmp_path, {"a": "", ".gitignore": ""})
    os.mkfifo(tmp_path / "pipe")
    assert walked(tmp_path) == [".gitignore", "a"]


def test_an_ignore_file_that_is_no_file_is_not_read(tmp_path: Path) -> None:
    make(tmp_path, {"a.log": "", "b/b.log": "", "c/c.log": "", "rules": "*.log"})
    os.mkfifo(tmp_path / ".gitignore")  # opening it would wait for ever
    (tmp_path / "b" / ".gitignore").mkdir()
    # git does not follow it either
    (tmp_path / "c" / ".gitignore").symlink_to("../rules")
    git(tmp_path, "init", "--quiet")

    found = files(tmp_path)
    assert {"a.log", "b/b.log", "c/c.log"} <= found
    (tmp_path / ".gitignore").unlink()
    assert found == listed_by_git(tmp_path)


def test_a_folder_that_cannot_be_looked_into_is_named(tmp_path: Path) -> None:
    make(tmp_path, {"a/x": "", "b/x": "", "c/x": ""})
    entries = walk(tmp_path)

    assert next(entries).text == "a"
    shutil.rmtree(tmp_path / "b")
    (tmp_path / "b").symlink_to("b")
    assert [(entry.text, entry.kind) for entry in entries] == [
        ("a/x", "file"),
        ("b", "unreadable"),
        ("c", "folder"),
        ("c/x", "file"),
    ]


@pytest.mark.skipif(
    os.name != "posix" or os.geteuid() == 0, reason="nothing is closed to root"
)
def test_a_closed_folder_is_named(tmp_path: Path) -> None:
    make(tmp_path, {"closed/x": ""})
    (tmp_path / "closed").chmod(0)
    try:
        assert [entry.kind for entry in walk(tmp_path)] == ["unreadable"]
        assert [entry.kind for entry in walk(tmp_path, PurePosixPath("closed"))] == [
            "unreadable"
        ]
    finally:
        (tmp_path / "closed").chmod(0o700)


@each_row(
    ("name", "shown"),
    [
        (b"caf\xe9", "caf\ufffd"),
        (b"two\nlines", "two␊lines"),
        (b"\x1b[31mred", "␛[31mred"),
        ("\u202egpj.exe".encode(), "\ufffdgpj.exe"),
        ("日本".encode(), "日本"),
    ],
)
def test_odd_names_are_shown_on_one_line(
    tmp_path: Path, name: bytes, shown: str
) -> None:
    folder = os.fsencode(tmp_path) + b"/" + name
    Path(os.fsdecode(folder)).mkdir()
    Path(os.fsdecode(folder + b"/" + name)).touch()

    entries = list(walk(tmp_path))
    assert [entry.shown for entry in entries] == [f"{shown}/", f"{shown}/{shown}"]
    assert [entry.shown_name for entry in entries] == [f"{shown}/", shown]
    assert entries[1].path.name == os.fsdecode(name)
    "".join(entry.shown for entry in entries).encode()


def test_very_deep_folders_are_walked(tmp_path: Path) -> None:
    folder = str(tmp_path)
    for _ in range(1500):
        folder += "/d"
        Path(folder).mkdir()
    try:
        assert sum(1 for _ in walk(tmp_path)) == 1500
    finally:
        # shutil's own way is recursive
        subprocess.run(["rm", "-r", str(tmp_path / "d")], check=True)


# How it comes


def test_the_order_is_by_name_each_folder_before_what_is_in_it(tmp_path: Path) -> None:
    make(tmp_path, dict.fromkeys(["b.txt", "a/z", "a/b/c", "B", "a.txt", "a-b"], ""))
    assert walked(tmp_path) == [
        "B",
        "a/",
        "a/b/",
        "a/b/c",
        "a/z",
        "a-b",
        "a.txt",
        "b.txt",
    ]


def test_entries_come_as_they_are_found(tmp_path: Path) -> None:
    make(tmp_path, {"a/x": "", "z/x": ""})
    entries = walk(tmp_path)
    assert next(entries).text == "a"

    make(tmp_path, {"z/later": ""})
    assert [entry.text for entry in entries] == ["a/x", "z", "z/later", "z/x"]


def test_a_large_project_is_walked_like_a_small_one(tmp_path: Path) -> None:
    for folder in range(100):
        (tmp_path / f"{folder:02}").mkdir()
        for number in range(100):
            (tmp_path / f"{folder:02}" / f"{number:02}.py").touch()
    make(tmp_path, {".gitignore": "*9.py\n"})

    assert [entry.text for entry in islice(walk(tmp_path), 3)] == [
        ".gitignore",
        "00",
        "00/00.py",
    ]
    assert len(files(tmp_path)) == 9_001


# The pieces


@each_row(
    "line",
    [
        "*a*a*a*a*a*a*a*a*a*b",
        "*[a]*[!b]*?*a*[a-c]*b",
        "*?" * 200 + "b",
        "a*a*a*b/" * 5,
        "**/a*/**/a*/**/a*/**/a*/**/a*/**/b",
        "**/*a*a*a*a*b/**/*a*a*a*c",
    ],
)
def test_no_line_takes_long(tmp_path: Path, line: str) -> None:
    name = "/".join(["a" * 200] * 5)
    make(tmp_path, {".gitignore": f"{line}\n{line}?\n", name: ""})
    # with a plain regular expression: not in a lifetime
    assert files(tmp_path) == {".gitignore", name}


@each_row(
    ("line", "left"),
    [
        # many stars are no reason to pass a line over
        ("*-*-*-*-*.log", {"-", "a b", "x"}),
        # what Python may read differently one day is
        ("[a--b]\n[a&&b]\nx", {"-", "a b", "a-b-c-d-e.log"}),
        ("*[[:space:]]*", {"-", "a-b-c-d-e.log", "x"}),
        ("*[[:letters:]]*", {"-", "a b", "a-b-c-d-e.log", "x"}),
        ("x\x0c-\n-", {"a b", "a-b-c-d-e.log", "x"}),  # only a line feed ends a line
    ],
)
def test_which_lines_are_passed_over(tmp_path: Path, line: str, left: set[str]) -> None:
    make(
        tmp_path, {".gitignore": line, "-": "", "a b": "", "a-b-c-d-e.log": "", "x": ""}
    )
    assert files(tmp_path) - {".gitignore"} == left


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    make(tmp_path, {"a": "text"})
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("a")

    with open_file(tmp_path / "a") as file:
        assert file.read() == b"text"
    for name in ("pipe", "link", ".", "nothing"):
        with pytest.raises(OSError, match=r"regular|No such"):
            open_file(tmp_path / name)
