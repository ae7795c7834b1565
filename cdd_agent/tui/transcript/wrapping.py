from collections.abc import Iterable, Iterator

from rich.cells import split_graphemes


def wrap(text: str, room: int, *, by_words: bool) -> list[tuple[int, int]]:
    """Return the start and end of each row. Spaces at a break between words are in no
    row.
    """
    if text.isascii():
        if len(text) <= room:
            return [(0, len(text))]
        return list(_wrap_narrow(text, room, by_words)) or [(0, 0)]
    graphemes, width = split_graphemes(text)
    if width <= room:
        return [(0, len(text))]
    return list(_wrap_wide(text, graphemes, room, by_words)) or [(0, 0)]


def _wrap_narrow(text: str, room: int, by_words: bool) -> Iterator[tuple[int, int]]:
    start = 0
    while len(text) - start > room:
        end = following = start + room
        if by_words and (space := text.rfind(" ", start, end + 1)) > start:
            end = start + len(text[start:space].rstrip(" "))
            following = space + len(text[space:]) - len(text[space:].lstrip(" "))
        yield start, end
        start = following
    if start < len(text):
        yield start, len(text)


def _wrap_wide(
    text: str, graphemes: Iterable[tuple[int, int, int]], room: int, by_words: bool
) -> Iterator[tuple[int, int]]:
    """Wrap text by cells. A row may also end next to a wide character."""
    row = _WideRow()
    for begin, end, cells in graphemes:
        is_space = by_words and text[begin:end] == " "
        if is_space and begin == row.start > 0:
            row.start = end
            continue
        if cells > 1:
            row.note_break(begin)
        if row.cells + cells > room and begin > row.start:
            cut = row.find_cut(begin, by_words=by_words and not is_space)
            yield row.start, _end_of_row(text, row.start, cut, by_words)
            row.begin_at(cut)
            if is_space:
                row.start = end
                continue
        row.add(end, cells, may_end_here=is_space or cells > 1)
    if row.start < len(text):
        yield row.start, len(text)


def _end_of_row(text: str, start: int, cut: int, by_words: bool) -> int:
    if not by_words:
        return cut
    return start + len(text[start:cut].rstrip(" "))


class _WideRow:
    def __init__(self) -> None:
        self.start = self.last_break = 0
        self.cells = self._cells_at_break = 0

    def note_break(self, place: int) -> None:
        self.last_break, self._cells_at_break = place, self.cells

    def add(self, end: int, cells: int, *, may_end_here: bool) -> None:
        self.cells += cells
        if may_end_here:
            self.note_break(end)

    def find_cut(self, begin: int, *, by_words: bool) -> int:
        """Return the index where the row ends before the grapheme at `begin`."""
        return self.last_break if by_words and self.last_break > self.start else begin

    def begin_at(self, cut: int) -> None:
        """Begin the next row. If it begins at the last break, it contains the text
        since then.
        """
        self.start = cut
        if cut == self.last_break:
            self.cells -= self._cells_at_break
        else:
            self.cells = 0
