"""The colours of the text on a screen, read from the picture that Textual exports."""

import re
from collections import defaultdict
from collections.abc import Iterator
from html import unescape
from typing import Any, NamedTuple

from textual.app import App
from textual.color import Color
from textual.geometry import Region

_CLASS = re.compile(r"\.([\w-]+) \{ fill: (#\w{6})")
_RECT = re.compile(
    r'<rect fill="(#\w{6})" x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="24.65"'
)
_TEXT = re.compile(
    r'<text class="([\w-]+)" x="([\d.]+)" y="[\d.]+" textLength="[\d.]+"'
    r' clip-path="url\(#[\w-]+-line-(\d+)\)">([^<]*)</text>'
)
_WIDTH, _HEIGHT = 12.2, 24.4
"""Size of a cell in the picture."""
_LINES = " \n\xa0│─┼╭╮╰╯━╸╺╌╍▏▌▊▎▁▂▃▄▅▆▇█▔▕┃├└↳"
"""Characters that are no text: frames, rules, bars."""


class DrawnText(NamedTuple):
    """A text in one style, and its colours."""

    text: str
    colour: Color
    background: Color


def drawn_texts(app: App[Any], region: Region | None = None) -> Iterator[DrawnText]:
    """Yield the texts of the screen that begin in the region."""
    picture = app.export_screenshot()
    colours = dict(_CLASS.findall(picture))
    rows: dict[int, list[tuple[int, int, str]]] = defaultdict(list)
    for colour, x, y, width in _RECT.findall(picture):
        start = round(float(x) / _WIDTH)
        row = round((float(y) - 1.5) / _HEIGHT)
        rows[row].append((start, start + round(float(width) / _WIDTH), colour))
    for name, x, line, text in _TEXT.findall(picture):
        column, row = round(float(x) / _WIDTH), int(line)
        shown = unescape(text).strip(_LINES)
        if not shown or (region is not None and not region.contains(column, row)):
            continue
        behind = [b for start, end, b in rows[row] if start <= column < end]
        assert behind, (text, row, column)
        yield DrawnText(shown, Color.parse(colours[name]), Color.parse(behind[-1]))
