"""Share a prompt's room among the files that it must show, whole or in part.

Each file keeps a minimum. Files become whole as long as the others' minimums remain:
first the step's files, smaller ones first, then the others in order. The rest share the
remaining room; the step's files get half of it before the others become whole. So a
large file hides no other.
"""

from collections.abc import Sequence
from enum import IntEnum

from msgspec import Struct

from cdd_agent.context.choosing import choose_parts
from cdd_agent.context.code_text import CodeText, ShownCode
from cdd_agent.context.finder import CodeSearch
from cdd_agent.files.line_ranges import Ranges

LARGEST_WHOLE = 200_000
"""Maximum bytes of a file to show whole."""
MOST_IN_PART = 6_000
"""Tokens of the parts of one file. In a small window it is a third of the window."""
_MOST_FOR_PATTERNS = 50_000
"""Tokens of the files that patterns and folders match."""
_MINIMUM = 400
"""Tokens that each file keeps, if it needs them."""
_MOST_KEPT_FREE = 500
"""Tokens to keep free if not all files fit: for the names of omitted files, and for
lines that the next attempt needs. In a small room it is an eighth.
"""
_UNLIMITED = 1_000_000_000
"""Tokens."""
_LONGEST_RANGE = 2_000
"""Lines of a range that matter."""
_PIECE = 40
"""Lines of a piece of such a range. Each piece is shown or not."""


class Priority(IntEnum):
    STEP = 0
    """The step declares the file."""
    PATTERN = 1
    """A pattern or folder of the step matches the file. It keeps no minimum: some whole
    files are more useful than the beginning of each.
    """
    OTHER = 2


class WantedFile(Struct, frozen=True):
    text: CodeText
    priority: Priority
    most_whole: int = LARGEST_WHOLE
    """Bytes. A larger file is shown in part."""
    first: Ranges = ()
    """The lines that matter most."""

    @property
    def may_be_whole(self) -> bool:
        return self.text.visible_size <= min(self.most_whole, LARGEST_WHOLE)


class _Share(Struct):
    file: WantedFile
    need: int
    """Tokens, including a separator."""
    tokens: int = 0
    shown: ShownCode | None = None

    @property
    def minimum(self) -> int:
        return min(self.need, _MINIMUM)

    @property
    def is_whole(self) -> bool:
        if self.shown is None:
            return False
        return self.shown.lines is None or self.shown.is_without_outputs


def limit_part(window: int | None) -> int:
    """Return the maximum tokens of a file that is shown in part."""
    return MOST_IN_PART if window is None else min(MOST_IN_PART, window // 3)


def share_room(
    files: Sequence[WantedFile],
    search: CodeSearch,
    room: int | None,
    window: int | None = None,
) -> list[ShownCode | None]:
    """Return the shown part of each file; None if there is no room. Without `room`,
    everything fits.
    """
    shares = []
    for file in files:
        need = file.text.tokens if file.may_be_whole else limit_part(window)
        shares.append(_Share(file, need + 1))
    free = _UNLIMITED if room is None else room
    if sum(share.need for share in shares) > free:
        free -= min(_MOST_KEPT_FREE, free // 8)
    sharing = _Sharing(shares, search, free, limit_part(window))
    sharing.reserve_minimums()
    sharing.show_whole(Priority.STEP)
    sharing.show_parts(Priority.STEP, sharing.free // 2)
    sharing.show_whole(Priority.PATTERN)
    sharing.show_whole(Priority.OTHER)
    # the step's files have had their half
    for priority in (Priority.PATTERN, Priority.OTHER, Priority.STEP):
        sharing.show_parts(priority, sharing.free)
    # the parts may have used less room
    for priority in Priority:
        sharing.show_whole(priority)
    return [share.shown for share in shares]


class _Sharing(Struct):
    shares: list[_Share]
    search: CodeSearch
    free: int
    most_in_part: int
    free_for_patterns: int = _MOST_FOR_PATTERNS

    def reserve_minimums(self) -> None:
        """Reserve the minimum of each file, small files first. Files of `OTHER`
        priority get at most half of the room.
        """
        half = self.free // 2
        shares = [*self._list_shares(Priority.STEP), *self._list_shares(Priority.OTHER)]
        for share in sorted(shares, key=lambda share: share.minimum):
            most = self.free
            if share.file.priority is Priority.OTHER:
                most = min(most, half)
            if share.minimum <= most:
                self._add(share, share.minimum)
                if share.file.priority is Priority.OTHER:
                    half -= share.minimum

    def show_whole(self, priority: Priority) -> None:
        shares = self._list_shares(priority)
        if priority is Priority.STEP:
            shares.sort(key=lambda share: share.need)
        for share in shares:
            more = share.need - share.tokens
            if share.file.may_be_whole and more <= self._limit(priority, self.free):
                self._add(share, more)
                share.shown = share.file.text.whole()

    def show_parts(self, priority: Priority, room: int) -> None:
        end = self.free - room
        shares = self._list_shares(priority)
        for place, share in enumerate(shares):
            room = self._limit(priority, self.free - end)
            equal = room // (len(shares) - place)
            if priority is Priority.PATTERN:
                equal = room
            tokens = share.tokens + max(equal, min(share.minimum, room))
            if tokens < share.minimum:
                continue
            share.shown = self._choose_parts(share.file, tokens - 1) or share.shown
            used = share.shown.tokens + 1 if share.shown else 0
            self._add(share, used - share.tokens)

    def _limit(self, priority: Priority, room: int) -> int:
        if priority is Priority.PATTERN:
            return min(room, self.free_for_patterns)
        return room

    def _choose_parts(self, file: WantedFile, tokens: int) -> ShownCode | None:
        path = file.text.path
        return choose_parts(
            file.text,
            self.search.find_file(path),
            min(tokens, self.most_in_part),
            first=cut_ranges(file.first),
            outline=self.search.outline(path),
            grows=file.priority is Priority.STEP,
        )

    def _list_shares(self, priority: Priority) -> list[_Share]:
        shares = []
        for share in self.shares:
            if share.file.priority is priority and not share.is_whole:
                shares.append(share)
        return shares

    def _add(self, share: _Share, tokens: int) -> None:
        share.tokens += tokens
        self.free -= tokens
        if share.file.priority is Priority.PATTERN:
            self.free_for_patterns -= tokens


def cut_ranges(ranges: Ranges) -> Ranges:
    """Split long ranges, so that the beginning of one that does not fit is shown."""
    pieces = []
    for first, last in ranges:
        end = min(last, first + _LONGEST_RANGE - 1)
        for start in range(first, end + 1, _PIECE):
            pieces.append((start, min(start + _PIECE - 1, end)))
    return tuple(pieces)
