"""Which programs commands start: allowed ones, a person's own choice, or all; and how
the outcome is told.
"""

import asyncio
import logging
import os
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from msgspec.structs import replace

from cdd_agent.process.environments import as_started
from cdd_agent.process.policy import (
    ALWAYS_ALLOWED,
    CommandRunner,
    IShellExecutor,
    Permission,
    as_tool_answer,
)
from cdd_agent.process.programs import find_program
from cdd_agent.process.run import CommandResult, OnOutput, OutputChunk, ignore_output
from cdd_agent.settings.config import Commands
from tests.process.programs import posix, script
from tests.support.promised import NOT_ALLOWED, NOT_FOUND, TIMED_OUT
from tests.support.tables import each_row
from tests.support.time_of_loops import leap

USERS = "the user's own"


@dataclass
class Person:
    """Answers what it is asked, and keeps the questions."""

    answers: list[Permission]
    asked: list[tuple[str, str]] = field(default_factory=list)

    async def __call__(self, command: str, reason: str) -> Permission:
        self.asked.append((command, reason))
        return self.answers.pop(0)


YES, NO, ALWAYS = Permission.YES, Permission.NO, Permission.ALWAYS


# --- Which program a name means -------------------------------------------------------


@pytest.fixture
def named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with programs of other names' names in it; the user's own `ls` says who
    it is.
    """
    root = tmp_path / "app"
    for folder in (root, root / "evil", root / "evil/evil", tmp_path / "elsewhere"):
        for name in ("ls", "black", "flake8"):
            script(folder / name, "echo evil")
    script(tmp_path / "path/ls", 'echo "the user\'s own, PATH=$PATH"')
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    return root


@posix
@each_row(
    "path",
    [
        "evil",
        "./evil",
        ".",
        "",
        ":",
        "{root}/evil",
        "{root}/evil:/bin",
        "{outside}",
        "..:.",
    ],
)
@each_row("cwd", [None, "evil"])
async def test_a_commands_own_path_does_not_choose_its_program(
    named: Path, path: str, cwd: str | None
) -> None:
    path = path.format(root=named, outside=named.parent / "elsewhere")
    result = await CommandRunner(named).run("ls", cwd=cwd, env={"PATH": path})
    assert result.stdout == f"{USERS}, PATH={path}\n"
    missing = await CommandRunner(named).run("flake8", cwd=cwd, env={"PATH": path})
    assert (missing.return_code, missing.stderr) == (127, NOT_FOUND.format("flake8"))
    assert not missing.refused


@posix
@each_row("path", [".:{user}", ":{user}", "evil:{user}", "{user}:", "./:../app:{user}"])
async def test_relative_entries_of_the_users_path_are_not_looked_in(
    named: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(named)
    monkeypatch.setenv("PATH", path.format(user=named.parent / "path"))
    assert (await CommandRunner(named).run("ls")).stdout.startswith(USERS)
    assert (await CommandRunner(named).run("black", cwd="evil")).return_code == 127


@posix
async def test_the_projects_own_environment_comes_first(named: Path) -> None:
    own = script(named / "venv/bin/ruff", "echo own")
    assert (await CommandRunner(named).run("ruff")).stdout == "own\n"
    better = script(named / ".venv/bin/ruff", "echo better")
    assert (await CommandRunner(named).run("ruff")).stdout == "better\n"
    assert find_program("ruff", [own.parent, better.parent]) == own
    assert as_started(["ruff", "-x"], named) == (str(better), "-x")


@posix
def test_a_program_is_a_file_that_may_be_started(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "text").write_text("x")
    script(tmp_path / "program", "")
    found = [
        find_program(name, [tmp_path])
        for name in ("program", "folder", "text", "", ".", "x" * 5000, "a/program")
    ]
    assert found == [tmp_path / "program", *[None] * 6]


# --- What runs ------------------------------------------------------------------------


BENIGN = [
    "ls",
    "ls -la",
    "ls -la src",
    " ls ",
    "ls\n",
    "ls \\\n  -l",
    'l""s',
    "'ls' -l",
    "ls 'a b'",
    "ls -- -x",
    "pwd",
    "cat a.txt",
    "cat a.txt src/main.py",
    "cat 'a b'",
    "echo hello",
    'echo "a; b && c | d > e"',
    "echo 'a; $(b) `c`'",
    "echo a\\;b",
    "echo $HOME",
    "echo *.py",
    "echo ~",
    "echo A=1",
    "echo 100% #1",
    "echo (a)",
    "echo '<html>'",
    'echo "it\'s"',
    "echo äöü 日本 👍",
    "echo -n ''",
    "wc -l a.txt",
    "head -n 1 a.txt",
    "head -c 5 a.txt",
    "tail -n 1 a.txt",
    'python -c "print(1)"',
    "python -c 'import sys; print(sys.argv)' a b",
    "python -c 'x = 1\nif x > 0 and x < 2:\n    print(x)'",
    'python -c "print({1 | 2})"',
    "python3 -c 'print(1)'",
    "python -m json.tool a.json",
    "python src/main.py --flag=a\\;b",
    "python -V",
    "pip --version",
    "pytest --version",
    "pytest -k 'a or b' --version",
    'pytest "tests/test_x.py::test_y[a|b]" --version',
    "ruff --version",
    "ruff check --select E501 src",
    "black --version",
    "mypy --version",
    "flake8 --version",
    "make -n",
    "make -n all",
    "make --version",
]


@pytest.fixture(scope="session")
def plain_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("plain")
    (root / "src").mkdir()
    for name, text in {
        "a.txt": "one\ntwo\n",
        "a b": "",
        "a.json": "{}",
        "src/main.py": "print('main')\n",
        "Makefile": "all:\n\ttrue\n",
    }.items():
        (root / name).write_text(text)
    return root


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs in the place of those that take long to start."""
    for name in ("pip", "pytest", "ruff", "black", "mypy", "flake8"):
        script(tmp_path / "tools" / name, "true")
    monkeypatch.setenv("PATH", str(tmp_path / "tools"), prepend=os.pathsep)


