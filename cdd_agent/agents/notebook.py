"""The notebook of Socrates: kept between turns, and when nobody is there, in
`.cdd/runs/<slug>/socrates.json`.

It is saved at every word and every round, so that leaving, or a kill, loses at most the
reply that was under way. Of spec.yaml it keeps only what identifies the fields: the
file itself is what counts.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from cdd_agent.agents.spec_draft import Draft
from cdd_agent.agents.store import AgentFile, without_secrets
from cdd_agent.dialogue.hidden_blocks import HiddenBlockFilter
from cdd_agent.dialogue.structured import FENCE
from cdd_agent.engine.record import RunRecord
from cdd_agent.events import Answer, Event, PersonSaid
from cdd_agent.files.atomic import read_bytes
from cdd_agent.files.json_file import from_json
from cdd_agent.llm.budget import Spent
from cdd_agent.llm.port import Message, Picture, Usage
from cdd_agent.tickets.spec import TicketSpec
from cdd_agent.tickets.spec_file import SpecOnDisk

NAME = "socrates.json"


class _Changes(Struct, frozen=True, forbid_unknown_fields=True):
    title: str | None = None
    priority: str | None = None
    description: str | None = None
    acceptance_criteria: tuple[str, ...] | None = None
    implementation_scope: dict[str, tuple[str, ...]] | None = None
    technical_notes: str | None = None


class _Saved(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    version: Literal[1] = 1
    known: dict[str, str]
    changes: _Changes
    checks: dict[str, str]
    open_questions: tuple[str, ...]
    facts: tuple[str, ...]
    history: tuple[Message, ...]
    said: tuple[str, ...]
    under_way: tuple[Message, ...]
    spent: Spent


class Notebook(Struct):
    """The draft of a ticket's spec and the conversation about it."""

    kept: AgentFile[_Saved]
    draft: Draft
    known: Mapping[str, str] = field(default_factory=dict)
    """Digests of the fields of spec.yaml as it was when something was written in it
    last.
    """
    history: tuple[Message, ...] = ()
    """Turns that are over: what the person said, then the model's last answer, as it
    was.
    """
    said: tuple[str, ...] = ()
    """The person's words in the turn that is under way."""
    under_way: tuple[Message, ...] = ()
    """All of that turn so far; empty between turns."""
    spent: Spent = field(default_factory=Spent)
    """By the model calls about this ticket, in all processes."""
    edited: tuple[str, ...] = ()
    """Fields that were changed in spec.yaml while nobody was there."""

    @classmethod
    def open(
        cls, record: RunRecord, seen: SpecOnDisk, *, start_over: bool = False
    ) -> "Notebook":
        """As it was left, over the spec as it is now. Until it is closed it holds the
        ticket; see `AgentFile.open`.
        """
        kept = AgentFile.open(record, NAME, _Saved, start_over=start_over)
        saved, new = kept.found, Draft(seen.spec)
        if saved is None:
            return cls(kept, new, new.digests)
        changes = {
            name: value
            for name, value in asdict(saved.changes).items()
            if value is not None
        }
        draft = Draft(
            seen.spec, changes, saved.checks, saved.open_questions, saved.facts
        )
        notebook = cls(
            kept,
            draft,
            saved.known,
            saved.history,
            saved.said,
            saved.under_way,
            saved.spent,
        )
        notebook.edited = notebook.meet(seen)
        return notebook

    def close(self) -> None:
        self.kept.close()

    @property
    def is_new(self) -> bool:
        return not self.history and not self.under_way

    @property
    def is_unanswered(self) -> bool:
        """A turn was begun and is not over."""
        return bool(self.under_way)

    @property
    def last_words(self) -> str:
        """The model's last answer, as a person saw it."""
        answers = [message for message in self.history if message.role == "assistant"]
        return without_json(answers[-1].content) if answers else ""

    def meet(self, seen: SpecOnDisk) -> tuple[str, ...]:
        """Take over what a person has changed in the file; the fields. One that is
        gone, or empty, is no change: it may be that another branch is checked out, or
        that it is being written.
        """
        if not seen.is_written:
            return ()
        self.draft, edited = self.draft.met(seen.spec, self.known)
        self.known = self.draft.digests
        return edited

    @property
    def asked(self) -> tuple[Message, ...]:
        """The person's messages in the turn that is under way, with their pictures."""
        return tuple(
            one
            for one in self.under_way
            if one.role == "user" and one.content in self.said
        )

    def hear(self, text: str, pictures: tuple[Picture, ...] = ()) -> None:
        """The person's words, with which a turn begins or goes on."""
        said = without_secrets(
            (Message("user", text, pictures=pictures),), self.kept.redactor
        )
        self.said += (said[0].content,)
        self.under_way += said
        self.save()

    def add(self, messages: Iterable[Message]) -> None:
        """A round of the turn that is under way."""
        self.under_way += without_secrets(messages, self.kept.redactor)
        self.save()

    def forget_rounds(self) -> bool:
        """Keep of the turn that is under way only what was said; whether there was
        more.
        """
        said = self.asked
        had_more = self.under_way != said
        self.under_way = said
        self.save()
        return had_more

    def forget_pictures(self) -> bool:
        """Of the turn that is under way; whether there were any."""
        without = tuple(replace(message, pictures=()) for message in self.under_way)
        had_some = self.under_way != without
        self.under_way = without
        self.save()
        return had_some

    def conclude(self, draft: Draft, also_shown: str = "") -> None:
        """The turn is over. Of its rounds only what was said and shown is kept: the
        draft holds what came of them.
        """
        answers = [message for message in self.under_way if message.role == "assistant"]
        last = "\n\n".join(filter(None, (answers[-1].content, also_shown)))
        pictures = tuple(
            picture for message in self.asked for picture in message.pictures
        )
        said = Message("user", "\n\n".join(self.said), pictures=pictures)
        self.history += (said, Message("assistant", last))
        self.said, self.under_way, self.draft = (), (), draft
        self.save()

    def count(self, usage: Usage) -> None:
        self.spent += usage

    def save(self) -> None:
        """Raises `BadInput` when the disk refuses."""
        draft = self.draft
        saved = _Saved(
            known=dict(self.known),
            changes=_Changes(**draft.changes),
            checks=dict(draft.checks),
            open_questions=draft.open_questions,
            facts=draft.facts,
            history=self.history,
            said=self.said,
            under_way=self.under_way,
            spent=self.spent,
        )
        self.kept.write(saved)


