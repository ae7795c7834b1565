"""The main job as a user meets it: a real project under git, real pytest, the real
adapter, a server on loopback.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cdd_agent.cli.main import main
from tests.llm.server import Answer, LoopbackServer, failure
from tests.support.forked import ran

USED_UP = "You have used up this hour."

SLUG = "feature-numbers"
KEY = "sk-test-0123456789abcdef"
STEPS = 6


def git(root: Path, *words: str) -> str:
    command = ["git", "-c", "user.name=A", "-c", "user.email=a@localhost", *words]
    return subprocess.run(
        command, cwd=root, check=True, capture_output=True, text=True
    ).stdout


def package(folder: Path, verify: str = "") -> Path:
    """A package under git with a passing test, and a plan of six steps that each add a
    module and its test.
    """
    root = folder / "my project"
    ticket = root / "tickets" / SLUG
    ticket.mkdir(parents=True)
    (root / "numbers_app").mkdir()
    (root / "tests").mkdir()
    (root / "numbers_app/__init__.py").touch()
    (root / "tests/test_present.py").write_text("def test_present(): pass\n")
    (root / "pyproject.toml").write_text(
        '[tool.pytest.ini_options]\npythonpath = ["."]\n'
    )
    (root / ".gitignore").write_text("__pycache__/\n.pytest_cache/\n")
    (ticket / "spec.yaml").write_text(
        "title: Numbers\ntype: feature\ndescription: Six.\nacceptance_criteria: [All]\n"
    )
    steps = [
        f"### Step {n}: Number {n}\n\n"
        f"**Description:** Write `n{n}`.\n"
        f"**Dependencies:** {'All previous steps' if n > 1 else 'None'}\n\n"
        f"{verify}**Files Affected:**\n"
        f"- `numbers_app/n{n}.py` (new)\n"
        f"- `tests/test_n{n}.py` (new)\n"
        for n in range(1, STEPS + 1)
    ]
    (ticket / "plan.md").write_text(
        "# Implementation Plan: Numbers\n\n## Implementation Steps\n\n"
        + "\n".join(steps)
    )
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "-m", "start")
    return root


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return package(tmp_path)


def reply(number: int, value: int | None = None) -> str:
    return (
        f"Number {number}.\n\n"
        f"```python:numbers_app/n{number}.py\n"
        f"VALUE = {value or number}\n"
        "```\n\n"
        f"```python:tests/test_n{number}.py\n"
        f"from numbers_app.n{number} import VALUE\n\n\n"
        "def test_it() -> None:\n"
        f"    assert VALUE == {number}\n"
        "```\n"
    )


def cdd(root: Path, url: str, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **{
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("OPENAI", "ANTHROPIC"))
        },
        "OPENAI_API_KEY": KEY,
        "OPENAI_BASE_URL": url,
    }
    return ran(*words, cwd=root, env=environment, timeout=300)


def state(root: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(
        (root / "tickets" / SLUG / "execution-state.json").read_text()
    )
    return content


@pytest.mark.fork
def test_a_plan_of_six_steps_is_carried_out_and_a_second_run_asks_nothing(
    project: Path,
) -> None:
    replies = [reply(n) for n in range(1, STEPS + 1)]
    replies.insert(4, reply(5, value=4))  # step 5 fails its tests at first
    with LoopbackServer(replies) as server:
        run = cdd(
            project, server.url, "exec", SLUG, "--model", "openai/any-model", "--json"
        )
        again = cdd(
            project, server.url, "exec", SLUG, "--model", "openai/any-model", "--json"
        )

    assert run.returncode == 0, run.stdout + run.stderr
    assert [
        line
        for line in run.stderr.splitlines()
        if "looking for the provider of the model" not in line
    ] == []
    events = [json.loads(line) for line in run.stdout.splitlines()]
    assert events[-1]["completed"] == STEPS
    assert [
        event["step"] for event in events if event["event"] == "attempt_failed"
    ] == [5]
    assert (
        len([event for event in events if event["event"] == "reply_delta"]) > 2 * STEPS
    )
    assert len(server.requests) == STEPS + 1
    assert server.requests[0].body["stream"] is True
    saved = state(project)
    assert saved["status"] == "completed"
    assert {step["verification"] for step in saved["step_executions"].values()} == {
        "passed"
    }
    assert "assert 4 == 5" in server.requests[5].body["messages"][-1]["content"]
    tests = subprocess.run(
        [sys.executable, "-m", "pytest", "-q"],
        cwd=project,
        capture_output=True,
        text=True,
    )
    assert f"{STEPS + 1} passed" in tests.stdout
    untracked = git(project, "status", "--short", "--untracked-files=all").split()
    assert not [path for path in untracked if "runs" in path or path.endswith(".tmp")]

    assert again.returncode == 0
    assert "no step ran" in again.stdout


USELESS = {
    "401": (failure(401, "Incorrect API key"), 2, "OPENAI_API_KEY"),
    "404": (
        failure(404, "The model does not exist", "model_not_found"),
        2,
        "any-model",
    ),
    "nothing": (Answer(""), 1, "empty reply"),
    "html": (
        Answer(raw="<html>It works!</html>", content_type="text/html"),
        1,
        "any-model",
    ),
    "words": (Answer("Everything is done and all tests pass."), 1, "does not change"),
}
"""Answers of a server, each with the exit code and a word that the user sees."""


def test_a_model_that_is_of_no_use_is_told_with_the_right_exit_code(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    for name, (answer, code, words) in USELESS.items():
        root = package(tmp_path / name, "**Verify:** none\n\n")
        with LoopbackServer([answer] * 3) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.url)
            command = ["exec", SLUG, "--model", "openai/any-model", "-C", str(root)]
            assert main(command) == code, name
        told = capsys.readouterr()
        assert words in told.out, name
        assert KEY not in told.out + told.err, name
        # only a reply can fail a step
        status = "failed" if name == "words" else "pending"
        assert state(root)["step_executions"]["1"]["status"] == status, name
        assert git(root, "status", "--short", "numbers_app", "tests") == "", name


@pytest.mark.fork
def test_a_provider_that_asks_for_hours_ends_the_run_with_75_and_the_next_one_goes_on(
    project: Path,
) -> None:
    plan = project / "tickets" / SLUG / "plan.md"
    plan.write_text(plan.read_text().partition("### Step 3")[0])
    later = failure(
        429, USED_UP, "rate_limit_exceeded", headers={"Retry-After": "5400"}
    )
    with LoopbackServer([reply(1), later, reply(2)]) as server:
        stopped = cdd(project, server.url, "exec", SLUG, "--model", "openai/any-model")
        saved = state(project)
        asked = len(server.requests)
        gone_on = cdd(project, server.url, "exec", SLUG, "--model", "openai/any-model")

    assert stopped.returncode == 75, stopped.stdout + stopped.stderr
    assert USED_UP in stopped.stdout
    assert " 90 minutes" in stopped.stdout
    assert asked == 2  # it was not asked again
    assert saved["status"] == "in_progress"
    assert [step["status"] for step in saved["step_executions"].values()] == [
        "completed",
        "pending",
    ]

    assert gone_on.returncode == 0, gone_on.stdout + gone_on.stderr
    assert state(project)["status"] == "completed"
    assert len(server.requests) == 3  # no step was asked for twice
    assert "2/2" in gone_on.stdout
