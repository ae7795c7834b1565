"""Lines typed before, also in earlier sessions of the same project."""

import json
from contextlib import suppress
from pathlib import Path

from cdd_agent.errors import CddError
from cdd_agent.files.atomic import append_line, ignore_runs

_KEPT = 500
"""Lines that are read again."""


class PromptHistory:
    """Walks through earlier lines. The file is read when it is first needed, not at
    start-up.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._file = root / ".cdd" / "runs" / "history.jsonl"
        self._lines: list[str] | None = None
        self._at = 0
        self._drafts: dict[int, str] = {}
        """The line that was being typed, and edits of earlier lines, by their place."""

    @property
    def lasts(self) -> bool:
        """True if it is saved for later sessions: in a project."""
        return (self._root / ".cdd").is_dir()

    def add(self, line: str) -> None:
        """Remember a line, unless it is empty or the last one again, and drafts that
        were left on the way to it.
        """
        lines = self._loaded()
        for text in (
            *(draft for draft in self._drafts.values() if draft != line),
            line,
        ):
            if text.strip() and lines[-1:] != [text]:
                lines.append(text)
                self._append(text)
        self._drafts.clear()
        self._at = len(lines)

    def previous(self, current: str) -> str | None:
        """The line before; None at the oldest. What is being typed is kept for the way
        back.
        """
        return self._go(-1, current) if self._loaded() and self._at else None

    def next(self, current: str) -> str | None:
        """The line after, at last what was being typed; None when there is nothing
        later.
        """
        return self._go(1, current) if self._at < len(self._loaded()) else None

    def search(self, typed: str, most: int) -> list[str]:
        """The lines that have all words of a text, each once, the latest first."""
        words = typed.casefold().split()
        latest_first = dict.fromkeys(reversed(self._loaded()))
        return [
            line
            for line in latest_first
            if all(word in line.casefold() for word in words)
        ][:most]

    def _go(self, by: int, current: str) -> str:
        lines = [*self._loaded(), ""]
        if current != lines[self._at]:
            self._drafts[self._at] = current
        else:
            self._drafts.pop(self._at, None)
        self._at += by
        return self._drafts.get(self._at, lines[self._at])

    def _loaded(self) -> list[str]:
        if self._lines is None:
            self._lines = self._read()
            self._at = len(self._lines)
        return self._lines

    def _read(self) -> list[str]:
        """Lines that are not readable, or not ours, are passed over: history is a
        convenience.
        """
        try:
            rows = self._file.read_text(encoding="utf-8", errors="replace").split("\n")[
                -_KEPT:
            ]
        except OSError:
            return []
        lines = []
        for row in rows:
            try:
                line = json.loads(row)
            except (ValueError, RecursionError):
                continue
            if isinstance(line, str):
                lines.append(line)
        return lines

    def _append(self, line: str) -> None:
        """Only in a project, and only where its folder can be written."""
        if not self.lasts:
            return
        with suppress(OSError, CddError):
            ignore_runs(self._root)
            append_line(self._file, f"{json.dumps(line)}\n".encode())
