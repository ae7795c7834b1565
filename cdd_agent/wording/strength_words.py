"""Words of the events of measuring tests with small faults."""

from cdd_agent.events.notices import Tone
from cdd_agent.events.strength_events import (
    CriterionStrength,
    FaultTried,
    StepStrength,
    Strength,
    StrengthFinished,
    StrengthStarted,
)
from cdd_agent.wording.registry import Lines, words_of

_RESULTS = {
    "noticed": "noticed",
    "not_noticed": "not noticed",
    "no_result": "no result",
}


def rate_in_words(strength: Strength) -> str:
    """Return the share of noticed faults, with the numbers."""
    weak = ", weak" if strength.is_weak else ""
    faults = _faults(strength.faults)
    return f"{strength.percent} % ({strength.noticed} of {faults} noticed){weak}"


@words_of.register
def describe_strength_started(event: StrengthStarted) -> Lines:
    text = (
        f"{event.ticket_slug}: trying {_faults(event.faults)} in the lines that its"
        " steps changed"
    )
    if event.saved:
        text += f", {event.saved} already measured"
    if event.saved < event.faults:
        text += ". The faults are put into a copy of your files."
    return [(text, Tone.QUIET)]


@words_of.register
def describe_fault_tried(event: FaultTried) -> Lines:
    text = (
        f"step {event.label}: {event.tried} of {_faults(event.faults)},"
        f" {event.noticed} noticed"
    )
    if event.result == "noticed":
        return [(text, Tone.QUIET)]
    place = f"{event.path}:{event.line}"
    return [(f"{text}; {_RESULTS[event.result]}: {place} {event.words}", Tone.QUIET)]


@words_of.register
def describe_strength_finished(event: StrengthFinished) -> Lines:
    lines: Lines = []
    for step in event.steps:
        lines += _step(step)
    for criterion in event.criteria:
        lines += _criterion(criterion)
    if event.was_stopped:
        text = "Stopped. The results so far are saved. Run it again to try the rest."
        lines.append((text, Tone.WARNING))
    return lines


def _step(step: StepStrength) -> Lines:
    lines: Lines = [_headline(step)]
    for fault in step.unnoticed:
        text = f"    {fault.path}:{fault.line} {fault.words}: {fault.source}"
        lines.append((text, Tone.PLAIN))
    if step.strength is not None:
        lines += _gaps(step)
    return lines


def _headline(step: StepStrength) -> tuple[str, Tone]:
    """Return a step with its score, or the reason for having none."""
    name = f"step {step.label}. {step.title}"
    if step.strength is not None:
        tone = Tone.GOOD
        if step.strength.is_weak:
            tone = Tone.WARNING
        elif step.unnoticed:
            tone = Tone.PLAIN
        return f"{name}: {rate_in_words(step.strength)}", tone
    if step.problem:
        return f"{name} cannot be measured: {step.problem}", Tone.WARNING
    return f"{name}: {_why_no_score(step)}", Tone.QUIET


def _gaps(step: StepStrength) -> Lines:
    lines: Lines = []
    if step.problem:
        lines.append((f"    the rest cannot be measured: {step.problem}", Tone.WARNING))
    if step.no_result:
        text = f"    no result for {_faults(step.no_result)}: the code does not compile"
        lines.append((text, Tone.QUIET))
    if step.untried and not step.problem:
        lines.append((f"    {_faults(step.untried)} not tried yet", Tone.QUIET))
    return lines


def _why_no_score(step: StepStrength) -> str:
    if step.no_result:
        return f"no result for {_faults(step.no_result)}: the code does not compile"
    if step.untried:
        return "not measured yet"
    return "its changed lines offer no fault to try"


def _criterion(criterion: CriterionStrength) -> Lines:
    if criterion.strength is None:
        return []
    tone = Tone.WARNING if criterion.strength.is_weak else Tone.PLAIN
    rate = rate_in_words(criterion.strength)
    return [(f"criterion {criterion.number}. {criterion.text}: {rate}", tone)]


def _faults(count: int) -> str:
    return "1 fault" if count == 1 else f"{count} faults"
