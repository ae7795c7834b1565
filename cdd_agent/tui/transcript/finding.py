"""Searches the transcript, including folded text."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from cdd_agent.tui.transcript.folds import Fold, FoldedLine, FoldHeader, Opening
from cdd_agent.tui.transcript.lines import TranscriptLine
from cdd_agent.tui.transcript.scrollback import Scrollback


class Hit(NamedTuple):
    """A match: the line, and its number among the line's matches, from 0."""

    line: TranscriptLine
    nth: int


class HitPlace(NamedTuple):
    line: TranscriptLine
    start: int
    end: int


class Search:
    def __init__(self, text: str) -> None:
        self._pattern = re.compile(re.escape(text), re.IGNORECASE)
        self.hits: list[Hit] = []
        self.current = 0

    def look(self, lines: Iterable[TranscriptLine]) -> None:
        """Search these lines again. The current match stays, if it still exists."""
        find = self._pattern.findall
        former_hit = self.hits[self.current] if self.hits else None
        self.hits = [
            Hit(line, nth)
            for line in lines
            for nth in range(sum(len(find(part.text)) for part in line.laid_out()))
        ]
        self.current = self.hits.index(former_hit) if former_hit in self.hits else 0

    def place(self, hit: Hit) -> HitPlace | None:
        """Return a match's current place; None if its line now shows less text."""
        places = [
            HitPlace(part, start, end)
            for part in hit.line.laid_out()
            for start, end in self.spans(part.text)
        ]
        return places[min(hit.nth, len(places) - 1)] if places else None

    def spans(self, text: str) -> list[tuple[int, int]]:
        return [match.span() for match in self._pattern.finditer(text)]


class Finder:
    """Moves between matches. It opens a folded block for the current match."""

    def __init__(
        self,
        scrollback: Scrollback,
        turn: Callable[[Fold, Opening], None],
        show: Callable[[int | None], None],
    ) -> None:
        """`turn` opens or folds a block. `show` redraws all rows, and scrolls to a row
        if given.
        """
        self._scrollback, self._turn, self._show = scrollback, turn, show
        self._search: Search | None = None
        self.is_old = False
        self._opened: dict[Fold, Opening] = {}
        """Blocks that the search opened, with their previous states."""

    def find(self, text: str, top: int) -> None:
        """Search from a row on. An empty text ends the search."""
        search = self._search = Search(text) if text else None
        if search is None:
            self._show(None)
            return
        self._look(search)
        lines = [row.line for row in self._scrollback.rows[top:]]
        below = {id(line) for line in lines}
        below |= {id(line.fold) for line in lines if isinstance(line, FoldHeader)}
        search.current = max(len(search.hits) - 1, 0)
        for number, hit in enumerate(search.hits):
            if not below.isdisjoint(map(id, _identities(hit.line))):
                search.current = number
                break
        self._go()

    def step(self, step: int) -> None:
        """Go to the next match (1) or the previous one (-1), with wrap-around."""
        if (search := self._search) is not None:
            if self.is_old:
                self._look(search)
            search.current = (search.current + step) % max(len(search.hits), 1)
            self._go()

    def catch_up(self) -> bool:
        """Search a changed transcript again. The current match stays, if it still
        exists. False if nothing has changed.
        """
        if (search := self._search) is None or not self.is_old:
            return False
        previous_hit = self._hit
        self._look(search)
        if self._hit != previous_hit:
            self._show(None)
        return True

    def end(self) -> None:
        """End the search. Fold the blocks that it opened, except the current one."""
        hit = self._hit
        current_fold = None
        if hit is not None and isinstance(hit.line, FoldedLine):
            current_fold = hit.line.fold
        for fold, opening in self._opened.items():
            if fold is not current_fold:
                self._turn(fold, opening)
        self._opened.clear()
        self.find("", 0)

    @property
    def position(self) -> tuple[int, int]:
        """The number of the current match, from 1, and the count; (0, 0) without
        matches.
        """
        search = self._search
        if search is None or not search.hits:
            return 0, 0
        return search.current + 1, len(search.hits)

    def marks(self, line: TranscriptLine) -> Iterator[tuple[int, int, bool]]:
        """Yield the start and end of each match, and True for the current one."""
        if self._search is None:
            return
        current = None
        if self._hit is not None:
            current = self._search.place(self._hit)
        for start, end in self._search.spans(line.text):
            is_in_line = current is not None and current.line is line
            is_current = is_in_line and current is not None and current.start == start
            yield start, end, is_current

    @property
    def _hit(self) -> Hit | None:
        if self._search is None or not self._search.hits:
            return None
        return self._search.hits[self._search.current]

    def _look(self, search: Search) -> None:
        search.look(self._scrollback.lines())
        self.is_old = False

    def _go(self) -> None:
        hit, search = self._hit, self._search
        if hit is None or search is None:
            self._show(None)
            return
        if isinstance(hit.line, FoldedLine) and hit.line.fold.opening < hit.line.since:
            self._opened.setdefault(hit.line.fold, hit.line.fold.opening)
            self._turn(hit.line.fold, Opening.ALL)
        place = search.place(hit)
        row = None
        if place is not None:
            row = self._scrollback.row_of(place.line, place.start)
        self._show(row)


def _identities(line: TranscriptLine) -> Iterable[TranscriptLine | Fold]:
    if isinstance(line, FoldedLine):
        return (line.fold, *line.laid_out())
    return line.laid_out()
