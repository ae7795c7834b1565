"""Secrets are taken out of text, whole or in pieces; other text stays as it is."""

import time
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from cdd_agent.text.redaction import Redactor
from tests.support.tables import each_row

TOKEN = "c29tZSByYW5kb20gYnl0ZXM"
REDACTOR = Redactor(
    {
        TOKEN: "DEPLOY_TOKEN",
        "correct horse\nbattery": "PASSPHRASE",
        "correct horse": "SHORTER_KEY",
    }
)
KEY = (
    "-----BEGIN RSA PRIVATE KEY-----\n"
    "MIIEpAIBAAKCAQEA7bq3+/x=\n"
    "abcd\n"
    "-----END RSA PRIVATE KEY-----"
)
HEADERS = "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123456789ABCDEF\n\n"
JWT = (
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"
)
CREDENTIALS = [
    "sk-" + "Ab3d" * 12,
    "sk-ant-api03-" + "Ab_d-" * 18,
    "sk-proj-" + "Ab_d-" * 12,
    "sk-or-v1-" + "0f" * 32,
    "ghp_" + "a1B2" * 9,
    "ghs_" + "a1B2" * 9,
    "github_pat_" + "11ABCDEFG0_" * 7,
    "AKIA" + "IOSFODNN7EXAMPLE",
    "xoxb-123456789012-abcdefGHIJKL",
    "AIza" + "SyA-1234567890_abcdefghijklmnopqrst"[:35],
    JWT,
    KEY,
    KEY.replace("\n", "\\n"),
    KEY.replace("MII", HEADERS + "MII"),
    (
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\n"
        "Version: GnuPG v2\n\n"
        "lQOYBF=\n"
        "=abcd\n"
        "-----END PGP PRIVATE KEY BLOCK-----"
    ),
]


@each_row("secret", CREDENTIALS, ids=lambda secret: secret[:12])
@each_row(
    "around", ["{}", "key={}\n", '{{"key": "{}"}}', "a {}, b", "line\\n{} b", "(`{}`)"]
)
def test_what_has_the_shape_of_a_credential_is_redacted(
    secret: str, around: str
) -> None:
    assert REDACTOR.redact(around.format(secret)) == around.format("[redacted]")


@each_row(
    ("text", "redacted"),
    [
        (f"Bearer {TOKEN}!", "Bearer [redacted: DEPLOY_TOKEN]!"),
        (f"x{TOKEN}{TOKEN}y", "x[redacted: DEPLOY_TOKEN][redacted: DEPLOY_TOKEN]y"),
        ("correct horse\nbattery", "[redacted: PASSPHRASE]"),
        ("correct horse\nand cart", "[redacted: SHORTER_KEY]\nand cart"),
        (
            "git clone https://me:hunter2@host/x.git",
            "git clone https://me:[redacted]@host/x.git",
        ),
        ("postgres://app:p@ss:w0rd@db:5432/x", "postgres://app:[redacted]@db:5432/x"),
        ("redis://:hunter2@cache", "redis://:[redacted]@cache"),
    ],
)
def test_the_value_of_a_secret_variable_and_the_password_of_an_address_are_redacted(
    text: str, redacted: str
) -> None:
    assert REDACTOR.redact(text) == redacted
    assert REDACTOR.redact(redacted) == redacted


@each_row(
    "text",
    [
        "",
        (
            "the task-force-of-somebody-with-a-very-long-name, its"
            " risk-assessment-of-everything"
        ),
        "sk-folding-cube-with-many-words sk-1234 ghp_short AKIA AKIAiosfodnn7example",
        (
            "http://example.com:8080/a@b user@example.com:22 https://me@host/x"
            " mailto:a@b.c"
        ),
        "f'https://{user}:{password}@{host}'",
        (
            'assert text.startswith("-----BEGIN PRIVATE KEY-----")\n'
            'print("not a key")\n'
            "-----END PRIVATE KEY-----"
        ),
        "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
        "eyJhbGciOiJIUzI1NiJ9 eyJ.eyJ.eyJ",
        "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a::b\n\\ No newline\n",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "\x00\ud800\r\n\t ü 🦄",
    ],
)
def test_other_text_is_not_damaged(text: str) -> None:
    assert REDACTOR.redact(text) == text


def test_the_values_are_those_of_variables_whose_name_says_so(tmp_path: Path) -> None:
    environment = {
        "DEPLOY_TOKEN": TOKEN,
        "AWS_SESSION": "hidden-by-the-settings",
        "HOME_PAGE": "not-a-secret-by-its-name",
        "SHORT_KEY": "abc1234",
        "SECRET_MODE": "production",
        "USE_TOKENS": "disabled",
        "SSH_KEY": str(tmp_path),
        "STARS_KEY": "********",
        "EMPTY_KEY": "",
        "LONG_KEY": "0123456789abcdef\n" * 400,
    }
    redactor = Redactor.of_environment(["AWS_*"], environment)
    text = "\n".join(environment.values())
    hidden = {
        TOKEN: "DEPLOY_TOKEN",
        "hidden-by-the-settings": "AWS_SESSION",
        environment["LONG_KEY"].strip(): "LONG_KEY",
    }
    for value, name in hidden.items():
        text = text.replace(value, f"[redacted: {name}]")
    assert redactor.redact("\n".join(environment.values())) == text


