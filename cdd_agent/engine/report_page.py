"""A run's report as `report.json` and `report.md`.

Any text may occur in titles, errors and paths, so it is escaped to stay in its cell,
line or block.
"""

import json
import re
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path

from cdd_agent.engine.effort import RunEffort
from cdd_agent.engine.report import Counts, Report, StepReport
from cdd_agent.files.atomic import write_atomic
from cdd_agent.pattern import Pattern
from cdd_agent.text.sanitize import sanitize_for_display
from cdd_agent.tickets.outcome_words import (
    proof_in_words,
    remark_on,
    run_in_words,
    steps_by_outcome,
    steps_in_words,
    tally_in_words,
)
from cdd_agent.tickets.run_outcome import reasons_against
from cdd_agent.tickets.status import RunStatus, StepStatus

_SPECIAL = Pattern(r"[\\`*\[\]<>|#~&]|(?<![^\W_])_|_(?![^\W_])")
"""Markdown's special characters. Underscores within words are not special."""
_HEAD: tuple[str, ...] = (
    "Step",
    "Status",
    "Attempts",
    "Tests",
    "Files",
    "Time",
    "Model calls",
    "Tokens in",
    "Tokens out",
)


def save(report: Report, folder: Path) -> None:
    """Raises `BadInput` if the disk refuses."""
    data = json.dumps(report.to_json(), indent=2, ensure_ascii=False) + "\n"
    write_atomic(folder / "report.json", data.encode("utf-8", errors="replace"))
    write_atomic(
        folder / "report.md", to_markdown(report).encode("utf-8", errors="replace")
    )


def to_markdown(report: Report) -> str:
    parts = [
        f"# {_plain(report.ticket_slug)}: {_plain(report.ticket_title)}",
        _summary(report),
        _table(report),
        *_remarks(report.steps),
        *_files("Created", report.files_created),
        *_files("Changed", report.files_modified),
        *_files("Deleted", report.files_deleted),
    ]
    return "\n\n".join(parts) + "\n"


def _summary(report: Report) -> str:
    status = run_in_words(report.status, report.tally)
    lines = [f"- **{status}**: {tally_in_words(report.tally)}"]
    reasons = _reasons_against(report)
    lines += [f"- {reason}" for reason in reasons]
    if report.require and report.status is RunStatus.COMPLETED and not reasons:
        proof = proof_in_words(report.unproven)
        lines.append(f"- `require: {report.require}` is met: {proof}")
    for remark, steps in steps_by_outcome(report.unproven).items():
        names = steps_in_words([step.label for step in steps])
        lines.append(f"- {remark}: {names}")
    lines += [
        f"- not done: criterion {criterion.place} is {criterion.edit}:"
        f" {_plain(criterion.text)}"
        for criterion in report.edited_criteria
    ]
    if report.started_at:
        ended = (
            f", completed {_moment(report.completed_at)}" if report.completed_at else ""
        )
        lines.append(f"- started {_moment(report.started_at)}{ended}")
    lines.append(f"- tests before: {_tests_in_words(report.tests_before)}")
    lines.append(f"- tests after: {_tests_in_words(report.tests_after)}")
    lines += _uncounted_calls(report.effort)
    if report.damaged_lines:
        lines.append(
            f"- lines of the log that could not be read, and are not counted:"
            f" {report.damaged_lines}"
        )
    about = report.effort.cost.about
    if thinking := report.effort.thinking_tokens:
        lines.append(
            f"- thinking: {timedelta(seconds=round(report.effort.thinking_seconds))},"
            f" {about}{thinking:,} tokens"
        )
    if report.effort.usd:
        usd = f"{about}${report.effort.usd:.4f}"
        lines.append(f"- cost: {usd}, by the prices that are known")
    if words := report.effort.cost.effect_of_cache():
        lines.append(f"- {words}")
    return "\n".join(lines)


def _uncounted_calls(effort: RunEffort) -> Iterator[str]:
    calls = f"of {effort.model_calls} model calls"
    if uncounted := effort.model_calls - effort.counted_calls:
        yield f"- the tokens of {uncounted} {calls} are not known"
    if effort.estimated_calls:
        yield f"- the tokens of {effort.estimated_calls} {calls} are estimated"


