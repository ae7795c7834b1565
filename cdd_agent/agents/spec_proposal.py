"""The model's answer about a spec. msgspec puts the docstrings of these classes into
the schema that the model receives.
"""

from typing import Annotated, Any

from msgspec import Meta, Struct

_Id = Meta(description="Of one that is there; none for a new one.")


class CriterionChange(Struct, frozen=True, forbid_unknown_fields=True):
    """One thing that can be seen or tested when the work is done."""

    id: Annotated[str | None, _Id] = None
    text: str | None = None
    check: Annotated[
        str | None,
        Meta(
            description=(
                "How it is checked: a command, a test, or steps and what is to be seen"
                " then. None while nobody could say, for example as long as the text"
                " has a word like 'fast' without a number."
            )
        ),
    ] = None
    remove: bool = False


class ScopeChange(Struct, frozen=True, forbid_unknown_fields=True):
    """One thing that is part of the work, or is not."""

    id: Annotated[str | None, _Id] = None
    area: Annotated[
        str | None,
        Meta(description="`out_of_scope` for what is not."),
    ] = None
    text: str | None = None
    remove: bool = False


class Proposal(Struct, frozen=True, forbid_unknown_fields=True):
    """What changes in the spec. What is left out stays as it is."""

    title: Annotated[
        str | None, Meta(description="One line that says what is wanted.")
    ] = None
    description: Annotated[
        str | None,
        Meta(
            description=(
                "What is wanted, for whom and why, in Markdown; with the sentences that"
                " stay."
            )
        ),
    ] = None
    acceptance_criteria: Annotated[
        tuple[CriterionChange, ...],
        Meta(description="Those that are new, changed or removed."),
    ] = ()
    implementation_scope: Annotated[
        tuple[ScopeChange, ...],
        Meta(description="Those that are new, changed or removed."),
    ] = ()
    technical_notes: Annotated[
        str | None,
        Meta(description=("What the code must respect; with the sentences that stay.")),
    ] = None
    priority: str | None = None
    questions: Annotated[
        tuple[str, ...],
        Meta(
            description=(
                "The questions that you ask in this turn, as a person reads them: one"
                " to three."
            )
        ),
    ] = ()
    answered: Annotated[
        tuple[str, ...],
        Meta(
            description=(
                "Ids of open questions that the person has just answered or set aside."
            )
        ),
    ] = ()
    facts: Annotated[
        tuple[str, ...],
        Meta(
            description=(
                "All that you found in the project that matters for the spec, with its"
                " place: you will not see the tools' answers of this turn again."
            )
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


def respell_proposal(value: Any) -> Any:
    """Correct a decoded proposal to the spelling of `Proposal`. Some models omit the
    braces of items, and some write the scope as lists by area, as spec.yaml does.
    """
    if not isinstance(value, dict):
        return value
    respelled = dict(value)
    for name in ("acceptance_criteria", "implementation_scope"):
        items = value.get(name)
        if name == "implementation_scope" and isinstance(items, dict):
            items = _list_areas(items)
        if isinstance(items, list):
            respelled[name] = [
                {"text": item} if isinstance(item, str) else item for item in items
            ]
    return respelled


def _list_areas(areas: dict[str, Any]) -> list[Any]:
    items = []
    for area, texts in areas.items():
        for text in texts if isinstance(texts, list) else [texts]:
            items.append({"area": area, "text": text})
    return items
