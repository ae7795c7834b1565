"""Which command decides about a step, and what its outcome means."""

import os
import sys
from pathlib import Path

import pytest

from cdd_agent.errors import BadInput, ExitCode, NotApproved
from cdd_agent.events.question_events import Choice, CommandProposed, Proposal
from cdd_agent.events.step_events import TestsFinished
from cdd_agent.events.step_summary import StepFinished
from cdd_agent.events.stream import Event
from cdd_agent.frontend import Nobody
from cdd_agent.process.policy import CommandRunner
from cdd_agent.settings.config import Commands
from cdd_agent.tickets.plan import PlanStep
from cdd_agent.tickets.status import Verification
from cdd_agent.verification.before import Before
from cdd_agent.verification.checks import (
    check_problems,
    checks_for,
    parse_command,
    read_checks,
)
from cdd_agent.verification.detection import detect
from cdd_agent.verification.facts import Work
from cdd_agent.verification.lost_tests import Comparison
from cdd_agent.verification.outcomes import Reference, Result, Selection, SuiteRun
from cdd_agent.verification.rule_words import useful_end
from cdd_agent.verification.test_id import TestId
from cdd_agent.verification.verdict import Verdict
from tests.support.fake_programs import FakePrograms
from tests.support.listening import collect
from tests.support.projects import Sandbox, Step, says
from tests.support.tables import each_row
from tests.support.verdicts import CHANGED, judge_one, run_of, verify


def program(folder: Path, name: str) -> Path:
    """A program that exists and does nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("#!/bin/sh\n")
    (folder / name).chmod(0o755)
    return folder / name


@pytest.fixture
def bare_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with nothing on it but what the test puts there."""
    folder = tmp_path / "path"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def project(tmp_path: Path, **files: str) -> Path:
    root = tmp_path / "project"
    for name, content in files.items():
        path = root / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    root.mkdir(exist_ok=True)
    return root


def test_python_is_found_where_only_python3_is_there_or_none_at_all(
    tmp_path: Path, bare_path: Path
) -> None:
    assert parse_command("python -c 1", tmp_path).argv[0] == sys.executable
    python3 = program(bare_path, "python3")
    assert parse_command("python -c 1", tmp_path).argv[0] == str(python3)
    python = program(bare_path, "python")
    assert parse_command("python -c 1", tmp_path).argv[0] == str(python)


def step(check: str | None) -> PlanStep:
    return PlanStep(
        number=1, title="x", description="", checks=(check,) if check else None
    )


def test_the_steps_own_check_wins_then_the_config_then_what_is_found(
    tmp_path: Path,
) -> None:
    commands = CommandRunner(project(tmp_path, go_dot_mod="module x"))
    shown = [
        [check.shown for check in checks_for(step(own), config, commands)]
        for own, config in (
            ("ls -l", "true"),
            ("none", "true"),
            ("None", None),
            (None, "true"),
            (None, None),
        )
    ]
    assert shown == [["ls -l"], [], [], ["true"], ["go test ./..."]]


FOR_A_SHELL = [
    *(
        "cd x && pytest && ls",
        "pytest | tee log",
        "pytest > log",
        "a; b",
        "a & b",
        "pytest 2>&1",
        "a;; b",
        "A=1 pytest",
    ),
    *("a\nb", "echo $(a)", "echo `a`", 'echo "$(a)"', "cat <<EOF\nEOF"),
]


@each_row("command", FOR_A_SHELL)
def test_a_check_that_needs_a_shell_is_refused_with_a_way_out(
    tmp_path: Path, command: str
) -> None:
    for mode in ("safe", "ask"):
        with pytest.raises(BadInput, match="needs a shell") as caught:
            parse_command(command, tmp_path, Commands(mode=mode))  # type: ignore[arg-type]
        assert "Makefile" in caught.value.hint
        assert "ask" not in caught.value.hint
    assert parse_command(command, tmp_path, Commands(mode="unsafe")).command.in_shell


def test_quoted_operators_are_plain_arguments(tmp_path: Path) -> None:
    assert parse_command("grep -E 'a|b' '>' f", tmp_path).argv[1:] == (
        "-E",
        "a|b",
        ">",
        "f",
    )


