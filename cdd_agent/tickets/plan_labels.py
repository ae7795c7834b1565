"""Labelled lines of plans and steps, such as `**Complexity:** simple`, in all common
forms.
"""

import re
from enum import Enum, auto

from msgspec import Struct

from cdd_agent.pattern import Pattern
from cdd_agent.tickets.plan import DELETED, NEW


class Field(Enum):
    TICKET = auto()
    TYPE = auto()
    DESCRIPTION = auto()
    COMPLEXITY = auto()
    ESTIMATED_TIME = auto()
    DEPENDENCIES = auto()
    VERIFY = auto()
    SERVES = auto()
    FILES = auto()
    REMOVES_TESTS = auto()
    MAY_FAIL = auto()


_PLAN_FIELDS = {
    "ticket": Field.TICKET,
    "type": Field.TYPE,
    "complexity": Field.COMPLEXITY,
    "total complexity": Field.COMPLEXITY,
    "estimated time": Field.ESTIMATED_TIME,
    "total estimated time": Field.ESTIMATED_TIME,
}
_STEP_FIELDS = {
    "description": Field.DESCRIPTION,
    "complexity": Field.COMPLEXITY,
    "estimated time": Field.ESTIMATED_TIME,
    "dependencies": Field.DEPENDENCIES,
    "dependency": Field.DEPENDENCIES,
    "depends on": Field.DEPENDENCIES,
    "verify": Field.VERIFY,
    "verification": Field.VERIFY,
    "verify command": Field.VERIFY,
    "verify commands": Field.VERIFY,
    "verification command": Field.VERIFY,
    "verification commands": Field.VERIFY,
    "verification steps": Field.VERIFY,
    "success criteria": Field.VERIFY,
    "done when": Field.VERIFY,
    "testing": Field.VERIFY,
    "serves": Field.SERVES,
    "files affected": Field.FILES,
    "affected files": Field.FILES,
    "files": Field.FILES,
    "removes tests": Field.REMOVES_TESTS,
    "may fail": Field.MAY_FAIL,
}
# A plain line such as `Check: the page` is often a sentence.
_BOLD_STEP_FIELDS = _STEP_FIELDS | {
    "estimate": Field.ESTIMATED_TIME,
    "time estimate": Field.ESTIMATED_TIME,
    "check": Field.VERIFY,
    "checks": Field.VERIFY,
    "verified by": Field.VERIFY,
    "how to verify": Field.VERIFY,
    "test command": Field.VERIFY,
    "test commands": Field.VERIFY,
    "automated verification": Field.VERIFY,
    "final verification": Field.VERIFY,
    "acceptance": Field.VERIFY,
    "acceptance criteria": Field.VERIFY,
    "验证": Field.VERIFY,
    "验证标准": Field.VERIFY,
    "file": Field.FILES,
    "files changed": Field.FILES,
    "files modified": Field.FILES,
    "files touched": Field.FILES,
    "files involved": Field.FILES,
    "modified files": Field.FILES,
    "changed files": Field.FILES,
    "files to change": Field.FILES,
    "files to modify": Field.FILES,
    "files to edit": Field.FILES,
    "files to update": Field.FILES,
    "files to create/modify": Field.FILES,
    "files to modify/create": Field.FILES,
    "files to create": Field.FILES,
    "files to add": Field.FILES,
    "files created": Field.FILES,
    "new file": Field.FILES,
    "new files": Field.FILES,
    "create": Field.FILES,
    "modify": Field.FILES,
    "delete": Field.FILES,
    "files to delete": Field.FILES,
    "files to remove": Field.FILES,
    "removes test": Field.REMOVES_TESTS,
}
_IMPLIED_NOTES = {
    "files to create": NEW,
    "files to add": NEW,
    "files created": NEW,
    "new file": NEW,
    "new files": NEW,
    "create": NEW,
    "delete": DELETED,
    "files to delete": DELETED,
    "files to remove": DELETED,
}

_NAME = r"[^\W\d_](?:[\w /&'’()\[\].-]{0,48}[\w)\].])?"
_SIGN = r"(?:(?<=[*_])[^\x00-\x7f\w\s]{1,3}[ \t]*)?"
# Bullet, tick box, then the name, with its colon inside or outside the marks: `-
# **Files:** a.py`, `*Files*: a.py`, `- [ ] Files: a`, `**✅ Files:** a`
_LABEL = Pattern(
    r"[ \t]*(?:(?:[-*+•]|[0-9]{1,9}[.)])[ \t]+)?(?:\[[ xX]\][ \t]+)?"
    rf"(?P<marks>\*\*|__|[*_`]?)[ \t]*{_SIGN}(?P<name>{_NAME})[ \t]*"
    r"(?:[:：][ \t]*(?P=marks)|(?P=marks)[ \t]*[:：])(?P<value>.*)",
    re.DOTALL,
)
_BOLD_LINE = Pattern(
    rf"[ \t]*(?P<marks>\*\*|__)[ \t]*{_SIGN}(?P<name>{_NAME})[ \t]*(?P=marks)[ \t]*"
)
_REMARK = Pattern(r"\s*[(\[][^()\[\]]*[)\]]")

# These are more often for readers than to be run.
_LOOSE_CHECKS = frozenset(
    ("success criteria", "done when", "testing", "acceptance", "acceptance criteria")
)


class Label(Struct, frozen=True):
    name: str
    """In lower case, without bracketed remarks."""
    value: str
    is_bold: bool

    @property
    def plan_field(self) -> Field | None:
        """None if the name is unknown above the steps."""
        return _PLAN_FIELDS.get(self.name)

    @property
    def field(self) -> Field | None:
        """None if the name is unknown in steps."""
        fields = _BOLD_STEP_FIELDS if self.is_bold else _STEP_FIELDS
        return fields.get(self.name)

    @property
    def is_loose_check(self) -> bool:
        """True if the label introduces checks only with commands."""
        return self.name in _LOOSE_CHECKS

    @property
    def implied_note(self) -> str:
        """The note of all files below: `new`, `deleted` or empty."""
        return _IMPLIED_NOTES.get(self.name, "")


def read_heading_label(heading: str) -> Label | None:
    """Reads `#### Files to create` or `#### Verify: make`; None for other headings."""
    for line in (f"**{heading.strip().rstrip(':')}:**", heading):
        label = read_label(line)
        if label and label.field:
            return label
    return None


def read_label(line: str) -> Label | None:
    """Return the label of a line, or None. Its name may be unknown."""
    match = _LABEL.match(line)
    if match is None:
        match = _BOLD_LINE.fullmatch(line)
        if match is None or _normal_name(match["name"]) not in _BOLD_STEP_FIELDS:
            return None
    value = match.groupdict().get("value") or ""
    is_bold = len(match["marks"]) == 2
    return Label(_normal_name(match["name"]), value.lstrip(" \t"), is_bold)


def has_label(line: str) -> bool:
    """True if the line begins with a bold or known label."""
    label = read_label(line)
    if label is None:
        return False
    return label.is_bold or bool(label.plan_field or label.field)


def _normal_name(name: str) -> str:
    return " ".join(_REMARK.sub("", name).lower().split())
