"""Limits growing text, so that it never blocks the screen."""

from collections.abc import Iterator

from cdd_agent.pattern import Pattern

MAX_UNSETTLED = 8_000
"""Maximum characters of unsettled source. Longer lines, paragraphs and tables are
cut.
"""

_OPEN_ESCAPE = Pattern(r"\x1b[^\x07a-zA-Z]{0,40}\Z")


def bounded(text: str) -> Iterator[str]:
    """Yield parts of limited length. No part ends inside an escape sequence."""
    while len(text) > MAX_UNSETTLED:
        escape = _OPEN_ESCAPE.search(text, MAX_UNSETTLED - 41, MAX_UNSETTLED)
        cut = escape.start() if escape else MAX_UNSETTLED
        yield text[:cut]
        text = text[cut:]
    yield text