def test_the_persons_own_command_may_be_any_program(
    tmp_path: Path, bare_path: Path
) -> None:
    own = program(tmp_path / "tests", "run.sh")
    tester = program(bare_path, "our-tester")
    assert parse_command("./tests/run.sh", tmp_path).argv == (str(own),)
    assert parse_command("our-tester -v", tmp_path).argv == (str(tester), "-v")
    assert parse_command("missing-tester -v", tmp_path).argv == ("missing-tester", "-v")


@each_row(
    ("files", "test_command", "command"),
    [
        (
            {"package_dot_json": '{"scripts": {"test": "vitest"}}'},
            None,
            "npm test -- x",
        ),
        ({"Cargo_dot_toml": "[package]"}, None, "cargo test parser"),
        ({"go_dot_mod": "module x"}, None, "go test ./parser"),
        ({}, "tox -q", "tox -e unit"),
        ({}, "./run.sh all", "./run.sh parser"),
        ({}, "bash run.sh", "bash run.sh"),
        ({}, None, "pytest tests/test_x.py"),
        ({}, None, "make test"),
        ({}, None, "ruff check ."),
    ],
)
def test_a_plan_may_name_the_program_of_the_projects_tests(
    tmp_path: Path, files: dict[str, str], test_command: str | None, command: str
) -> None:
    (check,) = checks_for(
        step(command), test_command, CommandRunner(project(tmp_path, **files))
    )
    assert (check.shown, check.command.objection) == (command, "")


def test_in_a_poetry_project_a_plan_may_name_poetry(
    tmp_path: Path, bare_path: Path
) -> None:
    root = project(tmp_path, pyproject_dot_toml="[tool.poetry]\n[tool.pytest]\n")
    program(bare_path, "poetry")
    by_poetry = step("poetry run pytest -q")
    assert checks_for(by_poetry, None, CommandRunner(root))


@each_row(
    ("test_command", "command", "words"),
    [
        (None, "npm test", "`npm` is not on the list"),
        (None, "rm -rf /", "`rm` is not on the list"),
        ("tox", "npm test", "`npm` is not on the list"),
        ("tox", "tox; rm x", "`;` needs a shell"),
        ("env CI=1 tox", "env rm x", "`env` is not on the list"),
        ("bash run.sh", "bash -c 'rm x'", "`bash` is not on the list"),
        ("/bin/sh run.sh", "/bin/sh -c 'rm x'", "`/bin/sh` is not on the list"),
        ("a 'b", "rm x", "`rm` is not on the list"),
        (None, "./run.sh", "`./run.sh` is not on the list"),
        (None, "A=1 pytest", "before a program needs a shell"),
        (None, "pytest 'x", "is not closed"),
    ],
)
def test_what_a_plan_may_not_run_is_refused_with_a_way_out(
    tmp_path: Path, test_command: str | None, command: str, words: str
) -> None:
    with pytest.raises(BadInput, match="The check `") as caught:
        checks_for(step(command), test_command, CommandRunner(tmp_path))
    assert words in caught.value.message
    if "not on the list" in words:
        for way in ("commands.allow", "commands.mode: ask", "script", "Makefile"):
            assert way in caught.value.hint


def test_a_check_that_could_show_a_hidden_file_is_asked_about_and_can_be_read(
    tmp_path: Path,
) -> None:
    (tmp_path / ".env").write_text("KEY=secret\n")
    commands = CommandRunner(tmp_path)
    own = step("cat .env")
    (judged,) = checks_for(own, None, commands)
    assert ".env is hidden from models" in judged.command.objection
    assert commands.must_ask(judged.command)
    (read,) = read_checks(own, None, commands)
    assert (read.shown, read.argv) == (judged.shown, judged.argv)
    assert check_problems(own, None, commands) == []


def test_an_unreadable_project_file_is_no_matter_for_a_step_with_its_own_check(
    tmp_path: Path,
) -> None:
    root = project(tmp_path, pyproject_dot_toml="[")
    assert checks_for(step("pytest"), None, CommandRunner(root))
    with pytest.raises(BadInput, match="`npm`"):
        checks_for(step("npm test"), None, CommandRunner(root))
    with pytest.raises(BadInput, match="cannot be read"):
        checks_for(step(None), None, CommandRunner(root))


@each_row("command", ["'open", "", "  "])
def test_a_check_that_cannot_be_read_is_bad_input(tmp_path: Path, command: str) -> None:
    with pytest.raises(BadInput):
        parse_command(command, tmp_path)


async def outcome(command: str, root: Path, limit: float = 60) -> Verdict:
    return await verify(parse_command(command, root), CommandRunner(root), limit, root)


