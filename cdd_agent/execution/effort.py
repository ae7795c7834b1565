"""What a run has cost so far, as its log tells: time, model calls, tokens.

The log is history: attempts that were put back, calls that were cut off, steps that were undone: all of it was spent.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from cdd_agent.events import (
    AttemptFailed,
    BaselineTaken,
    ChangesApplied,
    ChangesProposed,
    CommandProposed,
    PlanOpened,
    ReplyFinished,
    ReplyStarted,
    StepFinished,
    StepStarted,
    TestsFinished,
    TestsStarted,
)
from cdd_agent.execution.run_log import Entry
from cdd_agent.llm.port import Usage
from cdd_agent.tickets.status import StepStatus


@dataclass(frozen=True)
class Effort:
    """`seconds` are those of work: waiting for a person is left out, and so is what a killed process did last."""

    seconds: float = 0.0
    model_calls: int = 0
    counted_calls: int = 0
    """Calls whose tokens are known: not those that were cut off, or that the provider did not count."""
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: "Effort") -> "Effort":
        return Effort(
            self.seconds + other.seconds,
            self.model_calls + other.model_calls,
            self.counted_calls + other.counted_calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
        )


_CALL = Effort(model_calls=1)


def effort_by_step(entries: Iterable[Entry]) -> Mapping[int, Effort]:
    """The effort of each step, the baseline's with the step that came after it.

    Only of the run that goes on: one whose state is gone ended where the plan was opened anew.
    """
    efforts: defaultdict[int, Effort] = defaultdict(Effort)
    began: datetime | None = None
    for time, event in ((entry.time, entry.event) for entry in entries):
        spent = Effort(seconds=max(0.0, (time - began).total_seconds())) if began else Effort()
        match event:
            case PlanOpened(resumed=resumed):
                if not resumed:
                    efforts.clear()
                began = None
            case BaselineTaken(step=step, seconds=seconds):
                efforts[step] += Effort(seconds=seconds)
            case StepStarted():
                began = time
            case ReplyStarted(step=step, saved=saved):
                efforts[step] += spent if saved else spent + _CALL
                began = time
            case ReplyFinished(step=step, usage=usage):
                efforts[step] += spent + _tokens(usage)
                began = time
            case ChangesApplied(step=step) | TestsStarted(step=step) | TestsFinished(step=step):
                efforts[step] += spent
                began = time
            case ChangesProposed(step=step) | AttemptFailed(step=step):
                efforts[step] += spent
                began = None
            case StepFinished(step=step, status=status):
                if status is not StepStatus.SKIPPED:  # then what was begun before was stopped long ago
                    efforts[step] += spent
                began = None
            case CommandProposed():
                began = None
            case _:
                pass
    return dict(efforts)


def _tokens(usage: Usage | None) -> Effort:
    if usage is None:
        return Effort()
    return Effort(counted_calls=1, prompt_tokens=usage.prompt_tokens, completion_tokens=usage.completion_tokens)
