"""How long to wait, from the headers and the errors that servers send."""

import json

from cdd_agent.llm.direct.reported_failures import read_failure
from cdd_agent.llm.failure_rules import explain_failure
from cdd_agent.llm.failures import Failure
from cdd_agent.llm.port import QuotaUsedUp, RateLimited
from cdd_agent.llm.retry_after import wait_in_headers, wait_in_words
from tests.support.tables import each_row

NOW = 1_700_000_000.0  # Tue, 14 Nov 2023 22:13:20 GMT


@each_row(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "7"}, 7),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after": "0"}, 0),
        ({"Retry-After": "Tue, 14 Nov 2023 22:13:50 GMT"}, 30),
        ({"Retry-After": "Tue, 14 Nov 2023 22:00:00 GMT"}, 0),
        ({"Retry-After": "2s"}, 2),
        ({"Retry-After": "2.5 S"}, 2.5),
        ({"Retry-After": "500ms"}, 0.5),
        ({"Retry-After": "1m30s"}, 90),
        ({"Retry-After": "1m 30s"}, 90),
        ({"Retry-After": "20 seconds"}, 20),
        ({"Retry-After": "1 hour"}, 3600),
        ({"Retry-After": "2 parsecs"}, None),
        ({"Retry-After": "s"}, None),
        ({"Retry-After": ""}, None),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "-3"}, None),
        ({"Retry-After": "9" * 40}, None),
        ({"Retry-After": "999999999999999"}, None),
        ({"Retry-After": "Tue, 14 Nov 9999 22:13:50 GMT"}, None),
        ({"Retry-After": "99999999999h"}, None),
        ({"Retry-After": "1700000030"}, 30),
        ({"Retry-After": "1700000030000"}, 30),
        ({"Retry-After": "1600000000"}, 0),
        ({"Retry-After": "2678400"}, 2_678_400),
        ({"Retry-After": "2678401"}, None),
        ({"Retry-After": "999999999999999", "x-ratelimit-reset": "12"}, 12),
        ({"retry-after-ms": "999999999999999", "retry-after": "1"}, 1),
        ({"x-ratelimit-reset": "999999999999999"}, None),
        ({"Retry-After": "Tue, 99 Nov 2023"}, None),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after-ms": "a moment", "retry-after": "1"}, 1),
        ({"X-RateLimit-Reset-Requests": "6m0s"}, 360),
        ({"x-ratelimit-reset-tokens": "1m2.5s"}, 62.5),
        ({"x-ratelimit-reset-tokens": "120ms"}, 0.12),
        ({"x-ratelimit-reset-tokens": "later"}, None),
        ({"x-ratelimit-reset": "12"}, 12),
        ({"x-ratelimit-reset": "1700000009"}, 9),
        ({"x-ratelimit-reset": "1700000004500"}, 4.5),
        ({"retry-after": "soon", "x-ratelimit-reset": "12"}, 12),
        ({"x-ratelimit-reset-requests": "1h0m0s", "x-ratelimit-reset-tokens": "2s"}, 2),
        (
            {
                "x-ratelimit-reset-requests": "10s",
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-tokens": "2s",
                "x-ratelimit-remaining-tokens": "90",
            },
            10,
        ),
    ],
)
def test_every_form_of_a_waiting_time_is_read(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert wait_in_headers(headers, NOW) == seconds


@each_row(
    ("text", "seconds"),
    [
        ("Rate limit reached. Please try again in 20s.", 20),
        ("Please try again in 6m0s. Visit the page.", 360),
        ("Please try again in 120ms.", 0.12),
        ("Please retry after 26 seconds.", 26),
        ("Please retry in 45.837906927s.", 45.838),
        ("Your quota will reset after 5h3m20s.", 18_200),
        ('"retryDelay": "34.4s"', 34.4),
        ("{'retryDelay': '7s'}", 7),
        ('{\\"retryDelay\\": \\"7s\\"}', 7),
        ('"quotaResetDelay": "373.801628ms"', 0.374),
        ("Try again in a moment.", None),
        ("Try again in 2562047h47m16.854s.", None),
        ("Try again in 2 steps.", None),
        ("It took 20s.", None),
    ],
)
def test_every_wording_of_a_waiting_time_is_read(
    text: str, seconds: float | None
) -> None:
    assert wait_in_words(text) == seconds
    assert Failure.from_exception(RuntimeError(text)).retry_after == seconds


def google(delay: object, quota: str = "PerMinute") -> dict[str, object]:
    kinds = "type.googleapis.com/google.rpc."
    quota_id = f"GenerateRequests{quota}PerProjectPerModel-FreeTier"
    return {
        "error": {
            "code": 429,
            "message": "You exceeded your current quota.",
            "status": "RESOURCE_EXHAUSTED",
            "details": [
                {
                    "@type": f"{kinds}QuotaFailure",
                    "violations": [{"quotaId": quota_id}],
                },
                {"@type": f"{kinds}RetryInfo", "retryDelay": delay},
            ],
        }
    }


def openrouter(reset: str) -> dict[str, object]:
    headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset}
    return {"error": {"message": "No.", "code": 429, "metadata": {"headers": headers}}}


@each_row(
    ("body", "headers", "seconds"),
    [
        (google("3.2s"), {}, 3.2),
        ([google("3.2s")], {}, 3.2),
        (google("0s"), {}, 0),
        (google("3.2s"), {"Retry-After": "5"}, 5),
        (google(None), {}, None),
        (google({"seconds": 3}), {}, None),
        (openrouter("12"), {}, 12),
        ({"error": {"metadata": {"headers": [1]}}}, {}, None),
        ({"error": "Please try again in 2s"}, {}, 2),
        ("Please try again in 2s", {"Retry-After": "soon"}, 2),
    ],
)
def test_a_wait_in_the_body_counts_if_no_header_names_one(
    body: object, headers: dict[str, str], seconds: float | None
) -> None:
    text = body if isinstance(body, str) else json.dumps(body)
    assert read_failure(text, 429, headers).retry_after == seconds


def test_a_quota_of_a_day_is_not_waited_for() -> None:
    for quota, kind in (("PerMinute", RateLimited), ("PerDay", QuotaUsedUp)):
        failure = read_failure(json.dumps(google("3.2s", quota)), 429)
        error = explain_failure(failure, "gemini/m")
        assert type(error) is kind
        assert isinstance(error, RateLimited)
        assert error.retry_after == 3.2
