"""The seconds that a server asks to wait before the next call."""

import re
import time
from collections.abc import Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime

from cdd_agent.pattern import Pattern

_SECONDS_OF_UNIT = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
_AMOUNT = r"\d{1,15}(?:\.\d{1,9})?"
_UNIT = r"ms|milliseconds?|s|sec(?:ond)?s?|m|min(?:ute)?s?|h|hours?|d|days?"
_PART = Pattern(rf"({_AMOUNT})\s*({_UNIT})", re.IGNORECASE)
_DURATION = rf"(?:{_AMOUNT}\s*(?:{_UNIT})\s*)+"
_WAIT_IN_WORDS = Pattern(
    # Google's RetryInfo, and its words for the quotas of Code Assist
    rf"(?:retryDelay|quotaResetDelay)\W{{1,10}}(?P<field>{_DURATION})"
    # OpenAI, Azure, Google, Groq
    rf"|(?:try again|retry|reset) (?:in|after) (?P<words>{_DURATION})(?!\w)",
    re.IGNORECASE,
)
_RESET = "x-ratelimit-reset"
_EPOCH_SECONDS, _EPOCH_MILLISECONDS = 1e9, 1e12
"""Larger numbers are points in time."""
LONGEST = 31 * 86_400.0
"""No quota has a longer period. A longer wait is a server's mistake."""


def wait_in_headers(
    headers: Mapping[str, str], unix_time: float | None = None
) -> float | None:
    """Return the seconds from `unix_time`, or None if no header is readable.
    `Retry-After-Ms` overrides `Retry-After`, which overrides `X-RateLimit-Reset-*`.
    """
    if unix_time is None:
        unix_time = time.time()
    headers = {name.lower(): value.strip() for name, value in headers.items()}
    milliseconds = _read_number(headers.get("retry-after-ms", ""))
    wait = None if milliseconds is None else _plausible(milliseconds / 1000)
    asked = headers.get("retry-after", "")
    if wait is None:
        wait = _read_reset(asked, unix_time)
    if wait is None:
        wait = _read_date(asked, unix_time)
    if wait is None:
        wait = _wait_for_reset(headers, unix_time)
    return wait


def wait_in_words(text: str) -> float | None:
    """Return the seconds that an error names, such as Google's `retryDelay`."""
    match = _WAIT_IN_WORDS.search(text)
    if match is None:
        return None
    return _read_duration(match["field"] or match["words"])


def _wait_for_reset(headers: Mapping[str, str], unix_time: float) -> float | None:
    """Return the last reset of the used-up limits (`X-RateLimit-Remaining-*: 0`), or
    the first reset of all.
    """
    waits, used_up = [], []
    for name, value in headers.items():
        if not name.startswith(_RESET):
            continue
        wait = _read_reset(value, unix_time)
        if wait is None:
            continue
        waits.append(wait)
        limit = name.removeprefix(_RESET)
        if headers.get(f"x-ratelimit-remaining{limit}") == "0":
            used_up.append(wait)
    if used_up:
        return max(used_up)
    return min(waits, default=None)


def _read_reset(text: str, unix_time: float) -> float | None:
    """Parse a duration, seconds, or a Unix time in seconds or milliseconds."""
    number = _read_number(text)
    if number is None:
        return _read_duration(text)
    if number >= _EPOCH_MILLISECONDS:
        return _plausible(number / 1000 - unix_time)
    if number >= _EPOCH_SECONDS:
        return _plausible(number - unix_time)
    return _plausible(number)


def _read_date(text: str, unix_time: float) -> float | None:
    with suppress(ValueError, OverflowError):
        return _plausible(parsedate_to_datetime(text).timestamp() - unix_time)
    return None


def _read_number(text: str) -> float | None:
    return float(text) if re.fullmatch(_AMOUNT, text) else None


def _read_duration(text: str) -> float | None:
    """Parse `6m0s`, `120ms`, `2.5 seconds`."""
    if not re.fullmatch(_DURATION, text, re.IGNORECASE):
        return None
    seconds = 0.0
    for amount, unit in _PART.findall(text):
        is_milliseconds = unit.lower().startswith(("ms", "milli"))
        short = "ms" if is_milliseconds else unit[0].lower()
        seconds += float(amount) * _SECONDS_OF_UNIT[short]
    return _plausible(seconds)


def _plausible(seconds: float) -> float | None:
    """Return the seconds, at least 0, or None for too many."""
    return max(0.0, round(seconds, 3)) if seconds <= LONGEST else None


def describe_wait(seconds: float) -> str:
    """Return the hint for an error that names the time to wait."""
    return f"Try again in {seconds:g} s."
