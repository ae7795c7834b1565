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
    """Finished turns: the user's text, then the model's last answer, unchanged."""
    said: tuple[str, ...]
    """The user's texts in the current turn."""
    under_way: tuple[Message, ...]
    """All messages of the current turn; empty between turns."""
    spent: Cost
    """The cost of all model calls about this ticket."""

    @property
    def draft(self) -> Draft:
        """Raise `ValueError` if the draft is damaged."""
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
    """Raise `ValueError` for damaged notes."""
    notes = from_json(data, SpecNotes)
    # This raises `ValueError` if the draft is damaged.
    assert notes.draft
    return notes


def spec_conversation_events(record: RunRecord) -> tuple[Event, ...]:
    """Return the conversation about a ticket without its last answer; empty if it is
    missing or damaged.
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
    """Return the open points of the saved conversation about a spec; empty without one.
    Raises `BadInput`.
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
    return without_blocks(answer, FENCE).strip()


def without_data(answer: Message) -> Message:
    """Return an answer without its data, which the draft contains."""
    return Message("assistant", without_json(answer.content) or "…")
