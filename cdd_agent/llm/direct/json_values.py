"""JSON from servers and models, which is never trusted to have a shape: what is not of
a kind is empty.
"""

import json
from collections.abc import Mapping
from typing import Any


def read_json(text: str) -> Any:
    """The JSON value that a text is, or None."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


_LARGEST_AMOUNT = 1e12


def as_dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def as_bytes(body: Mapping[str, Any]) -> bytes:
    """JSON as it is sent: UTF-8, without white space between values."""
    try:
        return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # half of a character can only be written as an escape
        return json.dumps(body, separators=(",", ":")).encode()


def as_string(value: object) -> str:
    return value if isinstance(value, str) else ""


def as_int(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def as_amount(value: object) -> float | None:
    """A number that can be an amount: JSON as Python reads it has infinite ones,
    too.
    """
    is_amount = (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and 0 <= value <= _LARGEST_AMOUNT
    )
    # it is a number
    return float(value) if is_amount else None  # type: ignore[arg-type]


def as_text(value: object) -> str:
    """A value for people to read."""
    return (
        value
        if isinstance(value, str)
        else json.dumps(value, ensure_ascii=False, default=str)
    )


def as_object(arguments: str) -> dict[str, Any]:
    """A call's arguments as a server takes them back: some refuse a conversation in
    which a model wrote broken JSON.
    """
    written = read_json(arguments)
    if isinstance(written, dict):
        return written
    return {"not_json": arguments} if arguments else {}


def sendable_arguments(arguments: str) -> str:
    """The same as text: as the model wrote it, where that is an object."""
    return (
        arguments
        if isinstance(read_json(arguments), dict)
        else json.dumps(as_object(arguments))
    )
