"""A model's window, and what is put into it: the most important first, each part whole
or not at all.
"""

from collections.abc import Sequence

from cdd_agent.events.notices import Notice, NoticeKind, Tone
from cdd_agent.llm.budget import CEILING
from cdd_agent.llm.token_estimates import estimated_tokens

MARGIN = 60
"""Tokens for what is said of what was left out, beside the names that there is room
for.
"""


def most_of(window: int) -> int:
    """Tokens that a request to a model with this window may have: the rest is for the
    reply.
    """
    return window - min(CEILING, window // 4)


def for_answers(window: int | None) -> int:
    """Tokens of it that are kept free for what tools answer, where there are tools."""
    return min(CEILING, (window or 0) // 8)


class TokenBudget:
    """The room that is left in a model's window beside what must be said."""

    def __init__(self, window: int | None, needed: int) -> None:
        """`needed` is what must be said, in tokens. Without a `window` there is room
        for everything.
        """
        self.window = window
        self.left = None if window is None else most_of(window) - needed
        """Tokens; below 0 where not even what must be said fits."""
        self.left_out: list[str] = []
        self._named: list[str] = []
        """Those of them that there is room to name."""

    @property
    def is_over(self) -> bool:
        return self.left is not None and self.left < 0

    def part(self, text: str, name: str) -> str:
        """The text, for which room is taken; empty where there is not enough, which is
        noted by its name.
        """
        if text and not self.takes(estimated_tokens(text)):
            self.leave_out(name)
            return ""
        return text

    def leave_out(self, name: str) -> None:
        self.left_out.append(name)
        if self.takes(estimated_tokens(f"- {name}")):
            self._named.append(name)

    def takes(self, tokens: int, *, beside: int = 0) -> bool:
        """Take room for so much, if as much is left `beside` it."""
        needed = tokens + 1  # the last is for what separates it from the next
        if self.left is not None and needed + beside > self.left:
            return False
        if self.left is not None:
            self.left -= needed
        return True

    def note(self, also: str = "Do not act as if you had seen these.") -> str:
        """For the model, of what was left out; empty if nothing was."""
        if not self.left_out:
            return ""
        more = len(self.left_out) - len(self._named)
        lines = [
            f"- {name}"
            for name in (*self._named, *([f"… and {more} more"] if more else []))
        ]
        return "\n\n".join(
            filter(None, ("# Left out, for want of room", "\n".join(lines), also))
        )


def left_out_in_words(left_out: Sequence[str]) -> str:
    """The same for people."""
    return f"Left out of the prompt, for want of room: {', '.join(left_out)}"


class Omitted:
    """Tells people of what was left out, each thing once."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def news(self, left_out: Sequence[str]) -> list[Notice]:
        new = [name for name in left_out if name not in self._told]
        self._told.update(new)
        return (
            [Notice(left_out_in_words(new), Tone.WARNING, kind=NoticeKind.NOT_SENT)]
            if new
            else []
        )
