"""Text from elsewhere, made harmless: whoever wrote it cannot steer the terminal, or
the Markdown, that shows it.
"""

import re

UNSEEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
)
"""For a set in a regular expression: control characters but tab and line feed, and
those that show a text in another order than it has.
"""

_CONTROL = re.compile(f"[{UNSEEN}\n]")
_ESCAPE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours, cursor movements
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles, links
    r"|\x1b[PX^_][^\x1b]*\x1b\\"
    r"|\x1b[ -/]*[0-Z\\^-~]"
)


def sanitize_for_display(text: str) -> str:
    """The text with tabs expanded and control characters shown as symbols."""
    return _CONTROL.sub(_symbol, text.expandtabs(4) if "\t" in text else text)


def _symbol(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else "\ufffd"


def without_escapes(line: str) -> str:
    """A line that was written for a terminal, without what is not text."""
    return _ESCAPE.sub("", line.removesuffix("\r"))


def fenced(text: str, language: str = "") -> str:
    """The text as a Markdown code block that nothing in it can end."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * max(3, longest + 1)
    last = "" if text.endswith("\n") else "\n"
    return f"{fence}{language}\n{text}{last}{fence}"
