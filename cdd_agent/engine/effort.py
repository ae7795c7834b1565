"""The cost of a run so far, as its log tells: time, model calls, tokens.

The log is history: attempts that were restored, calls that were cut off, steps that
were undone: all of it was spent.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime

from msgspec import Struct
from msgspec.structs import astuple

from cdd_agent.engine.log import LogEntry, with_folders
from cdd_agent.events import (
    AttemptFailed,
    BaselineAwaited,
    BaselineTaken,
    ChangesApplied,
    ChangesProposed,
    CommandProposed,
    PersonAnswered,
    PlanOpened,
    QuestionAnswered,
    QuestionAsked,
    ReplyFinished,
    ReplyLost,
    ReplyStarted,
    StepFinished,
    StepStarted,
    TestLossProposed,
    TestsFinished,
    TestsStarted,
    ThinkingFinished,
    ToolFinished,
    ToolStarted,
)
from cdd_agent.llm.budget import Spent
from cdd_agent.llm.port import Usage
from cdd_agent.tickets.status import Cost, StepStatus


class RunCost(Struct, frozen=True):
    """`seconds` are those of work: waiting for a person is left out, and so is what a
    killed process did last.
    """

    seconds: float = 0.0
    model_calls: int = 0
    counted_calls: int = 0
    """Calls whose tokens are known, if only by an estimate."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    estimated_calls: int = 0
    """Those among the counted ones whose tokens are estimated."""
    usd: float | None = None
    """Of the calls whose price is known; None: that of no call is."""
    thinking_seconds: float = 0.0
    """As far as its provider showed that the model thought."""
    thinking_tokens: int = 0
    """Of the completion's, counted or estimated."""
    cached_tokens: int = 0
    """Those of the prompts that were read from a cache."""
    cache_write_tokens: int = 0
    """Those of the prompts that were written to one at a price of their own."""
    saved_usd: float | None = None
    """Saved by caches, of the calls whose price is known."""

    @property
    def spent(self) -> Spent:
        return Spent(
            self.prompt_tokens + self.completion_tokens,
            self.usd or 0.0,
            bool(self.estimated_calls),
            self.cached_tokens,
            self.saved_usd or 0.0,
        )

    @property
    def cost(self) -> Cost:
        return Cost(
            self.prompt_tokens + self.completion_tokens,
            self.usd,
            bool(self.estimated_calls),
        )

    def __add__(self, other: "RunCost") -> "RunCost":
        """Of two amounts, one that is not known counts as none; but of two such ones
        nothing is known.
        """
        amounts = zip(astuple(self), astuple(other), strict=True)
        return RunCost(
            *(two if one is None else one + (two or 0) for one, two in amounts)
        )

    def to_json(self) -> dict[str, float | None]:
        return {
            "seconds": round(self.seconds, 1),
            "model_calls": self.model_calls,
            "calls_without_usage": self.model_calls - self.counted_calls,
            "calls_estimated": self.estimated_calls,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "thinking_seconds": round(self.thinking_seconds, 1),
            "thinking_tokens": self.thinking_tokens,
            "cached_tokens": self.cached_tokens,
            "cache_write_tokens": self.cache_write_tokens,
            "usd": None if self.usd is None else round(self.usd, 6),
            "saved_usd": None if self.saved_usd is None else round(self.saved_usd, 6),
        }


_CALL = RunCost(model_calls=1)


def effort_of(entries: Iterable[LogEntry]) -> RunCost:
    """That of the whole run, with steps that are no longer in the plan."""
    return sum(effort_by_step(entries).values(), RunCost())