def _reasons_against(report: Report) -> list[str]:
    """Return why the run is not done although its steps are over, in display order. If
    there is no reason, `require` holds.
    """
    reasons = []
    if report.missing:
        steps = ", ".join(f"step {work.label}" for work in report.missing)
        reasons.append(f"the work of {steps} is missing in the project's tree")
    against = reasons_against(report.require, report.unproven, report.edited_criteria)
    if report.require and against:
        reasons.append(
            f"does not meet `require: {report.require}`: {'; '.join(against)}"
        )
    return reasons


def _moment(moment: object) -> str:
    return str(moment).replace("+00:00", " UTC")


def _table(report: Report) -> str:
    rows = [_HEAD]
    for step in report.steps:
        status = step.status.value.replace("_", " ")
        if step.status is StepStatus.COMPLETED:
            remark = remark_on(step.outcome, step.evidence)
            status = ", ".join(filter(None, (status, remark)))
        files = len({*step.files_created, *step.files_modified, *step.files_deleted})
        tests = (
            f"{step.tests.passed} ✓ {step.tests.failed} ✗ {step.tests.skipped} –"
            if step.tests
            else ""
        )
        name = f"{step.label}. {_plain(step.title)}"
        rows.append(
            (name, status, str(step.attempts), tests, str(files), *_effort(step.effort))
        )
    attempts = sum(step.attempts for step in report.steps)
    files = (
        len(report.files_created)
        + len(report.files_modified)
        + len(report.files_deleted)
    )
    rows.append(("**All**", "", str(attempts), "", str(files), *_effort(report.effort)))
    head, *body = (f"| {' | '.join(row)} |" for row in rows)
    return "\n".join([head, "| --- | --- |" + " ---: |" * (len(_HEAD) - 2), *body])


def _effort(effort: RunEffort) -> tuple[str, ...]:
    about = effort.cost.about
    prompt = f"{about}{effort.prompt_tokens:,}"
    if effort.cached_tokens:
        prompt += f" ({effort.cached_tokens:,} cached)"
    return (
        str(timedelta(seconds=round(effort.seconds))),
        str(effort.model_calls),
        prompt,
        f"{about}{effort.completion_tokens:,}",
    )


def _tests_in_words(counts: Counts | None) -> str:
    if counts is None:
        return "not known"
    return f"{counts.passed} passed, {counts.failed} failed, {counts.skipped} skipped"


def _remarks(steps: Sequence[StepReport]) -> Iterator[str]:
    for step in steps:
        why = {StepStatus.FAILED: step.error, StepStatus.SKIPPED: step.reason}.get(
            step.status
        )
        if why:
            yield f"## Step {step.label} {step.status.value}: {_plain(step.title)}"
            yield _block(why)
        if step.notes:
            yield f"## To review in step {step.label}: {_plain(step.title)}"
            yield "\n".join(f"- {_plain(note)}" for note in step.notes)
        answers = [f"left out: {part}" for part in step.left_out] + [
            f"edited: {path}" for path in step.edited
        ]
        answers += [f"refused: {reason}" for reason in step.refusals]
        if answers:
            yield f"## Your answers in step {step.label}: {_plain(step.title)}"
            yield "\n".join(f"- {_plain(answer)}" for answer in answers)
        if len(step.models) > 1:
            yield (
                f"Step {step.label} had replies of {_plain(' and '.join(step.models))}."
            )


def _files(what: str, paths: Sequence[str]) -> Iterator[str]:
    if paths:
        yield f"## {what}"
        yield "\n".join(f"- {_plain(path)}" for path in paths)


def _plain(text: str) -> str:
    return _SPECIAL.sub(r"\\\g<0>", sanitize_for_display(" ".join(text.split())))


def _block(text: str) -> str:
    longest = max((len(run) for run in re.findall("`{3,}", text)), default=2)
    lines = "\n".join(map(sanitize_for_display, text.splitlines()))
    return f"{'`' * (longest + 1)}text\n{lines}\n{'`' * (longest + 1)}"
