"""Files that a step needs exclusively while others run."""

from collections.abc import Iterator
from pathlib import Path
from typing import Self

from msgspec import Struct

from cdd_agent.files.named import names_in
from cdd_agent.tickets.declared_files import DeclaredFiles, declare_files
from cdd_agent.tickets.plan import AffectedFile, PlanStep


class SideClaim(Struct, frozen=True):
    """Declared files, and other paths in the step's text."""

    files: DeclaredFiles
    names: frozenset[str] = frozenset()
    """Possible paths in title, description and checks, except those of declared
    files.
    """

    @classmethod
    def of_step(cls, root: Path, step: PlanStep) -> Self:
        files = declare_files(root, step)
        names = {name for name in _find_names(step) if not files.are_named((name,))}
        return cls(files, frozenset(names))

    def collides(self, other: Self) -> bool:
        """True if both may declare the same file, or if one names a file that the other
        declares: it may need the other's work.
        """
        return (
            self.files.overlaps(other.files)
            or self.files.are_named(other.names)
            or other.files.are_named(self.names)
        )


def _find_names(step: PlanStep) -> Iterator[str]:
    for text in (step.title, step.description, *(step.checks or ())):
        for name in names_in(text):
            # without lines: `a.py#L3` means a.py
            yield AffectedFile(name).path
