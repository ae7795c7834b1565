"""Sends the terminal only what is not there yet: over a slow line each byte is time.

Textual sends all of a widget's region that it has drawn again. Here the screen as it was sent is kept, cell by cell. Of
a new one only the cells go out that differ; where the transcript has moved up or down, the terminal moves its rows
itself.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import groupby, islice
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len
from rich.color import ColorSystem
from rich.style import Style
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.geometry import Region, Size
from textual.strip import Strip

if TYPE_CHECKING:
    from rich.console import RenderableType
    from textual.app import App
    from textual.screen import Screen

    from cdd_agent.errors import CddError

    Base = App[CddError]
else:
    Base = object

_WORTH_MOVING = 12
"""Cells that are rather sent again than jumped over, and blanks that are rather erased than sent."""
_AT_ONCE = 256
"""Bytes that no terminal shows the half of; more are marked as one update."""
_ERASES_PLAINLY = ("screen", "tmux")
"""Terminals that give cells that they erase the background of their own."""
_STYLED = re.compile(r"(?:\x1b\]8;([^\x1b]*)\x1b\\)?(?:\x1b\[([\d;]*)m)?X")
_ENDS = {"1": "22", "2": "22", "3": "23", "4": "24", "5": "25", "6": "25", "7": "27", "8": "28", "9": "29", "21": "24"}
_ENDS |= {"51": "54", "52": "54", "53": "55"}
"""What ends each attribute of text."""
_SEEN_ON_BLANKS = frozenset({"4", "7", "9", "21", "51", "52", "53"})


class Look(NamedTuple):
    """A style, in the codes of a terminal."""

    colour: str = "39"
    background: str = "49"
    attributes: frozenset[str] = frozenset()
    link: str = ";"

    def after(self, other: Look) -> str:
        """What has to be sent so that text looks like this where it has looked like the other."""
        link = "" if self.link == other.link else f"\x1b]8;{self.link}\x1b\\"
        ended = {_ENDS[attribute] for attribute in other.attributes - self.attributes}
        begun = self.attributes if ended else self.attributes - other.attributes
        codes = [*sorted(ended), *sorted(begun)]
        codes += [self.colour] if self.colour != other.colour else []
        codes += [self.background] if self.background != other.background else []
        return link + (f"\x1b[{';'.join(codes)}m" if codes else "")

    def on_blanks(self, other: Look) -> Look:
        """A blank looks like this whatever else the text before it has."""
        if _SEEN_ON_BLANKS.isdisjoint(self.attributes | other.attributes):
            return self._replace(colour=other.colour, attributes=other.attributes)
        return self


_PLAIN = Look()
_BLANK = " "
Cell = tuple[str, Look]
"""Its characters, none right of one that takes two cells; of a blank the look is what is seen of it."""
Run = tuple[int, int, list[Cell]]
"""Column, row, and the cells from there on."""


class SentScreen:
    """What the terminal shows, once all of a screen was sent."""

    def __init__(self, colours: ColorSystem, size: Size, *, erases: bool) -> None:
        """`erases`: the terminal gives cells that it erases the background of text."""
        self.size = size
        self._colours = colours
        self._erases = erases
        self._rows: list[list[Cell]] = [[] for _ in range(size.height)]
        """One of which nothing is known is empty."""
        self._look: Look | None = None
        """That of the next text that is sent."""

    def sequence(self, update: LayoutUpdate | ChopsUpdate, moved: tuple[Region, int] | None = None) -> str:
        """What brings the terminal to the update. `moved` says of a part of the screen by how many rows its content has
        gone up; it need not be right."""
        wanted, text = self._wanted(update), ""
        if moved is not None and (rows := moved[0].intersection(self.size.region).line_range):
            text, before = self._scroll(rows.start, rows.stop, moved[1])
            wanted = before | wanted
        runs = (run for y, row in sorted(wanted.items()) for run in self._change(y, row))
        return text + self._written(runs)

    def _wanted(self, update: LayoutUpdate | ChopsUpdate) -> dict[int, list[Cell]]:
        """The rows of the update as they are to be."""
        if isinstance(update, LayoutUpdate):
            rows = enumerate(update.strips, update.region.y)
            return {y: [cell for strip in strips for cell in self._cells(strip)] for y, strips in rows}
        wanted = dict[int, list[Cell]]()
        for y, start, stop in update.spans:
            row = wanted.setdefault(y, list(self._rows[y]))
            for (x, strip), end in zip(update.chops[y].items(), update.chop_ends[y], strict=False):
                if strip is not None and x <= stop and end > start:
                    _put(row, x, self._cells(strip.crop(0, min(end, stop) - x)))
        return wanted

    def _cells(self, strip: Strip) -> list[Cell]:
        cells = list[Cell]()
        for text, style, _ in strip:
            look, blank = _looks(style, self._colours)
            if text.isascii():
                cells += [(character, blank if character == _BLANK else look) for character in text]
                continue
            for character in text:
                width = cell_len(character)
                if width:
                    cells += [(character, blank if character == _BLANK else look), ("", look)][:width]
                elif cells:
                    cells[-1] = (cells[-1][0] + character, cells[-1][1])
        return cells

    def _scroll(self, top: int, bottom: int, by: int) -> tuple[str, dict[int, list[Cell]]]:
        """Let the terminal move these rows up, or down; and how all of them were before."""
        before = {y: self._rows[y] for y in range(top, bottom)}
        if not 0 < abs(by) < (bottom - top) // 2:
            return "", {}
        rows, blank = self._rows[top:bottom], [list[Cell]() for _ in range(abs(by))]
        self._rows[top:bottom] = [*rows[by:], *blank] if by > 0 else [*blank, *rows[:by]]
        within = f"\x1b[{top + 1};{bottom}r"
        move = f"\x1b[{bottom};1H" + "\n" * by if by > 0 else f"\x1b[{top + 1};1H" + "\x1bM" * -by
        return f"{within}{move}\x1b[r", before

    def _change(self, y: int, row: list[Cell]) -> Iterator[Run]:
        """The runs of cells that differ from what is shown."""
        shown = self._rows[y]
        self._rows[y] = row
        if row == shown:
            return
        if len(row) != len(shown):
            yield 0, y, row
            return
        differing = [x for x, (old, new) in enumerate(zip(shown, row, strict=True)) if old != new]
        start = differing[0]
        for x, following in zip(differing, [*differing[1:], None], strict=True):
            if following is None or following - x > _WORTH_MOVING:
                first, last = _whole(shown, row, start, x + 1)
                yield first, y, row[first:last]
                start = following or 0

    def _written(self, runs: Iterable[Run]) -> str:
        parts = list[str]()
        for x, y, cells in runs:
            if self._look is None:
                parts.append("\x1b[0m")
                self._look = _PLAIN
            parts.append(f"\x1b[{y + 1};{x + 1}H")
            for (is_blank, look), same in groupby(cells, lambda cell: (cell[0] == _BLANK, cell[1])):
                wanted = look.on_blanks(self._look) if is_blank else look
                parts.append(wanted.after(self._look))
                self._look = wanted
                text = "".join(characters for characters, _ in same)
                if is_blank and self._erases and len(text) > _WORTH_MOVING and not wanted.attributes & _SEEN_ON_BLANKS:
                    text = f"\x1b[{len(text)}X\x1b[{len(text)}C"
                parts.append(text)
        return "".join(parts)


class Sparing(Base):
    """An app whose screen goes out through a `SentScreen`."""

    _sent: SentScreen | None = None

    def what_has_moved(self) -> tuple[Region, int] | None:
        """The part of the screen whose content has gone up, and by how many rows, since this was last asked."""
        return None

    def send_all(self) -> None:
        """Send the whole screen anew: something else has written to the terminal."""
        self._sent = None
        self.screen.refresh()

    def let_go(self) -> None:
        """What others write to the terminal from here on is in no style of ours."""
        if self._sent is not None and self._driver is not None:
            self._driver.write("\x1b]8;;\x1b\\\x1b[0m")
        self._sent = None

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        driver = self._driver
        is_sent = self._running and not (self._closed or self.is_headless or self._batch_count)
        if renderable is None or not is_sent or driver is None or driver.is_inline:
            super()._display(screen, renderable)
            return
        size = screen.outer_size
        if self._sent is not None and self._sent.size != size:
            self._sent = None
        if self._sent is None and isinstance(renderable, LayoutUpdate) and renderable.region == size.region:
            colours = self.console._color_system or ColorSystem.TRUECOLOR
            erases = self.is_web or not os.environ.get("TERM", "").startswith(_ERASES_PLAINLY)
            self._sent = SentScreen(colours, size, erases=erases)
        if self._sent is None or not isinstance(renderable, LayoutUpdate | ChopsUpdate):
            self._sent = None
            super()._display(screen, renderable)
            return
        text = self._sent.sequence(renderable, self.what_has_moved())
        cursor = size.clamp_offset(self.cursor_position)
        if text or cursor != self._previous_cursor_position:
            self._previous_cursor_position = cursor
            text += f"\x1b[{cursor.y + 1};{cursor.x + 1}H"
            if len(text) > _AT_ONCE:
                self._begin_update()
            driver.write(text)
            if len(text) > _AT_ONCE:
                self._end_update()
            driver.flush()
        self.post_display_hook()


@lru_cache(maxsize=4096)
def _looks(style: Style | None, colours: ColorSystem) -> tuple[Look, Look]:
    """How text of a style looks, and what is seen of a blank."""
    found = _STYLED.match(Strip.render_style(style, "X", colours)) if style is not None else None
    if found is None:
        return _PLAIN, _PLAIN
    colour, background, attributes = "39", "49", set[str]()
    codes = iter(found[2].split(";") if found[2] else ())
    for code in codes:
        number = int(code)
        if number in (38, 48):
            kind = next(codes)
            code = ";".join([code, kind, *islice(codes, 3 if kind == "2" else 1)])  # noqa: PLW2901
        if number in (38, 39) or 30 <= number <= 37 or 90 <= number <= 97:
            colour = code
        elif number in (48, 49) or 40 <= number <= 47 or 100 <= number <= 107:
            background = code
        else:
            attributes.add(code)
    look = Look(colour, background, frozenset(attributes), found[1] or ";")
    return look, look if look.attributes & _SEEN_ON_BLANKS else Look(background=background, link=look.link)


def _put(row: list[Cell], x: int, cells: list[Cell]) -> None:
    """Put the cells there; of a character of which they cover a half, the other one is blank."""
    end = x + len(cells)
    for half, other in ((x, x - 1), (end, end)):
        if half < len(row) and not row[half][0]:
            row[other] = _BLANK, row[other][1]
    row[x:end] = cells


def _whole(shown: list[Cell], row: list[Cell], start: int, stop: int) -> tuple[int, int]:
    """The cells from `start` to `stop`, with the other half of each character that takes two, of either row."""
    while start and not (row[start][0] and shown[start][0]):
        start -= 1
    while stop < len(row) and not (row[stop][0] and shown[stop][0]):
        stop += 1
    return start, stop
