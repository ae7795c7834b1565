"""Facts of failed calls, by the exceptions that httpx and litellm raise."""

import socket

import httpx

from cdd_agent.llm.failure_rules import translated
from cdd_agent.llm.failures import Failure, status_of
from cdd_agent.llm.port import ConnectionFailed, ModelError, NotReachable
from tests.support.tables import each_row


def error_by(cause: Exception) -> ModelError:
    """Return the error of a connection that failed because of `cause`."""
    error = httpx.ConnectError("All connection attempts failed")
    error.__cause__ = cause
    return translated(Failure.of(error), "m", "http://127.0.0.1:9", lambda: "")


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
        (("²", "٤٢٩"), 429),
        (({"code": 500}, [500]), None),
    ],
)
def test_a_status_is_a_number_or_a_name(
    codes: tuple[object, ...], status: int | None
) -> None:
    assert status_of(*codes) == status
