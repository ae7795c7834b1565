"""The plan of a ticket: its steps, their order, and plan.md as the form in which people keep it."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from heapq import heapify, heappop, heappush
from pathlib import PurePosixPath, PureWindowsPath
from typing import Self

from cdd_agent.errors import BadInput
from cdd_agent.tickets.markdown import code_span, code_spans, is_plain, one_line, plain_text, spellings
from cdd_agent.tickets.plan_reading import REMARK, Field, StepText, read_plan

NO_CHECK = "none"
"""The `verify` of a step that is to have no check of its own."""

NEW, DELETED = "new", "deleted"
"""Notes beside a file, as this program writes them."""

_CREATED = re.compile(
    r"(?:a )?new(?: file)?\s*(?:[,;:.(–—-].*)?|creat(?:e|es|ed)\b.*|(?:moved|renamed) from\b.*", re.IGNORECASE
)
_DELETED = re.compile(r"(?:to be )?(?:deleted?|removed?)\s*(?:[,;:.(–—-].*)?|(?:moved|renamed) to\b.*", re.IGNORECASE)
_MAX_NUMBER = 999_999_999  # CommonMark's own limit for a list number
_COMPLEXITY = "medium"
_TIME = "unknown"
_TYPE = "feature"


@dataclass(frozen=True)
class Problem:
    """Something in a plan that keeps it from being carried out, or from being carried out well."""

    kind: str
    """A word for scripts, as `cycle`."""
    step: int | None
    """None: it is the plan's, not one step's."""
    line: int
    """In plan.md, from 1; 0 if the plan was not read from there."""
    text: str
    """What is wrong and what would fix it, as a clause."""
    is_warning: bool = False

    def to_json(self) -> dict[str, object]:
        """The problem as `cdd plan check --json` prints it."""
        return {
            "kind": self.kind,
            "severity": "warning" if self.is_warning else "error",
            "step": self.step,
            "line": self.line,
            "message": self.text,
        }


class PlanInvalid(BadInput):
    """A plan that cannot be run; the message has a line `plan.md:LINE: reason` for each problem."""


@dataclass(frozen=True)
class AffectedFile:
    """A file that a step creates or changes."""

    path: str
    note: str = ""

    def __post_init__(self) -> None:
        _set(self, path=one_line(self.path), note=one_line(self.note))

    @property
    def is_created(self) -> bool:
        """The note says that the step creates it; "new tests" beside a file says nothing of the file."""
        return _CREATED.fullmatch(self.note) is not None

    @property
    def is_deleted(self) -> bool:
        return _DELETED.fullmatch(self.note) is not None


@dataclass(frozen=True)
class PlanStep:
    """One step of a plan. What Markdown cannot carry is normalised away, so that it survives plan.md."""

    number: int
    title: str = ""
    description: str = ""
    complexity: str = _COMPLEXITY
    estimated_time: str = _TIME
    dependencies: tuple[int, ...] = ()
    files_affected: tuple[AffectedFile, ...] = ()
    verify: str | None = None
    """The command that checks this step; `NO_CHECK` for no check, None to leave the choice to the engine."""
    serves: tuple[int, ...] = ()
    """The acceptance criteria that it serves, by their place in the spec, from 1."""
    line: int = field(default=0, compare=False, repr=False)
    """Where its heading stands in plan.md, from 1; 0 if it was not read from there."""

    def __post_init__(self) -> None:
        if not all(0 <= number <= _MAX_NUMBER for number in (self.number, *self.dependencies, *self.serves)):
            raise ValueError(f"numbers of steps and criteria go from 0 to {_MAX_NUMBER}")
        verify = one_line(self.verify or "") or None
        _set(
            self,
            title=one_line(self.title) or f"Step {self.number}",
            description=plain_text(self.description),
            complexity=one_line(self.complexity) or _COMPLEXITY,
            estimated_time=one_line(self.estimated_time) or _TIME,
            dependencies=tuple(sorted(set(self.dependencies))),
            files_affected=tuple(file for file in self.files_affected if file.path),
            verify=NO_CHECK if verify and verify.lower() == NO_CHECK else verify,
            serves=tuple(sorted(set(self.serves))),
        )


@dataclass(frozen=True)
class ImplementationPlan:
    """The steps by which a ticket becomes code: for every plan, `from_markdown(plan.to_markdown()) == plan`."""

    ticket_slug: str = ""
    ticket_title: str = ""
    ticket_type: str = _TYPE
    overview: str = ""
    total_complexity: str = _COMPLEXITY
    total_estimated_time: str = _TIME
    steps: tuple[PlanStep, ...] = ()
    risks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _set(
            self,
            ticket_slug=one_line(self.ticket_slug),
            ticket_title=one_line(self.ticket_title),
            ticket_type=one_line(self.ticket_type) or _TYPE,
            overview=plain_text(self.overview),
            total_complexity=one_line(self.total_complexity) or _COMPLEXITY,
            total_estimated_time=one_line(self.total_estimated_time) or _TIME,
            steps=tuple(self.steps),
            risks=tuple(risk for risk in map(plain_text, self.risks) if risk),
        )

    @classmethod
    def from_markdown(cls, text: str) -> Self:
        """Reads tolerantly; whether the plan can be run is for `check` to say.

        Raises `BadInput` only for Markdown nested too deeply to be read.
        """
        found = read_plan(text)
        numbers: list[int] = []
        steps = []
        for step in found.steps:
            steps.append(_step(step, numbers))
            numbers.append(step.number)
        return cls(
            ticket_slug=_without_ticks(found.fields.get(Field.TICKET, "")),
            ticket_title=found.title,
            ticket_type=_without_ticks(found.fields.get(Field.TYPE, "")),
            overview="\n\n".join(found.overview),
            total_complexity=found.fields.get(Field.COMPLEXITY, ""),
            total_estimated_time=found.fields.get(Field.ESTIMATED_TIME, ""),
            steps=tuple(steps),
            risks=tuple(found.risks),
        )

    def to_markdown(self) -> str:
        """The plan as plan.md."""
        return "\n\n".join(_blocks(self)) + "\n"

    def to_json(self) -> dict[str, object]:
        """The plan as `cdd plan show --json` prints it."""
        return {
            "ticket_slug": self.ticket_slug,
            "ticket_title": self.ticket_title,
            "ticket_type": self.ticket_type,
            "overview": self.overview,
            "total_complexity": self.total_complexity,
            "total_estimated_time": self.total_estimated_time,
            "risks": list(self.risks),
            "steps": [
                {
                    "number": step.number,
                    "title": step.title,
                    "description": step.description,
                    "complexity": step.complexity,
                    "estimated_time": step.estimated_time,
                    "dependencies": list(step.dependencies),
                    "files_affected": [file.path for file in step.files_affected],
                    "verify": step.verify,
                    "serves": list(step.serves),
                }
                for step in self.steps
            ],
        }

    def order(self) -> tuple[PlanStep, ...]:
        """Every step after those it depends on, otherwise as the plan has them. Raises `PlanInvalid`."""
        self.check()
        return tuple(_in_order(self.steps))

    def faults(self) -> list[Problem]:
        """What keeps the plan from being run, in the order of its lines."""
        return sorted(_faults(self.steps), key=lambda fault: fault.line)

    def check(self, source: str = "plan.md") -> None:
        """Raises `PlanInvalid`, with each problem and its line in `source`, for a plan that cannot be run."""
        if faults := self.faults():
            raise PlanInvalid(
                "\n".join(f"{source}:{fault.line}: {fault.text}" for fault in faults),
                hint=f"Fix {source} by hand, or let `/plan` change it.",
            )


def _set(value: object, **attributes: object) -> None:
    for name, attribute in attributes.items():
        object.__setattr__(value, name, attribute)


# ------------------------------------------------------------------------------------------ order, checks


def _in_order(steps: Iterable[PlanStep]) -> Iterator[PlanStep]:
    """The steps that do not wait for themselves, in dependency order."""
    by_number: dict[int, PlanStep] = {}
    for step in steps:
        by_number.setdefault(step.number, step)
    places = {number: place for place, number in enumerate(by_number)}
    numbers = list(by_number)
    sorter = TopologicalSorter({number: _others(step, by_number) for number, step in by_number.items()})
    with suppress(CycleError):  # the steps outside the cycles are still handed out
        sorter.prepare()
    ready = [places[number] for number in sorter.get_ready()]
    heapify(ready)
    while ready:
        number = numbers[heappop(ready)]
        yield by_number[number]
        sorter.done(number)
        for freed in sorter.get_ready():
            heappush(ready, places[freed])


def _others(step: PlanStep, known: Collection[int]) -> list[int]:
    return [number for number in step.dependencies if number != step.number and number in known]


def _faults(steps: tuple[PlanStep, ...]) -> Iterator[Problem]:
    if not steps:
        text = "no steps: a plan needs at least one heading like `### Step 1: Create the model`"
        yield Problem("no_steps", None, 1, text)
    first: dict[int, PlanStep] = {}
    for step in steps:
        if step.number in first:
            text = f"step {step.number} is there twice, first in line {first[step.number].line}"
            yield Problem("duplicate_step", step.number, step.line, text)
        first.setdefault(step.number, step)
    for step in steps:
        for other in step.dependencies:
            if other == step.number:
                yield Problem("cycle", step.number, step.line, f"step {step.number} depends on itself")
            elif other not in first:
                text = f"step {step.number} depends on step {other}, which does not exist"
                yield Problem("unknown_dependency", step.number, step.line, text)
        for file in step.files_affected:
            if reason := _reason_against(file.path):
                text = f"step {step.number} affects `{file.path}`: {reason}"
                yield Problem("outside_project", step.number, step.line, text)
    for cycle in _cycles(first):
        text = "dependency cycle: " + " → ".join(map(str, [*cycle, cycle[0]]))
        yield Problem("cycle", cycle[0], first[cycle[0]].line, text)


def _reason_against(path: str) -> str:
    windows = PureWindowsPath(path)
    if PurePosixPath(path).is_absolute() or windows.drive or windows.root:
        return "the path is absolute; write it from the project's root"
    if ".." in windows.parts:  # a Windows path has both separators
        return "the path has `..`; write it from the project's root"
    return ""


def _cycles(steps: Mapping[int, PlanStep]) -> Iterator[list[int]]:
    """The dependency cycles, each from the step that the plan has first."""
    places = {number: place for place, number in enumerate(steps)}
    blocked = steps.keys() - {step.number for step in _in_order(steps.values())}
    seen: set[int] = set()
    for start in sorted(blocked, key=places.__getitem__):
        path: dict[int, None] = {}
        number = start
        while number not in seen:  # a blocked step has a blocked dependency, so this runs into a step seen
            seen.add(number)
            path[number] = None
            number = _others(steps[number], blocked)[0]
        if number in path:
            walked = list(path)
            cycle = walked[walked.index(number) :]
            earliest = cycle.index(min(cycle, key=places.__getitem__))
            yield cycle[earliest:] + cycle[:earliest]


# ------------------------------------------------------------------------------------------------ reading

_NOBODY = re.compile(r"(?:none|nothing|no|n/a|-|–|—)\b|[-–—]?$", re.IGNORECASE)
_EVERYBODY = re.compile(r"\ball\b.*\b(?:previous|prior|preceding|earlier|above|before)\b", re.IGNORECASE)
_THE_LAST = re.compile(r"(?:the\s+)?(?:previous|prior|preceding)\s+step\b", re.IGNORECASE)
_NUMBER = r"(?<![\w.])([0-9]{1,9})(?!\w|\.[0-9])"
_NUMBERS = re.compile(rf"{_NUMBER}(?:\s*(?:-|–|—|to|through)\s*(?:steps?\s*)?{_NUMBER})?", re.IGNORECASE)
_LONGEST_RANGE = 100_000
_LABEL = re.compile(r"\bAC[-_ ]?(?=[0-9])", re.IGNORECASE)  # AC1, AC-2: acceptance criteria
_NO_COMMAND = re.compile(r"(?:none|n/a)\b[.!]?\s*(?:\(.*\))?", re.IGNORECASE | re.DOTALL)
_NOT_GIVEN = re.compile(r"(?:none specified|not specified|unspecified|tbd)\b.*", re.IGNORECASE | re.DOTALL)
_RUN = re.compile(r"(?:(?:run|execute|running)\b:?\s*)?(?=`)", re.IGNORECASE)


def _step(text: StepText, earlier: list[int]) -> PlanStep:
    return PlanStep(
        number=text.number,
        title=text.title,
        description=text.description,
        complexity=text.fields.get(Field.COMPLEXITY, ""),
        estimated_time=text.fields.get(Field.ESTIMATED_TIME, ""),
        dependencies=_dependencies(text.fields.get(Field.DEPENDENCIES, ""), earlier, text.line),
        files_affected=tuple(AffectedFile(path, note) for path, note in text.files),
        verify=_command(text.fields.get(Field.VERIFY, "")),
        serves=_numbers(_LABEL.sub("", REMARK.sub("", text.fields.get(Field.SERVES, "")))),
        line=text.line,
    )


def _dependencies(text: str, earlier: list[int], line: int) -> tuple[int, ...]:
    text = REMARK.sub("", text).strip("*_` \t.")
    if _NOBODY.match(text):
        return ()
    if _EVERYBODY.search(text):
        return tuple(earlier)
    if _THE_LAST.match(text):
        return tuple(earlier[-1:])
    numbers = _numbers(text)
    if text and not numbers:
        raise PlanInvalid(
            f"The step in line {line} has dependencies that cannot be read: {text[:80]!r}",
            hint="Write `None`, `Step 1`, `Steps 1-3` or `All previous steps`.",
        )
    return numbers


def _numbers(text: str) -> tuple[int, ...]:
    """The numbers that a list such as `1, 3-5 and 8` names."""
    numbers: list[int] = []
    for first, last in _NUMBERS.findall(text):
        numbers.append(int(first))
        if last:
            numbers.append(int(last))
            if int(last) - int(first) < _LONGEST_RANGE:  # of an absurd one the ends are enough for `check`
                numbers.extend(range(int(first), int(last)))
    return tuple(numbers)


def _command(value: str) -> str:
    """The first code span where the value starts with one (perhaps as "Run `…`"), else all of it."""
    span = next(code_spans(value), None) if _RUN.match(value) else None
    if span is not None:
        return span.text
    return "" if _NOT_GIVEN.fullmatch(value) else NO_CHECK if _NO_COMMAND.fullmatch(value) else value


def _without_ticks(value: str) -> str:
    span = next(code_spans(value), None)
    return span.text if span is not None and span.start == 0 else value


# ------------------------------------------------------------------------------------------------ writing


def _blocks(plan: ImplementationPlan) -> Iterator[str]:
    """The paragraphs of plan.md, to be parted by blank lines."""
    yield _heading("# Implementation Plan" + (f": {plan.ticket_title}" if plan.ticket_title else ""))
    ticket = [f"**Ticket:** {code_span(plan.ticket_slug)}"] if plan.ticket_slug else []
    yield "\n".join(
        [
            *ticket,
            f"**Type:** {_value(plan.ticket_type)}",
            f"**Complexity:** {plan.total_complexity}",
            f"**Estimated Time:** {plan.total_estimated_time}",
        ]
    )
    if plan.overview:
        yield "## Overview"
        yield overview_block(plan.overview)
    yield "## Implementation Steps"
    for step in plan.steps:
        yield from step_blocks(step)
    if plan.risks:
        yield "## Risks & Considerations"
        yield risks_block(plan.risks)


def step_blocks(step: PlanStep, depth: int = 3) -> Iterator[str]:
    """A step's paragraphs, with a heading of this depth."""
    yield _heading(f"{'#' * depth} Step {step.number}: {step.title}")
    fields = [
        f"**Complexity:** {step.complexity}",
        f"**Estimated Time:** {step.estimated_time}",
        f"**Dependencies:** {_dependencies_text(step.dependencies)}",
    ]
    if step.verify:
        fields.append(f"**Verify:** {step.verify if step.verify == NO_CHECK else code_span(step.verify)}")
    if step.serves:
        fields.append(f"**Serves:** {', '.join(map(str, step.serves))}")
    if "\n" in step.description:
        yield _description(step.description)
    elif step.description:
        fields.insert(0, f"**Description:** {step.description}")
    yield "\n".join(fields)
    if step.files_affected:
        yield "**Files Affected:**\n" + "\n".join(map(_file_item, step.files_affected))