@each_row("command", BENIGN)
async def test_ordinary_commands_run(
    plain_project: Path, tools: None, command: str
) -> None:
    runner = CommandRunner(plain_project)
    judged = runner.judge(command)
    assert (judged.objection, judged.in_shell) == ("", False)
    result = await runner.run(command)
    assert not result.refused
    assert result.started or result.return_code == 127
    if (
        Path(judged.argv[0]).is_absolute()
        and "'a b'" not in command
        and "-x" not in command
    ):
        assert result.return_code == 0, result.stderr


def test_there_are_many_ordinary_commands() -> None:
    assert len(set(BENIGN)) == len(BENIGN) >= 45


@posix
async def test_what_an_ordinary_command_says_and_where_it_is(
    plain_project: Path,
) -> None:
    runner = CommandRunner(plain_project)
    assert (await runner.run("echo $HOME '*'")).stdout == "$HOME *\n"
    assert (await runner.run("pwd")).stdout == f"{plain_project}\n"
    assert (await runner.run("pwd", cwd="")).stdout == f"{plain_project}\n"
    assert (
        await runner.run("pwd", cwd="src/../src")
    ).stdout == f"{plain_project}/src\n"


@posix
async def test_a_missing_folder_inside_is_made(tmp_path: Path) -> None:
    result = await CommandRunner(tmp_path).run("pwd", cwd="new/deep")
    assert result.stdout == f"{tmp_path}/new/deep\n"


async def test_variables_hold_for_one_command_over_the_users_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OURS", "users")
    monkeypatch.setenv("OPENAI_API_KEY", "s3cret")
    monkeypatch.setenv("SEAL", "s3cret")
    monkeypatch.setenv("CACHE_KEY", "shown")
    runner = CommandRunner(
        tmp_path, Commands(hide_env=("SEAL",), pass_env=("CACHE_KEY",))
    )
    names = "OURS OPENAI_API_KEY SEAL CACHE_KEY MODE"
    code = f"python -c 'import os; print(*map(os.environ.get, \"{names}\".split()))'"
    with_variables = await runner.run(code, env={"MODE": "x", "OURS": "actions"})
    assert with_variables.stdout.split() == ["actions", "None", "None", "shown", "x"]
    assert (await runner.run(code)).stdout.split() == [
        "users",
        "None",
        "None",
        "shown",
        "None",
    ]


