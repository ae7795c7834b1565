"""Choose the code that a prompt shows, for a number of tokens."""

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.context.code_text import CodeReader, CodeText, ShownCode
from cdd_agent.context.places import RankedFile, sort_places
from cdd_agent.files.line_ranges import Ranges, join_ranges
from cdd_agent.llm.token_estimates import estimate_tokens

_SMALL = 500
"""Files of at most this many tokens are shown whole or not at all."""
_MOST_OF_FILE = 0.7
"""A file is shown whole if its parts make up this share."""
_OUTLINES = 0.15
"""Share of the tokens reserved for outlines."""
_MOST_NAMED = 12
"""Maximum number of files to name only."""
_MOST_MISSED = 20
"""Maximum number of consecutive places that do not fit."""
_GROWTH = 20
"""Lines to add before and after ranges while there is room."""
_FIRST_LINES = 40
"""Lines of a file's beginning to show if no other place matters more."""
_FEWEST_LINES = 4
"""A part that does not fit is not shortened below this."""

Outline = Callable[[str], str]


class ChosenCode(Struct, frozen=True):
    """The chosen code, most important first."""

    files: tuple[ShownCode, ...] = ()
    named: tuple[str, ...] = ()
    """The files that rank next. Their code is not shown."""

    @property
    def text(self) -> str:
        parts = [file.text for file in self.files]
        if self.named:
            parts.append(f"Not shown, but perhaps relevant: {', '.join(self.named)}.")
        return "\n\n".join(parts)

    @property
    def tokens(self) -> int:
        return sum(file.tokens for file in self.files)


def choose_code(
    reader: CodeReader,
    ranked: Sequence[RankedFile],
    outline: Outline,
    tokens: int,
    *,
    shown_whole: Collection[str] = (),
    shown_in_part: Mapping[str, Ranges] = MappingProxyType({}),
) -> ChosenCode:
    """Choose from the ranked files: small files whole, places in others, then outlines,
    then names. Skips files and lines that the prompt shows elsewhere.
    """
    wanted = [file for file in ranked if file.path not in shown_whole]
    choice = _Choice(reader, wanted, outline, tokens, shown_in_part)
    choice.add_first_places()
    choice.add_places()
    choice.add_outlines()
    return choice.finish()


class _Choice(Struct):
    reader: CodeReader
    ranked: Sequence[RankedFile]
    outline: Outline
    tokens: int
    shown_in_part: Mapping[str, Ranges]
    _ranges: dict[str, Ranges] = field(default_factory=dict)
    _shown: dict[str, ShownCode] = field(default_factory=dict)
    _outlines: dict[str, ShownCode] = field(default_factory=dict)
    _used: int = 0

    def add_first_places(self) -> None:
        for file in self.ranked:
            if not file.is_named:
                continue
            lines = (1, _FIRST_LINES)
            if file.places:
                lines = (file.places[0].first, file.places[0].last)
            self._add_place(file, lines, self.tokens)

    def add_places(self) -> None:
        most = self.tokens - int(self.tokens * _OUTLINES)
        missed = 0
        for file, place in sort_places(self.ranked):
            if self._add_place(file, (place.first, place.last), most):
                missed = 0
            else:
                missed += 1
            if missed == _MOST_MISSED:
                break

    def add_outlines(self) -> None:
        for file in self._unshown_files():
            text = self.reader.read(file.path)
            outline = self.outline(file.path).strip() if text else ""
            if text is None or not outline:
                continue
            shown = text.outline(outline, _first_reason(file))
            if self._used + shown.tokens > self.tokens:
                # little room remains, and the following files matter less
                break
            self._outlines[file.path] = shown
            self._used += shown.tokens

    def finish(self) -> ChosenCode:
        files = []
        for file in self.ranked:
            if file.path in self._shown:
                files.append(self._shown[file.path])
        files += self._outlines.values()
        named = []
        for file in self._unshown_files():
            if file.path not in self._outlines:
                named.append(file.path)
        return ChosenCode(tuple(files), tuple(named[:_MOST_NAMED]))

    def _unshown_files(self) -> list[RankedFile]:
        unshown = []
        for file in self.ranked:
            if file.path not in self._shown and file.path not in self.shown_in_part:
                unshown.append(file)
        return unshown

    def _add_place(self, file: RankedFile, lines: tuple[int, int], most: int) -> bool:
        """Show these lines too. False if they do not fit."""
        path = file.path
        text = self.reader.read(path)
        if text is None or not text.reaches(lines[0]):
            return True
        if self._is_shown_elsewhere(path, lines):
            return True
        previous = self._shown.get(path)
        if previous is not None and previous.lines is None:
            return True
        ranges = join_ranges((*self._ranges.get(path, ()), *text.with_heads(lines)))
        used = self._used - (previous.tokens if previous else 0)
        for shown in self._list_forms(file, text, ranges):
            if used + shown.tokens <= most:
                self._used = used + shown.tokens
                self._ranges[path] = ranges
                self._shown[path] = shown
                return True
        return False

    def _is_shown_elsewhere(self, path: str, lines: tuple[int, int]) -> bool:
        for first, last in self.shown_in_part.get(path, ()):
            if first <= lines[0] and lines[1] <= last:
                return True
        return False

    def _list_forms(
        self, file: RankedFile, text: CodeText, ranges: Ranges
    ) -> list[ShownCode]:
        why = _first_reason(file)
        part = text.parts(ranges, why)
        is_small = text.tokens <= max(_SMALL, part.tokens / _MOST_OF_FILE)
        if is_small and file.path not in self.shown_in_part:
            return [text.whole(why), part]
        return [part]


