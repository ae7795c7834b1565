"""Sends the terminal only the cells that it does not show yet: over a slow line each
byte is time.

Textual sends the whole region of a widget that it has drawn again, however little of
that is new.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct, field
from rich.cells import split_graphemes
from rich.color import ColorSystem
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual.strip import Strip

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
    from rich.style import Style
    from textual.app import App
    from textual.geometry import Region, Size
    from textual.screen import Screen

    from cdd_agent.errors import CddError

    Base = App[CddError]
else:
    Base = object

_WORTH_MOVING = 12
"""Cells that are rather sent again than jumped over."""
_AT_ONCE = 256
"""Characters that no terminal shows the half of; more are marked as one update."""
_BLANK = " "
_SEEN_ON_BLANKS = ~0b111
"""All attributes but bold, dim and italic."""


class Look(NamedTuple):
    """A style, in the codes of a terminal."""

    colour: str = "39"
    background: str = "49"
    attributes: int = 0
    link: str = ""
    whole: str = ""
    """All its codes but the link."""

    def after(self, other: Look | None) -> str:
        """The sequence by which text looks like this where it has looked like the
        other, or like anything.
        """
        link = (
            ""
            if other is not None and other.link == self.link
            else f"\x1b]8;{self.link or ';'}\x1b\\"
        )
        if other is None or other.attributes != self.attributes:
            return f"{link}\x1b[0{self.whole and ';'}{self.whole}m"
        codes = [
            new for new, old in zip(self[:2], other[:2], strict=True) if new != old
        ]
        return link + (f"\x1b[{';'.join(codes)}m" if codes else "")

    def on_a_blank(self) -> Look:
        """As much of it as is seen of a blank."""
        return (
            self
            if self.attributes & _SEEN_ON_BLANKS
            else Look(background=self.background, link=self.link)
        )

    def where_only_blanks_are(self, other: Look | None) -> Look:
        """A look by which blanks are the same, and to which the other need be changed
        less.
        """
        if other is None or (self.attributes | other.attributes) & _SEEN_ON_BLANKS:
            return self
        return other._replace(background=self.background, link=self.link)


class Row(Struct):
    """The cells of a row of the screen. Two lists, and no object for each cell: those
    would be looked through whenever garbage is collected.
    """

    characters: list[str] = field(default_factory=list)
    """The characters of each cell; none right of one that is two cells wide."""
    looks: list[Look] = field(default_factory=list)

    def copy(self) -> Row:
        return Row(self.characters[:], self.looks[:])

    def add(self, text: str, look: Look) -> None:
        cells = list(text) if text.isascii() else _cells(text)
        self.characters += cells
        self.looks += [look] * len(cells)

    def put(self, x: int, other: Row) -> None:
        """Put the other one there; of a wide character of which it covers a half, the
        other half is blank.
        """
        end = x + len(other.characters)
        for half, rest in ((x, x - 1), (end, end)):
            if half < len(self.characters) and not self.characters[half]:
                self.characters[rest] = _BLANK
        self.characters[x:end] = other.characters
        self.looks[x:end] = other.looks

    def differing(self, other: Row) -> list[int]:
        """The cells that look different in the other one, of the same length."""

        def is_same(mine: str, look: Look, its: str, its_look: Look) -> bool:
            if mine != its or look == its_look:
                return mine == its
            return mine == _BLANK and look.on_a_blank() == its_look.on_a_blank()

        cells = zip(
            self.characters, self.looks, other.characters, other.looks, strict=True
        )
        return [x for x, cell in enumerate(cells) if not is_same(*cell)]

    @property
    def is_plain(self) -> bool:
        """True if all terminals agree about its columns."""
        return all(map(len, self.characters)) and len("".join(self.characters)) == len(
            self.characters
        )


class SentScreen:
    """The cells that the terminal shows, once it was sent all of a screen."""

    def __init__(self, size: Size, colours: ColorSystem) -> None:
        self.size = size
        self._colours = colours
        self._rows = [Row() for _ in range(size.height)]
        """One of which nothing is known is empty."""
        self._look: Look | None = None
        """The style of the next text that is sent."""

    def sequence(
        self,
        update: LayoutUpdate | ChopsUpdate,
        moved: tuple[Region, int] | None = None,
    ) -> str:
        """The characters that bring the terminal to the update. `moved` says of a
        region by how many rows its content has gone up: the terminal can move whole
        rows by itself. It need not be right.
        """
        wanted, text = dict(self._wanted(update)), ""
        if moved is not None and (
            rows := moved[0].intersection(self.size.region).line_range
        ):
            before = dict(zip(rows, self._rows[rows.start : rows.stop], strict=True))
            text = self._scroll(rows.start, rows.stop, moved[1])
            wanted = before | wanted
        return text + "".join(
            part for y, row in sorted(wanted.items()) for part in self._changed(y, row)
        )

    def _wanted(self, update: LayoutUpdate | ChopsUpdate) -> Iterator[tuple[int, Row]]:
        """Return the rows after the update."""
        if isinstance(update, LayoutUpdate):
            for y, strips in enumerate(update.strips, update.region.y):
                yield y, self._row(strips)
            return
        for y, spans in groupby(sorted(update.spans), lambda span: span[0]):
            row = self._rows[y].copy()
            for _, start, stop in spans:
                for (x, strip), end in zip(
                    update.chops[y].items(), update.chop_ends[y], strict=False
                ):
                    if strip is not None and x <= stop and end > start:
                        row.put(x, self._row([strip.crop(0, min(end, stop) - x)]))
            yield y, row

    def _row(self, strips: Iterable[Strip]) -> Row:
        row = Row()
        for strip in strips:
            for text, style, _ in strip:
                row.add(text, _look(style, self._colours))
        return row

    def _scroll(self, top: int, bottom: int, by: int) -> str:
        """Let the terminal move these rows up, or down."""
        if not 0 < abs(by) < (bottom - top) // 2:
            return ""
        rows, new = self._rows[top:bottom], [Row() for _ in range(abs(by))]
        self._rows[top:bottom] = [*rows[by:], *new] if by > 0 else [*new, *rows[:by]]
        move = (
            f"\x1b[{bottom};1H" + "\n" * by
            if by > 0
            else f"\x1b[{top + 1};1H" + "\x1bM" * -by
        )
        return f"\x1b[{top + 1};{bottom}r{move}\x1b[r"

    def _changed(self, y: int, row: Row) -> Iterator[str]:
        """Return the parts of a row that must be sent: the runs of cells that differ
        from the screen.
        """
        shown, self._rows[y] = self._rows[y], row
        if row == shown:
            return
        if len(row.looks) != len(shown.looks) or not (row.is_plain and shown.is_plain):
            yield self._written(y, row, 0, len(row.looks))
            return
        differing = row.differing(shown)
        start = differing[0] if differing else 0
        for x, following in zip(differing, [*differing[1:], None], strict=False):
            if following is None or following - x > _WORTH_MOVING:
                yield self._written(y, row, start, x + 1)
                start = following or 0

    def _written(self, y: int, row: Row, start: int, stop: int) -> str:
        text = f"\x1b[{y + 1};{start + 1}H"
        cells = zip(row.characters[start:stop], row.looks[start:stop], strict=True)
        for (is_blank, look), same in groupby(
            cells, lambda cell: (cell[0] == _BLANK, cell[1])
        ):
            look = look.where_only_blanks_are(self._look) if is_blank else look  # noqa: PLW2901
            text += look.after(self._look) + "".join(
                characters for characters, _ in same
            )
            self._look = look
        return text


class Differences(CompositorUpdate):
    """An update of which only these characters must be sent."""

    def __init__(self, sequence: str) -> None:
        self.sequence = sequence

    def render_segments(self, console: Console) -> str:
        return self.sequence

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> RenderResult:
        yield self.sequence


class Sparing(Base):
    """An app whose screen goes out through a `SentScreen`."""

    _sent: SentScreen | None = None
    _goes_at_once = False

    def what_has_moved(self) -> tuple[Region, int] | None:
        """The region whose content has gone up, and by how many rows, since this was
        last asked.
        """
        return None

    def send_all(self) -> None:
        """Send the whole screen again: another program has written to the terminal."""
        self._sent = None
        self.refresh(layout=True)

    def on_resize(self) -> None:
        self._sent = None  # the terminal has moved its rows, or cut them

    def _display(
        self, screen: Screen[object], renderable: RenderableType | None
    ) -> None:
        driver = self._driver
        is_sent = self._running and not (
            self._closed or self.is_headless or self._batch_count
        )
        if (
            renderable is not None
            and is_sent
            and driver is not None
            and not driver.is_inline
        ):
            renderable = self._spared(screen.outer_size, renderable)
        self._goes_at_once = (
            isinstance(renderable, Differences) and len(renderable.sequence) < _AT_ONCE
        )
        super()._display(screen, renderable)

    def _spared(self, size: Size, update: RenderableType) -> RenderableType | None:
        """An update without the parts that are shown already."""
        if self._sent is None or self._sent.size != size:
            self._sent = None
            if isinstance(update, LayoutUpdate) and update.region == size.region:
                self._sent = SentScreen(
                    size, self.console._color_system or ColorSystem.TRUECOLOR
                )
        if self._sent is None or not isinstance(update, LayoutUpdate | ChopsUpdate):
            self._sent = None
            return update
        sequence = self._sent.sequence(update, self.what_has_moved())
        is_there = self._previous_cursor_position == size.clamp_offset(
            self.cursor_position
        )
        return Differences(sequence) if sequence or not is_there else None

    def _begin_update(self) -> None:
        if not self._goes_at_once:
            super()._begin_update()

    def _end_update(self) -> None:
        if not self._goes_at_once:
            super()._end_update()


@lru_cache(maxsize=4096)
def _look(style: Style | None, colours: ColorSystem) -> Look:
    if style is None:
        return Look()
    return Look(
        ";".join(style.color.downgrade(colours).get_ansi_codes())
        if style.color
        else "39",
        ";".join(style.bgcolor.downgrade(colours).get_ansi_codes(foreground=False))
        if style.bgcolor
        else "49",
        style._attributes & style._set_attributes,
        f"id={style._link_id};{style._link}" if style._link else "",
        Strip.render_ansi(style, colours),
    )


@lru_cache(maxsize=4096)
def _cells(text: str) -> list[str]:
    """The characters of each cell. Those without a width belong to the ones before
    them.
    """
    cells = list[str]()
    for start, end, width in split_graphemes(text)[0]:
        if width:
            cells += [text[start:end], *[""] * (width - 1)]
        elif cells:
            cells[-1] += text[start:end]
    return cells
