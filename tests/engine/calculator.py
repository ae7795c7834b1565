"""A small project with pytest, for stories of runs that are believed or not."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from cdd_agent.llm.port import QuotaUsedUp
from tests.support.projects import Sandbox, Step, plan, run_all

CALC = "def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return a + b\n"
"""`sub` adds, so its test fails."""
FIXED = CALC.replace("sub(a, b):\n    return a + b", "sub(a, b):\n    return a - b")
BROKEN = CALC.replace("add(a, b):\n    return a + b", "add(a, b):\n    return a * b")
TEST_ADD = "def test_add():\n    assert add(1, 2) == 3\n"
TEST_SUB = "def test_sub():\n    assert sub(3, 1) == 2\n"
TESTS = f"from calc import add, sub\n\n\n{TEST_ADD}\n\n{TEST_SUB}"
SETTINGS = '[tool.pytest.ini_options]\npythonpath = ["."]\n'
ADD, SUB = "tests/test_calc.py::test_add", "tests/test_calc.py::test_sub"


def calculator(sandbox: Sandbox, *steps: Step, **files: str) -> Sandbox:
    """The project, with a plan of these steps. Files by name, with `__` for `/` and
    `_dot_` for `.`
    """
    sandbox.write(*(steps or (Step("calc.py"),)))
    present = {
        "calc_dot_py": CALC,
        "tests__test_calc_dot_py": TESTS,
        "pyproject_dot_toml": SETTINGS,
        **files,
    }
    for path, text in _by_path(present).items():
        (sandbox.root / path).parent.mkdir(parents=True, exist_ok=True)
        (sandbox.root / path).write_text(text)
    return sandbox


async def begin(sandbox: Sandbox) -> None:
    """Take the baseline, and get no reply: the run goes on from there."""
    await run_all(sandbox.replies(QuotaUsedUp("Nothing is left")))


def begun(sandbox: Sandbox, original: Path, *steps: Step) -> Sandbox:
    """The project as its run has begun in `original`, with a plan of these steps."""
    shutil.copytree(original, sandbox.root, symlinks=True, dirs_exist_ok=True)
    (sandbox.ticket / "plan.md").write_text(plan(steps))
    return sandbox


def gives(**files: str) -> str:
    """A reply with files, that claims the best."""
    blocks = [
        f"```text:{path}\n{text.rstrip()}\n```\n"
        for path, text in _by_path(files).items()
    ]
    return "\n".join(["It is done, and all tests pass!\n", *blocks])


def _by_path(files: Mapping[str, str]) -> dict[str, str]:
    return {
        name.replace("__", "/").replace("_dot_", "."): text
        for name, text in files.items()
    }
