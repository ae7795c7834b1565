"""Shows the last part of a run again in a later session, from its log and the texts in
attempts' folders.

Secrets are removed, as from the events.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from cdd_agent.engine.attempt import Attempt
from cdd_agent.engine.log import LogEntry, RunLog
from cdd_agent.engine.record import RunRecord
from cdd_agent.engine.side_events import SideSteps
from cdd_agent.events.dialogue_events import (
    ReplyDelta,
    ReplyFinished,
    ReplyLost,
    ReplyStarted,
    ToolFinished,
    ToolStarted,
)
from cdd_agent.events.notices import Answer, Notice, NoticeKind
from cdd_agent.events.run_events import (
    BaselineStarted,
    QuestionAnswered,
    QuestionAsked,
)
from cdd_agent.events.shell_events import PersonSaid
from cdd_agent.events.step_events import (
    AttemptFailed,
    ChangesApplied,
    CheckpointStarted,
    CommandOutput,
    StepDiff,
    StepStarted,
    TestsFinished,
    TestsStarted,
)
from cdd_agent.events.step_summary import StepFinished
from cdd_agent.events.stream import Event, SessionRestored
from cdd_agent.events.ticket_events import PlanProposed
from cdd_agent.files.json_file import read_text
from cdd_agent.tickets.state import ExecutionState

MOST_EVENTS = 200
LONGEST_TEXT = 20_000
"""Longest reply, answer or output, in characters."""
_TAIL = 4_000_000
"""Bytes to read from the log's end."""
_ONLY_LIVE = (
    ReplyStarted,
    ReplyLost,
    CheckpointStarted,
    BaselineStarted,
    ToolStarted,
    TestsStarted,
)
"""Events that only announce a wait, or are implied by their end."""
_OF_THE_MOMENT = (NoticeKind.WHAT_NEXT, NoticeKind.RESUMED)
"""Notices that the agent repeats when a session resumes."""
_ENDS_OF_PLANNING = (NoticeKind.PLAN_WRITTEN, NoticeKind.PLAN_KEPT)
_LONGEST_LINE = 160


def run_retold(record: RunRecord, state: ExecutionState) -> SessionRestored:
    """Raises `BadInput` if the record is unreadable."""
    entries = record.log.latest(_TAIL)
    side = SideSteps()
    shown = [
        entry
        for entry in entries
        if not side.holds_back(entry.event) and _is_shown(entry.event)
    ]
    retold = _Retold(record, state, {id(entry) for entry in shown[-MOST_EVENTS:]})
    events = [event for entry in shown for event in retold.of(entry)]
    return SessionRestored(
        record.slug, tuple(events), left_out=len(shown) > MOST_EVENTS
    )


def planning_retold(record: RunRecord) -> SessionRestored:
    """Return the conversation about the plan since one was last written or discarded,
    up to the user's last line: the Planner repeats what is open.
    """
    entries = RunLog(record.folder / "planning.jsonl").latest(_TAIL)
    events: list[Event] = []
    answers: list[Event] = []
    """Events after the user's last line, which each opening of the Planner repeats."""
    for entry in entries:
        event = entry.event
        if isinstance(event, Notice) and event.kind in _ENDS_OF_PLANNING:
            events, answers = [], []
        elif isinstance(event, PersonSaid):
            events += [*answers, event]
            answers = []
        elif _is_shown(event) and not isinstance(event, ReplyFinished):
            if isinstance(event, PlanProposed):
                event = replace(event, in_full=False)
            if event not in answers:
                answers.append(event)
    return SessionRestored(
        record.slug, tuple(events[-MOST_EVENTS:]), left_out=len(events) > MOST_EVENTS
    )


def _is_shown(event: Event) -> bool:
    is_of_the_moment = isinstance(event, Notice) and event.kind in _OF_THE_MOMENT
    return not (is_of_the_moment or isinstance(event, _ONLY_LIVE))


