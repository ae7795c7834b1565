"""The command line: what it prints, its exit codes, and that nobody ever sees a
traceback.
"""

import errno
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from cdd_agent.cli.main import main
from cdd_agent.commands.catalogue import CATALOGUE, terminal_commands
from cdd_agent.commands.declaration import (
    JSON,
    Command,
    Group,
    TerminalFront,
    argument,
    switch,
)
from cdd_agent.events.notices import Notice
from cdd_agent.events.stream import Event
from cdd_agent.session.open_project import Project
from cdd_agent.tickets.plan_reader import read_plan
from cdd_agent.tickets.store import TicketStore
from tests.git.repositories import make_repository
from tests.support.commandline import (
    STEPS,
    cdd,
    events,
    process,
    script,
    started,
    without_override,
)
from tests.support.projects import SLUG, Sandbox, Step, check, says
from tests.support.tables import each_row


@each_row(
    ("arguments", "words"),
    [
        (["exec", "feature-wordz"], "Did you mean feature-words?"),
        (["exec", "../elsewhere"], "outside the project"),
        (["exec", SLUG], "No model set up yet"),
        (["exec", SLUG, "--model", "script:nothing.yaml"], "nothing.yaml"),
        (
            ["exec", SLUG, "--model", ""],
            "--model: `model` is empty",
        ),
        (["exec", SLUG, "--model", "x", "--max-attempts", "0"], "--max-attempts"),
        (["plan", "show", "nope"], "no ticket"),
        (["status", "nope"], "no ticket"),
        (["new", "story", "x"], "feature, bug"),
    ],
)
def test_bad_input_is_a_message_and_exit_2(
    sandbox: Sandbox,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    words: str,
) -> None:
    sandbox.write(STEPS[0])
    assert cdd(sandbox, *arguments) == 2
    assert words in capsys.readouterr().err


