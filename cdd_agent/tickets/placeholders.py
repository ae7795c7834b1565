"""Placeholders of the templates of a spec, which do not count as written."""

import re

# A line such as `<what is wanted>`, `[the reason]`, `TODO` or `Steps: ...`.
_PLACEHOLDER = re.compile(
    r"\s*(?:[-*+]\s+)?(?:[\w '’/-]{1,40}:\s*)?"
    r"(?:<[^<>]*\s[^<>]*>|\[[^\[\]]*\s[^\[\]]*\]|TODO|TBD|FIXME|\.{3}|…)[.:]?\s*"
)


def is_placeholder(text: str) -> bool:
    """True if a text is empty or a placeholder of a template."""
    return all(
        not line.strip() or _PLACEHOLDER.fullmatch(line) for line in text.split("\n")
    )
