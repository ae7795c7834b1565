"""`cdd exec`: its exit codes and events, and how it is stopped, refused and gone on
with.
"""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.git.test_status import git
from tests.support.commandline import (
    STEPS,
    cdd,
    events,
    process,
    script,
    wait_for,
    without_override,
)
from tests.support.projects import SLUG, Sandbox, Step, endless_check, says
from tests.support.tables import each_row


def test_exec_waits_for_a_provider_and_ends_with_75_where_that_would_be_too_long(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    sandbox.write(*STEPS)
    limits = [
        f"{{error: rate_limited, retry_after: {seconds}}}" for seconds in (0, 600)
    ]
    replies = [limits[0], json.dumps({"reply": says("a.txt", "good")}), limits[1]]
    (sandbox.root / ".cdd" / "script.yaml").write_text(
        f"replies: [{', '.join(replies)}]"
    )

    assert cdd(sandbox, "exec", SLUG, "--model", "script:.cdd/script.yaml") == 75

    out = capsys.readouterr().out
    # a second, and a quarter of it more or less by chance
    assert len(re.findall(r"in [12] s", out)) == 1
    assert "(1/2)" in out
    assert " 10 minutes" in out
    assert sandbox.statuses() == ["completed", "pending"]


@each_row(
    "words",
    [
        ("pull", SLUG),
        ("pull", "nothing-here"),
        ("push", SLUG),
        ("exec", SLUG),
        ("exec", SLUG, "feature-nope"),
        ("exec", SLUG, "--worktree"),
        ("compare", SLUG),
        ("land", SLUG),
        ("undo", SLUG),
    ],
)
def test_what_is_refused_makes_no_project_of_a_folder(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    sandbox = Sandbox(tmp_path).write(STEPS[0])
    (sandbox.ticket / "plan.md").unlink()
    (tmp_path / ".cdd").rmdir()
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "commit", "--quiet", "--allow-empty", "--message=A project")

    assert cdd(sandbox, *words) == 2

    assert not (tmp_path / ".cdd").exists()
    assert len(git(tmp_path, "branch", "--format=%(refname)").splitlines()) == 1


def test_exec_runs_to_the_end_and_exits_0(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    sandbox.write(*STEPS)
    model = script(
        sandbox, says("a.txt", "bad"), says("a.txt", "good"), says("b.txt", "good")
    )

    assert cdd(sandbox, "exec", SLUG, "--model", model) == 0

    out = capsys.readouterr().out
    assert "attempt 2" in out
    assert "says bad" in out
    assert any("2/2" in line for line in out.splitlines()[-5:])
    assert sandbox.text("b.txt") == "good\n"


def test_exec_again_says_that_all_is_done_and_needs_no_model(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    sandbox.write(STEPS[0])
    cdd(sandbox, "exec", SLUG, "--model", script(sandbox, says("a.txt", "good")))
    capsys.readouterr()
    before = sandbox.state()
    assert cdd(sandbox, "exec", SLUG, "--json") == 0
    assert "all_done" in [event.get("kind") for event in events(capsys)]
    assert sandbox.state() == before


def test_exec_json_is_one_event_a_line(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    sandbox.write(STEPS[0])
    assert (
        cdd(
            sandbox,
            "exec",
            SLUG,
            "--json",
            "--model",
            script(sandbox, says("a.txt", "good")),
        )
        == 0
    )
    seen = events(capsys)
    names = [event["event"] for event in seen]
    assert names[0] == "plan_opened"
    assert names[-1] == "run_finished"
    assert {
        "step_started",
        "reply_delta",
        "changes_applied",
        "tests_finished",
        "step_finished",
    } <= set(names)
    assert seen[-1]["status"] == "completed"


def test_exec_that_fails_exits_1_after_max_attempts(sandbox: Sandbox) -> None:
    sandbox.write(*STEPS)
    model = script(sandbox, *[says("a.txt", "bad")] * 5)
    assert cdd(sandbox, "exec", SLUG, "--model", model, "--max-attempts", "2") == 1
    assert sandbox.state()["step_executions"]["1"]["attempts"] == 2


@pytest.mark.story
def test_the_baseline_is_told_and_a_step_with_old_failures_is_done_and_says_so(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    (sandbox.root / "test_a.py").write_text("def test_old():\n    assert 0\n")
    sandbox.write(Step("a.txt"))
    assert (
        cdd(
            sandbox,
            "exec",
            SLUG,
            "--json",
            "--model",
            script(sandbox, says("a.txt", "good")),
        )
        == 0
    )
    told = {event["event"]: event for event in events(capsys)}
    assert (told["baseline_taken"]["step"], told["baseline_taken"]["failed"]) == (1, 1)
    assert told["tests_finished"]["verification"] == "baseline"
    assert (told["step_finished"]["status"], told["step_finished"]["verification"]) == (
        "completed",
        "baseline",
    )
    assert told["run_finished"]["with_old_failures"] == 1


def test_approval_is_needed_where_the_config_asks_for_it(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    sandbox.write(STEPS[0])
    (sandbox.root / ".cdd/config.yaml").write_text("approval: ask\n")
    model = script(sandbox, says("a.txt", "good"))
    assert cdd(sandbox, "exec", SLUG, "--model", model) == 3
    assert "--yes" in capsys.readouterr().out
    assert not (sandbox.root / "a.txt").exists()
    assert cdd(sandbox, "exec", SLUG, "--model", model, "--yes") == 0


@pytest.mark.xdist_group("litellm")  # which takes seconds to import
def test_a_model_that_nobody_knows_is_refused_before_anything_is_begun(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    sandbox.write(STEPS[0])
    assert cdd(sandbox, "exec", SLUG, "--model", "nix") == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert " nix" in captured.err
    assert not (sandbox.ticket / "execution-state.json").exists()
    (sandbox.root / ".cdd/config.yaml").write_text(
        "model: nix\napi_base: http://127.0.0.1:9/v1\n"
    )
    assert cdd(sandbox, "doctor") == 2
    assert " nix" in capsys.readouterr().out


@each_row(
    ("plan", "words"),
    [
        ("", "is empty"),
        ("# Nothing here\n", "no steps"),
        (
            (
                "### Step 1: A\n\n"
                "**Dependencies:** Step 2\n\n"
                "### Step 2: B\n\n"
                "**Dependencies:** Step 1\n"
            ),
            "plan.md:1",
        ),
        ("### Step 1: A\n\n### Step 1: B\n", "plan.md:3"),
        ("### Step 1: A\n\n**Dependencies:** Step 7\n", "7"),
    ],
)
def test_a_plan_that_cannot_run_is_refused_with_line_and_reason(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str], plan: str, words: str
) -> None:
    sandbox.write(STEPS[0])
    (sandbox.ticket / "plan.md").write_text(plan)
    assert cdd(sandbox, "exec", SLUG, "--model", script(sandbox)) == 2
    assert words in capsys.readouterr().err
    assert not (sandbox.ticket / "execution-state.json").exists()


def test_a_ticket_without_a_plan_names_the_way_to_one(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    sandbox.write(STEPS[0])
    (sandbox.ticket / "plan.md").unlink()
    assert cdd(sandbox, "exec", SLUG, "--model", script(sandbox)) == 2
    assert "cdd plan" in capsys.readouterr().err


def test_an_unreadable_state_is_set_aside_once_and_then_the_run_starts_afresh(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    sandbox.write(STEPS[0])
    (sandbox.ticket / "execution-state.json").write_text("{torn")
    model = script(sandbox, says("a.txt", "good"))
    assert cdd(sandbox, "exec", SLUG, "--model", model) == 2
    assert "renamed to" in capsys.readouterr().err
    assert [path.read_text() for path in sandbox.ticket.glob("*.aside-*")] == ["{torn"]
    assert cdd(sandbox, "exec", SLUG, "--model", model) == 0


@pytest.mark.fork
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_puts_the_step_back_and_exits_130(sandbox: Sandbox, name: str) -> None:
    sandbox.write(Step("a.txt", endless_check()))
    running = process(
        sandbox, "exec", SLUG, "--model", script(sandbox, says("a.txt", "good"))
    )
    wait_for((sandbox.root / "running").exists)

    running.send_signal(getattr(signal, name))
    _, err = running.communicate()

    assert running.returncode == 130
    assert "Interrupted" in err
    assert "Traceback" not in err
    assert not (sandbox.root / "a.txt").exists()
    assert sandbox.statuses() == ["pending"]


@pytest.mark.fork
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_that_ends_the_reader_too_is_an_interrupt(
    sandbox: Sandbox, name: str
) -> None:
    """Ctrl+C goes to all that was started together, as by `cdd exec SLUG | tee log`."""
    sandbox.write(Step("a.txt", endless_check()))
    command = [
        sys.executable,
        "-m",
        "cdd_agent",
        "exec",
        SLUG,
        "--model",
        script(sandbox, says("a.txt", "good")),
    ]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=sandbox.root, env=environment, stdout=pipe, stderr=pipe, text=True
    ) as running:
        assert running.stdout
        assert running.stderr
        wait_for((sandbox.root / "running").exists)
        running.stdout.close()
        running.send_signal(getattr(signal, name))
        assert "Interrupted" in running.stderr.read()

    assert running.returncode == 130
    assert sandbox.statuses() == ["pending"]


@pytest.mark.fork
def test_after_a_kill_the_next_run_goes_on_without_asking_the_model_again(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt", endless_check()))
    model = script(sandbox, says("a.txt", "good"))
    running = process(sandbox, "exec", SLUG, "--model", model)
    wait_for((sandbox.root / "running").exists)
    running.kill()
    running.communicate()
    assert sandbox.statuses() == ["in_progress"]
    assert sandbox.text("a.txt") == "good\n"
    script(sandbox)

    out, err = process(sandbox, "exec", SLUG, "--model", model, "--json").communicate()

    seen = [json.loads(line) for line in out.splitlines()]
    assert [event["kind"] for event in seen[:2]] == [
        "command_ended",
        "resumed",
    ], err
    assert [event["saved"] for event in seen if event["event"] == "reply_started"] == [
        True
    ]
    assert sandbox.statuses() == ["completed"]


@pytest.mark.fork
def test_two_at_once_are_refused(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    sandbox.write(Step("a.txt", endless_check()))
    model = script(sandbox, says("a.txt", "good"))
    running = process(sandbox, "exec", SLUG, "--model", model)
    wait_for((sandbox.root / "running").exists)
    assert cdd(sandbox, "exec", SLUG, "--model", model) == 2
    assert f" {running.pid} " in capsys.readouterr().err
    running.terminate()
    running.communicate()


@pytest.mark.fork
@pytest.mark.parametrize("place", ["tickets/feature-words", ".cdd"])
def test_a_read_only_folder_is_told_and_nothing_is_written_half(
    sandbox: Sandbox, place: str
) -> None:
    sandbox.write(STEPS[0])
    model = script(sandbox, says("a.txt", "good"))
    folder = sandbox.root / place
    folder.chmod(0o555)
    command = without_override(
        sys.executable, "-m", "cdd_agent", "exec", SLUG, "--model", model
    )
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(__file__).parents[1]),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    result = subprocess.run(
        command, cwd=sandbox.root, env=environment, capture_output=True, text=True
    )
    folder.chmod(0o755)

    assert result.returncode == 2, result.stderr
    assert "Permission denied" in result.stderr
    assert "Traceback" not in result.stderr
    assert not (sandbox.root / "a.txt").exists()
    assert not list(sandbox.root.rglob("*.tmp"))


@pytest.mark.fork
def test_a_reader_that_leaves_in_a_check_leaves_a_pending_step_and_the_old_files(
    sandbox: Sandbox,
) -> None:
    code = (
        "import time; [print(n, flush=True) or time.sleep(0.02) for n in range(3000)]"
    )
    sandbox.write(Step("a.txt", f'python -c "{code}"'))
    (sandbox.root / "a.txt").write_text("before\n")
    running = process(
        sandbox,
        "exec",
        SLUG,
        "--model",
        script(sandbox, says("a.txt", "good")),
        "--json",
    )
    while "command_output" not in running.stdout.readline():
        pass
    running.stdout.close()
    assert running.stderr.read() == ""
    running.stderr.close()
    running.wait()
    assert sandbox.statuses() == ["pending"]
    assert sandbox.text("a.txt") == "before\n"


@pytest.mark.fork
def test_who_reads_from_a_pipe_sees_a_line_when_it_is_told_and_not_at_the_end(
    sandbox: Sandbox,
) -> None:
    waits = (
        "import pathlib, time\n"
        "for _ in range(10_000):\n"
        "    if pathlib.Path('go').exists(): raise SystemExit\n"
    )
    waits += "    time.sleep(0.02)\nraise SystemExit(1)"
    (sandbox.root / "waits.py").write_text(waits)
    sandbox.write(Step("a.txt", "python waits.py"))
    running = process(
        sandbox, "exec", SLUG, "--model", script(sandbox, says("a.txt", "good"))
    )
    while "created a.txt" not in (line := running.stdout.readline()):
        assert line
    (sandbox.root / "go").touch()
    assert "1 by exit code" in running.communicate()[0]


@pytest.mark.fork
@pytest.mark.parametrize("command", ["exec", "plan"])
def test_a_name_that_takes_long_to_look_for_is_not_looked_for_in_silence(
    sandbox: Sandbox, command: str
) -> None:
    sandbox.write(*STEPS)
    slow = (
        "import sys; from threading import Timer, enumerate as running;from"
        " cdd_agent.llm import litellm_adapter as adapter; from cdd_agent.cli.main"
        " import main;said = lambda: [one.join() for one in running() if"
        " isinstance(one, Timer)];adapter.load_litellm = lambda: said() and"
        " sys.exit('never comes'); sys.exit(main(sys.argv[1:]))"
    )
    flags = ["--regenerate"] if command == "plan" else ["--json"]
    for model, is_slow in (("nonsense/one", True), (script(sandbox, "nothing"), False)):
        argv = [sys.executable, "-c", slow, command, SLUG, "--model", model, *flags]
        done = subprocess.run(
            argv,
            cwd=sandbox.root,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert "looking for the provider of the model" in done.stderr or not is_slow
        assert ("never comes" in done.stderr) is is_slow
        assert "looking for" not in done.stdout
