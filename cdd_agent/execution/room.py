"""What there is room for in a model's window, and what has to be left out."""

from collections.abc import Iterable

from cdd_agent.llm.budget import CEILING, estimated_tokens

_MARGIN = 200
"""Tokens for the headings of the parts, and for how many files more are left out."""


class Room:
    """What is left of a model's window, in tokens, when what must be said is said, and its answer has its part."""

    def __init__(self, window: int | None, texts: Iterable[str], without: Iterable[str] = ()) -> None:
        """`texts` must be said; `without` names what was left out of them."""
        reply = min(CEILING, (window or 0) // 4)
        needed = sum(map(estimated_tokens, texts))
        self._left = None if window is None else window - reply - _MARGIN - needed
        self.left_out: list[str] = []
        self._named: list[str] = []
        """Those of them that there is room to name."""
        for name in without:
            self._leave_out(name)

    @property
    def is_over(self) -> bool:
        """There is not even room for what must be said."""
        return self._left is not None and self._left < 0

    def takes(self, text: str, name: str) -> bool:
        """Take the room that a text needs, or note by its name that it is left out."""
        if not self._take(text):
            self._leave_out(name)
            return False
        return True

    def _leave_out(self, name: str) -> None:
        self.left_out.append(name)
        if self._take(f"- {name}"):
            self._named.append(name)

    def _take(self, text: str) -> bool:
        needed = estimated_tokens(text) + 1  # the last is for what separates it from the next
        if self._left is not None and needed > self._left:
            return False
        if self._left is not None:
            self._left -= needed
        return True

    @property
    def note(self) -> str:
        if not self.left_out:
            return ""
        more = len(self.left_out) - len(self._named)
        names = [*self._named, *([f"… and {more} more"] if more else [])]
        lines = "\n".join(f"- {name}" for name in names)
        return f"# Left out, for want of room\n\n{lines}\n\nYou have not seen these: do not replace them."
