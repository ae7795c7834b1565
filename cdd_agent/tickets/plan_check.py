"""Compiling a plan: its errors and weak places are found before anything is run.

`ImplementationPlan.check` refuses a plan that cannot be run; this looks further, at the files, the checks and the
acceptance criteria. An error is something that the plan has to be changed for. A warning is something to look at: a
plan that a person wrote by hand, in few words, has only those.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path, PurePosixPath

from msgspec import Struct, field

from cdd_agent.files.paths import PathRefused, confine
from cdd_agent.tickets.plan import ImplementationPlan, Problem
from cdd_agent.tickets.plan_step import NO_CHECK, AffectedFile, PlanStep
from cdd_agent.tickets.spec import TicketSpec, unwritten

_MOST_FILES, _MOST_HOURS = 8, 8.0
"""A step that affects more files, or takes longer, is called wide."""
_SHOWN_CRITERION = 60
_TIME = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,6})?)\s*(h(?:ours?|rs?)?|d(?:ays?)?|w(?:eeks?)?)\b", re.IGNORECASE)
_HOURS = {"h": 1.0, "d": 8.0, "w": 40.0}
"""Of work."""


class Places(Struct, frozen=True):
    """The paths of a plan, as the project has them."""

    there: frozenset[str]
    refused: Mapping[str, str] = field(default_factory=dict)
    """Paths that lead out of the project or are no paths, with the reason."""


def check_plan(plan: ImplementationPlan, spec: TicketSpec, root: Path, settled: Collection[int] = ()) -> list[Problem]:
    """The problems of a plan, in the order of its lines. Looks at the project's files.

    `settled` are steps that were begun already: what they say of files was true before that.
    """
    return problems_of(plan, spec, look(root, plan), settled)


def look(root: Path, plan: ImplementationPlan) -> Places:
    """Which of the plan's files the project has."""
    there, refused = set[str](), dict[str, str]()
    for path in {file.path for step in plan.steps for file in step.files_affected}:
        try:
            place = root / confine(root, path)
        except PathRefused as refusal:
            refused[path] = refusal.message
            continue
        if place.exists() or place.is_symlink():
            there.add(_normal(path))
    return Places(frozenset(there), refused)


def problems_of(
    plan: ImplementationPlan, spec: TicketSpec, places: Places, settled: Collection[int] = ()
) -> list[Problem]:
    """The problems of a plan in a project that has these files. Of one that cannot be run, the files are not judged."""
    found = plan.faults()
    can_run = not found
    if can_run:
        for step in plan.steps:
            for path in (file.path for file in step.files_affected if file.path in places.refused):
                # Known only by looking: a link that leads out, a name that no disk takes.
                text = f"step {step.number} affects `{path}`: {places.refused[path]}"
                found.append(Problem("outside_project", step.number, step.line, text))
    found += _criteria(plan, spec)
    found += [problem for step in plan.steps if step.number not in settled for problem in _step(step)]
    if can_run:
        found += _Files(plan, places, settled).problems()
    return sorted(found, key=lambda problem: problem.line)


def errors(problems: list[Problem]) -> list[Problem]:
    """Those for which the plan has to be changed."""
    return [problem for problem in problems if not problem.is_warning]


def _normal(path: str) -> str:
    return str(PurePosixPath(path.replace("\\", "/")))


def _criteria(plan: ImplementationPlan, spec: TicketSpec) -> Iterator[Problem]:
    criteria = spec.acceptance_criteria
    for step in plan.steps:
        for number in step.serves:
            if not 1 <= number <= len(criteria):
                has = f"the spec has {len(criteria) or 'none'}"
                text = f"step {step.number} serves acceptance criterion {number}, but {has}"
                yield Problem("unknown_criterion", step.number, step.line, text)
    served = {number for step in plan.steps for number in step.serves}
    open_criteria = [(n, text) for n, text in enumerate(criteria, 1) if n not in served and not unwritten(text)]
    if plan.steps and not served and open_criteria:
        text = (
            "no step says which acceptance criteria it serves; `**Serves:** 1, 3` names them by their place in the spec"
        )
        yield Problem("no_serves", None, 1, text, is_warning=True)
    elif plan.steps:
        for number, criterion in open_criteria:
            short = criterion.split("\n")[0]
            short = short if len(short) <= _SHOWN_CRITERION else f"{short[: _SHOWN_CRITERION - 1]}…"
            text = f"no step serves acceptance criterion {number} ({short}); add a step, or name it in a `**Serves:**`"
            yield Problem("unserved_criterion", None, 1, text)


