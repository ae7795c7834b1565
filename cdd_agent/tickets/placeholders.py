"""Placeholders in spec templates, which do not count as content."""

import re

# Such as `<what is wanted>`, `[the reason]`, `TODO` or `Steps: ...`.
_PLACEHOLDER = re.compile(
    r"\s*(?:[-*+]\s+)?(?:[\w '’/-]{1,40}:\s*)?"
    r"(?:<[^<>]*\s[^<>]*>|\[[^\[\]]*\s[^\[\]]*\]|TODO|TBD|FIXME|\.{3}|…)[.:]?\s*"
)


def is_placeholder(text: str) -> bool:
    """True if a text is empty or only placeholders."""
    return all(
        not line.strip() or _PLACEHOLDER.fullmatch(line) for line in text.split("\n")
    )