@each_row(
    ("test", "verification", "words"),
    [
        ("def test_x(): assert True", Verification.PASSED, "passed"),
        ("def test_x(): assert 1 == 2", None, "exit code 1"),
        ("x = 1", None, "exit code 5"),
        ("import nothing_like_this", None, "exit code 1"),
    ],
)
async def test_what_real_pytest_says(
    tmp_path: Path, test: str, verification: Verification | None, words: str
) -> None:
    (tmp_path / "test_x.py").write_text(test)
    verdict = await outcome(f"{sys.executable} -m pytest -p no:cacheprovider", tmp_path)
    assert verdict.verification is verification
    assert words in verdict.reason


async def test_tests_that_were_found_and_collect_nothing_verify_nothing(
    tmp_path: Path,
) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    (check,) = detect(tmp_path)
    verdict = await verify(
        check, CommandRunner(tmp_path, run_program=FakePrograms()), 60, tmp_path
    )
    assert verdict.verification is Verification.NONE
    assert f"`{check.shown}`" in verdict.reason


async def test_a_file_rewritten_within_a_second_is_not_judged_by_its_old_bytecode(
    tmp_path: Path,
) -> None:
    (tmp_path / "test_x.py").write_text(
        "from value import x\ndef test_x(): assert x == 2\n"
    )
    moment = (1_700_000_000, 1_700_000_000)
    for text, verification in (("x = 1\n", None), ("x = 2\n", Verification.PASSED)):
        (tmp_path / "value.py").write_text(text)
        os.utime(tmp_path / "value.py", moment)
        verdict = await outcome(
            f"{sys.executable} -m pytest -p no:cacheprovider", tmp_path
        )
        assert verdict.verification is verification


async def test_a_program_that_is_missing_is_for_the_person_to_mend(
    tmp_path: Path,
) -> None:
    verdict = await outcome("cargo-that-is-not-here test", tmp_path)
    assert verdict.verification is None
    assert verdict.is_unusable
    assert "cargo-that-is-not-here" in verdict.reason


async def test_a_timeout_is_a_failure(tmp_path: Path) -> None:
    verdict = await outcome(
        f'{sys.executable} -c "import time; time.sleep(60)"', tmp_path, limit=0.3
    )
    assert verdict.verification is None
    assert " 0.3 s" in verdict.reason


ROWS = "a.test.js::adds 1", "a.test.js::adds 2"
A, B = "test_a.py::test_a", "test_a.py::test_b"
KNOWN = Reference().after(SuiteRun(results={A: Result.PASSED, B: Result.FAILED}))


@pytest.mark.parametrize(
    ("code", "tests", "verification", "words"),
    [
        (0, {A: "passed", B: "passed"}, Verification.PASSED, "passed"),
        (
            1,
            {A: "passed", B: "failed"},
            Verification.BASELINE,
            "1 passed, 1 failed as before step 1",
        ),
        (1, {A: "failed", B: "failed"}, None, f"failed (exit code 1): {A}"),
        (0, {A: "failed", B: "passed"}, None, f"failed (exit code 0): {A}"),
        (0, {A: "passed", B: "failed"}, None, f"exit code 0, but {B} failed"),
        (1, {A: "passed", B: "passed"}, None, "exit code 1, but no test failed"),
        (2, {A: "passed", B: "failed"}, None, "failed (exit code 2)"),
        (-9, {A: "passed", B: "passed"}, None, "failed (exit code -9)"),
        (5, {}, None, f"no longer finds {A}"),
        (0, {A: "skipped", B: "skipped"}, None, f"skips {A}"),
        (0, None, None, "wrote no test report"),
        (4, None, None, "failed (exit code 4)"),
    ],
)
def test_what_an_outcome_means(
    tmp_path: Path,
    code: int,
    tests: dict[str, str] | None,
    verification: Verification | None,
    words: str,
) -> None:
    seen = (
        None
        if tests is None
        else SuiteRun(results={test: Result(result) for test, result in tests.items()})
    )
    check = parse_command("pytest", tmp_path)
    verdict = judge_one(check, run_of(check, code, seen), Before(reference=KNOWN))
    assert verdict.verification is verification
    assert words in verdict.reason
    late = judge_one(check, run_of(check, code, seen, timed_out=True))
    assert late.verification is None


