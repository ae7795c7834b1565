"""Lines typed before, also in earlier sessions of the same project."""

import json
from pathlib import Path

_KEPT = 500


class History:
    """Walks through earlier lines. The file is read when it is first needed, not at start-up."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lines: list[str] | None = None
        self._at = 0
        self._draft = ""

    def add(self, line: str) -> None:
        """Remember a line, unless it is empty or the last one again."""
        lines = self._loaded()
        if line.strip() and lines[-1:] != [line]:
            lines.append(line)
            self._append(line)
        self._at = len(lines)

    def previous(self, current: str) -> str | None:
        """The line before; None at the oldest. What is being typed is kept for the way back."""
        lines = self._loaded()
        if self._at == len(lines):
            self._draft = current
        if self._at == 0:
            return None
        self._at -= 1
        return lines[self._at]

    def next(self) -> str | None:
        """The line after, at last what was being typed; None when there is nothing later."""
        lines = self._loaded()
        if self._at >= len(lines):
            return None
        self._at += 1
        return lines[self._at] if self._at < len(lines) else self._draft

    def _loaded(self) -> list[str]:
        if self._lines is None:
            self._lines = self._read()
            self._at = len(self._lines)
        return self._lines

    def _read(self) -> list[str]:
        """Lines that are not readable, or not ours, are passed over: history is a convenience."""
        try:
            rows = self._file.read_text(encoding="utf-8", errors="replace").splitlines()[-_KEPT:]
        except OSError:
            return []
        lines = []
        for row in rows:
            try:
                line = json.loads(row)
            except ValueError:
                continue
            if isinstance(line, str):
                lines.append(line)
        return lines

    def _append(self, line: str) -> None:
        """Only in a project, and only where its folder can be written."""
        if not self._file.parent.parent.is_dir():
            return
        try:
            self._file.parent.mkdir(exist_ok=True)
            with self._file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
        except OSError:
            return
