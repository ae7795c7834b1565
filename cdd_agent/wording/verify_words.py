"""Words of the events of verifying a ticket again."""

from collections.abc import Iterator

from cdd_agent.engine.named_files import named
from cdd_agent.events.notices import Tone
from cdd_agent.events.verify_events import (
    StepResult,
    VerifiedStep,
    VerifyFinished,
    VerifyStarted,
)
from cdd_agent.wording.registry import Lines, words_of
from cdd_agent.wording.step_signs import first_names
from cdd_agent.wording.ticket_words import edited_criteria_lines, missing_files

_NAMED_TOGETHER = (StepResult.UNVERIFIED, StepResult.SKIPPED, StepResult.OPEN)


@words_of.register
def describe_verify_started(event: VerifyStarted) -> Lines:
    count = len(event.checks)
    checks = "1 check" if count == 1 else f"{count} checks"
    text = (
        f"{event.ticket_slug}: running {checks} of completed steps on a copy of your"
        " files"
    )
    return [(text, Tone.QUIET)]


@words_of.register
def describe_verify_finished(event: VerifyFinished) -> Lines:
    lines = [(f"{event.ticket_slug}: {_counts(event)}", _tone(event))]
    reasons = {check.command: check.reason for check in event.checks}
    together: dict[str, list[VerifiedStep]] = {}
    for step in event.broken:
        finding = "; ".join(_findings(step, reasons))
        together.setdefault(finding, []).append(step)
    for finding, steps in together.items():
        lines.append((f"  {_titles(steps)}: {finding}", Tone.ERROR))
    for result in _NAMED_TOGETHER:
        steps = [step for step in event.steps if step.result is result]
        if steps:
            text = f"  {result.value}: {_titles(steps)}"
            lines.append((text, Tone.WARNING))
    if event.other_failures:
        names = first_names(event.other_failures)
        text = f"  failing tests that no completed step ran: {names}"
        lines.append((text, Tone.WARNING))
    if event.missing:
        text = f"  not in the copy, because git ignores it: {named(event.missing)}"
        lines.append((text, Tone.WARNING))
    return [*lines, *edited_criteria_lines(event.edited_criteria)]


def _tone(event: VerifyFinished) -> Tone:
    results = {step.result for step in event.steps}
    if StepResult.BROKEN in results:
        return Tone.ERROR
    if StepResult.UNVERIFIED in results or StepResult.HOLDS not in results:
        return Tone.WARNING
    return Tone.GOOD


def _counts(event: VerifyFinished) -> str:
    counts = []
    for result in StepResult:
        number = sum(step.result is result for step in event.steps)
        if number:
            counts.append(f"{number} {_in_words(result, number)}")
    return ", ".join(counts)


def _in_words(result: StepResult, number: int) -> str:
    one = number == 1
    match result:
        case StepResult.HOLDS:
            return "step holds" if one else "steps hold"
        case StepResult.BROKEN:
            return "no longer holds" if one else "no longer hold"
        case _:
            return result.value


def _titles(steps: list[VerifiedStep]) -> str:
    return ", ".join(f"{step.label}. {step.title}" for step in steps)


def _findings(step: VerifiedStep, reasons: dict[str, str]) -> Iterator[str]:
    for check in step.checks:
        yield reasons.get(check, f"`{check}` failed")
    if step.failed:
        yield f"tests that passed now fail: {first_names(step.failed)}"
    if step.lost:
        yield f"tests that passed are now missing or skipped: {first_names(step.lost)}"
    if step.missing is not None:
        yield missing_files(step.missing)
    if step.has_lost_check:
        yield "the check that verified it is missing or no longer runs tests"
