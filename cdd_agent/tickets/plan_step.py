"""A step of a plan, as a value: what it asks for, what it touches, how it is checked."""

import re

from msgspec import Struct
from msgspec.structs import astuple, force_setattr

from cdd_agent.late_regex import late_regex
from cdd_agent.tickets.markdown import one_line, plain_text

NO_CHECK = "none"
"""The `verify` of a step that is to have no check of its own."""

NEW, DELETED = "new", "deleted"
"""Notes beside a file, as this program writes them."""

DEFAULT_COMPLEXITY, DEFAULT_TIME = "medium", "unknown"

_CREATED = late_regex(
    r"(?:a )?new(?: file)?\s*(?:[,;:.(–—-].*)?|creat(?:e|es|ed)\b.*|(?:moved|renamed) from\b.*", re.IGNORECASE
)
_DELETED = late_regex(r"(?:to be )?(?:deleted?|removed?)\s*(?:[,;:.(–—-].*)?|(?:moved|renamed) to\b.*", re.IGNORECASE)
_MAX_NUMBER = 999_999_999  # CommonMark's own limit for a list number


class AffectedFile(Struct, frozen=True):
    """A file that a step creates or changes."""

    path: str
    note: str = ""

    def __post_init__(self) -> None:
        normalise(self, path=one_line(self.path), note=one_line(self.note))

    @property
    def is_created(self) -> bool:
        """The note says that the step creates it; "new tests" beside a file says nothing of the file."""
        return _CREATED.fullmatch(self.note) is not None

    @property
    def is_deleted(self) -> bool:
        return _DELETED.fullmatch(self.note) is not None


class PlanStep(Struct, frozen=True):
    """One step of a plan. What Markdown cannot carry is normalised away, so that it survives plan.md."""

    number: int
    title: str = ""
    description: str = ""
    complexity: str = DEFAULT_COMPLEXITY
    estimated_time: str = DEFAULT_TIME
    dependencies: tuple[int, ...] = ()
    files_affected: tuple[AffectedFile, ...] = ()
    verify: str | None = None
    """The command that checks this step; `NO_CHECK` for no check, None to leave the choice to the engine."""
    serves: tuple[int, ...] = ()
    """The acceptance criteria that it serves, by their place in the spec, from 1."""
    line: int = 0
    """Where its heading stands in plan.md, from 1; 0 if it was not read from there. The last field: not compared."""

    def __post_init__(self) -> None:
        if not all(0 <= number <= _MAX_NUMBER for number in (self.number, *self.dependencies, *self.serves)):
            raise ValueError(f"numbers of steps and criteria go from 0 to {_MAX_NUMBER}")
        verify = one_line(self.verify or "") or None
        normalise(
            self,
            title=one_line(self.title) or f"Step {self.number}",
            description=plain_text(self.description),
            complexity=one_line(self.complexity) or DEFAULT_COMPLEXITY,
            estimated_time=one_line(self.estimated_time) or DEFAULT_TIME,
            dependencies=tuple(sorted(set(self.dependencies))),
            files_affected=tuple(file for file in self.files_affected if file.path),
            verify=NO_CHECK if verify and verify.lower() == NO_CHECK else verify,
            serves=tuple(sorted(set(self.serves))),
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PlanStep) and astuple(self)[:-1] == astuple(other)[:-1]

    def __hash__(self) -> int:
        return hash(astuple(self)[:-1])


def normalise(value: Struct, **attributes: object) -> None:
    """Set attributes of a frozen value that is being made."""
    for name, attribute in attributes.items():
        force_setattr(value, name, attribute)
