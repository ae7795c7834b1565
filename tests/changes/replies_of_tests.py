"""The replies that the tables of this package's tests hold."""

import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent


def all_replies() -> dict[str, str]:
    """Return each text of a table of replies by where it is."""
    replies: dict[str, str] = {}
    for module in pkgutil.iter_modules([str(_HERE)]):
        is_slow = module.name == "test_replies_time"
        if is_slow or not module.name.startswith("test_repl"):
            continue
        tables = vars(importlib.import_module(f"tests.changes.{module.name}"))
        for name, table in tables.items():
            if name.isupper():
                replies |= dict(_texts(f"{module.name}.{name}", table))
    return replies


def _texts(place: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, str) and "\n" in value:
        yield place, value
    elif isinstance(value, dict):
        for key, entry in value.items():
            yield from _texts(f"{place}[{key}]", entry)
    elif isinstance(value, tuple | list):
        for number, entry in enumerate(value):
            yield from _texts(f"{place}.{number}", entry)
