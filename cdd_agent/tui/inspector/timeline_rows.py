from __future__ import annotations

from functools import singledispatch

from cdd_agent.cost import NO_COST, Cost
from cdd_agent.engine.effort import NO_EFFORT, RunEffort
from cdd_agent.engine.run_inspection import RunInspection
from cdd_agent.engine.timeline import Timeline, TimelineEvent, TimelinePart
from cdd_agent.events.dialogue_events import ReplyFinished, ReplyLost, ToolFinished
from cdd_agent.events.notices import Tone
from cdd_agent.events.question_events import PersonAnswered
from cdd_agent.events.run_events import QuestionAsked
from cdd_agent.events.step_events import AttemptFailed, ChangesApplied, TestsFinished
from cdd_agent.events.step_summary import StepFinished, StepSummary
from cdd_agent.events.stream import Event
from cdd_agent.tui.inspector.row_list import ListRow, RowGroup
from cdd_agent.tui.inspector.words import count_of, span, step_name
from cdd_agent.wording.describe import describe
from cdd_agent.wording.dialogue_words import lines_changed, tool_use
from cdd_agent.wording.faces import Face
from cdd_agent.wording.step_signs import IN_PROGRESS_SIGN

_LOOKS = {
    Tone.PLAIN: "",
    Tone.QUIET: "muted",
    Tone.HEADING: "strong",
    Tone.GOOD: "good",
    Tone.WARNING: "warning",
    Tone.ERROR: "error",
}
Words = tuple[str, Tone]


class TimelineRows:
    """Makes the rows of a timeline. Rows of unchanged parts are reused."""

    def __init__(self) -> None:
        self._groups: dict[int, tuple[object, RowGroup]] = {}

    def groups(self, timeline: Timeline, inspection: RunInspection) -> list[RowGroup]:
        """Return the rows of the parts, then those of undone steps."""
        efforts = timeline.efforts()
        groups = []
        for position, part in enumerate(timeline.parts, 1):
            effort = efforts.get(position, NO_EFFORT)
            number = inspection.number_of(part.folder)
            basis = (id(part), len(part.events), id(part.outcome), effort, number)
            cached = self._groups.get(position)
            if cached is None or cached[0] != basis:
                cached = basis, _group(position, part, effort, number)
                self._groups[position] = cached
            groups.append(cached[1])
        groups += [_undone_group(step) for step in inspection.undone]
        return groups


def last_attempt_key(timeline: Timeline, folder: int) -> object:
    for position in range(len(timeline.parts), 0, -1):
        if folder and timeline.parts[position - 1].folder == folder:
            return ("part", position)
    return None


class UndoneStep:
    """The target of rows that `redo` applies to."""


UNDONE = UndoneStep()


def _undone_group(step: StepSummary) -> RowGroup:
    text = f"↶ {step.label}. {step.title}"
    row = ListRow(("undone", step.number), text, "undone", "muted", UNDONE)
    return RowGroup(row)


def _group(
    position: int, part: TimelinePart, effort: RunEffort, number: int | None
) -> RowGroup:
    rows = tuple(
        _row(("event", position, place), happened, number)
        for place, happened in enumerate(part.events)
    )
    if part.is_attempt:
        return RowGroup(_head(position, part, effort, number), rows, is_open=False)
    first, *others = rows
    return RowGroup(first, tuple(others))


def _head(
    position: int, part: TimelinePart, effort: RunEffort, number: int | None
) -> ListRow:
    outcome = part.outcome
    if isinstance(outcome, StepFinished):
        name, look = step_name(outcome.summary), _LOOKS[_tone_of(outcome)]
    elif isinstance(outcome, AttemptFailed):
        name, look = f"✗ {part.label}. {part.title}", "warning"
    else:
        name, look = f"{IN_PROGRESS_SIGN} {part.label}. {part.title}", "strong"
    text = f"{part.started_at.astimezone():%H:%M:%S} {name}"
    facts = []
    if part.attempt > 1 or isinstance(outcome, AttemptFailed):
        facts.append(f"attempt {part.attempt}")
    if outcome is None:
        facts.append("not over")
    facts += _measures(effort.seconds, effort.cost)
    key = ("part", position)
    return ListRow(key, text, " · ".join(facts), look, number)


def _measures(seconds: float | None, cost: Cost = NO_COST) -> list[str]:
    measures = []
    if seconds:
        measures.append(span(seconds))
    if cost.tokens:
        measures.append(cost.in_short())
    return measures


def _row(key: object, happened: TimelineEvent, number: int | None) -> ListRow:
    text, tone = event_words(happened.event, happened.model)
    time = f"{happened.time.astimezone():%H:%M:%S}"
    facts = " · ".join(_measures(happened.seconds, happened.cost))
    return ListRow(key, f"{time} {text}", facts, _LOOKS[tone], number)


def _tone_of(outcome: StepFinished) -> Tone:
    lines = describe(outcome, Face.SHELL)
    return lines[0][1] if lines else Tone.PLAIN


def event_words(event: Event, model: str = "") -> Words:
    if isinstance(event, ReplyFinished):
        return (f"reply of {model}" if model else "reply"), Tone.PLAIN
    return _words_of(event)


@singledispatch
def _words_of(event: Event) -> Words:
    lines = describe(event, Face.SHELL)
    if not lines:
        return type(event).__name__, Tone.QUIET
    first, tone = lines[0]
    return first, tone


@_words_of.register
def _lost_reply(event: ReplyLost) -> Words:
    del event
    return "a call without a complete reply", Tone.WARNING


@_words_of.register
def _used_tool(event: ToolFinished) -> Words:
    text = tool_use(event)
    if event.files:
        text += f"  {lines_changed(event.files)}"
    if event.exit_code:
        return f"{text}  (exit code {event.exit_code})", Tone.WARNING
    if event.problem:
        return f"{text}  (failed: {event.problem})", Tone.WARNING
    return text, Tone.PLAIN


@_words_of.register
def _applied_changes(event: ChangesApplied) -> Words:
    paths = (*event.created, *event.modified, *event.deleted)
    if not paths:
        return "no file changed", Tone.QUIET
    names = ", ".join(paths)
    return f"{count_of(len(paths), 'file')} written: {names}", Tone.PLAIN


@_words_of.register
def _finished_tests(event: TestsFinished) -> Words:
    tone = Tone.ERROR if event.verification is None else Tone.GOOD
    if event.verification is not None and event.verification.value != "passed":
        tone = Tone.WARNING
    sign = "✗" if event.verification is None else "✓"
    counts = []
    for number, words in ((event.failed, "failed"), (event.passed, "passed")):
        if number:
            counts.append(f"{number:,} {words}")
    outcome = ", ".join(counts) or event.reason
    command = event.command or "check"
    return f"{sign} {command}: {outcome}", tone


@_words_of.register
def _failed_attempt(event: AttemptFailed) -> Words:
    return f"attempt {event.attempt} failed: {event.error}", Tone.ERROR


@_words_of.register
def _finished_step(event: StepFinished) -> Words:
    words = event.status.value.replace("_", " ")
    if event.error and event.status.value == "failed":
        words += f": {event.error}"
    if event.reason and event.status.value == "skipped":
        words += f": {event.reason}"
    return f"step {event.label} {words}", _tone_of(event)


@_words_of.register
def _asked_question(event: QuestionAsked) -> Words:
    return f"your question: {event.question}", Tone.PLAIN


@_words_of.register
def _answered(event: PersonAnswered) -> Words:
    return f"{event.question} → {event.answer}", Tone.PLAIN
