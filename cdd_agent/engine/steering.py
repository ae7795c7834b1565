"""Words of a person's for the step that is under way."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Take = Callable[[], bool]
"""Takes words from where they wait; False where they were taken back."""


class Steering:
    """Takes words while a model works with tools; it gets them with the answers to its
    next calls. Those that it has not got when it is done are for nobody.
    """

    def __init__(self) -> None:
        self._words: list[tuple[str, Take]] = []
        self._is_heard = False

    def say(self, words: str, take: Take) -> bool:
        """Whether somebody listens, who may get to hear them; `take` is called just
        before.
        """
        if self._is_heard:
            self._words.append((words, take))
        return self._is_heard

    def take(self) -> tuple[str, ...]:
        """The words that still wait, the first one first; they are not given out
        again.
        """
        said, self._words = self._words, []
        return tuple(words for words, take in said if take())

    @contextmanager
    def heard(self) -> Iterator[None]:
        """While this lasts, somebody listens."""
        self._is_heard = True
        try:
            yield
        finally:
            self._is_heard = False
            self._words.clear()
