"""The measured strength of the tests, as rows."""

from __future__ import annotations

from msgspec import Struct

from cdd_agent.engine.strength_summary import StepFaultResults, StrengthReading
from cdd_agent.events.strength_events import StepStrength
from cdd_agent.tui.inspector.row_list import ListRow, RowGroup
from cdd_agent.tui.inspector.words import count_of, moment, span
from cdd_agent.verification.strength.score import FaultResult, TriedFault

_SIGNS = {
    FaultResult.NOTICED: "✓",
    FaultResult.NOT_NOTICED: "✗",
    FaultResult.NO_RESULT: "–",
}
_WORDS = {
    FaultResult.NOTICED: "noticed",
    FaultResult.NOT_NOTICED: "not noticed",
    FaultResult.NO_RESULT: "no result",
}
_LOOKS = {
    FaultResult.NOTICED: "muted",
    FaultResult.NOT_NOTICED: "warning",
    FaultResult.NO_RESULT: "muted",
}


class FaultPlace(Struct, frozen=True):
    path: str
    line: int


def strength_facts(reading: StrengthReading) -> str:
    """Return the score of all steps, the time of the measurement, and the threshold."""
    noticed = faults = 0
    for step in reading.steps:
        if step.score.strength is not None:
            noticed += step.score.strength.noticed
            faults += step.score.strength.faults
    facts = []
    if faults:
        share = 100 * noticed // faults
        facts.append(f"{share} % ({noticed} of {count_of(faults, 'fault')} noticed)")
    if reading.measured_at is not None:
        facts.append(f"measured {moment(reading.measured_at)}")
    if reading.settings.threshold is not None:
        facts.append(f"weak below {reading.settings.threshold} %")
    return " · ".join(facts)


def strength_limits(reading: StrengthReading) -> str:
    settings, steps = reading.settings, reading.completed
    most = span(settings.most_seconds * steps)
    return (
        f"This tries up to {count_of(settings.most_faults, 'small fault')} for each of"
        f" {count_of(steps, 'completed step')} in a copy of your files, for at most"
        f" {span(settings.most_seconds)} a step, so {most} in all. You can stop it with"
        " Esc; the results so far stay."
    )


def strength_groups(reading: StrengthReading) -> list[RowGroup]:
    return [_group(step) for step in reading.steps]


def _group(step: StepFaultResults) -> RowGroup:
    score = step.score
    look = "good"
    if score.strength is None:
        look = "muted"
    elif score.strength.is_weak:
        look = "error"
    elif score.unnoticed:
        look = "warning"
    key = ("strength", score.step)
    text = f"{score.label}. {score.title}"
    head = ListRow(key, text, _score_in_words(score), look, score.step)
    ordered = sorted(
        step.faults, key=lambda tried: tried.result is not FaultResult.NOT_NOTICED
    )
    rows = tuple(_fault_row(score.step, tried) for tried in ordered)
    return RowGroup(head, rows)


def _score_in_words(score: StepStrength) -> str:
    if score.strength is None:
        return "no result" if score.no_result else "not measured"
    strength = score.strength
    weak = ", weak" if strength.is_weak else ""
    return (
        f"{strength.noticed} of {strength.faults} noticed, {strength.percent} %{weak}"
    )


def _fault_row(step: int, tried: TriedFault) -> ListRow:
    fault = tried.fault
    text = f"{_SIGNS[tried.result]} {fault.path}:{fault.line}  {fault.words}"
    if tried.result is FaultResult.NOT_NOTICED:
        text += f"  in: {fault.source.strip()}"
    key = ("strength", step, fault.path, fault.line, fault.start, fault.words)
    place = FaultPlace(fault.path, fault.line)
    return ListRow(key, text, _WORDS[tried.result], _LOOKS[tried.result], place)
