"""A plan: its steps, their order, and problems that prevent a run."""

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any
from urllib.parse import unquote

from msgspec import Struct, to_builtins
from msgspec.structs import astuple, force_setattr, replace

from cdd_agent.errors import BadInput
from cdd_agent.pattern import Pattern
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.tickets.criteria import CriterionRef, normal_refs
from cdd_agent.tickets.writable_text import one_line, plain_text

NO_CHECK = "none"
DEFAULT_COMPLEXITY = "medium"
DEFAULT_TIME = "unknown"
DEFAULT_TYPE = "feature"
NEW = "new"
DELETED = "deleted"

STEP_ID = Pattern("[a-z0-9]{4,8}")
ID_COMMENT = Pattern(r"\s*<!--\s*id:\s*(?P<id>[^\s>]*)\s*-->\s*$")
"""A step's id, at the end of its heading."""
_ID_OF_HEADING = Pattern(
    r"^(?P<heading>#.*?)[ \t]*<!--[ \t]*id:[^\n>]*-->[ \t]*$", re.MULTILINE
)
STEP_LABEL = Pattern(r"[0-9]{1,9}(?:\.[0-9]{1,9})*(?:\.?[A-Za-z])?")
"""Step numbers as users write them: `2`, `1b`, `1.5`, `2.1.a`."""

