"""Which command decides about a step, and what its outcome means."""

import os
import sys
from pathlib import Path

import pytest

from cdd_agent.errors import BadInput
from cdd_agent.execution.verify import Verdict, check_for, detect, parse_command, useful_end, verify
from cdd_agent.tickets.plan import PlanStep
from cdd_agent.tickets.status import Verification


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


@pytest.mark.parametrize(
    ("name", "content", "command"),
    [
        ("package_dot_json", '{"scripts": {"test": "vitest"}}', "npm test"),
        ("Cargo_dot_toml", "[package]", "cargo test"),
        ("go_dot_mod", "module x", "go test ./..."),
        ("Makefile", "all:\n\ntest: all\n\ttrue\n", "make test"),
    ],
)
def test_the_tests_are_found_by_what_the_project_holds(tmp_path: Path, name: str, content: str, command: str) -> None:
    check = detect(project(tmp_path, **{name: content}))
    assert check
    assert check.shown == command


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"package_dot_json": '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}'},
        {"package_dot_json": "{}"},
        {"Makefile": "test := 1\nall:\n"},
        {"src__app_dot_py": ""},
    ],
)
def test_where_there_are_no_tests_none_are_found(tmp_path: Path, files: dict[str, str]) -> None:
    assert detect(project(tmp_path, **files)) is None


@pytest.mark.parametrize(
    "files",
    [
        {"pytest_dot_ini": "[pytest]"},
        {"conftest_dot_py": ""},
        {"pyproject_dot_toml": "[tool.pytest.ini_options]\n"},
        {"setup_dot_cfg": "[tool:pytest]\n"},
        {"tests__unit__test_x_dot_py": ""},
        {"x_test_dot_py": ""},
    ],
)
def test_pytest_is_recognised(tmp_path: Path, bare_path: Path, files: dict[str, str]) -> None:
    check = detect(project(tmp_path, **files))
    assert check
    assert check.argv == (sys.executable, "-m", "pytest")


def test_python_is_found_where_only_python3_is_there_or_none_at_all(tmp_path: Path, bare_path: Path) -> None:
    assert parse_command("python -c 1", tmp_path).argv[0] == sys.executable
    program(bare_path, "python3")
    assert parse_command("python -c 1", tmp_path).argv[0] == "python3"
    program(bare_path, "python")
    assert parse_command("python -c 1", tmp_path).argv[0] == "python"


def test_pytest_runs_in_the_projects_own_environment_first(tmp_path: Path, bare_path: Path) -> None:
    root = project(tmp_path, pyproject_dot_toml="[tool.poetry]\n[tool.pytest]\n", uv_dot_lock="")

    program(bare_path, "pytest")
    assert parse_command("pytest -q", root).argv == ("pytest", "-q")
    program(root / ".venv" / "bin", "pytest")
    python = program(root / ".venv" / "bin", "python")
    assert parse_command("pytest -q", root).argv == (str(python), "-m", "pytest", "-q")
    assert parse_command("python -c 1", root).argv == (str(python), "-c", "1")
    program(bare_path, "uv")
    assert parse_command("pytest -q", root).argv == ("uv", "run", "pytest", "-q")
    program(bare_path, "poetry")
    assert parse_command("pytest -q", root).argv == ("poetry", "run", "pytest", "-q")


def step(verify: str | None) -> PlanStep:
    return PlanStep(number=1, title="x", description="", verify=verify)


def test_the_steps_own_check_wins_then_the_config_then_what_is_found(tmp_path: Path) -> None:
    root = project(tmp_path, go_dot_mod="module x")
    shown = [
        check.shown if (check := check_for(step(own), config, root)) else None
        for own, config in (("ls -l", "true"), ("none", "true"), ("None", None), (None, "true"), (None, None))
    ]
    assert shown == ["ls -l", None, None, "true", "go test ./..."]


@pytest.mark.parametrize(
    "command",
    ["cd x && pytest", "pytest | tee log", "pytest > log", "a; b", "a & b", "pytest 2>&1", "a;; b", "A=1 pytest"],
)
def test_a_check_that_needs_a_shell_is_refused_with_a_way_out(tmp_path: Path, command: str) -> None:
    with pytest.raises(BadInput, match="needs a shell") as caught:
        parse_command(command, tmp_path)
    assert "script" in caught.value.hint


def test_quoted_operators_are_plain_arguments(tmp_path: Path) -> None:
    assert parse_command("grep -E 'a|b' '>' f", tmp_path).argv == ("grep", "-E", "a|b", ">", "f")


@pytest.mark.parametrize("command", ["'open", "", "  "])
def test_a_check_that_cannot_be_read_is_bad_input(tmp_path: Path, command: str) -> None:
    with pytest.raises(BadInput):
        parse_command(command, tmp_path)


async def outcome(command: str, root: Path, limit: float = 60) -> Verdict:
    items = [item async for item in verify(parse_command(command, root), root, limit)]
    assert isinstance(items[-1], Verdict)
    return items[-1]


@pytest.mark.parametrize(
    ("test", "verification", "words"),
    [
        ("def test_x(): assert True", Verification.PASSED, "passed"),
        ("def test_x(): assert 1 == 2", None, "exit code 1"),
        ("x = 1", None, "exit code 5"),
        ("import nothing_like_this", None, "exit code 2"),
    ],
)
async def test_what_real_pytest_says(tmp_path: Path, test: str, verification: Verification | None, words: str) -> None:
    (tmp_path / "test_x.py").write_text(test)
    verdict = await outcome(f"{sys.executable} -m pytest -p no:cacheprovider", tmp_path)
    assert verdict.verification is verification
    assert words in verdict.reason


async def test_tests_that_were_found_and_collect_nothing_verify_nothing(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    check = detect(tmp_path)
    assert check
    verdicts = [item async for item in verify(check, tmp_path, 60) if isinstance(item, Verdict)]
    assert [(verdict.verification, verdict.reason) for verdict in verdicts] == [
        (Verification.NONE, f"`{check.shown}` found no tests")
    ]


async def test_a_file_rewritten_within_a_second_is_not_judged_by_its_old_bytecode(tmp_path: Path) -> None:
    (tmp_path / "test_x.py").write_text("from value import x\ndef test_x(): assert x == 2\n")
    moment = (1_700_000_000, 1_700_000_000)
    for text, verification in (("x = 1\n", None), ("x = 2\n", Verification.PASSED)):
        (tmp_path / "value.py").write_text(text)
        os.utime(tmp_path / "value.py", moment)
        verdict = await outcome(f"{sys.executable} -m pytest -p no:cacheprovider", tmp_path)
        assert verdict.verification is verification


async def test_a_program_that_is_missing_is_for_the_person_to_mend(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="Command not found: cargo-that-is-not-here"):
        await outcome("cargo-that-is-not-here test", tmp_path)


async def test_a_timeout_is_a_failure(tmp_path: Path) -> None:
    verdict = await outcome(f'{sys.executable} -c "import time; time.sleep(60)"', tmp_path, limit=0.3)
    assert verdict.verification is None
    assert "still running after 0.3 s" in verdict.reason


def test_the_useful_end_is_where_the_failures_are() -> None:
    passed = "\n".join(f"tests/test_{n}.py ....." for n in range(500))
    failures = "=================== FAILURES ===================\nE  assert 1 == 2\n==== 1 failed ===="
    assert useful_end(f"{passed}\n{failures}").startswith("=================== FAILURES")
    assert useful_end("a\nb\n") == "a\nb"
    assert len(useful_end("x" * 1_000_000)) < 7000
    assert useful_end("\n".join(map(str, range(1000)))).endswith("999")
