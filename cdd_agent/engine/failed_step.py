"""A step's failure as the user sees it, while the step is retried.

The files of a failed attempt are restored before the next attempt. If no model can be
asked then, the run has an error and the step does not: its failure and its files are
reinstated.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Self

from msgspec import Struct

from cdd_agent.edits.changes import permissions
from cdd_agent.engine.run import Run
from cdd_agent.files.atomic import put_file, read_bytes, remove
from cdd_agent.tickets.state import StepExecution
from cdd_agent.tickets.status import StepStatus


class _File(Struct, frozen=True):
    content: bytes
    permissions: int


class FailedStep(Struct, frozen=True):
    """A failed step and the files of its last attempt, which were restored."""

    execution: StepExecution
    failed_files: dict[str, _File | None]
    """The files as the failed attempt left them; None for no file."""
    restored_files: dict[str, _File | None]
    """The same files after they were restored."""

    @classmethod
    def restore(cls, run: Run, number: int) -> tuple[Self | None, tuple[str, ...]]:
        """Restore what a step's last attempt wrote. Returns its failure, None if the
        step has not failed, and the files that stay because they were edited since.
        """
        execution = run.state.step(number)
        if execution.status is not StepStatus.FAILED or not execution.attempts:
            return None, run.restore(number)
        paths = run.attempt(number, execution.attempts).journal.paths
        failed_files = _read_files(run.record.root, paths)
        # the journal stays: what is put back can be restored again
        kept = run.restore(number, forget=False)
        restored_files = _read_files(run.record.root, paths)
        return cls(execution, failed_files, restored_files), kept

    def put_back(self, root: Path) -> tuple[str, ...]:
        """Write the files again as the failed attempt left them, except those that
        have changed since. Returns the files that were written.
        """
        written: list[str] = []
        present = _read_files(root, self.failed_files)
        for path, file in sorted(self.failed_files.items()):
            restored = self.restored_files.get(path)
            if path not in present or present[path] != restored or file == restored:
                continue
            if file is None:
                remove(root / path)
            else:
                put_file(root / path, (file.content,), file.permissions)
            written.append(path)
        return tuple(written)


def _read_files(root: Path, paths: Iterable[str]) -> dict[str, _File | None]:
    """Return the contents of files. Links, folders and the like are left out."""
    files: dict[str, _File | None] = {}
    for path in paths:
        place = root / path
        if place.is_symlink() or (place.exists() and not place.is_file()):
            continue
        content = read_bytes(place)
        files[path] = content if content is None else _File(content, permissions(place))
    return files
