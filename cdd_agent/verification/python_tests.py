"""Choose the runner of a Python project's tests: pytest if it is declared or
configured, else Django's, unittest, or pytest for other test files.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path, PurePosixPath

from cdd_agent.files.manifests import Manifests, section
from cdd_agent.process.environments import own_python, pytest_environment
from cdd_agent.project.dependencies import declared_packages
from cdd_agent.project.source_folders import SourceFolder, source_folders
from cdd_agent.verification.project_runner import ProjectRunner

_SETTINGS_FILES = ("pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml")
_MANIFESTS = frozenset(
    (
        *("pyproject.toml", "setup.py", "setup.cfg", "tox.ini", "Pipfile"),
        *("requirements.txt", "manage.py", "environment.yml", "environment.yaml"),
    )
)
_TEST_FOLDERS = ("", "tests", "test")
_DEPTH = 8
"""Levels of folders that are searched for test files."""
_MOST_FILES = 200
_TEST_FILE = re.compile(r"(test_.*|.*_test)\.py")
_DJANGO_TEST_FILE = re.compile(r"(tests?|test.*)\.py")
_FOR_PYTEST = re.compile(
    rb"^\s*(import|from) pytest|^(async )?def test|^class Test\w*:", re.MULTILINE
)
_FOR_UNITTEST = re.compile(rb"TestCase\b")


def python_runner(
    root: Path, folder: SourceFolder, folders: Sequence[SourceFolder] = ()
) -> ProjectRunner | None:
    """Return the runner of a folder's Python tests, or None if there is no sign of
    tests. Raises `ManifestUnreadable`.
    """
    del folders
    place = root / folder.path
    declared = declared_packages(place)
    reason = _settings_of_pytest(Manifests(place), folder)
    if not reason and "manage.py" in folder.files and "pytest-django" not in declared:
        return _django(place)
    if not reason:
        reason = _declaration_of_pytest(declared)
    if reason:
        return ProjectRunner("python", ("pytest",), reason)
    has_manifest = not folder.files.isdisjoint(_MANIFESTS)
    files = list(islice(_test_files(place, is_deep=has_manifest), _MOST_FILES))
    return _undeclared(root, place, files)


def any_python_tests(root: Path) -> ProjectRunner | None:
    """Return the runner of the test files in a project that declares nothing."""
    files = list(islice(_test_files(root, is_deep=True), _MOST_FILES))
    return _undeclared(root, root, files)


def _settings_of_pytest(manifests: Manifests, folder: SourceFolder) -> str:
    """Return where pytest is configured, as a clause; empty if it is not."""
    for name in _SETTINGS_FILES:
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
    """Return where pytest or a plug-in of it is declared, as a clause."""
    for name, place in declared.items():
        if name == "pytest" or name.startswith("pytest-"):
            return f"declared in {place}"
    return ""


def _django(place: Path) -> ProjectRunner | None:
    for folder in source_folders(place, _DEPTH):
        if any(_DJANGO_TEST_FILE.fullmatch(name) for name in folder.files):
            words = ("python", "manage.py", "test")
            return ProjectRunner("python", words, "there is a manage.py")
    return None


def _undeclared(
    root: Path, place: Path, files: Sequence[PurePosixPath]
) -> ProjectRunner | None:
    """Return the runner of test files that no manifest says anything about. Pytest also
    runs tests of unittest, so unittest runs them only in a project's environment that
    has no pytest.
    """
    if not files:
        return None
    reason = f"there is {files[0]}"
    if own_python(root, place) and pytest_environment(root, place) is None:
        words = _unittest_words(place, files)
        if words:
            return ProjectRunner("python", words, reason)
    return ProjectRunner("python", ("pytest",), reason)


def _unittest_words(place: Path, files: Sequence[PurePosixPath]) -> tuple[str, ...]:
    """Return the words that run the files with unittest; empty if some are not for
    unittest, or if it cannot find all of them from one folder.
    """
    starts: set[PurePosixPath] = set()
    for file in files:
        data = _read(place / file)
        is_for_pytest = _FOR_PYTEST.search(data) and not _FOR_UNITTEST.search(data)
        if is_for_pytest or not file.name.startswith("test"):
            return ()
        starts.add(_start_folder(place, file))
    if len(starts) != 1:
        return ()
    start = starts.pop()
    words = ("python", "-m", "unittest", "discover")
    return words if start == PurePosixPath() else (*words, "-s", str(start))


def _start_folder(place: Path, file: PurePosixPath) -> PurePosixPath:
    """Return the folder around the packages that a test file is in: unittest finds the
    file from there.
    """
    folder = file.parent
    while folder.parts and (place / folder / "__init__.py").is_file():
        folder = folder.parent
    return folder


def _test_files(place: Path, *, is_deep: bool) -> Iterator[PurePosixPath]:
    """Yield the test files in a folder: of the whole project, or only of its usual
    folders for tests.
    """
    for folder in source_folders(place, _DEPTH if is_deep else 3):
        first = folder.path.partition("/")[0]
        if not is_deep and first not in _TEST_FOLDERS:
            continue
        for name in sorted(folder.files):
            if _TEST_FILE.fullmatch(name):
                yield PurePosixPath(folder.path, name)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