_REMARK = r"\s*(?:[,;:.(\[–—-].*)?"
_CREATED = Pattern(
    rf"(?:a )?new(?: file)?{_REMARK}|creat(?:e|es|ed)\b.*|(?:moved|renamed) from\b.*",
    re.IGNORECASE,
)
_DELETED = Pattern(
    rf"(?:to be )?(?:deleted?|removed?){_REMARK}|(?:moved|renamed) to\b.*",
    re.IGNORECASE,
)
_LINES = Pattern(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")
_LINES_IN_PATH = Pattern(
    r"(?P<path>.+?)(?::L?|#L)(?P<first>[0-9]{1,9})"
    r"(?:[-–]L?(?P<last>[0-9]{1,9})|:[0-9]{1,9})?"
)


class AffectedFile(Struct, frozen=True):
    """A file that a step creates, changes or deletes. A pattern (`src/*.py`) or folder
    (`src/`) means its matches when the step starts.
    """

    path: str
    note: str = ""
    lines: str = ""
    """Lines to inspect, from 1: `12` or `3-9`."""

    def __post_init__(self) -> None:
        path, lines = _split_place(self.path)
        lines = lines or self.lines
        normalise(
            self,
            path=path,
            note=_plain_note(self.note),
            lines=lines if _LINES.fullmatch(lines) else "",
        )

    @property
    def is_created(self) -> bool:
        """True if the note says that the file is new. "New tests" does not."""
        return _CREATED.fullmatch(self.note) is not None

    @property
    def is_deleted(self) -> bool:
        return _DELETED.fullmatch(self.note) is not None

    def relative_to(self, roots: Collection[str]) -> "AffectedFile":
        """Make an absolute path inside one of these folders relative to the project."""
        path = Path(self.path)
        if not path.is_absolute() or ".." in path.parts:
            return self
        for folder in path.parents:
            # `Path.resolve` fails for circular links
            if os.path.realpath(folder) in roots:
                ending = "/" if self.is_folder else ""
                relative = path.relative_to(folder).as_posix()
                return replace(self, path=relative + ending)
        return self

    @property
    def is_pattern(self) -> bool:
        return "*" in self.path or "?" in self.path

    @property
    def is_folder(self) -> bool:
        return self.path.endswith(("/", "\\"))

    @property
    def place(self) -> str:
        """The path as the plan writes it, with lines."""
        return f"{self.path}:{self.lines}" if self.lines else self.path


def _plain_note(note: str) -> str:
    note = one_line(note)
    depth = 0
    for sign in note:
        depth += (sign == "(") - (sign == ")")
        if depth < 0:
            break
    if depth or ("`" in note and "(" in note):
        return note.replace("(", "[").replace(")", "]")
    return note


def _split_place(text: str) -> tuple[str, str]:
    """Split a path and its lines: `a.py:3-9`, `@a.py#L3-L9` and `file://a.py:3-9` are
    `a.py` and `3-9`.
    """
    lines = ""
    before = ""
    path = one_line(text)
    while path != before:
        before = path
        path = path.lstrip("@ ")
        if path.lower().startswith("file://"):
            path = one_line(unquote(path[len("file://") :]))
        match = _LINES_IN_PATH.fullmatch(path)
        if match:
            path = match["path"].rstrip()
            lines = "-".join(filter(None, (match["first"], match["last"])))
    return path, lines


class MayFail(Struct, frozen=True):
    """A test, or a file or folder of tests, that need not pass yet."""

    tests: str
    until: str = ""
    """The label of the step from which on they must pass; empty if no step is named."""

    def __post_init__(self) -> None:
        normalise(self, tests=one_line(self.tests), until=_plain_label(self.until))


class PlanStep(Struct, frozen=True):
    """A step. Values that Markdown cannot hold are normalised, so that steps survive
    plan.md.
    """

    number: int
    title: str = ""
    description: str = ""
    complexity: str = DEFAULT_COMPLEXITY
    estimated_time: str = DEFAULT_TIME
    dependencies: tuple[int, ...] = ()
    files_affected: tuple[AffectedFile, ...] = ()
    checks: tuple[str, ...] | None = None
    """Commands that must all pass. Empty for no check, None if the engine chooses."""
    serves: tuple[CriterionRef, ...] = ()
    """Criteria that the step serves: places in the spec, or words."""
    removes_tests: tuple[str, ...] | None = None
    """Tests, or test files, that the step may remove, skip or weaken. None if the plan
    does not say.
    """
    may_fail: tuple[MayFail, ...] = ()
    label: str = ""
    """The number as the plan writes it, such as `1b`."""
    id: str = ""
    """Identifies the step when it is renumbered or reworded; empty if the plan gives
    none.
    """
    missing_dependencies: tuple[str, ...] = ()
    line: int = 0
    """Line of the heading in plan.md, from 1; 0 if not from a file. The last field; not
    compared.
    """

    def __post_init__(self) -> None:
        label = _plain_label(self.label) or str(self.number)
        normalise(
            self,
            title=_plain_title(self.title) or f"Step {label}",
            description=plain_text(self.description),
            complexity=one_line(self.complexity) or DEFAULT_COMPLEXITY,
            estimated_time=one_line(self.estimated_time) or DEFAULT_TIME,
            dependencies=tuple(sorted(set(self.dependencies))),
            files_affected=tuple(file for file in self.files_affected if file.path),
            checks=_normal_list(self.checks),
            serves=normal_refs(self.serves),
            removes_tests=_normal_list(self.removes_tests),
            may_fail=_normal_leave(self.may_fail),
            label=label,
            id=self.id if STEP_ID.fullmatch(self.id) else "",
            missing_dependencies=tuple(sorted(set(self.missing_dependencies))),
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PlanStep) and astuple(self)[:-1] == astuple(other)[:-1]

    def __hash__(self) -> int:
        return hash(astuple(self)[:-1])

    @property
    def has_no_check(self) -> bool:
        return self.checks == ()

    @property
    def check_lines(self) -> str | None:
        """The checks as a text for digests and searches: one a line, `none`, or None if
        the engine chooses.
        """
        if self.checks is None:
            return None
        return "\n".join(self.checks) or NO_CHECK

    def to_json(self) -> dict[str, Any]:
        """Return the JSON of `cdd plan show --json`.

        `verify` is the only check, `none` for no check, else null.
        """
        data: dict[str, Any] = to_builtins(self)
        data["files_affected"] = [file.path for file in self.files_affected]
        checks = list(self.checks or ())
        data["checks"] = checks
        data["verify"] = checks[0] if len(checks) == 1 else None
        if self.has_no_check:
            data["verify"] = NO_CHECK
        del data["line"], data["missing_dependencies"]
        return data


_TICK = r"(?:[✅✓✔☑☐⬜]\ufe0f?|\[[ xX]\])"
_TICKS = Pattern(rf"^(?:{_TICK}\s*)+|(?:\s*{_TICK})+$")
_STRUCK = Pattern(r"~~(.*)~~")


def _plain_label(label: str) -> str:
    """Normalise a label; "" if it is invalid."""
    if not STEP_LABEL.fullmatch(label):
        return ""
    return str(int(label)) if label.isdigit() else label


def _plain_title(title: str) -> str:
    """Remove ids, tick marks and strike-through, which have a meaning in headings."""
    before = ""
    title = one_line(title)
    while title != before:
        before = title
        title = _TICKS.sub("", ID_COMMENT.sub("", title))
        struck = _STRUCK.fullmatch(title)
        title = (struck[1] if struck else title).strip()
    return title


def without_step_ids(text: str) -> str:
    """Hide the steps' ids in Markdown."""
    return _ID_OF_HEADING.sub(r"\g<heading>", text)


def _normal_list(entries: Sequence[str] | None) -> tuple[str, ...] | None:
    """Remove `none` and duplicates."""
    if entries is None:
        return None
    lines = dict.fromkeys(map(one_line, entries))
    return tuple(line for line in lines if line and line.lower() != NO_CHECK)


def _normal_leave(may_fail: Sequence[MayFail]) -> tuple[MayFail, ...]:
    leaves = dict.fromkeys(may_fail)
    return tuple(leave for leave in leaves if _normal_list([leave.tests]))


class Problem(Struct, frozen=True):
    """Why a plan cannot run, or may run badly."""

    kind: str
    """For scripts, such as `cycle`."""
    step: int | None
    """None if it concerns the whole plan."""
    line: int
    """In plan.md, from 1; 0 if not from a file."""
    text: str
    """The fault and its fix."""
    is_warning: bool = False

    def to_json(self) -> dict[str, object]:
        """Return the JSON of `cdd plan check --json`."""
        return {
            "kind": self.kind,
            "severity": "warning" if self.is_warning else "error",
            "step": self.step,
            "line": self.line,
            "message": self.text,
        }


def step_problem(
    step: PlanStep, kind: str, text: str, *, is_warning: bool = False
) -> Problem:
    """`text` continues the sentence "step 1 …"."""
    return Problem(
        kind, step.number, step.line, f"step {step.label} {text}", is_warning
    )


class PlanInvalid(BadInput):
    """The plan cannot run. The message has a line `plan.md:LINE: reason` for each
    problem.
    """

    refusal = Refusal.PLAN_INVALID


class NoSuchStep(BadInput):
    """No step has the label that a user typed."""

    def __init__(self, label: str, plan: "ImplementationPlan") -> None:
        labels = ", ".join(step.label for step in plan.steps)
        super().__init__(f"There is no step {label}", hint=f"The steps are {labels}.")


class ImplementationPlan(Struct, frozen=True, dict=True):
    """A ticket's steps. `read_plan(write_plan(plan)) == plan` always holds."""

    ticket_slug: str = ""
    ticket_title: str = ""
    ticket_type: str = DEFAULT_TYPE
    overview: str = ""
    total_complexity: str = DEFAULT_COMPLEXITY
    total_estimated_time: str = DEFAULT_TIME
    risks: tuple[str, ...] = ()
    steps: tuple[PlanStep, ...] = ()
    notes: str = ""
    """Text outside overview, steps and risks."""
    findings: tuple[Problem, ...] = ()
    """Problems in the text that was read. The last field; not compared."""

    def __post_init__(self) -> None:
        normalise(
            self,
            ticket_slug=one_line(self.ticket_slug),
            ticket_title=one_line(self.ticket_title),
            ticket_type=one_line(self.ticket_type) or DEFAULT_TYPE,
            overview=plain_text(self.overview),
            total_complexity=one_line(self.total_complexity) or DEFAULT_COMPLEXITY,
            total_estimated_time=one_line(self.total_estimated_time) or DEFAULT_TIME,
            risks=tuple(filter(None, map(plain_text, self.risks))),
            steps=_number_steps(self.steps),
            notes=plain_text(self.notes),
        )

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ImplementationPlan)
            and astuple(self)[:-1] == astuple(other)[:-1]
        )

    def __hash__(self) -> int:
        return hash(astuple(self)[:-1])

    def to_json(self) -> dict[str, Any]:
        """Return the JSON of `cdd plan show --json`."""
        data: dict[str, Any] = to_builtins(self)
        data["steps"] = [step.to_json() for step in self.steps]
        data["findings"] = [problem.to_json() for problem in self.findings]
        return data

    def relative_to(self, root: Path) -> "ImplementationPlan":
        """Make absolute paths of project files relative, as other tools write them. In
        a run's tree, this includes files of the surrounding project.
        """
        roots = {os.path.realpath(root)}
        for folder in Path(os.path.realpath(root)).parents:
            if folder.name == ".cdd":
                roots.add(str(folder.parent))
        steps = []
        for step in self.steps:
            files = tuple(file.relative_to(roots) for file in step.files_affected)
            steps.append(replace(step, files_affected=files))
        same = tuple(steps) == self.steps
        return self if same else replace(self, steps=tuple(steps))

    def find_step(self, label: str) -> PlanStep | None:
        """Return the step with this label, in upper or lower case."""
        wanted = (_plain_label(label) or label).casefold()
        for step in self.steps:
            if step.label.casefold() == wanted:
                return step
        return None

    def step(self, number: int) -> PlanStep | None:
        for step in self.steps:
            if step.number == number:
                return step
        return None

    def label_of(self, number: int) -> str:
        """Return the users' name of a step; its number if the plan lacks it."""
        step = self.step(number)
        return step.label if step else str(number)

    def labels_of(self, numbers: Iterable[int]) -> tuple[str, ...]:
        return tuple(map(self.label_of, numbers))

    def with_plain_labels(self) -> "ImplementationPlan":
        """Return the plan with numbers as labels: models name drafted steps by number.

        A reference to a missing step is dropped if another step now has its label.
        """
        labels: dict[str, str] = {}
        numbers = {str(step.number) for step in self.steps}
        for step in self.steps:
            labels.setdefault(step.label.casefold(), str(step.number))
        if numbers == labels.keys():
            return self

        def plain(label: str) -> str:
            unknown = "" if label in numbers else label
            return labels.get(label.casefold(), unknown)

        steps = []
        for step in self.steps:
            missing = filter(None, map(plain, step.missing_dependencies))
            leave = [replace(item, until=plain(item.until)) for item in step.may_fail]
            steps.append(
                replace(
                    step,
                    label=str(step.number),
                    missing_dependencies=tuple(missing),
                    may_fail=tuple(leave),
                )
            )
        return replace(self, steps=tuple(steps))

    def order(self) -> tuple[PlanStep, ...]:
        """Return the steps after their dependencies, otherwise in plan order. Raises
        `PlanInvalid`.
        """
        self.check()
        return self._run_order

    def check(self, source: str = "plan.md") -> None:
        """Raise `PlanInvalid` if the plan cannot run. `source` is the file name in
        messages.
        """
        if self.errors:
            raise PlanInvalid(
                "\n".join(
                    f"{source}:{error.line}: {error.text}" for error in self.errors
                ),
                hint=f"Fix {source} by hand, or with `/plan`.",
            )

    @cached_property
    def errors(self) -> tuple[Problem, ...]:
        """Problems that prevent a run, by line."""
        errors = [finding for finding in self.findings if not finding.is_warning]
        errors += self._identity_errors()
        errors += self._reference_errors()
        errors += self._path_errors()
        blocked = {step.number: step for step in self.steps}
        for step in self._run_order:
            del blocked[step.number]
        if blocked and not errors:
            cycle = _find_cycle(blocked)
            text = "dependency cycle: " + " → ".join(self.labels_of(cycle))
            errors.append(Problem("cycle", cycle[0], blocked[cycle[0]].line, text))
        return tuple(sorted(errors, key=lambda error: error.line))

    @cached_property
    def _run_order(self) -> tuple[PlanStep, ...]:
        """Steps in dependency order, without those that wait for a cycle."""
        ordered: dict[int, PlanStep] = {}
        waiting = list(self.steps)
        while True:
            ready = next(
                (step for step in waiting if ordered.keys() >= set(step.dependencies)),
                None,
            )
            if ready is None:
                return tuple(ordered.values())
            waiting.remove(ready)
            ordered[ready.number] = ready

    def _identity_errors(self) -> list[Problem]:
        errors = []
        if not self.steps:
            text = (
                "no steps: a plan needs at least one heading like"
                " `### Step 1: Create the model`"
            )
            errors.append(Problem("no_steps", None, 1, text))
        by_label: dict[str, PlanStep] = {}
        by_id: dict[str, PlanStep] = {}
        for step in self.steps:
            first = by_label.setdefault(step.label.casefold(), step)
            if first is not step:
                text = (
                    f"appears twice, first in line {first.line}; give one of them"
                    " another number"
                )
                errors.append(step_problem(step, "duplicate_step", text))
            first = by_id.setdefault(step.id or f"no id: {step.label}", step)
            if step.id and first is not step:
                text = f"has the id `{step.id}` of step {first.label}; remove one id"
                errors.append(step_problem(step, "duplicate_id", text))
        return errors

    def _reference_errors(self) -> list[Problem]:
        labels = {step.label.casefold() for step in self.steps}
        errors = []
        for step in self.steps:
            if step.number in step.dependencies:
                errors.append(step_problem(step, "cycle", "depends on itself"))
            for label in step.missing_dependencies:
                text = f"depends on step {label}, which does not exist"
                errors.append(step_problem(step, "unknown_dependency", text))
            for leave in step.may_fail:
                if leave.until and leave.until.casefold() not in labels:
                    text = (
                        f"lets `{leave.tests}` fail until step {leave.until}, which"
                        " does not exist"
                    )
                    errors.append(step_problem(step, "unknown_step", text))
        return errors

    def _path_errors(self) -> list[Problem]:
        errors = []
        for step in self.steps:
            for file in step.files_affected:
                path = PureWindowsPath(file.path)  # for both separators
                if path.drive or path.root or PurePosixPath(file.path).is_absolute():
                    reason = "is absolute"
                elif ".." in path.parts:
                    reason = "has `..`"
                else:
                    continue
                text = (
                    f"affects `{file.path}`: the path {reason}; write it from the"
                    " project's root"
                )
                errors.append(step_problem(step, "outside_project", text))
        return errors


