"""The text of one reply while it streams: separates thoughts, tool calls in the text,
and code blocks for cdd from what the user reads.

Marks of thoughts and calls count only at the beginning of a line, before the first line
that looks like an edit, and outside code blocks. So no file in a reply loses a line.
"""

import re
from collections.abc import Collection, Iterable
from enum import Enum, auto

from msgspec import Struct

from cdd_agent.llm import reply_marks
from cdd_agent.llm.direct.characters import Characters
from cdd_agent.llm.direct.protocol import ServerFailed
from cdd_agent.llm.failures import Failure
from cdd_agent.llm.port import TextDelta, ThoughtDelta, ToolCall, WasThought
from cdd_agent.pattern import Pattern

_BLANKS = r"[ \t]{0,40}"
_ITEM = rf"(?:[-*+]|[0-9]{{1,3}}[.)])[ \t]{_BLANKS}"
_FENCE = Pattern(
    rf"(?P<indent>{_BLANKS}(?:{_ITEM})?)(?P<mark>`{{3,}}|~{{3,}})[ \t]*(?P<info>[\w-]*)"
    r"(?P<rest>.*)"
)
_PARTIAL_FENCE = Pattern(
    rf"{_BLANKS}(?:[-*+]|[0-9]{{1,3}}[.)]?|{_ITEM})?(?:`{{0,2}}|~{{0,2}})"
)
_HIDDEN_INDENT = Pattern(" {0,3}")
"""Blanks before a hidden block. A block that is indented deeper, or in a list, is
shown.
"""
_LONGEST_FENCE = 200
"""Characters. A longer line is processed before its end arrives."""

StreamEvent = TextDelta | ThoughtDelta | WasThought


class _State(Enum):
    """The part of the reply that the next character belongs to."""

    PROSE = auto()
    """Text in which marks count."""
    AFTER_BLOCK = auto()
    """Text after a code block. The only mark is a late end of thoughts."""
    EDIT = auto()
    """Text without marks, up to the end of the reply."""
    BLOCK = auto()
    HIDDEN_BLOCK = auto()
    """A code block for cdd."""
    THOUGHTS = auto()
    CALL = auto()


_TEXT_STATES = (_State.PROSE, _State.AFTER_BLOCK, _State.EDIT)


class _Place(Enum):
    """The place of the next character in its line."""

    LINE_START = auto()
    """It may begin a mark, a fence or an edit."""
    IN_LINE = auto()
    """It continues what its line began."""
    BEHIND_MARK = auto()
    """A line end is part of the mark. Anything else starts a line."""


class _Fence(Struct, frozen=True):
    mark: str
    info: str = ""

    @classmethod
    def parse(cls, line: str) -> "_Fence | None":
        """Return the fence, or None for inline code."""
        match = _FENCE.match(line)
        if match is None:
            return None
        if len(line) > _LONGEST_FENCE:
            return cls(match["mark"])
        if match["mark"].startswith("`") and "`" in match["rest"]:
            return None
        info = ""
        if _HIDDEN_INDENT.fullmatch(match["indent"]):
            info = match["info"].lower()
        return cls(match["mark"], info)

    def may_be_closed_by(self, line: str) -> bool:
        """True if the beginning of a line may become the end of the block."""
        return len(line) <= _LONGEST_FENCE and set(line.strip()) <= {self.mark[0]}

    def is_closed_by(self, line: str) -> bool:
        return self.may_be_closed_by(line) and len(line.strip()) >= len(self.mark)


