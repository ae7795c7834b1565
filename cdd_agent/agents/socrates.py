"""Socrates: asks until a ticket's spec is clear. It writes only spec.yaml, after the
user's approval.
"""

import asyncio
import re
from collections.abc import Collection, Sequence

from msgspec.structs import replace

from cdd_agent.agents.added_lines import ADDED_LINES, BEGIN, GO_DEEPER, GO_ON
from cdd_agent.agents.attachments import without_files
from cdd_agent.agents.document_agent import DocumentAgent
from cdd_agent.agents.meaning import Meaning
from cdd_agent.agents.spec_conversation import (
    QUESTION_MARKS,
    SpecConversation,
    list_unasked,
)
from cdd_agent.agents.spec_draft import Draft, RebasedDraft
from cdd_agent.agents.spec_losses import ONE_LINE_FIELDS, lost_words, spec_diff
from cdd_agent.agents.ticket_agent import word
from cdd_agent.events.notices import Answer, Notice, NoticeKind, Tone
from cdd_agent.events.stream import Event
from cdd_agent.events.ticket_events import SpecShown
from cdd_agent.pattern import Pattern
from cdd_agent.tickets.spec import TicketSpec
from cdd_agent.tickets.spec_file import SpecChanged, SpecOnDisk
from cdd_agent.tickets.store import Ticket

_TRIES_TO_WRITE = 3
_DROP = Pattern(
    r"drop(?:\s+(?P<which>all|[0-9]{1,6}(?:[\s,]+[0-9]{1,6})*))?", re.IGNORECASE
)
_LONGEST_QUOTE = 200
_LONGEST_DROPPED = 200


