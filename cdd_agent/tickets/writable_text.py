"""Text as specs and plans can hold it."""

import re

from cdd_agent.pattern import Pattern

# NUL is invalid in Markdown, a lone surrogate in UTF-8.
UNWRITABLE = Pattern("[\x00\ud800-\udfff]")
_BLANK_LINE = Pattern(r"^[ \t]+$", re.MULTILINE)


def plain_text(text: str) -> str:
    """Use LF line ends, empty blank lines, and no surrounding white space."""
    text = UNWRITABLE.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    return _BLANK_LINE.sub("", text).strip()


def one_line(text: str) -> str:
    """Put the text on one line, with single spaces."""
    return " ".join(UNWRITABLE.sub("", text).split())
