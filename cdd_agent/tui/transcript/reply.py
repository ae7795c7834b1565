"""Makes the lines of a model's reply: text as Markdown, edits as code and diffs."""

from pathlib import Path

from cdd_agent.changes.reply.scanned_parts import (
    EditEnded,
    EditStarted,
    LineOfFile,
    ReplyPart,
    ReplyWords,
)
from cdd_agent.text.sanitize import remove_escapes, sanitize_for_display
from cdd_agent.tui.transcript.diff import DiffLayout
from cdd_agent.tui.transcript.edits import EditDrawer
from cdd_agent.tui.transcript.folds import Fold, FoldHeader
from cdd_agent.tui.transcript.lines import TranscriptLine
from cdd_agent.tui.transcript.markdown_stream import MarkdownLines

_LONG_LINE = 1_000
"""Characters from which a line is handled in parts."""
_MOST_WORDS = 200
"""Characters of the first line in the header."""
_MARK_CHARACTERS = frozenset("`~<>=+-*@# \t")
"""A line that begins with only these may become markup, and is not shown yet."""


class ReplyDrawer:
    """Makes lines from chunks of a reply. The chunking does not affect the lines."""

    def __init__(self, layout: DiffLayout, root: Path | None = None) -> None:
        # late: the first screen shows sooner
        from cdd_agent.changes.formats.project_names import (  # noqa: PLC0415
            ProjectNames,
        )
        from cdd_agent.changes.reply.scanner import ReplyScanner  # noqa: PLC0415

        self._layout = layout
        self._scanner = ReplyScanner(ProjectNames(root))
        self._markdown = MarkdownLines()
        self._settled: list[TranscriptLine] = []
        self._partial = ""
        self._is_in_long_line = False
        self._is_cut = False
        """True if the rest of the long line is not shown."""
        self._more_characters = 0
        """Hidden characters of a long line in a diff."""
        self._edit: EditDrawer | None = None
        self._last_edit: EditDrawer | None = None
        """The finished edit, until other text follows."""
        self._has_shown = False
        self._first_words = ""
        self._line_count = 0
        self._paths: set[str] = set()

    @property
    def has_edits(self) -> bool:
        return bool(self._paths)

    def make_header(self) -> FoldHeader:
        """Return the header of the folded reply: the number of files, or its first
        words.
        """
        files, lines = len(self._paths), self._line_count
        count = f"{lines:,} line{'s' * (lines != 1)}"
        if files:
            title = f"Reply · {files} file{'s' * (files != 1)} · {count}"
            return FoldHeader(fold=Fold(), title=title, ink="action")
        return FoldHeader(
            fold=Fold(),
            title=f"Reply · {self._first_words}",
            remark=count,
            remark_ink="remark",
            ink="action",
        )

    def feed(self, text: str) -> list[TranscriptLine]:
        """Add a chunk, and return the lines that it settles."""
        *lines, self._partial = (self._partial + text).split("\n")
        for line in lines:
            self._take(line, is_over=True)
        if len(self._partial) >= _LONG_LINE:
            self._take(self._partial, is_over=False)
            self._partial = ""
        return self._take_settled()

    def finish(self) -> list[TranscriptLine]:
        if self._partial or self._is_in_long_line:
            self._take(self._partial, is_over=True)
            self._partial = ""
        self._show(self._scanner.finish())
        self._settle_words()
        return self._take_settled()

    def tail(self) -> list[TranscriptLine]:
        """Return the current lines of the unsettled part."""
        rest = self._partial.removesuffix("\r")
        shown = "" if set(rest) <= _MARK_CHARACTERS else rest
        if self._edit is not None:
            return self._edit.tail(shown)
        if self._scanner.replacement is not None:
            return self._tail_of_block(shown)
        waiting = "".join(f"{line}\n" for line in self._scanner.waiting)
        return self._markdown.tail(waiting + rest)

    def _tail_of_block(self, rest: str) -> list[TranscriptLine]:
        """Return the lines of an unfinished search/replace block, and of the text above
        it.
        """
        lines = self._markdown.tail()
        path, replaced = self._scanner.read_replacement(rest)
        drawer = EditDrawer(EditStarted(path), self._layout)
        is_next = self._last_edit is not None and self._last_edit.path == path
        if not is_next:
            if lines or self._has_shown:
                lines.append(TranscriptLine())
            lines += drawer.take_settled()
        return lines + drawer.preview(replaced)

    def _take_settled(self) -> list[TranscriptLine]:
        lines, self._settled = self._settled, []
        self._has_shown = self._has_shown or bool(lines)
        return lines

    def _take(self, text: str, *, is_over: bool) -> None:
        if not self._first_words:
            words = remove_escapes(text.strip()[:_MOST_WORDS])
            self._first_words = sanitize_for_display(words)
        if not self._is_in_long_line and len(text) < _LONG_LINE:
            self._show(self._scanner.take(text.removesuffix("\r")))
        else:
            if not self._is_in_long_line:
                parts = self._scanner.take(text[:_LONG_LINE], is_long=True)
                text = text[_LONG_LINE:]
                self._show(parts[:-1])
                self._show_beginning(parts)
            self._continue_line(text.removesuffix("\r") if is_over else text, is_over)
        self._is_in_long_line = not is_over
        self._line_count += is_over

    def _show_beginning(self, parts: list[ReplyPart]) -> None:
        last = parts[-1] if parts else None
        if isinstance(last, ReplyWords):
            self._show_words(last.text.removesuffix("\n"))
        elif isinstance(last, LineOfFile) and self._edit is not None:
            self._edit.write_code(last.text)
            self._settled += self._edit.take_settled()
        elif last is not None:
            self._show([last])
        self._is_cut = not isinstance(last, ReplyWords | LineOfFile)

    def _continue_line(self, text: str, is_over: bool) -> None:
        if self._is_cut:
            self._more_characters += len(text)
            if is_over:
                self._show(self._scanner.note_more(self._more_characters))
                self._more_characters = 0
            return
        text += "\n" * is_over
        if self._edit is not None:
            self._edit.write_code(text)
            self._settled += self._edit.take_settled()
        else:
            self._settled += self._markdown.feed(text)

    def _show(self, parts: list[ReplyPart]) -> None:
        for part in parts:
            match part:
                case ReplyWords(text=text):
                    self._show_words(text)
                case EditStarted():
                    self._start_edit(part)
                case EditEnded():
                    self._end_edit()
                case _ if self._edit is not None:
                    self._edit.add(part)
            if self._edit is not None:
                self._settled += self._edit.take_settled()

    def _show_words(self, text: str) -> None:
        if text.strip():
            self._last_edit = None
        self._settled += self._markdown.feed(text)

    def _start_edit(self, started: EditStarted) -> None:
        self._settle_words()
        if started.path:
            self._paths.add(started.path)
        last, self._last_edit = self._last_edit, None
        if last is not None and last.path == started.path:
            last.continue_with(started)
            self._edit = last
            return
        if self._settled or self._has_shown:
            self._settled.append(TranscriptLine())
        self._edit = EditDrawer(started, self._layout)

    def _end_edit(self) -> None:
        if self._edit is None:
            return
        self._edit.end()
        self._settled += self._edit.take_settled()
        self._markdown.separate()
        self._last_edit, self._edit = self._edit, None

    def _settle_words(self) -> None:
        self._settled += self._markdown.finish()
