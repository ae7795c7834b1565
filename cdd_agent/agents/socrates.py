"""Socrates: asks until a ticket's spec is clear. It writes only spec.yaml, and only
when the user approves.
"""

import asyncio
import re
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Self

from msgspec.structs import replace

from cdd_agent.agents.added_lines import ADDED_LINES, BEGIN, GO_DEEPER, GO_ON
from cdd_agent.agents.attachments import attach_files, room_for_files, without_files
from cdd_agent.agents.meaning import LineKind, Meaning
from cdd_agent.agents.notebook import Notebook
from cdd_agent.agents.socrates_prompt import Surroundings, request_of
from cdd_agent.agents.spec_draft import Draft, RebasedDraft, plain_words
from cdd_agent.agents.spec_losses import lost_words, spec_diff
from cdd_agent.agents.spec_proposal import Proposal, respell_proposal
from cdd_agent.agents.ticket_agent import TicketAgent, word
from cdd_agent.context.finder import CodeFinder
from cdd_agent.cost import Cost
from cdd_agent.dialogue.code_search import search_in_thread
from cdd_agent.dialogue.fitted_prompt import FittedPrompt
from cdd_agent.dialogue.redacted_events import RedactedEvents
from cdd_agent.dialogue.structured import Structured, ask_structured
from cdd_agent.dialogue.token_budget import Omitted
from cdd_agent.dialogue.turns import Dialogue, ToolCalls
from cdd_agent.engine.lock import TicketLock
from cdd_agent.engine.record import RunRecord
from cdd_agent.engine.spec_notices import spec_notices
from cdd_agent.events.dialogue_events import ReplyFinished
from cdd_agent.events.notices import Answer, Notice, NoticeKind, Tone
from cdd_agent.events.stream import Emit, Event
from cdd_agent.events.ticket_events import SpecShown
from cdd_agent.llm.port import ContextTooLong, Model, RequestRejected, Usage
from cdd_agent.redaction import Redactor
from cdd_agent.threads import to_its_end
from cdd_agent.tickets.spec import TicketSpec
from cdd_agent.tickets.spec_file import SpecChanged, SpecFile, SpecOnDisk
from cdd_agent.tickets.store import Ticket, TicketStore
from cdd_agent.tools.read_only import read_only_tools

_TRIES_TO_WRITE = 3
_QUESTION_MARKS = "?？؟"
_DROP = re.compile(
    r"drop(?:\s+(?P<which>all|[0-9]{1,6}(?:[\s,]+[0-9]{1,6})*))?", re.IGNORECASE
)
_LONGEST_QUOTE = 200
"""Characters of an unanswered line that a notice shows."""
_LONGEST_DROPPED = 200
"""Characters of a dropped change that a notice shows."""


