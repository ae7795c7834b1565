"""Make text harmless for the terminal or the Markdown that shows it."""

import re
import unicodedata

from cdd_agent.pattern import Pattern

CONTROL_CHARACTERS = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
)
"""For a character set in a regular expression. Includes characters that change the
display order, but not tab and line feed.
"""

_CONTROL = Pattern(f"[{CONTROL_CHARACTERS}\n]")
_STRING = r"[^\x07\x1b\x90\x98\x9c-\x9f"
"""Beginning of a set: characters inside a control string. A control string ends before
the next introducer, so that the search stays linear.
"""
_ESCAPE = Pattern(
    # the function keys of the Linux console
    r"\x1b\[\[[A-E]"
    # colours, cursor movements, keys; the last one may be cut off
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
    # titles and links, even if the end of the text cuts them off
    rf"|(?:\x1b\]|\x9d){_STRING}\n\r]*(?:\x07|\x1b\\|\x9c|\Z)"
    # device control, application commands, private messages
    rf"|(?:\x1b[PX^_]|[\x90\x98\x9e\x9f]){_STRING}]*(?:\x1b\\|\x9c)"
    # cursor keys and the keypad in application mode
    r"|(?:\x1bO|\x8f)[0-9]*[@-~]?"
    r"|\x1b[ -/]*[0-~]"
)
_LINE_END = Pattern("\r\n?|[\x85\u2028\u2029]")
_NOT_TEXT = Pattern("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


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


def text_of_paste(pasted: str) -> str:
    """Return the text of a paste: without escape sequences and control characters, with
    tabs, and with one line feed per line end.
    """
    text = _LINE_END.sub("\n", _ESCAPE.sub("", pasted))
    return _NOT_TEXT.sub("", text)


def is_text(character: str) -> bool:
    """True for a character that a user can type, even an invisible one: blanks,
    joiners, direction marks. False for control characters and line ends.
    """
    return unicodedata.category(character) not in ("Cc", "Cs", "Zl", "Zp")


def fenced(text: str, language: str = "") -> str:
    """Return a Markdown code block that nothing in the text can end."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    last = "" if text.endswith("\n") else "\n"
    return f"{fence}{language}\n{text}{last}{fence}"
