"""Placeholders in spec templates, which do not count as content."""

from cdd_agent.pattern import Pattern

# Such as `<what is wanted>`, `[the reason]`, `TODO` or `Steps: ...`.
_PLACEHOLDER = Pattern(
    r"\s*(?:[-*+]\s+)?(?:[\w '’/-]{1,40}:\s*)?"
    r"(?:<[^<>]*\s[^<>]*>|\[[^\[\]]*\s[^\[\]]*\]|TODO|TBD|FIXME|\.{3}|…)[.:]?\s*"
)


def is_placeholder(text: str) -> bool:
    return all(
        not line.strip() or _PLACEHOLDER.fullmatch(line) for line in text.split("\n")
    )
