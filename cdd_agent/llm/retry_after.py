"""How long a server asks to wait, in any of the ways in which servers say it."""

import re
import time
from collections.abc import Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime

_RESET = "x-ratelimit-reset"
_UNITS = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_EPOCH_SECONDS, _EPOCH_MILLISECONDS = 1e9, 1e12
"""Numbers from here on are no waits but points in time."""


def seconds_to_wait(
    headers: Mapping[str, str], now: float | None = None
) -> float | None:
    """Seconds from `now` (a Unix time), or None where the headers say nothing that can
    be understood.

    `Retry-After` (seconds or a date, also in milliseconds) goes before
    `X-RateLimit-Reset-*`. Of several resets those count whose `X-RateLimit-Remaining-*`
    is 0, and of these the last; where none is used up, the first.
    """
    now = time.time() if now is None else now
    headers = {name.lower(): value.strip() for name, value in headers.items()}
    if (wait := _number(headers.get("retry-after-ms", ""))) is not None:
        return _wait(wait / 1000)
    if asked := headers.get("retry-after"):
        if (wait := _number(asked)) is not None:
            return _wait(wait)
        with suppress(ValueError, OverflowError):
            return _wait(parsedate_to_datetime(asked).timestamp() - now)
    resets = {
        name: _reset(value, now)
        for name, value in headers.items()
        if name.startswith(_RESET)
    }
    known = {
        name.removeprefix(_RESET): wait
        for name, wait in resets.items()
        if wait is not None
    }
    used_up = [
        wait
        for name, wait in known.items()
        if headers.get(f"x-ratelimit-remaining{name}") == "0"
    ]
    return max(used_up) if used_up else min(known.values(), default=None)


def _reset(text: str, now: float) -> float | None:
    """A duration like `6m0s` or `120ms`, seconds, or a Unix time in seconds or
    milliseconds.
    """
    if (number := _number(text)) is not None:
        if number >= _EPOCH_MILLISECONDS:
            return _wait(number / 1000 - now)
        return _wait(number - now if number >= _EPOCH_SECONDS else number)
    if not re.fullmatch(r"(?:\d+(?:\.\d+)?(?:ms|[dhms]))+", text):
        return None
    return sum(
        float(amount) * _UNITS[unit]
        for amount, unit in re.findall(r"(\d+(?:\.\d+)?)(ms|[dhms])", text)
    )


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\d{1,15}(?:\.\d{1,9})?", text) else None


def _wait(seconds: float) -> float:
    return max(0.0, round(seconds, 3))
