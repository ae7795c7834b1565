"""Whole characters from the JSON of a server, which may hold half of one."""

import json

from cdd_agent.llm.direct.json_values import as_string
from cdd_agent.llm.port import ToolCall


class Characters:
    """Makes whole characters of text in pieces: some servers cut between two halves."""

    def __init__(self) -> None:
        self._half = ""

    def take(self, piece: str) -> str:
        """Return the characters that are whole."""
        text, self._half = self._half + piece, ""
        if "\ud800" <= text[-1:] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return whole_characters(text)

    def end(self) -> str:
        """Return the rest, when no piece follows."""
        return whole_characters(self._half)


def whole_characters(text: str) -> str:
    """Join halves of characters. A half without its other half becomes `\ufffd`."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def call_of(id_: object, name: object, arguments: object) -> ToolCall:
    """Make a call from what a server sends."""
    if isinstance(arguments, dict):
        arguments = json.dumps(arguments, ensure_ascii=False)
    # some servers leave harmony's marks behind the name
    plain_name = as_string(name).partition("<|")[0]
    return ToolCall(
        whole_characters(as_string(id_)),
        whole_characters(plain_name),
        whole_characters(as_string(arguments)),
    )
