"""Which changes decide how tests are run."""

from pathlib import Path, PurePosixPath

from cdd_agent.changes.change_set import FileChange
from cdd_agent.verification.harness import (
    changes_of_harness,
    conftests,
    first_settings,
)
from cdd_agent.verification.invocation import invocation
from tests.support.tables import each_row

PYTEST = invocation(["pytest"], Path())
FIXTURES = (
    "import sys\n"
    "import pytest\n\n"
    "sys.path.insert(0, 'src')\n\n"
    "@pytest.fixture\n"
    "def user(): return 1\n"
)
HOOK = "def pytest_collection_modifyitems(items):\n    items[:] = items[:1]\n"
PYPROJECT = (
    "[project]\n"
    "name = 'x'\n"
    "dependencies = [{}]\n"
    "[tool.pytest.ini_options]\n"
    "addopts = '{}'\n"
)


def change(path: str, before: str | None, after: str) -> FileChange:
    return FileChange(
        PurePosixPath(path), None if before is None else before.encode(), after.encode()
    )


@each_row(
    ("path", "before", "after"),
    [
        ("pytest.ini", None, "[pytest]\n"),
        (".pytest.ini", "[pytest]\n", "[pytest]\naddopts = -k x\n"),
        ("sub/pytest.toml", None, "x"),
        (
            "pyproject.toml",
            PYPROJECT.format("", ""),
            PYPROJECT.format("", "--ignore=tests"),
        ),
        ("pyproject.toml", PYPROJECT.format("", ""), "["),
        ("pyproject.toml", None, PYPROJECT.format("", "")),
        ("setup.cfg", "[metadata]\n", "[metadata]\n[tool:pytest]\ntestpaths = x\n"),
        ("tox.ini", "[tox]\n", "[pytest]\naddopts = -x\n"),
        ("conftest.py", None, HOOK),
        ("tests/unit/conftest.py", FIXTURES, FIXTURES + HOOK),
        ("conftest.py", HOOK, HOOK.replace("[:1]", "[:0]")),
        ("conftest.py", HOOK, ""),
        ("conftest.py", None, "async def pytest_runtest_makereport(item): ..."),
        ("conftest.py", None, "collect_ignore = ['tests']"),
        ("conftest.py", "collect_ignore = []", "collect_ignore = ['tests']"),
        (
            "conftest.py",
            "collect_ignore = []",
            "collect_ignore = []\ncollect_ignore += ['tests']",
        ),
        ("conftest.py", None, "pytest_plugins = ['x']"),
        ("conftest.py", None, "pytest_runtest_call = lambda item: None"),
        ("conftest.py", None, "import os\nos._exit(0)"),
        ("conftest.py", None, "import sys\nsys.exit(0)"),
        ("conftest.py", None, "raise SystemExit"),
        ("conftest.py", None, "raise SystemExit(0)"),
        ("conftest.py", None, "import atexit"),
        ("conftest.py", None, "import _pytest.runner as r"),
        ("conftest.py", None, "from _pytest import runner"),
        ("conftest.py", None, "from plugin import pytest_runtest_call"),
        ("conftest.py", None, "from plugin import *"),
        ("conftest.py", None, "def broken(:"),
        ("conftest.py", None, "(" * 10_000),
        ("pytest.py", None, "print('1 passed')"),
        ("_pytest/__init__.py", None, ""),
        ("sitecustomize.py", None, ""),
    ],
)
def test_what_pytest_goes_by(path: str, before: str | None, after: str) -> None:
    for runs in (PYTEST, None):
        assert changes_of_harness([change(path, before, after)], runs) == (path,)


