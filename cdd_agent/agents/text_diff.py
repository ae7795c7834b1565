"""The difference of two texts, as the conversations about specs and plans show it."""

import difflib

from cdd_agent.sanitize import fenced


def fenced_diff(before: str, after: str, name: str) -> str:
    """Return the difference of two texts of a file as a Markdown block."""
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), name, name, lineterm=""
    )
    return fenced("\n".join(lines) or "Nothing is different.", "diff")
