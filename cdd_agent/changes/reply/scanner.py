"""Finds edits while a reply streams, line by line.

`parse_reply` decides what is applied once the reply is complete. The scanner shows
edits earlier, by the same rules for blocks and file names.
"""

import re
from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.changes.completeness import PROSE
from cdd_agent.changes.formats.diffs import (
    DiffHunk,
    begins_diff,
    ends_hunk,
    is_diff_header,
    names_follow,
    read_git_line,
    read_names,
)
from cdd_agent.changes.formats.fences import Fence, FenceOpening, line_above, name_fence
from cdd_agent.changes.formats.listed import Actions
from cdd_agent.changes.formats.naming import (
    DIFFS,
    find_mentioned_files,
    find_name_above_edits,
)
from cdd_agent.changes.formats.patches import (
    PATCH_BEGIN,
    PATCH_END,
    read_patched_file,
)
from cdd_agent.changes.formats.project_names import NO_PROJECT_NAMES, ProjectNames
from cdd_agent.changes.formats.search_replace import (
    SearchReplace,
    begins_replacement,
    ends_replacement,
    may_divide,
)
from cdd_agent.changes.model import (
    Replacement,
    ReplyRefused,
    TextReplacement,
    WholeFile,
)
from cdd_agent.changes.reply.lines import WRAPPER_LANGUAGES
from cdd_agent.changes.reply.parts import suffix
from cdd_agent.changes.reply.scanned_parts import (
    EditEnded,
    EditNote,
    EditStarted,
    HunkLine,
    HunkStarted,
    LineOfFile,
    LinesReplaced,
    ReplyPart,
    ReplyWords,
)
from cdd_agent.pattern import Pattern

_MOST_LINES = 400
"""Longest search/replace block, in lines, that is compared."""
_MOST_TEXT = 60_000
"""The same limit in characters."""
_LONGEST_NAME = 160
"""Longest line, in characters, that can be only a name."""
_MOST_BLANKS = 20
"""Most blank lines at the beginning of a code block."""
_MOST_AWAITED = 50
"""Most lines that wait for a later one."""
_RECENT = 4
"""Lines above a block to remember: those that can name its file, and one more."""
_LIST_MARK = Pattern(r"[\s>]*(?:[-*+]|\d{1,9}[.)])\s+(?=`{3}|~{3})")
_DECORATION = " \t#*`:>_\"'/-"
_HUNK_HEAD = Pattern(r"@@+[^@]*(?:@@+)?\s?(?P<section>.*)")
_MOVE = Pattern(r"\*\*\* Move to:\s*(?P<path>.*\S)")
_NOWHERE = "/dev/null"


_END = EditEnded()
_LISTS = Actions()


class OpenReplacement(Struct):
    """A search/replace block that is not complete."""

    path: str | None
    lines: list[str]
    size: int = 0
    is_new: bool = False
    """True below the divider of a block too long to compare."""
    is_long: bool = False

    def read(self, project_names: ProjectNames) -> LinesReplaced | None:
        """Return the lines so far; None if unreadable."""
        lines = list(self.lines)
        is_complete = len(lines) > 1 and ends_replacement(lines[-1])
        if not is_complete:
            if not any(map(may_divide, lines)):
                lines.append("=" * len(re.findall(r"[<-]{5,9}", lines[0])[0]))
            lines.append(">>>>>>> REPLACE")
        span = SearchReplace().marked(lines, project_names)[0]
        try:
            (edit,) = span.read(span.path or self.path or "file")
        except ReplyRefused:
            return None
        if isinstance(edit, Replacement):
            return LinesReplaced(edit.find, edit.replace, is_complete)
        assert isinstance(edit, WholeFile)
        return LinesReplaced((), tuple(edit.content.splitlines()), is_complete)


