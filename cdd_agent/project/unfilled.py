"""The places of a new AGENTS.md that wait for a person, `<in angle brackets>`, and the
text without them.

Known by their exact words: other text in angle brackets (`Vec<T>`, "branches are called
`<ticket>-<what>`") is a rule.
"""

import re

DESCRIPTION = "<What this is and who uses it, in two or three sentences.>"
COMMANDS = {
    "set up": "<how to install what is needed>",
    "build": "<how to build it, or remove this line>",
    "test": "<how to run the tests>",
    "lint": "<how to check the style and the types>",
    "format": "<how to put the code in shape>",
}
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

_PLACE = "|".join(  # formatters break lines
    r"\s+".join(map(re.escape, place.split()))
    for place in (DESCRIPTION, *COMMANDS.values(), FOLDER, *CONVENTIONS)
)
_LINE = re.compile(
    rf"^[ \t]*(?:[-*+][ \t]+)?(?:[^:\n]*:)?\s*(?:{_PLACE})[ \t]*(?:\n|\Z)", re.MULTILINE
)
"""A place with nothing beside it but its label, as in `- Build: <…>`."""
_SECTION = re.compile(r"^(?=#{1,6}[ \t])", re.MULTILINE)


def without_unfilled(text: str) -> str:
    """The text without what nobody has filled in, and without headings that have
    nothing else below them.
    """
    before = _SECTION.split(text)
    after = [re.sub(_PLACE, "", _LINE.sub("", section)) for section in before]
    if after == before:
        return text
    kept = [
        new
        for old, new in zip(before, after, strict=True)
        if _is_filled(new) or not _is_filled(old)
    ]
    return re.sub(r"\n{3,}", "\n\n", "".join(kept)).strip()


def _is_filled(section: str) -> bool:
    return bool(section.partition("\n")[2].strip())
