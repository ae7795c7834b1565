"""Recognises test files by their paths."""

import re
from enum import IntEnum
from pathlib import PurePosixPath

from cdd_agent.pattern import Pattern


def _suffixes(words: str) -> frozenset[str]:
    return frozenset(f".{word}" for word in words.split())


SCRIPTS = _suffixes("sh bash zsh bats t pl ps1 tcl exp feature")
"""Files that can be one test as a whole."""
_RECOGNISED = _suffixes(
    "py js jsx mjs cjs ts tsx mts cts vue coffee dart lua r go rs java kt kts groovy"
    " scala cs swift php rb ex exs cr c h cc cpp cxx hpp m mm jl"
)
CODE = (
    SCRIPTS
    | _RECOGNISED
    | _suffixes(
        "hs ml erl clj cljs cljc nim zig f90 d sml lisp el scm rkt sv v vhd pas adb fs"
        " vb"
    )
)
_SPOKEN = Pattern(
    r"(?:^|[._-])(?:unit)?(?:tests?|specs?|e2e|cy)(?:[._-]|$)", re.IGNORECASE
)
_CAMEL = Pattern(r"^Tests?[A-Z]|\w(Tests?|TestCase|Specs?|(?<=[a-z0-9])IT)$")
_FOLDER = Pattern(
    r"tests?|__tests__|testdata|test[-_]data|__snapshots__|cypress|e2e|.*[-_.]tests?"
    r"|.*\.Tests?|\w*[a-z]Tests?"
)
_FOLDER_OF_CODE = Pattern(r"specs?|t")
_MADE = Pattern(
    r"\..*|__pycache__|node_modules|target|build|dist|coverage|htmlcov|vendor"
)
"""Files and folders that programs generate."""
_NO_DATA = Pattern(
    r".*(?:~|\.(?:md|rst|adoc|pyc|pyo|log|orig|rej|tmp|swp|lock|(?:db"
    r"|sqlite3?)(?:-\w+)?))|te?mp|outputs?",
    re.IGNORECASE,
)
"""Not test data: documents, and files that tests leave behind, with their folders."""


class LikelihoodOfTests(IntEnum):
    NONE = 0
    WITHIN = 1
    """In a test folder."""
    NAMED = 2
    """Its name is one that runners look for."""


_TEST_SUFFIXES = (".bats", ".t", ".feature")


def place_of(path: str) -> LikelihoodOfTests:
    """docs/reference/verification.md lists the names."""
    *folders, name = PurePosixPath(path).parts
    stem, suffix = name.rpartition(".")[0] or name, PurePosixPath(path).suffix.lower()
    if any(map(_MADE.fullmatch, (*folders, name))):
        return LikelihoodOfTests.NONE
    is_named = _SPOKEN.search(stem) or _CAMEL.search(stem) or suffix in _TEST_SUFFIXES
    if suffix in CODE and is_named:
        return LikelihoodOfTests.NAMED
    may_be_data = suffix in CODE or not any(map(_NO_DATA.fullmatch, (*folders, name)))
    # Rust's unit tests are in the tested file
    reasons = (
        may_be_data and any(map(_FOLDER.fullmatch, folders)),
        suffix in CODE and any(map(_FOLDER_OF_CODE.fullmatch, folders)),
        suffix == ".rs",
    )
    return LikelihoodOfTests.WITHIN if any(reasons) else LikelihoodOfTests.NONE


def is_for_tests(path: str) -> bool:
    """True if the file is for tests alone, so that it can be one test.

    Its folder, or a separate word of its name, must say so. `JobSpec.ts` may be
    anything, and a Rust program may contain tests.
    """
    *folders, name = PurePosixPath(path).parts
    suffix = PurePosixPath(path).suffix.lower()
    is_within = any(
        _FOLDER.fullmatch(folder) or _FOLDER_OF_CODE.fullmatch(folder)
        for folder in folders
    )
    return (
        is_within
        or suffix not in _RECOGNISED
        or _SPOKEN.search(name.removesuffix(suffix)) is not None
    )


def is_data(path: str) -> bool:
    """True if tests read the file but do not run it."""
    return PurePosixPath(path).suffix.lower() not in CODE
