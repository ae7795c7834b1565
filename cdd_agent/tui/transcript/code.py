"""Code blocks. A line is coloured when it is drawn."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from msgspec import Struct, field

from cdd_agent.pattern import Pattern
from cdd_agent.text.sanitize import sanitize_for_display
from cdd_agent.tui.transcript.bounds import MAX_UNSETTLED
from cdd_agent.tui.transcript.colouring import coloured
from cdd_agent.tui.transcript.lines import Gutter, Mark, TranscriptLine

_WINDOW_LINES = 200

_FENCE = Pattern(r"( {0,3})(`{3,}(?=[^`]*$)|~{3,})(.*)\n")
_UNDECIDED = Pattern(r" {0,3}(`+|~+)")
"""The start of a line that may become a closing fence."""


class CodeWindow(Struct, eq=False):
    """Neighbouring lines that are coloured together when one is first drawn.

    Until the window is complete, each line is coloured alone, so that a stream never
    colours a line twice.
    """

    language: str
    texts: list[str] = field(default_factory=list)
    size: int = 0
    closed: bool = False

    def add(self, text: str) -> None:
        self.texts.append(text)
        self.size += len(text)
        self.closed = len(self.texts) >= _WINDOW_LINES or self.size >= 2 * MAX_UNSETTLED

    def inks(self, number: int) -> Sequence[Mark]:
        return (
            _window_inks(self)[number]
            if self.closed
            else _line_inks(self.language, self.texts[number])
        )


class _CodeLine(TranscriptLine, eq=False, kw_only=True):
    window: CodeWindow
    number: int

    @property
    def final(self) -> bool:
        return self.window.closed

    def inks(self) -> Sequence[Mark]:
        return (
            self.window.inks(self.number)
            if self.window.closed
            else _line_inks(self.window.language, self.text)
        )


@lru_cache(maxsize=32)
def _window_inks(window: CodeWindow) -> list[list[Mark]]:
    return coloured(window.language, window.texts)


@lru_cache(maxsize=128)
def _line_inks(language: str, text: str) -> list[Mark]:
    return coloured(language, [text])[0]


class CodeBlock:
    """A growing code block. An info such as `python:src/app.py` adds a title."""

    def __init__(self, info: str, gutter: Gutter = (), hang: Gutter = ()) -> None:
        language, _, path = info.strip().partition(":")
        self._language = language.partition(" ")[0].lower()
        self._path = path.strip()
        self._gutter = (*gutter, (" ", "code"))
        self._hang = (*hang, (" ", "code"))
        self._wrapped = (*hang, ("↳", "code wrapped"))
        self._window = CodeWindow(self._language)
        self._partial = ""

    def title(self) -> list[TranscriptLine]:
        if not self._path:
            return []
        title = sanitize_for_display(self._path)
        return [
            TranscriptLine(
                text=title,
                ink="code path",
                gutter=self._next_gutter(),
                hang=self._wrapped,
                fill=(" ", "code"),
            )
        ]

    def write(self, text: str) -> Iterator[TranscriptLine]:
        """Add a line with its end, or the received part of a long line."""
        self._partial += text.removesuffix("\n")
        while len(self._partial) > MAX_UNSETTLED:
            yield self.line(self._partial[:MAX_UNSETTLED])
            self._partial = self._partial[MAX_UNSETTLED:]
        if text.endswith("\n"):
            yield self.line(self._partial)
            self._partial = ""

    def tail(self, rest: str) -> list[TranscriptLine]:
        text = self._partial + rest
        return [self._preview(text)] if text else []

    def line(self, text: str) -> TranscriptLine:
        if self._window.closed:
            self._window = CodeWindow(self._language)
        text = sanitize_for_display(text)
        self._window.add(text)
        return self._line(text, self._window)

    def _preview(self, text: str) -> TranscriptLine:
        return self._line(sanitize_for_display(text), CodeWindow(self._language))

    def close(self) -> None:
        self._window.closed = True

    def _line(self, text: str, window: CodeWindow) -> TranscriptLine:
        return _CodeLine(
            text=text,
            ink="code",
            gutter=self._next_gutter(),
            hang=self._wrapped,
            fill=(" ", "code"),
            by_words=False,
            window=window,
            number=len(window.texts) - 1,
        )

    def _next_gutter(self) -> Gutter:
        gutter, self._gutter = self._gutter, self._hang
        return gutter


class CodeFence:
    def __init__(self, indent: int, marker: str, info: str) -> None:
        self._indent = indent
        self._closing = re.compile(rf" {{0,3}}{marker[0]}{{{len(marker)},}}[ \t]*\n")
        self._code = CodeBlock(info)

    @classmethod
    def opened_by(cls, line: str) -> "CodeFence | None":
        opening = _FENCE.fullmatch(line)
        return cls(len(opening[1]), opening[2], opening[3]) if opening else None

    def is_closed_by(self, line: str) -> bool:
        return self._closing.fullmatch(line) is not None

    def title(self) -> list[TranscriptLine]:
        return self._code.title()

    def take(self, text: str, *, mid_line: bool) -> Iterator[TranscriptLine]:
        """Yield a line of code, or the received part of a long line."""
        if not mid_line:
            text = text[min(self._indent, len(text) - len(text.lstrip(" "))) :]
        yield from self._code.write(text)

    def tail(self, rest: str) -> list[TranscriptLine]:
        """Return the unfinished line, followed by the unprocessed `rest`."""
        return self._code.tail("" if _UNDECIDED.fullmatch(rest) else rest)

    def close(self) -> None:
        self._code.close()
