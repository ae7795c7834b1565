"""The spec as a person and Socrates work it out: what spec.yaml says, and over it what
is not written yet.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from cdd_agent.events import CriterionView, SpecShown
from cdd_agent.files.atomic import digest
from cdd_agent.redaction import Redactor
from cdd_agent.tickets.placeholders import is_placeholder
from cdd_agent.tickets.spec import FIELDS, TicketSpec

_Line = Annotated[str, Meta(max_length=500)]
_Text = Annotated[str, Meta(max_length=20_000)]
_Item = Annotated[str, Meta(max_length=2_000)]

_NEEDED = ("title", "description", "acceptance_criteria")
"""The fields that a spec cannot be without."""


class Criterion(Struct, frozen=True, forbid_unknown_fields=True):
    """One thing that can be seen or tested when the work is done."""

    text: _Item
    check: Annotated[
        _Item,
        Meta(
            description=(
                "How it is checked: a command, a test, or steps and what is to be seen"
                " then. Empty while nobody could say, for example as long as it holds a"
                " word like 'fast' without a number."
            )
        ),
    ] = ""


_Criteria = Annotated[tuple[Criterion, ...], Meta(max_length=50)]
_Scope = dict[_Line, tuple[_Item, ...]]


class Proposal(Struct, frozen=True, forbid_unknown_fields=True):
    """The conversation as the model sums it up. A field of the spec that is left out,
    or null, stays as it is.
    """

    title: Annotated[
        _Line | None, Meta(description="One line that says what is wanted.")
    ] = None
    description: Annotated[
        _Text | None, Meta(description="What is wanted, for whom and why, in Markdown.")
    ] = None
    acceptance_criteria: Annotated[
        _Criteria | None,
        Meta(description="All of them, those that were there before too."),
    ] = None
    implementation_scope: Annotated[
        _Scope | None,
        Meta(
            description="What is part of it, by area; `out_of_scope` for what is not."
        ),
    ] = None
    technical_notes: Annotated[
        _Text | None, Meta(description="What the code must respect.")
    ] = None
    priority: _Line | None = None
    questions: Annotated[
        tuple[_Item, ...],
        Meta(
            max_length=3,
            description=(
                "The questions that you ask in this turn, as a person reads them: one"
                " to three."
            ),
        ),
    ] = ()
    open_questions: Annotated[
        tuple[_Item, ...],
        Meta(
            max_length=30,
            description=(
                "What is not clear yet, those of this turn too; none if all that"
                " matters is."
            ),
        ),
    ] = ()
    facts: Annotated[
        tuple[_Item, ...],
        Meta(
            max_length=50,
            description=(
                "All that you found in the project that matters for the spec, with its"
                " place: you will not see the tools' answers of this turn again."
            ),
        ),
    ] = ()
    approved: Annotated[
        bool,
        Meta(
            description=(
                "True only if the person has just said that the spec is right as it is"
                " and is to be written."
            )
        ),
    ] = False


class Draft(Struct, frozen=True):
    """A value: each change makes another one."""

    file: TicketSpec
    """spec.yaml as it was read last."""
    changes: Mapping[str, Any] = field(default_factory=dict)
    """The fields that are not written yet."""
    checks: Mapping[str, str] = field(default_factory=dict)
    """How each criterion is checked."""
    open_questions: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()

    @property
    def spec(self) -> TicketSpec:
        return replace(self.file, **self.changes)

    @property
    def criteria(self) -> tuple[str, ...]:
        """Those that are written; a template's placeholder is none."""
        return tuple(
            text for text in self.spec.acceptance_criteria if not is_placeholder(text)
        )

    @property
    def unchecked(self) -> tuple[str, ...]:
        """The criteria of which it is not known how they can be checked."""
        return tuple(text for text in self.criteria if not self.checks.get(text))

    @property
    def open_points(self) -> tuple[str, ...]:
        """The criteria without a check and the open questions, a line each."""
        unchecked = [f"nobody knows how to check: {text}" for text in self.unchecked]
        return (*unchecked, *(f"open: {question}" for question in self.open_questions))

    @property
    def is_complete(self) -> bool:
        """True if no field is missing and nothing is open."""
        return not self.spec.missing() and not self.open_points

    @property
    def digests(self) -> dict[str, str]:
        """Of the fields of the file, to find out later which of them a person has
        changed.
        """
        return {name: _digest(getattr(self.file, name)) for name in FIELDS}

    def met(
        self, now: TicketSpec, known: Mapping[str, str]
    ) -> tuple["Draft", tuple[str, ...]]:
        """The draft over the file as it is now, and the fields in which that differs
        from what was `known` of it.

        What a person has changed in the file wins over what was not written yet.
        """
        edited = tuple(
            name for name in FIELDS if known.get(name) != _digest(getattr(now, name))
        )
        told = tuple(
            name for name in edited if getattr(self.spec, name) != getattr(now, name)
        )
        kept = {
            name: value
            for name, value in self.changes.items()
            if name not in edited and value != getattr(now, name)
        }
        return replace(self, file=now, changes=kept), told

    def with_proposal(self, proposal: Proposal, redactor: Redactor) -> "Draft":
        """The draft as the model sees it now. A field that is said again as it is does
        not change, and what is written does not become empty.
        """
        spec, emptied = self.spec, self._emptied(proposal)
        asked: dict[str, Any] = {
            name: value
            for name in (
                "title",
                "description",
                "implementation_scope",
                "technical_notes",
                "priority",
            )
            if (value := getattr(proposal, name)) is not None and name not in emptied
        }
        checks = dict(self.checks)
        if (
            proposal.acceptance_criteria is not None
            and "acceptance_criteria" not in emptied
        ):
            criteria = [
                (_tidy(item.text), _tidy(item.check))
                for item in proposal.acceptance_criteria
            ]
            asked["acceptance_criteria"] = tuple(text for text, _ in criteria)
            checks = {text: check for text, check in criteria if check}
        wanted = replace(
            spec, **{name: _each(_tidy, value) for name, value in asked.items()}
        )
        changed = {
            name: getattr(wanted, name)
            for name in asked
            if getattr(wanted, name) != getattr(spec, name)
        }
        both = {
            **self.changes,
            **{name: _each(redactor.redact, value) for name, value in changed.items()},
        }
        return replace(
            self,
            changes={
                name: value
                for name, value in both.items()
                if value != getattr(self.file, name)
            },
            checks={
                redactor.redact(text): redactor.redact(check)
                for text, check in checks.items()
            },
            open_questions=_each(redactor.redact, proposal.open_questions),
            facts=_each(redactor.redact, proposal.facts) or self.facts,
        )

    def problems(self, proposal: Proposal, *, is_answer: bool) -> Iterator[str]:
        """The problems of a proposal, in words for the model. `is_answer`: the person
        has said something.
        """
        after = self.with_proposal(proposal, Redactor())
        emptied = self._emptied(proposal)
        for name in _NEEDED:
            if name in emptied:
                yield (
                    f"`{name}` was written and would be gone. Leave the field out to"
                    " keep it as it is."
                )
            elif getattr(proposal, name) and _is_empty(getattr(after.spec, name)):
                yield (
                    f"`{name}` is a placeholder. Leave the field out until it is known."
                )
        texts = after.spec.acceptance_criteria
        for text in sorted({text for text in texts if texts.count(text) > 1}):
            yield f"The criterion is there twice: {text}"
        if after.unchecked and not after.open_questions:
            yield (
                "Nothing says how these criteria are checked, and no open question is"
                f" about that: {'; '.join(after.unchecked)}. Name the check, or ask for"
                " the number or the example that is missing."
            )
        if proposal.approved and not is_answer:
            yield "`approved` is true, but the person has said nothing in this turn."
        if (
            not proposal.questions
            and not proposal.approved
            and (after.spec.missing() or after.open_questions)
        ):
            yield (
                "You ask nothing, although something is open. Ask one to three"
                " questions, also in `questions`."
            )

    def _emptied(self, proposal: Proposal) -> frozenset[str]:
        """The fields that are written, and that a proposal has nothing for but an empty
        text or a placeholder.
        """
        criteria = proposal.acceptance_criteria
        proposed = {
            "title": proposal.title,
            "description": proposal.description,
            "acceptance_criteria": (
                None if criteria is None else [item.text for item in criteria]
            ),
        }
        return frozenset(
            name
            for name, value in proposed.items()
            if value is not None
            and _is_empty(value)
            and not _is_empty(getattr(self.spec, name))
        )

    def shown(self, slug: str) -> SpecShown:
        """As faces show it."""
        spec = self.spec
        return SpecShown(
            ticket_slug=slug,
            title=_written(spec.title),
            type=spec.type.value,
            priority=spec.priority,
            description=_written(spec.description),
            criteria=tuple(
                CriterionView(text, self.checks.get(text, "")) for text in self.criteria
            ),
            scope=tuple(
                (area, tuple(items))
                for area, items in spec.implementation_scope.items()
            ),
            technical_notes=_written(spec.technical_notes),
            missing=tuple(spec.missing()),
            open_questions=self.open_questions,
            not_written=tuple(name for name in FIELDS if name in self.changes),
        )


def _written(text: str) -> str:
    return "" if is_placeholder(text) else text


def _is_empty(value: str | Sequence[str]) -> bool:
    return (
        is_placeholder(value)
        if isinstance(value, str)
        else all(map(is_placeholder, value))
    )


def _tidy(text: str) -> str:
    """Without spaces at the ends of lines, which YAML could only show as escapes."""
    return "\n".join(line.rstrip() for line in text.expandtabs(4).splitlines()).strip()


def _each(change: Callable[[str], str], value: Any) -> Any:
    """The value of a field with each of its texts changed."""
    match value:
        case str(text):
            return change(text)
        case Mapping() as areas:
            return {
                change(area): tuple(map(change, items)) for area, items in areas.items()
            }
        case items:
            return tuple(map(change, items))


def _digest(value: Any) -> str:
    plain = (
        sorted((area, list(items)) for area, items in value.items())
        if isinstance(value, Mapping)
        else value
    )
    return digest(repr(plain).encode("utf-8", "surrogatepass")) or ""
