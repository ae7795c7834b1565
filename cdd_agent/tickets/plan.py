"""The plan of a ticket: its steps, their order, and plan.md as the form in which people keep it."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from heapq import heapify, heappop, heappush
from pathlib import PurePosixPath, PureWindowsPath
from typing import Self

from msgspec import Struct

from cdd_agent.errors import BadInput
from cdd_agent.tickets.markdown import code_span, code_spans, one_line, plain_text
from cdd_agent.tickets.plan_labels import Field
from cdd_agent.tickets.plan_parser import ParsedPlan, parse_plan
from cdd_agent.tickets.plan_step import DEFAULT_COMPLEXITY, DEFAULT_TIME, PlanStep, normalise
from cdd_agent.tickets.plan_writing import heading, overview_block, risks_block, step_blocks

_TYPE = "feature"


class Problem(Struct, frozen=True):
    """Something in a plan that keeps it from being carried out, or from being carried out well."""

    kind: str
    """A word for scripts, as `cycle`."""
    step: int | None
    """None: it is the plan's, not one step's."""
    line: int
    """In plan.md, from 1; 0 if the plan was not read from there."""
    text: str
    """The fault and its fix, as a clause."""
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


class ImplementationPlan(Struct, frozen=True, dict=True):
    """The steps by which a ticket becomes code: for every plan, `from_markdown(plan.to_markdown()) == plan`."""

    ticket_slug: str = ""
    ticket_title: str = ""
    ticket_type: str = _TYPE
    overview: str = ""
    total_complexity: str = DEFAULT_COMPLEXITY
    total_estimated_time: str = DEFAULT_TIME
    steps: tuple[PlanStep, ...] = ()
    risks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        normalise(
            self,
            ticket_slug=one_line(self.ticket_slug),
            ticket_title=one_line(self.ticket_title),
            ticket_type=one_line(self.ticket_type) or _TYPE,
            overview=plain_text(self.overview),
            total_complexity=one_line(self.total_complexity) or DEFAULT_COMPLEXITY,
            total_estimated_time=one_line(self.total_estimated_time) or DEFAULT_TIME,
            steps=tuple(self.steps),
            risks=tuple(risk for risk in map(plain_text, self.risks) if risk),
        )

    @classmethod
    def from_markdown(cls, text: str) -> Self:
        """Reads tolerantly; whether the plan can be run is for `check` to say.

        Raises `BadInput` only for Markdown nested too deeply, and for dependencies that cannot be read.
        """
        return cls.of(parse_plan(text))

    @classmethod
    def of(cls, parsed: ParsedPlan) -> Self:
        """The plan that was found in a text."""

        def word(field: Field) -> str:
            value = parsed.fields.get(field, "")
            span = next(code_spans(value), None)
            return span.text if span is not None and span.start == 0 else value

        return cls(
            ticket_slug=word(Field.TICKET),
            ticket_title=parsed.title,
            ticket_type=word(Field.TYPE),
            overview="\n\n".join(parsed.overview),
            total_complexity=parsed.fields.get(Field.COMPLEXITY, ""),
            total_estimated_time=parsed.fields.get(Field.ESTIMATED_TIME, ""),
            steps=tuple(found.step for found in parsed.steps),
            risks=tuple(parsed.risks),
        )

    def to_markdown(self) -> str:
        """The plan as plan.md."""
        kind = code_span(self.ticket_type) if self.ticket_type.startswith("`") else self.ticket_type
        fields = [f"**Ticket:** {code_span(self.ticket_slug)}"] if self.ticket_slug else []
        fields += [
            f"**Type:** {kind}",
            f"**Complexity:** {self.total_complexity}",
            f"**Estimated Time:** {self.total_estimated_time}",
        ]
        title = "# Implementation Plan" + (f": {self.ticket_title}" if self.ticket_title else "")
        blocks = [heading(title), "\n".join(fields)]
        if self.overview:
            blocks += ["## Overview", overview_block(self.overview)]
        blocks += ["## Implementation Steps", *(block for step in self.steps for block in step_blocks(step))]
        if self.risks:
            blocks += ["## Risks & Considerations", risks_block(self.risks)]
        return "\n\n".join(blocks) + "\n"

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
        return self._ordered

    def faults(self) -> list[Problem]:
        """The problems that keep the plan from being run, in the order of its lines."""
        return list(self._faults)

    @cached_property
    def _ordered(self) -> tuple[PlanStep, ...]:
        """A run asks for it several times a step; with many steps that takes longer than all the rest."""
        return tuple(_in_order(self.steps))

    @cached_property
    def _faults(self) -> tuple[Problem, ...]:
        found: list[Problem] = []
        if not self.steps:
            text = "no steps: a plan needs at least one heading like `### Step 1: Create the model`"
            found.append(Problem("no_steps", None, 1, text))
        first: dict[int, PlanStep] = {}
        for step in self.steps:
            if step.number in first:
                text = f"step {step.number} is there twice, first in line {first[step.number].line}"
                found.append(Problem("duplicate_step", step.number, step.line, text))
            first.setdefault(step.number, step)
        for step in self.steps:
            for other in step.dependencies:
                if other == step.number:
                    found.append(Problem("cycle", step.number, step.line, f"step {step.number} depends on itself"))
                elif other not in first:
                    text = f"step {step.number} depends on step {other}, which does not exist"
                    found.append(Problem("unknown_dependency", step.number, step.line, text))
            for file in step.files_affected:
                windows = PureWindowsPath(file.path)  # has both separators
                is_absolute = PurePosixPath(file.path).is_absolute() or windows.drive or windows.root
                if is_absolute or ".." in windows.parts:
                    why = "is absolute" if is_absolute else "has `..`"
                    text = f"step {step.number} affects `{file.path}`: the path {why}; write it from the project's root"
                    found.append(Problem("outside_project", step.number, step.line, text))
        for cycle in _cycles(first):
            text = "dependency cycle: " + " → ".join(map(str, [*cycle, cycle[0]]))
            found.append(Problem("cycle", cycle[0], first[cycle[0]].line, text))
        return tuple(sorted(found, key=lambda fault: fault.line))

    def check(self, source: str = "plan.md") -> None:
        """Raises `PlanInvalid`, with each problem and its line in `source`, for a plan that cannot be run."""
        if faults := self.faults():
            raise PlanInvalid(
                "\n".join(f"{source}:{fault.line}: {fault.text}" for fault in faults),
                hint=f"Fix {source} by hand, or let `/plan` change it.",
            )


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


def _cycles(steps: Mapping[int, PlanStep]) -> Iterator[list[int]]:
    """The dependency cycles, each from the step that the plan has first."""
    places = {number: place for place, number in enumerate(steps)}
    blocked = steps.keys() - {step.number for step in _in_order(steps.values())}
    seen: set[int] = set()
    for start in sorted(blocked, key=places.__getitem__):
        path: list[int] = []
        number = start
        while number not in seen:  # a blocked step has a blocked dependency, so this runs into a step seen
            seen.add(number)
            path.append(number)
            number = _others(steps[number], blocked)[0]
        if number in path:
            cycle = path[path.index(number) :]
            earliest = cycle.index(min(cycle, key=places.__getitem__))
            yield cycle[earliest:] + cycle[:earliest]
