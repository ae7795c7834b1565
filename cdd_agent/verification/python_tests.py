"""The runner of a Python project's tests: pytest if declared or configured, else
Django's, unittest, or pytest for other test files.
"""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path, PurePosixPath

from cdd_agent.files.manifests import Manifests, section
from cdd_agent.pattern import Pattern
from cdd_agent.process.environments import own_python, pytest_environment
from cdd_agent.project.dependencies import declared_packages
from cdd_agent.project.source_folders import source_folders
from cdd_agent.verification.project_runner import (
    MOST_TEST_FILES,
    TEST_DEPTH,
    ProjectFolder,
    ProjectRunner,
    read_start,
)
from cdd_agent.verification.runners.pytest_settings import SETTINGS_FILES

_MANIFESTS = (
    *("pyproject.toml", "setup.py", "setup.cfg", "tox.ini", "Pipfile", "manage.py"),
    *("*requirements*.txt", "environment.yml", "environment.yaml", "pytest.ini"),
)
_TEST_PATHS = Pattern(rb"^testpaths[ \t]*=((?:.*)(?:\n[ \t]+.*)*)", re.MULTILINE)
_TEST_FOLDERS = ("", "tests", "test")
_TEST_FILE = Pattern(r"(test_.*|.*_test)\.py")
_DJANGO_TEST_FILE = Pattern(r"(tests?|test.*)\.py")
_FOR_PYTEST = Pattern(
    rb"^\s*(import|from) pytest|^(async )?def test|^class Test\w*:", re.MULTILINE
)
_FOR_UNITTEST = Pattern(rb"TestCase\b")


def is_python_project(folder: ProjectFolder) -> bool:
    return folder.has(*_MANIFESTS)


def declared_runner(folder: ProjectFolder) -> ProjectRunner | None:
    """Return pytest if it is declared or configured, or Django's tests. Below the root,
    there must be test files. Raises `ManifestUnreadable`.
    """
    if not folder.is_root and not is_python_project(folder):
        return None
    declared = declared_packages(folder.place)
    reason = _settings_of_pytest(folder)
    if not reason and folder.has("manage.py") and "pytest-django" not in declared:
        return _django(folder.place)
    if not reason:
        reason = _declaration_of_pytest(declared)
    if not reason:
        return None
    if not folder.is_root and not any(_test_files(folder.place, is_deep=True)):
        return None
    paths = _test_paths(folder.manifests)
    return ProjectRunner("python", ("pytest",), reason, partial(_collects, paths))


def _test_paths(manifests: Manifests) -> list[str]:
    """Return pytest's `testpaths`; empty if it searches everywhere."""
    settings = section(manifests.content("pyproject.toml"), "tool", "pytest")
    settings = {**settings, **section(settings, "ini_options")}
    paths = settings.get("testpaths", [])
    if isinstance(paths, str):
        return paths.split()
    if isinstance(paths, list) and paths:
        return [str(path) for path in paths]
    for name in (*SETTINGS_FILES, "tox.ini", "setup.cfg"):
        match = _TEST_PATHS.search(manifests.data(name))
        if match:
            return match[1].decode("utf-8", errors="replace").split()
    return []


def _collects(paths: Sequence[str], folder: str) -> bool:
    """True if pytest with these `testpaths` searches the folder or one inside."""
    for path in paths:
        start = path.removeprefix("./").strip("/")
        if "*" in start:
            start = start.partition("*")[0].rpartition("/")[0]
        is_around = f"{folder}/".startswith(f"{start}/")
        is_inside = start.startswith(f"{folder}/")
        if start in ("", ".") or is_around or is_inside:
            return True
    return not paths