class ReplyStream:
    """Receives a reply in pieces. Returns text and thoughts, and keeps calls and hidden
    blocks. The beginning of a line waits until it is clear what the line is.
    """

    def __init__(
        self,
        *,
        has_tools: bool = True,
        has_marks: bool = True,
        hidden_blocks: Collection[str] = (),
    ) -> None:
        """`has_tools` is false to leave calls in the text. `has_marks` is false if an
        adapter has read the marks. `hidden_blocks` are info strings.
        """
        self.written: list[str] = []
        self.has_thoughts = False
        """Thoughts with a beginning have arrived. A lone end is text then."""
        self.blocks: list[tuple[str, str]] = []
        """The hidden code blocks: first word of the info string in lower case, and
        content.
        """
        self._calls: list[str] = []
        self._has_tools = has_tools
        self._hidden_infos = hidden_blocks
        self._characters = Characters()
        self._thoughts = Characters()
        """For thoughts outside the text."""
        self._waiting = ""
        self._state = _State.PROSE if has_marks else _State.EDIT
        self._place = _Place.LINE_START
        self._end_mark = reply_marks.CALL_END
        self._fence = _Fence("")
        self._state_below = self._state
        """The state after the code block."""
        self._hidden: list[str] = []
        """Pieces of the call or hidden block."""

    def feed(self, piece: str) -> list[StreamEvent]:
        """Add a piece. Returns events for the part that is clear."""
        return self._take(self._characters.take(piece))

    def think(self, piece: str) -> list[ThoughtDelta]:
        """Add a piece of thoughts that arrived outside the text."""
        thought = self._thoughts.take(piece)
        if not thought:
            return []
        self.has_thoughts = True
        return [ThoughtDelta(thought)]

    def end(self) -> list[StreamEvent]:
        events = self._take(self._characters.end())
        if self._place is _Place.LINE_START:
            self._read_last_fence(self._waiting)
        rest, self._waiting = self._waiting, ""
        match self._state:
            case _State.CALL:
                self._hidden.append(rest)
                self._end_call()
            case _State.HIDDEN_BLOCK:
                self._hidden.append(rest)
                self._end_hidden_block()
            case _State.THOUGHTS if rest:
                events.append(ThoughtDelta(rest))
            case _ if rest:
                events.append(TextDelta(rest))
        return events

    def blocks_of(self, info: str) -> tuple[str, ...]:
        """Return the contents of the hidden blocks with an info string."""
        return tuple(content for word, content in self.blocks if word == info)

    def calls(self) -> tuple[ToolCall, ...]:
        """Return the calls in the text. Raises `ServerFailed` for an unreadable one."""
        calls = []
        for number, text in enumerate(self._calls, start=1):
            try:
                calls.append(reply_marks.read_call(text, f"call_{number}"))
            except ValueError as error:
                words = "a call of a tool that cannot be read"
                raise ServerFailed(Failure(words=words, all_words=text)) from error
        return tuple(calls)

    def _take(self, characters: str) -> list[StreamEvent]:
        if characters:
            self.written.append(characters)
        events: list[StreamEvent] = []
        # line by line, because each step copies the waiting text
        for part in characters.splitlines(keepends=True):
            self._waiting += part
            while self._waiting:
                certain = self._read()
                if certain is None:
                    break
                events += certain
        return events

    def _read(self) -> list[StreamEvent] | None:
        """Process some waiting characters, or just classify them. None if more must
        arrive first.
        """
        if self._place is _Place.BEHIND_MARK:
            self._waiting = self._waiting.removeprefix("\n")
            self._place = _Place.LINE_START
            return []
        if self._state in (_State.THOUGHTS, _State.CALL):
            return self._read_to_end_mark()
        if self._place is _Place.IN_LINE:
            return self._read_line()
        if self._state in (_State.BLOCK, _State.HIDDEN_BLOCK):
            return self._begin_line_of_block()
        return self._begin_line()

    def _read_line(self) -> list[StreamEvent]:
        line, newline, self._waiting = self._waiting.partition("\n")
        if newline:
            self._place = _Place.LINE_START
        if self._state is _State.HIDDEN_BLOCK:
            self._hidden.append(line + newline)
            return []
        return [TextDelta(line + newline)]

    def _begin_line(self) -> list[StreamEvent] | None:
        line, newline, _ = self._waiting.partition("\n")
        if not newline and _PARTIAL_FENCE.fullmatch(line):
            return None
        if _FENCE.match(line):
            if not newline and len(line) <= _LONGEST_FENCE:
                return None
            self._begin_block(line)
            return []
        if self._state is _State.EDIT:
            self._place = _Place.IN_LINE
            return []
        return self._begin_marked_line(self._waiting[: reply_marks.LONGEST_OPENING])

    def _begin_marked_line(self, start: str) -> list[StreamEvent] | None:
        """Read the mark or edit at the beginning of a line. It must be within `start`,
        the first part of the waiting text.
        """
        if reply_marks.EDIT_BEGINS.match(start):
            self._state = _State.EDIT
            return []
        mark = reply_marks.OPENING.match(start)
        if mark is not None and self._state is _State.PROSE:
            return self._begin_mark(mark)
        late_end = reply_marks.LATE_END_LINE.match(start)
        if late_end and not self.has_thoughts:
            return self._end_late(late_end.end())
        is_whole = "\n" in start or len(start) == reply_marks.LONGEST_OPENING
        if not is_whole and reply_marks.may_begin(start):
            return None
        self._place = _Place.IN_LINE
        return []

    def _begin_mark(self, mark: re.Match[str]) -> list[StreamEvent]:
        if mark["late_end"] and self.has_thoughts:
            self._place = _Place.IN_LINE
            return []
        if mark["call"] and not self._has_tools:
            self._state = _State.EDIT
            return []
        if mark["late_end"]:
            self._place = _Place.BEHIND_MARK
            return self._end_late(mark.end())
        self._waiting = self._waiting[mark.end() :]
        if mark["call"]:
            self._state, self._end_mark = _State.CALL, reply_marks.CALL_END
            return []
        self.has_thoughts = True
        is_answer = (mark["channel"] or "").lower() == "final" or mark["answer"]
        if not is_answer:
            self._state = _State.THOUGHTS
            self._end_mark = reply_marks.end_of_thoughts(mark)
        return []

    def _end_late(self, end: int) -> list[StreamEvent]:
        self._waiting = self._waiting[end:]
        self._state = _State.PROSE
        self.has_thoughts = True
        self._calls.clear()
        self.blocks.clear()
        return [WasThought()]

    def _read_to_end_mark(self) -> list[StreamEvent] | None:
        mark = self._end_mark.search(self._waiting)
        if mark is None:
            partial = reply_marks.PARTIAL_END.search(self._waiting)
            certain = partial.start() if partial else len(self._waiting)
            text, self._waiting = self._waiting[:certain], self._waiting[certain:]
            return self._read_hidden(text) if text else None
        events = self._read_hidden(self._waiting[: mark.start()])
        self._waiting = self._waiting[mark.end() :]
        if self._state is _State.CALL and reply_marks.ends_in_a_value(
            "".join(self._hidden)
        ):
            self._hidden.append(mark[0])
            return []
        self._place = _Place.BEHIND_MARK if mark[0] else _Place.LINE_START
        if self._state is _State.CALL:
            self._end_call()
        self._state = _State.PROSE
        return events

    def _read_hidden(self, text: str) -> list[StreamEvent]:
        if self._state is _State.CALL:
            self._hidden.append(text)
            return []
        return [ThoughtDelta(text)] if text else []

    def _begin_block(self, line: str) -> None:
        """Begin the code block that a line opens. A line of inline code is text."""
        self._place = _Place.IN_LINE
        if self._state is _State.PROSE:
            self._state = _State.AFTER_BLOCK
        fence = _Fence.parse(line)
        if fence is None:
            return
        self._fence, self._state_below = fence, self._state
        if fence.info not in self._hidden_infos:
            self._state = _State.BLOCK
            return
        self._state, self._place = _State.HIDDEN_BLOCK, _Place.LINE_START
        self._waiting = self._waiting.partition("\n")[2]

    def _begin_line_of_block(self) -> list[StreamEvent] | None:
        line, newline, rest = self._waiting.partition("\n")
        if self._fence.may_be_closed_by(line) and not newline:
            return None
        if not self._fence.is_closed_by(line):
            self._place = _Place.IN_LINE
        elif self._state is _State.BLOCK:
            self._state, self._place = self._state_below, _Place.IN_LINE
        else:
            self._waiting = rest
            self._end_hidden_block()
        return []

    def _read_last_fence(self, line: str) -> None:
        if self._state is _State.HIDDEN_BLOCK and self._fence.is_closed_by(line):
            self._waiting = ""
        elif self._state in _TEXT_STATES and _FENCE.match(line):
            self._begin_block(line)

    def _end_hidden_block(self) -> None:
        self.blocks.append((self._fence.info, "".join(self._hidden)))
        self._hidden.clear()
        self._state = self._state_below

    def _end_call(self) -> None:
        self._calls.append("".join(self._hidden))
        self._hidden.clear()
        self._state = _State.PROSE


def text_of(events: Iterable[StreamEvent]) -> str:
    """Join the text of events, without thoughts."""
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def without_blocks(text: str, info: str) -> str:
    """Remove the code blocks of an info string from a whole text."""
    stream = ReplyStream(has_marks=False, hidden_blocks=(info,))
    return text_of(stream.feed(text) + stream.end())
