"""Finds tool calls in the text of a reply.

A call that changes files becomes edits. Any other refuses the reply, because calls in
text are not made. Text in a file, a `text` block, backticks or a sentence is no call.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import accumulate, zip_longest

from msgspec import Struct

from cdd_agent.changes.formats.call_dialects import (
    DIALECTS,
    LONE_CLOSING,
    LONE_OPENING,
    CallDialect,
    read_calls,
)
from cdd_agent.changes.formats.call_meanings import (
    CallRefused,
    changes_files,
    edits_of_call,
    is_known_tool,
    shown_name,
)
from cdd_agent.changes.formats.call_readers import (
    BrokenCall,
    CutCall,
    WrittenCall,
    python_calls,
)
from cdd_agent.changes.formats.fences import Fence
from cdd_agent.changes.formats.form import Form, Span
from cdd_agent.changes.formats.project_names import ProjectNames
from cdd_agent.changes.formats.shell_blocks import shell_changes
from cdd_agent.changes.model import (
    BlockFate,
    Edit,
    ReplyBlock,
    ReplyFault,
    ReplyRefused,
)
from cdd_agent.changes.reply.layout import Layout, lay_out
from cdd_agent.pattern import Pattern

_CUT = "is never closed: the reply seems to be cut"
_UNREADABLE = "cannot be read"
_IN_SENTENCE = "has a call within a sentence: it is unclear whether it is meant"
_TOOL_LANGUAGES = {
    *("tool", "tools", "tool_call", "tool_calls", "tool_use", "tool_code"),
    *("function", "functions", "function_call", "function_calls", "call", "invoke"),
}
"""Languages of code blocks that are calls."""
_MARKUP = {"", "xml", "html", "json", "jsonc", "json5"}
"""Languages of code blocks that may be calls or examples."""
_LANGUAGES_OF_CALLS = _MARKUP | _TOOL_LANGUAGES
_LONE = Pattern(f"{LONE_OPENING.pattern}|{LONE_CLOSING.pattern}")
_FIRST_SIGN = Pattern(r"[<\[{]|Action:|functools|to=functions")
"""Every beginning of a call contains one of these."""
_MOST_LAYOUTS = 100
"""Most calls with a stray fence mark: each re-pairs all later fences."""
_LONG = 200
"""Characters to inspect at each end of a line."""
_QUOTED = Pattern(r"[^\S\n]*>")
_COMMENTS = Pattern(r"<!--.*?-->", re.DOTALL)
WITHOUT_TOOLS = (
    "Calls in the text of a reply are not seen. Give each file as a code block whose"
    " info string is `language:path`, and each change as a search/replace block below"
    " the file's path. The check runs by itself."
)
WITH_TOOLS = (
    "Calls in the text of a reply are not seen. Make each call through the tool"
    " interface."
)
IN_SHELL = (
    "Shell commands in a reply are not run. Give each file as a code block whose info"
    " string is `language:path`, and each change as a search/replace block below the"
    " file's path. A file is deleted by `*** Delete File: path`, and renamed by"
    " `*** Update File: path` and `*** Move to: path`, in a patch."
)


def lay_out_with_calls(
    lines: Sequence[str], project_names: ProjectNames, forms: Sequence[Form]
) -> Layout:
    """Find the blocks and calls of a reply. Raises `ReplyRefused` as `lay_out`."""

    def lay_out_around(calls: Sequence[Span]) -> Layout:
        return lay_out(lines, project_names, forms, calls)

    search = _Search(lines, project_names, lay_out_around)
    calls = _find_calls(search, project_names)
    return lay_out_around(calls) if calls else search.layout


def _find_calls(search: "_Search", project_names: ProjectNames) -> list[Span]:
    calls = search.find()
    if not project_names.has_tools:
        calls += search.find_shell_changes(calls)
    calls += search.find_lone_marks(calls)
    calls.sort(key=lambda one: one.begin)
    groups: list[list[_Found]] = []
    for one in calls:
        if groups and search.line_of(one.begin) <= search.last_line_of(groups[-1][-1]):
            groups[-1].append(one)
        else:
            groups.append([one])
    return [_as_span(search, group, project_names) for group in groups]


class _Found(Struct, frozen=True):
    """Calls written together. `end` is exclusive."""

    begin: int
    end: int
    calls: tuple[WrittenCall, ...] = ()
    problem: str = ""
    """Why they cannot be carried out."""
    hint: str = ""
    """Advice, if the problem is not about a call."""
    is_plain: bool = False
    """True without a mark: other text may look alike."""


class _TakenText(Struct, frozen=True):
    """A code block or another edit: no call begins inside."""

    begin: int
    end: int
    fence: Fence | None = None


def _read_python_block(block: _TakenText, fence: Fence) -> _Found:
    calls = tuple(python_calls(fence.content))
    if calls:
        return _Found(block.begin, block.end, calls)
    problem = _UNREADABLE if fence.is_closed else _CUT
    return _Found(block.begin, block.end, problem=problem)


class _Search:
    """Searches a reply for calls, from its beginning. If calls, code blocks and edits
    overlap, the first counts.
    """

    def __init__(
        self,
        lines: Sequence[str],
        project_names: ProjectNames,
        lay_out_around: Callable[[Sequence[Span]], Layout],
    ) -> None:
        """`lay_out_around` finds the blocks outside of these calls."""
        self.project_names, self._lay_out_around = project_names, lay_out_around
        self.text = "\n".join(lines)
        self._starts = [0, *accumulate(len(line) + 1 for line in lines)]
        self._ticks = [tick.start() for tick in re.finditer("`", self.text)]
        self._next: dict[str, re.Match[str] | None] = {}
        self._blocks: list[_TakenText] = []
        self._passed = 0
        """The number of blocks before the current place."""
        self.layout = self._find_blocks([])

    def line_of(self, place: int) -> int:
        """Return the line of an offset, from 0."""
        return bisect_right(self._starts, place) - 1

    def last_line_of(self, call: _Found) -> int:
        return self.line_of(max(call.begin, call.end - 1))

    def find(self) -> list[_Found]:
        calls: list[_Found] = []
        place = layouts = 0
        is_stale = False
        while (one := self._find_next(place)) is not None:
            calls.append(one)
            place = one.end
            inner = self._blocks_in(one)
            is_stale = is_stale or bool(inner)
            line_end = self._starts[self.last_line_of(one) + 1]
            if any(block.end > line_end for block in inner):
                # fences in a call are its text, so later ones pair differently
                layouts += 1
                if layouts > _MOST_LAYOUTS:
                    raise self._unclear(calls)
                self.layout = self._find_blocks(calls)
                is_stale = False
        if is_stale:
            self.layout = self._find_blocks(calls)
        return calls

    def _blocks_in(self, call: _Found) -> list[_TakenText]:
        first, last = (
            bisect_right(self._blocks, place, key=lambda block: block.begin)
            for place in (call.begin, call.end - 1)
        )
        return self._blocks[first:last]

    def _unclear(self, calls: Sequence[_Found]) -> ReplyRefused:
        reason = "It is unclear which code blocks of the reply are in its calls."
        blocks = tuple(
            ReplyBlock(
                self.line_of(one.begin) + 1,
                self.last_line_of(one) + 1,
                "call",
                BlockFate.REFUSED,
                reason=reason,
            )
            for one in calls
        )
        return ReplyRefused(
            reason,
            hint=WITHOUT_TOOLS,
            fault=ReplyFault.CALLS_IN_TEXT,
            blocks=blocks,
        )

    def find_shell_changes(self, calls: Sequence[_Found]) -> list[_Found]:
        changing: list[_Found] = []
        given: set[str] | None = None
        for block, following in zip_longest(self._blocks, self._blocks[1:]):
            holds_edits = following is not None and following.begin < block.end
            if block.fence is None or holds_edits:
                continue
            changes = shell_changes(block.fence, self.project_names)
            if not changes:
                continue
            if given is None:
                given = self._given_paths(calls)
            lost = [
                change.path
                for change in changes
                if change.is_edit or change.path not in given
            ]
            if lost:
                problem = f"has shell commands that change {lost[0]}"
                begin, end = block.begin, block.end
                changing.append(_Found(begin, end, problem=problem, hint=IN_SHELL))
        return changing

    def _given_paths(self, calls: Sequence[_Found]) -> set[str]:
        paths = {block.fence.path for block in self._blocks if block.fence}
        edits: list[Edit] = []
        for span in (*self.layout.marked, *self.layout.in_prose):
            with suppress(ReplyRefused):
                edits += span.read(span.path)
        for call in (call for one in calls for call in one.calls):
            with suppress(ReplyRefused, CallRefused):
                edits += edits_of_call(call)
        return {path for path in paths if path} | {edit.path for edit in edits}

    def find_lone_marks(self, calls: Sequence[_Found]) -> list[_Found]:
        """Return marks outside of calls: a call was unreadable, or its text looked like
        its end.
        """
        lone = []
        for gap_begin, gap_end in self._gaps(calls):
            for mark in _LONE.finditer(self.text, gap_begin, gap_end):
                before, after = (
                    _LONE.sub("", words).strip() for words in self._around(*mark.span())
                )
                is_closing = LONE_CLOSING.fullmatch(mark[0]) is not None
                is_alone = not after and (is_closing or not before)
                if is_alone and not self._is_quoted(mark.start()):
                    problem = (
                        f"has a mark of a call, and no whole call: `{mark[0][:80]}`"
                    )
                    lone.append(_Found(*mark.span(), problem=problem))
        return lone

    def _gaps(self, calls: Sequence[_Found]) -> Iterator[tuple[int, int]]:
        """Yield the spans of text outside of calls and blocks."""
        spans = [(one.begin, one.end) for one in calls]
        spans += [(block.begin, block.end) for block in self._blocks]
        place = 0
        for begin, end in sorted(spans):
            if begin > place:
                yield place, begin
            place = max(place, end)
        yield place, len(self.text)

    def _find_blocks(self, earlier_calls: Sequence[_Found]) -> Layout:
        calls = [
            Span(self.line_of(one.begin), self.last_line_of(one) + 1, _no_edits)
            for one in earlier_calls
        ]
        layout = self._lay_out_around(calls)
        blocks = [self._block(fence.start, fence.end, fence) for fence in layout.fences]
        for span in (*layout.marked, *layout.in_prose):
            if span.read is not _no_edits:
                blocks.append(self._block(span.start, span.end))
        self._blocks = sorted(blocks, key=lambda block: block.begin)
        self._passed = 0
        return layout

    def _block(self, start: int, end: int, fence: Fence | None = None) -> _TakenText:
        return _TakenText(self._starts[start], self._starts[end], fence)

    def _find_next(self, place: int) -> _Found | None:
        while True:
            block = self._next_block(place)
            gap_end = block.begin if block else len(self.text)
            dialect, begin = None, None
            if _FIRST_SIGN.search(self.text, place, max(place, gap_end)):
                dialect, begin = self._next_beginning(place)
            if begin is not None and begin.start() >= gap_end:
                begin = None
            if dialect is not None and begin is not None:
                is_quoted = self._is_quoted(begin.start())
                call = None if is_quoted else self._read(dialect, begin)
                place = begin.start() + 1
            elif block is not None:
                call = self._read_block(block)
                place = block.end
            else:
                return None
            if call is not None:
                return call

    def _next_block(self, place: int) -> _TakenText | None:
        """Return the first block that ends after `place`, which must not decrease."""
        while self._passed < len(self._blocks):
            block = self._blocks[self._passed]
            if block.end > place:
                return block
            self._passed += 1
        return None

    def _next_beginning(
        self, place: int
    ) -> tuple[CallDialect | None, re.Match[str] | None]:
        first: tuple[CallDialect | None, re.Match[str] | None] = None, None
        for dialect in DIALECTS:
            begin = self._next.get(dialect.name)
            is_known = dialect.name in self._next
            if not is_known or (begin is not None and begin.start() < place):
                begin = dialect.begin.search(self.text, place)
                self._next[dialect.name] = begin
            if begin is None:
                continue
            if first[1] is None or begin.start() < first[1].start():
                first = dialect, begin
        return first

    def _read(self, dialect: CallDialect, begin: re.Match[str]) -> _Found | None:
        """None if the text only resembles calls."""
        is_plain = not dialect.has_mark
        try:
            calls, end = read_calls(dialect, self.text, begin)
        except (CutCall, BrokenCall) as error:
            if isinstance(error, BrokenCall) and self._is_in_sentence(begin):
                return None
            # the end is unknown
            problem = _CUT if isinstance(error, CutCall) else _UNREADABLE
            size = len(self.text)
            return _Found(begin.start(), size, problem=problem, is_plain=is_plain)
        before, after = self._around(begin.start(), end)
        if not calls:
            return None
        if before and after and "\n" not in self.text[begin.start() : end]:
            if not any(changes_files(call.name) for call in calls):
                return None
            return _Found(begin.start(), end, problem=_IN_SENTENCE)
        return _Found(begin.start(), end, tuple(calls), is_plain=is_plain)

    def _read_block(self, block: _TakenText) -> _Found | None:
        """None if the code block is not made of calls."""
        fence = block.fence
        if fence is None or fence.path is not None:
            return None
        if fence.language == "tool_code":
            return _read_python_block(block, fence)
        if fence.language not in _LANGUAGES_OF_CALLS:
            return None
        if not _FIRST_SIGN.search(fence.content):
            return None
        lines = fence.content.split("\n")
        inner = _Search(
            lines, self.project_names, partial(lay_out, lines, self.project_names, ())
        )
        inner_calls = inner.find()
        rest = inner.text
        for one in reversed(inner_calls):
            rest = rest[: one.begin] + rest[one.end :]
        if not inner_calls or _COMMENTS.sub("", rest).strip():
            return None
        calls = [call for one in inner_calls for call in one.calls]
        is_plain = any(one.is_plain for one in inner_calls)
        is_known = all(is_known_tool(call.name) for call in calls)
        if is_plain and not is_known and fence.language not in _TOOL_LANGUAGES:
            return None
        problem = next((one.problem for one in inner_calls if one.problem), "")
        return _Found(block.begin, block.end, tuple(calls), problem)

    def _around(self, begin: int, end: int) -> tuple[str, str]:
        first = self.line_of(begin)
        last = self.line_of(max(begin, end - 1))
        before = self._ends_of(self._starts[first], begin)
        after = self._ends_of(end, self._starts[last + 1] - 1)
        return before.strip(), after.strip()

    def _ends_of(self, begin: int, end: int) -> str:
        if end - begin <= 2 * _LONG:
            return self.text[begin:end]
        return self.text[begin : begin + _LONG] + self.text[end - _LONG : end]

    def _is_in_sentence(self, begin: re.Match[str]) -> bool:
        before, after = self._around(begin.start(), begin.start())
        return bool(before) and after[-1:] not in set("]}>`")

    def _is_quoted(self, place: int) -> bool:
        start = self._starts[self.line_of(place)]
        ticks = bisect_left(self._ticks, place) - bisect_left(self._ticks, start)
        return ticks % 2 == 1 or _QUOTED.match(self.text, start, place) is not None


def _no_edits(path: str | None) -> list[Edit]:
    del path
    return []


def _as_span(
    search: _Search, group: Sequence[_Found], project_names: ProjectNames
) -> Span:
    start = search.line_of(group[0].begin)
    end = search.last_line_of(group[-1]) + 1
    numbered = [(search.line_of(one.begin) + 1, one) for one in group]
    names = [f"{shown_name(call.name)}" for one in group for call in one.calls]
    kind = f"call of {', '.join(names)}" if names else "part of a call"
    if group[0].hint:
        kind = "shell commands"
    read = partial(_edits, numbered, project_names)
    return Span(start, end, read, names_files=True, kind=kind)


def _edits(
    numbered: Sequence[tuple[int, _Found]],
    project_names: ProjectNames,
    path: str | None,
) -> list[Edit]:
    """Raises `ReplyRefused`."""
    del path
    hint = WITH_TOOLS if project_names.has_tools else WITHOUT_TOOLS
    edits: list[Edit] = []
    for number, numbered_call in numbered:
        if numbered_call.problem:
            words = f"The call in line {number} of the reply {numbered_call.problem}."
            if numbered_call.problem not in (_CUT, _UNREADABLE):
                words = f"Line {number} of the reply {numbered_call.problem}."
            raise ReplyRefused(
                words, hint=numbered_call.hint or hint, fault=ReplyFault.CALLS_IN_TEXT
            )
        for call in numbered_call.calls:
            try:
                edits += edits_of_call(call)
            except CallRefused as reason:
                name = shown_name(call.name)
                why = f": {reason}" if str(reason) else ", written as text"
                words = f"Line {number} of the reply is a call of `{name}`{why}."
                raise ReplyRefused(
                    words, hint=hint, fault=ReplyFault.CALLS_IN_TEXT
                ) from reason
    return edits
