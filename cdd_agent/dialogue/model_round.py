"""One call of a model. Its output becomes events and a message."""

from collections.abc import Callable, Collection

from cdd_agent.dialogue import text_tools
from cdd_agent.dialogue.thinking import Thinking
from cdd_agent.events.dialogue_events import (
    ModelReplaced,
    ReplyDelayed,
    ReplyDelta,
    ReplyFinished,
    ReplyRestarted,
    ReplyStarted,
)
from cdd_agent.events.stream import Emit
from cdd_agent.llm.port import (
    Done,
    Message,
    Model,
    ModelEvent,
    Replaced,
    Request,
    StartedAgain,
    StopReason,
    TextDelta,
    ThoughtDelta,
    ToolCall,
    Waiting,
    WasThought,
)
from cdd_agent.llm.reply_stream import ReplyStream, text_of
from cdd_agent.llm.token_estimates import estimate_prompt

_PROBLEMS = {
    StopReason.LENGTH: "The reply was cut off by the model's length limit.",
    StopReason.REFUSED: (
        "The provider's content filter stopped the reply, or the model declined to"
        " answer."
    ),
    StopReason.UNKNOWN: (
        "The reply ended for an unknown reason, so it may be incomplete."
    ),
}


class ModelRound:
    def __init__(
        self,
        emit: Emit,
        clock: Callable[[], float],
        step: int | None,
        *,
        is_native: bool,
        hidden_blocks: Collection[str],
    ) -> None:
        """`is_native`: the model calls tools through its API, not in code blocks of the
        reply. `hidden_blocks` are the info strings of code blocks that the user does
        not see.
        """
        self._emit, self._clock, self._step = emit, clock, step
        self._is_native = is_native
        self._hidden_blocks = hidden_blocks
        self._thinking = Thinking(step, clock)
        self._native_calls: list[ToolCall] = []
        self._start_text()
        self._end = Done()
        self._rest = ""
        """The end of the text, which is complete only when the reply ends."""

    async def run(self, model: Model, request: Request) -> None:
        """Call the model, and emit the reply as it arrives."""
        size = estimate_prompt(request)
        self._emit(ReplyStarted(self._step, model.name, prompt_tokens=size))
        self._end = await model.reply(request, self._receive)
        self._rest = text_of(self._stream.end())

    def finish(self) -> None:
        """Emit the end of the reply. The caller must save the reply first."""
        self._show(self._rest)
        for event in self._thinking.finished(self._end.usage):
            self._emit(event)
        self._emit(ReplyFinished(self._step, self._end.usage))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls of a complete reply. A reply that was cut off has none."""
        if self._end.stop_reason is not StopReason.STOP:
            return ()
        if self._is_native:
            return tuple(self._native_calls)
        blocks = self.blocks_of(text_tools.FENCE)
        return tuple(
            text_tools.read_call(block, number)
            for number, block in enumerate(blocks, start=1)
        )

    @property
    def message(self) -> Message:
        calls = tuple(self._native_calls) if self._is_native else ()
        return Message(
            "assistant", self._text, calls, provider_data=self._end.provider_data
        )

    @property
    def last_message(self) -> Message:
        """The message without calls. Provider data of unanswered calls must not be sent
        back.
        """
        data = self._end.provider_data
        if self._native_calls or self._end.stop_reason is not StopReason.STOP:
            data = None
        return Message("assistant", self._text or "…", provider_data=data)

    @property
    def problem(self) -> str:
        """Why the reply is incomplete, as a sentence; empty if it is complete."""
        problem = _PROBLEMS.get(self._end.stop_reason, "")
        if self._end.stop_word:
            return f"{problem.removesuffix('.')}: `{self._end.stop_word}`."
        return problem

    @property
    def shown_text(self) -> str:
        """The text without hidden blocks."""
        return "".join(self._shown)

    def blocks_of(self, info: str) -> tuple[str, ...]:
        return self._stream.blocks_of(info)

    @property
    def _text(self) -> str:
        return "".join(self._stream.written)

    def _start_text(self) -> None:
        # The adapter has already removed the tags of thoughts.
        self._stream = ReplyStream(has_marks=False, hidden_blocks=self._hidden_blocks)
        self._shown: list[str] = []

    def _show(self, text: str) -> None:
        if text:
            self._shown.append(text)
            self._emit(ReplyDelta(self._step, text))

    def _receive(self, event: ModelEvent) -> None:
        if isinstance(event, ThoughtDelta):
            self._emit(self._thinking.add(event.text))
            return
        self._thinking.pause()
        match event:
            case TextDelta(text):
                self._show(text_of(self._stream.feed(text)))
            case ToolCall():
                self._native_calls.append(event)
            case Waiting(seconds, reason):
                self._emit(ReplyDelayed(self._step, seconds, reason))
            case Replaced(model, instead_of, reason):
                self._emit(ModelReplaced(self._step, model, instead_of, reason))
            case StartedAgain():
                self._restart()
            case WasThought():
                self._start_text()
                self._emit(ReplyRestarted(self._step, was_thought=True))

    def _restart(self) -> None:
        self._start_text()
        self._native_calls.clear()
        for event in self._thinking.finished():
            self._emit(event)
        self._thinking = Thinking(self._step, self._clock)
        self._emit(ReplyRestarted(self._step))
