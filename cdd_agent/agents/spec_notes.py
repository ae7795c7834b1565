"""The saved conversation about a spec: `.cdd/runs/<slug>/socrates.json`."""

from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.agents.added_lines import ADDED_LINES
from cdd_agent.agents.spec_draft import Draft, SpecQuestion, describe_open_points
from cdd_agent.agents.spec_items import Item
from cdd_agent.cost import Cost
from cdd_agent.dialogue.structured import FENCE
from cdd_agent.engine.record import RunRecord
from cdd_agent.errors import BadInput
from cdd_agent.events.notices import Answer
from cdd_agent.events.shell_events import PersonSaid
from cdd_agent.events.stream import Event
from cdd_agent.files.atomic import read_bytes
from cdd_agent.files.json_file import from_json
from cdd_agent.llm.port import Message
from cdd_agent.llm.reply_stream import without_blocks
from cdd_agent.tickets.placeholders import is_placeholder
from cdd_agent.tickets.spec import TicketSpec

NAME = "socrates.json"


class SpecNotes(
    Struct,
    frozen=True,
    forbid_unknown_fields=True,
    kw_only=True,
    tag_field="version",
    tag=2,
):
    """The draft of the spec, and the messages."""

    file: str
    """The last read values of spec.yaml, in YAML."""
    texts: dict[str, str]
    criteria: tuple[Item, ...]
    last_criterion: int
    scope: tuple[Item, ...]
    last_scope_item: int
    questions: tuple[SpecQuestion, ...]
    last_question: int
    dropped_questions: tuple[str, ...]
    facts: tuple[str, ...]
    history: tuple[Message, ...]
    """Finished turns: the user's words, then the model's last answer, unchanged."""
    said: tuple[str, ...]
    """The user's words in the turn that is under way."""
    under_way: tuple[Message, ...]
    """All of that turn so far; empty between turns."""
    spent: Cost
    """By the model calls about this ticket, in all processes."""

    @property
    def draft(self) -> Draft:
        """Raises `ValueError`."""
        try:
            file = TicketSpec.from_yaml(self.file)
        except BadInput as error:
            raise ValueError(error.message) from error
        new = Draft.over(TicketSpec())
        return replace(
            new,
            file=file,
            texts=self.texts,
            criteria=replace(
                new.criteria, items=self.criteria, last_number=self.last_criterion
            ),
            scope=replace(
                new.scope, items=self.scope, last_number=self.last_scope_item
            ),
            questions=self.questions,
            last_question=self.last_question,
            dropped_questions=self.dropped_questions,
            facts=self.facts,
        )


def draft_fields(draft: Draft) -> dict[str, Any]:
    """Return the fields of a draft as `SpecNotes` has them, without the file."""
    return {
        "texts": dict(draft.texts),
        "criteria": draft.criteria.items,
        "last_criterion": draft.criteria.last_number,
        "scope": draft.scope.items,
        "last_scope_item": draft.scope.last_number,
        "questions": draft.questions,
        "last_question": draft.last_question,
        "dropped_questions": draft.dropped_questions,
        "facts": draft.facts,
    }


def read_spec_notes(data: bytes) -> SpecNotes:
    """Raises `ValueError` for damaged notes."""
    notes = from_json(data, SpecNotes)
    # Raises `ValueError` if the draft is damaged.
    assert notes.draft
    return notes


def spec_conversation_events(record: RunRecord) -> tuple[Event, ...]:
    """Return the conversation about a ticket, without its last answer. Empty if none
    can be read.
    """
    try:
        data = read_bytes(record.folder / NAME) or b""
        history = from_json(data, SpecNotes).history
    except ValueError:
        return ()
    events: list[Event] = []
    for message in history:
        if message.role == "user":
            words = _without_added_lines(message.content)
            if words:
                events.append(PersonSaid(words))
        else:
            events.append(Answer(without_json(message.content)))
    if events and isinstance(events[-1], Answer):
        events.pop()
    return tuple(events)


def _without_added_lines(text: str) -> str:
    lines = text.split("\n\n")
    return "\n\n".join(line for line in lines if line not in ADDED_LINES)


def open_points(folder: Path, spec: TicketSpec) -> tuple[str, ...]:
    """Return what is open in the conversation that a ticket's record has about its
    spec, a line each; empty if there was none. Raises `BadInput`.
    """
    try:
        draft = read_spec_notes(read_bytes(folder / NAME) or b"").draft
    except ValueError:
        return ()
    checks = {item.line.text: item.check for item in draft.criteria.items}
    unchecked = [
        text
        for text in spec.acceptance_criteria
        if not is_placeholder(text) and not checks.get(text)
    ]
    return describe_open_points(unchecked, draft.questions)


def without_json(answer: str) -> str:
    """Return a model's answer as the user saw it."""
    return without_blocks(answer, FENCE).strip()


def without_data(answer: Message) -> Message:
    """Return an answer for the model without its data, which the draft has."""
    return Message("assistant", without_json(answer.content) or "…")
