"""The words about models: why a call failed and what to do, what a cache saved, where a
record differs.
"""

import pytest

from cdd_agent.cost import Cost
from cdd_agent.errors import BadInput
from cdd_agent.llm.failure_rules import explain_failure
from cdd_agent.llm.failures import NAME_NOT_FOUND, Failure
from cdd_agent.llm.incomplete_answers import Received, explain_incomplete
from cdd_agent.llm.litellm_adapter import expect_provider
from cdd_agent.llm.pictures import as_seen_by, picture_of
from cdd_agent.llm.port import (
    Done,
    Message,
    ModelError,
    ModelNotFound,
    RateLimited,
    Request,
    Usage,
)
from cdd_agent.llm.retrying import Retrying
from cdd_agent.llm.scripted import NoReplyLeft, ScriptedModel
from cdd_agent.llm.scripted_reply import ScriptedReply
from tests.llm.test_ollama_chat import OllamaChat, model_at
from tests.support.pictures import png
from tests.support.projects import FakeTime
from tests.support.replies import all_of
from tests.support.tables import each_row

ONE = Request((Message("system", "Be brief."), Message("user", "one")))
SAVED = "Your progress is saved."
WITHOUT_PICTURES = "Leave the picture out or use another model. To send texts without their pictures, set `pictures: false` in .cdd/config.yaml."
IN_THE_WAY = (
    "A firewall, a proxy or a login page may block it, or the API base is wrong."
)
CHECK_KEY = "Set these environment variables, then restart cdd: SOME_API_KEY."


@each_row(
    ("failure", "message", "hint"),
    [
        (
            Failure(all_words="Missing API key"),
            "No API key for some/model.",
            CHECK_KEY,
        ),
        (
            Failure(status=401, words="No."),
            "The provider rejected the API key for some/model (401): No.",
            CHECK_KEY,
        ),
        (
            Failure(all_words="LLM Provider NOT provided"),
            "No provider has the model some/model.",
            "Name it as provider/model, for example openai/gpt-5 or anthropic/claude-sonnet-5-5.",
        ),
        (
            Failure(kinds=frozenset({"TimeoutError"})),
            "some/model did not answer in time.",
            "Try again; the server may be busy.",
        ),
        (
            Failure(kinds=frozenset({"ConnectError"})),
            "The server of some/model could not be reached.",
            "Check http://127.0.0.1:9/v1, and that the server runs.",
        ),
        (
            Failure(status=429, words="Slow down.", retry_after=7.0),
            "some/model is rate limited or busy (429): Slow down.",
            "Try again in 7 s.",
        ),
        (
            Failure(status=402),
            "Your account has no credit or quota left for some/model (402).",
            "Check your account with the provider, or use another model.",
        ),
        (
            Failure(status=404, words="No such model."),
            "The server does not know some/model (404): No such model.",
            "Check the model's name and the API base, which often ends in /v1.",
        ),
        (
            Failure(status=400, words="9 > 8.", all_words="context_length_exceeded"),
            "The request is too long for some/model: 9 > 8.",
            "Use a model with a larger context, or a smaller step.",
        ),
        (
            Failure(status=500, words="Boom."),
            "The server of some/model failed (500): Boom.",
            "Try again later.",
        ),
        (
            Failure(kinds=frozenset({"InvalidURL"})),
            "The API base of some/model is not a URL.",
            ("Check http://127.0.0.1:9/v1. It must begin with http:// or https://."),
        ),
        (
            Failure(kinds=frozenset({"NoReply"})),
            "The response of some/model cannot be read.",
            "Try again. If it happens again, the server or a proxy damages responses.",
        ),
        (
            Failure(status=403, page="Access denied"),
            "The request did not reach some/model (403): the server sent a web page instead of an API response: Access denied",
            IN_THE_WAY,
        ),
        (
            Failure(status=502, page=""),
            "The server of some/model failed (502): the server sent a web page instead of an API response",
            "Try again later.",
        ),
        (
            Failure(
                kinds=frozenset({"ConnectError", NAME_NOT_FOUND}), words="Unknown."
            ),
            "The host of some/model does not exist: Unknown.",
            "Check http://127.0.0.1:9/v1, and the network.",
        ),
        (
            Failure(kinds=frozenset({"SSLCertVerificationError"}), words="No."),
            "The certificate of the server of some/model is not trusted: No.",
            "If an authority of your company signs it, set SSL_CERT_FILE to a file with that authority's certificate (PEM).",
        ),
        (
            Failure(all_words="Hostname mismatch"),
            "The certificate of the server of some/model is not valid.",
            "Check http://127.0.0.1:9/v1, and the clock of this computer.",
        ),
        (
            Failure(all_words="[SSL: WRONG_VERSION_NUMBER]"),
            "The server of some/model does not support TLS.",
            "Check http://127.0.0.1:9/v1. Perhaps it should begin with http://.",
        ),
        (
            Failure(status=400, all_words="unknown variant `image_url`"),
            "some/model does not accept pictures (400).",
            WITHOUT_PICTURES,
        ),
    ],
)
def test_a_failed_call(
    failure: Failure, message: str, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
        *("https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY"),
        *("all_proxy", "ALL_PROXY"),
    ):
        monkeypatch.delenv(name, raising=False)
    error = explain_failure(
        failure, "some/model", "http://127.0.0.1:9/v1", lambda: CHECK_KEY
    )
    assert (error.message, error.hint) == (message, hint)


