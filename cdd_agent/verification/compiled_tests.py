"""Test commands for Rust and Go. Below the root, a folder counts only if it has tests
and is not in a workspace that runs them.
"""

import re
from collections.abc import Collection
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

from cdd_agent.files.manifests import section
from cdd_agent.pattern import Pattern
from cdd_agent.project.source_folders import source_folders
from cdd_agent.verification.project_runner import (
    MOST_TEST_FILES,
    TEST_DEPTH,
    ProjectFolder,
    ProjectRunner,
    read_start,
)

_RUST_TEST = Pattern(rb"#\[(?:\w+::)*test\b|#\[cfg\(test\)")
_GO_USE = Pattern(r"^\s*(?:use\s+)?(\.[^\s()]*)\s*$", re.MULTILINE)


def rust_runner(folder: ProjectFolder) -> ProjectRunner | None:
    if not folder.has("Cargo.toml"):
        return None
    content = folder.manifests.content("Cargo.toml")
    if not folder.is_root and not _has_rust_tests(folder.place):
        return None
    words: tuple[str, ...] = ("cargo", "test")
    if "workspace" in content and "package" in content:
        # else cargo tests only the root package
        words = ("cargo", "test", "--workspace")
    members = section(content, "workspace").get("members")
    return ProjectRunner(
        "rust", words, "there is a Cargo.toml", partial(_is_member, members)
    )


def _is_member(members: object, path: str) -> bool:
    """True if the workspace's members name the folder."""
    patterns = members if isinstance(members, list) else []
    return any(fnmatchcase(path, str(pattern).rstrip("/")) for pattern in patterns)


def go_runner(folder: ProjectFolder) -> ProjectRunner | None:
    if folder.has("go.work"):
        modules = _GO_USE.findall(folder.manifests.text("go.work"))
        words = ["go", "test", *(f"{module.rstrip('/')}/..." for module in modules)]
        names = [module.removeprefix("./").rstrip("/") for module in modules]
        if modules:
            return ProjectRunner(
                "go", tuple(words), "go.work names the modules", partial(_is_in, names)
            )
    if not folder.has("go.mod"):
        return None
    if not folder.is_root and not _has_go_tests(folder.place):
        return None
    # `./...` stops at other modules
    return ProjectRunner(
        "go", ("go", "test", "./..."), "there is a go.mod", partial(_is_in, ())
    )


def _is_in(names: Collection[str], path: str) -> bool:
    return path in names


def _has_rust_tests(place: Path) -> bool:
    count = 0
    for folder in source_folders(place, TEST_DEPTH):
        for name in sorted(folder.files):
            if not name.endswith(".rs") or count == MOST_TEST_FILES:
                continue
            count += 1
            if _RUST_TEST.search(read_start(place / folder.path / name)):
                return True
    return False


def _has_go_tests(place: Path) -> bool:
    for folder in source_folders(place, TEST_DEPTH):
        if any(name.endswith("_test.go") for name in folder.files):
            return True
    return False
