"""Facts of failed calls, by the exceptions that httpx and litellm raise."""

import json
import socket

import httpx
from hypothesis import given
from hypothesis import strategies as st

from cdd_agent.llm.direct.reported_failures import read_failure
from cdd_agent.llm.failure_rules import explain_failure
from cdd_agent.llm.failures import Failure, status_of
from cdd_agent.llm.port import (
    ConnectionFailed,
    ContextTooLong,
    ModelError,
    NotReachable,
    WebPageAnswered,
)
from tests.support.tables import each_row


def error_by(cause: Exception) -> ModelError:
    """Return the error of a connection that failed because of `cause`."""
    error = httpx.ConnectError("All connection attempts failed")
    error.__cause__ = cause
    return explain_failure(Failure.from_exception(error), "m", "http://127.0.0.1:9")


@each_row(
    ("code", "kind"),
    [
        (socket.EAI_NONAME, NotReachable),
        (socket.EAI_AGAIN, ConnectionFailed),
        (socket.EAI_FAIL, ConnectionFailed),
    ],
)
def test_only_a_name_that_no_host_has_is_final(
    code: int, kind: type[ModelError]
) -> None:
    error = error_by(socket.gaierror(code, "Sorry."))
    assert type(error) is kind
    assert "Sorry." in error.message


@each_row(
    ("codes", "status"),
    [
        ((), None),
        ((None, "429"), 429),
        ((429.0, 503), 503),
        (("nothing", "rate_limit_exceeded", 500), 429),
        ((200, 302, 600, True), None),
        (("²", "٤٢٩", "4" * 5_000, "0429", "429\n"), None),
        (({"code": 500}, [500]), None),
    ],
)
def test_a_status_is_a_number_or_a_name(
    codes: tuple[object, ...], status: int | None
) -> None:
    assert status_of(*codes) == status


def test_the_words_of_a_page_are_no_words_of_a_server() -> None:
    page = "<html><title>Blocked</title>out of memory, prompt too long</html>"
    assert type(explain_failure(read_failure(page, 403), "m")) is WebPageAnswered


@each_row(
    ("document", "kind", "words"),
    [
        ({"error": "Bad Request", "message": "maximum context length"}, 1, "maximum"),
        ({"error": True, "message": "maximum context length is 5"}, 1, "maximum"),
        ({"error": 1, "detail": "prompt is too long"}, 1, "too long"),
        ({"error": "prompt is too long"}, 1, "too long"),
        ({"error": {"message": "prompt is too long"}, "message": "x"}, 1, "too long"),
        ({"error": True, "code": 401, "message": "No such key."}, 0, "No such key."),
        ({"error": True}, 0, "true"),
    ],
)
@each_row("status", [200, 400])
def test_the_message_of_a_failure_may_be_next_to_it(
    document: dict[str, object], kind: int, words: str, status: int
) -> None:
    failure = read_failure(json.dumps(document), status)
    error = explain_failure(failure, "m")
    assert isinstance(error, ContextTooLong) is bool(kind)
    assert words in error.message


NAMES = st.sampled_from(
    ["error", "message", "code", "metadata", "headers", "details", "violations", "raw"]
)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4)
    ),
    max_leaves=12,
)


@given(ANY_JSON, st.sampled_from([200, 400, 403, 407, 429, 500]))
def test_any_body_of_a_failure_becomes_an_error(body: object, status: int) -> None:
    failure = read_failure(json.dumps(body), status)
    error = explain_failure(failure, "m", "https://models.example", lambda: "")
    assert error.message.startswith(("m ", "The ", "There "))
