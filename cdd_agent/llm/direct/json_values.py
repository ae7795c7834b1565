"""JSON from servers and models in any shape: a value of an unexpected type counts as
empty.
"""

import json
from collections.abc import Mapping
from typing import Any

_LARGEST_AMOUNT = 1e12
_LARGEST_WINDOW = 10**9


def read_json(text: str) -> Any:
    """Return the JSON value of a text, or None."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def as_bytes(body: Mapping[str, Any]) -> bytes:
    """Return compact JSON in UTF-8."""
    try:
        return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    # a lone surrogate can only be written as an escape
    except UnicodeEncodeError:
        return json.dumps(body, separators=(",", ":")).encode()


def as_dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def dicts_in(value: object) -> list[dict[str, Any]]:
    """Return the items of a list as dicts. Any other item becomes an empty dict."""
    return [as_dict(item) for item in as_list(value)]


def as_string(value: object) -> str:
    return value if isinstance(value, str) else ""


def as_int(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value


def as_window(value: object) -> int | None:
    """Return the number if it can be a context window in tokens."""
    number = as_int(value)
    if number is None or not 0 < number <= _LARGEST_WINDOW:
        return None
    return number


def as_amount(value: object) -> float | None:
    """Return the number if it can be an amount. Python's JSON has infinite numbers."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= _LARGEST_AMOUNT else None


def as_text(value: object) -> str:
    """Return a value as text for people."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)


def as_object(arguments: str) -> dict[str, Any]:
    """Return a call's arguments as an object. Some servers refuse a conversation that
    contains broken JSON.
    """
    value = read_json(arguments)
    if isinstance(value, dict):
        return value
    return {"not_json": arguments} if arguments else {}


def sendable_arguments(arguments: str) -> str:
    """Return a call's arguments as the text of an object, unchanged if possible."""
    if isinstance(read_json(arguments), dict):
        return arguments
    return json.dumps(as_object(arguments))