def test_a_row_of_a_table_that_became_another_is_not_missed(tmp_path: Path) -> None:
    check, before = (
        parse_command("jest", tmp_path),
        Reference().after(SuiteRun(results=dict.fromkeys(ROWS, Result.PASSED))),
    )
    changes = Comparison(tables=(TestId.parse("a.test.js::adds %i"),))
    now = {ROWS[0]: Result.PASSED, "a.test.js::adds 3": Result.PASSED}
    for results, is_passed in ((now, True), ({ROWS[0]: Result.PASSED}, False)):
        verdict = judge_one(
            check,
            run_of(check, 0, SuiteRun(results=results)),
            Before(reference=before),
            Work(changed=CHANGED.changed, tests=changes),
        )
        assert (verdict.verification is Verification.PASSED) is is_passed


def test_without_a_report_the_exit_code_decides_and_the_reason_says_so(
    tmp_path: Path,
) -> None:
    check = parse_command("jest", tmp_path)
    verdict = judge_one(check, run_of(check, 0, unread="there is none"))
    assert verdict.verification is Verification.EXIT_CODE
    assert "there is none" in verdict.reason
    failed = judge_one(check, run_of(check, 1, unread="there is none"))
    assert failed.verification is None


@each_row("command", ["pytest", "python -m unittest"])
def test_a_runner_that_always_reports_passes_nothing_without(
    tmp_path: Path, command: str
) -> None:
    check = parse_command(command, tmp_path)
    verdict = judge_one(check, run_of(check, 0, unread="there is none"))
    assert verdict.verification is None


def test_where_tests_were_told_of_before_a_run_without_a_report_is_no_pass(
    tmp_path: Path,
) -> None:
    check = parse_command("jest", tmp_path)
    jest = SuiteRun(Selection(runner="jest"), {A: Result.PASSED})
    before = Before(reference=Reference().after(jest))
    run = run_of(check, 0, unread="there is none")
    verdict = judge_one(check, run, before)
    assert verdict.verification is None


@each_row("command", ["jest --json", "jest other.test.js", "npm test"])
def test_a_command_that_could_not_tell_of_them_passes_by_its_exit_code(
    tmp_path: Path, command: str
) -> None:
    (tmp_path / "package.json").write_text(
        '{"scripts": {"test": "python -m unittest"}}'
    )
    check = parse_command(command, tmp_path)
    run = run_of(check, 0, unread="its words ask for another report")
    verdict = judge_one(check, run, Before(reference=KNOWN))
    assert verdict.verification is Verification.EXIT_CODE


def test_a_runner_that_finds_no_tests_and_is_content_verifies_nothing(
    tmp_path: Path,
) -> None:
    check = parse_command("go test ./...", tmp_path)
    run = run_of(check, 0, SuiteRun())
    assert judge_one(check, run).verification is Verification.NONE
    known = judge_one(check, run, Before(reference=KNOWN))
    assert known.verification is None


def test_the_useful_end_is_where_the_failures_are() -> None:
    passed = "\n".join(f"tests/test_{n}.py ....." for n in range(500))
    failures = (
        "=================== FAILURES ===================\n"
        "E  assert 1 == 2\n"
        "==== 1 failed ===="
    )
    assert useful_end(f"{passed}\n{failures}").startswith(
        "=================== FAILURES"
    )
    assert useful_end("a\nb\n") == "a\nb"
    assert len(useful_end("x" * 1_000_000)) < 7000
    assert useful_end("\n".join(map(str, range(1000)))).endswith("999")


async def test_a_check_sees_no_secrets_but_what_the_settings_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "SEAL", "CACHE_KEY"):
        monkeypatch.setenv(name, "x")
    commands = CommandRunner(
        tmp_path, Commands(hide_env=("SEAL",), pass_env=("CACHE_KEY",))
    )
    check = parse_command("python -c 'import os; print(sorted(os.environ))'", tmp_path)
    verdict = await verify(check, commands, 60, tmp_path)
    seen = [
        name
        for name in ("OPENAI_API_KEY", "SEAL", "CACHE_KEY", "PATH")
        if f"'{name}'" in verdict.checks[0].run.output
    ]
    assert seen == ["CACHE_KEY", "PATH"]


# --- In a run: the check of a step and `commands.mode` --------------------------------


class Answers(Nobody):
    """Says what it was told to say, and keeps what it was asked."""

    def __init__(self, *choices: Choice) -> None:
        self.choices = list(choices)
        self.asked: list[Proposal] = []

    async def approve(self, proposal: Proposal) -> Choice:
        self.asked.append(proposal)
        return self.choices.pop(0)


