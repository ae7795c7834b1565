"""Messages of the user for the step that is running."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Take = Callable[[], bool]
"""Takes a message from its queue; False if the user took it back."""


class Steering:
    """Collects messages while a model works with tools. The model gets them with the
    answers to its next calls. Messages that arrive too late are dropped.
    """

    def __init__(self) -> None:
        self._words: list[tuple[str, Take]] = []
        self._is_heard = False

    def say(self, words: str, take: Take) -> bool:
        """Add a message. True if the model can still get it; `take` is called just
        before.
        """
        if self._is_heard:
            self._words.append((words, take))
        return self._is_heard

    def take(self) -> tuple[str, ...]:
        """Return the waiting messages, the first one first, and forget them."""
        said, self._words = self._words, []
        return tuple(words for words, take in said if take())

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Accept messages while the block runs."""
        self._is_heard = True
        try:
            yield
        finally:
            self._is_heard = False
            self._words.clear()
