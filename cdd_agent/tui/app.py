"""The shell: shows events, hands lines to the session. It decides nothing."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import events, work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.worker import Worker, WorkerCancelled, WorkerFailed, WorkerState

from cdd_agent.commands.registry import complete, handle
from cdd_agent.errors import CddError, ExitCode
from cdd_agent.events import (
    AgentChanged,
    Answer,
    BaselineStarted,
    ChangesApplied,
    CheckpointStarted,
    Choice,
    Cleared,
    CommandOutput,
    Emit,
    Event,
    ExitRequested,
    ModelChosen,
    ModelReplaced,
    Notice,
    OwnCommandStarted,
    PersonAnswered,
    PlanOpened,
    Proposal,
    ReplyDelayed,
    ReplyDelta,
    ReplyFinished,
    ReplyRestarted,
    ReplyStarted,
    SpecShown,
    StepDiff,
    StepFinished,
    StepsRedone,
    StepStarted,
    StepsUndone,
    TestsFinished,
    TestsStarted,
    ThinkingDelta,
    ThinkingFinished,
    TicketsListed,
    Tone,
    ToolFinished,
    ToolStarted,
)
from cdd_agent.git.status import current_branch
from cdd_agent.tickets.status import StepStatus
from cdd_agent.tui.answering import REST, Answering, KeyClock
from cdd_agent.tui.editing import edit_at_line
from cdd_agent.tui.faults import FaultLog, Guarded, GuardedWidget
from cdd_agent.tui.history import PromptHistory
from cdd_agent.tui.transcript.actions import Actions
from cdd_agent.tui.transcript.blocks import BlockKind
from cdd_agent.tui.transcript.find_bar import FindBar, FindInput
from cdd_agent.tui.transcript.widget import Transcript
from cdd_agent.tui.widgets.bars import ActivityBar, TitleBar
from cdd_agent.tui.widgets.prompt import Prompt
from cdd_agent.tui.widgets.question import Question
from cdd_agent.tui.widgets.spec import SpecPanel
from cdd_agent.tui.widgets.steps import StepList
from cdd_agent.wording import answers, described, question, spec_in_full, thought, tool_use

if TYPE_CHECKING:
    from cdd_agent.agents.base import Agent, Meaning
    from cdd_agent.frontend import Frontend
    from cdd_agent.session import Session

    Opened = tuple[Session, tuple[Notice, ...]]
    Meant = tuple[Agent | None, Meaning | None]

_QUIET = 0.1
"""Seconds after the start in which imports do not compete with the first screen and the first keys."""
_TWICE = 3.0
"""Seconds in which to ask once more to leave."""
_PAGES = ("pageup", "pagedown")
_MOVING = ("tab", "shift+tab")
_LEAVING = ("ctrl+c", "ctrl+d", "ctrl+q")
_KEYS = "Enter sends · Ctrl+D leaves · Tab completes · ↑ earlier lines"
_IN_CHAT = "Ask, @file, !command, /help ..."
_IN_A_RUN = "Enter runs the next step; status, skip, exit ..."
_IN_A_PLANNING = "approve, keep, show, or what to change ..."
_WITH_SOCRATES = "your answer; summary, approve, exit ..."
_AFTER_A_FAILURE = "retry, skip, exit, or what to do differently ..."
_BLOCKS = {
    Tone.PLAIN: BlockKind.NOTE,
    Tone.QUIET: BlockKind.OUTPUT,
    Tone.HEADING: BlockKind.HEADING,
    Tone.GOOD: BlockKind.GOOD,
    Tone.WARNING: BlockKind.WARNING,
    Tone.ERROR: BlockKind.ERROR,
}


class Home(GuardedWidget, Screen[None]):
    """The one screen. Whatever lies over it (the palette of commands) has the keyboard to itself."""


class Shell(Guarded, App[CddError]):
    """Transcript, steps, prompt. One turn runs at a time; Escape or Ctrl+C stops it.

    The session is opened behind the first screen: settings, adapters and engine take longer to import than to type
    the first word. An error in opening it is what the app returns.
    """

    TITLE = "cdd"
    CSS_PATH = "shell.tcss"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-medium"), (110, "-wide")]  # noqa: RUF012  # declared so by Textual
    VERTICAL_BREAKPOINTS = [(0, "-low"), (16, "-high")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "stop", "Stop", show=False, priority=True),
        Binding("ctrl+d", "leave", "Leave", show=False, priority=True),
        Binding("ctrl+t", "toggle_thoughts", "Open or fold thoughts", show=False, priority=True),
        Binding("ctrl+f", "find", "Find in the transcript", show=False, priority=True),
        Binding("ctrl+up", "choose_block(-1)", "Choose the block above", show=False, priority=True),
        Binding("ctrl+down", "choose_block(1)", "Choose the block below", show=False, priority=True),
        Binding("f4", "turn_diffs", "Diffs side by side, or not", show=False, priority=True),
        Binding("pageup,shift+pageup", "scroll_transcript('page_up')", show=False, priority=True),
        Binding("pagedown,shift+pagedown", "scroll_transcript('page_down')", show=False, priority=True),
    ]

    def __init__(
        self,
        root: Path,
        open_session: Callable[[Frontend, Emit], Opened],
        first: str = "",
        clock: KeyClock = KeyClock(),  # noqa: B008  # it is frozen
    ) -> None:
        """`first` is a line to begin with, as if it had been typed. Keys are judged by `clock`."""
        super().__init__()
        self.session: Session | None = None
        self._root = root
        self._open_session = open_session
        self._first = first
        self._opened = asyncio.Event()
        self._asking = asyncio.Lock()
        """There is one question at a time."""
        self._answering: Answering | None = None
        """What the open question makes of the keys."""
        self._question: Question | None = None
        """Where it is shown, unless any line is its answer: then it is in the transcript."""
        self._clock = clock
        self._last_key = self._last_letter = self._asked_to_leave = -inf
        self._went_well = True
        """The turn that runs, or the last one: a line that was sent meanwhile counts on it."""
        self._typed: tuple[str, Meant] = ("", (None, None))
        """What stood in the prompt last, and what it meant when it was typed."""
        self._meant: dict[str, Meant] = {}
        """The same of the lines that wait."""
        self._faults = FaultLog(root)

    def get_default_screen(self) -> Screen[None]:
        return Home()

    def compose(self) -> ComposeResult:
        yield TitleBar(self._root.name or str(self._root))
        with Horizontal(id="main"):
            yield Transcript(self._root)
            yield StepList()
            yield SpecPanel()
        yield Vertical(id="questions")
        yield Prompt(self._complete, PromptHistory(self._root))
        yield ActivityBar(_KEYS)

    def on_mount(self) -> None:
        self._actions = Actions(self._transcript)
        self.query_one(Prompt).area.focus()
        self._say_what_to_type()
        self._bar.branch = current_branch(self._root) or ""
        with suppress(AttributeError, NotImplementedError):  # Windows has neither such handlers nor a SIGHUP
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(signal.SIGTERM, partial(self._leave, ExitCode.INTERRUPTED))
            loop.add_signal_handler(signal.SIGHUP, self.action_vanish)
        self.set_timer(_QUIET, self.open)

    @work(group="open")
    async def open(self) -> None:
        """Open the session, and begin with the first line."""
        try:
            session, notices = await asyncio.to_thread(self._open_session, self, self.hear)
        except CddError as error:
            self.exit(error, return_code=error.exit_code)
            return
        except Exception as error:  # noqa: BLE001  # without a session there is nothing that could go on
            self.exit(CddError(self._faults.write(error)), return_code=ExitCode.FAILED)
            return
        self.session = session
        self._bar.model = session.project.config.model or "no model"
        for notice in notices:
            self.show(notice)
        self._opened.set()
        self.look_around()
        if self._first:
            self.on_prompt_submitted(Prompt.Submitted(self._first))

    @work(group="look")
    async def look_around(self) -> None:
        """Say what else there is to know at first, when it is known; it does not keep anybody from typing."""
        assert self.session is not None
        await self.session.first_look()

    def _handle_exception(self, error: Exception) -> None:
        """Textual's way to end the program. Once there is a session, what failed is told, and the rest goes on."""
        if self.session is None:
            super()._handle_exception(error)
            return
        cause = error.error if isinstance(error, WorkerFailed) else error
        if not self._faults.is_new(cause) and cause is error:
            return
        told = self._faults.write(cause)
        try:
            self._transcript.add(BlockKind.ERROR, told)
        except Exception as second:  # noqa: BLE001  # it may be the transcript itself that fails
            self._faults.write(second)
            self.notify(told, severity="error", markup=False, timeout=30)

    async def on_unmount(self) -> None:
        if self.session is not None:
            self.session.leave()

    async def approve(self, proposal: Proposal) -> Choice:
        """The `Frontend` port."""
        text, known = question(proposal), answers(proposal)
        async with self._asking:
            widget, answer = Question(text, known), ""
            await self.query_one("#questions").mount(widget)
            try:
                answer = await self._answer(Answering(known), widget)
                return known[answer]
            finally:
                if self.is_running:
                    self.show(PersonAnswered(text, answer))
                await widget.remove()

    async def ask(self, prompt: str) -> str:
        """The `Frontend` port: the next line that is begun and sent is the answer."""
        async with self._asking:
            self._transcript.add(BlockKind.MARKDOWN, prompt)
            return await self._answer(Answering(), None)

    async def _answer(self, answering: Answering, widget: Question | None) -> str:
        self._answering, self._question = answering, widget
        prompt = self.query_one(Prompt)
        prompt.area.placeholder = "" if widget else "your answer ..."
        (widget or self).call_after_refresh(self._note_that_is_seen, answering)
        try:
            with self.query_one(ActivityBar).interrupted("Waiting for your answer"):
                return await answering.answer
        finally:
            self._answering = self._question = None
            if self.is_running:
                prompt.bring_back_aside()
                self._say_what_to_type()

    def _note_that_is_seen(self, answering: Answering) -> None:
        answering.seen_at = self._clock.now()
        self._show_keys()

    async def on_event(self, event: events.Event) -> None:
        is_alone = len(self.screen_stack) == 1 and not event.is_forwarded
        if is_alone and isinstance(event, events.Key | events.Paste) and self._hears(event):
            return
        await super().on_event(event)

    def _hears(self, event: events.Key | events.Paste) -> bool:
        """What is typed, before any widget has it: whether it is the open question's. All but what scrolls the
        transcript is for the prompt, wherever the focus is."""
        if isinstance(self.focused, FindInput):
            return False
        prompt, shown = self.query_one(Prompt), self._question
        key = event.key if isinstance(event, events.Key) else ""
        if shown is not None and shown.scrolls(key) and (not prompt.text or key in _PAGES):
            shown.scroll_by(key)
            return True
        at = self._clock.pressed(event)
        rested_since, self._last_key = self._last_key, at
        if not key or (isinstance(event, events.Key) and event.is_printable):
            self._last_letter = at
        if key not in _LEAVING:
            self._asked_to_leave = -inf
        if (answering := self._answering) is not None:
            self.workers.cancel_group(self, "answer")
            if shown is not None and not prompt.is_completing and key in ("escape", "tab"):
                if key == "escape":
                    self._give("no")
                else:
                    prompt.set_aside()
                return True
            rested = at - max(rested_since, answering.seen_at) >= REST
            answer = answering.hear(event, typed=prompt.text, rested=rested, seen=at >= answering.seen_at)
            if answer is not None:
                self._let_stand(answering, answer)
            self._show_keys(answer)
        if key == "end" and not prompt.text and not self._transcript.is_following:
            self._transcript.follow()
            return True
        if not (isinstance(self.focused, Transcript) and self.focused.keeps(key)) and key not in _MOVING:
            self.screen.set_focus(prompt.area)
        return False

    @work(group="answer")
    async def _let_stand(self, answering: Answering, answer: str) -> None:
        """A letter is the answer when nothing follows it."""
        await self._clock.sleep(REST)
        prompt = self.query_one(Prompt)
        if self._answering is answering and answering.knows(prompt.text) == answer:
            prompt.replace("")
            self._give(answer)

    def _give(self, answer: str) -> None:
        """The answer to the open question."""
        answering, shown = self._answering, self._question
        if answering is None or answering.answer.done():
            return
        if shown is None or shown.may_be(answer):
            if shown is not None and answering.knows(self.query_one(Prompt).text):  # its letter, and then Escape
                self.query_one(Prompt).replace("")
            answering.answer.set_result(answer)
        else:
            self._show_keys()

    def _show_keys(self, answer: str | None = None) -> None:
        if self._question is not None and self._answering is not None:
            text = self.query_one(Prompt).text
            self._question.show_keys(typed=bool(text), answer=answer or self._answering.meant(text))

    def on_prompt_submitted(self, event: Prompt.Submitted) -> None:
        prompt = self.query_one(Prompt)
        if (answering := self._answering) is not None:
            self._take_answer(answering, event.line)
            return
        if self._turn is not None:
            if event.line.strip():
                prompt.hold(event.line)
                self._meant[event.line] = self._meant_by(event.line)
            return
        if self._meant_by(event.line) != self._meaning(event.line):
            prompt.bring_back([event.line])
            self.notify("What that line does has changed since it was typed: it is said below. Enter sends it.")
            return
        prompt.accepted(event.line)
        self._transcript.follow()
        if event.line.strip():
            self._transcript.add(BlockKind.USER, event.line)
        self.take_turn(event.line)

    def _take_answer(self, answering: Answering, line: str) -> None:
        """A line was sent while a question is open: its answer, or a draft that has to wait for that."""
        prompt, answer = self.query_one(Prompt), answering.sent(line)
        if answer is not None:
            if self._question is None:
                prompt.accepted(line)
                self._transcript.add(BlockKind.USER, line)
            self._give(answer)
        elif self._question is None:
            prompt.bring_back([line])
            self.query_one(ActivityBar).rest("Begun before the question came: Enter once more answers it with that")
        else:
            prompt.set_aside(line)

    @work(exclusive=True, group="turn")
    async def take_turn(self, line: str) -> None:
        """One line, carried out to its end, shown as it happens."""
        await self._opened.wait()
        assert self.session is not None
        self._went_well = True
        try:
            await handle(self.session, line)
        except CddError as error:
            self._went_well = False
            self.show(Notice(error.message, Tone.ERROR))
            if error.hint:
                self.show(Notice(error.hint))
        except asyncio.CancelledError:
            if self.is_running:
                in_a_run = self._agent is not None and self._agent.name == "executor"
                self.show(Notice("Stopped; `continue` goes on." if in_a_run else "Stopped.", Tone.WARNING))
            raise
        finally:
            if self.is_running:
                self._settle()

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """After a turn the line that waits is sent, if it still means what it meant to its writer, who sees first
        otherwise, and when the turn failed or was stopped."""
        if event.worker.group != "turn" or not event.worker.is_finished or not self.is_running:
            return
        prompt, is_typing = self.query_one(Prompt), self._clock.now() - self._last_letter < REST
        if event.state is not WorkerState.SUCCESS or not self._went_well:
            prompt.give_back(is_typing=is_typing)
        elif (line := prompt.take_waiting()) is not None:
            if self._meant.get(line) == self._meaning(line):
                self.on_prompt_submitted(Prompt.Submitted(line))
            else:
                prompt.bring_back([line], is_typing=is_typing)
                prompt.give_back(is_typing=is_typing)

    def hear(self, event: Event) -> None:
        """The session's events. A fault in showing one is not the fault of whoever tells it."""
        if self.is_running:
            try:
                self.show(event)
            except Exception as error:  # noqa: BLE001
                self._handle_exception(error)

    def show(self, event: Event) -> None:
        """One event, on every part of the screen that it concerns."""
        transcript, activity = self._transcript, self.query_one(ActivityBar)
        match event:
            case ReplyStarted(saved=True):
                activity.busy("Using the saved reply")
            case ReplyStarted(model=model):
                self._bar.model = model  # that of the agent that is active, or a fallback
                activity.busy(f"Waiting for {model}")
            case ThinkingDelta(text=text, seconds=seconds, tokens=tokens):
                activity.busy("Thinking …")
                transcript.think(text, thought(seconds, tokens, estimated=True))
            case ThinkingFinished(seconds=seconds, tokens=tokens, estimated=estimated):
                if seconds is None or not transcript.end_thoughts(thought(seconds, tokens, estimated=estimated)):
                    self._describe(event)
            case ReplyDelta(text=text):
                activity.busy("Receiving the reply")
                transcript.write(text)
            case ModelReplaced(model=model):
                self._bar.model = model
                self._describe(event)
            case ReplyDelayed(seconds=seconds, reason=reason):
                activity.busy(f"Asking again in {seconds:.0f} s: {reason}")
            case ReplyRestarted(was_thought=True):
                transcript.settle()
                transcript.add(BlockKind.NOTE, "The model thought up to here; its reply follows.")
            case ReplyRestarted():
                transcript.settle()
                transcript.add(BlockKind.WARNING, "The reply broke off; it begins anew.")
            case ReplyFinished():
                transcript.settle()
                self._say_what_was_spent()
            case ToolStarted():
                transcript.settle()
                activity.busy(tool_use(event))
            case ToolFinished() | ChangesApplied() | CommandOutput() | TestsFinished():
                self._actions.show(event)
            case CheckpointStarted():
                activity.busy("Taking a checkpoint")
            case StepDiff(diff=diff) if diff:
                self._actions.show(event)
            case BaselineStarted(command=command):
                activity.busy(f"Running {command} before anything is changed")
            case TestsStarted(command=command):
                self._actions.show(event)
                activity.busy(f"Running {command}")
            case OwnCommandStarted(command=command):
                transcript.begin(BlockKind.OUTPUT)
                activity.busy(f"Running {command}")
            case Answer(text=text):
                transcript.add(BlockKind.MARKDOWN, text)
            case AgentChanged(agent=agent, ticket_slug=slug):
                self._bar.agent = f"{agent} · {slug}" if agent else "chat"
                if agent or not self.query_one(StepList).is_over:  # a plan that was just finished stays in sight
                    self.query_one(StepList).show(())
                self.query_one(SpecPanel).show(None)
                self._say_what_to_type()
            case SpecShown():
                self._show_spec(event)
            case PlanOpened() if self._is_new_here(event):
                self.query_one(StepList).show(event.steps)
                self._say_what_to_type()
                transcript.add(BlockKind.HEADING, f"{event.ticket_slug}: {event.title}")
            case ModelChosen(model=model, role=None):
                self._bar.model = model
                self._describe(event)
            case Cleared():
                transcript.clear()
                if self._agent is None:
                    self.query_one(StepList).show(())
            case ExitRequested():
                self.query_one(Prompt).keep_drafts()
                self.exit()
            case _:
                self._describe(event)

    def _show_spec(self, event: SpecShown) -> None:
        """Beside the transcript where there is room; otherwise a line says how far it is."""
        if self._agent is not None and self._agent.ticket_slug == event.ticket_slug:
            self.query_one(SpecPanel).show(event)
        if event.in_full:
            self._transcript.add(BlockKind.MARKDOWN, spec_in_full(event))
        elif self.screen.has_class("-narrow"):
            self._describe(event)

    def _is_new_here(self, event: PlanOpened) -> bool:
        """The active agent's plan, not yet in the list of steps; otherwise the transcript shows it in full."""
        agent = self._agent
        return agent is not None and agent.ticket_slug == event.ticket_slug and not self.query_one(StepList).display

    def _describe(self, event: Event) -> None:
        self._transcript.settle()
        steps = self.query_one(StepList)
        match event:
            case StepStarted(step=number):
                steps.mark(number, StepStatus.IN_PROGRESS)
                self.query_one(ActivityBar).busy(f"Step {number}: {event.title}")
            case StepFinished(step=number, status=status, verification=verification):
                steps.mark(number, status, verification)
                self._went_well = self._went_well and status in (StepStatus.COMPLETED, StepStatus.SKIPPED)
                self._say_what_to_type()
            case StepsUndone() | StepsRedone() if self._agent is not None:
                self._show_steps()
                self._say_what_to_type()
            case StepsUndone():
                steps.show(())  # the plan that was just finished is not finished any more
            case _:
                pass
        for text, tone in _lines(event):
            self._transcript.add(_BLOCKS[tone], text)

    def _say_what_to_type(self) -> None:
        text = _IN_CHAT
        if self._agent is not None and self._agent.name == "planner":
            text = _IN_A_PLANNING
        elif self._agent is not None:
            text = _AFTER_A_FAILURE if self.query_one(StepList).has_failed else _IN_A_RUN
            text = _WITH_SOCRATES if self._agent.name == "socrates" else text
        self.query_one(Prompt).area.placeholder = text
        self._say_what_enter_does()

    def on_text_area_changed(self) -> None:
        if line := self.query_one(Prompt).text:
            self._typed = line, self._meaning(line)
        self._show_keys()
        self._say_what_enter_does()

    def _say_what_enter_does(self) -> None:
        line = self.query_one(Prompt).text
        _, meaning = self._meaning(line) if line.strip() else (None, None)
        self.query_one(ActivityBar).tell_meaning(meaning.hint if meaning is not None else "")

    def _meant_by(self, line: str) -> Meant:
        """What the line meant when it was typed, if it was."""
        typed, meant = self._typed
        return meant if line and typed == line else self._meaning(line)

    def _meaning(self, line: str) -> Meant:
        """Who gets a line, and what it does with it; nobody, where it is a command of the shell or the person's own."""
        if self.session is None or line.lstrip()[:1] in ("/", "!"):
            return None, None
        return self.session.agent, self.session.meaning(line)

    def _say_what_was_spent(self) -> None:
        if self.session is not None and self.session.tally.spent.tokens:
            self._bar.spent = self.session.tally.spent.in_words()

    def _settle(self) -> None:
        """After a turn, however it ended: nothing is live, and the steps show what is saved."""
        self._transcript.settle()
        self.query_one(ActivityBar).rest()
        self._say_what_was_spent()
        self._bar.branch = current_branch(self._root) or ""
        self._show_steps()
        self._say_what_to_type()

    def _show_steps(self) -> None:
        """As the active agent has them, if it is one that carries out a plan."""
        for event in self._agent.view() if self._agent is not None else ():
            if isinstance(event, PlanOpened):
                self.query_one(StepList).show(event.steps)

    def action_stop(self) -> None:
        """Ctrl+C: copy what is selected, else stop what runs, else empty the prompt; once more leaves."""
        prompt, turn, now = self.query_one(Prompt), self._turn, self._clock.now()
        selected = self.screen.get_selected_text() or prompt.area.selected_text or self._transcript.chosen_text
        if selected:
            self.copy_to_clipboard(selected)
            self.screen.clear_selection()
            prompt.area.move_cursor(prompt.area.cursor_location)
        elif turn is not None and not turn.is_cancelled:
            self._stop_turn()
        elif now - self._asked_to_leave < _TWICE:
            self.action_leave()
        else:
            self._asked_to_leave = now
            was_typed = "↑ brings it back. " if prompt.text.strip() else ""
            prompt.put_away()
            self.notify(f"{was_typed}Ctrl+C again leaves.", timeout=_TWICE)

    def on_prompt_stopped(self) -> None:
        self._stop_turn()

    def _stop_turn(self) -> None:
        """Once: a second cancellation would hit the first one's clean-up."""
        if self._turn is not None and not self._turn.is_cancelled:
            self._turn.cancel()

    def action_leave(self) -> None:
        """Ctrl+D: leave. What is typed is kept; where that cannot be, the person is to know it first."""
        now = self._clock.now()
        if not self.query_one(Prompt).loses_drafts or now - self._asked_to_leave < _TWICE:
            self._leave()
        else:
            self._asked_to_leave = now
            text = "What you have typed is lost when you leave: only a project keeps it. Once more leaves."
            self.notify(text, timeout=_TWICE)

    @work(group="leave")
    async def _leave(self, code: ExitCode = ExitCode.DONE) -> None:
        """Leave when the turn has cleaned up after itself."""
        try:
            await self._let_go()
        finally:
            self.exit(return_code=code)

    async def _let_go(self) -> None:
        """Keep what was typed, stop the turn, wait until it has cleaned up after itself, and give the ticket free."""
        self.query_one(Prompt).keep_drafts()
        if (turn := self._turn) is not None:
            self._stop_turn()
            with suppress(WorkerFailed, WorkerCancelled):
                await turn.wait()
        if self.session is not None:
            self.session.leave()

    @work(group="leave")
    async def action_vanish(self) -> None:
        """The terminal is gone. Textual would wait for ever to put it back in order, so nothing is left to it."""
        try:
            await self._let_go()
        finally:
            os._exit(ExitCode.INTERRUPTED)

    async def action_quit(self) -> None:
        """Textual's own way out: Ctrl+Q and the command palette."""
        self.action_leave()

    def action_scroll_transcript(self, how: str) -> None:
        getattr(self._transcript, f"scroll_{how}")(animate=False)

    def action_find(self) -> None:
        if not self.query(FindBar):
            self.mount(FindBar(self._transcript), before="#questions")

    def action_choose_block(self, step: int) -> None:
        self._transcript.choose_block(step)

    def action_turn_diffs(self) -> None:
        self._transcript.turn_diffs()

    @work(group="editor", exclusive=True)
    async def on_transcript_file_chosen(self, event: Transcript.FileChosen) -> None:
        if problem := await edit_at_line(self, self._root, event.path, event.line):
            self.notify(problem, severity="warning", markup=False)

    def action_toggle_thoughts(self) -> None:
        self._transcript.toggle_thoughts()

    def _complete(self, line: str) -> list[str]:
        return complete(self.session, line) if self.session is not None else []

    @property
    def _agent(self) -> Agent | None:
        return self.session.agent if self.session is not None else None

    @property
    def _transcript(self) -> Transcript:
        return self.query_one(Transcript)

    @property
    def _bar(self) -> TitleBar:
        return self.query_one(TitleBar)

    @property
    def _turn(self) -> Worker[None] | None:
        """The turn that runs now, also while it cleans up."""
        return next((worker for worker in self.workers if worker.group == "turn" and not worker.is_finished), None)


def _lines(event: Event) -> list[tuple[str, Tone]]:
    """What the transcript says; lists are one block."""
    if isinstance(event, TicketsListed | PlanOpened):
        return [("\n".join(text for text, _ in described(event)), Tone.PLAIN)]
    return described(event)