def undeclared_runner(
    folder: ProjectFolder, *, is_deep: bool, elsewhere: Sequence[str] = ()
) -> ProjectRunner | None:
    """Return the runner of test files that no manifest covers: in the whole folder
    (`is_deep`) or in its usual test folders, except `elsewhere`.

    pytest runs unittest's tests too, so unittest is used only if the environment lacks
    pytest.
    """
    files = [
        file
        for file in islice(_test_files(folder.place, is_deep=is_deep), MOST_TEST_FILES)
        if not any(file.is_relative_to(other) for other in elsewhere)
    ]
    named = [] if files else _programs_of_tests(folder)
    if not files and not named:
        return None
    reason = f"there is {(*files, *named)[0]}"
    root, place = folder.root, folder.place
    if own_python(root, place) and pytest_environment(root, place) is None:
        words = _unittest_words(place, files, named)
        if words:
            return ProjectRunner("python", words, reason)
    if elsewhere and files:
        named = sorted({file.parts[0] for file in files})
    return ProjectRunner("python", ("pytest", *named), reason)


def _programs_of_tests(folder: ProjectFolder) -> list[str]:
    """Return test files that pytest runs only if named."""
    return [
        name
        for name in ("test.py", "tests.py")
        if name in folder.files and _has_tests(read_start(folder.place / name))
    ]


def _is_for_pytest(data: bytes) -> bool:
    return bool(_FOR_PYTEST.search(data)) and not _FOR_UNITTEST.search(data)


def _has_tests(data: bytes) -> bool:
    return bool(_FOR_PYTEST.search(data) or _FOR_UNITTEST.search(data))


def _settings_of_pytest(folder: ProjectFolder) -> str:
    """Return where pytest is configured, as a clause; empty if it is not."""
    manifests = folder.manifests
    for name in SETTINGS_FILES:
        if name in folder.files:
            return f"configured in {name}"
    if "pytest" in section(manifests.content("pyproject.toml"), "tool"):
        return "configured in pyproject.toml [tool.pytest]"
    for name, words in (("tox.ini", b"[pytest]"), ("setup.cfg", b"[tool:pytest]")):
        if words in manifests.data(name):
            return f"configured in {name}"
    if "conftest.py" in folder.files:
        return "there is a conftest.py"
    return ""


def _declaration_of_pytest(declared: dict[str, str]) -> str:
    for name, place in declared.items():
        if name == "pytest" or name.startswith("pytest-"):
            return f"declared in {place}"
    return ""


def _django(place: Path) -> ProjectRunner | None:
    for folder in source_folders(place, TEST_DEPTH):
        if any(_DJANGO_TEST_FILE.fullmatch(name) for name in folder.files):
            words = ("python", "manage.py", "test")
            return ProjectRunner("python", words, "there is a manage.py")
    return None


def _unittest_words(
    place: Path, files: Sequence[PurePosixPath], named: Sequence[str]
) -> tuple[str, ...]:
    """Return the words that run the files with unittest; empty if some need pytest, or
    no single folder reaches all. Without files, `named` files run by name.
    """
    if any(
        _is_for_pytest(read_start(place / file)) for file in (*map(str, files), *named)
    ):
        return ()
    if not files:
        return ("python", "-m", "unittest", *named)
    starts: set[PurePosixPath] = set()
    for file in files:
        if not file.name.startswith("test"):
            return ()
        starts.add(_start_folder(place, file))
    if len(starts) != 1:
        return ()
    start = starts.pop()
    words = ("python", "-m", "unittest", "discover")
    return words if start == PurePosixPath() else (*words, "-s", str(start))


def _start_folder(place: Path, file: PurePosixPath) -> PurePosixPath:
    """Return the folder above the file's packages, where unittest finds it."""
    folder = file.parent
    while folder.parts and (place / folder / "__init__.py").is_file():
        folder = folder.parent
    return folder


def _test_files(place: Path, *, is_deep: bool) -> Iterator[PurePosixPath]:
    for folder in source_folders(place, TEST_DEPTH if is_deep else 3):
        first = folder.path.partition("/")[0]
        if not is_deep and first not in _TEST_FOLDERS:
            continue
        for name in sorted(folder.files):
            if _TEST_FILE.fullmatch(name):
                yield PurePosixPath(folder.path, name)