class SocratesAgent(DocumentAgent):
    name = "socrates"
    ADDRESS = "Socrates"
    placeholder = "your answer, or summary, approve, close …"
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

    def __init__(
        self, conversation: SpecConversation, ticket: Ticket, slash: Collection[str]
    ) -> None:
        super().__init__(conversation, ticket, slash)
        self._spec = conversation
        self._shown_loss: tuple[bytes | None, TicketSpec] | None = None
        """The content of spec.yaml and the spec in the diff that `approve` last
        showed.
        """

    @property
    def _draft(self) -> Draft:
        return self._spec.draft

    def view(self) -> list[Event]:
        return [replace(self._spec_event(), in_full=True)]

    def _spec_event(self) -> SpecShown:
        return self._draft.shown(self.ticket_slug)

    # The beginning

    async def begin(self) -> None:
        """Report the spec, then the first questions, or the last ones again."""
        conversation = self._spec
        event = self._spec_event()
        self.report_ticket()
        if conversation.edits is not None:
            self._report_edits(conversation.edits)
        self.emit(event)
        if not conversation.is_new:
            self._report_resumed(event)
        elif self._draft.spec.missing():
            await self._take_turn(BEGIN, is_answer=False)
        else:
            self._report_unchecked()

    def _report_unchecked(self) -> None:
        unchecked = len(self._draft.unchecked)
        criteria = "1 criterion" if unchecked == 1 else f"{unchecked} criteria"
        text = (
            f"{self._spec.shown_path} is filled in, but it does not say how to check"
            f" {criteria}. Press Enter to let Socrates ask, say what to clarify, or"
            " type `close`."
        )
        self.emit(Notice(text, kind=NoticeKind.SPEC_INCOMPLETE))

    def _report_resumed(self, event: SpecShown) -> None:
        text = "Resuming your saved conversation."
        if event.not_written:
            changed = ", ".join(event.not_written)
            text += f" Not written to {self._spec.shown_path} yet: {changed}."
        self.emit(Notice(text, kind=NoticeKind.RESUMED))
        last_answer = self._spec.last_answer
        if last_answer:
            self.emit(Answer(last_answer))
        questions = [question.text for question in self._draft.questions]
        if list_unasked(last_answer, questions):
            self.emit(Answer(self._list_questions()))
        self._report_next_key()

    def _report_next_key(self) -> None:
        if self._spec.is_unanswered:
            text = _describe_unanswered(self._spec.said)
            self.emit(Notice(text, kind=NoticeKind.UNANSWERED))
            return
        if not self._draft.is_complete:
            return
        if any(mark in self._spec.last_answer for mark in QUESTION_MARKS):
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

    # The words

    async def carry_out(self, meaning: Meaning) -> None:
        await meaning.act()

    @word(
        *("", "continue"),
        does="let Socrates continue: answer an interrupted message, or ask further"
        " questions",
        hint="Enter: continue",
    )
    async def _continue(self) -> None:
        if self._spec.is_unanswered:
            line = None
        elif self._draft.is_complete:
            line = GO_DEEPER
        elif self._spec.is_new:
            line = BEGIN
        else:
            line = GO_ON
        await self._take_turn(line, is_answer=False)

    @word(
        *("summary", "status"),
        typed="`summary`",
        does="show the whole spec and its open questions",
        hint="Enter: show the whole spec",
    )
    async def _summary(self) -> None:
        self._reread()
        self.report(*self.view())

    def _hint_of_approve(self) -> str:
        spec = self._draft.spec
        on_disk = SpecOnDisk(None, self._draft.file, is_written=True)
        is_shown = self._shown_loss is not None and self._shown_loss[1] == spec
        if self._needs_to_see_loss(on_disk) and not is_shown:
            return f"Enter: show what would be removed from {self._spec.shown_path}"
        return f"Enter: write {self._spec.shown_path}"

    @word(
        "approve",
        does="write spec.yaml; `approve anyway` writes it even if something is missing",
        hint=_hint_of_approve,
        about=lambda self: (self._draft, self._shown_loss),
    )
    async def _approve(self, *, anyway: bool = False) -> None:
        for _ in range(_TRIES_TO_WRITE):
            on_disk = self._reread()
            lacking = [*self._draft.spec.missing(), *self._draft.open_points]
            if lacking and not anyway:
                self._refuse_incomplete(lacking)
                return
            spec = self._draft.spec
            needs_to_see = self._needs_to_see_loss(on_disk)
            if needs_to_see and self._shown_loss != (on_disk.data, spec):
                self._show_loss(on_disk, lacking)
                return
            try:
                was_changed = await self._spec.write(on_disk)
            except SpecChanged:
                continue
            is_reworded = on_disk.is_written and bool(lost_words(on_disk.spec, spec))
            if is_reworded and not needs_to_see:
                self._tell_loss(f"Reworded in {self._spec.shown_path}:", on_disk)
            self._finish(was_changed=was_changed, is_complete=not lacking)
            return
        raise SpecChanged(
            f"{self._spec.shown_path} keeps changing, so nothing was written",
            hint="Type `approve` to try again.",
        )

    @word(
        "approve anyway",
        hint=_hint_of_approve,
        about=lambda self: (self._draft, self._shown_loss),
    )
    async def _approve_anyway(self) -> None:
        await self._approve(anyway=True)

    def read_word(self, text: str) -> Meaning | None:
        typed = _DROP.fullmatch(text)
        if typed is None:
            return super().read_word(text)
        which = (typed["which"] or "").lower()
        count = len(self._draft.questions)
        numbers = [int(number) for number in re.findall("[0-9]+", which)]
        if not count:
            return self.nothing_for("There is no open question.")
        for number in numbers:
            if not 1 <= number <= count:
                return self.nothing_for(
                    f"There is no open question {number}.",
                    "Type `drop` to list the open questions.",
                )
        if which == "all":
            numbers = list(range(1, count + 1))
        return self.meaning_of(self.WORDS["drop"], *numbers)

    def _hint_of_drop(self, *numbers: int) -> str:
        if not numbers:
            return "Enter: show the open questions"
        return f"Enter: drop {len(numbers)} of the open questions"

    @word(
        "drop",
        typed="`drop 2`, `drop all`",
        does="drop open questions by number; they are not asked again",
        hint=_hint_of_drop,
        about=lambda self, *numbers: (self._draft, numbers),
    )
    async def _drop(self, *numbers: int) -> None:
        if not numbers:
            last = len(self._draft.questions)
            advice = (
                f"Type `drop {last}` to drop question {last}, or `drop all` to drop"
                " all questions."
            )
            if last == 1:
                advice = "Type `drop 1` to drop it."
            self.report(Answer(self._list_questions()), Notice(advice))
            return
        former_draft = self._draft
        self._spec.drop_questions(numbers)
        self._report_closed(former_draft)
        self.emit(self._spec_event())

    @word(
        "close",
        does="return to chat; the dialogue is saved, `/socrates` resumes it",
        hint="Enter: return to chat; the dialogue is saved",
    )
    async def _leave(self) -> None:
        self.is_done = True
        slug = self.ticket_slug
        text = f"Left {slug}. Type `/socrates {slug}` to resume."
        self.emit(Notice(text, kind=NoticeKind.AGENT_LEFT))

    # A turn of the model

    async def use_text(self, text: str) -> None:
        await self._take_turn(text, is_answer=True)

    async def _take_turn(self, line: str | None, *, is_answer: bool) -> None:
        # A turn counts as a change, so a model can never approve a loss.
        self._shown_loss = None
        try:
            self._reread()
            turn = await self._spec.take_turn(line, is_answer=is_answer)
        except asyncio.CancelledError:
            # Half a secret would not be recognised.
            self._spec.events.forget()
            if self._spec.is_unanswered:
                text = "Stopped. Your message is saved: press Enter to send it again."
                self.emit(Notice(text, kind=NoticeKind.UNANSWERED))
            raise
        finally:
            self._spec.events.forget()
        if turn.unasked:
            self.emit(Answer(turn.unasked))
        self._report_turn(turn.before, turn.problems)
        if not turn.approves:
            return
        if self._draft.spec == turn.before.spec:
            await self._approve()
            return
        text = (
            "Your last message changed the spec. Type `summary` to read it, or"
            " `approve` to write it."
        )
        self.emit(Notice(text, kind=NoticeKind.SPEC_CHANGED))

    def _report_turn(self, former_draft: Draft, problems: Sequence[str]) -> None:
        for problem in problems:
            text = (
                f"The model's answer still has a problem after asking again: {problem}"
            )
            self.emit(Notice(text, Tone.WARNING, kind=NoticeKind.REPLY_UNUSABLE))
        self._report_closed(former_draft)
        spec = self._draft.spec
        if lost_words(former_draft.spec, spec):
            text = "This answer removed or reworded text of the spec:"
            self.report(
                Notice(text, Tone.WARNING, kind=NoticeKind.WORDS_LOST),
                Answer(spec_diff(former_draft.spec, spec)),
            )
        self.emit(self._spec_event())

    # The questions

    def _list_questions(self) -> str:
        """Return the open questions with the numbers for `drop`."""
        questions = enumerate(self._draft.questions, 1)
        return "\n".join(f"{number}. {question.text}" for number, question in questions)

    def _report_closed(self, former_draft: Draft) -> None:
        still_open = self._draft.questions
        closed = [
            each.text for each in former_draft.questions if each not in still_open
        ]
        if closed:
            lines = "".join(f"\n- {text}" for text in closed)
            self.emit(Notice(f"No longer open:{lines}", Tone.QUIET))

    # Writing the spec

    def _reread(self) -> SpecOnDisk:
        """Raise `BadInput`."""
        on_disk, edits = self._spec.reread()
        self._report_edits(edits)
        return on_disk

    def _report_edits(self, edits: RebasedDraft) -> None:
        if not edits.edited and not edits.dropped:
            return
        fields = ", ".join(edits.edited)
        text = f"{self._spec.shown_path} has changed ({fields}). Your edits are kept."
        if edits.dropped:
            text += " These changes of the draft conflict with them and were dropped:"
        for change in edits.dropped:
            shown = change.text.replace("\n", " ")
            if len(shown) > _LONGEST_DROPPED:
                shown = f"{shown[:_LONGEST_DROPPED]}…"
            text += f"\n- {'removed: ' if change.is_removal else ''}{shown}"
        self.emit(Notice(text, Tone.WARNING, kind=NoticeKind.SPEC_CHANGED))

    def _refuse_incomplete(self, lacking: Sequence[str]) -> None:
        lines = "\n".join(f"- {line}" for line in lacking)
        advice = (
            "Answer these points, or type `approve anyway` to write the spec without"
            " them."
        )
        if self._draft.questions:
            advice += " Type `drop 1` to drop the first question."
        text = f"Not written yet. Still open:\n{lines}"
        self.report(
            Notice(text, Tone.WARNING, kind=NoticeKind.SPEC_INCOMPLETE), Notice(advice)
        )

    def _needs_to_see_loss(self, on_disk: SpecOnDisk) -> bool:
        """True if spec.yaml would lose text that the user must see before `approve`
        writes. A reworded title or priority was shown after the reply.
        """
        if not on_disk.is_written:
            return False
        lost = lost_words(on_disk.spec, self._draft.spec)
        return any(words.field not in ONE_LINE_FIELDS for words in lost)

    def _show_loss(self, on_disk: SpecOnDisk, lacking: Sequence[str]) -> None:
        self._shown_loss = (on_disk.data, self._draft.spec)
        path = self._spec.shown_path
        command = "approve anyway" if lacking else "approve"
        self._tell_loss(
            f"Not written yet. This would remove or reword text of {path}:", on_disk
        )
        self.emit(Notice(f"Type `{command}` again to write this, or say what to keep."))

    def _tell_loss(self, text: str, on_disk: SpecOnDisk) -> None:
        self.report(
            Notice(text, Tone.WARNING, kind=NoticeKind.WORDS_LOST),
            Answer(spec_diff(on_disk.spec, self._draft.spec)),
        )

    def _finish(self, *, was_changed: bool, is_complete: bool) -> None:
        self.is_done = True
        path = self._spec.shown_path
        text = f"Wrote {path}." if was_changed else f"{path} is already up to date."
        tone = Tone.GOOD if is_complete else Tone.WARNING
        text = f"{text} {self._describe_next_step()}"
        self.report(
            self._spec_event(), Notice(text, tone, kind=NoticeKind.SPEC_WRITTEN)
        )

    def _describe_next_step(self) -> str:
        missing = self._draft.spec.missing()
        if missing:
            names = ", ".join(line.partition(":")[0] for line in missing)
            return f"Before you can plan, fill in: {names}."
        slug = self.ticket_slug
        plan = f"Next: `/plan {slug}`."
        count = len(self._draft.open_points)
        if not count:
            return plan
        points = "1 point is" if count == 1 else f"{count} points are"
        return f"{points} still open (`/status {slug}` lists them). {plan}"


def _describe_unanswered(messages: Sequence[str]) -> str:
    lines = [line for line in messages if line not in ADDED_LINES]
    if not lines:
        return "The last reply was interrupted. Press Enter to ask again."
    quote = " ".join(without_files(lines[-1]).split())
    if len(quote) > _LONGEST_QUOTE:
        quote = f"{quote[:_LONGEST_QUOTE]}…"
    return (
        f"Your last message has no answer yet: “{quote}”. Press Enter to send it again."
    )
