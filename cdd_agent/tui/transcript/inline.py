"""The inline elements of Markdown: emphasis, code, links, forced breaks."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from cdd_agent.text.sanitize import sanitize_for_display
from cdd_agent.tui.transcript.lines import Ink, InkedText, Mark
from cdd_agent.tui.transcript.tables import Cell

if TYPE_CHECKING:
    from markdown_it.token import Token

_TAG_INKS = {"strong": "strong", "em": "em", "s": "strike"}
_BREAK: InkedText = ("\n", "")


def inline_texts(token: "Token") -> list[Cell]:
    """Return the marked text, split at forced breaks."""
    texts, text, marks = list[Cell](), "", list[Mark]()
    for piece in _pieces(token):
        if piece is _BREAK:
            texts.append((text, tuple(marks)))
            text, marks = "", []
            continue
        content, ink = piece
        begin = len(text)
        text += sanitize_for_display(content)
        if ink:
            marks.append((begin, len(text), ink))
    return [*texts, (text, tuple(marks))]


def _pieces(token: "Token") -> Iterator[InkedText]:
    reader = _InlineReader()
    children = [
        child for child in token.children or () if child.type != "text" or child.content
    ]
    for index, child in enumerate(children):
        if child.type == "hardbreak":
            yield _BREAK
        elif child.type != "softbreak":
            yield from reader.read(child)
        elif reader.is_plain and _begins_with_label(children[index + 1 : index + 4]):
            yield _BREAK
        else:
            yield " ", reader.ink()


class _InlineReader:
    def __init__(self) -> None:
        self._inks: list[Ink] = []
        # Links do not nest.
        self._address = self._label = ""

    @property
    def is_plain(self) -> bool:
        return not self._inks

    def ink(self, *more: Ink) -> Ink:
        return " ".join((*self._inks, *more))

    def read(self, token: "Token") -> Iterator[InkedText]:
        match token.type:
            case "link_open":
                self._inks.append("link")
                self._address, self._label = str(token.attrs.get("href", "")), ""
            case "link_close":
                self._inks.pop()
                if self._address not in (self._label, f"mailto:{self._label}"):
                    yield from _address(self._address)
            case "image":
                yield token.content or "image", self.ink("link")
                yield from _address(str(token.attrs.get("src", "")))
            case "code_inline":
                self._label += token.content
                yield token.content, self.ink("verbatim")
            case _ if token.nesting == 1:
                self._inks.append(_TAG_INKS.get(token.tag, ""))
            case _ if token.nesting == -1:
                self._inks.pop()
            case _:
                self._label += token.content
                yield token.content, self.ink()


def _begins_with_label(tokens: "Sequence[Token]") -> bool:
    """True for a line such as `**Type:** feature`. Such lines are not joined."""
    if [token.type for token in tokens] != ["strong_open", "text", "strong_close"]:
        return False
    return tokens[1].content.endswith(":")


def _address(address: str) -> Iterator[InkedText]:
    yield " ", ""
    yield f"({address})", "address"