class ReplyScanner:
    """Turns the lines of a reply into words and edits.

    A line waits only if a later line decides its meaning.
    """

    def __init__(self, project_names: ProjectNames = NO_PROJECT_NAMES) -> None:
        self._project_names = project_names
        self._waiting: list[str] = []
        self._parts: list[ReplyPart] = []
        self._read: Callable[[bool], int] = self._read_words
        """Reads waiting lines and returns their number; 0 if it needs more. Its
        argument is true at the end of the reply.
        """
        self._recent: list[str] = []
        """The last lines of words since the last block."""
        self._name_lines: list[str] = []
        """Lines that only name the file of the next block."""
        self._is_first = True
        """True until the first non-blank line."""
        self._path: str | None = None
        """The file of the last search/replace block."""
        self._mentioned: set[str] = set()
        """Files mentioned since that block."""
        self._opening: FenceOpening | None = None
        """The current code block."""
        self._opening_line = ""
        self._is_wrapper = False
        """True in a block that may wrap the whole reply."""
        self._may_hold_edits = True
        """False in prose files, which may explain edits."""
        self._edit_path: str | None = None
        """Empty if the edit's file is unnamed; None outside of edits."""
        self._list_fence: Fence | None = None
        self._list: list[str] = []
        """The lines of a list of actions, which is read as a whole."""
        self._hunk: DiffHunk | None = None
        self._has_names = False
        self.replacement: OpenReplacement | None = None
        """The block being written."""

    @property
    def waiting(self) -> list[str]:
        """Lines that are not part of the result yet."""
        is_open = self._read in (self._read_fence_start, self._read_list)
        opening = [self._opening_line] if is_open else []
        return [*self._name_lines, *opening, *self._list, *self._waiting]

    def take(self, line: str, *, is_long: bool = False) -> list[ReplyPart]:
        """Accept a line without its end. The beginning of a long line does not wait."""
        if self._is_first:
            line = line.removeprefix("\ufeff")
        if is_long:
            self._advance_to_end()
            if self._read == self._read_words:
                self._add_words(line)
                return self._take_parts()
        self._waiting.append(line)
        return self._advance(is_end=is_long)

    def note_more(self, count: int) -> list[ReplyPart]:
        """Note the omitted length of a long line."""
        note = f"… {count:,} more characters"
        if not count:
            return []
        if self.replacement is not None and not self.replacement.is_long:
            self.replacement.lines[-1] += f" {note}"
            return []
        return [EditNote(note)]

    def read_replacement(self, rest: str) -> tuple[str, LinesReplaced]:
        """Return the file and the lines so far of the current block. `rest` is an
        incomplete line.
        """
        block = self.replacement
        assert block is not None
        if rest:
            block = OpenReplacement(block.path, [*block.lines, rest])
        replaced = block.read(self._project_names) or LinesReplaced((), (), False)
        return block.path or "", replaced

    def finish(self) -> list[ReplyPart]:
        """Return the remaining parts at the end of the reply."""
        self._advance_to_end()
        if self.replacement is not None:
            self._finish_replacement(self.replacement)
        if self._list:
            self._show_list()
        if self._read == self._read_fence_start:
            self._start_fence_of_words()
        self._show_name_lines()
        self._end_edit()
        return self._take_parts()

    def _advance(self, *, is_end: bool) -> list[ReplyPart]:
        if is_end or len(self._waiting) > _MOST_AWAITED:
            self._advance_to_end()
            return self._take_parts()
        while self._waiting:
            count = self._read(False)
            if not count:
                break
            del self._waiting[:count]
        return self._take_parts()

    def _advance_to_end(self) -> None:
        while self._waiting:
            del self._waiting[: self._read(True)]

    def _take_parts(self) -> list[ReplyPart]:
        parts, self._parts = self._parts, []
        return parts

    # --- words

    def _read_words(self, is_end: bool) -> int:
        lines = self._waiting
        line = lines[0]
        if self._starts_by_mark(line):
            return 1
        if line.startswith("--- ") and len(lines) < 2 and not is_end:
            return 0
        if begins_diff(lines, 0):
            self._start_diff(None)
            return self._read(is_end)
        opening = _parse_opening(line)
        if opening is not None:
            self._start_fence(opening, line)
            return 1
        count = self._count_name_lines(is_end)
        if count is None:
            return 0
        if count:
            self._remember(lines[:count])
            self._show_name_lines()
            self._name_lines = lines[:count]
            return count
        self._add_words(line)
        return 1

    def _starts_by_mark(self, line: str) -> bool:
        """Start a search/replace block or a patch. False if the line is not a first
        mark.
        """
        if begins_replacement(line):
            self._start_replacement(line, self._name_above())
            return True
        if line.strip() == PATCH_BEGIN:
            self._show_name_lines()
            self._leave_words()
            self._read = self._read_patch
            return True
        return False

    def _count_name_lines(self, is_end: bool) -> int | None:
        """Count the lines up to a block whose file the first one names; 0 if it does
        not. None if the next line decides.
        """
        lines = self._waiting
        if not _is_name(lines[0], self._project_names):
            return 0
        for place in range(1, len(lines)):
            if not lines[place].strip():
                continue
            is_block = begins_replacement(lines[place]) or _parse_opening(lines[place])
            return place if is_block else 0
        return 0 if is_end or len(lines) > 2 else None

    def _add_words(self, line: str) -> None:
        self._remember([line])
        self._show_words(line)
        if line.strip():
            self._is_first = False

    def _remember(self, lines: Sequence[str]) -> None:
        """Remember words that may be about the next block."""
        self._recent = [*self._recent, *lines][-_RECENT:]
        if self._path is not None:
            for line in lines:
                mentioned = find_mentioned_files(line, self._project_names)
                self._mentioned.update(mentioned)

    def _show_words(self, line: str) -> None:
        self._show_name_lines()
        self._parts.append(ReplyWords(f"{line}\n"))

    def _show_name_lines(self) -> None:
        lines, self._name_lines = self._name_lines, []
        self._parts += [ReplyWords(f"{line}\n") for line in lines]

    def _leave_words(self) -> None:
        self._recent, self._is_first = [], False

    def _name_above(self) -> str | None:
        """Return the file named by the last line, or that of the last block if no other
        was mentioned since.
        """
        for line in reversed(self._recent):
            if line.strip():
                named = find_name_above_edits(line, self._project_names)
                if named:
                    return named
                break
        path = self._path
        if path is None or not self._mentioned:
            return path
        return path if any(map(path.endswith, self._mentioned)) else None

    # --- edits

    def _start_edit(self, started: EditStarted) -> None:
        self._end_edit()
        if _bare(self._name_lines[0] if self._name_lines else "") == started.path:
            self._name_lines = []
        self._show_name_lines()
        self._leave_words()
        self._parts.append(started)
        self._edit_path = started.path

    def _end_edit(self) -> None:
        if self._edit_path is not None:
            self._parts.append(_END)
        self._edit_path = None

    def _end_block(self) -> None:
        """Continue in the code block around the edit, or in prose."""
        self._end_edit()
        is_fenced = self._opening is not None
        self._read = self._read_behind_edit if is_fenced else self._read_words

    # --- search/replace blocks

    def _start_replacement(self, line: str, path: str | None) -> None:
        span = SearchReplace().marked([line], self._project_names)[0]
        path = span.path or path
        self._path, self._mentioned = path, set()
        self.replacement = OpenReplacement(path, [line])
        self._read = self._read_replacement

    def _read_replacement(self, is_end: bool) -> int:
        block = self.replacement
        assert block is not None
        line = self._waiting[0]
        if begins_replacement(line):
            self._finish_replacement(block)
            return self._read(is_end)
        if block.is_long:
            self._add_long(block, line)
        else:
            block.lines.append(line)
            block.size += len(line)
        if ends_replacement(line):
            self._finish_replacement(block)
        elif len(block.lines) > _MOST_LINES or block.size > _MOST_TEXT:
            self._start_edit(EditStarted(block.path or ""))
            block.is_long = True
            lines, block.lines, block.size = block.lines[1:], block.lines[:1], 0
            for earlier in lines:
                self._add_long(block, earlier)
        return 1

    def _add_long(self, block: OpenReplacement, line: str) -> None:
        """Show a line of a block too long to compare."""
        if ends_replacement(line):
            return
        if may_divide(line) and not block.is_new:
            block.is_new = True
        else:
            self._parts.append(HunkLine("+" if block.is_new else "-", line))

    def _finish_replacement(self, block: OpenReplacement) -> None:
        self.replacement = None
        if not block.is_long:
            self._start_edit(EditStarted(block.path or ""))
            replaced = block.read(self._project_names)
            if replaced is not None:
                self._parts.append(replaced)
            else:
                self._parts.append(HunkStarted())
                for line in block.lines:
                    self._add_refused(block, line)
        self._end_block()

    def _add_refused(self, block: OpenReplacement, line: str) -> None:
        """Show a line of an unreadable block, including marks."""
        if begins_replacement(line) or ends_replacement(line) or may_divide(line):
            block.is_new = block.is_new or may_divide(line)
            self._parts.append(EditNote(line))
        else:
            self._parts.append(HunkLine("+" if block.is_new else "-", line))

    # --- code blocks

    def _start_fence(self, opening: FenceOpening, line: str) -> None:
        self._is_wrapper = (
            self._is_first and opening.info.strip().lower() in WRAPPER_LANGUAGES
        )
        self._opening, self._opening_line = opening, line
        self._read = self._read_fence_start

    def _read_fence_start(self, is_end: bool) -> int:
        """Decide by its first lines what the code block holds."""
        lines, opening = self._waiting, self._opening
        assert opening is not None
        start = next((at for at, line in enumerate(lines) if line.strip()), len(lines))
        if start == len(lines):
            if not is_end and start < _MOST_BLANKS:
                return 0
            start = 0
        first = lines[start]
        is_name = find_name_above_edits(first, self._project_names) is not None
        needs_next = is_name or first.startswith("---")
        if needs_next and len(lines) < start + 2 and not is_end:
            return 0
        fence = self._name_fence(opening, "" if self._closes(first) else first)
        count = self._start_content(fence, start, is_end=is_end)
        self._is_first = False
        return count

    def _name_fence(self, opening: FenceOpening, first: str) -> Fence:
        """Name the block by its info string, the line above or its first line."""
        above, is_apart = line_above(self._recent, 0, len(self._recent))
        content = f"{_without(opening.container, first)}\n"
        fence = Fence(0, 0, opening.mark, "", None, content, False, opening.info)
        return name_fence(fence, above, is_apart, self._project_names)

    def _start_content(self, fence: Fence, start: int, *, is_end: bool) -> int:
        """Return the number of lines read."""
        lines = self._waiting
        first = lines[start]
        self._recent = []
        self._path, self._mentioned = fence.path or fence.above, set()
        self._may_hold_edits = not (
            fence.path and fence.info.strip() and suffix(fence.path) in PROSE
        )
        if begins_replacement(first):
            self._start_replacement(first, self._path)
            return start + 1
        following = lines[start + 1] if start + 1 < len(lines) else ""
        if self._starts_below_name(first, following):
            return start + 2
        if self._is_patch(fence, first):
            self._read = self._read_patch
            return start or self._read(is_end)
        if self._is_diff(fence, lines, start):
            self._start_diff(fence.path)
            return start or self._read(is_end)
        self._start_file(fence, lines[start:])
        return self._read(is_end)

    def _starts_below_name(self, first: str, following: str) -> bool:
        """Start a search/replace block. False unless a file name and a first mark
        follow.
        """
        if not begins_replacement(following):
            return False
        named = find_name_above_edits(first, self._project_names)
        if not named:
            return False
        if _bare(first) != named:
            self._show_words(first)
        self._start_replacement(following, named)
        return True

    def _start_file(self, fence: Fence, lines: Sequence[str]) -> None:
        """Start a whole file, a list of actions, or words."""
        if fence.path is not None:
            self._start_edit(EditStarted(fence.path, fence.language))
            self._read = self._read_file
        elif _LISTS.accepts(replace(fence, content="\n".join(lines))):
            self._list_fence, self._read = fence, self._read_list
        else:
            self._start_fence_of_words()

    def _start_fence_of_words(self) -> None:
        self._show_words(self._opening_line)
        self._read = self._read_fence_words

    def _is_patch(self, fence: Fence, first: str) -> bool:
        if fence.is_file_of_diffs:
            return False
        bare = first.strip()
        return bare == PATCH_BEGIN or read_patched_file(bare) is not None

    def _is_diff(self, fence: Fence, lines: Sequence[str], start: int) -> bool:
        if fence.is_file_of_diffs:
            return False
        is_named_diff = begins_diff(lines, start) or lines[start].startswith("Index: ")
        return is_named_diff or fence.language in DIFFS

    def _closes(self, line: str, *, is_diff: bool = False) -> bool:
        """True for the end of the code block. In a diff, an indented fence is a line of
        the file.
        """
        opening = self._opening
        if opening is None or not opening.is_closed_by(line):
            return False
        indent = len(line) - len(line.lstrip())
        return indent <= len(opening.container) + (0 if is_diff else 3)

    def _close(self) -> None:
        self._show_name_lines()
        self._end_edit()
        self._opening = self._path = None
        self._read = self._read_words

    def _read_file(self, is_end: bool) -> int:
        del is_end
        line, opening = self._waiting[0], self._opening
        assert opening is not None
        if self._closes(line):
            self._close()
        elif not (self._may_hold_edits and self._starts_edit_in_fence(line)):
            self._parts.append(LineOfFile(_without(opening.container, line)))
        return 1

    def _read_fence_words(self, is_end: bool) -> int:
        line, opening = self._waiting[0], self._opening
        assert opening is not None
        if self._closes(line):
            self._show_words(line)
            self._close()
            return 1
        inner = FenceOpening.parse(line) if self._is_wrapper else None
        if inner is not None and inner.info.strip():
            self._end_fence_of_words(opening)
            self._close()
            return self._read(is_end)
        if self._is_mark(line):
            self._end_fence_of_words(opening)
            self._starts_edit_in_fence(line)
            return 1
        self._show_words(line)
        if self._is_wrapper:
            self._remember([line])
        return 1

    def _end_fence_of_words(self, opening: FenceOpening) -> None:
        """Close the block in Markdown, because an edit follows."""
        closing = opening.mark.replace("<", "</", 1)
        self._parts.append(ReplyWords(f"{opening.container}{closing}\n"))

    def _is_mark(self, line: str) -> bool:
        return begins_replacement(line) or line.strip() == PATCH_BEGIN

    def _starts_edit_in_fence(self, line: str) -> bool:
        if not self._is_mark(line):
            return False
        self._end_edit()
        return self._starts_by_mark(line)

    def _read_behind_edit(self, is_end: bool) -> int:
        """Read the lines between and after the edits of a code block."""
        lines = self._waiting
        line = lines[0]
        if self._closes(line):
            self._close()
            return 1
        if self._starts_edit_in_fence(line) or not line.strip():
            return 1
        if find_name_above_edits(line, self._project_names):
            if len(lines) < 2 and not is_end:
                return 0
            if len(lines) > 1 and begins_replacement(lines[1]):
                self._recent = [line]
                if _bare(line) != self._name_above():
                    self._show_words(line)
                return 1
        self._start_fence_of_words()
        return self._read(is_end)

    # --- lists of actions

    def _read_list(self, is_end: bool) -> int:
        del is_end
        line = self._waiting[0]
        if self._closes(line):
            if not self._add_actions():
                self._show_list()
                self._show_words(line)
            self._list = []
            self._close()
        elif len(self._list) > _MOST_LINES or len(line) > _MOST_TEXT // _MOST_LINES:
            self._show_list()
            self._show_words(line)
        else:
            self._list.append(line)
        return 1

    def _add_actions(self) -> bool:
        """Show the edits of a list of actions. False if it is unreadable."""
        assert self._list_fence is not None
        content = "".join(f"{line}\n" for line in self._list)
        try:
            edits = _LISTS.read(replace(self._list_fence, content=content))
        except ReplyRefused:
            return False
        for edit in edits:
            is_new = isinstance(edit, WholeFile) and edit.must_be_new
            self._start_edit(EditStarted(edit.path, note="new" if is_new else ""))
            if isinstance(edit, WholeFile):
                self._parts += map(LineOfFile, edit.content.splitlines())
            elif isinstance(edit, TextReplacement):
                find, new = edit.find.splitlines(), edit.replace.splitlines()
                self._parts.append(LinesReplaced(tuple(find), tuple(new)))
            self._end_edit()
        return True

    def _show_list(self) -> None:
        """Show an unreadable or long list unchanged."""
        self._start_fence_of_words()
        self._parts += [ReplyWords(f"{line}\n") for line in self._list]
        self._list = []

    # --- patches

    def _read_patch(self, is_end: bool) -> int:
        del is_end
        line = self._waiting[0]
        bare = line.strip()
        if self._closes(line, is_diff=True):
            self._close()
        elif bare == PATCH_END:
            self._end_block()
        elif file := read_patched_file(bare):
            kind, path = file
            note = {"Add": "new", "Delete": "deleted"}.get(kind, "")
            self._start_edit(EditStarted(path, note=note))
        elif bare in (PATCH_BEGIN, "*** End of File"):
            pass
        elif self._edit_path is None:
            self._show_words(line)
        elif move := _MOVE.fullmatch(bare):
            self._parts.append(EditNote(f"renamed to {move['path']}"))
        elif line.startswith("@@"):
            self._parts.append(HunkStarted(_section(line)))
        else:
            self._parts.append(_hunk_line(line))
        return 1

    # --- diffs

    def _start_diff(self, path: str | None) -> None:
        """Names in the diff override `path`."""
        self._hunk, self._has_names = None, False
        self._read = self._read_diff
        if path is None:
            return
        if self._opening is not None and not begins_diff(self._waiting, 0):
            self._start_edit(EditStarted(path))
            self._has_names = True

    def _read_diff(self, is_end: bool) -> int:
        if self._opening is not None:
            return self._read_fenced_diff(is_end)
        lines = self._waiting
        start = next((at for at, line in enumerate(lines) if line.strip()), len(lines))
        if start == len(lines) and not is_end:
            return 0
        is_part: bool | None = False
        if start < len(lines):
            is_part = self._continues_diff(start, is_end=is_end)
        if is_part is None:
            return 0
        if not is_part:
            self._end_edit()
            self._read = self._read_words
            return self._read(is_end)
        for _ in range(start if self._hunk else 0):
            self._add_hunk_line("")
        return start + self._add_diff_line(start)

    def _read_fenced_diff(self, is_end: bool) -> int:
        lines = self._waiting
        if self._closes(lines[0], is_diff=True):
            self._close()
            return 1
        if self._starts_edit_in_fence(lines[0]):
            return 1
        if lines[0].startswith("--- ") and len(lines) < 3 and not is_end:
            return 0
        return self._add_diff_line(0)

    def _continues_diff(self, place: int, *, is_end: bool) -> bool | None:
        """None if later lines decide."""
        lines, hunk = self._waiting, self._hunk
        line = lines[place]
        if line.startswith("--- ") and len(lines) < place + 3 and not is_end:
            return None
        is_name = line.startswith(("+++ ", "--- "))
        if hunk is not None and is_name and not hunk.is_over(lines, place):
            return True
        if _is_diff_head(lines, place):
            return True
        if hunk is None:
            return False
        is_over = ends_hunk(lines, place, hunk, is_below_blank=place > 0)
        if is_over is None:
            return False if is_end else None
        return not is_over

    def _add_diff_line(self, place: int) -> int:
        lines, hunk = self._waiting, self._hunk
        line = lines[place]
        if line.startswith("diff --git "):
            self._hunk, self._has_names = None, False
            self._start_edit(EditStarted(read_git_line(line).new))
            return 1
        is_between = hunk is None or hunk.is_over(lines, place)
        if names_follow(lines, place) and is_between:
            self._start_named(line, lines[place + 1])
            return 2
        if line.startswith("@@"):
            self._require_edit()
            self._hunk = DiffHunk.from_head(line)
            self._parts.append(HunkStarted(_section(line)))
        elif hunk is not None or (self._has_names and line[:1] in ("+", "-", " ")):
            self._add_hunk_line(line)
        else:
            self._add_line_above_hunks(line)
        return 1

    def _add_line_above_hunks(self, line: str) -> None:
        if self._edit_path is not None:
            self._add_diff_header(line)
        elif line[:1] in ("+", "-"):
            # a diff without names
            self._require_edit()
            self._has_names = True
            self._add_hunk_line(line)
        elif line.strip():
            self._show_words(line)

    def _start_named(self, old_line: str, new_line: str) -> None:
        old, new = read_names(old_line, new_line)
        note = "new" if old == _NOWHERE else "deleted" if new == _NOWHERE else ""
        path = old if new == _NOWHERE else new
        # git's own header line also names the file
        is_started = self._edit_path == path and not self._has_names
        if not is_started or self._hunk is not None:
            self._start_edit(EditStarted(path, note=note))
        self._hunk, self._has_names = None, True

    def _require_edit(self) -> None:
        if self._edit_path is None:
            self._start_edit(EditStarted(""))

    def _add_hunk_line(self, line: str) -> None:
        if self._hunk is not None:
            self._hunk.add(line)
            # only its counts are needed
            self._hunk.lines.clear()
        self._parts.append(_hunk_line(line))

    def _add_diff_header(self, line: str) -> None:
        if line.strip() and not line.startswith(("index ", "Index: ", "====")):
            self._parts.append(EditNote(line))


