"""The tests that a plan lets a step remove, and those that may still fail.

Permission comes from the fields `Removes tests` and `May fail`, and from file notes
such as `(deleted)`; never from the step's text.
"""

from collections.abc import Collection, Iterable, Iterator
from pathlib import PurePosixPath
from typing import Self

from msgspec import Struct, field

from cdd_agent.tickets.declared_files import DeclaredFiles
from cdd_agent.tickets.plan import PlanStep
from cdd_agent.verification.mentions import Mentions, test_names
from cdd_agent.verification.test_id import TestId

REMOVES_TESTS = "Removes tests"


def covers(entry: str, test: TestId) -> bool:
    """True if an entry names the test, its class, file or a folder above. Without
    parameters, it covers all of them.
    """
    name = _plain(entry)
    return name in test_names(test) or name in _folders(test)


def _plain(entry: str) -> str:
    name = entry.strip(" `'\"").replace("\\", "/").removesuffix("()")
    return name.removeprefix("./").rstrip("/")


def _folders(test: TestId) -> Iterator[str]:
    return map(str, PurePosixPath(test.file).parents[:-1])


class Permissions(Struct, frozen=True):
    label: str = ""
    """As the plan writes it."""
    removes: tuple[str, ...] | None = None
    """None if the plan lacks the field."""
    declared: DeclaredFiles = DeclaredFiles()
    mentions: Mentions = field(default_factory=Mentions)
    allowed: frozenset[str] = frozenset()
    """Ids of tests that the user lets the step remove or weaken."""

    @classmethod
    def of_step(
        cls, step: PlanStep, declared: DeclaredFiles, guidance: str = ""
    ) -> Self:
        mentions = Mentions.in_step(step, guidance)
        return cls(step.label, step.removes_tests, declared, mentions)

    def may_remove(self, test: TestId, *, only_rows: bool = False) -> bool:
        """True if the step may remove, skip or weaken a test.

        With `only_rows`, an entry with parameters is enough.
        """
        if self.is_allowed(test):
            return True
        for file in self.declared.files:
            if file.file.is_deleted and file.covers(test.file):
                return True
        entries = self.removes or ()
        if only_rows:
            entries = tuple(entry.partition("[")[0] for entry in entries)
        return any(covers(entry, test) for entry in entries)

    def is_allowed(self, test: TestId) -> bool:
        return str(test) in self.allowed or str(test.function) in self.allowed

    def may_delete(self, path: str) -> bool:
        """True if the step names the file or a folder above. Then a reply may delete
        the file unseen.
        """
        if self.declared.may_delete(path) or self.mentions.names_file(path):
            return True
        if self.mentions.names_folder_of(path):
            return True
        return any(covers(entry, TestId(path)) for entry in self.removes or ())

    def declares(self, path: str) -> bool:
        return self.declared.covers(path)

    def names_file(self, path: str) -> bool:
        return self.declares(path) or self.mentions.names_file(path)


class FailureLeave(Struct, frozen=True):
    """An entry of `May fail`."""

    entry: str
    step: str
    """The label of the step that has it."""
    until: str = ""

    def covers(self, test: TestId) -> bool:
        return covers(self.entry, test)

    def names_inside(self, place: TestId, defined: Collection[str]) -> bool:
        """True if the entry is inside a file or folder that could not be collected.
        `defined` are the names of its tests.
        """
        entry = _plain(self.entry)
        path, _, name = entry.partition("::")
        if name and path in test_names(place):
            return True
        if path.startswith(f"{place.file}/"):
            return True
        return set(entry.split("::")) <= set(defined)


class FailureLeaves(Struct, frozen=True):
    """The plan's `May fail` entries that matter to a step."""

    in_force: tuple[FailureLeave, ...] = ()
    ended: tuple[FailureLeave, ...] = ()
    """Their tests must pass from this step on."""

    @classmethod
    def of_step(
        cls, step: PlanStep, earlier: Iterable[PlanStep], later: Iterable[PlanStep]
    ) -> Self:
        """An entry without `until` holds for its own step; with `until`, as long as
        that step is in `later`.
        """
        waiting = {other.label.casefold() for other in later}
        in_force = []
        ended = []
        for giver in (step, *earlier):
            for item in giver.may_fail:
                leave = FailureLeave(item.tests, giver.label, item.until)
                until = item.until.casefold()
                if until in waiting or (giver is step and not until):
                    in_force.append(leave)
                elif until == step.label.casefold():
                    ended.append(leave)
        return cls(tuple(in_force), tuple(ended))

    def find_excuse(
        self, test: TestId, defined: Collection[str], passed: Iterable[TestId]
    ) -> FailureLeave | None:
        """Return the entry that lets a test fail.

        For a file that cannot be collected, entries must name tests in it, including
        all that `passed` before.
        """
        for leave in self.in_force:
            if leave.covers(test):
                return leave
        inside = _naming_inside(self.in_force, test, defined)
        if not inside:
            return None
        for other in passed:
            if not any(leave.covers(other) for leave in inside):
                return None
        return inside[0]

    def find_ended(self, test: TestId, defined: Collection[str]) -> FailureLeave | None:
        """Return the entry that let a test fail until this step."""
        for leave in self.ended:
            if leave.covers(test):
                return leave
        inside = _naming_inside(self.ended, test, defined)
        return inside[0] if inside else None


def _naming_inside(
    leaves: Iterable[FailureLeave], place: TestId, defined: Collection[str]
) -> list[FailureLeave]:
    if place.name:
        return []
    return [leave for leave in leaves if leave.names_inside(place, defined)]
