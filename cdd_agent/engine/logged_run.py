"""A run's log, read in one pass for the report, costs and last prompt."""

from collections.abc import Iterable, Mapping

from msgspec import Struct, field

from cdd_agent.changes.file_diff import LeftOut
from cdd_agent.engine.effort import NO_EFFORT, EffortTally, RunEffort
from cdd_agent.engine.log import LogEntry, RunLog, with_folders
from cdd_agent.events.dialogue_events import (
    ModelReplaced,
    PromptMade,
    ReplyFinished,
    ReplyStarted,
)
from cdd_agent.events.question_events import ChangesReviewed
from cdd_agent.events.step_events import StepStarted, TestsFinished
from cdd_agent.events.ticket_events import PlanOpened


class LoggedAttempt(Struct):
    """Log content about an attempt. Dictionaries serve as ordered sets."""

    notes: tuple[str, ...] = ()
    """Remarks of its last check for the user."""
    left_out: dict[LeftOut, None] = field(default_factory=dict)
    """Changes that the user did not accept."""
    edited: dict[str, None] = field(default_factory=dict)
    """Files whose proposed content the user edited."""


class LoggedStep(Struct):
    """Log content about a step."""

    attempts: dict[int, LoggedAttempt] = field(default_factory=dict)
    models: dict[str, None] = field(default_factory=dict)
    """Models that replied."""
    refusals: dict[str, None] = field(default_factory=dict)
    """The user's reasons for refusing whole changes."""

    def attempt(self, number: int) -> LoggedAttempt:
        return self.attempts.get(number, LoggedAttempt())


class LoggedRun(Struct, frozen=True):
    """The current run in the log, by folder numbers of steps."""

    steps: Mapping[int, LoggedStep]
    efforts: Mapping[int, RunEffort]
    """Includes steps removed from the plan."""
    last_prompt: PromptMade | None
    damaged_lines: int
    """Damaged lines, and unknown events."""

    @property
    def effort(self) -> RunEffort:
        return sum(self.efforts.values(), NO_EFFORT)

    def step(self, folder: int) -> LoggedStep:
        return self.steps.get(folder, LoggedStep())

    @classmethod
    def read(cls, log: RunLog) -> "LoggedRun":
        """Raises `BadInput` if the file is unreadable."""
        reading = _LogPass()
        return reading.of_entries(reading.whole(log.decoded_lines()))

    @classmethod
    def of_entries(cls, entries: Iterable[LogEntry]) -> "LoggedRun":
        return _LogPass().of_entries(entries)


class _LogPass:
    def __init__(self) -> None:
        self._tally = EffortTally()
        self._steps: dict[int, LoggedStep] = {}
        self._attempts: dict[int, int] = {}
        """Step → number of its current attempt."""
        self._asked: dict[int, str] = {}
        """Step → the model asked last."""
        self._last_prompt: PromptMade | None = None
        self._damaged = 0

    def whole(self, lines: Iterable[LogEntry | None]) -> Iterable[LogEntry]:
        """Yield the entries, and count the lines without one."""
        for entry in lines:
            if entry is None:
                self._damaged += 1
            else:
                yield entry

    def of_entries(self, entries: Iterable[LogEntry]) -> LoggedRun:
        for entry, folder in with_folders(entries):
            self._tally.add(entry, folder)
            self._add(entry, folder)
        return LoggedRun(
            self._steps, self._tally.efforts(), self._last_prompt, self._damaged
        )

    def _add(self, entry: LogEntry, folder: int) -> None:
        match entry.event:
            case PlanOpened(resumed=False):
                self._steps.clear()
            case StepStarted(attempt=number):
                self._attempts[folder] = number
            case TestsFinished(notes=notes) if folder in self._attempts:
                self._attempt(folder).notes = notes
            case PromptMade() as prompt:
                self._last_prompt = prompt
            case ReplyStarted(model=model) | ModelReplaced(model=model):
                self._asked[folder] = model
            case ReplyFinished(step=int()) if self._asked.get(folder):
                self._step(folder).models[self._asked[folder]] = None
            case ChangesReviewed(reason="") as answer:
                # the answer is logged again after an interruption
                self._attempt(folder).left_out |= dict.fromkeys(answer.left_out)
                self._attempt(folder).edited |= dict.fromkeys(answer.edited)
            case ChangesReviewed(reason=reason):
                self._step(folder).refusals[reason] = None

    def _step(self, folder: int) -> LoggedStep:
        return self._steps.setdefault(folder, LoggedStep())

    def _attempt(self, folder: int) -> LoggedAttempt:
        number = self._attempts.get(folder, 0)
        return self._step(folder).attempts.setdefault(number, LoggedAttempt())