def choose_parts(
    text: CodeText,
    ranked: RankedFile | None,
    tokens: int,
    *,
    first: Ranges = (),
    outline: str = "",
    grows: bool = False,
) -> ShownCode | None:
    """Choose parts of one file: the lines `first`, then the best places of `ranked`, or
    the beginning of the file, then the outline. None if no part fits.

    `grows`: add lines around the parts while there is room.
    """
    about = f"\n{text.outline(outline).text}" if outline.strip() else ""
    if estimate_tokens(about) * 3 > tokens:
        about = ""
    room = tokens - estimate_tokens(about)
    wanted = list(first)
    if ranked is not None:
        wanted += [(place.first, place.last) for place in ranked.places]
    wanted = [lines for lines in wanted if text.reaches(lines[0])]
    why = _first_reason(ranked)
    if wanted:
        shown = _choose_ranges(text, wanted, room, why, grows=grows)
    else:
        shown = _choose_beginning(text, room, why)
    if shown is None:
        first_lines = wanted[0] if wanted else (1, _FIRST_LINES)
        shown = _choose_fewer_lines(text, first_lines, room, why)
    if shown is None or shown.lines is None:
        return shown
    return replace(shown, text=shown.text + about)


def _choose_ranges(
    text: CodeText,
    wanted: Sequence[tuple[int, int]],
    room: int,
    why: str,
    *,
    grows: bool,
) -> ShownCode | None:
    shown: ShownCode | None = None
    ranges: Ranges = ()
    for lines in wanted:
        more = join_ranges((*ranges, *text.with_heads(lines)))
        candidate = text.parts(more, why)
        if candidate.tokens <= room:
            shown, ranges = candidate, more
    while grows and shown is not None and shown.lines is not None:
        longer = join_ranges(
            (max(1, first - _GROWTH), min(last + _GROWTH, text.count))
            for first, last in ranges
        )
        candidate = text.parts(longer, why)
        # a notebook is never whole: some of its lines are hidden
        if longer == ranges or candidate.tokens > room:
            break
        shown, ranges = candidate, longer
    return shown


def _choose_beginning(text: CodeText, room: int, why: str) -> ShownCode | None:
    shown: ShownCode | None = None
    for last in range(_FIRST_LINES, text.count + _FIRST_LINES + 1, _FIRST_LINES):
        candidate = text.parts(text.with_heads((1, last)), why)
        if candidate.tokens > room:
            break
        shown = candidate
    return shown


def _choose_fewer_lines(
    text: CodeText, lines: tuple[int, int], room: int, why: str
) -> ShownCode | None:
    first, last = lines[0], min(lines[1], text.count)
    while last - first >= _FEWEST_LINES:
        last = first + (last - first) // 2
        candidate = text.parts(text.with_heads((first, last)), why)
        if candidate.tokens <= room:
            return candidate
    return None


def _first_reason(ranked: RankedFile | None) -> str:
    if ranked is None or not ranked.reasons:
        return ""
    return ranked.reasons[0]