@each_row(
    ("path", "before", "after"),
    [
        ("conftest.py", None, FIXTURES),
        ("conftest.py", FIXTURES + HOOK, FIXTURES.replace("1", "2") + HOOK),
        (
            "conftest.py",
            None,
            (
                "@pytest.fixture\n"
                "def app(monkeypatch):\n"
                "    monkeypatch.setattr(x, 'y', 1)\n"
            ),
        ),
        ("conftest.py", None, "register(UserFactory)"),
        (
            "pyproject.toml",
            PYPROJECT.format("", ""),
            PYPROJECT.format("'requests'", ""),
        ),
        ("pyproject.toml", None, "[project]\n"),
        (
            "setup.cfg",
            "[tool:pytest]\naddopts = -q\n",
            "[metadata]\nx = 1\n[tool:pytest]\naddopts = -q\n",
        ),
        ("src/pytest_like.py", None, "x"),
        ("tests/test_x.py", "def test_x(): ...", ""),
        ("package.json", "{}", '{"dependencies": {"x": "1"}}'),
        ("docs/Makefile.md", None, "x"),
    ],
)
def test_what_decides_nothing(path: str, before: str | None, after: str) -> None:
    for runs in (PYTEST, None):
        assert changes_of_harness([change(path, before, after)], runs) == ()


@each_row(
    ("path", "before", "after"),
    [
        (
            "package.json",
            '{"scripts": {"test": "vitest"}}',
            '{"scripts": {"test": "true"}}',
        ),
        ("package.json", "{}", '{"jest": {"testMatch": []}}'),
        ("package.json", "{}", "["),
        ("vitest.config.ts", None, "x"),
        (".mocharc.json", None, "x"),
        ("Makefile", "test:\n\tcargo test\n", "test:\n\ttrue\n"),
        ("tox.ini", "[testenv]\ncommands = x", "[testenv]\ncommands = true"),
        (".cargo/config.toml", None, "x"),
        ("check.sh", "exit 1", "exit 0"),
    ],
)
def test_what_only_other_programs_go_by(
    path: str, before: str | None, after: str
) -> None:
    changes = [change(path, before, after)]
    assert changes_of_harness(changes, None, "check.sh") == (path,)
    assert changes_of_harness(changes, PYTEST) == ()


TEST_MAIN = "package x\n\nfunc TestMain(m *testing.M) {\n\tm.Run()\n\tos.Exit(0)\n}\n"


@each_row(
    ("path", "before", "after"),
    [
        ("all_test.go", None, TEST_MAIN),
        ("sub/x_test.go", TEST_MAIN, TEST_MAIN.replace("\tm.Run()\n", "")),
        ("x_test.go", "package x\n" + TEST_MAIN[10:], "package x\n"),
        ("x_test.go", None, TEST_MAIN.replace("func TestMain(", "func  TestMain (")),
        ("x_test.go", None, "func TestMain(m *testing.M) { os.Exit(0) }"),
        ("x_test.go", None, "func TestMain(m *testing.M) {"),
    ],
)
def test_what_go_test_goes_by(path: str, before: str | None, after: str) -> None:
    changes = [change(path, before, after)]
    for runs in (invocation(["go", "test", "./..."], Path()), None):
        assert changes_of_harness(changes, runs) == (path,)
    assert first_settings(changes) == ()


@each_row(
    ("path", "before", "after"),
    [
        ("x_test.go", TEST_MAIN, TEST_MAIN + "\nfunc TestX(t *testing.T) {}\n"),
        ("x_test.go", None, "package x\n\nfunc TestMainWindow(t *testing.T) {}\n"),
        ("x_test.go", None, "// func TestMain(m *testing.M) is in y_test.go\n"),
        ("main.go", None, TEST_MAIN),
    ],
)
def test_what_go_test_does_not_go_by(path: str, before: str | None, after: str) -> None:
    changes = [change(path, before, after)]
    assert changes_of_harness(changes, invocation(["go", "test"], Path())) == ()


def test_a_step_may_make_the_script_that_checks_it() -> None:
    assert (
        changes_of_harness([change("check.sh", None, "exit 0")], None, "check.sh") == ()
    )


def test_every_conftest_is_shown() -> None:
    changes = [
        change("tests/conftest.py", None, FIXTURES),
        change("tests/test_x.py", None, ""),
    ]
    assert conftests(changes) == ("tests/conftest.py",)
