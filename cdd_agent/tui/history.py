import json
from contextlib import suppress
from pathlib import Path

from cdd_agent.errors import CddError
from cdd_agent.files.atomic import append_line, ignore_runs

_MOST_LINES = 500


class PromptHistory:
    """Walks through earlier lines. The file is read on first use, not at start-up."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._file = root / ".cdd" / "runs" / "history.jsonl"
        self._lines: list[str] | None = None
        self._position = 0
        self._drafts: dict[int, str] = {}
        """The unsent line and edits of earlier lines, by position."""

    @property
    def is_saved(self) -> bool:
        """True in a project: later sessions have the lines, too."""
        return (self._root / ".cdd").is_dir()

    def add(self, line: str) -> None:
        """Add a line and the edited drafts. Skip empty lines and repetitions of the
        last line.
        """
        lines = self._load()
        drafts = [draft for draft in self._drafts.values() if draft != line]
        for text in (*drafts, line):
            if text.strip() and lines[-1:] != [text]:
                lines.append(text)
                self._append(text)
        self._drafts.clear()
        self._position = len(lines)

    def previous(self, current: str) -> str | None:
        """Save `current`, and return the previous line; None at the oldest."""
        if not self._load() or self._position == 0:
            return None
        return self._move(-1, current)

    def next(self, current: str) -> str | None:
        """Save `current`, and return the next line, finally the unsent one. None after
        it.
        """
        if self._position >= len(self._load()):
            return None
        return self._move(1, current)

    def search(self, typed: str, most: int) -> list[str]:
        words = typed.casefold().split()
        matches = []
        for line in dict.fromkeys(reversed(self._load())):
            if all(word in line.casefold() for word in words):
                matches.append(line)
        return matches[:most]

    def _move(self, by: int, current: str) -> str:
        lines = [*self._load(), ""]
        if current != lines[self._position]:
            self._drafts[self._position] = current
        else:
            self._drafts.pop(self._position, None)
        self._position += by
        return self._drafts.get(self._position, lines[self._position])

    def _load(self) -> list[str]:
        if self._lines is None:
            self._lines = self._read()
            self._position = len(self._lines)
        return self._lines

    def _read(self) -> list[str]:
        """Read the file. Skip unreadable rows: history is only a convenience."""
        try:
            text = self._file.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return []
        lines = []
        for row in text.split("\n")[-_MOST_LINES:]:
            try:
                line = json.loads(row)
            except (ValueError, RecursionError):
                continue
            if isinstance(line, str):
                lines.append(line)
        return lines

    def _append(self, line: str) -> None:
        if not self.is_saved:
            return
        with suppress(OSError, CddError):
            ignore_runs(self._root)
            append_line(self._file, f"{json.dumps(line)}\n".encode())
