"""Projects with several runners of tests: each has its baseline and its check."""

from cdd_agent.events.notices import Notice
from cdd_agent.events.run_events import BaselineTaken
from cdd_agent.events.step_events import TestsFinished
from cdd_agent.events.stream import Event
from tests.support.projects import Sandbox, Step, run_all, says

DEV_GROUP = '[dependency-groups]\ndev = ["pytest"]\n'
GOOD = "def test_it():\n    assert True\n"
BAD = "def test_it():\n    assert False\n"


def write(sandbox: Sandbox, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = sandbox.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def commands(events: list[Event], kind: type) -> list[str]:
    return [event.command for event in events if isinstance(event, kind)]


async def test_the_checks_of_all_folders_run_and_are_compared(sandbox: Sandbox) -> None:
    sandbox.write(
        Step("api/app.py"), Step("web/app.py", also=("web/tests/test_it.py",))
    )
    write(
        sandbox,
        {
            "api/pyproject.toml": DEV_GROUP,
            "api/tests/test_it.py": GOOD,
            "web/pyproject.toml": DEV_GROUP,
            "web/tests/test_it.py": BAD,
        },
    )
    sandbox.replies(
        says("api/app.py", "x = 1"),
        f"```python:web/tests/test_it.py\n{GOOD}```\n```python:web/app.py\ny = 1\n```",
    )
    events = await run_all(sandbox)

    both = ["cd api && pytest", "cd web && pytest"]
    assert commands(events, BaselineTaken) == both
    assert commands(events, TestsFinished) == [*both, *both]
    states = sandbox.state()["step_executions"].values()
    assert [step["verification"] for step in states] == ["baseline", "passed"]


async def test_a_step_that_breaks_the_tests_of_another_folder_fails(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("shared.py"))
    test = "import sys\nsys.path.insert(0, '..')\nimport shared\n{}"
    write(
        sandbox,
        {
            "shared.py": "a = 1\nb = 1\n",
            "api/pyproject.toml": DEV_GROUP,
            "api/test_api.py": test.format("def test_a(): assert shared.a\n"),
            "web/pyproject.toml": DEV_GROUP,
            "web/test_web.py": test.format("def test_b(): assert shared.b\n"),
        },
    )
    sandbox.replies(says("shared.py", "a = 1\nb = 0"))
    await run_all(sandbox, attempts=1)
    (step,) = sandbox.state()["step_executions"].values()
    assert step["status"] == "failed"
    assert "web/test_web.py::test_b" in step["error"]


async def test_a_change_that_breaks_declared_tests_in_a_deep_folder_fails(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("src/app/add.py"))
    test = "from pathlib import Path\n\ndef test_add():\n    assert '+' in {}\n"
    write(
        sandbox,
        {
            "pyproject.toml": DEV_GROUP,
            "src/app/add.py": "def add(a, b):\n    return a + b\n",
            "src/app/tests/test_add.py": test.format(
                "Path('src/app/add.py').read_text()"
            ),
        },
    )
    sandbox.replies(says("src/app/add.py", "def add(a, b):\n    return a - b"))
    await run_all(sandbox, attempts=1)
    (step,) = sandbox.state()["step_executions"].values()
    assert step["status"] == "failed"
    assert "src/app/tests/test_add.py::test_add" in step["error"]


async def test_a_runner_that_does_not_run_is_named_once(sandbox: Sandbox) -> None:
    sandbox.write(Step("app.py"), Step("more.py"))
    write(
        sandbox,
        {
            "pyproject.toml": DEV_GROUP,
            "tests/test_it.py": GOOD,
            "web/package.json": (
                '{"scripts": {"test": "vitest"}, "dependencies": {"vitest": "3"}}'
            ),
        },
    )
    sandbox.replies(says("app.py", "x = 1"), says("more.py", "y = 1"))
    events = await run_all(sandbox)
    notices = [event.text for event in events if isinstance(event, Notice)]
    assert len([text for text in notices if "cd web && npm test" in text]) == 1
    assert set(commands(events, TestsFinished)) == {"pytest"}
