"""The notebook of Socrates: the draft of a spec and the conversation about it, kept in
`.cdd/runs/<slug>/socrates.json`.

It is saved at every word and every round, so that leaving, or a kill, loses at most the
reply that was under way.
"""

from collections.abc import Collection, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.agents.added_lines import ADDED_LINES
from cdd_agent.agents.attachments import without_files
from cdd_agent.agents.spec_draft import (
    TEXTS,
    Draft,
    OpenQuestion,
    RebasedDraft,
    open_points_of,
)
from cdd_agent.agents.spec_items import Item
from cdd_agent.agents.spec_proposal import CriterionChange, Proposal, ScopeChange
from cdd_agent.agents.store import AgentFile, without_secrets
from cdd_agent.cost import Cost
from cdd_agent.dialogue.structured import FENCE
from cdd_agent.engine.record import RunRecord
from cdd_agent.errors import BadInput
from cdd_agent.events.notices import Answer
from cdd_agent.events.shell_events import PersonSaid
from cdd_agent.events.stream import Event
from cdd_agent.files.atomic import digest, read_bytes
from cdd_agent.files.json_file import from_json
from cdd_agent.llm.port import Message, Picture, Usage
from cdd_agent.llm.reply_stream import without_blocks
from cdd_agent.redaction import Redactor
from cdd_agent.tickets.placeholders import is_placeholder
from cdd_agent.tickets.spec import FIELDS, TicketSpec
from cdd_agent.tickets.spec_file import SpecOnDisk

NAME = "socrates.json"


class _ChangesV1(Struct, frozen=True, forbid_unknown_fields=True):
    title: str | None = None
    priority: str | None = None
    description: str | None = None
    acceptance_criteria: tuple[str, ...] | None = None
    implementation_scope: dict[str, tuple[str, ...]] | None = None
    technical_notes: str | None = None


class _SavedV1(
    Struct,
    frozen=True,
    forbid_unknown_fields=True,
    kw_only=True,
    tag_field="version",
    tag=1,
):
    """The form of an older program: whole fields, and digests of those of the file."""

    known: dict[str, str]
    changes: _ChangesV1
    checks: dict[str, str]
    open_questions: tuple[str, ...]
    facts: tuple[str, ...]
    history: tuple[Message, ...]
    said: tuple[str, ...]
    under_way: tuple[Message, ...]
    spent: Cost


