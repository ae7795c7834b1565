"""Finding files and lines."""

import os
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdd_agent.errors import BadInput, ExitCode
from cdd_agent.files.globs import PatternRefused
from cdd_agent.files.line_list import LineList
from cdd_agent.files.paths import PathRefused
from cdd_agent.files.read import (
    SourceHidden,
    SourceMissing,
    SourceUnreadable,
    read_source,
)
from cdd_agent.project import search
from cdd_agent.project.search import glob_files, grep_files, list_files
from tests.support.encoded_files import ENCODED
from tests.support.time_of_loops import leap

TREE = {
    ".gitignore": "*.log\nbuild/\n",
    ".env": "import secret\n",
    "a.py": "import os\n",
    "a.log": "import nothing\n",
    "build/b.py": "import built\n",
    "src/app/main.py": "import sys\n\n\ndef main():\n\treturn Import  # ümlaut\n",
    "src/app/data.toml": "[import]\n",
    "src/b.py": "x = 1\r\nimport re\r\n",
    "src/[odd].py": "",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make(tmp_path / "project", TREE)


def make(root: Path, files: Mapping[str, str | bytes]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return root


# All files


@pytest.mark.parametrize(
    ("under", "lines"),
    [
        (
            ".",
            (
                ".env .gitignore a.py src/[odd].py src/app/data.toml src/app/main.py"
                " src/b.py"
            ),
        ),
        ("src/app", "src/app/data.toml src/app/main.py"),
        ("./src/app/", "src/app/data.toml src/app/main.py"),
        ("a.py", "a.py"),
        ("build", "build/b.py"),
    ],
)
def test_files_are_listed_by_their_paths_from_the_root(
    project: Path, under: str, lines: str
) -> None:
    assert list_files(project, under) == LineList(tuple(lines.split()))


def test_a_list_that_is_cut_says_so(project: Path) -> None:
    assert list_files(project, ".", 7) == list_files(project)
    found = list_files(project, ".", 2)
    assert found == LineList((".env", ".gitignore"), cut=True)
    assert found.as_text().splitlines()[:2] == [".env", ".gitignore"]
    assert " 2)" in found.as_text().splitlines()[2]


def test_links_are_listed_and_folders_that_are_closed_counted(tmp_path: Path) -> None:
    make(tmp_path, {"src/a.py": "", "src/two\nlines": ""})
    (tmp_path / "link").symlink_to("src")
    assert list_files(tmp_path).lines == ("link", "src/a.py", "src/two␊lines")
    assert list_files(tmp_path, "link").lines == ("link/a.py", "link/two␊lines")


@pytest.mark.skipif(
    os.name != "posix" or os.geteuid() == 0, reason="nothing is closed to root"
)
async def test_what_is_closed_is_counted_or_an_error(tmp_path: Path) -> None:
    make(tmp_path, {"a": "x", "closed/b": "x", ".git/HEAD": "x"})
    for name in ("closed", ".git"):
        (tmp_path / name).chmod(0)
    try:
        assert list_files(tmp_path).lines == ("a",)
        assert list_files(tmp_path).note.startswith("1 folder")
        assert glob_files(tmp_path, "closed/*").note.startswith("1 folder")
        assert (await grep_files(tmp_path, "x")).lines == ("a:1:x",)
        for look in (list_files, read_source):
            with pytest.raises(SourceUnreadable, match="Permission denied"):
                look(tmp_path, "closed/b")
        with pytest.raises(SourceUnreadable, match="Permission denied"):
            await grep_files(tmp_path, "x", "closed/b")
    finally:
        for name in ("closed", ".git"):
            (tmp_path / name).chmod(0o700)


def test_nothing_found_is_said_in_words(tmp_path: Path) -> None:
    assert list_files(tmp_path).as_text() == "Nothing found.\n"


@pytest.mark.parametrize(
    ("under", "error"),
    [
        ("nothing", SourceMissing),
        ("../x", PathRefused),
        ("/", PathRefused),
        (".git", SourceUnreadable),
    ],
)
async def test_a_place_that_cannot_be_searched_is_an_error(
    project: Path, under: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        list_files(project, under)
    with pytest.raises(error):
        await grep_files(project, "x", under)


# By name


@pytest.mark.parametrize(
    ("pattern", "lines"),
    [
        ("*.py", "a.py"),
        ("**/*.py", "a.py src/[odd].py src/app/main.py src/b.py"),
        ("src/*.py", "src/[odd].py src/b.py"),
        ("./src/b.py", "src/b.py"),
        ("src\\*\\*.py", "src/app/main.py"),
        ("src/**", "src/[odd].py src/app/data.toml src/app/main.py src/b.py"),
        (
            "src/**/*.{py,toml}",
            "src/[odd].py src/app/data.toml src/app/main.py src/b.py",
        ),
        ("{a,src/b}.py", "a.py src/b.py"),
        ("src/{app/{main,other},b}.py", "src/app/main.py src/b.py"),
        ("src/[[]odd].py", "src/[odd].py"),
        ("s?c/[!a]*.py", "src/[odd].py src/b.py"),
        ("build/*.py", "build/b.py"),
        ("*/b.py", "src/b.py"),
        ("src/{b}.py", ""),
        ("src", ""),
        ("nothing/**", ""),
        ("a.py/**", ""),
        (".git/**", ""),
    ],
)
def test_files_are_found_by_a_pattern(project: Path, pattern: str, lines: str) -> None:
    assert glob_files(project, pattern) == LineList(tuple(lines.split()))


@pytest.mark.parametrize(
    "pattern",
    [
        "../*",
        "/etc/*",
        "src/../../*",
        "{..,src}/*",
        "~/*",
        "C:/*",
        "",
        "a\nb",
        "link/*",
    ],
)
def test_a_pattern_that_leaves_the_project_is_refused(
    project: Path, pattern: str
) -> None:
    (project / "link").symlink_to(project.parent)
    with pytest.raises(PathRefused):
        glob_files(project, pattern)


@pytest.mark.parametrize(
    "pattern", ["{a,b}" * 30, "{" + ",".join("abc" * 50) + "}", "src/[a", "[[:x:]]"]
)
def test_a_pattern_that_means_nothing_is_refused(project: Path, pattern: str) -> None:
    with pytest.raises(PatternRefused):
        glob_files(project, pattern)


NAMES = st.sampled_from(["a", "b", "ab", "a.py", "b.py", "é.py", ".a"])
GLOBS = st.lists(
    NAMES | st.sampled_from(["*", "**", "*.py", "?", "a*", "[ab]*"]),
    min_size=1,
    max_size=4,
).map("/".join)


@given(
    st.lists(st.lists(NAMES, min_size=1, max_size=3).map("/".join), max_size=8), GLOBS
)
def test_it_is_what_pathlib_finds(
    tmp_path_factory: pytest.TempPathFactory, paths: list[str], pattern: str
) -> None:
    root = tmp_path_factory.mktemp("project")
    for path in paths:
        if (
            not any(parent.is_file() for parent in (root / path).parents)
            and not (root / path).exists()
        ):
            make(root, {path: ""})

    everything_below = pattern.endswith("**")  # for pathlib that is folders
    found = {
        place
        for place in root.glob(f"{pattern}/*" if everything_below else pattern)
        if place.is_file()
    }
    assert set(glob_files(root, pattern).lines) == {
        place.relative_to(root).as_posix() for place in found
    }


# By content


async def test_lines_are_found_with_their_place(project: Path) -> None:
    found = await grep_files(project, "^import")
    assert [line.rpartition(":")[0] for line in found.lines] == [
        "a.py:1",
        "src/app/main.py:1",
        "src/b.py:2",
    ]
    assert found.note.startswith("1 file ")


@pytest.mark.parametrize(
    ("pattern", "under", "glob", "ignore_case", "lines"),
    [
        (
            "import",
            "src",
            None,
            False,
            [
                "src/app/data.toml:1:[import]",
                "src/app/main.py:1:import sys",
                "src/b.py:2:import re",
            ],
        ),
        ("import", "src", "*.toml", False, ["src/app/data.toml:1:[import]"]),
        ("import", ".", "src/*.py", False, ["src/b.py:2:import re"]),
        (
            "import",
            ".",
            "{a,b}.py",
            False,
            ["a.py:1:import os", "src/b.py:2:import re"],
        ),
        (
            "IMPORT",
            "src/app/main.py",
            None,
            True,
            [
                "src/app/main.py:1:import sys",
                "src/app/main.py:5:\treturn Import  # ümlaut",
            ],
        ),
        (r"re$", ".", "*.py", False, ["src/b.py:2:import re"]),
        ("ümlaut", ".", "*.py", False, ["src/app/main.py:5:\treturn Import  # ümlaut"]),
        ("built", ".", None, False, []),
        ("built", "build", None, False, ["build/b.py:1:import built"]),
    ],
)
async def test_where_to_look_and_how(
    project: Path,
    pattern: str,
    under: str,
    glob: str | None,
    ignore_case: bool,
    lines: list[str],
) -> None:
    assert (
        await grep_files(project, pattern, under, glob, ignore_case)
    ).lines == tuple(lines)


async def test_what_cannot_be_searched_is_left_out_and_counted(tmp_path: Path) -> None:
    make(
        tmp_path,
        {
            "a": "x" * 5_000_001,
            "b": b"x\0",
            "id_rsa": "x",
            "c": "grüßex".encode() + b"\xff",
            ".git/config": "x",
        },
    )
    make(tmp_path.parent / "outside", {"d": "x"})
    (tmp_path / "link").symlink_to("../outside")
    (tmp_path / "notes").symlink_to("id_rsa")
    os.mkfifo(tmp_path / "pipe")

    found = await grep_files(tmp_path, "x")
    assert found.lines == ("c:1:grüßex\ufffd",)
    assert "… (2 files " in found.as_text()
    with pytest.raises(SourceHidden, match="secrets"):
        await grep_files(tmp_path, "x", "notes")


async def test_odd_names_and_lines_stay_one_line_each(tmp_path: Path) -> None:
    make(tmp_path, {"two\nlines": "1\ra\u2028x\x0cb\ry\n", "z": "\x1b[31mx"})
    (tmp_path / os.fsdecode(b"\xff")).write_text("x")
    assert (await grep_files(tmp_path, "x")).lines == (
        "two␊lines:2:a\u2028x\x0cb",
        "z:1:\x1b[31mx",
        "\ufffd:1:x",
    )


async def test_of_a_long_line_the_part_with_the_match_is_shown(tmp_path: Path) -> None:
    make(tmp_path, {"a": "-" * 10_000 + "here" + "-" * 10_000 + "\nhere" + "-" * 500})
    first, second = (await grep_files(tmp_path, "here")).lines
    assert re.fullmatch(r"a:1:…-{100}here-{196}…", first)
    assert re.fullmatch(r"a:2:here-{296}…", second)


async def test_a_search_that_finds_too_much_is_cut_and_says_so(tmp_path: Path) -> None:
    make(tmp_path, {"a": "x\n" * 1_000, "b": "x\n"})
    found = await grep_files(tmp_path, "x", limit=3)
    assert found == LineList(("a:1:x", "a:2:x", "a:3:x"), cut=True)
    assert (await grep_files(tmp_path, "x", limit=1_001)).cut is False
    assert len((await grep_files(tmp_path, "x")).lines) == 200


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        (
            "(a",
            (
                r"'\(a' is not a regular expression: missing \), unterminated"
                r" subpattern \(character 1\)"
            ),
        ),
        ("ab[", r"unterminated character set \(character 3\)"),
        ("*", r"nothing to repeat \(character 1\)"),
        ("a{1,99999999999}", "the repetition number is too large"),
        ("(" * 1_900, "not a regular expression"),
        ("\ud800[", r"unterminated character set \(character 2\)"),
        ("x" * 3_000, "3,000 characters is too long"),
    ],
)
async def test_a_wrong_expression_is_an_error_that_says_where(
    project: Path, pattern: str, message: str
) -> None:
    with pytest.raises(PatternRefused, match=message) as caught:
        await grep_files(project, pattern)
    assert caught.value.exit_code is ExitCode.BAD_INPUT


@pytest.mark.parametrize("glob", ["../*", "/etc/*"])
async def test_a_wrong_file_pattern_is_an_error(project: Path, glob: str) -> None:
    with pytest.raises(BadInput):
        await grep_files(project, "x", ".", glob)


async def test_odd_expressions_are_only_text(project: Path) -> None:
    for pattern in ("", "\0", "--help", "-e x", "[[a]&&b]", "$(touch x)", '"'):
        await grep_files(project, pattern)
    assert not (project / "x").exists()


async def test_an_expression_that_takes_for_ever_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its time is over when it has told of the first file."""
    make(tmp_path, {"a": "aa\n", "b": "a" * 50 + "!\n", "c": "aa\n"})
    monkeypatch.setattr(
        search,
        "run_command",
        partial(search.run_command, on_output=lambda chunk: leap(600)),
    )
    found = await grep_files(tmp_path, "^(a+)+$", seconds=600)
    assert found.lines == ("a:1:aa",)
    assert found.cut
    assert re.search(r"longer than 6\d\d s", found.as_text())


async def test_nothing_of_the_project_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile = "open('canary', 'w').close()"
    make(
        tmp_path,
        {
            "re.py": hostile,
            "sitecustomize.py": hostile,
            "cdd_agent/__init__.py": hostile,
            "json.py": hostile,
        },
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert len((await grep_files(tmp_path, "canary")).lines) == 4
    assert not (tmp_path / "canary").exists()


async def test_words_are_found_in_files_in_any_encoding(tmp_path: Path) -> None:
    expected = []
    for number, encoded in enumerate(ENCODED):
        folder = make(tmp_path / f"{number:02}", {".editorconfig": "root = true\n"})
        encoded.write(folder)
        expected += [
            f"{number:02}/{encoded.path}:{place}:{line}"
            for place, line in enumerate(encoded.text.splitlines(), 1)
            if encoded.word in line
        ]
    words = {encoded.word for encoded in ENCODED}
    found = await grep_files(tmp_path, "|".join(words))
    assert [line for line in found.lines if line in expected] == expected
    assert not found.note


async def test_bytes_that_are_no_text_are_found_as_signs(tmp_path: Path) -> None:
    make(tmp_path, {"a.txt": "schön, größer, ".encode() + b"\xff\n", "b.bin": b"sch\0"})
    found = await grep_files(tmp_path, "sch|größer")
    assert found.lines == ("a.txt:1:schön, größer, \ufffd",)
