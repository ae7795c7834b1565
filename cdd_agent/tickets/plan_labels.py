"""The labelled lines of a plan and its steps, as `**Complexity:** simple`, in the forms in which people write them."""

import re
from enum import Enum, auto

from cdd_agent.late_regex import late_regex


class Field(Enum):
    """A value that a plan or a step gives behind a label."""

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

_START = r"[ \t]*(?:(?:[-*+•]|[0-9]{1,9}[.)])[ \t]+)?"
_NAME = r"(?P<name>[A-Za-z][A-Za-z ]{0,30}?)[ \t]*"
_BOLD = re.compile(
    rf"{_START}(?:\*\*|__)[ \t]*{_NAME}(?::[ \t]*(?:\*\*|__)|(?:\*\*|__)[ \t]*:)(?P<value>.*)", re.DOTALL
)
_PLAIN = late_regex(rf"{_START}(?P<mark>[*_`]?){_NAME}(?::[ \t]*(?P=mark)|(?P=mark)[ \t]*:)(?P<value>.*)", re.DOTALL)
_HEADING = re.compile(r"[*_]*(?P<name>[A-Za-z ]+?)[*_]*\s*(?::[*_]*(?P<value>.*))?", re.DOTALL)


def has_label(line: str) -> bool:
    """Whether a line begins with a bold label, known or not, or with a known one that is not bold."""
    return _BOLD.match(line) is not None or field_in(line, PLAN_FIELDS | STEP_FIELDS, plain=True) is not None


def field_in(line: str, known: dict[str, Field], *, plain: bool = False) -> tuple[Field, str] | None:
    """The field of a line with a known label, and its value. A `plain` label is not bold, as `*Files:* a.py`."""
    found = _BOLD.match(line) if "**" in line or "__" in line else None
    return _known(found or (_PLAIN.match(line) if plain and ":" in line else None), known)


def field_of_heading(text: str, known: dict[str, Field]) -> tuple[Field, str] | None:
    """The same for the text of a heading, as `#### Verify`."""
    return _known(_HEADING.fullmatch(text), known)


def _known(found: re.Match[str] | None, known: dict[str, Field]) -> tuple[Field, str] | None:
    field = known.get(" ".join(found["name"].lower().split())) if found else None
    return (field, (found["value"] or "").lstrip(" \t")) if found and field else None