class _Saved(
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
    questions: tuple[OpenQuestion, ...]
    last_question: int
    dropped_questions: tuple[str, ...]
    facts: tuple[str, ...]
    history: tuple[Message, ...]
    said: tuple[str, ...]
    under_way: tuple[Message, ...]
    spent: Cost

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


class Notebook(Struct):
    """The draft of a ticket's spec and the conversation about it."""

    kept: AgentFile[_Saved]
    draft: Draft
    history: tuple[Message, ...] = ()
    """Finished turns: the user's words, then the model's last answer, unchanged.
    """
    said: tuple[str, ...] = ()
    """The person's words in the turn that is under way."""
    under_way: tuple[Message, ...] = ()
    """All of that turn so far; empty between turns."""
    spent: Cost = field(default_factory=Cost)
    """By the model calls about this ticket, in all processes."""
    rebased: RebasedDraft | None = None
    """The changes of spec.yaml since the notebook was closed."""
    _yaml: tuple[TicketSpec, str] | None = None
    """The file of the draft and its YAML, which takes a second where it is large."""

    @classmethod
    def open(
        cls, record: RunRecord, seen: SpecOnDisk, *, start_over: bool = False
    ) -> "Notebook":
        """Open the saved notebook, over the current spec. It holds the ticket until
        it is closed; see `AgentFile.open`.
        """
        kept = AgentFile.open(
            record, NAME, partial(_read, seen=seen), start_over=start_over
        )
        saved = kept.found
        if saved is None:
            return cls(kept, Draft.over(seen.spec))
        notebook = cls(
            kept,
            saved.draft,
            saved.history,
            saved.said,
            saved.under_way,
            saved.spent,
        )
        notebook.rebased = notebook.rebase(seen)
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
        """The model's last answer, as the user saw it."""
        answers = [message for message in self.history if message.role == "assistant"]
        return without_json(answers[-1].content) if answers else ""

    def rebase(self, seen: SpecOnDisk) -> RebasedDraft:
        """Rebase the draft on the current file. A missing or empty file changes
        nothing: another branch may be checked out, or the file is being written.
        """
        if not seen.is_written:
            return RebasedDraft(self.draft)
        rebased = self.draft.rebase(seen.spec)
        self.draft = rebased.draft
        return rebased

    @property
    def asked(self) -> tuple[Message, ...]:
        """The person's messages in the turn that is under way, with their pictures."""
        return tuple(
            one
            for one in self.under_way
            if one.role == "user" and one.content in self.said
        )

    def hear(self, text: str, pictures: tuple[Picture, ...] = ()) -> None:
        """Add the user's words, with which a turn begins or continues."""
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

    def forget_files(self) -> bool:
        """Drop the files that the user's lines in this turn mention. Return True if
        there were any.
        """
        said = tuple(without_files(line) for line in self.said)
        had_some = said != self.said
        under_way = []
        for message in self.under_way:
            content = message.content
            if message in self.asked:
                content = without_files(content)
            under_way.append(replace(message, content=content))
        self.said, self.under_way = said, tuple(under_way)
        self.save()
        return had_some

    def forget_pictures(self) -> bool:
        """Drop the pictures of the current turn. Return True if it had some."""
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
        lines = "\n\n".join(map(without_files, self.said))
        said = Message("user", lines, pictures=pictures)
        self.history += (said, Message("assistant", last))
        self.said, self.under_way, self.draft = (), (), draft
        self.save()

    def count(self, usage: Usage) -> None:
        self.spent += usage.cost

    def save(self) -> None:
        """Raises `BadInput` when the disk refuses."""
        file = self.draft.file
        if self._yaml is None or self._yaml[0] is not file:
            self._yaml = (file, file.to_yaml())
        self.kept.write(
            _Saved(
                file=self._yaml[1],
                **_plain_draft(self.draft),
                history=self.history,
                said=self.said,
                under_way=self.under_way,
                spent=self.spent,
            )
        )


def _plain_draft(draft: Draft) -> dict[str, Any]:
    """Return the fields of a draft without the file, as `_Saved` has them."""
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


def _read(data: bytes, seen: SpecOnDisk) -> _Saved:
    """Return what a file of this program or of an older one holds. Raises
    `ValueError`.
    """
    saved: _Saved | _SavedV1 = from_json(data, _Saved | _SavedV1)  # type: ignore[arg-type]
    if isinstance(saved, _SavedV1):
        return _upgraded(saved, seen)
    # Raises `ValueError` where the draft is damaged.
    assert saved.draft
    return saved


def _upgraded(old: _SavedV1, seen: SpecOnDisk) -> _Saved:
    """Return the notes of an older program as changes of spec.yaml, item by item.

    A text that the user has edited since is the user's. Of a list that the user has
    edited, nothing is removed.
    """
    changes = old.changes
    edited = set()
    for name in FIELDS:
        now = _digest_v1(getattr(seen.spec, name))
        if seen.is_written and old.known.get(name) != now:
            edited.add(name)
    pending = [name for name in TEXTS if getattr(changes, name) is not None]
    # An edited text must differ from the base, so that the draft notices the edit.
    blank = {name: "" for name in pending if name in edited}
    draft = Draft.over(replace(seen.spec, **blank))
    proposal = Proposal(
        **{name: getattr(changes, name) for name in pending},
        acceptance_criteria=_criteria_of_v1(draft, changes, edited),
        implementation_scope=_scope_of_v1(draft, changes, edited),
        questions=old.open_questions,
        facts=old.facts,
    )
    draft = draft.with_proposal(proposal, Redactor(), is_answer=False)
    draft = draft.with_checks(old.checks)
    return _Saved(
        file=draft.file.to_yaml(),
        **_plain_draft(draft),
        history=old.history,
        said=old.said,
        under_way=old.under_way,
        spent=old.spent,
    )


def _criteria_of_v1(
    draft: Draft, changes: _ChangesV1, edited: Collection[str]
) -> tuple[CriterionChange, ...]:
    texts = changes.acceptance_criteria
    if texts is None:
        return ()
    criteria = [CriterionChange(text=text) for text in texts]
    if "acceptance_criteria" in edited:
        return tuple(criteria)
    for item in draft.criteria.items:
        if item.line.text not in texts:
            criteria.append(CriterionChange(id=item.id, remove=True))
    return tuple(criteria)


def _scope_of_v1(
    draft: Draft, changes: _ChangesV1, edited: Collection[str]
) -> tuple[ScopeChange, ...]:
    if changes.implementation_scope is None:
        return ()
    scope = []
    for area, texts in changes.implementation_scope.items():
        scope += [ScopeChange(area=area, text=text) for text in texts]
    if "implementation_scope" in edited:
        return tuple(scope)
    for item in draft.scope.items:
        if ScopeChange(area=item.line.area, text=item.line.text) not in scope:
            scope.append(ScopeChange(id=item.id, remove=True))
    return tuple(scope)


def _digest_v1(value: object) -> str:
    plain = value
    if isinstance(value, dict):
        plain = sorted((area, list(items)) for area, items in value.items())
    return digest(repr(plain).encode("utf-8", "surrogatepass")) or ""


def said_before(record: RunRecord) -> tuple[Event, ...]:
    """The conversation about a ticket, without its last answer; nothing where none can
    be read.
    """
    try:
        data = read_bytes(record.folder / NAME) or b""
        saved = from_json(data, _Saved | _SavedV1)  # type: ignore[arg-type]
    except ValueError:
        return ()
    events: list[Event] = []
    for message in saved.history:
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
    """Return the user's words without the lines that the program added."""
    lines = text.split("\n\n")
    return "\n\n".join(line for line in lines if line not in ADDED_LINES)


def open_points(folder: Path, spec: TicketSpec) -> tuple[str, ...]:
    """Return what is open in the conversation that a ticket's record keeps about its
    spec, a line each; nothing if there was none. Raises `BadInput`.
    """
    try:
        data = read_bytes(folder / NAME) or b""
        draft = _read(data, SpecOnDisk(None, spec)).draft
    except ValueError:
        return ()
    checks = {item.line.text: item.check for item in draft.criteria.items}
    unchecked = [
        text
        for text in spec.acceptance_criteria
        if not is_placeholder(text) and not checks.get(text)
    ]
    return open_points_of(unchecked, draft.questions)


def without_json(answer: str) -> str:
    """Return a model's answer as the user saw it."""
    return without_blocks(answer, FENCE).strip()


def without_data(answer: Message) -> Message:
    """The same for a model: its data is in the draft as well."""
    return Message("assistant", without_json(answer.content) or "…")
