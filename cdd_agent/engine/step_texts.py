"""Describes a step, its plan and earlier steps for the prompt."""

from collections.abc import Iterable

from cdd_agent.files.line_ranges import describe_ranges
from cdd_agent.tickets.declared_files import (
    MOST_MATCHES,
    DeclaredFile,
    DeclaredFiles,
)
from cdd_agent.tickets.plan import ImplementationPlan, PlanStep
from cdd_agent.tickets.state import ExecutionState, StepExecution
from cdd_agent.tickets.status import StepStatus

_WINDOW_PER_NAME = 100
"""Tokens of the window for each listed match of a pattern or folder."""


def describe_plan(plan: ImplementationPlan) -> str:
    """Return the plan's overview, titles of steps, and risks."""
    titles = [f"{step.label}. {step.title}" for step in plan.steps]
    parts = ["# Plan", plan.overview.strip(), "\n".join(titles)]
    if plan.risks:
        parts.append(f"## Risks\n{_bullets(plan.risks)}")
    return "\n\n".join(filter(None, parts))


def describe_earlier_steps(
    plan: ImplementationPlan, state: ExecutionState, step: PlanStep
) -> str:
    """Return what the finished and skipped steps did; empty without any."""
    lines = []
    for other in plan.steps:
        execution = state.step(other.number)
        if other.number == step.number or not execution.status.is_over:
            continue
        needed = ""
        if other.number in step.dependencies:
            needed = " (this step depends on it)"
        effect = _describe_effect(execution)
        lines.append(f"- {other.label}. {other.title}{needed}: {effect}")
    if not lines:
        return ""
    return "# What earlier steps did\n\n" + "\n".join(lines)


def _describe_effect(execution: StepExecution) -> str:
    if execution.status is StepStatus.SKIPPED:
        return f"skipped ({execution.reason}); its result does not exist"
    changes = [f"created {path}" for path in execution.files_created]
    changes += [f"changed {path}" for path in execution.files_modified]
    changes += [f"deleted {path}" for path in execution.files_deleted]
    return ", ".join(changes) or "no files"


def describe_step(
    plan: ImplementationPlan,
    step: PlanStep,
    declared: DeclaredFiles,
    window: int | None,
) -> str:
    """Return a step's text, files, checks and rules for tests. `window` (tokens) limits
    the list of matching files.
    """
    most = MOST_MATCHES if window is None else window // _WINDOW_PER_NAME
    parts = [
        f"# Step {step.label} of {len(plan.steps)}: {step.title}",
        step.description,
        _list_files(declared, most),
        _list_places(declared),
        _list_checks(step),
        _describe_removable_tests(step),
        _describe_failing_tests(step),
    ]
    return "\n\n".join(filter(None, parts))


def _list_files(declared: DeclaredFiles, most: int) -> str:
    """List files; below patterns and folders their matches, at most `most` in all."""
    if not declared:
        return ""
    lines = ["Files of this step:"]
    unlisted = set(declared.matched)
    for file in declared.files:
        matches = [path for path in file.matches if path in unlisted]
        unlisted.difference_update(matches)
        lines.append(_describe_file(file, has_matches=bool(matches)))
        listed = matches[:most]
        most -= len(listed)
        lines += [f"  - {path}" for path in listed]
        if len(listed) < len(matches):
            lines.append(f"  - and {len(matches) - len(listed)} more")
    return "\n".join(lines)


def _describe_file(file: DeclaredFile, *, has_matches: bool) -> str:
    line = f"- {file.path}"
    if file.file.note:
        line += f" ({file.file.note})"
    if has_matches:
        return f"{line}:"
    if file.glob and not file.matches and not file.file.is_created:
        return f"{line}: no file matches yet"
    return line


def _list_places(declared: DeclaredFiles) -> str:
    lines = []
    for path in declared.named:
        for place in declared.lines(path):
            lines.append(f"Look at {describe_ranges((place,))} of {path}.")
    return "\n".join(lines)


def _list_checks(step: PlanStep) -> str:
    if not step.checks:
        return ""
    if len(step.checks) == 1:
        return f"Checked by: {step.checks[0]}"
    return f"All of these checks must pass:\n{_bullets(step.checks)}"


def _describe_removable_tests(step: PlanStep) -> str:
    if step.removes_tests is None:
        return ""
    names = ", ".join(step.removes_tests) or "none"
    return f"Tests that this step may remove, skip or weaken: {names}"


def _describe_failing_tests(step: PlanStep) -> str:
    if not step.may_fail:
        return ""
    tests = []
    for item in step.may_fail:
        until = f" (until step {item.until})" if item.until else ""
        tests.append(f"{item.tests}{until}")
    return f"Tests that need not pass yet: {', '.join(tests)}"


def _bullets(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)
