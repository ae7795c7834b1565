"""The answer of the model in a conversation about a spec: what it adds, changes and
removes. What it does not mention stays.
"""

from typing import Annotated, Any

from msgspec import Meta, Struct

from cdd_agent.forms import Respelled


def _as_item(value: Any) -> Any:
    """Return a bare text as an item: some models leave out the braces."""
    return {"text": value} if isinstance(value, str) else value


def _as_items(value: Any) -> Any:
    """Return lists by area, as spec.yaml has them, as items."""
    if not isinstance(value, dict):
        return value
    items = []
    for area, texts in value.items():
        for text in texts if isinstance(texts, list) else [texts]:
            items.append({"area": area, "text": text})
    return items


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
        tuple[Annotated[CriterionChange, Respelled(_as_item)], ...],
        Meta(description="Those that are new, changed or removed."),
    ] = ()
    implementation_scope: Annotated[
        tuple[Annotated[ScopeChange, Respelled(_as_item)], ...],
        Respelled(_as_items),
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