def effort_by_step(entries: Iterable[LogEntry]) -> Mapping[int, RunCost]:
    """The effort of each step, by the number of its folder in the record. The
    baseline's is with the step that came after it.

    Only of the run that goes on: one whose state is gone ended where the plan was
    opened anew.
    """
    efforts = defaultdict[int, RunCost](RunCost)
    began = dict[int, datetime]()
    """By step, since when it is at work; several may be, side by side."""
    asked = dict[int, ReplyStarted]()
    """By step, its last call, as long as nothing is known of its end."""
    in_tool, asked_last = set[int](), 0
    for entry, step in with_folders(entries):
        time, event = entry.time, entry.event
        spent = (
            RunCost(seconds=max(0.0, (time - began[step]).total_seconds()))
            if step in began
            else RunCost()
        )
        if isinstance(event, PlanOpened | StepStarted | QuestionAsked):
            for other in [*asked] if isinstance(event, PlanOpened) else [step]:
                if other in asked:  # its process was killed
                    efforts[other] += _begun(asked.pop(other))
        match event:
            case PlanOpened(resumed=resumed):
                if not resumed:
                    efforts.clear()
                began.clear()
            case BaselineAwaited() if step not in began:
                began[step] = time
            case BaselineTaken() if step in began:
                # beside the model's call: both took this time
                efforts[step] += spent
                began[step] = time
            case BaselineTaken(seconds=seconds):
                efforts[step] += RunCost(seconds=seconds)
            case StepStarted() | QuestionAsked():
                began[step] = time
                in_tool.discard(step)
            case ReplyStarted(step=int(), saved=saved):
                efforts[step] += spent if saved else spent + _CALL
                asked.pop(step, None)
                if not saved:
                    asked[step] = event
                asked_last, began[step] = step, time
            case ReplyLost(usage=usage):
                efforts[step or asked_last] += _tokens(usage) + _end_of(
                    asked, step or asked_last
                )
            case ThinkingFinished(step=int(), seconds=seconds, tokens=tokens):
                efforts[step] += RunCost(
                    thinking_seconds=seconds or 0.0, thinking_tokens=tokens
                )
            case ReplyFinished(step=int(), usage=usage):
                efforts[step] += spent + _tokens(usage) + _end_of(asked, step)
                began[step] = time
            case (
                ChangesApplied(step=int())
                | TestsStarted(step=int())
                | TestLossProposed(step=int())
                | TestsFinished(step=int())
            ):
                efforts[step] += spent
                began[step] = time
            case ChangesProposed() if step in in_tool:
                # told when the person has answered: how long is not known
                began.pop(step, None)
            case ChangesProposed(step=int()) | AttemptFailed(step=int()):
                efforts[step] += spent
                began.pop(step, None)
            case ToolStarted(step=int()) | ToolFinished(step=int()):
                efforts[step] += spent
                began[step] = time
                (in_tool.add if isinstance(event, ToolStarted) else in_tool.discard)(
                    step
                )
            case StepFinished(status=status):
                # then what was begun before was stopped long ago
                if status is not StepStatus.SKIPPED:
                    efforts[step] += spent
                asked.pop(step, None)
                began.pop(step, None)
            case QuestionAnswered():
                asked.pop(step, None)
                began.pop(step, None)
            case CommandProposed() if len(began) == 1:
                began.clear()
            case PersonAnswered() if len(began) == 1:  # what went before was waiting
                began = dict.fromkeys(began, time)
            case _:
                pass
    for step, call in asked.items():
        efforts[step] += _begun(call)
    return dict(efforts)


def _end_of(asked: dict[int, ReplyStarted], step: int) -> RunCost:
    """A call of the step is over; it is counted here where its beginning was not."""
    return RunCost() if asked.pop(step, None) is not None else _CALL


def _begun(call: ReplyStarted) -> RunCost:
    """The least that a call took of which only the beginning is known."""
    if not call.prompt_tokens:  # of an older log
        return RunCost()
    return _tokens(Usage(call.prompt_tokens, 0, estimated=True))


def _tokens(usage: Usage | None) -> RunCost:
    if usage is None:
        return RunCost()
    return RunCost(
        counted_calls=1,
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        estimated_calls=int(usage.estimated),
        usd=usage.usd,
        cached_tokens=usage.cached_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        saved_usd=usage.saved_usd,
    )