def test_the_environment_is_this_process_s_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEPLOY_TOKEN", TOKEN)
    assert Redactor.of_environment().redact(TOKEN) == f"[redacted: {'DEPLOY_TOKEN'}]"


# --- Streams --------------------------------------------------------------------------

FRAGMENTS = [
    *CREDENTIALS,
    TOKEN,
    "correct horse",
    "\nbattery",
    "://a:b@",
    "sk-",
    "-----",
    "-----BEGIN ",
    "\\n",
    " ",
    "x",
]
BEGINNINGS = st.builds(
    lambda text, length: text[:length], st.sampled_from(FRAGMENTS), st.integers(0, 40)
)
TEXTS = st.lists(
    st.sampled_from(FRAGMENTS) | BEGINNINGS | st.text(max_size=5), max_size=8
).map("".join)


def in_pieces(text: str, cuts: list[int]) -> list[str]:
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    return [text[start:end] for start, end in pairwise(places)]


@given(TEXTS, st.lists(st.integers(0, 10_000), max_size=30))
def test_a_text_in_pieces_is_redacted_as_the_whole_is(
    text: str, cuts: list[int]
) -> None:
    stream = REDACTOR.stream()
    assert "".join(
        map(stream.feed, in_pieces(text, cuts))
    ) + stream.end() == REDACTOR.redact(text)


@given(TEXTS)
def test_a_text_in_single_characters_is_redacted_as_the_whole_is(text: str) -> None:
    stream = REDACTOR.stream()
    assert "".join(map(stream.feed, text)) + stream.end() == REDACTOR.redact(text)


@given(TEXTS)
def test_redacted_text_stays_as_it_is(text: str) -> None:
    once = REDACTOR.redact(text)
    assert REDACTOR.redact(once).count("[redacted: ") == once.count("[redacted: ")


def test_only_what_may_be_a_part_of_a_secret_has_to_wait() -> None:
    stream = REDACTOR.stream()
    assert [
        stream.feed(piece)
        for piece in ("Hello, ", "this is ", "it: gh", "ost. ", f"x{TOKEN[:5]}", "end")
    ] == [
        "Hello, ",
        "this is ",
        "it: ",
        "ghost. ",
        "x",
        f"{TOKEN[:5]}end",
    ]


def test_a_stream_that_has_ended_can_begin_anew() -> None:
    stream = REDACTOR.stream()
    first = stream.feed(f"a {TOKEN[:9]}") + stream.end()
    assert (first, stream.feed(TOKEN[9:]) + stream.end()) == (
        f"a {TOKEN[:9]}",
        TOKEN[9:],
    )


@each_row(
    "part",
    [
        "sk-",
        " eyJaaaaaaaa.eyJ",
        "://a:",
        "://a:@@@@",
        "-----BEGIN PRIVATE KEY-----\nAAAA",
        "-",
        "A",
        TOKEN[:-1],
        "c2",
    ],
)
def test_hostile_text_takes_no_more_time_than_other_text(part: str) -> None:
    text = "-----BEGIN PRIVATE KEY-----" + part * (200_000 // len(part))
    started = time.process_time()
    stream = REDACTOR.stream()
    for place in range(0, len(text), 1000):
        stream.feed(text[place : place + 1000])
    assert stream.end() or REDACTOR.redact(text)
    assert time.process_time() - started < 5


# --- Events and other values ----------------------------------------------------------


class Inner(Struct, frozen=True):
    text: str
    number: int = 1


class Outer(Struct, frozen=True):
    inner: Inner | None
    texts: tuple[str, ...] = ()
    many: tuple[Inner, ...] = ()


def test_all_texts_of_a_value_are_redacted_however_deep() -> None:
    value = Outer(Inner(TOKEN), ("plain", f"a {TOKEN}"), (Inner("b"), Inner(TOKEN, 2)))
    gone = "[redacted: DEPLOY_TOKEN]"
    assert REDACTOR.redacted(value) == Outer(
        Inner(gone), ("plain", f"a {gone}"), (Inner("b"), Inner(gone, 2))
    )
    assert value.inner == Inner(TOKEN)


def test_a_value_without_secrets_is_passed_on_as_it_is() -> None:
    value = Outer(Inner("a"), ("b",), (Inner("c"),))
    assert REDACTOR.redacted(value) is value


def test_a_key_is_hidden_also_without_the_quotes_around_it_in_its_variable() -> None:
    redactor = Redactor.of_environment(environment={"A_API_KEY": "'Bearer ab-12-xyz'"})
    for text in ("ab-12-xyz", "'Bearer ab-12-xyz'"):
        assert redactor.redact(text) == "[redacted: A_API_KEY]"
