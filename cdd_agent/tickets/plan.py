"""A plan as a value: its steps, the order in which they run, and the problems that keep
it from running.
"""

import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

from msgspec import Struct, to_builtins
from msgspec.structs import astuple, force_setattr

from cdd_agent.errors import BadInput
from cdd_agent.tickets.writable_text import one_line, plain_text

NO_CHECK = "none"
"""The `verify` of a step that has no check."""
DEFAULT_COMPLEXITY = "medium"
DEFAULT_TIME = "unknown"
DEFAULT_TYPE = "feature"
NEW = "new"
DELETED = "deleted"

_REMARK = r"\s*(?:[,;:.(–—-].*)?"
_CREATED = re.compile(
    rf"(?:a )?new(?: file)?{_REMARK}|creat(?:e|es|ed)\b.*|(?:moved|renamed) from\b.*",
    re.IGNORECASE,
)
_DELETED = re.compile(
    rf"(?:to be )?(?:deleted?|removed?){_REMARK}|(?:moved|renamed) to\b.*",
    re.IGNORECASE,
)


class AffectedFile(Struct, frozen=True):
    """A file that a step creates, changes or deletes."""

    path: str
    note: str = ""

    def __post_init__(self) -> None:
        normalise(self, path=one_line(self.path), note=one_line(self.note))

    @property
    def is_created(self) -> bool:
        """True if the note says that the file is new. "New tests" says nothing about
        the file.
        """
        return _CREATED.fullmatch(self.note) is not None

    @property
    def is_deleted(self) -> bool:
        return _DELETED.fullmatch(self.note) is not None


class PlanStep(Struct, frozen=True):
    """One step of a plan. Values that Markdown cannot hold are normalised, so that a
    step survives plan.md.
    """

    number: int
    title: str = ""
    description: str = ""
    complexity: str = DEFAULT_COMPLEXITY
    estimated_time: str = DEFAULT_TIME
    dependencies: tuple[int, ...] = ()
    files_affected: tuple[AffectedFile, ...] = ()
    verify: str | None = None
    """The command that checks this step; `NO_CHECK` for no check, None if the engine
    chooses.
    """
    serves: tuple[int, ...] = ()
    """Numbers of the acceptance criteria that the step serves, from 1."""
    line: int = 0
    """Line of its heading in plan.md, from 1; 0 if it was not read from a file. The
    last field; not compared.
    """

    def __post_init__(self) -> None:
        verify = one_line(self.verify or "")
        if verify.lower() == NO_CHECK:
            verify = NO_CHECK
        normalise(
            self,
            title=one_line(self.title) or f"Step {self.number}",
            description=plain_text(self.description),
            complexity=one_line(self.complexity) or DEFAULT_COMPLEXITY,
            estimated_time=one_line(self.estimated_time) or DEFAULT_TIME,
            dependencies=tuple(sorted(set(self.dependencies))),
            files_affected=tuple(file for file in self.files_affected if file.path),
            verify=verify or None,
            serves=tuple(sorted(set(self.serves))),
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PlanStep) and astuple(self)[:-1] == astuple(other)[:-1]

    def __hash__(self) -> int:
        return hash(astuple(self)[:-1])


class Problem(Struct, frozen=True):
    """A reason why a plan cannot run, or why it may not run well."""

    kind: str
    """An identifier for scripts, such as `cycle`."""
    step: int | None
    """None if the problem belongs to the whole plan."""
    line: int
    """Line in plan.md, from 1; 0 if the plan was not read from a file."""
    text: str
    """The fault and its fix."""
    is_warning: bool = False

    def to_json(self) -> dict[str, object]:
        """Return the problem as `cdd plan check --json` prints it."""
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
    """Return a problem of one step; `text` continues the sentence "step 1 …"."""
    return Problem(
        kind, step.number, step.line, f"step {step.number} {text}", is_warning
    )


class PlanInvalid(BadInput):
    """A plan that cannot run. The message has a line `plan.md:LINE: reason` for each
    problem.
    """


class ImplementationPlan(Struct, frozen=True, dict=True):
    """The steps that implement a ticket. `read_plan(write_plan(plan)) == plan` holds
    for every plan.
    """

    ticket_slug: str = ""
    ticket_title: str = ""
    ticket_type: str = DEFAULT_TYPE
    overview: str = ""
    total_complexity: str = DEFAULT_COMPLEXITY
    total_estimated_time: str = DEFAULT_TIME
    risks: tuple[str, ...] = ()
    steps: tuple[PlanStep, ...] = ()

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
            steps=tuple(self.steps),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the plan as `cdd plan show --json` prints it."""
        data: dict[str, Any] = to_builtins(self)
        for step in data["steps"]:
            step["files_affected"] = [file["path"] for file in step["files_affected"]]
            del step["line"]
        return data

    def order(self) -> tuple[PlanStep, ...]:
        """Return the steps so that each follows its dependencies, otherwise in plan
        order. Raises `PlanInvalid`.
        """
        self.check()
        return self._run_order

    def check(self, source: str = "plan.md") -> None:
        """Raise `PlanInvalid` for a plan that cannot run. `source` is the file name in
        the message.
        """
        if self.errors:
            raise PlanInvalid(
                "\n".join(
                    f"{source}:{error.line}: {error.text}" for error in self.errors
                ),
                hint=f"Fix {source} by hand, or let `/plan` change it.",
            )

    @cached_property
    def errors(self) -> tuple[Problem, ...]:
        """The problems that keep the plan from running, in the order of their lines."""
        errors = [*self._number_errors(), *self._path_errors()]
        blocked = {step.number: step for step in self.steps}
        for step in self._run_order:
            del blocked[step.number]
        if blocked and not errors:
            cycle = _find_cycle(blocked)
            text = "dependency cycle: " + " → ".join(map(str, cycle))
            errors.append(Problem("cycle", cycle[0], blocked[cycle[0]].line, text))
        return tuple(sorted(errors, key=lambda error: error.line))

    @cached_property
    def _run_order(self) -> tuple[PlanStep, ...]:
        """The steps in dependency order. A step that waits for a cycle is missing."""
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

    def _number_errors(self) -> list[Problem]:
        errors = []
        if not self.steps:
            text = (
                "no steps: a plan needs at least one heading like"
                " `### Step 1: Create the model`"
            )
            errors.append(Problem("no_steps", None, 1, text))
        by_number: dict[int, PlanStep] = {}
        for step in self.steps:
            first = by_number.setdefault(step.number, step)
            if first is not step:
                text = f"is there twice, first in line {first.line}"
                errors.append(step_problem(step, "duplicate_step", text))
        for step in self.steps:
            for number in step.dependencies:
                if number == step.number:
                    errors.append(step_problem(step, "cycle", "depends on itself"))
                elif number not in by_number:
                    text = f"depends on step {number}, which does not exist"
                    errors.append(step_problem(step, "unknown_dependency", text))
        return errors

    def _path_errors(self) -> list[Problem]:
        errors = []
        for step in self.steps:
            for file in step.files_affected:
                path = PureWindowsPath(file.path)  # knows both separators
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


def _find_cycle(blocked: Mapping[int, PlanStep]) -> list[int]:
    """Return the numbers of one cycle. Every blocked step has a blocked dependency, so
    a walk along them finds one.
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
    """Set attributes of a frozen value while it is created."""
    for name, attribute in attributes.items():
        force_setattr(value, name, attribute)
