"""Saved results of faults, so that none is tried twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
from msgspec import Struct, field

from cdd_agent.engine.record import RunRecord
from cdd_agent.files.atomic import append_line, read_bytes, write_atomic
from cdd_agent.files.json_file import as_short_json
from cdd_agent.verification.strength.fault import Fault
from cdd_agent.verification.strength.score import TriedFault


class MeasuredStep(Struct, frozen=True):
    """The step that results belong to. They hold only for these checks."""

    folder: int
    """Folder number, which survives renumbering."""
    checks: tuple[str, ...]


class _Line(Struct, frozen=True):
    project: str
    """Digest of the project's files."""
    step: MeasuredStep
    tried: TriedFault


class SavedFaults(Struct, frozen=True):
    """Results for the project's current files."""

    path: Path
    project: str
    _results: dict[MeasuredStep, dict[Fault, TriedFault]] = field(default_factory=dict)

    @classmethod
    def load(cls, record: RunRecord, project: str) -> SavedFaults:
        """Raises `BadInput` if the file is unreadable."""
        saved = cls(path_of_saved(record), project)
        for line in _read(saved.path):
            if line.project == project:
                saved.results_of(line.step)[line.tried.fault] = line.tried
        return saved

    @property
    def is_empty(self) -> bool:
        return not any(self._results.values())

    def results_of(self, step: MeasuredStep) -> dict[Fault, TriedFault]:
        return self._results.setdefault(step, {})

    def add(self, step: MeasuredStep, tried: TriedFault) -> None:
        """Raises `BadInput`."""
        self.results_of(step)[tried.fault] = tried
        append_line(self.path, self._encode(step, tried), 0o600)

    def drop(self, step: MeasuredStep, faults: Iterable[Fault]) -> None:
        """Raises `BadInput`."""
        results = self.results_of(step)
        for fault in faults:
            results.pop(fault, None)
        self.rewrite()

    def rewrite(self) -> None:
        """Keep only results for the current files. Raises `BadInput`."""
        lines = [
            self._encode(step, tried)
            for step, results in self._results.items()
            for tried in results.values()
        ]
        write_atomic(self.path, b"".join(lines))

    def _encode(self, step: MeasuredStep, tried: TriedFault) -> bytes:
        return as_short_json(_Line(self.project, step, tried)) + b"\n"


def path_of_saved(record: RunRecord) -> Path:
    return record.folder / "strength.jsonl"


def _read(path: Path) -> Iterator[_Line]:
    """Unfinished lines of a killed process are skipped."""
    for line in (read_bytes(path) or b"").split(b"\n"):
        try:
            yield msgspec.json.decode(line, type=_Line)
        except (ValueError, RecursionError):
            continue
