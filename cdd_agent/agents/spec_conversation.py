"""The conversation with a model about a spec: the draft, the turns, and writing
spec.yaml.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Self

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.agents.added_lines import ADDED_LINES
from cdd_agent.agents.attachments import without_files
from cdd_agent.agents.document_conversation import DocumentConversation, ReplyForm
from cdd_agent.agents.socrates_prompt import Surroundings, TurnMessages, make_prompt
from cdd_agent.agents.spec_draft import Draft, RebasedDraft, plain_words
from cdd_agent.agents.spec_notes import (
    NAME,
    SpecNotes,
    draft_fields,
    read_spec_notes,
    without_json,
)
from cdd_agent.agents.spec_proposal import Proposal, respell_proposal
from cdd_agent.agents.store import AgentFile, without_secrets
from cdd_agent.cost import Cost
from cdd_agent.dialogue.code_search import search_in_thread
from cdd_agent.dialogue.redacted_events import RedactedEvents
from cdd_agent.dialogue.turns import Added, Dialogue
from cdd_agent.engine.record import RunRecord
from cdd_agent.events.dialogue_events import ReplyFinished
from cdd_agent.events.notices import Notice, Tone
from cdd_agent.events.stream import Emit, Event
from cdd_agent.llm.port import (
    ContextTooLong,
    Message,
    Picture,
    RequestRejected,
    Usage,
)
from cdd_agent.text.redaction import Redactor
from cdd_agent.threads import to_its_end
from cdd_agent.tickets.spec import TicketSpec
from cdd_agent.tickets.spec_file import SpecFile, SpecOnDisk

if TYPE_CHECKING:
    from cdd_agent.context.finder import CodeFinder
    from cdd_agent.dialogue.fitted_prompt import FittedPrompt
    from cdd_agent.dialogue.structured import Structured
    from cdd_agent.tickets.store import Ticket, TicketStore

QUESTION_MARKS = "?？؟"


class SpecTurn(Struct, frozen=True):
    before: Draft
    unasked: str
    """Questions in the data that the model's text did not ask, as a list."""
    problems: tuple[str, ...]
    approves: bool