def said_before(record: RunRecord) -> tuple[Event, ...]:
    """The conversation about a ticket, without its last answer; nothing where none can
    be read.
    """
    try:
        saved = from_json(read_bytes(record.folder / NAME) or b"", _Saved)
    except ValueError:
        return ()
    told = [
        PersonSaid(message.content)
        if message.role == "user"
        else Answer(without_json(message.content))
        for message in saved.history
    ]
    return tuple(told[:-1] if told and isinstance(told[-1], Answer) else told)


def open_points(folder: Path, spec: TicketSpec) -> tuple[str, ...]:
    """Return what is open in the conversation that a ticket's record keeps about its
    spec, a line each; nothing if there was none. Raises `BadInput`.
    """
    try:
        saved = from_json(read_bytes(folder / NAME) or b"", _Saved)
    except ValueError:
        return ()
    draft = Draft(spec, checks=saved.checks, open_questions=saved.open_questions)
    return draft.open_points


def without_json(answer: str) -> str:
    """A model's answer as a person saw it."""
    screen = HiddenBlockFilter(frozenset({FENCE}))
    return (screen.hear(answer) + screen.end()).strip()


def without_data(answer: Message) -> Message:
    """The same for a model: its data is in the draft as well."""
    return Message("assistant", without_json(answer.content) or "…")


def bounded(messages: Sequence[Message], most: int) -> tuple[Message, ...]:
    """The latest turns of a conversation, of about so many characters, beginning with a
    person's words.

    Of the model's answers only the last one has its JSON: what the others held is in
    the draft.
    """
    last = max(
        (i for i, message in enumerate(messages) if message.role == "assistant"),
        default=-1,
    )
    plain = [
        message if message.role == "user" or i == last else without_data(message)
        for i, message in enumerate(messages)
    ]
    kept: list[Message] = []
    room = most
    for user, answer in reversed(list(zip(plain[::2], plain[1::2], strict=False))):
        room -= len(user.content) + len(answer.content)
        if room < 0 and kept:
            break
        kept[:0] = [user, answer]
    return tuple(kept)
