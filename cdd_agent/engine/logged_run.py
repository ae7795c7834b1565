"""The content of a run's log, read in one pass. The report, costs
and the last prompt are views of it.
"""

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
    """The log's content about one attempt. Dictionaries are used as ordered sets."""

    notes: tuple[str, ...] = ()
    """Points of its last check for the user to look at."""
    left_out: dict[LeftOut, None] = field(default_factory=dict)
    """The changes that the user did not take."""
    edited: dict[str, None] = field(default_factory=dict)
    """Files whose proposed content the user edited."""


class LoggedStep(Struct):
    """The log's content about one step."""

    attempts: dict[int, LoggedAttempt] = field(default_factory=dict)
    models: dict[str, None] = field(default_factory=dict)
    """The models whose replies it got."""
    refusals: dict[str, None] = field(default_factory=dict)
    """The user's reasons for taking nothing of a change."""

    def attempt(self, number: int) -> LoggedAttempt:
        return self.attempts.get(number, LoggedAttempt())


class LoggedRun(Struct, frozen=True):
    """The current run, as the log has it. Steps are known by the numbers of their
    folders.
    """

    steps: Mapping[int, LoggedStep]
    efforts: Mapping[int, RunEffort]
    """Includes steps that are no longer in the plan."""
    last_prompt: PromptMade | None
    damaged_lines: int
    """Lines that are damaged, or of an event that this version does not know."""

    @property
    def effort(self) -> RunEffort:
        return sum(self.efforts.values(), NO_EFFORT)

    def step(self, folder: int) -> LoggedStep:
        return self.steps.get(folder, LoggedStep())

    @classmethod
    def read(cls, log: RunLog) -> "LoggedRun":
        """Read the whole log. Raises `BadInput` when the file cannot be read."""
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
        """For each step, the number of its current attempt."""
        self._asked: dict[int, str] = {}
        """For each step, the model that was asked last."""
        self._last_prompt: PromptMade | None = None
        self._damaged = 0

    def whole(self, lines: Iterable[LogEntry | None]) -> Iterable[LogEntry]:
        """Yield the entries, and count the lines that are none."""
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
                # the answer is logged again if the step was interrupted
                self._attempt(folder).left_out |= dict.fromkeys(answer.left_out)
                self._attempt(folder).edited |= dict.fromkeys(answer.edited)
            case ChangesReviewed(reason=reason):
                self._step(folder).refusals[reason] = None

    def _step(self, folder: int) -> LoggedStep:
        return self._steps.setdefault(folder, LoggedStep())

    def _attempt(self, folder: int) -> LoggedAttempt:
        number = self._attempts.get(folder, 0)
        return self._step(folder).attempts.setdefault(number, LoggedAttempt())