async def test_a_command_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    sleep = "python -c 'import os, time; os.write(1, b\"1\"); time.sleep(60)'"
    runner = CommandRunner(
        tmp_path, Commands(timeout=40), on_output=lambda chunk: leap(40)
    )
    result = await runner.run(sleep)
    assert (result.timed_out, result.stdout, result.limit) == (True, "1", 40)


async def test_leaving_early_ends_the_command(tmp_path: Path) -> None:
    code = (
        "python -c 'import os, time; print(os.getpid(), flush=True); time.sleep(600)'"
    )
    said: list[str] = []

    def on_output(chunk: OutputChunk) -> None:
        said.append(chunk.text)
        running.cancel()

    running = asyncio.ensure_future(
        CommandRunner(tmp_path, on_output=on_output).run(code)
    )
    with pytest.raises(asyncio.CancelledError):
        await running
    with pytest.raises(ProcessLookupError):
        os.kill(int(said[0]), 0)


@posix
async def test_programs_may_be_added_to_the_list(tmp_path: Path) -> None:
    runner = CommandRunner(tmp_path, Commands(allow=("touch",)))
    assert (await runner.run("touch a")).return_code == 0
    assert (tmp_path / "a").exists()
    for refused in ("touch a; touch b", "/usr/bin/touch b"):
        assert (await runner.run(refused)).refused
    assert not (tmp_path / "b").exists()
    assert runner.allowed == tuple(sorted((*ALWAYS_ALLOWED, "touch")))


# --- Asking ---------------------------------------------------------------------------


def asking(root: Path, *answers: Permission) -> tuple[CommandRunner, Person]:
    person = Person(list(answers))
    return CommandRunner(root, Commands(mode="ask"), person), person


@posix
async def test_in_ask_mode_a_person_decides(tmp_path: Path) -> None:
    runner, person = asking(tmp_path, YES, NO, YES, NO)
    assert (await runner.run("touch a")).return_code == 0
    refused = await runner.run("touch b")
    assert (await runner.run("echo x > c && cat c")).stdout == "x\n"
    assert (await runner.run("echo x > d")).refused
    assert (await runner.run("ls")).stdout == "a\nc\n"
    assert not (tmp_path / "b").exists()
    assert refused.refused
    assert [(command, reason.split()[0]) for command, reason in person.asked] == [
        ("touch a", "`touch`"),
        ("touch b", "`touch`"),
        ("echo x > c && cat c", "`>`"),
        ("echo x > d", "`>`"),
    ]


@posix
async def test_always_is_for_the_very_command_in_its_folder(tmp_path: Path) -> None:
    runner, person = asking(tmp_path, ALWAYS, ALWAYS, NO, NO)
    for command in ("touch a", "touch a", "echo x > c", "echo x > c"):
        assert (await runner.run(command)).return_code == 0
    assert (await runner.run("touch b")).refused
    assert (await runner.run("touch a", cwd="sub")).refused
    assert [command for command, _ in person.asked] == [
        "touch a",
        "echo x > c",
        "touch b",
        "touch a",
    ]


@posix
@each_row(
    ("first", "second"),
    [
        ("touch a", "touch a; touch b"),
        ("env touch a", "env touch b"),
        ("sh -c 'touch a'", "sh -c 'touch b'"),
        ("/bin/sh -c 'touch a'", "/bin/sh -c 'touch b'"),
        ("./tool a", "sub/tool a"),
        ("./tool a", "tool a"),
        ("A=1 touch a", "A=2 touch a"),
    ],
)
async def test_always_does_not_reach_further(
    tmp_path: Path, first: str, second: str
) -> None:
    for folder in (tmp_path, tmp_path / "sub"):
        script(folder / "tool", 'touch "$1"')
    runner, person = asking(tmp_path, ALWAYS, NO)
    assert (await runner.run(first)).return_code == 0
    assert (tmp_path / "a").exists()
    assert (await runner.run(second)).refused
    assert (await runner.run(first)).return_code == 0
    assert len(person.asked) == 2


