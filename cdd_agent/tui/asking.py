"""Asks the user one question at a time, above the prompt. Keys answer it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from math import inf
from typing import TYPE_CHECKING

from textual import events

from cdd_agent.agents.line_guesses import is_letter
from cdd_agent.changes.review import Review
from cdd_agent.errors import CddError
from cdd_agent.events.question_events import Choice, PersonAnswered, Proposal
from cdd_agent.faces.reviewing import (
    BACK,
    NO,
    QUIT,
    YES,
    AskedProposal,
    OpenQuestion,
    Reviewing,
    Stage,
    describe_decision,
)
from cdd_agent.frontend import REST, Decision
from cdd_agent.tui.answering import Answering, KeyClock, KeyKind, Timing
from cdd_agent.tui.editor import edit_texts
from cdd_agent.tui.transcript.blocks import BlockKind
from cdd_agent.tui.widgets.question import Question, ReviewQuestion
from cdd_agent.wording.question_words import question

if TYPE_CHECKING:
    from cdd_agent.tui.home import Home

_PAGES = ("pageup", "pagedown")
_FRAME, _MOST_FRAMES = 0.02, 50
"""Seconds between checks of a question's layout, and the maximum number of checks."""
_WORDS_OF_PART = {"right": YES, "left": NO, "ctrl+up": BACK}


