"""Text that cannot control the terminal."""

from cdd_agent.pattern import Pattern
from cdd_agent.text.sanitize import CONTROL_CHARACTERS

_CONTROL = Pattern(f"[{CONTROL_CHARACTERS}]")


def remove_control(text: str) -> str:
    """Return the text without control characters except line feeds and tabs."""
    return _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def one_line(text: str) -> str:
    return " ".join(remove_control(text).split())
