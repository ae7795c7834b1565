from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from difflib import SequenceMatcher
from enum import StrEnum

from msgspec import Struct

from cdd_agent.pattern import Pattern
from cdd_agent.tickets.plan import (
    NO_CHECK,
    AffectedFile,
    ImplementationPlan,
    PlanStep,
)
from cdd_agent.tickets.step_matching import match_versions

DEFAULT_CHECK = "the default check"
"""Shown for a step without named checks."""
_WORD = Pattern(r"\S+")
_MOST_WORDS = 2_000
"""Longest text, in words, for a word-by-word comparison."""
_LEAST_ALIKE = 0.4
"""Texts less alike than this (0 to 1) are one edit."""
_TEXTS = {
    "ticket_title": "title",
    "ticket_type": "type",
    "overview": "overview",
    "total_complexity": "complexity",
    "total_estimated_time": "estimated time",
    "notes": "notes",
}
"""Parts outside the steps, except risks, with their names."""


class StepChangeKind(StrEnum):
    """The main difference between two versions of a step."""

    NEW = "new"
    CHANGED = "changed"
    MOVED = "moved"
    REMOVED = "removed"


class ValueEdit(Struct, frozen=True):
    """One of them is empty if text was added or removed."""

    old: str
    new: str


class FieldChange(Struct, frozen=True):
    """A changed field of a step or of a plan."""

    name: str
    edits: tuple[ValueEdit, ...]


class StepChange(Struct, frozen=True):
    """A step that differs between the versions."""

    kind: StepChangeKind
    label: str
    """In the new version; in the old one if the step was removed."""
    title: str
    fields: tuple[FieldChange, ...] = ()
    follows: str | None = None
    """The label of the previous step, for a new or moved step; empty for the first.
    Else None.
    """
    is_completed: bool = False


class PlanComparison(Struct, frozen=True):
    """The differences between two versions of a plan."""

    steps: tuple[StepChange, ...]
    """In the order of the new version, then removed steps."""
    unchanged: int
    """Number of steps that are equal except for labels."""
    renumbered: tuple[ValueEdit, ...]
    """Labels of steps that are otherwise equal."""
    parts: tuple[FieldChange, ...]
    """Changes outside the steps."""

    @property
    def is_empty(self) -> bool:
        return not (self.steps or self.renumbered or self.parts)

    @property
    def reopened(self) -> tuple[StepChange, ...]:
        """Completed steps that are changed or removed."""
        return tuple(
            step
            for step in self.steps
            if step.is_completed and step.kind is not StepChangeKind.MOVED
        )

    def kind_of(self, label: str) -> StepChangeKind | None:
        """Return how the step with this new label differs."""
        for step in self.steps:
            if step.label == label and step.kind is not StepChangeKind.REMOVED:
                return step.kind
        return None


def compare_plans(
    before: ImplementationPlan,
    after: ImplementationPlan,
    completed: Collection[str] = (),
) -> PlanComparison:
    """`completed` are labels of `before`. Steps match by id, else by title or
    number.
    """
    numbers = match_versions(before, after)
    old_steps = {number: before.step(old) for old, number in numbers.items()}
    labels = _label_mapping(before, after, numbers)
    moved = _find_moved(before, after, numbers)
    changes = []
    renumbered = []
    unchanged = 0
    previous = ""
    for step in after.steps:
        old = old_steps.get(step.number)
        if old is None:
            fields = _fields_of_new(step, after)
            kind = StepChangeKind.NEW
            change = StepChange(kind, step.label, step.title, fields, previous)
            changes.append(change)
        else:
            fields = _changed_fields(old, step, before, after, labels)
            is_moved = step.number in moved
            if fields or is_moved:
                kind = StepChangeKind.CHANGED if fields else StepChangeKind.MOVED
                follows = previous if is_moved else None
                is_completed = old.label in completed
                changes.append(
                    StepChange(
                        kind, step.label, step.title, fields, follows, is_completed
                    )
                )
            else:
                unchanged += 1
            if old.label != step.label:
                renumbered.append(ValueEdit(old.label, step.label))
        previous = step.label
    for step in before.steps:
        if step.number not in numbers:
            kind = StepChangeKind.REMOVED
            is_completed = step.label in completed
            changes.append(
                StepChange(kind, step.label, step.title, is_completed=is_completed)
            )
    parts = _changed_parts(before, after)
    return PlanComparison(tuple(changes), unchanged, tuple(renumbered), parts)


def _label_mapping(
    before: ImplementationPlan, after: ImplementationPlan, numbers: Mapping[int, int]
) -> dict[str, str]:
    labels = {}
    for step in before.steps:
        if step.number in numbers:
            labels[step.label] = after.label_of(numbers[step.number])
    return labels


def _find_moved(
    before: ImplementationPlan, after: ImplementationPlan, numbers: Mapping[int, int]
) -> set[int]:
    old_places = {}
    for place, step in enumerate(before.steps):
        if step.number in numbers:
            old_places[numbers[step.number]] = place
    common = [step.number for step in after.steps if step.number in old_places]
    in_order = _longest_rising([old_places[number] for number in common])
    return {number for number in common if old_places[number] not in in_order}


def _longest_rising(values: Sequence[int]) -> set[int]:
    last_values: list[int] = []
    previous: dict[int, int | None] = {}
    for value in values:
        place = bisect_left(last_values, value)
        previous[value] = last_values[place - 1] if place else None
        last_values[place : place + 1] = [value]
    rising = set()
    value_in_chain = last_values[-1] if last_values else None
    while value_in_chain is not None:
        rising.add(value_in_chain)
        value_in_chain = previous[value_in_chain]
    return rising


