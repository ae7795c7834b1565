"""The command line: what it prints, its exit codes, and that nobody ever sees a traceback."""

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from cdd_agent.cli.examining import examine
from cdd_agent.cli.main import main
from cdd_agent.commands.registry import SlashCommand, commands
from cdd_agent.commands.terminal import JSON, Argument, TerminalForm, flag
from cdd_agent.events import Notice
from cdd_agent.session import Session
from cdd_agent.tickets.plan import ImplementationPlan
from cdd_agent.version import VERSION
from tests.llm.listing import answering, listing
from tests.projects import SLUG, Sandbox, Step, check, says

STEPS = (Step("a.txt", check("a.txt")), Step("b.txt", check("b.txt"), "Step 1"))


def script(sandbox: Sandbox, *replies: str, pace: int = 0) -> str:
    """The replies as a script in the project; what to give to --model."""
    lines = [json.dumps({"reply": reply}) for reply in replies]
    text = f"pace: {pace}\nreplies: [{', '.join(lines)}]\n"
    (sandbox.root / ".cdd" / "script.yaml").write_text(text)
    return "script:.cdd/script.yaml"


def cdd(sandbox: Sandbox, *arguments: str) -> int:
    return main([*arguments, "-C", str(sandbox.root)])


def events(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def process(sandbox: Sandbox, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "cdd_agent", *arguments],
        cwd=sandbox.root,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1]), **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_exec_waits_for_a_provider_and_ends_with_75_where_that_would_be_too_long(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    sandbox.write(*STEPS)
    limits = [f"{{error: rate_limited, retry_after: {seconds}}}" for seconds in (0, 600)]
    replies = [limits[0], json.dumps({"reply": says("a.txt", "good")}), limits[1]]
    (sandbox.root / ".cdd" / "script.yaml").write_text(f"replies: [{', '.join(replies)}]")

    assert cdd(sandbox, "exec", SLUG, "--model", "script:.cdd/script.yaml") == 75

    out = capsys.readouterr().out
    assert out.count("in 1 s") == 1
    assert "(1/2)" in out
    assert " 10 minutes" in out
    assert sandbox.statuses() == ["completed", "pending"]


def test_exec_runs_to_the_end_and_exits_0(sandbox: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
    sandbox.write(*STEPS)
    model = script(sandbox, says("a.txt", "bad"), says("a.txt", "good"), says("b.txt", "good"))

    assert cdd(sandbox, "exec", SLUG, "--model", model) == 0

    out = capsys.readouterr().out
    assert "attempt 2" in out
    assert "says bad" in out
    assert any("2/2" in line for line in out.splitlines()[-3:])
    assert sandbox.text("b.txt") == "good\n"


def test_exec_again_says_that_all_is_done_and_needs_no_model(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    sandbox.write(STEPS[0])
    cdd(sandbox, "exec", SLUG, "--model", script(sandbox, says("a.txt", "good")))
    capsys.readouterr()
    before = sandbox.state()
    assert cdd(sandbox, "exec", SLUG, "--json") == 0
    assert "all_done" in [event.get("about") for event in events(capsys)]
    assert sandbox.state() == before


def test_exec_json_is_one_event_a_line(sandbox: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
    sandbox.write(STEPS[0])
    assert cdd(sandbox, "exec", SLUG, "--json", "--model", script(sandbox, says("a.txt", "good"))) == 0
    seen = events(capsys)
    names = [event["event"] for event in seen]
    assert names[0] == "plan_opened"
    assert names[-1] == "run_finished"
    assert {"step_started", "reply_delta", "changes_applied", "tests_finished", "step_finished"} <= set(names)
    assert seen[-1]["status"] == "completed"


def test_exec_that_fails_exits_1_after_max_attempts(sandbox: Sandbox) -> None:
    sandbox.write(*STEPS)
    model = script(sandbox, *[says("a.txt", "bad")] * 5)
    assert cdd(sandbox, "exec", SLUG, "--model", model, "--max-attempts", "2") == 1
    assert sandbox.state()["step_executions"]["1"]["attempts"] == 2


def test_the_baseline_is_told_and_a_step_with_old_failures_is_done_and_says_so(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    (sandbox.root / "test_a.py").write_text("def test_old():\n    assert 0\n")
    sandbox.write(Step("a.txt"))
    assert cdd(sandbox, "exec", SLUG, "--json", "--model", script(sandbox, says("a.txt", "good"))) == 0
    told = {event["event"]: event for event in events(capsys)}
    assert (told["baseline_taken"]["step"], told["baseline_taken"]["failed"]) == (1, 1)
    assert told["tests_finished"]["verification"] == "baseline"
    assert (told["step_finished"]["status"], told["step_finished"]["verification"]) == ("completed", "baseline")
    assert told["run_finished"]["with_old_failures"] == 1


def test_approval_is_needed_where_the_config_asks_for_it(sandbox: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
    sandbox.write(STEPS[0])
    (sandbox.root / ".cdd/config.yaml").write_text("approval: ask\n")
    model = script(sandbox, says("a.txt", "good"))
    assert cdd(sandbox, "exec", SLUG, "--model", model) == 3
    assert "--yes" in capsys.readouterr().out
    assert not (sandbox.root / "a.txt").exists()
    assert cdd(sandbox, "exec", SLUG, "--model", model, "--yes") == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["exec", "feature-wordz"], "Did you mean feature-words?"),
        (["exec", "../elsewhere"], "outside the project"),
        (["exec", SLUG], "No model is configured"),
        (["exec", SLUG, "--model", "script:nothing.yaml"], "nothing.yaml"),
        (["exec", SLUG, "--model", ""], "--model: `model: ` is not allowed; give a model string"),
        (["exec", SLUG, "--model", "x", "--max-attempts", "0"], "--max-attempts"),
        (["plan", "show", "nope"], "no ticket"),
        (["status", "nope"], "no ticket"),
        (["new", "story", "x"], "feature, bug"),
    ],
)
def test_bad_input_is_a_message_and_exit_2(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    sandbox.write(STEPS[0])
    assert cdd(sandbox, *arguments) == 2
    assert words in capsys.readouterr().err


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
    (sandbox.root / ".cdd/config.yaml").write_text("model: nix\napi_base: http://127.0.0.1:9/v1\n")
    assert cdd(sandbox, "doctor") == 2
    assert " nix" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        ("", "is empty"),
        ("# Nothing here\n", "no steps"),
        ("### Step 1: A\n\n**Dependencies:** Step 2\n\n### Step 2: B\n\n**Dependencies:** Step 1\n", "plan.md:1"),
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


def test_a_ticket_without_a_plan_names_the_way_to_one(sandbox: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
    sandbox.write(STEPS[0])
    (sandbox.ticket / "plan.md").unlink()
    assert cdd(sandbox, "exec", SLUG, "--model", script(sandbox)) == 2
    assert "/plan" in capsys.readouterr().err


def test_a_wrong_config_names_file_and_line(sandbox: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
    sandbox.write(STEPS[0])
    (sandbox.root / ".cdd/config.yaml").write_text("model: x\nmodle: y\n")
    for command in (["exec", SLUG], ["list"], ["doctor"], ["status"]):
        assert cdd(sandbox, *command) == 2
        captured = capsys.readouterr()
        assert "config.yaml:2:" in captured.out + captured.err
        assert "`modle`" in captured.out + captured.err


def test_an_unreadable_state_is_set_aside_once_and_then_the_run_starts_afresh(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    sandbox.write(STEPS[0])
    (sandbox.ticket / "execution-state.json").write_text("{torn")
    model = script(sandbox, says("a.txt", "good"))
    assert cdd(sandbox, "exec", SLUG, "--model", model) == 2
    assert "set aside" in capsys.readouterr().err
    assert [path.read_text() for path in sandbox.ticket.glob("*.aside-*")] == ["{torn"]
    assert cdd(sandbox, "exec", SLUG, "--model", model) == 0


def test_status_does_not_touch_an_unreadable_state(sandbox: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
    sandbox.write(STEPS[0])
    (sandbox.ticket / "execution-state.json").write_text("{torn")
    assert cdd(sandbox, "status", SLUG) == 2
    assert (sandbox.ticket / "execution-state.json").read_text() == "{torn"


def test_plan_show_json_is_the_plan(sandbox: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
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
    ]
    assert shown["steps"][1]["dependencies"] == [1]
    assert shown["steps"][1]["files_affected"] == ["b.txt"]
    assert cdd(sandbox, "plan", "show", SLUG) == 0
    text = (sandbox.ticket / "plan.md").read_text()
    assert ImplementationPlan.from_markdown(capsys.readouterr().out) == ImplementationPlan.from_markdown(text)


def test_plan_check_names_what_has_to_be_mended_and_exits_1(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    sandbox.write(Step("a.txt"), Step("b.txt", also=("a.txt (new)",), description="Serve.\n**Serves:** 2"))
    assert cdd(sandbox, "plan", "check", SLUG) == 1
    printed = capsys.readouterr().out.splitlines()
    assert cdd(sandbox, "plan", "check", SLUG, "--json") == 1
    (checked,) = events(capsys)
    assert checked["ok"] is False
    assert [(problem["line"], problem["severity"], problem["kind"]) for problem in checked["problems"]] == [
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
    assert [(p["kind"], p["severity"], p["step"], p["line"]) for p in report["problems"]] == [
        ("no_serves", "warning", None, 1),
        ("no_check", "warning", 1, 7),
        ("missing_file", "warning", 1, 7),
    ]


def test_plan_check_leaves_out_the_files_of_steps_that_were_carried_out(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    new = "**Files Affected:**\n- `a.txt` (new)"
    sandbox.write(Step(None, check("a.txt"), description=f"Make it.\n**Serves:** 1\n{new}"))
    assert cdd(sandbox, "exec", SLUG, "--model", script(sandbox, says("a.txt", "good"))) == 0
    capsys.readouterr()
    assert cdd(sandbox, "plan", "check", SLUG, "--json") == 0
    assert json.loads(capsys.readouterr().out)["problems"] == []


def test_init_new_list_status(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tmp_path / "my shop"
    root.mkdir()
    assert main(["init", "-C", str(root)]) == 0
    assert main(["new", "feature", "User Auth", "-C", str(root)]) == 0
    assert main(["new", "feature", "User Auth", "-C", str(root)]) == 2
    assert "there already" in capsys.readouterr().err
    assert main(["-C", str(root), "list"]) == 0
    assert capsys.readouterr().out.split()[-2:] == ["feature-user-auth", "empty"]
    assert main(["list", "--json", "-C", str(root)]) == 0
    assert events(capsys)[0]["tickets"][0]["slug"] == "feature-user-auth"


def test_init_anywhere_in_a_repository_makes_its_root_the_project(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "inner").mkdir()
    assert main(["init", "-C", str(tmp_path / "inner")]) == 0
    assert (tmp_path / ".cdd/config.yaml").is_file()


def test_a_folder_that_is_not_there_is_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["list"], ["init"], ["exec", "x"], ["doctor"]):
        assert main([*command, "-C", str(tmp_path / "nowhere")]) == 2
    assert str(tmp_path / "nowhere") in capsys.readouterr().err


def test_debug_shows_the_traceback(sandbox: Sandbox) -> None:
    with pytest.raises(Exception, match="no ticket"):
        cdd(sandbox, "status", "nope", "--debug")


def test_doctor_says_what_is_missing(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox.write(STEPS[0])
    assert cdd(sandbox, "doctor") == 2
    out = capsys.readouterr().out
    assert any(line.startswith("✗ model") for line in out.splitlines())
    assert "cdd demo" in out
    monkeypatch.setenv("CDD_MODEL", script(sandbox))
    assert cdd(sandbox, "doctor") == 0
    assert any(line.startswith(("! tests", "! check")) for line in capsys.readouterr().out.splitlines())


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("CDD_MODEL", "script:nothing.yaml", "nothing.yaml is not there"),
        ("CDD_TEST_COMMAND", "no-such-tester -q", "no-such-tester is not there"),
        ("CDD_TEST_COMMAND", "a && b", "needs a shell"),
        ("CDD_MAX_ATTEMPTS", "many", "a whole number from 1 to 100"),
        ("CDD_API_BASE", "localhost:1234", "begins with http:// or https://"),
        ("OPENAI_BASE_URL", "localhost:1234", "OPENAI_BASE_URL in the environment is no address"),
        ("CDD_API_BASE", "http://127.0.0.1:9/v1", "http://127.0.0.1:9/v1"),
    ],
)
def test_doctor_finds_what_would_stop_a_run_and_still_looks_at_the_rest(
    sandbox: Sandbox,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    value: str,
    words: str,
) -> None:
    sandbox.write(STEPS[0])
    monkeypatch.setenv("CDD_MODEL", "openai/any" if "BASE" in variable else script(sandbox))
    monkeypatch.setenv(variable, value)
    assert cdd(sandbox, "doctor") == 2
    out = capsys.readouterr().out
    assert words in out
    assert "git" in out


@pytest.mark.parametrize(
    ("settings", "exit_code", "words"),
    [
        ({"MODEL": "groq/llama"}, 2, "groq/llama: GROQ_API_KEY not set"),
        ({"MODEL": "groq/llama", "KEY": "GROQ_API_KEY"}, 0, "at https://api.groq.com/openai/v1, asked directly"),
        ({"MODEL": "bedrock/claude", "MODEL_ADAPTER": "direct"}, 2, "does not know how to ask bedrock/claude"),
        ({"MODEL": "groq/llama", "MODEL_ADAPTER": "curl"}, 2, "allowed: 'auto', 'litellm' or 'direct'"),
    ],
)
def test_doctor_says_what_asks_the_model(
    sandbox: Sandbox,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    settings: dict[str, str],
    exit_code: int,
    words: str,
) -> None:
    sandbox.write(STEPS[0])
    monkeypatch.delenv("GROQ_API_KEY", raising=False)
    for name, value in settings.items():
        monkeypatch.setenv(value if name == "KEY" else f"CDD_{name}", value)

    assert cdd(sandbox, "doctor") == exit_code
    assert words in capsys.readouterr().out


def test_doctor_names_servers_their_models_and_the_lines_that_choose_them(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    sandbox.write(STEPS[0])
    with (
        answering(listing("qwen3-coder:30b", *"abcdef")) as (ollama, _),
        answering(listing("a: b #c.gguf")) as (llama, _),
        answering(listing()) as (empty, _),
        answering(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n<html>") as (page, _),
    ):
        ports = {"Ollama": ollama, "llama.cpp": llama, "LM Studio": empty, "vLLM": page}
        assert examine(sandbox.root, {}, ports) == 2  # no model is configured
        out = capsys.readouterr().out
        lines = [line.strip() for line in out.splitlines()]

        at = next(number for number, line in enumerate(lines) if f"Ollama at http://127.0.0.1:{ollama}/v1" in line)
        assert lines[at].endswith(" 2 more")
        assert lines[at + 1].split() == ["model:", "openai/qwen3-coder:30b"]
        assert lines[at + 2].split() == ["api_base:", f"http://127.0.0.1:{ollama}/v1"]
        without_models = [line for line in lines if "LM Studio" in line]
        assert [line[0] for line in without_models] == ["!"]
        assert "vLLM" not in out

        for name, port in (("qwen3-coder:30b", ollama), ("a: b #c.gguf", llama)):  # the lines do what they say
            at = lines.index(f"api_base: http://127.0.0.1:{port}/v1")
            (sandbox.root / ".cdd/config.yaml").write_text("\n".join(lines[at - 1 : at + 1]))
            assert examine(sandbox.root, {}, {}) == 0
            assert f"openai/{name} at http://127.0.0.1:{port}/v1, asked directly" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("answer", "glyph", "told"),
    [
        (listing("any", "other"), "✓", "any"),
        (listing("any:latest"), "✓", "any"),
        (listing("other", "more"), "!", "other, more"),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}", "!", "/v1/models"),
        (b"HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n", "!", "/v1/models"),
        (b"", "✗", "/v1/models"),
    ],
)
def test_doctor_tells_a_missing_model_and_a_missing_list_from_a_missing_server(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str], answer: bytes, glyph: str, told: str
) -> None:
    sandbox.write(STEPS[0])
    with answering(answer) as (port, _):
        address = f"http://127.0.0.1:{port}/v1"
        code = examine(sandbox.root, {"model": "openai/any", "api_base": address}, {})
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line[2:].startswith("model ")]
    assert (line[0], code) == (glyph, 2 if glyph == "✗" else 0)
    assert told in line
    assert address in line


def test_doctor_shows_the_roles_with_a_model_or_settings_of_their_own(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox.write(STEPS[0])
    monkeypatch.setenv("GROQ_API_KEY", "key")
    monkeypatch.delenv("XAI_API_KEY", raising=False)
    (sandbox.root / ".cdd/config.yaml").write_text(
        "model: groq/llama\nmodels: {planner: {effort: high}, chat: xai/grok, executor: groq/llama}\n"
    )
    assert cdd(sandbox, "doctor") == 2
    lines = capsys.readouterr().out.splitlines()
    assert any("planner" in line and "groq/llama" in line and "effort high" in line for line in lines)
    assert any("chat" in line and "XAI_API_KEY" in line for line in lines)
    assert not any(line[2:].startswith(("executor", "socrates")) for line in lines)


def test_doctor_imports_no_litellm_for_a_model_that_is_asked_directly(sandbox: Sandbox) -> None:
    code = (
        "import sys, cdd_agent.cli.main as cli; cli.main(['doctor']); print(*{'litellm', 'openai'} & set(sys.modules))"
    )
    environment = {**os.environ, "CDD_MODEL": "groq/llama", "GROQ_API_KEY": "a-key-for-tests"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=sandbox.root, env=environment, capture_output=True, text=True
    )
    assert "https://api.groq.com/openai/v1" in done.stdout
    assert done.stdout.endswith("\n\n")


COMMANDS = ["demo", "init", "new", "list", "status", "plan", "exec", "undo", "redo", "diff", "run", "apply"]
COMMANDS += ["context", "serve", "doctor", "criteria"]


def test_help_lists_the_commands_as_one_gets_to_know_them(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    assert re.findall(r"^    (\w+) ", capsys.readouterr().out, re.MULTILINE) == COMMANDS


def test_a_slash_command_with_a_form_for_the_terminal_is_a_command_of_cdd(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def greet(session: Session, name: str, *, out_loud: bool = False) -> None:
        session.emit(Notice(f"{'HELLO' if out_loud else 'Hello'} {name}"))

    form = TerminalForm(
        "cdd greet Ada", Argument("name", "who", metavar="NAME"), flag("--out-loud", "with a voice"), JSON
    )
    monkeypatch.setitem(
        commands(), "greet", SlashCommand("greet", "NAME [--out-loud]", greet, tuple, form, "say hello")
    )

    assert cdd(sandbox, "greet", "Ada", "--out-loud") == 0
    assert capsys.readouterr().out == "HELLO Ada\n"
    assert cdd(sandbox, "greet", "Ada", "--json") == 0
    assert json.loads(capsys.readouterr().out)["text"] == "Hello Ada"
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "greet               say hello" in capsys.readouterr().out


def test_an_empty_slug_is_none(sandbox: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
    sandbox.write(*STEPS)
    assert cdd(sandbox, "status", "") == 0
    assert SLUG in capsys.readouterr().out


def test_help_has_examples_for_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    for command in COMMANDS:
        with pytest.raises(SystemExit) as caught:
            main([command, "--help"])
        assert caught.value.code == 0
        assert f"  cdd {command}" in capsys.readouterr().out


def test_a_wrong_argument_exits_2(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["exce"], ["exec"], ["exec", "x", "--max-attempts", "many"], ["--modle", "x"]):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_mistyped_command_is_answered_with_the_one_that_was_meant(sandbox: Sandbox) -> None:
    out, err = process(sandbox, "exce", "x").communicate(timeout=30)
    assert "exec?" in err
    assert out == ""


def test_version_and_start_up_import_nothing_heavy(sandbox: Sandbox) -> None:
    code = (
        "import sys; from cdd_agent.cli.main import main; main(['--version'])\n"
        "heavy = {'argparse_', 'litellm', 'openai', 'httpx', 'git', 'textual', 'pydantic', 'yaml', 'asyncio', 'rich'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=Path(__file__).parents[1])
    assert result.stdout == f"cdd-agent {VERSION}\n[]\n"


def test_no_help_imports_what_a_command_needs_to_run() -> None:
    code = (
        "import sys; from contextlib import suppress; from cdd_agent.cli.main import main\n"
        f"for arguments in [[], *([name] for name in {COMMANDS})]:\n"
        "    with suppress(SystemExit): main([*arguments, '--help'])\n"
        "heavy = {'asyncio', 'dataclasses', 'httpx', 'textual', 'pydantic', 'yaml', 'rich', 'cdd_agent.wiring'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=Path(__file__).parents[1])
    assert result.stdout.splitlines()[-1] == "[]"


def test_what_only_looks_at_tickets_imports_no_engine(sandbox: Sandbox) -> None:
    code = (
        "import sys; from cdd_agent.cli.main import main; main(['list'])\n"
        "heavy = {'cdd_agent.engine.engine', 'cdd_agent.agents.planning', 'httpx', 'textual'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=sandbox.root)
    assert result.stdout.splitlines()[-1] == "[]"


def test_the_shells_start_imports_neither_litellm_nor_git() -> None:
    code = (
        "import sys, cdd_agent.tui.app, cdd_agent.wiring\n"
        "ours = {'cdd_agent.llm.direct.model', 'cdd_agent.engine.engine', 'cdd_agent.agents.chat'}\n"
        "print(sorted(({'litellm', 'openai', 'httpx', 'git', 'markdown_it', 'filelock'} | ours) & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=Path(__file__).parents[1])
    assert result.stdout == "[]\n", result.stderr


def wait_for(condition: Any, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("module", ["argparse", "cdd_agent.cli.parser", "cdd_agent.errors", "pathlib"])
def test_ctrl_c_while_it_starts_is_no_traceback(tmp_path: Path, module: str) -> None:
    code = f"""
import os, signal, sys
from cdd_agent.cli.main import main

class Interrupted:
    def find_spec(self, name, *_):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.modules.pop({module!r}, None)
sys.meta_path.insert(0, Interrupted())
sys.exit(main(["exec", "nothing"] if {module!r} != "argparse" else ["--help"]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (130, "")
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) <= 1


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_puts_the_step_back_and_exits_130(sandbox: Sandbox, name: str) -> None:
    slow = "python -c \"import time, pathlib; pathlib.Path('running').touch(); time.sleep(60)\""
    sandbox.write(Step("a.txt", slow))
    running = process(sandbox, "exec", SLUG, "--model", script(sandbox, says("a.txt", "good")))
    wait_for((sandbox.root / "running").exists)

    running.send_signal(getattr(signal, name))
    _, err = running.communicate(timeout=30)

    assert running.returncode == 130
    assert "Interrupted" in err
    assert "Traceback" not in err
    assert not (sandbox.root / "a.txt").exists()
    assert sandbox.statuses() == ["pending"]


def test_after_a_kill_the_next_run_goes_on_without_asking_the_model_again(sandbox: Sandbox) -> None:
    code = "import time, pathlib; p = pathlib.Path('running'); time.sleep(0 if p.exists() else (p.touch(), 60)[1])"
    sandbox.write(Step("a.txt", f'python -c "{code}"'))
    model = script(sandbox, says("a.txt", "good"))
    running = process(sandbox, "exec", SLUG, "--model", model)
    wait_for((sandbox.root / "running").exists)
    running.kill()
    running.communicate(timeout=30)
    assert sandbox.statuses() == ["in_progress"]
    assert sandbox.text("a.txt") == "good\n"
    script(sandbox)

    out, err = process(sandbox, "exec", SLUG, "--model", model, "--json").communicate(timeout=60)

    seen = [json.loads(line) for line in out.splitlines()]
    assert "was interrupted" in seen[0]["text"], err
    assert [event["saved"] for event in seen if event["event"] == "reply_started"] == [True]
    assert sandbox.statuses() == ["completed"]


def test_two_at_once_are_refused(sandbox: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
    slow = "python -c \"import time, pathlib; pathlib.Path('running').touch(); time.sleep(60)\""
    sandbox.write(Step("a.txt", slow))
    model = script(sandbox, says("a.txt", "good"))
    running = process(sandbox, "exec", SLUG, "--model", model)
    wait_for((sandbox.root / "running").exists)
    assert cdd(sandbox, "exec", SLUG, "--model", model) == 2
    assert f" {running.pid} " in capsys.readouterr().err
    running.terminate()
    running.communicate(timeout=30)


def without_override(*arguments: str) -> list[str]:
    """The command as somebody who may not write where they have no right to; root may everywhere."""
    if os.geteuid() != 0:
        return list(arguments)
    if shutil.which("setpriv") is None:
        pytest.skip("runs as root, and setpriv is not there to give up root's rights")
    dropped = "-dac_override,-dac_read_search,-fowner"
    return ["setpriv", "--bounding-set", dropped, "--inh-caps", dropped, *arguments]


@pytest.mark.parametrize("place", ["tickets/feature-words", ".cdd"])
def test_a_read_only_folder_is_told_and_nothing_is_written_half(sandbox: Sandbox, place: str) -> None:
    sandbox.write(STEPS[0])
    model = script(sandbox, says("a.txt", "good"))
    folder = sandbox.root / place
    folder.chmod(0o555)
    command = without_override(sys.executable, "-m", "cdd_agent", "exec", SLUG, "--model", model)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1]), "PYTHONDONTWRITEBYTECODE": "1"}
    result = subprocess.run(command, cwd=sandbox.root, env=environment, capture_output=True, text=True)
    folder.chmod(0o755)

    assert result.returncode == 2, result.stderr
    assert "Permission denied" in result.stderr
    assert "Traceback" not in result.stderr
    assert not (sandbox.root / "a.txt").exists()
    assert not list(sandbox.root.rglob("*.tmp"))


def test_output_that_nobody_reads_is_no_crash(sandbox: Sandbox) -> None:
    sandbox.write(*STEPS)
    running = process(sandbox, "list", "--json")
    assert running.stdout
    running.stdout.close()
    assert running.stderr
    assert "Traceback" not in running.stderr.read()
    running.wait(30)
    running.stderr.close()


def test_doctor_looks_at_the_model_of_the_flags(sandbox: Sandbox) -> None:
    sandbox.write(*STEPS)
    (sandbox.root / ".cdd/config.yaml").write_text("model: script:none.yaml\n")
    out, err = process(sandbox, "--model", "nonsense/one", "doctor").communicate(timeout=60)
    assert "nonsense/one" in out, err


def test_a_reader_that_leaves_in_a_check_leaves_the_step_pending_and_the_files_as_they_were(sandbox: Sandbox) -> None:
    code = "import time; [print(n, flush=True) or time.sleep(0.02) for n in range(3000)]"
    sandbox.write(Step("a.txt", f'python -c "{code}"'))
    (sandbox.root / "a.txt").write_text("before\n")
    running = process(sandbox, "exec", SLUG, "--model", script(sandbox, says("a.txt", "good")), "--json")
    assert running.stdout
    assert running.stderr
    while "command_output" not in running.stdout.readline():
        pass
    running.stdout.close()
    assert running.stderr.read() == ""
    running.stderr.close()
    running.wait(30)
    assert sandbox.statuses() == ["pending"]
    assert sandbox.text("a.txt") == "before\n"


def test_a_look_tells_what_was_found_of_a_torn_state(sandbox: Sandbox) -> None:
    sandbox.write(Step("a.txt", check("a.txt")))
    process(sandbox, "exec", SLUG, "--model", script(sandbox, says("a.txt", "good"))).communicate(timeout=60)
    (sandbox.ticket / "execution-state.json").write_text("{ torn")
    out, err = process(sandbox, "diff", SLUG, "--json").communicate(timeout=60)
    told = [event for event in map(json.loads, out.splitlines()) if event["event"] == "notice"]
    assert "execution-state" in told[0]["text"], err


@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"COLUMNS": "20"}, {"LC_ALL": "C", "PYTHONUTF8": "0"}])
def test_odd_terminals_get_whole_words(sandbox: Sandbox, variables: dict[str, str]) -> None:
    sandbox.write(*STEPS)
    out, err = process(sandbox, "status", SLUG, **variables).communicate(timeout=30)
    assert "2. Make b.txt" in out, err
    assert "\x1b" not in out


def test_the_demo_runs_without_a_screen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert main(["demo", "--json"]) == 0
    captured = capsys.readouterr()
    seen = [json.loads(line) for line in captured.out.splitlines()]
    assert "script" in captured.err
    failed = [event for event in seen if event["event"] == "attempt_failed"]
    assert [(event["step"], event["will_retry"]) for event in failed] == [(3, True)]
    assert (seen[-1]["event"], seen[-1]["completed"], seen[-1]["unverified"]) == ("run_finished", 4, 0)
    (folder,) = tmp_path.glob("cdd-demo-*")
    log = subprocess.run(["git", "log", "--oneline"], cwd=folder, capture_output=True, text=True).stdout
    assert len(log.splitlines()) == 1


def run_cdd(folder: Path, *arguments: str, command: list[str] | None = None) -> subprocess.CompletedProcess[str]:
    """The real program, started in a folder."""
    return subprocess.run(
        command or [sys.executable, "-m", "cdd_agent", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1]), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
    )


def test_from_an_empty_repository_to_a_ticket_that_says_what_it_needs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    inner = tmp_path / "src"
    inner.mkdir()
    monkeypatch.chdir(inner)

    def told(*arguments: str) -> str:
        assert main([*arguments]) == 0
        return capsys.readouterr().out

    made = run_cdd(inner, "init")
    assert made.returncode == 0, made.stderr
    assert str(tmp_path.resolve()) in made.stdout
    assert (tmp_path / "AGENTS.md").is_file()
    assert not (inner / ".cdd").exists()
    before = sorted(tmp_path.rglob("*"))
    assert told("init", "-C", str(tmp_path))
    assert sorted(tmp_path.rglob("*")) == before

    assert "tickets/bug-login-fails/" in told("new", "bug", "Login fails")
    assert told("new", "documentation", "guide", "Deploy").count("docs/guides/deploy.md") == 1
    assert run_cdd(inner, "list").stdout.split() == ["bug-login-fails", "empty"]
    assert told("list", "bug", "empty").split() == ["bug-login-fails", "empty"]

    status = told("status", "bug")
    assert "\n  title: " in status
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


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["init", "-C", "/etc"], "/etc is no place for a project"),
        (["new", "feature", "a", "b"], "Usage: cdd new TYPE NAME\nPut words that belong together in quotation marks."),
        (["new", "documentation", "guide"], "Usage: cdd new documentation guide|feature NAME"),
        (["new", "documentation", "recipe", "x"], "Allowed: guide, feature."),
        (["new", "bug", "日本"], "leaves no letters"),
        (["list", "bug", "finished"], "no type and no state 'finished'"),
        (["list", "bug", "done", "failed"], "one state"),
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


def test_a_broken_template_names_file_and_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / ".cdd/templates").mkdir(parents=True)
    (tmp_path / ".cdd/templates/bug.yaml").write_text("title: x\ntype: feature\n")
    assert main(["new", "bug", "a", "-C", str(tmp_path)]) == 2
    assert "templates/bug.yaml:2:" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["init"], ["new", "bug", "a"], ["new", "documentation", "guide", "a"]])
def test_a_read_only_project_is_told(tmp_path: Path, arguments: list[str]) -> None:
    tmp_path.chmod(0o555)
    command = without_override(sys.executable, "-m", "cdd_agent", *arguments)
    result = run_cdd(tmp_path, command=command)
    tmp_path.chmod(0o755)
    assert result.returncode == 2
    assert os.strerror(errno.EACCES) in result.stderr
    assert "Traceback" not in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_closed_file_of_the_project_is_told_and_the_rest_is_made(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch(mode=0)
    result = run_cdd(tmp_path, command=without_override(sys.executable, "-m", "cdd_agent", "init"))
    assert result.returncode == 0, result.stderr
    assert "pyproject.toml" in result.stdout
    assert (tmp_path / "AGENTS.md").is_file()