class SocratesAgent(TicketAgent):
    """Works on one ticket's spec with the user's answers."""

    name = "socrates"
    placeholder = "your answer, or summary, approve, exit …"
    OTHERS = (
        (
            "your answer, a question, a request",
            "goes to Socrates, who updates the spec and asks further questions",
        ),
        (
            "`> approved`",
            "sends it to Socrates, even if it looks like a command",
        ),
    )
    NEAR = 0.8
    to_the_model = "send it to Socrates"

    def __init__(
        self,
        tickets: TicketStore,
        file: SpecFile,
        notebook: Notebook,
        dialogue: Dialogue,
        emit: Emit,
        slash: Collection[str],
        code: CodeFinder | None = None,
    ) -> None:
        self.ticket_slug, self.slash = file.ticket.slug, slash
        self.notebook = notebook
        self._redacted = RedactedEvents(notebook.kept.redactor, emit)
        self.emit = self._redacted.emit
        self._tickets, self._file, self._code = tickets, file, code
        self._dialogue = replace(dialogue, emit=self._count)
        self._root: Path = file.ticket.root
        self.done = False
        self._told: set[str] = set()
        """Notes on the project's rules that the user has seen."""
        self._left_out = Omitted()
        self._shown_loss: tuple[bytes | None, TicketSpec] | None = None
        """The content of spec.yaml and the spec in the diff that the user saw last at
        `approve`.
        """

    @classmethod
    def open(
        cls,
        tickets: TicketStore,
        ticket: Ticket,
        redactor: Redactor,
        equipped: Callable[[Cost, Callable[[Usage], None]], Model],
        emit: Emit,
        slash: Collection[str],
        *,
        code: CodeFinder | None = None,
        tool_calls: ToolCalls = "auto",
        start_over: bool = False,
    ) -> Self:
        """Read the ticket's spec and the saved notebook, and take the ticket's lock.
        `equipped` builds the model; it receives the earlier cost of the dialogue and
        a function for the usage of lost calls. `start_over` renames the saved
        notebook.

        Raises `BadInput` for a spec that cannot be read, when another process is at
        work on the ticket, and for a model that cannot be made.
        """
        file = SpecFile(ticket)
        now = file.read()
        notebook = Notebook.open(
            RunRecord.of_ticket(ticket, redactor), now, start_over=start_over
        )
        try:
            model = equipped(notebook.spent, notebook.count)
            dialogue = Dialogue(model, read_only_tools(ticket.root, code), tool_calls)
        except BaseException:
            notebook.close()
            raise
        return cls(tickets, file, notebook, dialogue, emit, slash, code)

    @property
    def lock(self) -> TicketLock:
        return self.notebook.kept.lock

    def view(self) -> list[Event]:
        return [replace(self._shown(), in_full=True)]

    def close(self) -> None:
        self.notebook.close()

    async def begin(self) -> None:
        """Report the spec, then the first questions or again the last ones."""
        notebook, shown = self.notebook, self._shown()
        self.tell(*notebook.kept.news, *spec_notices(self._file.ticket))
        if notebook.rebased is not None:
            self._report_edits(notebook.rebased)
        self.emit(shown)
        if notebook.is_new and notebook.draft.spec.missing():
            await self._ask(BEGIN, is_answer=False)
            return
        if notebook.is_new:
            unchecked = len(notebook.draft.unchecked)
            criteria = "1 criterion" if unchecked == 1 else f"{unchecked} criteria"
            text = (
                f"{self._file.shown} is filled in, but it does not say how to"
                f" check {criteria}. Press Enter to let Socrates ask, say what to"
                " clarify, or type `exit`."
            )
            self.emit(Notice(text, kind=NoticeKind.SPEC_INCOMPLETE))
            return
        changed = ", ".join(shown.not_written)
        what = f" Not written to {self._file.shown} yet: {changed}." if changed else ""
        self.emit(
            Notice(f"Resuming your saved conversation.{what}", kind=NoticeKind.RESUMED)
        )
        if notebook.last_words:
            self.emit(Answer(notebook.last_words))
        questions = [question.text for question in notebook.draft.questions]
        if _unsaid(notebook.last_words, questions):
            self.emit(Answer(self._list_questions()))
        self._report_next_key()

    def _report_next_key(self) -> None:
        """Report what Enter does after the last words of an earlier conversation."""
        notebook = self.notebook
        if notebook.is_unanswered:
            text = _describe_unanswered(notebook.said)
            self.emit(Notice(text, kind=NoticeKind.UNANSWERED))
            return
        if not notebook.draft.is_complete:
            return
        if any(mark in notebook.last_words for mark in _QUESTION_MARKS):
            text = (
                "The spec has no open question. Answer anyway, press Enter for"
                " deeper questions, or type `approve` to write the spec."
            )
            self.emit(Notice(text, kind=NoticeKind.WHAT_NEXT))
            return
        text = (
            "The spec is complete. Type `approve` to write it, `summary` to read"
            " it, or press Enter for deeper questions."
        )
        self.emit(Notice(text, kind=NoticeKind.SPEC_COMPLETE))

    async def carry_out(self, meaning: Meaning) -> None:
        await meaning.act()

    def _count(self, event: Event) -> None:
        """Pass the event on, and count what a reply took."""
        if isinstance(event, ReplyFinished) and event.usage is not None:
            self.notebook.count(event.usage)
        self.emit(event)

    @word(
        *("", "continue"),
        does="let Socrates continue: answer an interrupted message, or ask further"
        " questions",
        hint="Enter: continue",
    )
    async def _continue(self) -> None:
        notebook = self.notebook
        if notebook.is_unanswered:
            said = None
        elif notebook.draft.is_complete:
            said = GO_DEEPER
        else:
            said = BEGIN if notebook.is_new else GO_ON
        await self._ask(said, is_answer=False)

    @word(
        *("summary", "status"),
        typed="`summary`",
        does="show the whole spec and its open questions",
        hint="Enter: show the whole spec",
    )
    async def _summary(self) -> None:
        self._reread()
        self.tell(*self.view())

    @word(
        "approve",
        does="write spec.yaml; `approve anyway` writes it even if something is missing",
        hint=lambda self: self._hint_of_approve(),
        about=lambda self: (self.notebook.draft, self._shown_loss),
    )
    async def _approve(self, *, anyway: bool = False) -> None:
        notebook = self.notebook
        for _ in range(_TRIES_TO_WRITE):
            seen, draft = self._reread(), notebook.draft
            lacking = [*draft.spec.missing(), *draft.open_points]
            if lacking and not anyway:
                self._refuse_incomplete(lacking)
                return
            if not self._is_loss_approved(seen, draft):
                self._show_loss(seen, draft, lacking)
                return
            try:
                was_changed = await to_its_end(
                    partial(self._file.write, seen, draft.spec), name="spec"
                )
            except SpecChanged:
                continue
            notebook.rebase(replace(seen, spec=draft.spec, is_written=True))
            notebook.save()
            self._finish(was_changed=was_changed, is_complete=not lacking)
            return
        raise SpecChanged(
            f"{self._file.shown} keeps changing, so nothing was written",
            hint="Type `approve` to try again.",
        )

    @word(
        "approve anyway",
        hint=lambda self: self._hint_of_approve(),
        about=lambda self: (self.notebook.draft, self._shown_loss),
    )
    async def _approve_anyway(self) -> None:
        await self._approve(anyway=True)

    def _hint_of_approve(self) -> str:
        draft = self.notebook.draft
        spec = draft.spec
        is_shown = self._shown_loss is not None and self._shown_loss[1] == spec
        if lost_words(draft.file, spec) and not is_shown:
            return f"Enter: show what would be removed from {self._file.shown}"
        return f"Enter: write {self._file.shown}"

    def _refuse_incomplete(self, lacking: Sequence[str]) -> None:
        lines = "\n".join(f"- {line}" for line in lacking)
        self.emit(
            Notice(
                f"Not written yet. Still open:\n{lines}",
                Tone.WARNING,
                kind=NoticeKind.SPEC_INCOMPLETE,
            )
        )
        drop = ""
        if self.notebook.draft.questions:
            drop = " Type `drop 1` to drop the first question."
        self.emit(
            Notice(
                (
                    "Answer these points, or type `approve anyway` to write the spec"
                    " without them."
                )
                + drop
            )
        )

    def _is_loss_approved(self, seen: SpecOnDisk, draft: Draft) -> bool:
        """True if spec.yaml loses no words, or if the user has seen which, and nothing
        has changed since.
        """
        if not seen.is_written or not lost_words(seen.spec, draft.spec):
            return True
        return self._shown_loss == (seen.data, draft.spec)

    def _show_loss(
        self, seen: SpecOnDisk, draft: Draft, lacking: Sequence[str]
    ) -> None:
        self._shown_loss = (seen.data, draft.spec)
        text = (
            f"Not written yet. This would remove or reword text of {self._file.shown}:"
        )
        command = "approve anyway" if lacking else "approve"
        self.tell(
            Notice(text, Tone.WARNING, kind=NoticeKind.WORDS_LOST),
            Answer(spec_diff(seen.spec, draft.spec)),
            Notice(f"Type `{command}` again to write this, or say what to keep."),
        )

    def _finish(self, *, was_changed: bool, is_complete: bool) -> None:
        self.done = True
        text = f"{self._file.shown} is already up to date."
        if was_changed:
            text = f"Wrote {self._file.shown}."
        tone = Tone.GOOD if is_complete else Tone.WARNING
        more = self._what_next(self.notebook.draft)
        self.tell(
            self._shown(), Notice(f"{text} {more}", tone, kind=NoticeKind.SPEC_WRITTEN)
        )

    def read_word(self, text: str) -> Meaning | None:
        said = _DROP.fullmatch(text)
        if said is None:
            return super().read_word(text)
        count = len(self.notebook.draft.questions)
        numbers = [int(number) for number in re.findall("[0-9]+", said["which"] or "")]
        if not count:
            return self.nothing_for("There is no open question.")
        for number in numbers:
            if not 1 <= number <= count:
                return self.nothing_for(
                    f"There is no open question {number}.",
                    "Type `drop` to list the open questions.",
                )
        if (said["which"] or "").lower() == "all":
            numbers = list(range(1, count + 1))
        return self.meaning_of(self.WORDS["drop"], *numbers)

    @word(
        "drop",
        typed="`drop 2`, `drop all`",
        does="drop open questions by number; they are not asked again",
        hint=lambda self, *numbers: (
            f"Enter: drop {len(numbers)} of the open questions"
            if numbers
            else "Enter: show the open questions"
        ),
        about=lambda self, *numbers: (self.notebook.draft, numbers),
    )
    async def _drop(self, *numbers: int) -> None:
        notebook = self.notebook
        if not numbers:
            last = len(notebook.draft.questions)
            drop = (
                f"Type `drop {last}` to drop question {last}, or `drop all` to drop"
                " all questions."
            )
            if last == 1:
                drop = "Type `drop 1` to drop it."
            self.tell(Answer(self._list_questions()), Notice(drop))
            return
        before = notebook.draft
        notebook.draft = before.drop(numbers)
        notebook.save()
        self._report_closed(before)
        self.emit(self._shown())

    def _list_questions(self) -> str:
        """Return the open questions with the numbers that `drop` takes."""
        questions = enumerate(self.notebook.draft.questions, 1)
        return "\n".join(f"{number}. {question.text}" for number, question in questions)

    def _report_closed(self, before: Draft) -> None:
        """Report the questions that were open before, and are not any more."""
        still_open = self.notebook.draft.questions
        closed = [each.text for each in before.questions if each not in still_open]
        if closed:
            lines = "".join(f"\n- {text}" for text in closed)
            self.emit(
                Notice(
                    f"No longer open:{lines}",
                    Tone.QUIET,
                )
            )

    @word(
        "close",
        does="return to chat; the dialogue is saved, `/socrates` resumes it",
        hint="Enter: return to chat; the dialogue is saved",
    )
    async def _leave(self) -> None:
        self.done = True
        text = (
            f"Left {self.ticket_slug}. Type `/socrates {self.ticket_slug}` to resume."
        )
        self.emit(Notice(text, kind=NoticeKind.AGENT_LEFT))

    def read_text(self, text: str) -> Meaning:
        return Meaning(
            LineKind.TEXT,
            "words",
            "Enter: send it to Socrates",
            partial(self._ask, text, is_answer=True),
        )

    async def _ask(self, said: str | None, *, is_answer: bool) -> None:
        """One turn of the model."""
        try:
            await self._take_turn(said, is_answer=is_answer)
        except asyncio.CancelledError:
            self._redacted.forget()  # half a secret would not be known as one
            if self.notebook.is_unanswered:
                self.emit(
                    Notice(
                        "Stopped. Your message is saved: press Enter to send it again.",
                        kind=NoticeKind.UNANSWERED,
                    )
                )
            raise
        finally:
            self._redacted.forget()

    async def _take_turn(self, said: str | None, *, is_answer: bool) -> None:
        notebook = self.notebook
        # The turn counts as a change, so a model never approves a loss.
        self._shown_loss = None
        self._reread()
        shown = self._shown()
        about = "\n".join(filter(None, (shown.title, shown.description, said)))
        look = partial(
            Surroundings.of, self._file.ticket, self._tickets, self._code, about
        )
        around = await search_in_thread(
            look, self.emit, "Looking for code about this ticket …"
        )
        is_answer = is_answer or bool(set(notebook.said) - ADDED_LINES)
        if said is not None:
            room = room_for_files(self._dialogue.model)
            sent = await asyncio.to_thread(attach_files, self._root, said, room)
            self.tell(*sent.notices)
            notebook.hear(sent.text, sent.pictures)
        before = notebook.draft
        request = request_of(
            self._root, self.ticket_slug, around, notebook, self._dialogue
        )
        new = [note for note in around.rules.notes if note not in self._told]
        self._told |= set(new)
        self.tell(
            *(Notice(note, Tone.WARNING) for note in new),
            *self._left_out.new_notices(request.left_out),
        )
        self.emit(request.made)
        answer = await self._request_proposal(request, before, is_answer=is_answer)
        unsaid = _unsaid(answer.text, answer.value.questions)
        notebook.conclude(
            before.with_proposal(
                answer.value, notebook.kept.redactor, is_answer=is_answer
            ),
            unsaid,
        )
        if unsaid:
            self.emit(Answer(unsaid))
        self._report_turn(before, answer.problems)
        if not answer.value.approved or not is_answer:
            return
        if notebook.draft.spec == before.spec:
            await self._approve()
            return
        text = (
            "Your last message changed the spec. Type `summary` to read it, or"
            " `approve` to write it."
        )
        self.emit(Notice(text, kind=NoticeKind.SPEC_CHANGED))

    async def _request_proposal(
        self, request: FittedPrompt, before: Draft, *, is_answer: bool
    ) -> Structured[Proposal]:
        """Ask the model for the changes of this turn. If the prompt is refused, leave
        out of it what the next try can do without.
        """
        notebook = self.notebook
        try:
            return await ask_structured(
                request.dialogue,
                request.messages,
                Proposal,
                check=lambda proposal: tuple(
                    before.problems(proposal, is_answer=is_answer)
                ),
                keep=lambda added: notebook.add(added.messages),
                respell=respell_proposal,
            )
        except ContextTooLong as error:
            # Otherwise every later try would be too long, too.
            had_files = notebook.forget_files()
            if notebook.forget_rounds() or had_files:
                left_out = "The results of tools are"
                if had_files:
                    left_out = "The results of tools and the files you mentioned are"
                hint = (
                    f"{left_out} left out now. Press Enter to try again, or say"
                    " where to look."
                )
                raise ContextTooLong(error.message, hint=hint) from error
            raise
        except RequestRejected as error:
            if notebook.forget_pictures():  # else every later try would be refused, too
                error.hint = (
                    f"{error.hint} The picture is left out now. Press Enter to"
                    " continue without it."
                ).lstrip()
            raise

    def _report_turn(self, before: Draft, problems: Sequence[str]) -> None:
        """Show what a turn has changed. `problems` are those of the model's answer."""
        spec = self.notebook.draft.spec
        for problem in problems:
            text = (
                f"The model's answer still has a problem after asking again: {problem}"
            )
            self.emit(Notice(text, Tone.WARNING, kind=NoticeKind.REPLY_UNUSABLE))
        self._report_closed(before)
        if lost_words(before.spec, spec):
            text = "This answer removed or reworded text of the spec:"
            self.tell(
                Notice(text, Tone.WARNING, kind=NoticeKind.WORDS_LOST),
                Answer(spec_diff(before.spec, spec)),
            )
        self.emit(self._shown())

    def _reread(self) -> SpecOnDisk:
        """Take over what was changed in the file. Raises `BadInput` when it cannot be
        read any more.
        """
        seen = self._file.read()
        self._report_edits(self.notebook.rebase(seen))
        return seen

    def _report_edits(self, rebased: RebasedDraft) -> None:
        """Report the user's edits of the file, and the changes of the draft that they
        drop.
        """
        if not rebased.edited and not rebased.dropped:
            return
        fields = ", ".join(rebased.edited)
        text = f"{self._file.shown} has changed ({fields}). Your edits are kept."
        if rebased.dropped:
            text += " These changes of the draft conflict with them and were dropped:"
        for change in rebased.dropped:
            shown = change.text.replace("\n", " ")
            if len(shown) > _LONGEST_DROPPED:
                shown = f"{shown[:_LONGEST_DROPPED]}…"
            text += f"\n- {'removed: ' if change.is_removal else ''}{shown}"
        self.emit(Notice(text, Tone.WARNING, kind=NoticeKind.SPEC_CHANGED))

    def _what_next(self, draft: Draft) -> str:
        """Return what the user can do after the spec was written."""
        if missing := draft.spec.missing():
            names = ", ".join(line.partition(":")[0] for line in missing)
            return f"Before you can plan, fill in: {names}."
        plan = f"Next: `/plan {self.ticket_slug}`."
        if count := len(draft.open_points):
            points = "1 point is" if count == 1 else f"{count} points are"
            return (
                f"{points} still open (`/status {self.ticket_slug}` lists them). {plan}"
            )
        return plan

    def _shown(self) -> SpecShown:
        return self.notebook.draft.shown(self.ticket_slug)


def _describe_unanswered(said: Sequence[str]) -> str:
    """Return a sentence about a turn that a stop has ended."""
    lines = [line for line in said if line not in ADDED_LINES]
    if not lines:
        return "The last reply was interrupted. Press Enter to ask again."
    quote = " ".join(without_files(lines[-1]).split())
    if len(quote) > _LONGEST_QUOTE:
        quote = f"{quote[:_LONGEST_QUOTE]}…"
    return (
        f"Your last message has no answer yet: “{quote}”. Press Enter to send it again."
    )


def _unsaid(words: str, questions: Sequence[str]) -> str:
    """Return the questions that an answer has only in its JSON, as a list. If the
    text has at least as many question marks, it asks them in other words.
    """
    if sum(words.count(mark) for mark in _QUESTION_MARKS) >= len(questions):
        return ""
    said = plain_words(words)
    return "\n".join(
        f"- {question}" for question in questions if plain_words(question) not in said
    )
