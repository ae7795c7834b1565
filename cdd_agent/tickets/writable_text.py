"""Text in the form in which specs and plans hold it."""

import re

# NUL is not valid in Markdown, half a surrogate pair not in UTF-8.
UNWRITABLE = re.compile("[\x00\ud800-\udfff]")
_BLANK_LINE = re.compile(r"^[ \t]+$", re.MULTILINE)


def plain_text(text: str) -> str:
    """Return `text` as Markdown can hold it: LF line ends, empty blank lines, no
    surrounding white space.
    """
    text = UNWRITABLE.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    return _BLANK_LINE.sub("", text).strip()


def one_line(text: str) -> str:
    """Return `text` on one line, with single spaces."""
    return " ".join(UNWRITABLE.sub("", text).split())
