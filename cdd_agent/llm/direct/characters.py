"""Whole characters from a server's JSON, which may contain half a surrogate pair."""

import json

from cdd_agent.llm.direct.json_values import as_string
from cdd_agent.llm.port import ToolCall


class Characters:
    """Joins surrogate pairs that some servers split between pieces."""

    def __init__(self) -> None:
        self._half = ""

    def take(self, piece: str) -> str:
        """Return the complete characters so far."""
        text, self._half = self._half + piece, ""
        if "\ud800" <= text[-1:] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return whole_characters(text)

    def end(self) -> str:
        """Return the rest after the last piece."""
        return whole_characters(self._half)


def whole_characters(text: str) -> str:
    """Join surrogate pairs. A lone surrogate becomes `\ufffd`."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def call_of(id_: object, name: object, arguments: object) -> ToolCall:
    if isinstance(arguments, dict):
        arguments = json.dumps(arguments, ensure_ascii=False)
    # some servers leave harmony's marks after the name
    plain_name = as_string(name).partition("<|")[0]
    return ToolCall(
        whole_characters(as_string(id_)),
        whole_characters(plain_name),
        whole_characters(as_string(arguments)),
    )
