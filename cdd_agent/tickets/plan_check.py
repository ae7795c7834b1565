"""Compiling a plan: what in it would go wrong, found before anything is run.

`ImplementationPlan.check` refuses a plan that cannot be run; this looks further, at the files, the checks and the
acceptance criteria. An error is something that the plan has to be changed for. A warning is something to look at: a
plan that a person wrote by hand, in few words, has only those.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from cdd_agent.files.paths import PathRefused, confine
from cdd_agent.tickets.plan import ImplementationPlan, Problem
from cdd_agent.tickets.plan_step import NO_CHECK, AffectedFile, PlanStep
from cdd_agent.tickets.spec import TicketSpec, unwritten

MOST_FILES = 8
"""What a step may affect before it is called wide."""
_MOST_HOURS = 8.0
_SHOWN_CRITERION = 60


@dataclass(frozen=True)
class Places:
    """What the project has under the paths that a plan names."""

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
    faults = plan.faults()
    found = [
        *faults,
        *(_outside(plan, places) if not faults else ()),
        *_criteria(plan, spec),
        *(problem for step in plan.steps if step.number not in settled for problem in _step(step)),
        *(_Files(plan, places, settled).problems() if not faults else ()),
    ]
    return sorted(found, key=lambda problem: problem.line)


def errors(problems: list[Problem]) -> list[Problem]:
    """Those for which the plan has to be changed."""
    return [problem for problem in problems if not problem.is_warning]


def _normal(path: str) -> str:
    return str(PurePosixPath(path.replace("\\", "/")))


def _outside(plan: ImplementationPlan, places: Places) -> Iterator[Problem]:
    """What is known only by looking: a link that leads out, a name that no disk takes."""
    for step in plan.steps:
        for file in step.files_affected:
            if file.path in places.refused:
                text = f"step {step.number} affects `{file.path}`: {places.refused[file.path]}"
                yield Problem("outside_project", step.number, step.line, text)


# ----------------------------------------------------------------------------------------------- criteria


def _criteria(plan: ImplementationPlan, spec: TicketSpec) -> Iterator[Problem]:
    criteria = spec.acceptance_criteria
    for step in plan.steps:
        for number in step.serves:
            if not 1 <= number <= len(criteria):
                has = f"the spec has {len(criteria)}" if criteria else "the spec has none"
                text = f"step {step.number} serves acceptance criterion {number}, but {has}"
                yield Problem("unknown_criterion", step.number, step.line, text)
    served = {number for step in plan.steps for number in step.serves}
    if not plan.steps:
        return
    if not served and not all(map(unwritten, criteria)):
        text = (
            "no step says which acceptance criteria it serves; `**Serves:** 1, 3` names them by their place in the spec"
        )
        yield Problem("no_serves", None, 1, text, is_warning=True)
        return
    for number, criterion in enumerate(criteria, 1):
        if number not in served and not unwritten(criterion):
            short = criterion.split("\n")[0]
            short = short if len(short) <= _SHOWN_CRITERION else f"{short[: _SHOWN_CRITERION - 1]}…"
            text = f"no step serves acceptance criterion {number} ({short}); add a step, or name it in a `**Serves:**`"
            yield Problem("unserved_criterion", None, 1, text)


# ---------------------------------------------------------------------------------------------- one step


def _step(step: PlanStep) -> Iterator[Problem]:
    number = step.number
    if step.verify is None:
        text = f"step {number} has no check of its own; name in `**Verify:**` the tests that it has to make pass"
        yield Problem("no_check", number, step.line, text, is_warning=True)
    elif step.verify == NO_CHECK and step.files_affected:
        text = f"step {number} changes files, and `Verify: none` means that nothing shows whether they are right"
        yield Problem("no_check", number, step.line, text, is_warning=True)
    wide = []
    if len(step.files_affected) > MOST_FILES:
        wide.append(f"affects {len(step.files_affected)} files")
    if _hours(step.estimated_time) > _MOST_HOURS:
        wide.append(f"is to take {step.estimated_time}")
    if wide:
        text = f"step {number} {' and '.join(wide)}, which is wide for one change; split it"
        yield Problem("too_wide", number, step.line, text, is_warning=True)


_TIME = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,6})?)\s*(h(?:ours?|rs?)?|d(?:ays?)?|w(?:eeks?)?)\b", re.IGNORECASE)
_HOURS = {"h": 1.0, "d": 8.0, "w": 40.0}
"""Of work."""


def _hours(time: str) -> float:
    """The longest time that is named, as in "1-2 days"; 0 where only minutes are, or nothing that can be read."""
    return max((float(number) * _HOURS[unit[0].lower()] for number, unit in _TIME.findall(time)), default=0.0)


# ------------------------------------------------------------------------------------------------- files


class _Files:
    """Follows the plan's files through its steps, in the order in which they run."""

    def __init__(self, plan: ImplementationPlan, places: Places, settled: Collection[int]) -> None:
        self._steps = plan.order()
        self._settled = settled
        self._there = set(places.there)
        self._refused = places.refused
        self._needs = _all_dependencies(self._steps)
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
            for file in step.files_affected:
                if file.path in self._refused:
                    continue
                path = _normal(file.path)
                found = self._problem(step, file, path)
                if found is not None and step.number not in self._settled:
                    kind, text, is_warning = found
                    yield Problem(kind, step.number, step.line, f"step {step.number} {text}", is_warning)
                self._follow(step, file, path)

    def _problem(self, step: PlanStep, file: AffectedFile, path: str) -> tuple[str, str, bool] | None:
        maker = self._made_by.get(path)
        if file.is_created:
            if maker is not None and path in self._there:
                return "created_twice", f"creates `{path}`, and so does step {maker}; let one of them change it", False
            if path in self._there:
                return "exists_already", f"creates `{path}`, which is there already; leave out the `(new)`", True
        elif path not in self._there:
            return self._not_there(path)
        elif maker not in (None, step.number) and maker not in self._needs[step.number]:
            text = f"changes `{path}`, which step {maker} creates, and does not depend on that step"
            return "missing_dependency", text, True
        return None

    def _not_there(self, path: str) -> tuple[str, str, bool]:
        if path in self._deleted_by:
            return (
                "edited_after_deleted",
                f"affects `{path}`, which step {self._deleted_by[path]} deletes before",
                False,
            )
        if path in self._will_be_made and path not in self._made_by:
            maker = self._will_be_made[path]
            text = f"changes `{path}` before step {maker} creates it; let it depend on step {maker}, or create it here"
            return "edited_before_created", text, False
        text = f"affects `{path}`, which is not there; write `(new)` behind it if the step creates it"
        return "missing_file", text, True

    def _follow(self, step: PlanStep, file: AffectedFile, path: str) -> None:
        """What a step affects is there after it, unless it deletes it; one that was begun has been seen to."""
        is_settled = step.number in self._settled
        if file.is_deleted and not is_settled:
            self._there.discard(path)
            self._deleted_by[path] = step.number
        elif file.is_created or not (is_settled or path in self._there or path in self._will_be_made):
            self._made_by.setdefault(path, step.number)
            if not is_settled:
                self._there.add(path)
                self._deleted_by.pop(path, None)


def _all_dependencies(steps: tuple[PlanStep, ...]) -> dict[int, set[int]]:
    """The steps that have to be over before each one, which come before it in `steps`."""
    needs: dict[int, set[int]] = {}
    for step in steps:
        needs[step.number] = set(step.dependencies).union(*(needs[number] for number in step.dependencies))
    return needs
