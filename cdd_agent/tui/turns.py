"""Runs one line at a time in a turn, and queues lines sent during a turn."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from textual import work
from textual.worker import Worker, WorkerState

from cdd_agent.agents.line_guesses import is_letter
from cdd_agent.commands.registry import carry_out, read_command, read_line
from cdd_agent.errors import CddError
from cdd_agent.events.dialogue_events import ReplyDelta, ThinkingDelta
from cdd_agent.events.notices import Notice, NoticeKind, Tone
from cdd_agent.events.step_events import CommandOutput
from cdd_agent.events.step_summary import StepFinished
from cdd_agent.events.stream import Event, beside_the_turn
from cdd_agent.frontend import REST
from cdd_agent.tickets.status import StepStatus
from cdd_agent.tui.app_base import ShellBase
from cdd_agent.tui.guide import Guide
from cdd_agent.tui.transcript.actions import show_line
from cdd_agent.tui.transcript.blocks import BlockKind
from cdd_agent.tui.widgets.prompt import Prompt

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cdd_agent.agents.meaning import Meaning
    from cdd_agent.session.session import Session
    from cdd_agent.tui.answering import Answering, KeyClock


class Turns(ShellBase):
    def __init__(self, root: Path, clock: KeyClock, *, has_welcome: bool) -> None:
        super().__init__(root, clock, has_welcome=has_welcome)
        self.guide = Guide()
        self.after_turn: Callable[[], None] | None = None
        """Called after each successful turn without a queued line."""
        self._error = ""
        self._succeeded = True
        self._next_turn: Meaning | None = None
        self._next_line: str | None = None
        self._recap = ""
        """The summary for a returning user. It waits until no text is streaming."""

    def on_prompt_submitted(self, event: Prompt.Submitted) -> None:
        """Start a turn with the line, answer a question with it, run it now, or queue
        it.
        """
        question = self.asking.open
        is_free = self.turn is None and question is None
        if not event.line.strip() and not (is_free and self.home.takes_blank):
            self.show_no_effect("enter")
        elif question is not None and self._is_for_question(question, event.line):
            self.asking.take_line(question, event.line)
        elif self.session is None:
            self.home.prompt.hold(event.line, None)
        elif is_free:
            self._begin(self._meaning_to_send(self.session, event))
        else:
            self._handle_during_turn(self.session, event)

    def _is_for_question(self, question: Answering, line: str) -> bool:
        """True if the open question receives the line. A letter is never a command;
        `help` and `quit` are commands unless they are possible answers.
        """
        command = read_command(line, self.session)
        if command is None or is_letter(line) or question.find_word(line) is not None:
            return True
        return not command.leaves and command.about != "/help"

    def _handle_during_turn(self, session: Session, event: Prompt.Submitted) -> None:
        """Run a read-only command now. Queue any other line, for the end of the turn or
        for the running step.
        """
        prompt = self.home.prompt
        command = read_command(event.line, session)
        if command is not None and command.runs_beside:
            prompt.accepted(event.line)
            self.look(command)
            return
        meaning = self._meaning_to_send(session, event)
        if meaning.is_refused_at_work:
            prompt.bring_back([meaning.line])
            text = "Nothing was undone, because something runs. Wait, or press Esc."
            self.show(Notice(text, kind=NoticeKind.NOT_DONE))
            return
        prompt.hold(meaning.line, meaning)
        session.steer(meaning, partial(prompt.take_held, meaning.line))

    def _meaning_to_send(self, session: Session, event: Prompt.Submitted) -> Meaning:
        """Return the meaning that the user sent. A very long line is saved in a
        file.
        """
        line = session.save_long_line(event.line)
        if event.meaning is not None and line == event.line:
            return event.meaning
        return read_line(session, line)

    def _begin(self, meaning: Meaning) -> None:
        self.home.prompt.accepted(meaning.line)
        self.home.transcript.follow()
        show_line(self.home.transcript, meaning.line)
        self.take_turn(meaning)

    @work(group="look")
    async def look(self, meaning: Meaning) -> None:
        with beside_the_turn():
            self.home.end_welcome()
            self.home.transcript.follow()
            self.home.transcript.add(BlockKind.USER, str(meaning.about))
            assert self.session is not None
            try:
                await carry_out(self.session, meaning)
            except CddError as error:
                self._show_error(error)

    def take_turn(self, meaning: Meaning) -> None:
        # The line is not the worker's argument: timers that start during a turn keep
        # the worker, and its arguments would keep the agent.
        self._next_turn = meaning
        self._run_turn()

    @work(exclusive=True, group="turn")
    async def _run_turn(self) -> None:
        meaning, self._next_turn = self._next_turn, None
        assert self.session is not None
        assert meaning is not None
        self._succeeded, self._error = True, ""
        self._next_line = None
        self.attention.begin()
        self.home.begin()
        try:
            await carry_out(self.session, meaning)
            self._next_line = await self.guide.find_next(self.session)
        except CddError as error:
            self._succeeded, self._error = False, error.message
            self._show_error(error)
        except asyncio.CancelledError as error:
            agent = self.home.agent
            # The Executor has reported how to resume.
            if self.is_running and (agent is None or agent.name != "executor"):
                self.show(Notice("Stopped.", Tone.WARNING))
            # The worker keeps the error, whose frames would keep all objects of the
            # turn.
            error.__traceback__ = None
            raise
        finally:
            if self.is_running:
                self.home.settle()

    def _show_error(self, error: CddError) -> None:
        self.show(Notice(error.message, Tone.ERROR))
        if error.remedy:
            self.show(Notice(error.remedy))

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """After a successful turn, send the next queued line. Otherwise return the
        queued lines to the prompt.
        """
        worker = event.worker
        if worker.group != "turn" or not worker.is_finished or not self.is_running:
            return
        is_typing = self.is_typing
        if event.state is not WorkerState.SUCCESS or not self._succeeded:
            self.home.prompt.give_back(is_typing=is_typing)
        elif not self.send_queued(is_typing=is_typing):
            self._continue_at_rest()
        if self.turn is None:
            is_stopped = event.state is WorkerState.CANCELLED
            self.attention.end(self._error, stopped=is_stopped)
            self.show_recap()

    def send_queued(self, *, is_typing: bool = False) -> bool:
        """Send the oldest queued line. If its meaning has changed, return all queued
        lines to the prompt. False if no line is queued.
        """
        prompt = self.home.prompt
        queued = prompt.take_waiting()
        if queued is None:
            return False
        line, meaning = queued
        # A line from before the session was open has no meaning yet.
        if meaning is None or meaning == self.home.read_line(line):
            self.on_prompt_submitted(Prompt.Submitted(line, meaning))
        else:
            prompt.bring_back([line], is_typing=is_typing)
            prompt.give_back(is_typing=is_typing)
        return True

    def _continue_at_rest(self) -> None:
        """When the user stops typing, suggest the next line."""
        if self.turn is not None or not (self.after_turn or self._next_line):
            return
        if self.is_busy:
            self.set_timer(REST, self._continue_at_rest)
            return
        if self.after_turn is not None:
            self.after_turn()
        line, self._next_line = self._next_line, None
        prompt = self.home.prompt
        is_free = not prompt.text and not prompt.is_searching
        if line and self.screen is self.home and is_free:
            prompt.suggest(line)
            self.home.say_what_enter_does()

    def show(self, event: Event) -> None:
        self.attention.receive(event)
        is_streaming = isinstance(event, ReplyDelta | ThinkingDelta | CommandOutput)
        if self._recap and not is_streaming:
            self.show_recap()
        if isinstance(event, StepFinished):
            is_done = event.status in (StepStatus.COMPLETED, StepStatus.SKIPPED)
            self._succeeded = self._succeeded and is_done
        self.home.show(event)

    def on_app_blur(self) -> None:
        self.attention.look_away()

    def on_app_focus(self) -> None:
        self._recap = self.attention.look_back() or self._recap
        if self.turn is None or self.asking.open is not None:
            self.show_recap()

    def show_recap(self) -> None:
        text, self._recap = self._recap, ""
        with beside_the_turn():
            self.home.transcript.add(BlockKind.NOTE, text)
