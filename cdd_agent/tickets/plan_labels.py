"""The labelled lines of plans and steps, such as `**Complexity:** simple`, in the forms
that people use.
"""

import re
from collections.abc import Mapping
from enum import Enum, auto

from msgspec import Struct


class Field(Enum):
    """A value behind a label."""

    TICKET = auto()
    TYPE = auto()
    DESCRIPTION = auto()
    COMPLEXITY = auto()
    ESTIMATED_TIME = auto()
    DEPENDENCIES = auto()
    VERIFY = auto()
    SERVES = auto()
    FILES = auto()


PLAN_FIELDS = {
    "ticket": Field.TICKET,
    "type": Field.TYPE,
    "complexity": Field.COMPLEXITY,
    "total complexity": Field.COMPLEXITY,
    "estimated time": Field.ESTIMATED_TIME,
    "total estimated time": Field.ESTIMATED_TIME,
}
STEP_FIELDS = {
    "description": Field.DESCRIPTION,
    "complexity": Field.COMPLEXITY,
    "estimated time": Field.ESTIMATED_TIME,
    "dependencies": Field.DEPENDENCIES,
    "depends on": Field.DEPENDENCIES,
    "verify": Field.VERIFY,
    "serves": Field.SERVES,
    "files affected": Field.FILES,
    "affected files": Field.FILES,
    "files": Field.FILES,
}

# A bullet, then the name with its colon inside or outside the marks:
# `- **Files:** a.py`, `*Files*: a.py`, `Files: a`
_LABEL = re.compile(
    r"[ \t]*(?:(?:[-*+•]|[0-9]{1,9}[.)])[ \t]+)?"
    r"(?P<marks>\*\*|__|[*_`]?)[ \t]*(?P<name>[A-Za-z][A-Za-z ]{0,30}?)[ \t]*"
    r"(?::[ \t]*(?P=marks)|(?P=marks)[ \t]*:)(?P<value>.*)",
    re.DOTALL,
)


class Label(Struct, frozen=True):
    """A known label, and the text behind it."""

    field: Field
    value: str
    is_bold: bool


def find_label(line: str, fields: Mapping[str, Field]) -> Label | None:
    """Return the label of a line if its name is one of `fields`."""
    match = _LABEL.match(line)
    if match is None:
        return None
    field = fields.get(" ".join(match["name"].lower().split()))
    return (
        Label(field, match["value"].lstrip(" \t"), len(match["marks"]) == 2)
        if field
        else None
    )


def has_label(line: str) -> bool:
    """True if a line begins with a bold label or with a known one."""
    match = _LABEL.match(line)
    return match is not None and (
        len(match["marks"]) == 2
        or find_label(line, PLAN_FIELDS | STEP_FIELDS) is not None
    )