def _is_diff_head(lines: Sequence[str], place: int) -> bool:
    line = lines[place]
    is_head = line.startswith("@@") or is_diff_header(line)
    return is_head or begins_diff(lines, place)


def _parse_opening(line: str) -> FenceOpening | None:
    """Fences in a list count too."""
    opening = FenceOpening.parse(line) or FenceOpening.parse_tag(line)
    mark = None if opening else _LIST_MARK.match(line)
    if mark is None:
        return opening
    inner = FenceOpening.parse(line[mark.end() :])
    indent = " " * mark.end()
    return FenceOpening(indent, inner.mark, inner.info) if inner else None


def _is_name(line: str, project_names: ProjectNames) -> bool:
    bare = _bare(line)
    if not bare or len(line) > _LONGEST_NAME:
        return False
    return find_name_above_edits(line, project_names) == bare


def _bare(line: str) -> str:
    return line.strip(_DECORATION)


def _without(container: str, line: str) -> str:
    """Remove the block's indentation and quote marks from a line."""
    if line.startswith(container):
        return line[len(container) :]
    blanks = len(line) - len(line.lstrip())
    return line[min(blanks, len(container)) :]


def _section(line: str) -> str:
    head = _HUNK_HEAD.match(line)
    if head is None:
        return ""
    # a patch has text after a single mark
    text = head["section"] or line.lstrip("@").rstrip("@").strip()
    return "" if re.match(r"-\d|\.\.\.$", text) else text


def _hunk_line(line: str) -> HunkLine | EditNote:
    """A line without a mark has lost its space."""
    if line.startswith("\\"):
        return EditNote(line[1:].strip())
    if line[:1] in ("+", "-", " "):
        return HunkLine(line[0], line[1:])
    return HunkLine(" ", line)
