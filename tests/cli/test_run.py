"""`cdd run`: from a file or a pipe to a report and an exit code."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest
import yaml

from cdd_agent.cli.main import main
from cdd_agent.engine.action_plan import INTERRUPTED, STOPPED
from tests.support.tables import each_row
from tests.support.terminals import CDD, Terminal

pytestmark = pytest.mark.filterwarnings(
    "ignore:This process .* is multi-threaded:DeprecationWarning"
)

PLAN = """\
- action: create_file
  file_path: hello.txt
  content: "hi\\n"
- action: edit
  file_path: hello.txt
  find: nowhere
  replace: x
- action: execute
  command: cat hello.txt
- action: read
  source: hello.txt
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "my project"
    (root / ".cdd").mkdir(parents=True)
    monkeypatch.chdir(root)
    return root


def run(root: Path, plan: str, *flags: str) -> int:
    (root / "plan.yaml").write_text(plan)
    return main(["run", "plan.yaml", *flags])


def report(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Standard output is the report and nothing else."""
    parsed: dict[str, Any] = json.loads(capsys.readouterr().out)
    return parsed


def test_a_failed_action_does_not_stop_those_after_it(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(root, PLAN, "--yes", "--json") == 1
    told = report(capsys)
    assert told["run_summary"]["status"] == "FAILURE"
    assert told["environment"]["cwd"] == str(root.resolve())
    assert [log["status"] for log in told["action_logs"]] == [
        "SUCCESS",
        "FAILURE",
        "SUCCESS",
        "SUCCESS",
    ]
    assert told["action_logs"][1]["output"] == "hi\n"
    assert told["action_logs"][1]["error"]
    assert told["action_logs"][2]["output"] == "hi\n"
    assert told["action_logs"][0]["action"] == {
        "action": "create_file",
        "file_path": "hello.txt",
        "content": "hi\n",
    }
    assert told["action_logs"][0]["error"] is None


def test_the_exit_code_is_0_only_if_nothing_failed(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(root, "- execute: echo x", "--yes", "--json") == 0
    assert report(capsys)["run_summary"]["status"] == "SUCCESS"


def test_the_report_in_words_shows_each_action_its_output_and_what_went_wrong(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(root, PLAN, "--yes") == 1
    out = capsys.readouterr().out
    blocks = out.split("[")[1:]
    assert [block[:3] for block in blocks] == ["1/4", "2/4", "3/4", "4/4"]
    assert [re.findall(r"^[✓✗]", block, re.MULTILINE) for block in blocks[:3]] == [
        ["✓"],
        ["✗"],
        ["✓"],
    ]
    assert "\n│ hi\n" in blocks[1]
    assert "\n│ hi\n" in blocks[2]
    assert re.search(r"\b3 of 4\b", out)
    assert str(root.resolve()) in out


def test_the_report_as_yaml_is_the_same_report(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(root, PLAN, "--yes", "--yaml") == 1
    told = yaml.safe_load(capsys.readouterr().out)
    assert list(told) == ["run_summary", "environment", "action_logs"]
    third = told["action_logs"][2]
    assert third["action"]["command"] == "cat hello.txt"
    assert [third[name] for name in ("status", "output", "error", "return_code")] == [
        "SUCCESS",
        "hi\n",
        None,
        0,
    ]


@each_row(
    ("plan", "words"),
    [
        ("", "the plan is empty"),
        ("a: b", "plan.yaml:1: a plan is a list"),
        ("- execute: ls\n- action: fly", "plan.yaml:2: unknown action `fly`"),
        ("- execute: ]", "plan.yaml:1:12: not YAML"),
        ("- execute: ls\n  cwdd: x", "plan.yaml:2"),
    ],
)
def test_a_wrong_plan_gives_a_report_with_its_line_and_exit_code_2(
    root: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    plan: str,
    words: str,
) -> None:
    monkeypatch.chdir(root)
    assert run(root, plan, "--json") == 2
    told = report(capsys)
    assert told["run_summary"]["status"] == "FAILURE"
    assert [log["action"] for log in told["action_logs"]] == [{"action": "parse_plan"}]
    assert words in told["action_logs"][0]["error"]
    assert run(root, plan) == 2
    assert words in capsys.readouterr().out


def test_a_plan_that_is_no_text_or_not_there_is_reported_too(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "latin.yaml").write_bytes(b"- execute: caf\xe9")
    (root / "huge.yaml").write_bytes(b"- execute: ls\n" * 500_000)
    for name, words in (
        ("latin.yaml", "not UTF-8"),
        ("none.yaml", "no file"),
        (".cdd", "directory"),
        ("huge.yaml", "too much"),
    ):
        assert main(["run", name, "--json"]) == 2
        assert words in report(capsys)["action_logs"][0]["error"]


def test_a_plan_comes_through_a_pipe(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        sys, "stdin", TextIOWrapper(BytesIO(b"- execute: echo from a pipe\n"))
    )
    assert main(["run", "-", "--yes", "--json"]) == 0
    assert report(capsys)["action_logs"][0]["output"] == "from a pipe\n"


def test_output_without_line_ends_is_shown_in_pieces(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    zeros = "- execute: head -c 3000000 /dev/zero"
    assert run(root, zeros, "--yes") == 0
    assert len(max(capsys.readouterr().out.splitlines(), key=len)) < 200_000


def test_a_report_is_printed_also_where_nobody_can_approve(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(root, PLAN, "--json") == 3
    out, err = capsys.readouterr()
    told = json.loads(out)
    assert (told["run_summary"]["status"], len(told["action_logs"])) == ("FAILURE", 4)
    assert "--yes" in err
    assert not (root / "hello.txt").exists()


@pytest.mark.fork
def test_an_interrupted_run_reports_what_was_not_done(root: Path) -> None:
    (root / "wait.py").write_text(
        "import time; print('waiting', flush=True); time.sleep(60)"
    )
    (root / "plan.yaml").write_text("- echo one\n- python wait.py\n- echo three")
    with subprocess.Popen(
        [sys.executable, "-m", "cdd_agent", "run", "plan.yaml", "--yes", "--json"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        while "│ waiting" not in process.stderr.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    told = json.loads(out)
    assert process.returncode == 130
    assert told["run_summary"]["status"] == "FAILURE"
    assert [log["error"] for log in told["action_logs"]] == [None, INTERRUPTED, STOPPED]
    assert "Traceback" not in err


@pytest.mark.fork
@pytest.mark.parametrize("stream", ["<&-", ">&-", "2>&-"])
def test_a_closed_stream_is_no_crash(root: Path, stream: str) -> None:
    (root / "plan.yaml").write_text("- echo hi")
    command = f"'{sys.executable}' -m cdd_agent run plan.yaml --yes --json {stream}"
    done = subprocess.run(
        ["/bin/sh", "-c", command], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0
    assert "Traceback" not in done.stderr


# -------------------------------------------------------------------------- cdd context


def test_context_prints_the_tree_and_the_files_named(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "src").mkdir()
    (root / "src/a.py").write_text("print('hi')\n")
    assert main(["context"]) == 0
    assert "a.py" in capsys.readouterr().out
    assert main(["context", "src/a.py", "none.txt", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [(file["file_path"], file["status"]) for file in told["file_contexts"]] == [
        ("src/a.py", "found"),
        ("none.txt", "not_found"),
    ]
    assert list(told) == [
        "repo_tree",
        "environment_info",
        "gitignore_content",
        "file_contexts",
        "hidden_files",
    ]


def test_context_takes_paths_from_here(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "src").mkdir()
    (root / "src/a.py").write_text("print('hi')\n")
    monkeypatch.chdir(root / "src")
    assert main(["context", "a.py", "--json"]) == 0
    assert (
        json.loads(capsys.readouterr().out)["file_contexts"][0]["content"]
        == "print('hi')\n"
    )
    assert main(["context", "../../elsewhere"]) == 2


def test_context_of_words_is_the_code_that_they_are_about(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "src").mkdir()
    (root / "src/limits.py").write_text(
        "class RateLimiter:\n    def allows(self, client):\n        return True\n"
    )
    (root / "src/mail.py").write_text("def send():\n    pass\n")
    assert main(["context", "where is the rate limited?"]) == 0
    told = capsys.readouterr().out
    assert "- src/limits.py: " in told
    assert "class RateLimiter:" in told
    assert (
        main(["context", "rate limit", "src/mail.py", "--json", "--tokens", "500"]) == 0
    )
    found = json.loads(capsys.readouterr().out)
    assert {"query": found["query"], "most_tokens": found["most_tokens"]} == {
        "query": "rate limit",
        "most_tokens": 500,
    }
    files = {file["path"]: file for file in found["files"]}
    assert files["src/mail.py"]["reasons"][0] == "pinned"
    assert files["src/mail.py"]["shown"] == files["src/limits.py"]["shown"] == "whole"
    assert found["tokens"] == sum(file["tokens"] for file in found["files"]) <= 500
    assert main(["context", "where is the rate limited?", "--tokens", "5"]) == 0
    told = capsys.readouterr().out
    assert "too few to show any" in told
    assert "- src/limits.py: " in told
    assert "## Shown" not in told
    assert "## As a model" not in told
    assert main(["context", "zebra"]) == 0
    assert "No code" in capsys.readouterr().out


def test_a_path_beside_words_is_shown_also_where_the_map_does_not_know_it(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "table.csv").write_text("limit,1\n")
    (root / ".env").write_text("KEY=limit\n")
    assert main(["context", "rate limit", "table.csv"]) == 0
    assert "- table.csv: 10 tokens; pinned" in capsys.readouterr().out
    for path in ("not/there.py", ".env", ".", "../a.py", ".git/config"):
        assert main(["context", "rate limit", path]) != 0, path
    assert "KEY" not in capsys.readouterr().out


def test_tokens_are_for_words(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "a.py").write_text("x = 1\n")
    assert main(["context", "a.py", "--tokens", "100"]) == 2
    assert main(["context", "some words", "--tokens", "0"]) == 2
    assert "--tokens" in capsys.readouterr().err


def test_the_root_is_the_folder_that_is_named_and_no_other(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inner = root / "inner"
    inner.mkdir()
    both = (
        "- action: create_file\n"
        "  file_path: ../x\n"
        "- action: create_file\n"
        "  file_path: y"
    )
    assert run(root, both, "--yes", "--json", "--root", "inner") == 1
    assert [log["status"] for log in report(capsys)["action_logs"]] == [
        "FAILURE",
        "SUCCESS",
    ]
    assert (inner / "y").exists()
    assert not (root / "x").exists()


@pytest.mark.fork
def test_nothing_is_done_without_a_yes_and_without_a_terminal(root: Path) -> None:
    (root / "plan.yaml").write_text(PLAN)
    done = subprocess.run(
        [sys.executable, "-m", "cdd_agent", "run", "plan.yaml"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        start_new_session=True,
        timeout=60,
    )
    assert done.returncode == 3
    assert "--yes" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (root / "hello.txt").exists()


Piped = Callable[..., tuple[int, list[tuple[str, str]], str]]


@pytest.fixture
def piped(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Piped]:
    """`cdd run` with answers on its standard input: the exit code, the status and
    output of each action, and what was told besides.
    """
    with ExitStack() as opened:

        def run_piped(
            plan: str, answers: bytes, *flags: str
        ) -> tuple[int, list[tuple[str, str]], str]:
            (root / "answers").write_bytes(answers)
            stdin = opened.enter_context((root / "answers").open(encoding="utf-8"))
            monkeypatch.setattr(sys, "stdin", stdin)
            code = run(root, plan, "--json", *flags)
            out, err = capsys.readouterr()
            logs = json.loads(out)["action_logs"]
            return code, [(log["status"], log["output"]) for log in logs], err

        yield run_piped


def test_a_question_to_a_person_who_is_not_there_is_a_failed_action(
    piped: Piped,
) -> None:
    plan = "- chat_with_user: Which colour?\n- execute: echo on"
    code, logs, _ = piped(plan, b"", "--yes")
    assert code == 1
    assert [status for status, _ in logs] == ["FAILURE", "SUCCESS"]


TWO_QUESTIONS = (
    "- chat_with_user: Which colour?\n- execute: echo on\n- chat_with_user: Which size?"
)


def test_questions_are_answered_from_a_pipe_a_line_each(piped: Piped) -> None:
    code, logs, _ = piped(
        TWO_QUESTIONS,
        "blau, \N{BUTTERFLY}\r\n\nnever asked for\n".encode(),
        "--yes",
    )
    assert (code, logs) == (
        0,
        [("COMPLETED", "blau, \N{BUTTERFLY}"), ("SUCCESS", "on\n"), ("COMPLETED", "")],
    )


@each_row("answers", [b"blue", b"blue\n"])
def test_a_question_that_the_pipe_has_no_line_for_is_a_failed_action(
    piped: Piped, answers: bytes
) -> None:
    code, logs, told = piped(TWO_QUESTIONS, answers, "--yes")
    assert (code, logs) == (
        1,
        [("COMPLETED", "blue"), ("SUCCESS", "on\n"), ("FAILURE", "")],
    )
    assert "Which size?" in told


def test_a_line_in_a_pipe_approves_nothing(root: Path, piped: Piped) -> None:
    code, logs, _ = piped("- execute: touch made", b"y\ny\n")
    assert (code, logs) == (3, [("FAILURE", "")])
    assert not (root / "made").exists()


def test_an_answer_without_an_end_is_bounded(piped: Piped) -> None:
    code, logs, _ = piped("- chat_with_user: How long?", b"x" * 3_000_000, "--yes")
    assert code == 0
    assert 1_000_000 <= len(logs[0][1]) < 1_200_000


# ------------------------------------------------------------------------------ secrets

SECRET = "s3cret-of-the-deploy"
SHAPED = "ghp_" + "a1B2" * 9
LEAKS = {
    "a command's output": (
        "- python -c \"print('s3cret-of' + '-the-deploy ghp_' + 'a1B2' * 9)\""
    ),
    "in pieces": "- python slow.py",
    "standard error": (
        "- python -c \"import sys; sys.exit('s3cret-of' + '-the-deploy ghp_' + 'a1B2' *"
        ' 9)"'
    ),
    "a file": "- read: notes.txt",
    "a command": f"- echo {SECRET} {SHAPED}",
    "a variable": (
        f"- action: execute\n  command: ls\n  env: {{A: '{SECRET} {SHAPED}'}}"
    ),
    "what is written": (
        f"- action: create_file\n  file_path: b.txt\n  content: '{SECRET} {SHAPED}'"
    ),
    "what stands in the way": "- action: create_file\n  file_path: notes.txt",
    "a refusal": f"- '{SHAPED} | {SECRET}'",
    "a question": f"- chat_with_user: Is it {SECRET} or {SHAPED}?",
    "a wrong plan": f"- {SECRET}: {SHAPED}",
}


@each_row("form", [[], ["--json"], ["--yaml"]])
@each_row("plan", LEAKS.values(), ids=LEAKS)
def test_no_secret_is_printed(
    root: Path,
    plan: str,
    form: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(root)
    monkeypatch.setenv("DEPLOY_TOKEN", SECRET)
    (root / "notes.txt").write_text(f"{SECRET} {SHAPED}\n")
    (root / "slow.py").write_text(
        "import time\n"
        f"for piece in {[SECRET[:9], SECRET[9:] + ' ', SHAPED[:7], SHAPED[7:]]}:\n"
        "    print(end=piece, flush=True)\n"
        "    time.sleep(0.01)\n"
    )
    run(root, plan, "--yes", *form)
    printed = "".join(capsys.readouterr())
    assert SECRET not in printed
    assert SHAPED not in printed
    # in words, contents and variables are not printed at all
    assert "[redacted" in printed or not form


# ------------------------------------------------------------------------ at a terminal


@pytest.fixture
def cdd(root: Path) -> Iterator[Any]:
    opened: list[Terminal] = []

    def start(plan: str, *flags: str, pipe: bool = False) -> Terminal:
        (root / "plan.yaml").write_text(plan)
        command = [CDD, "run", "plan.yaml", *flags]
        if pipe:
            words = " ".join(
                f"'{word}'"
                for word in (sys.executable, "-m", "cdd_agent", "run", "-", *flags)
            )
            command = ["/bin/sh", "-c", f"cat plan.yaml | {words}"]
        terminal = Terminal(root, *command)
        opened.append(terminal)
        return terminal

    yield start
    for terminal in opened:
        terminal.end()


KEYS = "[y] yes  [n] no  [a] all  [q] quit > "
THREE = (
    "- action: create_file\n"
    "  file_path: a\n"
    "  content: first\n"
    "- execute: echo second\n"
    "- execute: echo third\n"
)


@pytest.mark.pty
def test_each_action_is_shown_before_it_is_done_and_asked_about(
    cdd: Any, root: Path
) -> None:
    terminal = cdd(THREE)
    terminal.until(lambda: KEYS in terminal.text)
    assert "[1/3] " in terminal.text
    assert "\n  first\n" in terminal.text
    assert not (root / "a").exists()
    terminal.type("y")
    terminal.until(lambda: terminal.text.count(KEYS) == 2)
    assert (root / "a").read_text() == "first"
    terminal.type("what?")
    terminal.until(lambda: "Type one of the letters." in terminal.text)
    terminal.type("n")
    terminal.until(
        lambda: "Not approved" in terminal.text and terminal.text.count(KEYS) == 4
    )
    terminal.type("yes")
    terminal.until_ended()
    assert terminal.code == 3
    assert "│ third" in terminal.text
    assert "│ second" not in terminal.text


@pytest.mark.pty
def test_all_is_yes_to_everything_that_follows(cdd: Any) -> None:
    terminal = cdd(THREE)
    terminal.until(lambda: KEYS in terminal.text)
    terminal.type("a")
    terminal.until_ended()
    assert terminal.code == 0
    assert terminal.text.count(KEYS) == 1
    assert "3 of 3" in terminal.text


@pytest.mark.pty
def test_quit_is_no_to_everything_that_follows(cdd: Any, root: Path) -> None:
    terminal = cdd(THREE, "--json")
    terminal.until(lambda: KEYS in terminal.text)
    terminal.type("q")
    terminal.until_ended()
    assert terminal.code == 3
    assert terminal.text.count(STOPPED) == 3
    assert not (root / "a").exists()


@pytest.mark.pty
def test_a_plan_from_a_pipe_is_asked_about_at_the_terminal(
    cdd: Any, root: Path
) -> None:
    terminal = cdd(THREE, pipe=True)
    terminal.until(lambda: KEYS in terminal.text)
    terminal.type("a")
    terminal.until(terminal.has_ended)
    assert terminal.code == 0
    assert (root / "a").exists()


@pytest.mark.pty
def test_an_answer_typed_at_the_terminal_is_the_output(cdd: Any) -> None:
    terminal = cdd("- chat_with_user: Which colour?", "--yes")
    terminal.until(lambda: "Which colour?\n> " in terminal.text)
    terminal.type("a light blue")
    terminal.until_ended()
    assert terminal.code == 0
    assert "│ a light blue" in terminal.text


@pytest.mark.pty
def test_ctrl_c_at_a_question_ends_the_run_at_once(cdd: Any, root: Path) -> None:
    terminal = cdd(THREE)
    terminal.until(lambda: KEYS in terminal.text)
    terminal.type("\x03")
    terminal.until_ended()
    assert terminal.code == 130
    assert "Traceback" not in terminal.text
    assert not (root / "a").exists()


@pytest.mark.pty
def test_the_whole_of_a_long_command_is_shown_before_it_is_approved(cdd: Any) -> None:
    terminal = cdd("- echo " + "harmless " * 50 + "THE-END")
    terminal.until(lambda: KEYS in terminal.text)
    assert "THE-END" in terminal.text.replace("\n", "")
    terminal.type("q")
    terminal.until(terminal.has_ended)


@pytest.mark.pty
def test_a_yes_that_was_typed_before_the_question_is_no_answer(
    cdd: Any, root: Path
) -> None:
    (root / "wait.py").write_text(
        "import os, time\n"
        "print('on', flush=True)\n"
        "while not os.path.exists('go'): time.sleep(0.01)"
    )
    terminal = cdd("- python wait.py\n- action: create_file\n  file_path: a")
    terminal.until(lambda: KEYS in terminal.text)
    terminal.type("y")
    terminal.until(lambda: "│ on" in terminal.text)
    terminal.type("y")
    # the terminal has it, and shows it
    terminal.until(lambda: terminal.text.partition("│ on")[2].strip() == "y")
    (root / "go").touch()
    terminal.until(lambda: terminal.text.count(KEYS) == 2)
    assert not (root / "a").exists()
    terminal.type("n")
    terminal.until(terminal.has_ended)
    assert not (root / "a").exists()


@pytest.mark.pty
def test_a_plan_cannot_steer_the_terminal_that_shows_it(cdd: Any) -> None:
    terminal = cdd(
        "- action: create_file\n"
        '  file_path: "a\\e[2Jb"\n'
        '  content: "\\e]0;title\\a\\u202eevil\\rhidden"'
    )
    terminal.until(lambda: KEYS in terminal.text)
    shown = terminal.seen.decode()
    assert "\x1b[2J" not in shown
    assert "\x1b]0" not in shown
    assert "\u202e" not in shown
    terminal.type("q")
    terminal.until(terminal.has_ended)


@pytest.mark.pty
def test_a_command_off_the_list_is_asked_about_in_the_mode_ask_even_with_yes(
    cdd: Any, root: Path
) -> None:
    (root / ".cdd/config.yaml").write_text("commands: {mode: ask}\n")
    terminal = cdd(
        "- execute: touch a\n- execute: touch b\n- execute: touch b", "--yes"
    )
    ask = "[y] yes  [n] no  [a] always > "
    terminal.until(lambda: ask in terminal.text)
    assert "`touch`" in terminal.text
    terminal.type("n")
    terminal.until(lambda: terminal.text.count(ask) == 2)
    terminal.type("a")
    terminal.until(terminal.has_ended)
    assert terminal.code == 1
    assert [(root / name).exists() for name in "ab"] == [False, True]
