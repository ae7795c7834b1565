"""Collects problems of a plan's text, with their lines."""

from collections.abc import Iterable

from msgspec import Struct

from cdd_agent.tickets.plan import ImplementationPlan, Problem

_MAX_ERRORS = 20
_MAX_SHOWN = 80


class Finding(Struct, frozen=True):
    """A problem before its step has a number."""

    kind: str
    line: int
    """From 0."""
    text: str
    """Continues the sentence "step 1 …", if there is a step."""
    is_warning: bool
    step: int | None
    """Index of the step."""


class Findings(Struct):
    items: list[Finding] = []

    def error(self, kind: str, line: int, text: str, step: int | None = None) -> None:
        """Add a problem that loses work or a check."""
        self.items.append(Finding(kind, line, text, False, step))

    def warn(self, kind: str, line: int, text: str, step: int | None = None) -> None:
        self.items.append(Finding(kind, line, text, True, step))

    def to_problems(self, plan: ImplementationPlan) -> tuple[Problem, ...]:
        """Return problems by line. If there are many of one kind, the last one counts
        the rest.
        """
        problems = []
        counts: dict[str, int] = {}
        for item in sorted(self.items, key=lambda item: item.line):
            counts[item.kind] = counts.get(item.kind, 0) + 1
            if counts[item.kind] > _MAX_ERRORS:
                continue
            text = item.text
            if counts[item.kind] == _MAX_ERRORS:
                total = sum(other.kind == item.kind for other in self.items)
                if total > _MAX_ERRORS:
                    text += f" (and {total - _MAX_ERRORS} more lines like this)"
            number = None
            if item.step is not None:
                step = plan.steps[item.step]
                number = step.number
                text = f"step {step.label} {text}"
            problems.append(
                Problem(item.kind, number, item.line + 1, text, item.is_warning)
            )
        return tuple(problems)


def quote(text: str) -> str:
    """Return a line as messages show it."""
    text = " ".join(text.split())
    if len(text) > _MAX_SHOWN:
        text = f"{text[: _MAX_SHOWN - 1]}…"
    return f"“{text}”"


def line_runs(lines: Iterable[int]) -> str:
    """Format 0-based line numbers: `line 3`, `lines 3-5, 8`."""
    runs: list[list[int]] = []
    for line in sorted(lines):
        if runs and runs[-1][1] == line - 1:
            runs[-1][1] = line
        else:
            runs.append([line, line])
    written = []
    for first, last in runs:
        written.append(f"{first + 1}" if first == last else f"{first + 1}-{last + 1}")
    is_one = len(runs) == 1 and runs[0][0] == runs[0][1]
    return f"{'line' if is_one else 'lines'} {', '.join(written)}"
