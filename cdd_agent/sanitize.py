"""Make text harmless for the terminal or the Markdown that shows it."""

import re

CONTROL_CHARACTERS = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
)
"""For a set in a regular expression: also characters that change the order in which
text is shown, but not tab and line feed.
"""

_CONTROL = re.compile(f"[{CONTROL_CHARACTERS}\n]")
_ESCAPE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours, cursor movements
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles, links
    r"|\x1b[PX^_][^\x1b]*\x1b\\"
    r"|\x1b[ -/]*[0-Z\\^-~]"
)


def sanitize_for_display(text: str) -> str:
    """Expand tabs, and show control characters as symbols."""
    if "\t" in text:
        text = text.expandtabs(4)
    return _CONTROL.sub(_symbol, text)


def _symbol(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else "\ufffd"


def remove_escapes(line: str) -> str:
    """Remove the escape sequences of a terminal."""
    return _ESCAPE.sub("", line.removesuffix("\r"))


def fenced(text: str, language: str = "") -> str:
    """Return a Markdown code block that nothing in the text can end."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    last = "" if text.endswith("\n") else "\n"
    return f"{fence}{language}\n{text}{last}{fence}"
