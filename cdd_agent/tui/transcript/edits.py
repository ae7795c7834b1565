"""Makes the lines of one edit in a reply: a header above code or a diff."""

from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher

from cdd_agent.changes.file_diff import FileDiff
from cdd_agent.changes.reply.scanned_parts import (
    EditNote,
    EditStarted,
    HunkLine,
    HunkStarted,
    LineOfFile,
    LinesReplaced,
)
from cdd_agent.text.sanitize import sanitize_for_display
from cdd_agent.tui.transcript.code import CodeBlock
from cdd_agent.tui.transcript.colouring import language_of
from cdd_agent.tui.transcript.diff import DiffLayout
from cdd_agent.tui.transcript.diff_drawer import DiffDrawer, is_alike
from cdd_agent.tui.transcript.folds import shortened
from cdd_agent.tui.transcript.lines import LineRow, TranscriptLine
from cdd_agent.wording.dialogue_words import lines_changed

EditPart = LineOfFile | HunkStarted | HunkLine | LinesReplaced | EditNote
ChangedLine = tuple[str, str]
"""The sign and the text of a line."""

_MOST_COMPARED = 100_000
"""Maximum pairs of compared lines; larger texts are shown as removed and added."""
_LOOK_AHEAD = 20
"""Number of lines in which the next unchanged line is searched while lines arrive."""
_NO_NAME = "No file is named"
_LONGEST_TITLE = 400


class EditHeader(TranscriptLine, eq=False, kw_only=True):
    """The file of an edit and its line counts, which grow until the edit is over."""

    title: str
    """Without control characters."""
    note: str = ""
    added: int = 0
    removed: int = 0
    is_over: bool = False

    @property
    def final(self) -> bool:
        return self.is_over

    def rows(self, width: int) -> list[LineRow]:
        counts = lines_changed([FileDiff("", self.added, self.removed, "")])
        notes = [text for text in (self.note, counts) if text]
        remark = f"  {' · '.join(notes)}" if notes else ""
        room = self.room(width) - len(remark)
        self.text = shortened(self.title, room) + remark
        start = len(self.text) - len(remark)
        self.marks = [(0, start, "strong"), (start, len(self.text), "remark")]
        return [LineRow(self, 0, len(self.text))]


class EditDrawer:
    def __init__(self, started: EditStarted, layout: DiffLayout) -> None:
        self.path = started.path
        self._language = language_of(started.path) or started.language
        self._header = EditHeader(
            title=sanitize_for_display(started.path[:_LONGEST_TITLE]) or _NO_NAME,
            note=started.note,
            ink="code" if started.path else "code path",
            gutter=((" ", "code"),),
            hang=((" ", "code"),),
            fill=(" ", "code"),
        )
        self._layout = layout
        self._drawer = DiffDrawer(layout, self._language)
        self._code: CodeBlock | None = None
        self._has_lines = False
        self._lines: list[TranscriptLine] = [self._header]

    def continue_with(self, started: EditStarted) -> None:
        self._header.is_over = False
        self._header.note = self._header.note or started.note
        self._drawer.begin_hunk()
        if self._has_lines:
            self._drawer.separate()

    def add(self, part: EditPart) -> None:
        match part:
            case LineOfFile(text=text):
                self.write_code(f"{text}\n")
            case HunkStarted(section=section):
                self._drawer.begin_hunk()
                if self._has_lines or section:
                    self._drawer.separate(section)
            case HunkLine(sign=sign, text=text):
                self._add_lines([(sign, text)])
            case LinesReplaced(find=find, new=new, is_complete=True):
                self._add_lines(compare(find, new))
            case LinesReplaced(find=find, new=new):
                self._add_lines(compare_beginning(find, new))
            case EditNote(text=text):
                self._drawer.note(text)

    def write_code(self, text: str) -> None:
        """Add a line with its end, or a part of a long line, to a new file."""
        if self._code is None:
            self._code = CodeBlock(self._language)
        self._lines += self._code.write(text)

    def take_settled(self) -> list[TranscriptLine]:
        """Return the new lines that can no longer change."""
        lines = [*self._lines, *self._drawer.take_settled()]
        self._lines = []
        return lines

    def tail(self, rest: str) -> list[TranscriptLine]:
        """Return the lines that can still change. `rest` is the unfinished line."""
        if self._code is not None:
            return self._code.tail(rest)
        preview = self._preview([("+", rest[1:])]) if rest.startswith("+") else []
        return [*self._drawer.tail(), *preview]

    def preview(self, replaced: LinesReplaced) -> list[TranscriptLine]:
        """Return the lines of an unfinished search/replace block."""
        return self._preview(compare_beginning(replaced.find, replaced.new))

    def end(self) -> None:
        self._drawer.end_hunk()
        if self._code is not None:
            self._code.close()
        self._header.is_over = True

    def _preview(self, changed: Iterable[ChangedLine]) -> list[TranscriptLine]:
        drawer = DiffDrawer(self._layout, self._language)
        for sign, text in changed:
            drawer.add(sign, text)
        return [*drawer.take_settled(), *drawer.tail()]

    def _add_lines(self, changed: Iterable[ChangedLine]) -> None:
        for sign, text in changed:
            self._drawer.add(sign, text)
            self._header.added += sign == "+"
            self._header.removed += sign == "-"
            self._has_lines = True


def compare(find: Sequence[str], new: Sequence[str]) -> list[ChangedLine]:
    """Return the unchanged, removed and added lines of a change, in order."""
    if len(find) * len(new) > _MOST_COMPARED:
        return [*(("-", line) for line in find), *(("+", line) for line in new)]
    changed: list[ChangedLine] = []
    matcher = SequenceMatcher(None, find, new, autojunk=False)
    for kind, start, stop, new_start, new_stop in matcher.get_opcodes():
        if kind == "equal":
            changed += [(" ", line) for line in find[start:stop]]
            continue
        changed += [("-", line) for line in find[start:stop]]
        changed += [("+", line) for line in new[new_start:new_stop]]
    return changed


def compare_beginning(find: Sequence[str], new: Sequence[str]) -> list[ChangedLine]:
    """Return the lines of a change whose new lines are still arriving. Old lines after
    the last new one count as unchanged.
    """
    changed: list[ChangedLine] = []
    added: list[ChangedLine] = []
    place = 0
    for line in new:
        ahead = find[place : place + _LOOK_AHEAD]
        if line in ahead:
            skipped = ahead.index(line)
            changed += [("-", old) for old in ahead[:skipped]]
            changed += [*added, (" ", line)]
            added = []
            place += skipped + 1
            continue
        added.append(("+", line))
        if ahead and is_alike(ahead[0], line):
            changed.append(("-", ahead[0]))
            place += 1
    return [*changed, *added, *((" ", line) for line in find[place:])]