def _heading(line: str) -> str:
    """CommonMark drops a closing run of `#`: a title that ends in one gets another, to be dropped."""
    return f"{line} #" if line.endswith("#") else line


def _value(text: str) -> str:
    return code_span(text) if text.startswith("`") else text


def _dependencies_text(numbers: tuple[int, ...]) -> str:
    return f"Step {', '.join(map(str, numbers))}" if numbers else "None"


def _file_item(file: AffectedFile) -> str:
    return f"- {code_span(file.path)}" + (f" ({file.note})" if file.note else "")


def _description(text: str) -> str:
    """Several lines: beside the label when they start like a sentence, else below it."""

    def reads_back(block: str) -> bool:
        first, *rest = read_plan(f"### Step 1\n\n{block}\n\n**Complexity:** c\n\n### Step 2\n").steps
        return (first.description, first.fields.get(Field.COMPLEXITY), len(rest)) == (text, "c", 1)

    beside = f"**Description:** {text}"
    if is_plain(text) or (text[0].isalpha() and _holds(reads_back, beside)):
        return beside
    return _first(reads_back, (f"**Description:**\n\n{spelling}" for spelling in spellings(text)))


def overview_block(text: str) -> str:
    """An overview as it stands below its heading."""

    def reads_back(block: str) -> bool:
        found = read_plan(f"# Implementation Plan\n\n## Overview\n\n{block}\n\n## Implementation Steps\n\n### Step 1\n")
        return (found.overview, len(found.steps)) == ([text], 1)

    return text if is_plain(text) else _first(reads_back, spellings(text))


def risks_block(risks: Iterable[str]) -> str:
    """Risks as they stand below their heading."""
    return "\n".join(map(_risk, risks))


def _risk(text: str) -> str:
    def reads_back(item: str) -> bool:
        found = read_plan(f"## Risks & Considerations\n\n- r\n{item}\n- r\n")
        return found.risks == ["r", text, "r"]

    if is_plain(text) and "\n" not in text:
        return f"- {text}"
    return _first(reads_back, (f"- {_indented(spelling)}" for spelling in spellings(text)))


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" if line else "" for line in text.split("\n")).removeprefix("  ")


def _first(reads_back: Callable[[str], bool], blocks: Iterable[str]) -> str:
    return next(block for block in blocks if _holds(reads_back, block))


def _holds(reads_back: Callable[[str], bool], block: str) -> bool:
    try:
        return reads_back(block)
    except BadInput:  # nested too deeply
        return False
