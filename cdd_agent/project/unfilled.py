"""The blanks of a new AGENTS.md, recognised by their exact words: other text in angle
brackets (`Vec<T>`) is a rule.
"""

import re

from cdd_agent.pattern import Pattern

DESCRIPTION = "<What this is and who uses it, in two or three sentences.>"
COMMANDS = {
    "set up": "<how to install what is needed>",
    "build": "<how to build it, or remove this line>",
    "test": "<how to run the tests>",
    "lint": "<how to check the style and the types>",
    "format": "<how to put the code in shape>",
}
FOLDER_NAME = "`<folder>`"
FOLDER = "<what is in it, and what does not belong there>"
CONVENTIONS = (
    (
        "<What a change has to follow that no linter checks: names, patterns, how"
        " errors are handled>"
    ),
    (
        "<What must not be changed without asking: public interfaces, generated files,"
        " migrations>"
    ),
    "<What a change needs to be done: tests, documentation, a line in the changelog>",
)


def _any_blank() -> str:
    patterns = []
    for blank in (DESCRIPTION, *COMMANDS.values(), FOLDER, *CONVENTIONS):
        words = map(re.escape, blank.split())
        patterns.append(r"\s+".join(words))
    return "|".join(patterns)


_BULLET = r"[ \t]*(?:[-*+][ \t]+)?"
_BLANK = Pattern(_any_blank())
_BLANK_LINE = Pattern(
    rf"^{_BULLET}(?:[^:\n]*:[*_]*)?\s*(?:{_BLANK.pattern})[ \t]*(?:\n|\Z)", re.MULTILINE
)
"""A blank alone, or after its label: `- Build: <…>`."""
_UNNAMED_FOLDER = Pattern(rf"^({_BULLET}){re.escape(FOLDER_NAME)}:[ \t]*", re.MULTILINE)
_SECTION = Pattern(r"^(?=#{1,6}[ \t])", re.MULTILINE)


def without_unfilled(text: str) -> str:
    """Remove blanks, and headings with only blanks below them."""
    lines_kept = []
    for section in _SECTION.split(text):
        filled = _UNNAMED_FOLDER.sub(r"\1", _BLANK_LINE.sub("", section))
        filled = _BLANK.sub("", filled)
        if _has_body(filled) or not _has_body(section):
            lines_kept.append(filled)
    result = "".join(lines_kept)
    if result == text:
        return text
    return re.sub(r"\n{3,}", "\n\n", result).strip()


def _has_body(section: str) -> bool:
    _, _, body = section.partition("\n")
    return bool(body.strip())
