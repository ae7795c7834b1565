"""The effort of a run: time, model calls, tokens. `EffortTally` sums it from events.

All spending counts, including restored attempts, cut-off calls and undone steps.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.cost import Cost, add_known
from cdd_agent.engine.log import LogEntry
from cdd_agent.events.dialogue_events import (
    ReplyFinished,
    ReplyLost,
    ReplyStarted,
    ThinkingFinished,
    ToolFinished,
    ToolStarted,
)
from cdd_agent.events.question_events import (
    ChangesProposed,
    CommandProposed,
    PersonAnswered,
    TestLossProposed,
)
from cdd_agent.events.run_events import (
    BaselineTaken,
    QuestionAnswered,
    QuestionAsked,
)
from cdd_agent.events.step_events import (
    AttemptFailed,
    ChangesApplied,
    StepStarted,
    TestsFinished,
    TestsStarted,
)
from cdd_agent.events.step_summary import StepFinished
from cdd_agent.events.stream import Event
from cdd_agent.events.ticket_events import PlanOpened
from cdd_agent.llm.port import Usage
from cdd_agent.tickets.status import StepStatus


class RunEffort(Struct, frozen=True):
    """Time and model calls. `seconds` excludes waiting for the user, and the last work
    of a killed process.
    """

    seconds: float = 0.0
    model_calls: int = 0
    counted_calls: int = 0
    """Calls with known or estimated tokens."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    estimated_calls: int = 0
    usd: float | None = None
    """Price of calls with a known price; None without any."""
    thinking_seconds: float = 0.0
    """Time in which the model visibly thought."""
    thinking_tokens: int = 0
    """Completion tokens that were thoughts, counted or estimated."""
    cached_tokens: int = 0
    """Prompt tokens read from a cache."""
    cache_write_tokens: int = 0
    """Prompt tokens written to a cache at a separate price."""
    saved_usd: float | None = None
    """Savings by caches, for calls with a known price."""

    @property
    def cost(self) -> Cost:
        return Cost(
            self.prompt_tokens + self.completion_tokens,
            self.usd,
            bool(self.estimated_calls),
            self.cached_tokens,
            self.saved_usd,
        )

    def __add__(self, other: "RunEffort") -> "RunEffort":
        """Unknown prices count as zero; two unknown ones stay unknown."""
        sums = {
            name: add_known(getattr(self, name), getattr(other, name))
            for name in self.__struct_fields__
        }
        return replace(self, **sums)

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


NO_EFFORT = RunEffort()
_CALL = RunEffort(model_calls=1)


