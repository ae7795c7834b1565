"""The text of a reply as it comes in pieces, whichever protocol brings it."""

import json
from collections.abc import Iterator

from cdd_agent.llm.direct.json_values import as_string
from cdd_agent.llm.direct.protocol import ServerFailed
from cdd_agent.llm.failures import Failure
from cdd_agent.llm.port import TextDelta, ThoughtDelta, ToolCall, WasThought
from cdd_agent.llm.text_filter import TextFilter, UnreadableCall


class Characters:
    """Text in pieces, as whole characters: JSON may hold half of one, and some servers
    cut between the halves.
    """

    def __init__(self) -> None:
        self._half = ""

    def take(self, piece: str) -> str:
        """The text that is whole by now."""
        text, self._half = self._half + piece, ""
        if "\ud800" <= text[-1:] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return whole_characters(text)

    def end(self) -> str:
        """The rest, when no more will come."""
        return whole_characters(self._half)


def whole_characters(text: str) -> str:
    """Two halves that belong together are one character; one alone is shown as
    `\ufffd`.
    """
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def call_of(id_: object, name: object, arguments: object) -> ToolCall:
    """A call as a server sends it: whole characters, and without harmony's marks behind
    the name, left by some.
    """
    written = (
        json.dumps(arguments, ensure_ascii=False)
        if isinstance(arguments, dict)
        else as_string(arguments)
    )
    return ToolCall(
        *map(
            whole_characters,
            (as_string(id_), as_string(name).partition("<|")[0], written),
        )
    )


class ReplyText:
    """Gives the text as it is shown: in whole characters, and with thoughts and calls
    in it apart.
    """

    def __init__(self, *, has_tools: bool) -> None:
        """Without tools, a call in the text stays there: the caller handles it."""
        self.written: list[str] = []
        """As it came, with all that is in it."""
        self._characters = Characters()
        self._filter = TextFilter(has_tools=has_tools)

    def take(self, piece: str) -> Iterator[TextDelta | ThoughtDelta | WasThought]:
        if text := self._characters.take(piece):
            yield from self._said(text)

    def end(self) -> Iterator[TextDelta | ThoughtDelta | WasThought]:
        """The rest, when no more will come."""
        if rest := self._characters.end():
            yield from self._said(rest)
        yield from self._filter.end()

    def note_thought(self) -> None:
        """Thoughts came beside the text: a mark that ends some is no part of them."""
        self._filter.has_thought = True

    def calls(self) -> tuple[ToolCall, ...]:
        """The calls that a server left in the text. Raises `ServerFailed` for one that
        cannot be read.
        """
        try:
            return self._filter.calls()
        except UnreadableCall as error:
            raise ServerFailed(
                Failure(
                    words="a call of a tool that cannot be read", all_words=str(error)
                )
            ) from error

    def _said(self, text: str) -> Iterator[TextDelta | ThoughtDelta | WasThought]:
        self.written.append(text)
        yield from self._filter.feed(text)