def test_a_wrong_config_names_file_and_line(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    sandbox.write(STEPS[0])
    (sandbox.root / ".cdd/config.yaml").write_text("model: x\nmodle: y\n")
    for command in (["exec", SLUG], ["list"], ["doctor"], ["status"]):
        assert cdd(sandbox, *command) == 2
        captured = capsys.readouterr()
        assert "config.yaml:2:" in captured.out + captured.err
        assert "`modle`" in captured.out + captured.err


def test_status_does_not_touch_an_unreadable_state(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    sandbox.write(STEPS[0])
    (sandbox.ticket / "execution-state.json").write_text("{torn")
    assert cdd(sandbox, "status", SLUG) == 2
    assert (sandbox.ticket / "execution-state.json").read_text() == "{torn"


def test_plan_show_json_is_the_plan(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    sandbox.write(*STEPS)
    assert cdd(sandbox, "plan", "show", SLUG, "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert list(shown) == [
        "ticket_slug",
        "ticket_title",
        "ticket_type",
        "overview",
        "total_complexity",
        "total_estimated_time",
        "risks",
        "steps",
        "notes",
        "findings",
    ]
    assert shown["steps"][1]["dependencies"] == [1]
    assert shown["steps"][1]["files_affected"] == ["b.txt"]
    assert cdd(sandbox, "plan", "show", SLUG) == 0
    text = (sandbox.ticket / "plan.md").read_text()
    assert read_plan(capsys.readouterr().out) == read_plan(text)


@each_row(
    ("words", "takes_part"),
    [
        (("exec",), False),
        (("plan",), False),
        (("plan", "check"), False),
        (("verify",), False),
        (("verify", "--strength"), False),
        (("undo",), False),
        (("redo",), False),
        (("push",), False),
        (("land",), False),
        (("plan", "show"), True),
        (("status",), True),
        (("diff",), True),
    ],
)
def test_only_commands_that_just_show_something_take_the_beginning_of_a_slug(
    sandbox: Sandbox,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    takes_part: bool,
) -> None:
    """A verdict about another ticket would be taken for that of a ticket that is
    gone.
    """
    sandbox.write()
    cdd(sandbox, *words, SLUG[:-1])
    is_refused = "There is no ticket" in capsys.readouterr().err
    assert is_refused is not takes_part


def test_plan_check_names_what_has_to_be_mended_and_exits_1(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    sandbox.write(
        Step("a.txt"),
        Step("b.txt", also=("a.txt (new)",), description="Serve.\n**Serves:** 2"),
    )
    assert cdd(sandbox, "plan", "check", SLUG) == 1
    printed = capsys.readouterr().out.splitlines()
    assert cdd(sandbox, "plan", "check", SLUG, "--json") == 1
    (checked,) = events(capsys)
    assert checked["ok"] is False
    assert [
        (problem["line"], problem["severity"], problem["kind"])
        for problem in checked["problems"]
    ] == [
        (1, "error", "unserved_criterion"),
        (7, "warning", "no_check"),
        (7, "error", "edited_before_created"),
        (15, "error", "unknown_criterion"),
        (15, "warning", "no_check"),
        (15, "warning", "missing_file"),
    ]
    for line, problem in zip(printed, checked["problems"], strict=False):
        assert f" tickets/{SLUG}/plan.md:{problem['line']}:" in line
        assert problem["message"] in line
    assert len(printed) == 7


def test_plan_check_lets_a_plan_in_few_words_pass_and_says_what_to_look_at(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    sandbox.write(Step("a.txt"))
    assert cdd(sandbox, "plan", "check", SLUG, "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["ticket_slug"], report["ok"]) == (SLUG, True)
    assert [
        (p["kind"], p["severity"], p["step"], p["line"]) for p in report["problems"]
    ] == [
        ("no_serves", "warning", None, 1),
        ("no_check", "warning", 1, 7),
        ("missing_file", "warning", 1, 7),
    ]


def test_plan_check_leaves_out_the_files_of_steps_that_were_carried_out(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    new = "**Files Affected:**\n- `a.txt` (new)"
    sandbox.write(
        Step(None, check("a.txt"), description=f"Make it.\n**Serves:** 1\n{new}")
    )
    assert (
        cdd(sandbox, "exec", SLUG, "--model", script(sandbox, says("a.txt", "good")))
        == 0
    )
    capsys.readouterr()
    assert cdd(sandbox, "plan", "check", SLUG, "--json") == 0
    assert json.loads(capsys.readouterr().out)["problems"] == []


def test_init_new_list_status(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "my shop"
    root.mkdir()
    assert main(["init", "-C", str(root)]) == 0
    assert main(["new", "feature", "User Auth", "-C", str(root)]) == 0
    assert main(["new", "feature", "User Auth", "-C", str(root)]) == 2
    assert "already exists" in capsys.readouterr().err
    assert main(["-C", str(root), "list"]) == 0
    assert capsys.readouterr().out.split()[-2:] == ["feature-user-auth", "empty"]
    assert main(["list", "--json", "-C", str(root)]) == 0
    assert events(capsys)[0]["tickets"][0]["slug"] == "feature-user-auth"


def test_init_anywhere_in_a_repository_makes_its_root_the_project(
    tmp_path: Path,
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "inner").mkdir()
    assert main(["init", "-C", str(tmp_path / "inner")]) == 0
    assert (tmp_path / ".cdd/config.yaml").is_file()


def test_a_folder_that_is_not_there_is_bad_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (["list"], ["init"], ["exec", "x"], ["doctor"]):
        assert main([*command, "-C", str(tmp_path / "nowhere")]) == 2
    assert str(tmp_path / "nowhere") in capsys.readouterr().err


def test_debug_shows_the_traceback(sandbox: Sandbox) -> None:
    with pytest.raises(Exception, match="no ticket"):
        cdd(sandbox, "status", "nope", "--debug")


COMMANDS = list(terminal_commands())


def commands_in_help(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return re.findall(r"^  (\w+) ", capsys.readouterr().out, re.MULTILINE)


def test_a_command_is_declared_with_the_address_of_its_function(
    sandbox: Sandbox,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def greet(
        project: Project, name: str, *, out_loud: bool = False
    ) -> Iterator[Event]:
        yield Notice(f"{'HELLO' if out_loud else 'Hello'} {name}")

    command = Command(
        "greet",
        Group.SHELL,
        "Say hello",
        (argument("name", "NAME", "who"), switch("--out-loud", "with a voice"), JSON),
        terminal=TerminalFront("cdd greet Ada"),
        events="greeting:greet",
    )
    greeting = ModuleType("greeting")
    vars(greeting)["greet"] = greet
    monkeypatch.setitem(sys.modules, "greeting", greeting)
    monkeypatch.setitem(CATALOGUE, "greet", command)

    assert cdd(sandbox, "greet", "Ada", "--out-loud") == 0
    assert capsys.readouterr().out == "HELLO Ada\n"
    assert cdd(sandbox, "greet", "Ada", "--json") == 0
    assert json.loads(capsys.readouterr().out)["text"] == "Hello Ada"
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "greet" in commands_in_help(capsys)


def test_an_empty_slug_is_none(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    sandbox.write(*STEPS)
    assert cdd(sandbox, "status", "") == 0
    assert SLUG in capsys.readouterr().out


def test_help_has_examples_for_every_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for command in COMMANDS:
        with pytest.raises(SystemExit) as caught:
            main([command, "--help"])
        assert caught.value.code == 0
        assert f"  cdd {command}" in capsys.readouterr().out


def test_the_first_lines_of_the_help_name_the_ticket_that_they_create(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    start = capsys.readouterr().out.partition("Start here")[2].partition("\n\n")[0]
    lines = re.findall(r"^  cdd (\w+) (\S+)(?: (\S+))?  ", start, re.MULTILINE)
    (create,) = [words for words in lines if words[0] == "new"]
    assert cdd(sandbox, *create) == 0
    named = [slug for command, slug, _ in lines if command != "new"]
    assert len(named) == 3
    store = TicketStore(sandbox.root)
    assert {store.find(slug).slug for slug in named} == {named[0]}


def test_a_wrong_argument_exits_2(capsys: pytest.CaptureFixture[str]) -> None:
    of_exec = ["exec", "x", "--jobs", "0"], ["exec", "x", "--max-attempts", "many"]
    for arguments in (["exce"], ["push"], *of_exec, ["--modle", "x"]):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 2
    assert "Traceback" not in capsys.readouterr().err


def test_an_unknown_flag_is_answered_with_the_usage_of_its_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as exit_info:
        main(["board", "--colour"])
    assert exit_info.value.code == 2
    told = capsys.readouterr().err
    assert told.startswith("usage: cdd board")
    assert "--colour" in told


def test_a_mistyped_command_is_answered_with_the_one_that_was_meant(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["exce", "x"])
    out, err = capsys.readouterr()
    assert "exec?" in err
    assert out == ""


def test_a_wrong_value_of_a_flag_is_not_called_a_mistyped_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["exec", "--all=x"])
    err = capsys.readouterr().err
    assert "argument --all: invalid choice: 'x'" in err
    assert "no command" not in err


@each_row("word", ["undo", "redo", "diff"])
def test_an_empty_ticket_does_not_mean_the_newest_change(
    sandbox: Sandbox, word: str
) -> None:
    """A variable of a script may be empty."""
    assert cdd(sandbox, word, "") == 2


@pytest.mark.fork
@each_row(
    "arguments",
    [["--version"], ["--help"], ["help", "exec"], ["exce"], ["status", "-C", "/none"]],
)
@pytest.mark.parametrize("target", ["&-", "/dev/full", "/dev/full 2>&1"])
def test_output_that_cannot_be_written_is_no_traceback(
    arguments: list[str], target: str
) -> None:
    if target != "&-" and not Path("/dev/full").exists():
        pytest.skip("only on Linux")
    line = f'"$0" -m cdd_agent {" ".join(arguments)} >{target}'
    ended = subprocess.run(
        ["sh", "-c", line, sys.executable],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert ended.returncode in (0, 1, 2)
    assert "Traceback" not in ended.stderr
    assert "Exception" not in ended.stderr


@pytest.mark.fork
def test_no_help_imports_what_a_command_needs_to_run() -> None:
    code = (
        "import sys; from contextlib import suppress; from cdd_agent.cli.main import"
        " main\n"
        f"for arguments in [[], *([name] for name in {COMMANDS})]:\n"
        "    with suppress(SystemExit): main([*arguments, '--help'])\n"
        "heavy = {'asyncio', 'httpx', 'litellm', 'textual', 'yaml', 'rich',"
        " 'cdd_agent.wiring.root'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert result.stdout.splitlines()[-1] == "[]"


@pytest.mark.fork
def test_neither_a_whole_run_nor_who_looks_at_it_needs_pydantic(
    sandbox: Sandbox,
) -> None:
    sandbox.write(STEPS[0])
    run = ["exec", SLUG, "--model", script(sandbox, says("a.txt", "good"))]
    for arguments in (run, ["list"], ["status", SLUG]):
        told = started(sandbox, *arguments, PYTHONPROFILEIMPORTTIME="1")
        imported = set(re.findall(r"\| +(\S+)$", told.stderr, re.MULTILINE))
        assert (told.returncode, "cdd_agent.tickets.state" in imported) == (0, True)
        assert not imported & {"pydantic", "pydantic_core"}
        if arguments == ["list"]:
            heavy = {"markdown_it", "httpx", "litellm", "cdd_agent.session.session"}
            assert not imported & heavy


@pytest.mark.fork
def test_no_module_compiles_a_regular_expression_when_it_is_imported() -> None:
    """To compile all of them takes a fifth of a second; a command uses few. In the end,
    this test compiles them: without it, only use would reveal an invalid one.
    """
    code = """
import gc, importlib, re, sys
from pathlib import Path
compile, importers = re.compile, set()

def note_and_compile(pattern, flags=0):
    caller = sys._getframe(1)
    if caller.f_globals["__name__"] == "cdd_agent.pattern":
        caller = caller.f_back
    importers.add(caller.f_globals["__name__"])
    return compile(pattern, flags)

re.compile = note_and_compile
for file in sorted(Path("cdd_agent").rglob("*.py")):
    name = ".".join(file.with_suffix("").parts).removesuffix(".__init__")
    is_project = "demo.project" in name
    if not is_project and "windows" not in name and not name.endswith("__main__"):
        importlib.import_module(name)
ours = {name for name in importers if name.startswith("cdd_agent.")}
print(*sorted(ours), sep="\\n")
from cdd_agent.pattern import Pattern
for constant in gc.get_objects():
    if isinstance(constant, Pattern):
        constant.search
"""
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert result.returncode == 0, result.stderr
    assert set(result.stdout.split()) == {
        # msgspec compiles the patterns of its constraints
        "cdd_agent.cluster.messages",
        "cdd_agent.settings.config",
        "cdd_agent.values.typed_values",
        # these use a short one to make their constants and classes
        "cdd_agent.context.words",
        "cdd_agent.tui.faults",
    }


FIRST_SCREEN = "cdd_agent.cli.parser, cdd_agent.cli.shell, cdd_agent.tui.app"


@pytest.mark.fork
@pytest.mark.parametrize(
    ("imported", "late"),
    [
        (
            f"{FIRST_SCREEN}, cdd_agent.wiring.root",
            "litellm openai httpx git bs4 cdd_agent.engine.engine",
        ),
        (
            FIRST_SCREEN,
            "filelock importlib.metadata markdown_it pygments yaml cdd_agent.git.index",
        ),
    ],
    ids=["session", "first screen"],
)
def test_the_shell_starts_without_what_it_needs_later(imported: str, late: str) -> None:
    code = (
        f"import sys, {imported}\n"
        f"print(sorted(set('{late}'.split()) & sys.modules.keys()))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert result.stdout == "[]\n", result.stderr


@pytest.mark.fork
def test_ctrl_c_while_a_command_is_imported_is_no_traceback(tmp_path: Path) -> None:
    code = """
import os, signal, sys
from cdd_agent.cli.main import main

class Interrupted:
    def find_spec(self, name, *_):
        if name == "cdd_agent.cli.runs":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupted())
sys.exit(main(["exec", "nothing"]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (130, "")
    assert "Traceback" not in done.stderr
    assert "Interrupted" in done.stderr


@pytest.mark.fork
def test_output_that_nobody_reads_is_no_crash(sandbox: Sandbox) -> None:
    sandbox.write(*STEPS)
    running = process(sandbox, "list", "--json")
    running.stdout.close()
    assert "Traceback" not in running.stderr.read()
    running.wait(30)
    running.stderr.close()


def test_a_look_tells_what_was_found_of_a_torn_state(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    sandbox.write(Step("a.txt", check("a.txt")))
    cdd(sandbox, "exec", SLUG, "--model", script(sandbox, says("a.txt", "good")))
    (sandbox.ticket / "execution-state.json").write_text("{ torn")
    capsys.readouterr()
    cdd(sandbox, "diff", SLUG, "--json")
    told = [event for event in events(capsys) if event["event"] == "notice"]
    assert "execution-state" in told[0]["text"]


@pytest.mark.parametrize(
    "variables",
    [{"NO_COLOR": "1"}, {"COLUMNS": "20"}, {"LC_ALL": "C", "PYTHONUTF8": "0"}],
)
@pytest.mark.fork
def test_odd_terminals_get_whole_words(
    sandbox: Sandbox, variables: dict[str, str]
) -> None:
    sandbox.write(*STEPS)
    done = started(sandbox, "status", SLUG, **variables)
    assert "2. Make b.txt" in done.stdout, done.stderr
    assert "\x1b" not in done.stdout


def run_cdd(
    folder: Path, *arguments: str, command: list[str] | None = None
) -> subprocess.CompletedProcess[str]:
    """The real program, started in a folder."""
    return subprocess.run(
        command or [sys.executable, "-m", "cdd_agent", *arguments],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        capture_output=True,
        text=True,
    )


def test_from_an_empty_repository_to_a_ticket_that_says_what_it_needs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_repository(tmp_path)
    inner = tmp_path / "src"
    inner.mkdir()
    monkeypatch.chdir(inner)

    def told(*arguments: str) -> str:
        assert main([*arguments]) == 0
        return capsys.readouterr().out

    assert str(tmp_path.resolve()) in told("init")
    assert (tmp_path / "AGENTS.md").is_file()
    assert not (inner / ".cdd").exists()
    before = sorted(tmp_path.rglob("*"))
    assert told("init", "-C", str(tmp_path))
    assert sorted(tmp_path.rglob("*")) == before

    assert "tickets/bug-login-fails/" in told("new", "bug", "Login fails")
    assert (
        told("new", "documentation", "guide", "Deploy").count("docs/guides/deploy.md")
        == 1
    )
    assert told("list").split() == ["bug-login-fails", "empty"]
    assert told("list", "bug", "empty").split() == ["bug-login-fails", "empty"]

    status = told("status", "bug")
    assert "bug-login-fails: Login fails" in status
    assert "\n  description: " in status
    assert "`/socrates bug-" in status


def test_a_nearer_cdd_folder_goes_before_the_git_repository(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".git").mkdir()
    inner = tmp_path / "packages/shop"
    (inner / ".cdd").mkdir(parents=True)
    monkeypatch.chdir(inner)
    assert main(["init"]) == 0
    assert str(inner.resolve()) in capsys.readouterr().out
    assert (inner / "tickets").is_dir()
    assert not (tmp_path / "tickets").exists()


@each_row(
    ("arguments", "words"),
    [
        (["init", "-C", "/etc"], "/etc cannot be a project"),
        (
            ["new", "feature", "a", "b"],
            (
                "Usage: cdd new TYPE NAME [--slug SLUG]\n"
                "Put words that belong together in quotation marks."
            ),
        ),
        (
            ["new", "documentation", "guide"],
            "Usage: cdd new documentation guide|feature NAME",
        ),
        (["new", "documentation", "recipe", "x"], "Allowed: guide, feature."),
        (["new", "bug", "🚀"], "has no letters or digits"),
        (["list", "bug", "finished"], "'finished' is neither a type nor a state"),
        (["list", ""], "'' is neither a type nor a state"),
        (["list", "done", "failed"], "one state"),
    ],
)
def test_what_cannot_be_made_or_listed_is_told(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    words: str,
) -> None:
    (tmp_path / ".cdd").mkdir()
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    assert words in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == [".cdd"]


def test_a_broken_template_names_file_and_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / ".cdd/templates").mkdir(parents=True)
    (tmp_path / ".cdd/templates/bug.yaml").write_text("title: x\ntype: feature\n")
    assert main(["new", "bug", "a", "-C", str(tmp_path)]) == 2
    assert "templates/bug.yaml:2:" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["init"], ["new", "bug", "a"], ["new", "documentation", "guide", "a"]]
)
@pytest.mark.fork
def test_a_read_only_project_is_told(tmp_path: Path, arguments: list[str]) -> None:
    tmp_path.chmod(0o555)
    command = without_override(sys.executable, "-m", "cdd_agent", *arguments)
    result = run_cdd(tmp_path, command=command)
    tmp_path.chmod(0o755)
    assert result.returncode == 2
    assert os.strerror(errno.EACCES) in result.stderr
    assert "Traceback" not in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.fork
def test_a_closed_file_of_the_project_is_told_and_the_rest_is_made(
    tmp_path: Path,
) -> None:
    (tmp_path / "pyproject.toml").touch(mode=0)
    result = run_cdd(
        tmp_path, command=without_override(sys.executable, "-m", "cdd_agent", "init")
    )
    assert result.returncode == 0, result.stderr
    assert "pyproject.toml" in result.stdout
    assert (tmp_path / "AGENTS.md").is_file()
