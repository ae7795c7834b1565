"""Look for models at a typed address and at a provider with a key: each kind of answer
is told from the others, by what it means for the user.
"""

import pytest

from cdd_agent.errors import BadInput
from cdd_agent.llm.model_search import (
    KeyAccepted,
    KeyRefused,
    KeyWanted,
    NothingFound,
    ServerFound,
    candidate_addresses,
    search_server,
    try_key,
)
from cdd_agent.network.keys import Key
from tests.llm.model_lists import KEY, LIST, PAGE, server
from tests.support.tables import each_row


@each_row(
    ("typed", "addresses"),
    [
        ("127.0.0.1:8080", ["http://127.0.0.1:8080/v1", "http://127.0.0.1:8080"]),
        (" localhost:1234/v1/ ", ["http://localhost:1234/v1"]),
        ("'http://box.lan/v1/models'", ["http://box.lan/v1"]),
        ("http://box/v1/chat/completions", ["http://box/v1"]),
        (
            "https://h.example/api",
            ["https://h.example/api", "https://h.example/api/v1"],
        ),
        (
            "h.example",
            [
                "https://h.example/v1",
                "https://h.example",
                "http://h.example/v1",
                "http://h.example",
            ],
        ),
        ("[::1]:8080/v1", ["http://[::1]:8080/v1"]),
    ],
)
def test_a_typed_address_becomes_the_likely_ones(
    typed: str, addresses: list[str]
) -> None:
    assert list(candidate_addresses(typed)) == addresses


@each_row("typed", ["", "  ", "ftp://x/v1", "two words", "http://", "[::1", "h:99999"])
def test_what_is_no_address_is_refused_with_an_example(typed: str) -> None:
    with pytest.raises(BadInput) as refused:
        candidate_addresses(typed)
    assert "http://127.0.0.1:8080/v1" in refused.value.hint


@each_row(
    ("typed", "secret"),
    [
        (KEY, KEY),
        (f"export OPENAI_API_KEY={KEY}", KEY),
        (f"https://h.example/v1?key={KEY}", KEY),
        (f"sk-proj-{KEY}", KEY),
        ("http://me:pass-word@h.example/v1", "pass-word"),
        ("me:pass-word@h.example", "pass-word"),
        ("https://pass-word@h.example/v1", "pass-word"),
    ],
)
def test_a_key_or_a_password_is_no_address_and_is_not_repeated(
    typed: str, secret: str
) -> None:
    with pytest.raises(BadInput) as refused:
        candidate_addresses(typed)
    assert secret not in refused.value.in_a_line


async def test_the_path_of_a_server_is_found_by_trying() -> None:
    for routes, base in (
        ({"/v1/models": (200, LIST)}, "/v1"),
        ({"/models": (200, LIST)}, ""),
        ({"/api/v1/models": (200, LIST)}, "/api/v1"),
    ):
        with server(routes) as (host, _):
            typed = f"{host}/api" if base == "/api/v1" else host
            found = await search_server(candidate_addresses(typed))
        assert isinstance(found, ServerFound), (routes, found)
        assert [(one.model, one.api_base) for one in found.models] == [
            ("openai/one", f"http://{host}{base}"),
            ("openai/two", f"http://{host}{base}"),
        ]


async def test_ollama_is_asked_by_its_own_api() -> None:
    routes = {"/v1/models": (200, LIST), "/api/version": (200, {"version": "1"})}
    with server(routes) as (host, _):
        found = await search_server(candidate_addresses(host))
    assert isinstance(found, ServerFound)
    assert (found.models[0].model, found.models[0].api_base) == (
        "ollama/one",
        f"http://{host}",
    )


async def test_each_answer_without_a_list_is_named() -> None:
    for answer, words in (
        ((404, "no"), "(404)"),
        ((200, PAGE), "sent a web page"),
        ((200, {"ok": True}), "no list of models"),
        ((500, "broken"), "(500)"),
        ((302, ""), "(302)"),
    ):
        with server({"/v1/models": answer}) as (host, _):
            found = await search_server(candidate_addresses(host))
        assert isinstance(found, NothingFound), (answer, found)
        assert words in found.tried[0], (answer, found.tried)
        assert f"http://{host}/v1/models" in found.tried[0]


async def test_a_closed_port_is_tried_once() -> None:
    with server({}) as (host, _):
        pass
    found = await search_server(candidate_addresses(host))
    assert isinstance(found, NothingFound)
    (tried,) = found.tried
    assert "could not be reached" in tried
    assert host in tried


async def test_a_server_that_wants_a_key_gets_none_unasked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with server({"/v1/models": (401, "key?")}) as (host, asked):
        wanted = await search_server(candidate_addresses(host))
        assert isinstance(wanted, KeyWanted)
        assert wanted.api_base == f"http://{host}/v1"
        assert KEY not in str(asked)
        found = await search_server((wanted.api_base,), KEY)
        assert isinstance(found, ServerFound)
        refused = await search_server((wanted.api_base,), "sk-another")
        assert isinstance(refused, KeyWanted)


async def test_a_key_is_tried_at_its_provider() -> None:
    google = {"error": {"code": 400, "message": "API key not valid. Please pass …"}}
    for name, routes, path in (
        ("mistral", {"/v1/models": (401, "no")}, "/v1/models"),
        ("anthropic", {"/v1/models": (401, "no")}, "/v1/models"),
        ("gemini", {"/models": (400, [google])}, "/models"),
    ):
        with server(routes) as (host, asked):
            environment = {f"{name.upper()}_API_BASE": f"http://{host}"}
            refused = await try_key(name, Key("sk-wrong"), environment)
            assert isinstance(refused, KeyRefused), (name, refused)
            assert asked[0][0] == path
            if name != "gemini":
                accepted = await try_key(name, Key(KEY), environment)
                assert accepted == KeyAccepted((f"{name}/one", f"{name}/two")), name


async def test_anthropic_gets_its_key_in_its_own_header() -> None:
    with server({"/v1/models": (401, "no")}) as (host, asked):
        await try_key("anthropic", Key(KEY), {"ANTHROPIC_API_BASE": f"http://{host}"})
    headers = {name.lower(): value for name, value in asked[0][1].items()}
    assert headers["x-api-key"] == KEY
    assert headers["anthropic-version"]


async def test_a_key_that_cannot_be_tried_is_accepted_with_a_note() -> None:
    for answer in ((404, "no"), (403, "not for you"), (500, "broken"), (200, PAGE)):
        with server({"/v1/models": answer}) as (host, _):
            accepted = await try_key(
                "mistral", Key(KEY), {"MISTRAL_API_BASE": f"http://{host}"}
            )
        assert isinstance(accepted, KeyAccepted), answer
        assert "not tested" in accepted.note
        assert "mistral/devstral-latest" in accepted.models
    accepted = await try_key(
        "mistral", Key(KEY), {"MISTRAL_API_BASE": f"http://{host}"}
    )
    assert isinstance(accepted, KeyAccepted)
    assert "not tested" in accepted.note