def _step(step: PlanStep) -> Iterator[Problem]:
    number = step.number
    if step.verify is None:
        text = f"step {number} has no check of its own; name in `**Verify:**` the tests that it has to make pass"
        yield Problem("no_check", number, step.line, text, is_warning=True)
    elif step.verify == NO_CHECK and step.files_affected:
        text = f"step {number} changes files, and `Verify: none` means that nothing shows whether they are right"
        yield Problem("no_check", number, step.line, text, is_warning=True)
    wide = []
    if len(step.files_affected) > _MOST_FILES:
        wide.append(f"affects {len(step.files_affected)} files")
    times = _TIME.findall(step.estimated_time)  # the longest counts, as in "1-2 days"
    if max((float(many) * _HOURS[unit[0].lower()] for many, unit in times), default=0.0) > _MOST_HOURS:
        wide.append(f"is to take {step.estimated_time}")
    if wide:
        text = f"step {number} {' and '.join(wide)}, which is wide for one change; split it"
        yield Problem("too_wide", number, step.line, text, is_warning=True)


class _Files:
    """Follows the plan's files through its steps, in the order in which they run."""

    def __init__(self, plan: ImplementationPlan, places: Places, settled: Collection[int]) -> None:
        self._steps = plan.order()
        self._settled = settled
        self._there = set(places.there)
        self._refused = places.refused
        self._needs = dict[int, set[int]]()
        """The steps that have to be over before each one."""
        self._made_by = dict[str, int]()
        self._deleted_by = dict[str, int]()
        self._will_be_made = {
            _normal(file.path): step.number
            for step in reversed(self._steps)
            for file in step.files_affected
            if file.is_created
        }

    def problems(self) -> Iterator[Problem]:
        for step in self._steps:
            needs = step.dependencies
            self._needs[step.number] = set(needs).union(*(self._needs[number] for number in needs))
            for file in step.files_affected:
                if file.path in self._refused:
                    continue
                path = _normal(file.path)
                is_settled = step.number in self._settled
                if not is_settled and (found := self._problem(step, file, path)):
                    kind, text, is_warning = found
                    yield Problem(kind, step.number, step.line, f"step {step.number} {text}", is_warning)
                # What a step affects is there after it, unless it deletes it; one that was begun has been seen to.
                if file.is_deleted and not is_settled:
                    self._there.discard(path)
                    self._deleted_by[path] = step.number
                elif file.is_created or not (is_settled or path in self._there or path in self._will_be_made):
                    self._made_by.setdefault(path, step.number)
                    if not is_settled:
                        self._there.add(path)
                        self._deleted_by.pop(path, None)

    def _problem(self, step: PlanStep, file: AffectedFile, path: str) -> tuple[str, str, bool] | None:
        """Kind, words, and whether it is only a warning."""
        maker = self._made_by.get(path)
        if file.is_created:
            if path not in self._there:
                return None
            if maker is not None:
                return "created_twice", f"creates `{path}`, and so does step {maker}; let one of them change it", False
            return "exists_already", f"creates `{path}`, which is there already; leave out the `(new)`", True
        if path in self._there:
            if maker in (None, step.number) or maker in self._needs[step.number]:
                return None
            text = f"changes `{path}`, which step {maker} creates, and does not depend on that step"
            return "missing_dependency", text, True
        if path in self._deleted_by:
            text = f"affects `{path}`, which step {self._deleted_by[path]} deletes before"
            return "edited_after_deleted", text, False
        if maker is None and path in self._will_be_made:
            other = self._will_be_made[path]
            text = f"changes `{path}` before step {other} creates it; let it depend on step {other}, or create it here"
            return "edited_before_created", text, False
        return (
            "missing_file",
            f"affects `{path}`, which is not there; write `(new)` behind it if the step creates it",
            True,
        )