@posix
async def test_a_path_to_a_program_means_the_one_in_the_commands_folder(
    tmp_path: Path,
) -> None:
    for folder in (tmp_path, tmp_path / "sub"):
        script(folder / "tool", "pwd")
    runner, person = asking(tmp_path, ALWAYS, ALWAYS, ALWAYS)
    assert (await runner.run("./tool")).stdout == f"{tmp_path}\n"
    assert (await runner.run("./tool", cwd="sub")).stdout == f"{tmp_path}/sub\n"
    assert (await runner.run("./tool x", cwd="sub")).return_code == 0
    assert len(person.asked) == 3


async def test_where_nobody_is_there_the_answer_is_no(tmp_path: Path) -> None:
    assert (await CommandRunner(tmp_path, Commands(mode="ask")).run("touch a")).refused


async def test_nobody_is_asked_about_what_cannot_run_anyway(tmp_path: Path) -> None:
    runner, person = asking(tmp_path)
    for command, how in (
        ("touch a", {"cwd": ".."}),
        ("touch 'a", {}),
        ("", {}),
        ("touch \0", {}),
        ("touch a", {"env": {"A=B": ""}}),
    ):
        assert (await runner.run(command, **how)).refused  # type: ignore[arg-type]
    assert not person.asked


@posix
async def test_a_folder_that_became_a_way_out_while_the_person_thought_is_refused(
    tmp_path: Path,
) -> None:
    root, outside = tmp_path / "app", tmp_path / "outside"
    (root / "sub").mkdir(parents=True)
    outside.mkdir()

    async def slow(command: str, reason: str) -> Permission:
        (root / "sub").rmdir()
        (root / "sub").symlink_to(outside)
        return YES

    result = await CommandRunner(root, Commands(mode="ask"), slow).run(
        "touch a", cwd="sub"
    )
    assert result.refused
    assert not list(outside.iterdir())


# --- Unsafe ---------------------------------------------------------------------------


@posix
async def test_in_unsafe_mode_a_shell_runs_anything_and_it_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    runner = CommandRunner(tmp_path, Commands(mode="unsafe"))
    commands = {
        "echo a | tr a b": "b\n",
        "touch x && ls": "x\n",
        "A=1; echo $A": "1\n",
        "cat <<EOF\nh $((1 + 1))\nEOF\n": "h 2\n",
        "cd / && pwd": "/\n",
        "echo \x1b": "\x1b\n",
    }
    for command, said in commands.items():
        assert (await runner.run(command)).stdout == said
    warnings = [
        record for record in caplog.records if record.levelno == logging.WARNING
    ]
    assert len(warnings) == len(commands)
    assert all("Unsafe" in record.getMessage() for record in warnings)
    assert (await runner.run("echo 'open")).return_code == 2
    for command in ("", "a\0b", "x" * 100_001):
        assert (await runner.run(command)).refused
    assert (await runner.run("ls", cwd="..")).refused
    assert (await runner.run("ls", env={"=": ""})).refused


@posix
async def test_also_in_a_shell_python_means_the_projects_own(tmp_path: Path) -> None:
    script(tmp_path / ".venv/bin/python", "echo own")
    script(tmp_path / ".venv/bin/tool", "echo tool")
    runner = CommandRunner(tmp_path, Commands(mode="unsafe"))
    own = str(tmp_path / ".venv/bin/python")
    assert runner.judge("python -c 1").argv == (own, "-c", "1")
    assert runner.judge("python $X").in_shell
    assert runner.judge("python 'a' > b").in_shell
    assert (await runner.run("python; tool")).stdout == "own\ntool\n"
    assert (await runner.run("tool", env={"PATH": "/bin"})).return_code == 127


