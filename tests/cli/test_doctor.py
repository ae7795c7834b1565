"""`cdd doctor`: what it finds of settings, servers and models, and its exit codes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cdd_agent.cli.examining import examine
from tests.llm.listing import answering, listing
from tests.support.commandline import STEPS, cdd, script
from tests.support.projects import Sandbox
from tests.support.tables import each_row


def _answer(status: str, body: str) -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n"
    return f"{head}{body}".encode()


def test_doctor_says_what_is_missing(
    sandbox: Sandbox,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sandbox.write(STEPS[0])
    assert cdd(sandbox, "doctor") == 2
    out = capsys.readouterr().out
    assert any(line.startswith("✗ model") for line in out.splitlines())
    assert "cdd demo" in out
    monkeypatch.setenv("CDD_MODEL", script(sandbox))
    assert cdd(sandbox, "doctor") == 0
    assert any(
        line.startswith(("! tests", "! check"))
        for line in capsys.readouterr().out.splitlines()
    )


@each_row(
    ("variable", "value", "words"),
    [
        ("CDD_MODEL", "script:nothing.yaml", "nothing.yaml does not exist"),
        ("CDD_TEST_COMMAND", "no-such-tester -q", "no-such-tester was not found"),
        ("CDD_TEST_COMMAND", "a && b", "needs a shell"),
        ("CDD_MAX_ATTEMPTS", "many", "a whole number (at least 1, at most 100)"),
        ("CDD_API_BASE", "localhost:1234", "begins with http:// or https://"),
        (
            "OPENAI_BASE_URL",
            "localhost:1234",
            "OPENAI_BASE_URL is not an address",
        ),
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
    monkeypatch.setenv(
        "CDD_MODEL", "openai/any" if "BASE" in variable else script(sandbox)
    )
    monkeypatch.setenv(variable, value)
    assert cdd(sandbox, "doctor") == 2
    out = capsys.readouterr().out
    assert words in out
    assert "git" in out


@pytest.mark.usefixtures("untrusting")
def test_doctor_says_that_the_model_of_the_project_is_not_trusted(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    sandbox.write(STEPS[0])
    settings = "model: openai/any\napi_base: http://127.0.0.1:9/v1\n"
    (sandbox.root / ".cdd/config.yaml").write_text(settings)

    assert examine(sandbox.root, {}, {}) == 2

    out = capsys.readouterr().out
    assert "✗ model    the project sets one that you do not trust yet" in out
    assert "`cdd trust --give`" in out
    assert "Choose one of" not in out


@each_row(
    ("settings", "exit_code", "words"),
    [
        ({"MODEL": "groq/llama"}, 2, "groq/llama: GROQ_API_KEY not set"),
        (
            {"MODEL": "groq/llama", "KEY": "GROQ_API_KEY"},
            0,
            "at https://api.groq.com/openai/v1, asked directly",
        ),
        (
            {"MODEL": "bedrock/claude", "MODEL_ADAPTER": "direct"},
            2,
            "does not support bedrock/claude",
        ),
        (
            {"MODEL": "groq/llama", "MODEL_ADAPTER": "curl"},
            2,
            "not one of `auto`, `direct`, `litellm`",
        ),
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


@each_row(
    ("variables", "exit_code", "words"),
    [
        (
            {"GROQ_API_KEY": "'Bearer gsk_1'\n"},
            0,
            ["removed around GROQ_API_KEY: blanks, quotes, `Bearer`"],
        ),
        (
            {"GROQ_API_KEY": "gsk_ä secret"},
            2,
            ["GROQ_API_KEY has characters that no API key has"],
        ),
        (
            {"HTTPS_PROXY": "me:secret@127.0.0.1:9"},
            0,
            ["through the proxy http://127.0.0.1:9 (HTTPS_PROXY)"],
        ),
        ({"HTTPS_PROXY": "127.0.0.1:9", "NO_PROXY": "groq.com,fe80::/10"}, 0, []),
        (
            {"ALL_PROXY": "gopher://me:secret@127.0.0.1"},
            2,
            [
                "ALL_PROXY in the environment is no usable proxy: gopher://",
                "127.0.0.1. Write it as http://host:port or socks5://host:port",
            ],
        ),
        (
            {"SSL_CERT_FILE": "/nowhere/a.pem"},
            2,
            ["/nowhere/a.pem (SSL_CERT_FILE) cannot be read: No such file"],
        ),
    ],
)
def test_doctor_says_what_the_environment_changes_about_calls(
    sandbox: Sandbox,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    exit_code: int,
    words: list[str],
) -> None:
    sandbox.write(STEPS[0])
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CDD_MODEL", "groq/llama")
    monkeypatch.setenv("GROQ_API_KEY", "gsk_1")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert cdd(sandbox, "doctor") == exit_code
    out = capsys.readouterr().out
    assert all(each in out for each in words)
    assert "secret" not in out
    assert ("proxy" in out) == any("proxy" in each for each in words)


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

        at = next(
            number
            for number, line in enumerate(lines)
            if f"Ollama at http://127.0.0.1:{ollama}/v1" in line
        )
        assert lines[at].endswith(" 2 more")
        assert lines[at + 1].split() == ["model:", "openai/qwen3-coder:30b"]
        assert lines[at + 2].split() == ["api_base:", f"http://127.0.0.1:{ollama}/v1"]
        without_models = [line for line in lines if "LM Studio" in line]
        assert [line[0] for line in without_models] == ["!"]
        assert "vLLM" not in out

        # the lines do what they say
        for name, port in (("qwen3-coder:30b", ollama), ("a: b #c.gguf", llama)):
            at = lines.index(f"api_base: http://127.0.0.1:{port}/v1")
            (sandbox.root / ".cdd/config.yaml").write_text(
                "\n".join(lines[at - 1 : at + 1])
            )
            assert examine(sandbox.root, {}, {}) == 0
            assert (
                f"openai/{name} at http://127.0.0.1:{port}/v1, asked directly"
                in capsys.readouterr().out
            )


@each_row(
    ("answer", "glyph", "told"),
    [
        (listing("any", "other"), "✓", "any"),
        (listing("any:latest"), "✓", "any"),
        (listing("other", "more"), "!", "other, more"),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}", "!", "/v1/models"),
        (
            _answer("401 No", '{"error": {"message": "Incorrect API key"}}'),
            "!",
            "refused the request (401): Incorrect API key. Set the environment",
        ),
        (_answer("403 No", ""), "!", "/v1/models refused the request (403). Set the"),
        (
            _answer("403 No", "<html><title>ACME filter</title>"),
            "!",
            "(403): ACME filter. A firewall, a proxy or a login page may block it",
        ),
        (b"", "✗", "/v1/models"),
    ],
)
def test_doctor_tells_a_missing_model_and_a_missing_list_from_a_missing_server(
    sandbox: Sandbox,
    capsys: pytest.CaptureFixture[str],
    answer: bytes,
    glyph: str,
    told: str,
) -> None:
    sandbox.write(STEPS[0])
    with answering(answer) as (port, _):
        address = f"http://127.0.0.1:{port}/v1"
        code = examine(sandbox.root, {"model": "openai/any", "api_base": address}, {})
    (line,) = [
        line
        for line in capsys.readouterr().out.splitlines()
        if line[2:].startswith("model ")
    ]
    assert (line[0], code) == (glyph, 2 if glyph == "✗" else 0)
    assert told in line
    assert address in line


def test_doctor_shows_the_roles_with_a_model_or_settings_of_their_own(
    sandbox: Sandbox,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sandbox.write(STEPS[0])
    monkeypatch.setenv("GROQ_API_KEY", "key")
    monkeypatch.delenv("XAI_API_KEY", raising=False)
    (sandbox.root / ".cdd/config.yaml").write_text(
        "model: groq/llama\n"
        "models: {planner: {effort: high}, chat: xai/grok, executor: groq/llama}\n"
    )
    assert cdd(sandbox, "doctor") == 2
    lines = capsys.readouterr().out.splitlines()
    assert any(
        "planner" in line and "groq/llama" in line and "effort high" in line
        for line in lines
    )
    assert any("chat" in line and "XAI_API_KEY" in line for line in lines)
    assert not any(line[2:].startswith(("executor", "socrates")) for line in lines)


@pytest.mark.story
def test_doctor_shows_each_check_with_its_reason_and_the_tools_to_request(
    sandbox: Sandbox,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sandbox.write(STEPS[0])
    monkeypatch.setenv("CDD_MODEL", script(sandbox))
    files = {
        "pyproject.toml": '[dependency-groups]\ndev = ["pytest"]\n',
        "app/tests/test_add.py": "def test_it():\n    assert True\n",
        "web/package.json": '{"scripts": {"test": "x"}, "dependencies": {"x": "1"}}',
        "pom.xml": "",
    }
    for name, text in files.items():
        (sandbox.root / name).parent.mkdir(parents=True, exist_ok=True)
        (sandbox.root / name).write_text(text)

    assert cdd(sandbox, "doctor") == 0
    out = capsys.readouterr().out
    lines = [line for line in out.splitlines() if line[2:].startswith("tests")]
    expected = [
        ("✓", "pytest", "pyproject.toml [dependency-groups]", "1 test collected"),
        ("!", "cd web && npm test", "does not run"),
        ("!", "Maven", "pom.xml", "test_command: mvn -q test"),
    ]
    assert len(lines) == len(expected)
    for line, (glyph, *words) in zip(lines, expected, strict=True):
        assert line[0] == glyph
        assert all(word in line for word in words)


@pytest.mark.fork
def test_doctor_imports_no_litellm_for_a_model_that_is_asked_directly(
    sandbox: Sandbox,
) -> None:
    code = (
        "import sys, cdd_agent.cli.main as cli; cli.main(['doctor']);"
        " print(*{'litellm', 'openai'} & set(sys.modules))"
    )
    environment = {
        **os.environ,
        "CDD_MODEL": "groq/llama",
        "GROQ_API_KEY": "a-key-for-tests",
    }
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=sandbox.root,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert "https://api.groq.com/openai/v1" in done.stdout
    assert done.stdout.endswith("\n\n")


def test_doctor_looks_at_the_model_of_the_flags(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    sandbox.write(*STEPS)
    (sandbox.root / ".cdd/config.yaml").write_text("model: script:none.yaml\n")
    assert cdd(sandbox, "--model", "script:other.yaml", "doctor") == 2
    out = capsys.readouterr().out
    assert "other.yaml does not exist" in out
    assert "none.yaml" not in out


def test_doctor_reports_the_other_program_that_installs_the_same_files(
    sandbox: Sandbox,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    sandbox.write(STEPS[0])
    monkeypatch.setenv("CDD_MODEL", script(sandbox))
    metadata = tmp_path / "packages" / "cdd_agent-7.8.9.dist-info" / "METADATA"
    metadata.parent.mkdir(parents=True)
    metadata.write_text("Metadata-Version: 2.1\nName: cdd-agent\nVersion: 7.8.9\n")
    monkeypatch.syspath_prepend(tmp_path / "packages")

    assert cdd(sandbox, "doctor") == 0

    (line,) = [line for line in capsys.readouterr().out.splitlines() if "7.8.9" in line]
    assert line.startswith("! package")
    assert "pip uninstall cdd-agent" in line
