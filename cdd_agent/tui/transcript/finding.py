"""Where in the transcript a text is found: in what is shown, and in what is folded."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from cdd_agent.tui.transcript.lines import TranscriptLine


class Hit(NamedTuple):
    """The text is found here: the so-many-th time in this line, from 0."""

    line: TranscriptLine
    nth: int


class Place(NamedTuple):
    """A hit as it is laid out now."""

    line: TranscriptLine
    start: int
    end: int


class Search:
    """What is looked for, and where it was found, in the order of the transcript. Upper and lower case are one."""

    def __init__(self, text: str) -> None:
        self._pattern = re.compile(re.escape(text), re.IGNORECASE)
        self.hits: list[Hit] = []
        self.current = 0
        """Of the hits, the one that is looked at."""

    def look(self, lines: Iterable[TranscriptLine]) -> None:
        """Search these lines, anew. The current hit stays the same one, where it is still there."""
        find = self._pattern.findall
        before = self.hits[self.current] if self.hits else None
        self.hits = [
            Hit(line, nth) for line in lines for nth in range(sum(len(find(part.text)) for part in line.laid_out()))
        ]
        self.current = self.hits.index(before) if before in self.hits else 0

    def place(self, hit: Hit) -> Place | None:
        """Where it is now; None where the line is laid out otherwise by now, with less of it."""
        places = [Place(part, start, end) for part in hit.line.laid_out() for start, end in self.spans(part.text)]
        return places[min(hit.nth, len(places) - 1)] if places else None

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where it is in a text."""
        return [found.span() for found in self._pattern.finditer(text)]