@posix
async def test_starts_and_ends_are_logged_without_variables(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    await CommandRunner(tmp_path).run("ls nothing-here", env={"SEAL": "s3cret"})
    await CommandRunner(tmp_path).run("rm x", env={"SEAL": "s3cret"})
    told = [
        record.getMessage()
        for record in caplog.records
        if record.name.startswith("cdd_agent")
    ]
    assert [text.split()[0] for text in told] == ["Running", "Ended", "Refused"]
    assert "s3cret" not in str(told)


# --- As a tool answers ----------------------------------------------------------------


async def test_the_tools_answers_have_the_promised_forms(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("fail:\n\t@exit 3\n")
    runner = CommandRunner(tmp_path, Commands(timeout=40))

    async def answer(
        command: str, cwd: str = ".", on_output: OnOutput = ignore_output
    ) -> dict[str, object]:
        watched = replace(runner, on_output=on_output)
        return as_tool_answer(command, await watched.run(command, cwd=cwd), cwd)

    said = await answer(
        "python -c 'import sys; print(1); print(2, file=sys.stderr); sys.exit(3)'",
        "new",
    )
    assert list(said) == [
        "success",
        "command",
        "return_code",
        "stdout",
        "stderr",
        "cwd",
    ]
    assert said["success"] is True
    assert list(said.values())[2:] == [3, "1\n", "2\n", "new"]
    refused = await answer("rm -rf x")
    assert refused == {
        "error": NOT_ALLOWED.format("rm"),
        "allowed_commands": sorted(ALWAYS_ALLOWED),
    }
    assert (await answer("./ls"))["error"] == NOT_ALLOWED.format("./ls")
    for text, named in (
        ("ls; rm x", "`;`"),
        ("A=1 ls", "`A=`"),
        (" ", ""),
        ("echo 'a", ""),
        ("echo \0", "U+0000"),
    ):
        said = await answer(text)
        assert said.keys() == {"error", "allowed_commands"}
        assert named in str(said["error"])
        assert said["allowed_commands"] == sorted(ALWAYS_ALLOWED)
    assert list(await answer("ls", "..")) == ["error"]
    assert "allowed_commands" not in await answer("ls", "..")
    slow = await answer(
        "python -c 'import os, time; os.write(1, b\"1\"); time.sleep(60)'",
        on_output=lambda chunk: leap(40),
    )
    assert slow == {"error": TIMED_OUT.format(40), "stdout": "1"}


NOT_THERE = "Error: Command not found: black"


@each_row(
    ("result", "answer"),
    [
        (
            CommandResult("", "", -9, timed_out=True, limit=60),
            {"error": "Command timed out after 60 seconds"},
        ),
        (
            CommandResult("", "x", -9, timed_out=True, limit=0.5),
            {"error": "Command timed out after 0.5 seconds", "stderr": "x"},
        ),
        (
            CommandResult("", "no", 126, started=False),
            {"error": "Failed to execute command: no"},
        ),
        (
            CommandResult("", NOT_THERE, 127, started=False),
            {
                "success": True,
                "command": "black .",
                "return_code": 127,
                "stdout": "",
                "stderr": NOT_THERE,
                "cwd": "src",
            },
        ),
    ],
)
def test_other_results_have_them_too(
    result: CommandResult, answer: dict[str, object]
) -> None:
    assert as_tool_answer("black .", result, "src") == answer


async def test_the_port_gives_the_result_alone(tmp_path: Path) -> None:
    executor: IShellExecutor = CommandRunner(tmp_path)
    result = await executor.execute(
        "python -c 'import os; print(os.getcwd(), os.environ[\"A\"])'",
        "new",
        {"A": "1"},
    )
    assert (result.return_code, result.stdout) == (
        0,
        f"{tmp_path.resolve() / 'new'} 1\n",
    )
    assert (await executor.execute("rm x")).refused
