"""Questions to the user, one at a time: shown above the prompt, answered by keys."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from math import inf
from typing import TYPE_CHECKING

from textual import events

from cdd_agent.errors import CddError
from cdd_agent.events.question_events import Choice, PersonAnswered, Proposal
from cdd_agent.frontend import REST
from cdd_agent.tui.answering import Answering, KeyClock
from cdd_agent.tui.editor import edited_files
from cdd_agent.tui.transcript.blocks import BlockKind
from cdd_agent.tui.widgets.question import Question, ReviewQuestion
from cdd_agent.wording.question_words import answers, question

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cdd_agent.changes.review import Review
    from cdd_agent.frontend import Decision
    from cdd_agent.reviewing import Reviewing
    from cdd_agent.tui.home import Home

_PAGES = ("pageup", "pagedown")
_FRAME, _MOST_FRAMES = 0.02, 50
"""Seconds between checks that a question is laid out, and the most checks."""
_OF_A_PART = {"right": "yes", "left": "no", "ctrl+up": "back"}
"""Keys that apply a part of the changes, leave it out, or go back to the previous one.
"""


class Asking:
    """Holds the open question. It receives each key before any widget does."""

    def __init__(self, home: Home, clock: KeyClock) -> None:
        self._home = home
        self._clock = clock
        self._one_at_a_time = asyncio.Lock()
        self.open: Answering | None = None
        """The question that is open."""
        self._shown: Question | None = None
        """The widget that shows the question; None if the transcript shows it and any
        line answers it.
        """
        self._last_key = -inf

    async def approve(self, proposal: Proposal) -> Choice:
        """The `Frontend` port."""
        text, known = question(proposal), answers(proposal)
        async with self._one_at_a_time:
            widget, answer = Question(text, known), ""
            try:  # the question may be cancelled while it appears
                await self._home.query_one("#questions").mount(widget)
                with self._waiting(is_shown=True):
                    answer = await self._answer(Answering(known), widget)
                return known[answer]
            finally:
                if self._home.is_running:
                    self._home.show(PersonAnswered(text, answer))
                await widget.remove()

    async def review(self, review: Review) -> Decision:
        """The `Frontend` port. Each part of the review replaces the one before it."""
        # late: a review opens with the first change
        from cdd_agent.reviewing import EDIT, Reviewing, answer_in_words  # noqa: PLC0415

        reviewing = Reviewing(review, may_edit=True)
        async with self._one_at_a_time:
            widget = ReviewQuestion(self._home.transcript.diff_layout)
            try:  # the question may be cancelled while it appears
                await self._home.query_one("#questions").mount(widget)
                with self._waiting(is_shown=True):
                    while reviewing.answer is None:
                        answering = Answering(reviewing.words, takes_reason=True)
                        # a key from before the question appeared is no answer
                        self.open = answering
                        self._shown = widget
                        text, diff = await asyncio.to_thread(
                            lambda: (reviewing.text, reviewing.diff)
                        )
                        widget.ask(
                            text,
                            diff,
                            reviewing.choices,
                            reviewing.offered,
                            is_part=reviewing.is_part,
                        )
                        self._home.activity.rest(
                            f"Waiting for your answer · {reviewing.keys}"
                        )
                        word = await self._answer(answering, widget)
                        if word == EDIT:
                            await self._edit(reviewing)
                        else:
                            reviewing.say(word, answering.reason)
                return reviewing.answer
            finally:
                if self._home.is_running:
                    words = (
                        answer_in_words(reviewing.answer)
                        if reviewing.answer is not None
                        else ""
                    )
                    self._home.show_review(
                        question(review, diff=False), review.diff(), words
                    )
                await widget.remove()

    async def _edit(self, reviewing: Reviewing) -> None:
        try:
            contents = await edited_files(self._home.app, reviewing.editable)
            await asyncio.to_thread(reviewing.edited, contents)
        except CddError as error:
            self._home.notify(
                f"{error.message}\n{error.hint or ''}".strip(),
                severity="warning",
                markup=False,
            )

    async def ask(self, prompt: str) -> str:
        """The `Frontend` port: the next line that the user begins and sends is the
        answer.
        """
        async with self._one_at_a_time:
            self._home.transcript.add(BlockKind.MARKDOWN, prompt)
            with self._waiting(is_shown=False):
                return await self._answer(Answering(), None)

    @contextmanager
    def _waiting(self, *, is_shown: bool) -> Iterator[None]:
        """Mark a question as open. It is shown above the prompt, or else in the
        transcript.
        """
        self._home.prompt.area.placeholder = "" if is_shown else "Type your answer …"
        lines_waited, self._home.lines_wait = self._home.lines_wait, False
        self._home.is_asking = True
        try:
            with self._home.activity.interrupted("Waiting for your answer"):
                yield
        finally:
            self._home.lines_wait, self._home.is_asking = lines_waited, False
            if self._home.is_running:
                self._home.prompt.bring_back_aside()
                self._home.say_what_to_type()

    async def _answer(self, answering: Answering, widget: Question | None) -> str:
        """Wait for the answer to a question that `widget`, or else the transcript,
        shows.
        """
        self.open, self._shown = answering, widget
        (widget or self._home).call_after_refresh(self._note_that_is_seen, answering)
        try:
            return await answering.answer
        finally:
            self.open = self._shown = None

    def _note_that_is_seen(
        self, answering: Answering, tries: int = _MOST_FRAMES
    ) -> None:
        shown = self._shown
        if (
            isinstance(shown, ReviewQuestion)
            and not shown.is_in_sight
            and tries
            and self._home.is_running
        ):
            shown.lay_out_again()
            self._home.set_timer(
                _FRAME, lambda: self._note_that_is_seen(answering, tries - 1)
            )
            return
        answering.seen_at = self._clock.now()
        self.show_keys()

    def is_covered(self, event: events.Key) -> None:
        """A key was pressed on a screen that covers the question: the user has not seen
        it.
        """
        self._last_key = self._clock.pressed(event)
        if self.open is not None:
            self.open.seen_at = max(self.open.seen_at, self._last_key)

    def has_taken(self, event: events.Key | events.Paste) -> bool:
        """Note a key before the prompt receives it. True if it was only for the
        question.
        """
        prompt, shown = self._home.prompt, self._shown
        key = event.key if isinstance(event, events.Key) else ""
        if (
            shown is not None
            and shown.scrolls(key)
            and (not prompt.text or key in _PAGES)
        ):
            shown.scroll_by(key)
            return True
        at = self._clock.pressed(event)
        rested_since, self._last_key = self._last_key, at
        if (answering := self.open) is None:
            return False
        self._home.workers.cancel_group(self._home, "answer")
        if (
            shown is not None
            and not prompt.is_completing
            and self._is_for_question(shown, answering, key, at)
        ):
            return True
        rested = at - max(rested_since, answering.seen_at) >= REST
        # a search in the history is not an answer
        typed = prompt.text or " " * prompt.is_searching
        answer = answering.receive_key(
            event, typed=typed, rested=rested, seen=at >= answering.seen_at
        )
        if answer is not None:
            self._home.run_worker(self._let_stand(answering, answer), group="answer")
        self.show_keys(answer)
        return False

    def _is_for_question(
        self, shown: Question, answering: Answering, key: str, at: float
    ) -> bool:
        """Handle a key that types nothing. Escape refuses, except right after the
        question appears; in one part of a review it leads back to all changes.
        """
        is_part = isinstance(shown, ReviewQuestion) and shown.is_part
        if key == "tab":
            self._home.prompt.set_aside()
        elif key == "escape" and at - answering.seen_at < REST:
            shown.hint(
                "This question is new. Press Esc again to "
                + ("go back" if is_part else "refuse")
            )
        elif key == "escape":
            self._give("quit" if is_part else "no")
        elif is_part and key in _OF_A_PART and not self._home.prompt.text:
            if at >= answering.seen_at and answering.knows(_OF_A_PART[key]):
                self._give(_OF_A_PART[key])
        else:
            return False
        return True

    async def _let_stand(self, answering: Answering, answer: str) -> None:
        """Give a letter as the answer if nothing follows it."""
        await self._clock.sleep(REST)
        if self.open is answering and answering.knows(self._home.prompt.text) == answer:
            self._home.prompt.replace("")
            self._give(answer)

    def take_line(self, answering: Answering, line: str) -> None:
        """Handle a line sent while the question is open: it is the answer, or a draft
        that waits.
        """
        answer = answering.sent(line)
        if answer is not None:
            if self._shown is None:
                self._home.prompt.accepted(line)
                self._home.transcript.add(BlockKind.USER, line)
            self._give(answer)
        elif self._shown is None:
            self._home.prompt.bring_back([line])
            text = "You typed this before the question · Enter: send it as the answer"
            self._home.activity.rest(text)
        else:
            self._home.prompt.set_aside(line)

    def _give(self, answer: str) -> None:
        answering, shown = self.open, self._shown
        if answering is None or answering.answer.done():
            return
        if shown is None or shown.may_be(answer):
            # its letter, and then Escape
            if shown is not None and answering.knows(self._home.prompt.text):
                self._home.prompt.replace("")
            answering.answer.set_result(answer)
            if shown is not None:
                shown.answered()
        else:
            self.show_keys()

    def show_keys(self, answer: str | None = None) -> None:
        """Show how to answer the question; or the `answer` that is given if nothing
        follows.
        """
        if self._shown is not None and self.open is not None:
            text = self._home.prompt.text
            self._shown.show_keys(
                typed=bool(text), answer=answer or self.open.meant(text)
            )