class EffortTally:
    """Sums each step's effort by folder number. A baseline counts for the next step.

    Only the current run counts: earlier ones, whose state is gone, ended where a plan
    was opened for a new run.
    """

    def __init__(self) -> None:
        self._efforts = defaultdict[int, RunEffort](RunEffort)
        """Calls and thoughts."""
        self._seconds = defaultdict[int, float](float)
        self._since = dict[int, datetime]()
        """Until when each active step's seconds are counted. Several steps may be
        active.
        """
        self._calls = dict[int, ReplyStarted]()
        """Each step's open call."""
        self._using_tool = set[int]()
        self._asked_last = 0

    def add(self, entry: LogEntry, folder: int) -> None:
        """Count an event of the step with this folder."""
        event = entry.event
        handle = _HANDLERS.get(type(event))
        is_outside_run = getattr(event, "step", 0) is None
        if handle is None or (is_outside_run and not isinstance(event, ReplyLost)):
            return
        handle(self, event, folder, entry.time)

    def efforts(self) -> Mapping[int, RunEffort]:
        """A call without an end counts as killed."""
        efforts = dict(self._efforts)
        for folder, seconds in self._seconds.items():
            time = RunEffort(seconds=seconds)
            efforts[folder] = efforts.get(folder, NO_EFFORT) + time
        for folder, call in self._calls.items():
            efforts[folder] = efforts.get(folder, NO_EFFORT) + _killed(call)
        return efforts

    def _work_until(self, folder: int, time: datetime) -> None:
        seconds = 0.0
        if folder in self._since:
            seconds = max(0.0, (time - self._since[folder]).total_seconds())
        self._seconds[folder] += seconds

    def _work_on(self, folder: int, time: datetime) -> None:
        """Count the time since the step's last event; the step stays active."""
        self._work_until(folder, time)
        self._since[folder] = time

    def _end_killed_call(self, folder: int) -> None:
        call = self._calls.pop(folder, None)
        if call is not None:
            self._efforts[folder] += _killed(call)

    def _end_call(self, folder: int, usage: Usage | None) -> None:
        # count the call here if its beginning was not counted
        if self._calls.pop(folder, None) is None:
            self._efforts[folder] += _CALL
        self._efforts[folder] += _tokens(usage)

    def _open_plan(self, event: PlanOpened, folder: int, time: datetime) -> None:
        for other in [*self._calls]:
            self._end_killed_call(other)
        if not event.resumed:
            self._efforts.clear()
            self._seconds.clear()
        self._since.clear()

    def _begin(
        self, event: StepStarted | QuestionAsked, folder: int, time: datetime
    ) -> None:
        self._end_killed_call(folder)
        self._since[folder] = time
        self._using_tool.discard(folder)

    def _take_baseline(self, event: BaselineTaken, folder: int, time: datetime) -> None:
        self._seconds[folder] += event.seconds

    def _start_reply(self, event: ReplyStarted, folder: int, time: datetime) -> None:
        self._work_until(folder, time)
        self._calls.pop(folder, None)
        if not event.saved:
            self._efforts[folder] += _CALL
            self._calls[folder] = event
        self._asked_last, self._since[folder] = folder, time

    def _lose_reply(self, event: ReplyLost, folder: int, time: datetime) -> None:
        self._end_call(folder or self._asked_last, event.usage)

    def _think(self, event: ThinkingFinished, folder: int, time: datetime) -> None:
        self._efforts[folder] += RunEffort(
            thinking_seconds=event.seconds or 0.0, thinking_tokens=event.tokens
        )

    def _finish_reply(self, event: ReplyFinished, folder: int, time: datetime) -> None:
        self._work_on(folder, time)
        self._end_call(folder, event.usage)

    def _continue(
        self,
        event: (ChangesApplied | TestsStarted | TestLossProposed | TestsFinished),
        folder: int,
        time: datetime,
    ) -> None:
        self._work_on(folder, time)

    def _use_tool(
        self, event: ToolStarted | ToolFinished, folder: int, time: datetime
    ) -> None:
        self._work_on(folder, time)
        if isinstance(event, ToolStarted):
            self._using_tool.add(folder)
        else:
            self._using_tool.discard(folder)

    def _pause(
        self, event: ChangesProposed | AttemptFailed, folder: int, time: datetime
    ) -> None:
        # Changes by tools are reported after the user's answer: the wait is unknown.
        is_of_tool = isinstance(event, ChangesProposed) and folder in self._using_tool
        if not is_of_tool:
            self._work_until(folder, time)
        self._since.pop(folder, None)

    def _finish_step(self, event: StepFinished, folder: int, time: datetime) -> None:
        # a skipped step was stopped earlier
        if event.status is not StepStatus.SKIPPED:
            self._work_until(folder, time)
        self._calls.pop(folder, None)
        self._since.pop(folder, None)

    def _finish_question(
        self, event: QuestionAnswered, folder: int, time: datetime
    ) -> None:
        self._calls.pop(folder, None)
        self._since.pop(folder, None)

    def _wait_for_user(
        self, event: CommandProposed, folder: int, time: datetime
    ) -> None:
        # other active steps continue
        if len(self._since) == 1:
            self._since.clear()

    def _resume_after_answer(
        self, event: PersonAnswered, folder: int, time: datetime
    ) -> None:
        # the time before was waiting
        if len(self._since) == 1:
            self._since = dict.fromkeys(self._since, time)


_HANDLERS: dict[type[Event], Callable[[EffortTally, Any, int, datetime], None]] = {
    PlanOpened: EffortTally._open_plan,
    StepStarted: EffortTally._begin,
    QuestionAsked: EffortTally._begin,
    BaselineTaken: EffortTally._take_baseline,
    ReplyStarted: EffortTally._start_reply,
    ReplyLost: EffortTally._lose_reply,
    ThinkingFinished: EffortTally._think,
    ReplyFinished: EffortTally._finish_reply,
    ChangesApplied: EffortTally._continue,
    TestsStarted: EffortTally._continue,
    TestLossProposed: EffortTally._continue,
    TestsFinished: EffortTally._continue,
    ToolStarted: EffortTally._use_tool,
    ToolFinished: EffortTally._use_tool,
    ChangesProposed: EffortTally._pause,
    AttemptFailed: EffortTally._pause,
    StepFinished: EffortTally._finish_step,
    QuestionAnswered: EffortTally._finish_question,
    CommandProposed: EffortTally._wait_for_user,
    PersonAnswered: EffortTally._resume_after_answer,
}


def _killed(call: ReplyStarted) -> RunEffort:
    # older logs have no estimate
    if not call.prompt_tokens:
        return NO_EFFORT
    return _tokens(Usage(call.prompt_tokens, 0, estimated=True))


def _tokens(usage: Usage | None) -> RunEffort:
    if usage is None:
        return NO_EFFORT
    return RunEffort(
        counted_calls=1,
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        estimated_calls=int(usage.estimated),
        usd=usage.usd,
        cached_tokens=usage.cached_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        saved_usd=usage.saved_usd,
    )