LONG_REQUEST = (
    "Some servers stop like this if a request is longer than the model's context."
)


PROXY = "http://10.0.0.1:3128 (HTTPS_PROXY)"


@each_row(
    ("failure", "message", "hint"),
    [
        (
            Failure(status=407),
            f"The proxy {PROXY} rejected its user and password.",
            "Set them in HTTPS_PROXY: http://user:password@host:port.",
        ),
        (
            Failure(kinds=frozenset({"ProxyError"}), words="403 Forbidden"),
            f"The proxy {PROXY} blocked the call of some/model: 403 Forbidden",
            "Ask its administrator. If the server can be reached without it, add the server to NO_PROXY.",
        ),
        (
            Failure(kinds=frozenset({"ProxyError"}), words="502 Bad Gateway"),
            f"The proxy {PROXY} could not reach the server of some/model: 502 Bad Gateway",
            "Check the address of the server, or try again.",
        ),
        (
            Failure(kinds=frozenset({"ConnectError", NAME_NOT_FOUND})),
            f"The host of the proxy {PROXY} does not exist.",
            "Correct HTTPS_PROXY, or unset it.",
        ),
        (
            Failure(kinds=frozenset({"ConnectError"})),
            f"The proxy {PROXY} could not be reached.",
            "Check that it runs, or correct HTTPS_PROXY.",
        ),
    ],
)
def test_a_failed_proxy(
    failure: Failure, message: str, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("https_proxy", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "me:secret@10.0.0.1:3128")
    for address in ("https://models.example/v1", None):
        error = explain_failure(failure, "some/model", address, lambda: CHECK_KEY)
        assert (error.message, error.hint) == (message, hint)


@each_row(
    ("received", "message", "hint"),
    [
        (
            Received(is_reply=True),
            "The reply of some/model broke off before its end.",
            "Try again.",
        ),
        (
            Received(is_reply=True, is_stream=True, unused="upstream timed out"),
            "The reply of some/model broke off before its end: upstream timed out",
            "Try again.",
        ),
        (
            Received(is_reply=False, is_stream=True, beginning="data: ping\n\n"),
            (
                "The server of some/model ended its response before the reply"
                " began: data: ping"
            ),
            f"Try again. {LONG_REQUEST}",
        ),
        (
            Received(is_reply=False, beginning="<html><b>Log in</b></html>"),
            "The request did not reach some/model (200): the server sent a web page instead of an API response: Log in",
            IN_THE_WAY,
        ),
        (
            Received(is_reply=False),
            (
                "The server's response for some/model is not a model's reply: it is"
                " empty"
            ),
            f"Check the API base, which often ends in /v1. {LONG_REQUEST}",
        ),
    ],
)
def test_an_answer_that_ends_too_early(
    received: Received, message: str, hint: str
) -> None:
    error = explain_incomplete("some/model", received)
    assert (error.message, error.hint) == (message, hint)


@each_row(
    ("errors", "hint"),
    [
        (
            [RateLimited("Enough.", hint="Look at your account.", retry_after=121)],
            f"Try again in 3 minutes, at 12:02. {SAVED} Look at your account.",
        ),
        (
            [RateLimited("Enough.", hint="Try again in 600 s.", retry_after=600)],
            f"Try again in 10 minutes, at 12:10. {SAVED}",
        ),
        (
            [RateLimited("Enough.", retry_after=5 * 3600)],
            f"Try again in 5 hours, at 17:00. {SAVED}",
        ),
        (
            [RateLimited("Enough.")] * 7,
            f"It failed 7 times. Try again in a few minutes. {SAVED}",
        ),
    ],
)
async def test_when_to_come_back(errors: list[ModelError], hint: str) -> None:
    with pytest.raises(RateLimited) as raised:
        await all_of(Retrying(ScriptedModel(errors), FakeTime().clock), ONE)
    assert raised.value.hint == hint


def test_what_a_cache_did() -> None:
    assert Cost(saved_usd=6.2).effect_of_cache() == "the cache saved $6.2000"
    assert Cost(saved_usd=-0.5).effect_of_cache() == (
        "writing to the cache has cost $0.5000 more than reading from it saved"
    )
    in_tokens = Usage(1_000, 10, cached_tokens=800).cost
    assert in_tokens.effect_of_cache() == "800 tokens came from the cache"
    assert in_tokens.in_full() == "1,010 tokens (800 cached)"
    assert Cost(1_000).effect_of_cache() == ""


@each_row(
    ("made", "difference"),
    [
        (
            Request((ONE.messages[0], Message("user", "two"))),
            "in message 2 (user), line 1, it was 'one' and is 'two'",
        ),
        (Request(ONE.messages[:1]), "the messages are 1, and were 2"),
        (
            Request((*ONE.messages, Message("user", "more"))),
            "the messages are 3, and were 2",
        ),
        (
            Request((ONE.messages[0], Message("tool", "one"))),
            "message 2 is of the tool, and was of the user",
        ),
        (
            Request((Message("system", "Be"), Message("user", "one\nmore"))),
            "in message 1 (system), line 1, it was 'Be brief.' and is 'Be'",
        ),
    ],
)
async def test_a_request_that_was_not_recorded(made: Request, difference: str) -> None:
    with pytest.raises(NoReplyLeft) as raised:
        await all_of(ScriptedModel([ScriptedReply(request=ONE, done=Done())]), made)
    assert (
        raised.value.message
        == f"The record has no reply to this request: {difference}."
    )
    assert (
        raised.value.hint
        == "Record the run again. The files, the plan and the settings must be the same."
    )


async def test_a_record_that_is_used_up() -> None:
    model = ScriptedModel([ScriptedReply(request=ONE, done=Done())])
    await all_of(model, ONE)
    for request, why in (
        (ONE, "all recorded replies to it have been used"),
        (Request(ONE.messages[:1]), "all recorded replies have been used"),
    ):
        with pytest.raises(NoReplyLeft) as raised:
            await all_of(model, request)
        assert (
            raised.value.message == f"The record has no reply to this request: {why}."
        )


def test_a_model_that_sees_none_is_told_of_the_pictures() -> None:
    request = Request(
        (Message("user", "Look.", pictures=(picture_of("shot.png", png(60, 40)),)),)
    )
    (message,) = as_seen_by(ScriptedModel([], sees=False), request).messages
    assert (
        message.content
        == "Look.\n\n(You cannot see pictures, so these were not sent to you: shot.png.)"
    )


async def test_a_model_that_ollama_does_not_have() -> None:
    with OllamaChat([]) as simulator, pytest.raises(ModelNotFound) as raised:
        await all_of(model_at(simulator.url, name="qwen9"), ONE)
    assert raised.value.hint.startswith(
        "Get it with `ollama pull qwen9`. If it is not Ollama that is at http://127.0"
    )


def test_a_model_whose_thoughts_litellm_loses() -> None:
    with pytest.raises(BadInput) as refused:
        expect_provider("azure/gpt-5-codex", None)
    assert (refused.value.message, refused.value.hint) == (
        (
            "litellm cannot call azure/gpt-5-codex: its Responses API loses the"
            " model's thoughts"
        ),
        (
            "Remove `model_adapter: litellm` to call OpenAI's models directly."
            " For another host, use `openai/responses/NAME` with its `api_base`."
        ),
    )
