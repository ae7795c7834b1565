"""The shell: shows events and passes lines to the session. It decides nothing."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from functools import partial
from math import inf
from typing import TYPE_CHECKING, ClassVar

from textual import events, messages, work
from textual.app import App
from textual.geometry import Region
from textual.widgets import Static
from textual.worker import Worker, WorkerCancelled, WorkerFailed, WorkerState

from cdd_agent.commands.registry import asks_for_help, can_run_now, handle, leaves
from cdd_agent.errors import BadInput, CddError, ExitCode
from cdd_agent.events.dialogue_events import ReplyDelta, ThinkingDelta
from cdd_agent.events.notices import Notice, Tone
from cdd_agent.events.shell_events import ExitRequested, ScreenAsked, SessionsListed
from cdd_agent.events.step_events import CommandOutput
from cdd_agent.events.step_summary import StepFinished
from cdd_agent.events.stream import Emit, Event, beside_the_turn
from cdd_agent.events.ticket_events import CriteriaShown
from cdd_agent.faults import FaultLog
from cdd_agent.frontend import REST
from cdd_agent.open_project import TrustAnswer
from cdd_agent.process.signals import handle_signals
from cdd_agent.tickets.status import StepStatus
from cdd_agent.tui.answering import KeyClock
from cdd_agent.tui.asking import Asking
from cdd_agent.tui.attention import Attention, Calling, TerminalKind
from cdd_agent.tui.bindings import SHELL_BINDINGS
from cdd_agent.tui.contrast import readable_variables
from cdd_agent.tui.editor import edit_at_line
from cdd_agent.tui.faults import Guarded, GuardedWidget
from cdd_agent.tui.guide import Guide
from cdd_agent.tui.home import BESIDE, Home
from cdd_agent.tui.keys import shown
from cdd_agent.tui.sparing import Sparing
from cdd_agent.tui.terminal_input.choice import ask_for_background, choose_driver
from cdd_agent.tui.themes import (
    LastTheme,
    load_last_theme,
    save_last_theme,
    theme_for_background,
    use_theme,
)
from cdd_agent.tui.transcript.actions import show_line
from cdd_agent.tui.transcript.blocks import BlockKind
from cdd_agent.tui.transcript.diff import SIDE_BY_SIDE_WIDTH
from cdd_agent.tui.transcript.find_bar import FindBar, FindInput
from cdd_agent.tui.transcript.widget import Transcript
from cdd_agent.tui.widgets.prompt import Prompt
from cdd_agent.tui.widgets.question import ReviewQuestion
from cdd_agent.tui.widgets.steps import StepList
from cdd_agent.wording.faces import Face

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from pathlib import Path

    from textual.binding import BindingType
    from textual.driver import Driver
    from textual.notifications import SeverityLevel
    from textual.screen import Screen

    from cdd_agent.frontend import Frontend
    from cdd_agent.open_project import TrustQuestion
    from cdd_agent.session import Session
    from cdd_agent.tui.step_screen import StepScreen
    from cdd_agent.tui.terminal_input.driver_messages import (
        BackgroundReported,
        InputEnded,
    )
    from cdd_agent.tui.widgets.welcome import Welcome

    Opened = tuple[Session, tuple[Notice, ...]]

_QUIET = 0.1
"""Seconds after the first screen in which imports do not compete with the first keys.
"""
_TWICE = 3.0
"""Seconds in which a second key press quits the shell."""
_MOVING = ("tab", "shift+tab")
_OF_THE_HOME_SCREEN = (
    *(
        "open_screen",
        "toggle_thoughts",
        "show_criteria",
        "toggle_plan",
        "show_timeline",
        "find",
        "choose_block",
    ),
    *("turn_diffs", "scroll_transcript", "toggle_approval"),
)
"""Actions that work only while this screen is on top."""
_LEAVING = ("ctrl+c", "ctrl+d", "ctrl+q")
_SPEAKING = (*_LEAVING, "ctrl+z")
"""Keys that need no hint: they show their effect, or leave no screen for a hint."""


class Shell(Sparing, Guarded, App[CddError]):
    """Transcript, steps, prompt. One turn runs at a time; Escape or Ctrl+C stops it.

    The session opens behind the first screen, because importing settings, adapters and
    the engine takes longer than typing the first word. The app returns an error that
    occurs while it opens.
    """

    TITLE = "cdd"
    ENABLE_COMMAND_PALETTE = False  # the shell has one
    CSS_PATH = "shell.tcss"
    # declared so by Textual
    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012
        (0, "-narrow"),
        (BESIDE, "-medium"),
        (110, "-wide"),
    ]
    VERTICAL_BREAKPOINTS = [(0, "-low"), (16, "-high")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = SHELL_BINDINGS
    driver: Driver | None = None
    """The driver of the terminal or of the browser page; None without a screen."""

    def __init__(
        self,
        root: Path,
        open_session: Callable[[Frontend, Emit], Opened],
        first: str = "",
        clock: KeyClock = KeyClock(),  # noqa: B008  # it is frozen
        *,
        helps_to_begin: bool = False,
    ) -> None:
        """`first` is sent as if the user had typed it. `clock` has the times of keys.
        If the shell `helps_to_begin`, its first screen shows the welcome.
        """
        # else Textual makes greys of colours
        super().__init__(ansi_color=True if "NO_COLOR" in os.environ else None)
        self.home = Home(root, clock, has_welcome=helps_to_begin)
        self._root = root
        self._open_session = open_session
        self._first = first
        self.asking = Asking(self.home, clock)
        self.attention = Attention(
            self._tell_terminal, TerminalKind.of(os.environ), root.name
        )
        self._recap = ""
        """The summary for a user who was away. It waits until no text is streaming."""
        self.clock = clock
        self._last_letter = self._asked_to_leave = -inf
        self._problem = ""
        """The error that ended the turn."""
        self._went_well = True
        """The running turn, or the last one. A queued line depends on its success."""
        self._faults = FaultLog(root)
        self._helps_to_begin = helps_to_begin
        self._is_ready = False
        """True once the prompt can take keys."""
        self._early: list[events.Key | events.Paste] = []
        """Keys that were pressed before the prompt could take them."""
        self._opened_step: tuple[Screen[str] | None, float] = (None, inf)
        """The screen of a step, and the time it appeared. Earlier keys are not for it.
        """
        self.wants_demo = False
        """True if the user quit to watch the demo."""
        self._take_hint_back: Callable[[], object] | None = None
        """Restores the text that a hint replaced."""
        self.after_turn: Callable[[], None] | None = None
        """Called after each successful turn if no line is queued."""
        self.guide = Guide()
        self._next_line: str | None = None
        """The line that the guide suggests after the turn."""
        self._transcript_at = Region(), 0
        """The place of the transcript on the screen, and its first visible row."""
        use_theme(self, load_last_theme().name)

    def get_driver_class(self) -> type[Driver]:
        return choose_driver(super().get_driver_class(), self._use_driver)

    def _use_driver(self, driver: Driver) -> None:
        self.driver = driver

    def get_default_screen(self) -> Screen[None]:
        """Return the home screen with the classes of its size: the first resize would
        style all widgets again.
        """
        (width, height), by_width, by_height = (
            self.size,
            self.HORIZONTAL_BREAKPOINTS,
            self.VERTICAL_BREAKPOINTS,
        )
        for length, breakpoints in ((width, by_width), (height, by_height)):
            self.home.add_class(
                max(point for point in breakpoints if point[0] <= length)[1],
                update=False,
            )
        return self.home

    def get_css_variables(self) -> dict[str, str]:
        return readable_variables(super().get_css_variables())

    def what_has_moved(self) -> tuple[Region, int] | None:
        transcript = self.home.transcript
        was_at, self._transcript_at = (
            self._transcript_at,
            (transcript.region, transcript.scroll_offset.y),
        )
        region, row = self._transcript_at
        return (
            (region, row - was_at[1])
            if self.screen is self.home and region == was_at[0]
            else None
        )

    @property
    def session(self) -> Session | None:
        return self.home.session

    def on_mount(self) -> None:
        handle_signals(("SIGTERM",), partial(self._leave, ExitCode.INTERRUPTED))
        handle_signals(("SIGHUP",), self.action_vanish)
        self.app_suspend_signal.subscribe(
            self, lambda _: self.attention.lend(), immediate=True
        )
        self.app_resume_signal.subscribe(self, self._come_back)
        self.ask_for_background()
        self.call_after_refresh(self.set_timer, _QUIET, self.open)

    def ask_for_background(self) -> None:
        """Use the theme that fits the terminal, unless the user has chosen one."""
        if not load_last_theme().is_chosen:
            ask_for_background(self.driver)

    def on_background_reported(self, event: BackgroundReported) -> None:
        fitting, last = theme_for_background(event.colour), load_last_theme()
        if fitting is not None and not last.is_chosen:
            use_theme(self, fitting)
            if fitting != last.name:
                save_last_theme(LastTheme(fitting))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool:
        """Give a screen on top all keys except those that stop and quit."""
        return self.screen is self.home or action not in _OF_THE_HOME_SCREEN

    @work(group="open")
    async def open(self) -> None:
        """Open the session, and begin with the first line."""
        try:
            session, notices = await asyncio.to_thread(
                self._open_session, Calling(self.asking, self.attention), self.receive
            )
        except CddError as error:
            self.exit(error, return_code=error.exit_code)
            return
        # without a session nothing can continue
        except Exception as error:  # noqa: BLE001
            self.exit(CddError(self._faults.write(error)), return_code=ExitCode.FAILED)
            return
        self.home.session = session
        self.home.bar.model = session.project.config.model
        self.home.show_approval()
        self.attention.open(
            session.project.config.notifications, lambda: session.tally.spent
        )
        for notice in notices:
            self.home.show_opening(notice)
        self.home.say_what_enter_does()
        self.look_around()
        if self._first:
            self.on_prompt_submitted(Prompt.Submitted(self._first))
        else:
            self._send_queued()

    def ask_for_trust(self, question: TrustQuestion) -> TrustAnswer:
        """Ask the user on a screen. Called by the thread that opens the session."""
        answer: TrustAnswer = self.call_from_thread(
            # mypy does not see that a coroutine is awaited there
            self._show_trust_screen,  # type: ignore[arg-type]
            question,
        )
        return answer

    async def _show_trust_screen(self, question: TrustQuestion) -> TrustAnswer:
        # late: screens are imported when one is opened
        from cdd_agent.tui.screens.trust_screen import TrustScreen  # noqa: PLC0415

        answer = asyncio.get_running_loop().create_future()

        def settle(chosen: str | None) -> None:
            answer.set_result(chosen or TrustAnswer.DEFAULTS.value)

        await self.push_screen(TrustScreen(question, self.clock.now), settle)
        return TrustAnswer(await answer)

    @work(group="look")
    async def look_around(self) -> None:
        """Show what a new session needs to know. The user can type in the meantime."""
        assert self.session is not None
        if not self._helps_to_begin:
            await self.session.first_look()
            return
        # late: the first screen shows sooner
        from cdd_agent.tui.screens.beginning import show_beginning  # noqa: PLC0415

        await show_beginning(self)

    def on_welcome_started(self, event: Welcome.Started) -> None:
        # late: screens are imported when one is opened
        from cdd_agent.tui.screens.beginning import start_row  # noqa: PLC0415

        start_row(self, event.row)

    def _handle_exception(self, error: Exception) -> None:
        """Report a fault and continue once there is a session. Textual would end the
        program.
        """
        if self.session is None:
            super()._handle_exception(error)
            return
        cause = error.error if isinstance(error, WorkerFailed) else error
        if not self._faults.is_new(cause) and cause is error:
            return
        told = self._faults.write(cause)
        try:
            self.home.end_welcome()
            with beside_the_turn():
                self.home.transcript.add(BlockKind.ERROR, told)
        # the transcript itself may fail
        except Exception as second:  # noqa: BLE001
            self._faults.write(second)
            self.notify(told, severity="error", markup=False, timeout=30)

    def _come_back(self, _: object) -> None:
        """Draw everything after Ctrl+Z, which leaves the screen empty."""
        self.attention.take_back()
        self.send_all()

    def _tell_terminal(self, sequence: str) -> None:
        """Write to the terminal, if there is one. Textual uses standard error; in a
        browser it writes elsewhere.
        """
        is_terminal = all(
            file is not None and file.isatty()
            for file in (sys.__stdout__, sys.__stderr__)
        )
        if is_terminal and self.driver is not None and not self.is_web:
            self.driver.write(sequence)

    def on_app_blur(self) -> None:
        self.attention.look_away()

    def on_app_focus(self) -> None:
        self._recap = self.attention.look_back() or self._recap
        if self._turn is None or self.asking.open is not None:
            self._say_what_happened()

    def _say_what_happened(self) -> None:
        text, self._recap = self._recap, ""
        with beside_the_turn():
            self.home.transcript.add(BlockKind.NOTE, text)

    async def on_unmount(self) -> None:
        self.attention.close()
        if self.session is not None:
            self.session.leave()

    async def _check_bindings(self, key: str, priority: bool = False) -> bool:
        """Run the binding of a key that no widget handled. A key that changes nothing
        gets a hint.
        """
        if (priority and len(key) == 1) or key in _SPEAKING:
            return await super()._check_bindings(key, priority)
        before = self._seen()
        is_bound = await super()._check_bindings(key, priority)
        if (is_bound or not priority) and self._seen() == before:
            self._say_that_nothing_is_done(key)
        return is_bound

    def _seen(self) -> Hashable:
        """Everything that a key can change."""
        widgets = self.screen.walk_children(GuardedWidget, with_self=True)
        try:
            seen = tuple((id(widget), widget.seen()) for widget in widgets)
        # a fault here must not stop the key
        except Exception as error:  # noqa: BLE001
            self._handle_exception(error)
            return object()
        return (
            self.screen,
            self.focused,
            len(self._notifications),
            len(self.workers),
            seen,
            self.theme,
        )

    def _say_that_nothing_is_done(self, key: str) -> None:
        """Show a hint until the next key: below the prompt, or in the key line of a
        screen.
        """
        if self.screen is self.home:
            self.home.say_that_nothing_is_done(key)
            self._take_hint_back = partial(self.home.say_that_nothing_is_done, "")
        else:
            line = self.screen.query_one("#keys", Static)
            usual = line.content
            self._take_hint_back = partial(line.update, usual)
            line.update(f"{shown(key)} does nothing here · {usual}")

    async def on_descendant_focus(self) -> None:
        await self._type_early_keys()

    async def on_ready(self) -> None:
        # an unfocused page does not focus the prompt
        await self._type_early_keys()

    async def _type_early_keys(self) -> None:
        """Replay the keys that were pressed while the shell started."""
        self._is_ready = True
        early, self._early = self._early, []
        for event in early:
            await self.on_event(event)

    async def on_event(self, event: events.Event) -> None:
        if not self._is_ready and isinstance(event, events.Key | events.Paste):
            self._early.append(event)
            return
        is_alone = len(self.screen_stack) == 1 and not event.is_forwarded
        is_new = isinstance(event, events.Key | events.Paste) and not event.is_forwarded
        if is_new and self._take_hint_back is not None:
            self._take_hint_back()
            self._take_hint_back = None
        if isinstance(event, events.Key) and not (is_alone or event.is_forwarded):
            self.asking.is_covered(event)
            if event.key == "enter":
                self.home.press_enter_elsewhere(event)
            screen, seen_at = self._opened_step
            if (
                self.screen is screen
                and self.clock.pressed(event) < seen_at
                and event.key not in _LEAVING
            ):
                if event.is_printable and event.character:
                    area = self.home.prompt.area
                    start, end = area.selection
                    area.replace(
                        event.character, start, end, maintain_selection_offset=False
                    )
                return
        is_typed = is_alone and isinstance(event, events.Key | events.Paste)
        if is_typed and not isinstance(self.focused, FindInput):
            assert isinstance(event, events.Key | events.Paste)
            self._note_key(event)
            before = self._seen() if self.asking.open is not None else None
            if self.asking.has_taken(event):
                if isinstance(event, events.Key) and self._seen() == before:
                    self._say_that_nothing_is_done(event.key)
                return
            if self._is_directed(event):
                return
        await super().on_event(event)

    def _note_key(self, event: events.Key | events.Paste) -> None:
        key = event.key if isinstance(event, events.Key) else ""
        if not key or (isinstance(event, events.Key) and event.is_printable):
            self._last_letter = self.clock.pressed(event)
        if key not in _LEAVING:
            self._asked_to_leave = -inf

    def _is_directed(self, event: events.Key | events.Paste) -> bool:
        """Focus the prompt for keys that the focused widget does not keep. True if the
        key needs no further handling: End in an empty prompt scrolls to the end of the
        transcript.
        """
        home, focused = self.home, self.focused
        key = event.key if isinstance(event, events.Key) else ""
        is_end_of_all = (
            key == "end" and not home.prompt.text and focused is not home.steps
        )
        if is_end_of_all and not home.transcript.is_following:
            home.transcript.follow()
            return True
        is_its_own = isinstance(focused, Transcript | StepList) and focused.keeps(key)
        if not is_its_own and key not in _MOVING:
            home.set_focus(home.prompt.area)
        return False

    def on_prompt_nothing_done(self, event: Prompt.NothingDone) -> None:
        self._say_that_nothing_is_done(event.key)

    def on_prompt_enter_ignored(self) -> None:
        self.home.say_that_enter_was_ignored()
        self._take_hint_back = partial(self.home.say_that_nothing_is_done, "")

    def on_prompt_submitted(self, event: Prompt.Submitted) -> None:
        """Begin a turn with the line, answer a question with it, run it now, or queue
        it.
        """
        line, prompt = event.line, self.home.prompt
        question = self.asking.open
        # `h` and `quit` may be answers
        is_answer = question is not None and question.knows(line) is not None
        is_free = self._turn is None and question is None
        if not line.strip() and not (is_free and self.home.takes_blank):
            self._say_that_nothing_is_done("enter")
        elif not is_free and not is_answer and asks_for_help(line):
            prompt.accepted(line)
            self.look("/help")
        elif question is not None and (is_answer or not leaves(line)):
            self.asking.take_line(question, line)
        elif self.session is None:
            prompt.hold(line, None)
        elif is_free:
            self._begin(self.session.save_long_line(line))
        elif can_run_now(line):
            prompt.accepted(line)
            self.look(line)
        else:
            saved = self.session.save_long_line(line)
            prompt.hold(saved, self.home.meaning_of(line))
            self.session.steer(saved, partial(prompt.take_held, saved))

    def _begin(self, line: str) -> None:
        self.home.prompt.accepted(line)
        self.home.transcript.follow()
        show_line(self.home.transcript, line)
        self.take_turn(line)

    @work(group="look")
    async def look(self, line: str) -> None:
        """Run a read-only line while a turn runs."""
        with beside_the_turn():
            self.home.end_welcome()
            self.home.transcript.follow()
            self.home.transcript.add(BlockKind.USER, line)
            assert self.session is not None
            try:
                await handle(self.session, line)
            except CddError as error:
                self._complain(error)

    def _complain(self, error: CddError) -> None:
        self.show(Notice(error.message, Tone.ERROR))
        if error.hint:
            self.show(Notice(error.hint))

    @work(exclusive=True, group="turn")
    async def take_turn(self, line: str) -> None:
        """Carry out one line, and show its events."""
        assert self.session is not None
        self._went_well, self._problem = True, ""
        self._next_line = None
        self.attention.begin()
        self.home.begin()
        try:
            await handle(self.session, line)
            self._next_line = await self.guide.find_next(self.session)
        except CddError as error:
            self._went_well, self._problem = False, error.message
            self._complain(error)
        except asyncio.CancelledError as error:
            agent = self.home.agent
            # the Executor has said how to resume
            if self.is_running and (agent is None or agent.name != "executor"):
                self.show(Notice("Stopped.", Tone.WARNING))
            # the worker keeps the error, whose frames would keep all that the turn held
            error.__traceback__ = None
            raise
        finally:
            if self.is_running:
                self.home.settle()

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """After a successful turn, send the next queued line. If the turn failed or was
        stopped, return the queued lines to the prompt.
        """
        if (
            event.worker.group != "turn"
            or not event.worker.is_finished
            or not self.is_running
        ):
            return
        prompt = self.home.prompt
        is_typing = self.clock.now() - self._last_letter < REST
        if event.state is not WorkerState.SUCCESS or not self._went_well:
            prompt.give_back(is_typing=is_typing)
        elif not self._send_queued(is_typing=is_typing):
            self._continue_at_rest()
        if self._turn is None:
            self.attention.end(
                self._problem, stopped=event.state is WorkerState.CANCELLED
            )
            self._say_what_happened()

    def _send_queued(self, *, is_typing: bool = False) -> bool:
        """Send the oldest queued line. If its meaning has changed since, return all
        queued lines to the prompt. False if no line is queued.
        """
        prompt = self.home.prompt
        queued = prompt.take_waiting()
        if queued is None:
            return False
        line, meant = queued
        # a line sent before the session was open has no meaning yet
        if meant is None or meant == self.home.meaning_of(line):
            self.on_prompt_submitted(Prompt.Submitted(line))
        else:
            prompt.bring_back([line], is_typing=is_typing)
            prompt.give_back(is_typing=is_typing)
        return True

    def _continue_at_rest(self) -> None:
        """Once the user has stopped typing, suggest the next line."""
        if self._turn is not None or not (self.after_turn or self._next_line):
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

    def receive(self, event: Event) -> None:
        """Show an event of the session. A fault in showing it does not reach the
        emitter.
        """
        if self.is_running:
            try:
                self.show(event)
            except Exception as error:  # noqa: BLE001
                self._handle_exception(error)

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = True,
    ) -> None:
        """Show a message for a few seconds. Commands get their names in the shell."""
        text = Face.SHELL.name_commands(message)
        super().notify(
            text, title=title, severity=severity, timeout=timeout, markup=markup
        )

    def show(self, event: Event) -> None:
        """Show an event, and note its result for the running turn."""
        self.attention.receive(event)
        if self._recap and not isinstance(
            event, ReplyDelta | ThinkingDelta | CommandOutput
        ):
            self._say_what_happened()
        if isinstance(event, StepFinished) and event.status not in (
            StepStatus.COMPLETED,
            StepStatus.SKIPPED,
        ):
            self._went_well = False
        if isinstance(event, ExitRequested):
            self._leave()
        elif isinstance(event, CriteriaShown) and self.session is not None:
            # late: screens are imported when one is opened
            from cdd_agent.tui.criteria_screen import CriteriaScreen  # noqa: PLC0415

            look_at = partial(self.session.look_at_step, slug=event.ticket_slug)
            self.push_screen(CriteriaScreen(event, look_at))
        elif isinstance(event, ScreenAsked):
            self.action_open_screen(event.screen, event.choice)
        elif isinstance(event, SessionsListed) and event.sessions:
            # late: screens are imported when one is opened
            from cdd_agent.tui.screens.sessions import SessionsScreen  # noqa: PLC0415

            if self.screen is self.home:
                self.push_screen(SessionsScreen(event.sessions), self._go_on_with)
        else:
            self.home.show(event)

    def _go_on_with(self, line: str | None) -> None:
        """Resume the chosen session at once: resuming changes nothing."""
        self.say_from_screen("")
        if line:
            self.on_prompt_submitted(Prompt.Submitted(line))

    def on_text_area_changed(self) -> None:
        self.asking.show_keys()
        self.home.say_what_enter_does()

    def action_stop(self) -> None:
        """Ctrl+C: copy the selection, else stop the turn, else clear the prompt; twice:
        quit.
        """
        prompt, turn, now = self.home.prompt, self._turn, self.clock.now()
        selected = (
            self.screen.get_selected_text()
            or ("" if prompt.is_suggesting else prompt.area.selected_text)
            or self.home.transcript.chosen_text
        )
        if selected:
            self.copy_to_clipboard(selected)
            self.screen.clear_selection()
            prompt.area.move_cursor(prompt.area.cursor_location)
            self.notify("Copied.", timeout=_TWICE)
        elif turn is not None and not turn.is_cancelled:
            self._stop_turn()
        elif now - self._asked_to_leave < _TWICE:
            self.action_leave()
        else:
            self._asked_to_leave = now
            was_typed = "Press ↑ to restore your line. "
            if prompt.is_suggesting or not prompt.text.strip():
                was_typed = ""
            prompt.put_away()
            self.notify(f"{was_typed}Press Ctrl+C again to quit.", timeout=_TWICE)

    def on_prompt_stopped(self) -> None:
        """Escape: cancel a screen that is about to open, or else stop the turn."""
        if not self.workers.cancel_group(self, "step") and not self._stop_turn():
            self._say_that_nothing_is_done("escape")

    def _stop_turn(self) -> bool:
        """Cancel the turn once: a second cancellation would interrupt its clean-up.
        False if no turn runs.
        """
        if (turn := self._turn) is None or turn.is_cancelled:
            return False
        turn.cancel()
        return True

    def action_leave(self) -> None:
        """Ctrl+D: quit. Drafts are saved; if they cannot be, warn the user first."""
        now = self.clock.now()
        if not self.home.prompt.loses_drafts or now - self._asked_to_leave < _TWICE:
            self._leave()
        else:
            self._asked_to_leave = now
            text = (
                "Your text will be lost: drafts are saved only in a project. Press"
                " the same key again to quit."
            )
            self.notify(text, timeout=_TWICE)

    @work(group="leave")
    async def _leave(self, code: ExitCode = ExitCode.DONE) -> None:
        """Quit after the turn has cleaned up."""
        try:
            await self._let_go()
        finally:
            self.exit(return_code=code)

    async def _let_go(self) -> None:
        """Save the drafts, stop the turn, wait for its clean-up, and release the
        ticket.
        """
        self.home.prompt.keep_drafts()
        if (turn := self._turn) is not None:
            self._stop_turn()
            with suppress(WorkerFailed, WorkerCancelled):
                await turn.wait()
        if self.session is not None:
            self.session.leave()

    def on_exit_app(self, event: messages.ExitApp) -> None:
        """Textual asks the app to end. Without a call of `exit`, the browser page was
        closed.
        """
        if not self._exit:
            event.prevent_default()
            self._leave(ExitCode.INTERRUPTED)

    @work(group="leave")
    async def action_vanish(self) -> None:
        """The terminal is gone. Textual would wait forever to restore it, so end
        without it.
        """
        try:
            await self._let_go()
        finally:
            os._exit(ExitCode.INTERRUPTED)

    def on_input_ended(self, event: InputEnded) -> None:
        """The input has ended."""
        if event.is_gone:
            self.action_vanish()
        else:
            self._leave(ExitCode.INTERRUPTED)

    async def action_quit(self) -> None:
        """Ctrl+Q, or Textual's command palette: quit."""
        self.action_leave()

    def action_suspend_process(self) -> None:
        """Ctrl+Z: suspend the shell."""
        if os.name != "nt" and self.driver is not None and self.driver.can_suspend:
            super().action_suspend_process()
        else:
            self.notify("Cannot suspend the shell: this terminal has no job control.")

    def action_toggle_approval(self) -> None:
        """Shift+Tab: ask before edits, or edit without asking. A question that is open
        stays.
        """
        if self.session is not None:
            self.session.change_approval(self.session.approval.toggled)

    def action_scroll_transcript(self, how: str) -> None:
        getattr(self.home.transcript, f"scroll_{how}")(animate=False)

    def action_toggle_plan(self) -> None:
        """F2: go to the steps, unfolded; from there, fold them."""
        steps = self.home.steps
        if steps.has_focus:
            steps.fold(is_folded=True)
            self.home.set_focus(self.home.prompt.area)
        elif steps.has_steps:
            steps.fold(is_folded=False)
            self.home.set_focus(steps)

    @work(exclusive=True, group="timeline")
    async def action_show_timeline(self) -> None:
        """F7: open the timeline of the run, to undo or redo steps from there."""
        # late: screens are imported when one is opened
        from cdd_agent.tui.timeline_screen import TimelineScreen  # noqa: PLC0415

        if self.screen is not self.home or self.session is None:
            return
        try:
            timeline = await asyncio.to_thread(self.session.timeline)
        except CddError as error:
            self.notify(
                f"{error.message}\n{error.hint}".strip(),
                severity="warning",
                markup=False,
            )
            return
        if not timeline.steps and not timeline.undone:
            self.notify("No step has run yet.", markup=False)
            return
        look_at = partial(self.session.look_at_step, slug=timeline.ticket_slug)
        screen = TimelineScreen(timeline, look_at, self.session.preview_undo)
        self.push_screen(screen, self._say_to_the_run)

    def _say_to_the_run(self, line: str | None) -> None:
        """Put a word for the Executor into the prompt, or the slash command that does
        the same.
        """
        is_its_own = self.home.agent is not None and self.home.agent.name == "executor"
        slug = self.session.last_ticket if self.session is not None else None
        if line and not is_its_own:
            word, _, step = line.partition(" ")
            if word in ("undo", "redo"):
                line = " ".join(filter(None, (f"/{word}", slug, step)))
            else:
                line = f"/exec {slug}"
                self.notify(
                    f"The run is not open. Send `{line}` to open it, then type"
                    f" `{word}`.",
                    markup=False,
                )
        self.say_from_screen(line)

    @work(exclusive=True, group="screens")
    async def action_open_screen(self, name: str, choice: str = "") -> None:
        """Open a screen, also while a turn runs."""
        # late: screens are imported when one is opened
        from cdd_agent.tui.screens.opening import open_screen  # noqa: PLC0415

        if self.screen is not self.home:
            return
        try:
            await open_screen(self, name, choice)
        except CddError as error:
            self.notify(
                f"{error.message}\n{error.hint or ''}".strip(),
                severity="warning",
                markup=False,
            )

    def action_use_theme(self, name: str) -> None:
        self.action_open_screen("theme", name)

    @work(exclusive=True, group="criteria")
    async def action_show_criteria(self) -> None:
        """F3: show the steps and tests of each criterion, also while a turn runs."""
        if self.session is None:
            return
        try:
            with beside_the_turn():
                await handle(self.session, "/criteria")
        except CddError as error:
            self.notify(
                f"{error.message}\n{error.hint or ''}".strip(),
                severity="warning",
                markup=False,
            )

    def on_step_list_step_chosen(self, event: StepList.StepChosen) -> None:
        self.open_step(event.number)

    @work(exclusive=True, group="step")
    async def open_step(self, number: int) -> None:
        """Show the details of a step on a screen, or on the step screen that is already
        open.
        """
        # late: screens are imported when one is opened
        from cdd_agent.tui.step_screen import StepScreen  # noqa: PLC0415

        if self.session is None:
            return
        try:
            details = await asyncio.to_thread(self.session.look_at_step, number)
        except CddError as error:
            self.notify(error.message, severity="warning", markup=False)
            return
        if isinstance(self.screen, StepScreen):
            self.screen.show(details)
        elif self.screen is self.home:
            screen = StepScreen(details, self._walk_to_step)
            self._opened_step = screen, inf
            self.push_screen(screen, self._say_to_the_run)
            screen.call_after_refresh(self._note_that_is_seen, screen)

    def _note_that_is_seen(self, screen: StepScreen) -> None:
        self._opened_step = screen, self.clock.now()

    def _walk_to_step(self, by: int) -> None:
        steps = self.home.steps
        before = steps.seen()
        if (number := steps.walk(by)) is not None and steps.seen() != before:
            self.open_step(number)

    @work(group="editor", exclusive=True)
    async def on_step_screen_edit_asked(self, event: StepScreen.EditAsked) -> None:
        # late: screens are imported when one is opened
        from cdd_agent.tui.step_editing import edit_step  # noqa: PLC0415

        await edit_step(self, event.ticket_slug, event.number)

    def take_up_plan(self, slug: str) -> None:
        """Load a plan that was edited here. A running turn reads it before its next
        step.
        """
        if self._turn is None and self.session is not None:
            self.session.take_up_plan(slug)
            self.home.show_steps()
            self.home.say_what_to_type()

    def say_from_screen(self, line: str | None) -> None:
        """Put a line that a screen chose into the prompt. Up restores a draft."""
        prompt = self.home.prompt
        self.home.set_focus(prompt.area)
        self.home.steps.follow()
        if line:
            prompt.put_away()
            prompt.put(line)
            self.home.say_what_enter_does()

    def action_find(self) -> None:
        if not isinstance(self.focused, FindInput):
            # a fault may have left an unusable bar
            self.home.query(FindBar).remove()
            self.home.mount(
                FindBar(self.home.transcript, self.home.prompt.area.focus),
                before="#questions",
            )

    def action_choose_block(self, step: int) -> None:
        self.home.transcript.choose_block(step)

    def action_turn_diffs(self) -> None:
        """F6: switch between diffs side by side and in one column, if both fit."""
        shown = [
            self.home.transcript,
            *(review.diffs for review in self.home.query(ReviewQuestion)),
        ]
        if not any(transcript.has_room_for_columns for transcript in shown):
            text = (
                f"Side-by-side needs {SIDE_BY_SIDE_WIDTH} columns. Press F2 twice to"
                " hide the plan."
            )
            self.notify(text, markup=False)
            return
        layout = self.home.transcript.diff_layout
        layout.is_side_by_side = not layout.is_side_by_side
        for transcript in shown:
            transcript.lay_out_diffs()
        self.notify(
            "Diffs side by side" if layout.is_side_by_side else "Diffs in one column",
            timeout=_TWICE,
        )

    @work(group="editor", exclusive=True)
    async def on_transcript_file_chosen(self, event: Transcript.FileChosen) -> None:
        try:
            await edit_at_line(self, event.path, event.line)
        except BadInput as error:
            self.notify(
                f"{error.message}\n{error.hint}".strip(),
                severity="warning",
                markup=False,
            )

    def action_toggle_thoughts(self) -> None:
        self.home.transcript.toggle_thoughts()

    @property
    def is_busy(self) -> bool:
        """True if a turn runs or the user is typing."""
        return self._turn is not None or self.clock.now() - self._last_letter < REST

    @property
    def _turn(self) -> Worker[None] | None:
        """The running turn, also while it cleans up."""
        return next(
            (
                worker
                for worker in self.workers
                if worker.group == "turn" and not worker.is_finished
            ),
            None,
        )
