"""A run that was recorded is the same run again, elsewhere, without its model."""

import json
from pathlib import Path

import pytest

from cdd_agent.cli.main import main
from cdd_agent.tickets.status import StepStatus
from tests.support.projects import SLUG, Sandbox, Step, check, says


def noisy_check(path: str) -> str:
    """A check whose output is new in each run."""
    code = (
        "import os, time; print('in', os.getcwd(), 'process', os.getpid(), 'at',"
        " time.ctime(), time.time(), '0.5 s', object());"
        f" raise SystemExit('good' not in open('{path}').read())"
    )
    return f'python -S -c "{code}"'


STEPS = (
    Step("a.txt", noisy_check("a.txt")),
    Step("b.txt", check("b.txt"), "Step 1"),
)


def cdd_exec(sandbox: Sandbox, *arguments: str) -> int:
    return main(["exec", SLUG, *arguments, "-C", str(sandbox.root)])


def project(folder: Path) -> Sandbox:
    folder.mkdir()
    return Sandbox(folder).write(*STEPS)


@pytest.fixture
def record(tmp_path: Path) -> Path:
    """A run of two steps, with a failed attempt and a cut reply in it."""
    first = project(tmp_path / "my own first")
    replies = [
        {"reply": says("a.txt", "bad")},
        {"reply": says("a.txt", "good"), "cut": 9},
        {"reply": says("a.txt", "good")},
        {"reply": says("b.txt", "good")},
    ]
    (first.root / ".cdd" / "script.yaml").write_text(json.dumps({"replies": replies}))
    assert (
        cdd_exec(first, "--model", "script:.cdd/script.yaml", "--record", "run.jsonl")
        == 0
    )
    assert len((first.root / "run.jsonl").read_text().splitlines()) == 4
    changed = "\n".join(
        path.read_text() for path in (first.root / ".cdd/runs").rglob("changes.diff")
    )
    assert "a.txt" in changed
    assert "run.jsonl" not in changed  # no step is blamed for it
    return first.root / "run.jsonl"


def test_a_recorded_run_is_played_in_another_folder(
    tmp_path: Path, record: Path
) -> None:
    second = project(tmp_path / "second")
    assert cdd_exec(second, "--model", f"replay:{record}") == 0
    assert (second.text("a.txt"), second.text("b.txt")) == ("good\n", "good\n")
    assert second.statuses() == [StepStatus.COMPLETED] * 2
    assert second.state()["step_executions"]["1"]["attempts"] == 2


def test_where_the_project_is_another_one_it_says_what_differs(
    tmp_path: Path, record: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    second = project(tmp_path / "second")
    second.write(Step("a.txt", check("a.txt"), description="Make-it-blue."), STEPS[1])
    assert cdd_exec(second, "--model", f"replay:{record}") == 1
    said = capsys.readouterr().out
    assert "1:" in said
    assert "'Make it.'" in said
    assert "'Make-it-blue.'" in said


def test_a_record_that_is_not_there_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cdd_exec(project(tmp_path / "second"), "--model", "replay:no.jsonl") == 2
    assert "no.jsonl" in capsys.readouterr().err