class Asking:
    """The open question. It receives each key before any widget."""

    def __init__(self, home: Home, clock: KeyClock) -> None:
        self._home = home
        self._clock = clock
        self._one_at_a_time = asyncio.Lock()
        self.open: Answering | None = None
        self._shown: Question | None = None
        """None if the transcript shows the question, and any line answers it."""
        self._last_key = -inf

    async def approve(self, proposal: Proposal) -> Choice:
        asked = AskedProposal(proposal)
        widget = Question(asked.text, asked.choices)

        async def show() -> None:
            """The question is visible already."""

        def report(word: str) -> None:
            self._home.show(PersonAnswered(asked.text, word))

        return (await self._decide(asked, widget, show, report)).choice

    async def review(self, review: Review) -> Decision:
        """Each part of the review replaces the previous part."""
        reviewing = Reviewing(review, may_edit=True)
        widget = ReviewQuestion(self._home.transcript.diff_layout)

        async def show() -> None:
            text, diff = await asyncio.to_thread(
                lambda: (reviewing.text, reviewing.diff)
            )
            is_part = reviewing.stage is Stage.PART
            widget.ask(
                text, diff, reviewing.choices, reviewing.offered, is_part=is_part
            )
            self._home.activity.rest(f"Waiting for your answer · {reviewing.keys}")

        def report(word: str) -> None:
            words = ""
            if reviewing.decision is not None:
                words = describe_decision(reviewing.decision)
            text = question(review, diff=False)
            self._home.show_review(text, review.diff(), words)

        return await self._decide(reviewing, widget, show, report)

    async def _decide(
        self,
        asked: OpenQuestion,
        widget: Question,
        show: Callable[[], Awaitable[None]],
        report: Callable[[str], None],
    ) -> Decision:
        """Ask until the user has decided. `show` shows the current stage in the widget;
        `report` adds the question and the last word to the transcript.
        """
        async with self._one_at_a_time:
            word = ""
            try:  # The question may be cancelled while it appears.
                await self._home.query_one("#questions").mount(widget)
                with self._waiting(is_shown=True):
                    while asked.decision is None:
                        answering = Answering(
                            asked.choices, takes_reason=asked.takes_reason
                        )
                        # An earlier key is not an answer.
                        self.open, self._shown = answering, widget
                        await show()
                        word = await self._answer(answering, widget)
                        asked.choose(word, answering.reason)
                        if isinstance(asked, Reviewing) and (
                            asked.stage is Stage.EDITING
                        ):
                            await self._edit(asked)
                return asked.decision
            finally:
                if self._home.is_running:
                    report(word)
                await widget.remove()

    async def _edit(self, reviewing: Reviewing) -> None:
        try:
            contents = await edit_texts(self._home.app, reviewing.editable)
            await asyncio.to_thread(reviewing.end_edit, contents)
        except CddError as error:
            reviewing.cancel_edit()
            self._home.notify(
                f"{error.message}\n{error.remedy}".strip(),
                severity="warning",
                markup=False,
            )

    async def ask(self, prompt: str) -> str:
        """Return the next line that the user begins and sends."""
        async with self._one_at_a_time:
            self._home.transcript.add(BlockKind.MARKDOWN, prompt)
            with self._waiting(is_shown=False):
                return await self._answer(Answering(), None)

    @contextmanager
    def _waiting(self, *, is_shown: bool) -> Iterator[None]:
        """Mark a question as open, above the prompt (`is_shown`) or in the
        transcript.
        """
        self._home.prompt.area.placeholder = "" if is_shown else "Type your answer …"
        lines_waited, self._home.lines_wait = self._home.lines_wait, False
        self._home.is_asking = True
        try:
            with self._home.activity.interrupted("Waiting for your answer"):
                # Lines are no longer queued during a question.
                self._home.say_what_enter_does()
                yield
        finally:
            self._home.lines_wait, self._home.is_asking = lines_waited, False
            if self._home.is_running:
                self._home.prompt.bring_back_aside()
                self._home.say_what_to_type()

    async def _answer(self, answering: Answering, widget: Question | None) -> str:
        self.open, self._shown = answering, widget
        (widget or self._home).call_after_refresh(self._note_that_is_seen, answering)
        try:
            return await answering.answer
        finally:
            self.open = self._shown = None

    def _note_that_is_seen(
        self, answering: Answering, tries: int = _MOST_FRAMES
    ) -> None:
        question = self._shown
        if (
            isinstance(question, ReviewQuestion)
            and not question.is_in_sight
            and tries
            and self._home.is_running
        ):
            question.lay_out_again()
            self._home.set_timer(
                _FRAME, lambda: self._note_that_is_seen(answering, tries - 1)
            )
            return
        answering.seen_at = self._clock.now()
        self.show_keys()

    def is_covered(self, event: events.Key) -> None:
        """Note a key on a screen that covers the question: the user has not seen the
        question.
        """
        self._last_key = self._clock.pressed(event)
        if self.open is not None:
            self.open.seen_at = max(self.open.seen_at, self._last_key)

    def has_taken(self, event: events.Key | events.Paste) -> bool:
        """Note a key before the prompt receives it. True if the key was only for the
        question.
        """
        question, key = self._shown, _name_of(event)
        if question is not None and self._scrolls(question, key):
            question.scroll_by(key)
            return True
        pressed_at = self._clock.pressed(event)
        last_key, self._last_key = self._last_key, pressed_at
        answering = self.open
        if answering is None:
            return False
        self._home.workers.cancel_group(self._home, "answer")
        prompt = self._home.prompt
        if (
            question is not None
            and not prompt.is_completing
            and self._is_for_question(question, answering, key, pressed_at)
        ):
            return True
        answer = answering.receive_key(
            _kind_of(event),
            _timing_of(pressed_at, last_key, answering.seen_at),
            character=getattr(event, "character", None) or "",
            # A search in the history is not an answer.
            is_empty=not prompt.text and not prompt.is_searching,
        )
        if answer is not None:
            self._home.run_worker(self._let_stand(answering, answer), group="answer")
        self.show_keys(answer)
        return False

    def _scrolls(self, question: Question, key: str) -> bool:
        """True if a key scrolls the question. In a draft, arrows move the cursor."""
        return question.can_scroll(key) and (
            not self._home.prompt.text or key in _PAGES
        )

    def _is_for_question(
        self, question: Question, answering: Answering, key: str, pressed_at: float
    ) -> bool:
        """Handle a key that types no text. True if it was for the question."""
        is_part = isinstance(question, ReviewQuestion) and question.is_part
        if key == "tab":
            self._home.prompt.set_aside()
        elif key == "escape":
            self._escape(
                question, is_new=pressed_at - answering.seen_at < REST, is_part=is_part
            )
        elif is_part and key in _WORDS_OF_PART and not self._home.prompt.text:
            word = _WORDS_OF_PART[key]
            if pressed_at >= answering.seen_at and answering.find_word(word):
                self._give(word)
        else:
            return False
        return True

    def _escape(self, question: Question, *, is_new: bool, is_part: bool) -> None:
        """Refuse; in a part of a review, return to all changes. Right after the
        question appears, the user meant Escape for something else.
        """
        if is_new:
            effect = "go back" if is_part else "refuse"
            question.show_hint(f"This question is new. Press Esc again to {effect}")
        else:
            self._give(QUIT if is_part else NO)

    async def _let_stand(self, answering: Answering, answer: str) -> None:
        await self._clock.sleep(REST)
        if (
            self.open is answering
            and answering.find_word(self._home.prompt.text) == answer
        ):
            self._home.prompt.replace("")
            self._give(answer)

    def take_line(self, answering: Answering, line: str) -> None:
        answer = answering.receive_line(line)
        if answer is not None:
            if self._shown is None:
                self._home.prompt.accepted(line)
                self._home.transcript.add(BlockKind.USER, line)
            self._give(answer)
        elif self._shown is None:
            self._home.prompt.bring_back([line])
            text = "You typed this before the question · Enter: send it as the answer"
            self._home.activity.rest(text)
        elif is_letter(line) and answering.find_word(line) is None:
            self._shown.show_hint(f"{line.strip()} is not one of the answers")
        else:
            self._home.prompt.set_aside(line)

    def _give(self, answer: str) -> None:
        answering, question = self.open, self._shown
        if answering is None or answering.answer.done():
            return
        if question is None or question.can_take(answer):
            # Escape may follow a letter.
            if question is not None and answering.find_word(self._home.prompt.text):
                self._home.prompt.replace("")
            answering.answer.set_result(answer)
            if question is not None:
                question.note_answer()
        else:
            self.show_keys()

    def show_keys(self, answer: str | None = None) -> None:
        """Show how to answer, or the `answer` that follows without another key."""
        if self._shown is not None and self.open is not None:
            text = self._home.prompt.text
            self._shown.show_keys(
                has_draft=bool(text), answer=answer or self.open.find_answer(text)
            )


def _name_of(event: events.Key | events.Paste) -> str:
    return event.key if isinstance(event, events.Key) else ""


def _kind_of(event: events.Key | events.Paste) -> KeyKind:
    if isinstance(event, events.Paste):
        return KeyKind.OTHER
    if event.key == "enter":
        return KeyKind.ENTER
    return KeyKind.TEXT if event.is_printable else KeyKind.OTHER


def _timing_of(pressed_at: float, last_key: float, seen_at: float) -> Timing:
    if pressed_at - max(last_key, seen_at) >= REST:
        return Timing.RESTED
    return Timing.SEEN if pressed_at >= seen_at else Timing.UNSEEN
