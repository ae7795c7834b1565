"""The text inside Markdown paragraphs, headings and cells: emphasis, code, links,
forced breaks.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from cdd_agent.sanitize import sanitize_for_display
from cdd_agent.tui.transcript.lines import Ink, InkedText, Mark
from cdd_agent.tui.transcript.tables import Cell

if TYPE_CHECKING:
    from markdown_it.token import Token

_TAG_INKS = {"strong": "strong", "em": "em", "s": "strike"}
_BREAK: InkedText = ("\n", "")


def inline_texts(token: "Token") -> list[Cell]:
    """Return the text with its marks, in pieces between forced breaks."""
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
    inks: list[Ink] = []
    address = label = ""  # of the last link; links do not nest
    children = [
        child for child in token.children or () if child.type != "text" or child.content
    ]
    for index, child in enumerate(children):
        match child.type:
            case "softbreak" if not inks and _begins_with_a_label(
                children[index + 1 :]
            ):
                yield _BREAK
            case "softbreak":
                yield " ", " ".join(inks)
            case "hardbreak":
                yield _BREAK
            case "link_open":
                inks.append("link")
                address, label = str(child.attrs.get("href", "")), ""
            case "link_close":
                inks.pop()
                if address not in (label, f"mailto:{label}"):
                    yield from _address(address)
            case "image":
                yield child.content or "image", " ".join([*inks, "link"])
                yield from _address(str(child.attrs.get("src", "")))
            case "code_inline":
                label += child.content
                yield child.content, " ".join([*inks, "verbatim"])
            case _ if child.nesting == 1:
                inks.append(_TAG_INKS.get(child.tag, ""))
            case _ if child.nesting == -1:
                inks.pop()
            case _:
                label += child.content
                yield child.content, " ".join(inks)


def _begins_with_a_label(line: "Sequence[Token]") -> bool:
    """True for a line such as `**Type:** feature`: such lines are not joined."""
    kinds = [child.type for child in line[:3]]
    return kinds == ["strong_open", "text", "strong_close"] and line[
        1
    ].content.endswith(":")


def _address(address: str) -> Iterator[InkedText]:
    yield " ", ""
    yield f"({address})", "address"