def with_mode(sandbox: Sandbox, mode: str, *steps: Step) -> Sandbox:
    sandbox.write(*steps)
    (sandbox.root / ".cdd/config.yaml").write_text(f"commands: {{mode: {mode}}}\n")
    return sandbox.replies(*(says(str(step.path), "good") for step in steps))


async def events_of(sandbox: Sandbox) -> tuple[list[Event], Exception | None]:
    engine = sandbox.engine()
    try:
        return await collect(engine.run_all(attempts=1)), engine.stopped_by
    finally:
        engine.close()


OFF_LIST, IN_SHELL = (
    Step("a.txt", "grep good a.txt"),
    Step("b.txt", "cat b.txt | grep good"),
)


@pytest.mark.parametrize(
    "step", [OFF_LIST, IN_SHELL], ids=["off the list", "in a shell"]
)
async def test_in_safe_mode_such_a_plan_does_not_start(
    sandbox: Sandbox, step: Step
) -> None:
    with pytest.raises(BadInput, match=r"^Step 1"):
        with_mode(sandbox, "safe", step).engine()
    assert not sandbox.model.requests


@pytest.mark.story
@pytest.mark.skipif(os.name != "posix", reason="grep and a POSIX shell")
async def test_in_ask_mode_the_person_is_asked_before_the_model_is(
    sandbox: Sandbox,
) -> None:
    sandbox.frontend = frontend = Answers(Choice.YES, Choice.YES)
    events, _ = await events_of(with_mode(sandbox, "ask", OFF_LIST, IN_SHELL))
    proposed = [
        CommandProposed(
            "grep good a.txt", "`grep` is not on the list of allowed commands"
        ),
        CommandProposed(
            "cat b.txt | grep good", "`|` needs a shell, and commands run without one"
        ),
    ]
    assert frontend.asked == proposed
    assert [event for event in events if isinstance(event, CommandProposed)] == proposed
    assert [
        event.verification for event in events if isinstance(event, TestsFinished)
    ] == [Verification.EXIT_CODE] * 2
    assert sandbox.statuses() == ["completed", "completed"]


@pytest.mark.parametrize(
    "frontend", [Answers(Choice.NO), Nobody()], ids=["no", "nobody"]
)
async def test_without_a_yes_nothing_is_asked_of_the_model_and_nothing_written(
    sandbox: Sandbox, frontend: Nobody
) -> None:
    sandbox.frontend = frontend
    events, stopped_by = await events_of(with_mode(sandbox, "ask", OFF_LIST))
    assert isinstance(stopped_by, NotApproved)
    assert stopped_by.exit_code is ExitCode.NOT_APPROVED
    assert f"{OFF_LIST.verify}" in stopped_by.message
    assert [event.status for event in events if isinstance(event, StepFinished)] == [
        "pending"
    ]
    assert not sandbox.model.requests
    assert not (sandbox.root / "a.txt").exists()


@pytest.mark.story
@pytest.mark.skipif(os.name != "posix", reason="grep and a POSIX shell")
async def test_always_holds_for_the_rest_of_the_run(sandbox: Sandbox) -> None:
    sandbox.frontend = frontend = Answers(Choice.ALWAYS)
    await events_of(
        with_mode(sandbox, "ask", OFF_LIST, Step("b.txt", "grep good a.txt"))
    )
    assert len(frontend.asked) == 1
    assert sandbox.statuses() == ["completed", "completed"]


@pytest.mark.story
@pytest.mark.skipif(os.name != "posix", reason="grep and a POSIX shell")
async def test_in_unsafe_mode_nobody_is_asked_and_the_run_says_so(
    sandbox: Sandbox,
) -> None:
    engine = with_mode(sandbox, "unsafe", OFF_LIST).engine()
    assert "real shell" in str(await collect(engine.recover()))
    engine.close()
    await events_of(with_mode(sandbox, "unsafe", OFF_LIST, IN_SHELL))
    assert sandbox.statuses() == ["completed", "completed"]


async def test_checks_that_are_on_the_list_are_not_asked_about(
    sandbox: Sandbox,
) -> None:
    await events_of(with_mode(sandbox, "ask", Step("a.txt", "cat a.txt")))
    assert sandbox.statuses() == ["completed"]
