from collections.abc import Callable

from cdd_agent.events.dialogue_events import ThinkingDelta, ThinkingFinished
from cdd_agent.llm.port import Usage
from cdd_agent.llm.token_estimates import text_bytes, tokens_of


class Thinking:
    """The thoughts of one reply. The clock runs while thoughts arrive, and stops while
    text arrives.
    """

    def __init__(self, step: int | None, clock: Callable[[], float]) -> None:
        self._step, self._clock = step, clock
        self._bytes = 0
        self._seconds = 0.0
        self._last_thought_at: float | None = None

    def add(self, text: str) -> ThinkingDelta:
        """Return the event of a new thought, with the totals so far."""
        time = self._clock()
        if self._last_thought_at is not None:
            self._seconds += time - self._last_thought_at
        self._last_thought_at = time
        self._bytes += text_bytes(text)
        return ThinkingDelta(self._step, text, round(self._seconds, 1), self._tokens)

    def pause(self) -> None:
        """Stop the clock until the next thought."""
        if self._last_thought_at is not None:
            self._seconds += self._clock() - self._last_thought_at
            self._last_thought_at = None

    def finished(self, usage: Usage | None = None) -> list[ThinkingFinished]:
        """Return the event that ends the thoughts; nothing if there were none."""
        self.pause()
        counted = usage.thinking_tokens if usage is not None else 0
        if not self._bytes and not counted:
            return []
        seconds = round(self._seconds, 1) if self._bytes else None
        tokens = counted or self._tokens
        return [ThinkingFinished(self._step, seconds, tokens, estimated=not counted)]

    @property
    def _tokens(self) -> int:
        return tokens_of(self._bytes)