def last_line(entries: Sequence[LogEntry]) -> str:
    """Return the last informative event of a log, in one line."""
    for entry in reversed(entries):
        match entry.event:
            case StepFinished(label=label, status=status, error=error):
                return shortened(
                    f"step {label} {status}{f': {error}' if error else ''}"
                )
            case AttemptFailed(label=label, error=error):
                return shortened(f"step {label}: {error}")
            case (
                PersonSaid(text=words)
                | QuestionAsked(question=words)
                | Answer(text=words)
            ) if words.strip():
                return shortened(words)
            case _:
                continue
    notices = (
        entry.event.text
        for entry in reversed(entries)
        if isinstance(entry.event, Notice)
    )
    return shortened(next(notices, ""))


def shortened(text: str) -> str:
    """Cut a text's first line to list width."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= _LONGEST_LINE else f"{line[: _LONGEST_LINE - 1]}…"


class _Retold:
    """Restores texts that the log omits, by the order of events in an attempt."""

    def __init__(
        self, record: RunRecord, state: ExecutionState, wanted: set[int]
    ) -> None:
        self._record, self._state, self._wanted = record, state, wanted
        self._attempt: Attempt | None = None
        self._replies, self._results = Counter[Path](), Counter[Path]()
        self._checks = 0
        """Number of finished checks."""
        self._is_asked = False
        """True during a question, whose reply belongs to no attempt."""

    def of(self, entry: LogEntry) -> Iterator[Event]:
        event, is_wanted = entry.event, id(entry) in self._wanted
        match event:
            case StepStarted(step=step, attempt=number, side_tree=False):
                self._attempt = self._record.attempt(
                    self._state.step(step).folder, number
                )
                # a resumed attempt repeats its checks
                self._checks = 0
            case QuestionAsked() | QuestionAnswered():
                self._is_asked = isinstance(event, QuestionAsked)
        described = (
            ()
            if self._is_asked or self._attempt is None
            else tuple(self._with_saved_texts(event, self._attempt, is_wanted))
        )
        if not is_wanted or isinstance(event, ReplyFinished):
            yield from described if is_wanted else ()
        else:
            yield from described or (event,)

    def _with_saved_texts(
        self, event: Event, attempt: Attempt, is_wanted: bool
    ) -> Iterator[Event]:
        """Yield the event with its saved texts, if any."""
        folder = attempt.folder
        match event:
            case ReplyFinished(step=int(step)):
                place, self._replies[folder] = (
                    self._replies[folder],
                    self._replies[folder] + 1,
                )
                if is_wanted and (text := self._reply(attempt, place)):
                    yield ReplyDelta(step, text)
            case ToolFinished(step=int()):
                place = self._results[folder]
                self._results[folder] += 1
                is_shown = is_wanted and not event.files
                output = self._tool_output(attempt, place) if is_shown else ""
                yield replace(event, output=output)
            case ChangesApplied(step=int(step)) if is_wanted and (
                diff := read_text(folder / "changes.diff")
            ):
                yield StepDiff(step, "", diff)
            case TestsFinished(step=int(step), command=command):
                place = self._checks
                self._checks += 1
                if is_wanted:
                    yield TestsStarted(step, command)
                    yield from _printed(step, command, attempt.output(place))
                    yield event
            case _:
                pass

    def _tool_output(self, attempt: Attempt, place: int) -> str:
        results = [
            message.content for message in attempt.dialogue if message.role == "tool"
        ]
        return self._text(results[place]) if place < len(results) else ""

    def _reply(self, attempt: Attempt, place: int) -> str:
        texts = [
            message.content
            for message in attempt.dialogue
            if message.role == "assistant"
        ]
        return self._text(texts[place] if place < len(texts) else attempt.reply or "")

    def _text(self, text: str) -> str:
        cut = f"{text[:LONGEST_TEXT]}\n…" if len(text) > LONGEST_TEXT else text
        return self._record.redactor.redact(cut)


def _printed(step: int, command: str, output: str) -> Iterator[CommandOutput]:
    """Yield the end of a check's output, without its first line."""
    printed = output.removeprefix(f"$ {command}\n")
    if printed:
        yield CommandOutput(step, printed[-LONGEST_TEXT:])
