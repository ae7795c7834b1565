"""Optional request fields, omitted once a server refuses them."""

import re
from collections.abc import Mapping
from typing import Any


class RefusedFields:
    def __init__(self, wordings: Mapping[str, str]) -> None:
        """`wordings`: by optional field, a pattern for how a refusal names it."""
        self._patterns = {
            name: re.compile(wording, re.IGNORECASE | re.MULTILINE)
            for name, wording in wordings.items()
        }
        self._names: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def add(self, name: str) -> None:
        self._names.add(name)

    def learn(self, refusal: str) -> bool:
        """Return True if a refusal names optional fields that were still sent."""
        previous_count = len(self._names)
        for name, pattern in self._patterns.items():
            if pattern.search(refusal):
                self._names.add(name)
        return len(self._names) > previous_count

    def remove_from(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        return {
            name: value for name, value in fields.items() if name not in self._names
        }
