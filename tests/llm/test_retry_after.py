"""How long to wait, from the headers that servers send."""

from cdd_agent.llm.retry_after import seconds_to_wait
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
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "-3"}, None),
        ({"Retry-After": "9" * 40}, None),
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
    assert seconds_to_wait(headers, NOW) == seconds
