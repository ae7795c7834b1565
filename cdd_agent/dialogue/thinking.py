"""The thoughts of one reply, measured: how long the model has thought, and how much."""

from collections.abc import Callable

from cdd_agent.events.dialogue_events import ThinkingDelta, ThinkingFinished
from cdd_agent.llm.port import Usage
from cdd_agent.llm.token_estimates import tokens_of


class Thinking:
    """Time passes while one thought follows another; the reply's own text stops it
    until the next thought.
    """

    def __init__(self, step: int | None, clock: Callable[[], float]) -> None:
        self._step, self._clock = step, clock
        self._bytes = 0
        self._seconds = 0.0
        self._since: float | None = None

    def hear(self, text: str) -> ThinkingDelta:
        """A thought, with what there is of them by now."""
        now = self._clock()
        if self._since is not None:
            self._seconds += now - self._since
        self._since = now
        self._bytes += len(text.encode(errors="replace"))
        return ThinkingDelta(self._step, text, round(self._seconds, 1), self._estimate)

    def pause(self) -> None:
        """Something else has come."""
        if self._since is not None:
            self._seconds += self._clock() - self._since
            self._since = None

    def finished(self, usage: Usage | None = None) -> list[ThinkingFinished]:
        """The end of the thoughts, where there were any."""
        self.pause()
        counted = usage.thinking_tokens if usage is not None else 0
        if not self._bytes and not counted:
            return []
        seconds = round(self._seconds, 1) if self._bytes else None
        return [
            ThinkingFinished(
                self._step, seconds, counted or self._estimate, estimated=not counted
            )
        ]

    @property
    def _estimate(self) -> int:
        return tokens_of(self._bytes)