def _fields_of_new(step: PlanStep, plan: ImplementationPlan) -> tuple[FieldChange, ...]:
    fields = {
        "files": [describe_file(file) for file in step.files_affected],
        "check": describe_checks(step),
        "depends on": _dependencies(step, plan, {}),
        "description": [step.description] if step.description else [],
    }
    changes = []
    for name, values in fields.items():
        if values:
            edits = tuple(ValueEdit("", value) for value in values)
            changes.append(FieldChange(name, edits))
    return tuple(changes)


def _changed_fields(
    old: PlanStep,
    new: PlanStep,
    before: ImplementationPlan,
    after: ImplementationPlan,
    labels: Mapping[str, str],
) -> tuple[FieldChange, ...]:
    """Old labels → new ones."""
    changes = {
        "title": _edit_of(old.title, new.title),
        "files": _edits_of_files(old.files_affected, new.files_affected),
        "check": _edits_of_list(describe_checks(old), describe_checks(new)),
        "depends on": _edits_of_list(
            _dependencies(old, before, labels), _dependencies(new, after, {})
        ),
        "serves": _edits_of_list(
            [str(ref) for ref in old.serves], [str(ref) for ref in new.serves]
        ),
        "removes tests": _edits_of_list(_removed_tests(old), _removed_tests(new)),
        "may fail": _edits_of_list(_may_fail(old, labels), _may_fail(new, {})),
        "complexity": _edit_of(old.complexity, new.complexity),
        "estimated time": _edit_of(old.estimated_time, new.estimated_time),
        "description": _edits_of_words(old.description, new.description),
    }
    return tuple(FieldChange(name, edits) for name, edits in changes.items() if edits)


def _changed_parts(
    before: ImplementationPlan, after: ImplementationPlan
) -> tuple[FieldChange, ...]:
    changes = []
    for attribute, name in _TEXTS.items():
        edits = _edits_of_words(getattr(before, attribute), getattr(after, attribute))
        if edits:
            changes.append(FieldChange(name, edits))
    risks = _edits_of_list(before.risks, after.risks)
    if risks:
        changes.append(FieldChange("risks", risks))
    return tuple(changes)


def describe_file(file: AffectedFile) -> str:
    return f"{file.place} ({file.note})" if file.note else file.place


def describe_checks(step: PlanStep) -> list[str]:
    """Return the step's check commands, or words for none or default ones."""
    if step.checks is None:
        return [DEFAULT_CHECK]
    return [f"`{check}`" for check in step.checks] or [NO_CHECK]


def _dependencies(
    step: PlanStep, plan: ImplementationPlan, labels: Mapping[str, str]
) -> list[str]:
    names = [*plan.labels_of(step.dependencies), *step.missing_dependencies]
    return [labels.get(name, name) for name in names]


def _removed_tests(step: PlanStep) -> list[str]:
    if step.removes_tests is None:
        return []
    return list(step.removes_tests) or ["none"]


def _may_fail(step: PlanStep, labels: Mapping[str, str]) -> list[str]:
    leaves = []
    for leave in step.may_fail:
        until = labels.get(leave.until, leave.until)
        leaves.append(f"{leave.tests} until step {until}" if until else leave.tests)
    return leaves


def _edit_of(old: str, new: str) -> tuple[ValueEdit, ...]:
    return (ValueEdit(old, new),) if old != new else ()


def _edits_of_list(old: Sequence[str], new: Sequence[str]) -> tuple[ValueEdit, ...]:
    """Pair one removed and one added entry as an edit. If only order or repetition
    differs, return the whole lists.
    """
    removed = [text for text in old if text not in new]
    added = [text for text in new if text not in old]
    if not removed and not added:
        return _edit_of(", ".join(old), ", ".join(new))
    if len(removed) == len(added) == 1:
        return (ValueEdit(removed[0], added[0]),)
    return (
        *(ValueEdit("", text) for text in added),
        *(ValueEdit(text, "") for text in removed),
    )


def _describe_files(files: Sequence[AffectedFile]) -> dict[str, str]:
    descriptions: dict[str, str] = {}
    for file in files:
        text = describe_file(file)
        if file.path in descriptions:
            text = f"{descriptions[file.path]}, {text}"
        descriptions[file.path] = text
    return descriptions


def _edits_of_files(
    old: Sequence[AffectedFile], new: Sequence[AffectedFile]
) -> tuple[ValueEdit, ...]:
    old_notes = _describe_files(old)
    new_notes = _describe_files(new)
    edits = []
    for path, text in new_notes.items():
        if old_notes.get(path) != text:
            edits.append(ValueEdit(old_notes.get(path, ""), text))
    for path, text in old_notes.items():
        if path not in new_notes:
            edits.append(ValueEdit(text, ""))
    if not edits:
        return _edit_of(", ".join(old_notes.values()), ", ".join(new_notes.values()))
    return tuple(edits)


def _edits_of_words(old: str, new: str) -> tuple[ValueEdit, ...]:
    old_words = _WORD.findall(old)
    new_words = _WORD.findall(new)
    if old_words == new_words:
        # Line breaks matter only in lists and code.
        return _edit_of(old, new)
    if max(len(old_words), len(new_words)) > _MOST_WORDS:
        return _edit_of(old, new)
    matcher = SequenceMatcher(None, old_words, new_words, autojunk=False)
    if matcher.ratio() < _LEAST_ALIKE:
        return _edit_of(old, new)
    edits = []
    for tag, start, end, new_start, new_end in matcher.get_opcodes():
        if tag != "equal":
            removed = " ".join(old_words[start:end])
            added = " ".join(new_words[new_start:new_end])
            edits.append(ValueEdit(removed, added))
    return tuple(edits)
