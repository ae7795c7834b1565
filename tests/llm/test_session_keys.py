"""A key that the user types is used like one of the environment, and hidden like it."""

import os
from collections.abc import Iterator

import pytest

from cdd_agent.llm.providers import PROVIDERS, endpoint_of
from cdd_agent.llm.server_keys import forget_server_keys, keep_for_server
from cdd_agent.llm.session_keys import (
    KeySource,
    export_line,
    find_key_source,
    keep_for_session,
    read_typed_key,
)
from cdd_agent.network.keys import Key
from cdd_agent.process.run import child_environment, run_in_foreground
from cdd_agent.text.redaction import Redactor, forget_typed_keys
from tests.support.tables import each_row

KEY = "my-own-key-0123456789"


@pytest.fixture(autouse=True)
def forget(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("MISTRAL_API_KEY", "")
    yield
    forget_typed_keys()
    forget_server_keys()


def test_a_typed_key_is_used_and_no_command_gets_it() -> None:
    before = Redactor.of_environment()
    stream = before.stream()
    assert find_key_source(PROVIDERS["mistral"]) is None
    variable = keep_for_session("mistral", read_typed_key(KEY, "MISTRAL_API_KEY"))
    assert variable == "MISTRAL_API_KEY"
    assert find_key_source(PROVIDERS["mistral"]) == KeySource(variable, is_typed=True)
    endpoint = endpoint_of("mistral/any")
    assert endpoint is not None
    assert endpoint.key == KEY
    assert not endpoint.lacks_key
    assert variable not in child_environment()
    assert variable not in child_environment(passed=("*_API_KEY",))
    # the user's editor is started in this way
    assert run_in_foreground(["sh", "-c", f'test -z "${variable}"']) == 0
    for redactor in (before, before.with_folders({"/a": "b"}), Redactor()):
        assert KEY not in redactor.redact(f"it is {KEY}.")
    assert KEY not in stream.feed(f"it is {KEY[:9]}") + stream.feed(KEY[9:])


def test_a_key_for_a_server_is_sent_to_no_other_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    keep_for_server("http://127.0.0.1:8080", Key(KEY))
    for model, api_base, key in (
        ("openai/x", "http://127.0.0.1:8080/v1", KEY),
        ("openai/x", "http://127.0.0.1:8080", KEY),
        ("openai/x", "http://127.0.0.1:8081/v1", None),
        ("openai/x", "https://127.0.0.1:8080/v1", None),
        ("openai/gpt-5", None, None),
    ):
        endpoint = endpoint_of(model, api_base)
        assert endpoint is not None
        assert endpoint.key == key, (model, api_base)
    assert "OPENAI_API_KEY" not in os.environ


def test_a_typed_key_is_hidden_before_it_is_used() -> None:
    redactor = Redactor.of_environment()
    with pytest.raises(ValueError, match="characters"):
        read_typed_key(f"{KEY}é", "MISTRAL_API_KEY")
    assert KEY not in redactor.redact(f"{KEY}é")


@each_row(
    "typed",
    [
        f"  {KEY}\n",
        f'"{KEY}"',
        f"export MISTRAL_API_KEY='{KEY}'",
        f"Bearer {KEY}",
        f"Authorization: Bearer {KEY}\r\n",
    ],
)
def test_a_pasted_key_is_cleaned(typed: str) -> None:
    assert read_typed_key(typed, "MISTRAL_API_KEY").text == KEY


@each_row("typed", ["", "  ", '""'])
def test_nothing_is_no_key(typed: str) -> None:
    with pytest.raises(ValueError, match="it is empty"):
        read_typed_key(typed, "MISTRAL_API_KEY")


@each_row(
    ("shell", "system", "line"),
    [
        ("/bin/bash", "posix", "export A_KEY=…"),
        ("/usr/bin/fish", "posix", "set -gx A_KEY …"),
        ("/usr/bin/pwsh", "posix", '$env:A_KEY = "…"'),
        ("", "nt", '$env:A_KEY = "…"'),
        ("", "posix", "export A_KEY=…"),
    ],
)
def test_the_line_to_export_is_in_the_language_of_the_shell(
    shell: str, system: str, line: str
) -> None:
    assert export_line("A_KEY", {"SHELL": shell}, system) == line
