"""The room in a model's window for the parts of a prompt. The most important parts come
first. A part is included whole or not at all.
"""

from collections.abc import Sequence

from cdd_agent.events.notices import Notice, NoticeKind, Tone
from cdd_agent.llm.budget import CEILING
from cdd_agent.llm.token_estimates import estimate_tokens

MARGIN = 60
"""Tokens of the note about omitted parts, without the names."""


def largest_request(window: int) -> int:
    """Return the maximum tokens of a request. The rest of the window is for the
    reply.
    """
    return window - min(CEILING, window // 4)


def tokens_for_answers(window: int | None) -> int:
    """Return the tokens to reserve for the answers of tools."""
    return min(CEILING, (window or 0) // 8)


class TokenBudget:
    def __init__(self, window: int | None, needed: int) -> None:
        """`needed` is the number of tokens of the required parts. Without a window,
        everything fits.
        """
        self.window = window
        self.remaining: int | None = None
        """Below 0 if the required parts do not fit. None: no limit."""
        if window is not None:
            self.remaining = largest_request(window) - needed
        self.left_out: list[str] = []
        self._named: list[str] = []
        """The omitted parts that the note names."""

    @property
    def is_over(self) -> bool:
        return self.remaining is not None and self.remaining < 0

    def take_text(self, text: str, name: str) -> str:
        """Reserve room for a text, and return it. If it does not fit, omit it and
        return "".
        """
        if text and not self.take(estimate_tokens(text)):
            self.omit(name)
            return ""
        return text

    def omit(self, name: str) -> None:
        self.left_out.append(name)
        if self.take(estimate_tokens(f"- {name}")):
            self._named.append(name)

    def take(self, tokens: int, *, reserved: int = 0) -> bool:
        """Reserve room for a part. False if it does not fit. `reserved` tokens must
        remain free.
        """
        if self.remaining is None:
            return True
        # One token separates two parts.
        needed = tokens + 1
        if needed + reserved > self.remaining:
            return False
        self.remaining -= needed
        return True

    def describe_omitted(
        self, advice: str = "Do not act as if you had seen these."
    ) -> str:
        """Return a note for the model about omitted parts; empty if there are none."""
        if not self.left_out:
            return ""
        lines = [f"- {name}" for name in self._named]
        unnamed = len(self.left_out) - len(self._named)
        if unnamed:
            lines.append(f"- … and {unnamed} more")
        paragraphs = ["# Left out because there is no room", "\n".join(lines)]
        if advice:
            paragraphs.append(advice)
        return "\n\n".join(paragraphs)


def describe_left_out(left_out: Sequence[str]) -> str:
    """Return a sentence for the user about omitted parts."""
    return f"Left out of the prompt for lack of room: {', '.join(left_out)}"


class Omitted:
    """Reports each omitted part to the user once."""

    def __init__(self) -> None:
        self._reported: set[str] = set()

    def new_notices(self, left_out: Sequence[str]) -> list[Notice]:
        new = [name for name in left_out if name not in self._reported]
        if not new:
            return []
        self._reported.update(new)
        text = describe_left_out(new)
        return [Notice(text, Tone.WARNING, kind=NoticeKind.NOT_SENT)]