def _number_steps(steps: Sequence[PlanStep]) -> tuple[PlanStep, ...]:
    """Plain numbers stay; if any label is not a plain number, all steps are numbered in
    order. Dependencies are adapted.
    """
    are_plain = all(step.label.isdigit() for step in steps)
    numbers: dict[int, int] = {}
    by_label: dict[str, int] = {}
    for position, step in enumerate(steps, 1):
        number = int(step.label) if are_plain else position
        first = by_label.setdefault(step.label.casefold(), number)
        numbers.setdefault(step.number, first)
    result = []
    for position, step in enumerate(steps, 1):
        dependencies = {numbers[old] for old in step.dependencies if old in numbers}
        unknown = [str(old) for old in step.dependencies if old not in numbers]
        missing = []
        for label in (*step.missing_dependencies, *unknown):
            if label.casefold() in by_label:
                dependencies.add(by_label[label.casefold()])
            else:
                missing.append(label)
        numbered = replace(
            step,
            number=int(step.label) if are_plain else position,
            dependencies=tuple(dependencies),
            missing_dependencies=tuple(missing),
        )
        result.append(step if step == numbered else numbered)
    return tuple(result)


def _find_cycle(blocked: Mapping[int, PlanStep]) -> list[int]:
    """Return one cycle. Each blocked step has a blocked dependency, so a walk
    finds it.
    """
    number = next(iter(blocked))
    path: list[int] = []
    while number not in path:
        path.append(number)
        number = next(
            other for other in blocked[number].dependencies if other in blocked
        )
    return [*path[path.index(number) :], number]


def normalise(value: Struct, **attributes: object) -> None:
    """Set attributes of a frozen value during its creation."""
    for name, attribute in attributes.items():
        force_setattr(value, name, attribute)
