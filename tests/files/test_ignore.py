"""The patterns of ignore files, compared with `git check-ignore`."""

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cdd_agent.files.globs import PatternRefused, compile_glob
from cdd_agent.files.ignore import IgnoreRules

CHARS = st.sampled_from(list("ab0A-]![^:_~& .\t\\é"))
CLASSES = st.sampled_from(
    [
        *("alnum", "alpha", "blank", "cntrl", "digit", "graph"),
        *("lower", "print", "punct", "space", "upper", "xdigit"),
    ]
).map("[:{}:]".format)
SETS = st.builds(
    "[{}{}]".format,
    st.sampled_from(["", "!", "^"]),
    st.lists(st.one_of(CHARS, CLASSES), min_size=1, max_size=4).map("".join),
)
NAMES = st.lists(
    st.one_of(CHARS, SETS, st.sampled_from(["*", "?", "**", "***"])),
    min_size=1,
    max_size=4,
).map("".join)
LINES = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "", "!"]),
    st.sampled_from(["", "", "/"]),
    st.lists(NAMES, min_size=1, max_size=3).map("/".join),
    st.sampled_from(["", "", "/", " ", "\\ ", "\r", "/**"]),
)
PATHS = st.lists(
    st.lists(CHARS, min_size=1, max_size=2)
    .map("".join)
    .filter(lambda name: name.strip(".")),
    min_size=1,
    max_size=4,
).map("/".join)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "--quiet", str(root)], check=True)
    return root


def ignored_by_git(root: Path, lines: str, paths: list[str]) -> set[str]:
    (root / ".gitignore").write_bytes(lines.encode())
    result = subprocess.run(
        ["git", "check-ignore", "--no-index", "--stdin", "-z"],
        cwd=root,
        # a colon at the beginning would have a meaning
        input="".join(f"./{path}\0" for path in paths).encode(),
        capture_output=True,
        check=False,
    )
    assert result.returncode in (0, 1), result.stderr
    names = os.fsdecode(result.stdout).split("\0")
    return {name.removeprefix("./") for name in names if name}


def ignored_by_rules(lines: str, paths: list[str]) -> set[str]:
    def as_bytes(text: str) -> str:
        return text.encode().decode("ascii", "surrogateescape")

    rules = IgnoreRules(as_bytes(lines))

    def is_ignored(path: str) -> bool:
        names = as_bytes(path).split("/")
        return any(
            rules.decide("/".join(names[:count]), names[count - 1], is_folder=is_folder)
            for count in range(1, len(names) + 1)
            for is_folder in [count < len(names)]
        )

    return {path for path in paths if is_ignored(path)}


@given(st.lists(LINES, min_size=1, max_size=3), st.lists(PATHS, min_size=1, max_size=8))
@example(["a[!b]", "*[[:space:]]*"], ["a", "a0", "ab", "a b/A", "a\t"])
@example(["[]-]", "[\\]-a]", "[^]]b"], ["]", "-", "a", "^", "_", "ab", "]b"])
@example(["a\\/b", "0[a/]b"], ["a/b", "0ab", "0/b"])
@example(["[b-a]", "[--0]", "[[:digit:]-a]"], ["b", "a", "-", "0", "1"])
@example(["***/a", "b/***"], ["a", "0/a", "0/0/a", "b", "b/0/0"])
def test_lines_mean_what_they_mean_to_git(
    repository: Path, lines: list[str], paths: list[str]
) -> None:
    text = "\n".join(lines)
    assert ignored_by_rules(text, paths) == ignored_by_git(repository, text, paths)


@pytest.mark.parametrize("pattern", ["[", "a[b", "a\\", "[[:letters:]]", "[^]"])
def test_a_pattern_that_matches_nothing_is_refused(pattern: str) -> None:
    with pytest.raises(PatternRefused):
        compile_glob(pattern)
