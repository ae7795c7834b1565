"""The user's messages for the running step."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Take = Callable[[], bool]
"""Takes a message from its queue; False if the user has cancelled it."""


class Steering:
    """Collects messages for a model with tools, which receives them with the answers to
    its next calls. Messages that arrive too late are dropped.
    """

    def __init__(self) -> None:
        self._words: list[tuple[str, Take]] = []
        self._is_open = False

    def say(self, words: str, take: Take) -> bool:
        """Add a message. True if the model can still receive it; `take` is called just
        before.
        """
        if self._is_open:
            self._words.append((words, take))
        return self._is_open

    def take(self) -> tuple[str, ...]:
        """Remove and return waiting messages, oldest first."""
        waiting, self._words = self._words, []
        return tuple(words for words, take in waiting if take())

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Accept messages during the block."""
        self._is_open = True
        try:
            yield
        finally:
            self._is_open = False
            self._words.clear()