class SpecConversation(DocumentConversation[SpecNotes]):
    def __init__(
        self,
        *,
        file: AgentFile[SpecNotes],
        spec_file: SpecFile,
        seen: SpecOnDisk,
        events: RedactedEvents,
        tickets: TicketStore,
        code: CodeFinder | None,
    ) -> None:
        super().__init__(file, spec_file.ticket.root, events)
        self._spec_file = spec_file
        self._tickets = tickets
        self._code = code
        self._dialogue: Dialogue | None = None
        self._reported_notes = set[str]()
        self._yaml: tuple[TicketSpec, str] | None = None
        """The draft's file as YAML, cached because a large one takes a second."""
        self.edits: RebasedDraft | None = None
        """The user's edits of spec.yaml since the notes were saved; None without
        notes.
        """
        notes = file.saved
        if notes is None:
            self.draft = Draft.over(seen.spec)
            self.history: tuple[Message, ...] = ()
            self.said: tuple[str, ...] = ()
            self.under_way: tuple[Message, ...] = ()
            self.spent = Cost()
            return
        self.draft = notes.draft
        self.history = notes.history
        self.said = notes.said
        self.under_way = notes.under_way
        self.spent = notes.spent
        self.edits = self._rebase(seen)

    @classmethod
    def open(
        cls,
        *,
        ticket: Ticket,
        tickets: TicketStore,
        redactor: Redactor,
        make_dialogue: Callable[[Cost, Callable[[Usage], None]], Dialogue],
        emit: Emit,
        code: CodeFinder | None = None,
        start_over: bool = False,
    ) -> Self:
        """Read the spec and the saved notes, and hold the ticket until `close`.

        `make_dialogue` receives the cost so far, and a function for the usage of lost
        calls. `start_over` renames the saved notes. Raises `BadInput` for an unreadable
        spec or an unusable model, and if another process works on the ticket.
        """
        spec_file = SpecFile(ticket)
        on_disk = spec_file.read()
        record = RunRecord.of_ticket(ticket, redactor)
        file = AgentFile.open(record, NAME, read_spec_notes, start_over=start_over)
        try:
            opened = cls(
                file=file,
                spec_file=spec_file,
                seen=on_disk,
                events=RedactedEvents(redactor, emit),
                tickets=tickets,
                code=code,
            )
            dialogue = make_dialogue(opened.spent, opened.count)
        except BaseException:
            file.close()
            raise
        opened._dialogue = replace(dialogue, emit=opened._emit_and_count)
        return opened

    # Messages

    @property
    def shown_path(self) -> str:
        return self._spec_file.shown

    @property
    def is_new(self) -> bool:
        return not self.history and not self.under_way

    @property
    def is_unanswered(self) -> bool:
        """True during a turn, and after an interrupted one."""
        return bool(self.under_way)

    @property
    def last_answer(self) -> str:
        """The model's last answer, as shown to the user."""
        for message in reversed(self.history):
            if message.role == "assistant":
                return without_json(message.content)
        return ""

    @property
    def user_messages(self) -> tuple[Message, ...]:
        return tuple(
            message
            for message in self.under_way
            if message.role == "user" and message.content in self.said
        )

    # The draft and the file

    def reread(self) -> tuple[SpecOnDisk, RebasedDraft]:
        """Read spec.yaml, and take over the user's edits. Raises `BadInput`."""
        on_disk = self._spec_file.read()
        return on_disk, self._rebase(on_disk)

    def _rebase(self, on_disk: SpecOnDisk) -> RebasedDraft:
        """Rebase the draft on the current file. Ignore a missing or empty file: another
        branch may be checked out, or an editor may be writing.
        """
        if not on_disk.is_written:
            return RebasedDraft(self.draft)
        rebased = self.draft.rebase(on_disk.spec)
        self.draft = rebased.draft
        return rebased

    def drop_questions(self, numbers: Iterable[int]) -> None:
        self.draft = self.draft.drop(tuple(numbers))
        self.save()

    async def write(self, on_disk: SpecOnDisk) -> bool:
        """Write the draft to spec.yaml. False if the file is already equal. Raises
        `SpecChanged` if the file differs from `on_disk`.
        """
        spec = self.draft.spec
        was_changed = await to_its_end(
            partial(self._spec_file.write, on_disk, spec), name="spec"
        )
        self._rebase(replace(on_disk, spec=spec, is_written=True))
        self.save()
        return was_changed

    # A turn

    async def take_turn(self, line: str | None, *, is_answer: bool) -> SpecTurn:
        """Send a line to the model, and change the draft by its reply. Without a line,
        send the unanswered messages again. `is_answer`: the user wrote the line.

        Raises `CddError`. The messages so far are saved.
        """
        surroundings = await self._find_surroundings(line)
        is_answer = is_answer or bool(set(self.said) - ADDED_LINES)
        assert self._dialogue is not None
        if line is not None:
            sent = await self.attach_files(line, self._dialogue.model)
            self._add_line(sent.text, sent.pictures)
        former_draft = self.draft
        messages = TurnMessages(self.history, self.under_way, self.user_messages)
        prompt = make_prompt(
            self._spec_file.ticket, surroundings, former_draft, messages, self._dialogue
        )
        self._report_rules(surroundings.rules.notes)
        answer = await self._request_proposal(prompt, is_answer=is_answer)
        draft = former_draft.with_proposal(
            answer.value, self.redactor, is_answer=is_answer
        )
        unasked = list_unasked(answer.text, answer.value.questions)
        self._conclude(draft, unasked)
        return SpecTurn(
            before=former_draft,
            unasked=unasked,
            problems=answer.problems,
            approves=answer.value.approved and is_answer,
        )

    async def _find_surroundings(self, line: str | None) -> Surroundings:
        shown = self.draft.shown("")
        about = "\n".join(filter(None, (shown.title, shown.description, line)))
        look = partial(
            Surroundings.find, self._spec_file.ticket, self._tickets, self._code, about
        )
        return await search_in_thread(
            look, self.emit, "Looking for code about this ticket …"
        )

    def _report_rules(self, notes: Iterable[str]) -> None:
        for note in notes:
            if note not in self._reported_notes:
                self.emit(Notice(note, Tone.WARNING))
        self._reported_notes.update(notes)

    async def _request_proposal(
        self, prompt: FittedPrompt, *, is_answer: bool
    ) -> Structured[Proposal]:
        """Ask the model for the changes of this turn. If the prompt is refused, drop
        what the next try can do without.
        """
        draft = self.draft

        def check(proposal: Proposal) -> tuple[str, ...]:
            return tuple(draft.problems(proposal, is_answer=is_answer))

        form = ReplyForm(Proposal, check, respell_proposal)
        try:
            return await self.request_reply(prompt, form, self._add_round)
        except ContextTooLong as error:
            # Otherwise every later try would be too long, too.
            had_files = self._drop_files()
            had_results = self._drop_tool_results()
            if not had_files and not had_results:
                raise
            dropped = "The results of tools are"
            if had_files:
                dropped = "The results of tools and the files you mentioned are"
            hint = (
                f"{dropped} left out now. Press Enter to try again, or say"
                " where to look."
            )
            raise ContextTooLong(error.message, hint=hint) from error
        except RequestRejected as error:
            # Otherwise every later try would be refused, too.
            if self._drop_pictures():
                error.hint = (
                    f"{error.hint} The picture is left out now. Press Enter to"
                    " continue without it."
                ).lstrip()
            raise

    # The messages of the turn

    def _add_line(self, text: str, pictures: tuple[Picture, ...] = ()) -> None:
        message = Message("user", text, pictures=pictures)
        saved = without_secrets((message,), self.redactor)
        self.said += (saved[0].content,)
        self.under_way += saved
        self.save()

    def _add_round(self, added: Added) -> None:
        self.under_way += without_secrets(added.messages, self.redactor)
        self.save()

    def _conclude(self, draft: Draft, unasked: str) -> None:
        """End the turn. Of its rounds, keep only the visible text: the draft contains
        the rest.
        """
        answers = [message for message in self.under_way if message.role == "assistant"]
        last = "\n\n".join(filter(None, (answers[-1].content, unasked)))
        pictures: tuple[Picture, ...] = ()
        for message in self.user_messages:
            pictures += message.pictures
        lines = "\n\n".join(map(without_files, self.said))
        self.history += (
            Message("user", lines, pictures=pictures),
            Message("assistant", last),
        )
        self.said = ()
        self.under_way = ()
        self.draft = draft
        self.save()

    def _drop_tool_results(self) -> bool:
        """Keep only the user's messages. True if there were others."""
        messages = self.user_messages
        had_others = self.under_way != messages
        self.under_way = messages
        self.save()
        return had_others

    def _drop_files(self) -> bool:
        """Drop the files that the user's lines mention. True if there were any."""
        lines = tuple(without_files(line) for line in self.said)
        had_files = lines != self.said
        user_messages = self.user_messages
        under_way = []
        for message in self.under_way:
            content = message.content
            if message in user_messages:
                content = without_files(content)
            under_way.append(replace(message, content=content))
        self.said = lines
        self.under_way = tuple(under_way)
        self.save()
        return had_files

    def _drop_pictures(self) -> bool:
        """Drop the pictures of the turn. True if there were any."""
        without = tuple(replace(message, pictures=()) for message in self.under_way)
        had_pictures = self.under_way != without
        self.under_way = without
        self.save()
        return had_pictures

    # The cost, and saving

    def count(self, usage: Usage) -> None:
        self.spent += usage.cost

    def _emit_and_count(self, event: Event) -> None:
        if isinstance(event, ReplyFinished) and event.usage is not None:
            self.count(event.usage)
        self.emit(event)

    def save(self) -> None:
        """Raise `BadInput` if the disk refuses."""
        spec = self.draft.file
        if self._yaml is None or self._yaml[0] is not spec:
            self._yaml = (spec, spec.to_yaml())
        self.file.write(
            SpecNotes(
                file=self._yaml[1],
                **draft_fields(self.draft),
                history=self.history,
                said=self.said,
                under_way=self.under_way,
                spent=self.spent,
            )
        )


def list_unasked(text: str, questions: Sequence[str]) -> str:
    """Return the questions that only an answer's data contains, as a list. A text with
    at least as many question marks asks them in other words.
    """
    if sum(map(text.count, QUESTION_MARKS)) >= len(questions):
        return ""
    words = plain_words(text)
    return "\n".join(
        f"- {question}" for question in questions if plain_words(question) not in words
    )
