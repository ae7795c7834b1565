"""Breaking text into rows of a number of cells."""

from collections.abc import Iterable, Iterator

from rich.cells import split_graphemes


def wrap(text: str, room: int, *, by_words: bool) -> list[tuple[int, int]]:
    """Return the start and end of each row of the text. Spaces at a break between words
    are in no row.
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
    """Wrap text whose characters all take one cell."""
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
    """As `_wrap_narrow`, in cells. A row may also end beside any wide character."""
    start = used = 0
    chance = used_at_chance = (
        0  # the last place to end the row, and the cells used up to it
    )
    for begin, end, cells in graphemes:
        space = by_words and text[begin:end] == " "
        if space and begin == start > 0:
            start = end
            continue
        if cells > 1:
            chance, used_at_chance = begin, used
        if used + cells > room and begin > start:
            cut = chance if by_words and chance > start and not space else begin
            yield (
                start,
                start
                + len(text[start:cut].rstrip(" ") if by_words else text[start:cut]),
            )
            used -= used_at_chance if cut == chance else used
            start = cut if not space else end
            if space:
                continue
        used += cells
        if space or cells > 1:
            chance, used_at_chance = end, used
    if start < len(text):
        yield start, len(text)
