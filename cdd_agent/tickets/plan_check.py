"""Checks a plan's files, checks and acceptance criteria before a run.

`ImplementationPlan.check` refuses plans that cannot run. This finds further errors and
warnings.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from msgspec import Struct, field

from cdd_agent.files.hidden_from_models import HiddenFiles
from cdd_agent.pattern import Pattern
from cdd_agent.tickets.declared_files import (
    DeclaredFile,
    declare_files,
    describe_hidden,
    find_hidden_reason,
)
from cdd_agent.tickets.findings import quote
from cdd_agent.tickets.placeholders import is_placeholder
from cdd_agent.tickets.plan import (
    AffectedFile,
    ImplementationPlan,
    PlanStep,
    Problem,
    step_problem,
)
from cdd_agent.tickets.served_criteria import (
    CriterionStanding,
    find_standings,
    served_digests,
)
from cdd_agent.tickets.spec import TicketSpec
from cdd_agent.tickets.state import ExecutionState

_ABOUT_THE_SPEC = frozenset(
    ("unknown_criterion", "unserved_criterion", "edited_criterion")
)
_MAX_FILES = 8
_MAX_HOURS = 8.0
_SHOWN_CRITERION = 60
_TIME = Pattern(
    r"([0-9]{1,6}(?:\.[0-9]{1,6})?)\s*(h(?:ours?|rs?)?|d(?:ays?)?|w(?:eeks?)?)\b",
    re.IGNORECASE,
)
_WORK_HOURS = {"h": 1.0, "d": 8.0, "w": 40.0}


class FilesOfPlan(Struct, frozen=True):
    existing: frozenset[str]
    refused: Mapping[str, str] = field(default_factory=dict)
    """Path → why it is invalid or outside the project."""
    patterns: Mapping[str, DeclaredFile] = field(default_factory=dict)
    """Path in the plan → pattern or folder."""
    hidden: Mapping[str, str] = field(default_factory=dict)
    """Existing file → why it is hidden from models."""


def check_plan(
    plan: ImplementationPlan,
    spec: TicketSpec,
    root: Path,
    state: ExecutionState | None = None,
) -> list[Problem]:
    """Return problems by line.

    Files of begun steps are not checked: the plan describes them before the step.
    """
    return find_problems(plan, spec, _find_files(root, plan), state)


def find_problems(
    plan: ImplementationPlan,
    spec: TicketSpec,
    files: FilesOfPlan,
    state: ExecutionState | None = None,
) -> list[Problem]:
    """Files are checked only if the plan can run."""
    begun = state.begun_numbers if state else frozenset()
    warnings = [finding for finding in plan.findings if finding.is_warning]
    problems = [*plan.errors, *warnings, *_criteria_problems(plan, spec, state)]
    for step in plan.steps:
        if step.number not in begun:
            problems += _step_problems(step)
    if not plan.errors:
        problems += _refused_paths(plan, files)
        problems += _hidden_files(plan, files, begun)
        problems += _FileChecker(plan, files, begun).problems()
    return sorted(problems, key=lambda problem: problem.line)


def only_errors(problems: Collection[Problem]) -> list[Problem]:
    return [problem for problem in problems if not problem.is_warning]


def find_misfits(problems: Iterable[Problem]) -> list[Problem]:
    """Return the problems by which a plan does not fit its spec."""
    return [problem for problem in problems if problem.kind in _ABOUT_THE_SPEC]


def _find_files(root: Path, plan: ImplementationPlan) -> FilesOfPlan:
    existing = set()
    refused = {}
    patterns = {}
    hidden = {}
    hidden_files = HiddenFiles(root)
    for step in plan.steps:
        for declared in declare_files(root, step).files:
            path = declared.file.path
            if declared.refusal:
                refused[path] = declared.refusal
                continue
            if declared.exists:
                existing.add(_normalised(path))
            if declared.glob is not None:
                patterns[path] = declared
            if why := find_hidden_reason(declared, hidden_files):
                hidden[path] = why
    return FilesOfPlan(frozenset(existing), refused, patterns, hidden)


def _normalised(path: str) -> str:
    return str(PurePosixPath(path.replace("\\", "/")))


def _refused_paths(plan: ImplementationPlan, files: FilesOfPlan) -> Iterator[Problem]:
    for step in plan.steps:
        for file in step.files_affected:
            if file.path in files.refused:
                yield step_problem(
                    step,
                    "outside_project",
                    f"affects `{file.path}`: {files.refused[file.path]}",
                )


def _hidden_files(
    plan: ImplementationPlan, files: FilesOfPlan, begun: Collection[int]
) -> Iterator[Problem]:
    for step in plan.steps:
        for file in step.files_affected:
            if file.path in files.hidden and step.number not in begun:
                text = describe_hidden(file.path, files.hidden[file.path])
                yield step_problem(step, "hidden_file", text, is_warning=True)


def _criteria_problems(
    plan: ImplementationPlan, spec: TicketSpec, state: ExecutionState | None
) -> Iterator[Problem]:
    criteria = spec.acceptance_criteria
    count = len(criteria)
    for step in plan.steps:
        served = served_digests(step, state, criteria)
        # A finished step does not change if its criterion is gone.
        is_over = state is not None and state.step(step.number).status.is_over
        for ref in step.serves:
            if str(ref) in served:
                continue
            if isinstance(ref, int):
                text = (
                    f"serves acceptance criterion {ref}, but the spec has"
                    f" {count or 'none'}"
                )
            else:
                text = (
                    f"serves {quote(ref)}, which is not an acceptance criterion of the"
                    " spec; write the text or the number of one"
                )
            yield step_problem(step, "unknown_criterion", text, is_warning=is_over)
    if plan.steps:
        is_named = any(step.serves for step in plan.steps)
        standings = find_standings(plan, state, criteria)
        yield from _unserved_criteria(standings, is_named=is_named)


def _unserved_criteria(
    standings: Sequence[CriterionStanding], *, is_named: bool
) -> list[Problem]:
    """`is_named`: some step names the criteria that it serves."""
    unserved = []
    for standing in standings:
        if not standing.steps and not is_placeholder(standing.text):
            unserved.append(standing)
    wrong = [standing for standing in unserved if standing.edit]
    if is_named:
        wrong = [
            standing
            for standing in unserved
            if standing.edit or not standing.was_for_all
        ]
    if unserved and not is_named and not wrong:
        text = (
            "no step names the acceptance criteria that it serves; write their words or"
            " numbers, such as `**Serves:** 1, 3`"
        )
        return [Problem("no_serves", None, 1, text, is_warning=True)]
    return [_unserved_criterion(standing) for standing in wrong]


def _unserved_criterion(standing: CriterionStanding) -> Problem:
    short = standing.text.split("\n")[0]
    if len(short) > _SHOWN_CRITERION:
        short = f"{short[: _SHOWN_CRITERION - 1]}…"
    criterion = f"acceptance criterion {standing.place} ({short})"
    if standing.edit:
        text = (
            f"{criterion} is {standing.edit}, and no step serves it; add a step that"
            " names it in its `**Serves:**`"
        )
        return Problem("edited_criterion", None, 1, text)
    text = f"no step serves {criterion}; add a step, or name it in a `**Serves:**`"
    return Problem("unserved_criterion", None, 1, text)


def _step_problems(step: PlanStep) -> Iterator[Problem]:
    if step.checks is None:
        text = "names no check; write a command in `**Verify:**`"
        yield step_problem(step, "no_check", text, is_warning=True)
    elif step.has_no_check and step.files_affected:
        text = "changes files without a check; write a command in `**Verify:**`"
        yield step_problem(step, "no_check", text, is_warning=True)
    reasons = []
    if len(step.files_affected) > _MAX_FILES:
        reasons.append(f"affects {len(step.files_affected)} files")
    if _longest_time(step.estimated_time) > _MAX_HOURS:
        reasons.append(f"takes {step.estimated_time}")
    if reasons:
        text = f"{' and '.join(reasons)}; split it into smaller steps"
        yield step_problem(step, "too_wide", text, is_warning=True)


def _longest_time(text: str) -> float:
    """Return the longest time in a text such as "1-2 days", in hours."""
    times = [
        float(count) * _WORK_HOURS[unit[0].lower()]
        for count, unit in _TIME.findall(text)
    ]
    return max(times, default=0.0)


class _FileChecker:
    """Follows a plan's files through its steps, in run order."""

    def __init__(
        self, plan: ImplementationPlan, files: FilesOfPlan, begun: Collection[int]
    ) -> None:
        self._label_of = plan.label_of
        self._steps = plan.order()
        self._begun = begun
        self._refused = files.refused
        self._patterns = files.patterns
        self._existing = set(files.existing)
        self._created_by: dict[str, int] = {}
        self._deleted_by: dict[str, int] = {}
        self._will_create: dict[str, int] = {}
        for step in reversed(self._steps):
            for file in step.files_affected:
                if file.is_created and file.path not in files.patterns:
                    self._will_create[_normalised(file.path)] = step.number
        self._all_dependencies: dict[int, set[int]] = {}

    def problems(self) -> Iterator[Problem]:
        for step in self._steps:
            needed = [self._all_dependencies[number] for number in step.dependencies]
            self._all_dependencies[step.number] = set(step.dependencies).union(*needed)
            for file in step.files_affected:
                path = _normalised(file.path)
                if file.path in self._refused:
                    continue
                if step.number in self._begun:
                    if file.is_created:
                        self._created_by.setdefault(path, step.number)
                    continue
                pattern = self._patterns.get(file.path)
                if pattern:
                    problem = self._pattern_problem(step, file, pattern)
                elif file.is_created:
                    problem = self._new_file_problem(step, path)
                else:
                    problem = self._problem(step, path)
                if problem:
                    yield problem
                if pattern is None:
                    self._record(step, file, path)

    def _pattern_problem(
        self, step: PlanStep, file: AffectedFile, pattern: DeclaredFile
    ) -> Problem | None:
        if file.is_created or _normalised(file.path) in self._existing:
            return None
        planned = {*self._created_by, *self._will_create}
        if any(map(pattern.covers, planned)):
            return None
        text = f"affects `{file.path}`, which matches no file of the project"
        return step_problem(step, "missing_file", text, is_warning=True)

    def _record(self, step: PlanStep, file: AffectedFile, path: str) -> None:
        """Afterwards the step's files exist, except deleted ones."""
        if file.is_deleted:
            self._existing.discard(path)
            self._deleted_by[path] = step.number
        elif file.is_created or not (
            path in self._existing or path in self._will_create
        ):
            self._created_by.setdefault(path, step.number)
            self._existing.add(path)
            self._deleted_by.pop(path, None)

    def _new_file_problem(self, step: PlanStep, path: str) -> Problem | None:
        if path not in self._existing:
            return None
        creator = self._created_by.get(path)
        if creator is not None:
            text = (
                f"creates `{path}`, as step {self._label_of(creator)} does; let"
                " one of them change it"
            )
            return step_problem(step, "created_twice", text)
        text = f"creates `{path}`, which exists already; remove the `(new)`"
        return step_problem(step, "exists_already", text, is_warning=True)

    def _problem(self, step: PlanStep, path: str) -> Problem | None:
        creator = self._created_by.get(path)
        if path in self._existing:
            if creator is None or creator == step.number:
                return None
            if creator in self._all_dependencies[step.number]:
                return None
            label = self._label_of(creator)
            text = (
                f"changes `{path}`, which step {label} creates; add step {label} to its"
                " dependencies"
            )
            return step_problem(step, "missing_dependency", text, is_warning=True)
        if path in self._deleted_by:
            label = self._label_of(self._deleted_by[path])
            text = f"affects `{path}`, which step {label} deletes; change one of them"
            return step_problem(step, "edited_after_deleted", text)
        if creator is None and path in self._will_create:
            label = self._label_of(self._will_create[path])
            text = (
                f"changes `{path}` before step {label} creates it; add step {label} to"
                " its dependencies, or create the file here"
            )
            return step_problem(step, "edited_before_created", text)
        text = (
            f"affects `{path}`, which does not exist; write `(new)` after it if the"
            " step creates it"
        )
        return step_problem(step, "missing_file", text, is_warning=True)
