"""`cdd exec --driven` as a process, driven as docs/reference/events.md shows."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.commandline import STEPS, script
from tests.support.projects import SLUG, Sandbox, Step, check, endless_check, says

pytestmark = pytest.mark.fork
REFERENCE = Path(__file__).parents[2] / "docs" / "reference"


class Run:
    """A driven run, line by line."""

    def __init__(self, sandbox: Sandbox, *flags: str) -> None:
        self.process = subprocess.Popen(
            ["cdd", "exec", SLUG, "--driven", *flags],
            cwd=sandbox.root,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def read_until(self, name: str) -> dict[str, Any]:
        """The next event of this name."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            event: dict[str, Any] = json.loads(line)
            if event["event"] == name:
                return event
        raise AssertionError(f"no {name}")

    def write(self, **line: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(line) + "\n")
        self.process.stdin.flush()

    def end(self) -> int:
        """The exit code. What is still printed is read."""
        assert self.process.stdout is not None
        with self.process.stdout:
            self.process.stdout.read()
        code = self.process.wait(timeout=120)
        self.close_input()
        return code

    def close_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()


def test_the_example_of_the_docs_drives_a_run(sandbox: Sandbox) -> None:
    text = (REFERENCE / "events.md").read_text()
    example = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert example is not None
    (sandbox.root / ".cdd").mkdir()
    (sandbox.root / "drive.py").write_text(example[1])
    sandbox.write(*STEPS)
    model = script(sandbox, says("a.txt", "good"), says("b.txt", "good"))
    settings = f"model: {model}\napproval: ask\nbudget: {{tokens: 100000}}\n"
    (sandbox.root / ".cdd" / "config.yaml").write_text(settings)
    driving = subprocess.run(
        [sys.executable, "drive.py", SLUG],
        cwd=sandbox.root,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (driving.returncode, driving.stderr) == (0, "")
    assert driving.stdout == "step 1: completed\nstep 2: completed\n"
    assert (sandbox.root / "b.txt").read_text() == "good\n"


@pytest.mark.parametrize("how", ["cancel", "end of input"])
def test_a_run_that_is_stopped_restores_the_step(sandbox: Sandbox, how: str) -> None:
    sandbox.write(Step("a.txt", endless_check()))
    (sandbox.root / ".cdd").mkdir(exist_ok=True)
    run = Run(sandbox, "--yes", "--model", script(sandbox, says("a.txt", "good")))
    run.read_until("tests_started")
    assert (sandbox.root / "a.txt").exists()
    if how == "cancel":
        run.write(command="cancel")
    else:
        run.close_input()
    assert run.end() == 130
    assert not (sandbox.root / "a.txt").exists()
    assert sandbox.statuses() == ["pending"]


def test_a_no_with_a_reason_asks_the_model_again(sandbox: Sandbox) -> None:
    sandbox.write(Step("a.txt", check("a.txt")))
    (sandbox.root / ".cdd").mkdir(exist_ok=True)
    model = script(sandbox, says("a.txt", "bad"), says("a.txt", "good"))
    (sandbox.root / ".cdd" / "config.yaml").write_text("approval: ask\n")
    run = Run(sandbox, "--model", model)
    first = run.read_until("answer_needed")
    run.write(command="answer", id=first["id"], choice="no", text="say good")
    second = run.read_until("answer_needed")
    assert (first["kind"], second["kind"]) == ("changes", "changes")
    run.write(command="answer", id=second["id"], choice="yes")
    assert run.read_until("run_finished")["status"] == "completed"
    assert run.end() == 0
