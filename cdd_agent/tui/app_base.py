"""The base of the shell: widgets, session, and short messages to the user."""

from __future__ import annotations

import os
import sys
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any

from textual.app import App
from textual.widgets import Static

from cdd_agent.errors import CddError, ExitCode
from cdd_agent.events.stream import beside_the_turn
from cdd_agent.faces.faults import FaultLog
from cdd_agent.frontend import REST
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.tui.asking import Asking
from cdd_agent.tui.attention import Attention, TerminalKind
from cdd_agent.tui.faults import Guarded, GuardedWidget
from cdd_agent.tui.home import Home
from cdd_agent.tui.keys import shown
from cdd_agent.tui.terminal_input.choice import ask_for_background
from cdd_agent.tui.transcript.blocks import BlockKind
from cdd_agent.wording.faces import Face

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from pathlib import Path

    from textual.driver import Driver
    from textual.notifications import SeverityLevel
    from textual.worker import Worker

    from cdd_agent.session.session import Session
    from cdd_agent.tui.answering import KeyClock
    from cdd_agent.tui.inspector.screen import InspectorScreen

SHORT_MESSAGE = 3.0
"""Seconds of a short message, and of the wait for a second key press that quits."""


class ShellBase(Guarded, App[CddError]):
    driver: Driver | None = None

    def __init__(self, root: Path, clock: KeyClock, *, has_welcome: bool) -> None:
        # Otherwise Textual would turn colours into greys.
        super().__init__(ansi_color=True if "NO_COLOR" in os.environ else None)
        self.root = root
        self.clock = clock
        self.home = Home(root, clock, has_welcome=has_welcome)
        self.faults = FaultLog(root)
        self.is_ending = False
        self.asking = Asking(self.home, clock)
        self.attention = Attention(
            self._write_to_terminal, TerminalKind.of(os.environ), root.name
        )
        self.typed_at = -inf
        self.quit_asked_at = -inf
        """The time of a key press that quits if it is repeated."""
        self.inspector: InspectorScreen | None = None
        self.inspector_shown_at = inf
        """Earlier keys are not for the inspector."""
        self._message_count = 0
        self._restore_hint: Callable[[], object] | None = None

    def _write_to_terminal(self, sequence: str) -> None:
        """Write to the terminal, if there is one. Textual writes to standard error, but
        not in a browser.
        """
        is_terminal = all(
            file is not None and file.isatty()
            for file in (sys.__stdout__, sys.__stderr__)
        )
        if is_terminal and self.driver is not None and not self.is_web:
            self.driver.write(sequence)

    def ask_for_background(self) -> None:
        ask_for_background(self.driver)

    @property
    def session(self) -> Session | None:
        return self.home.session

    @property
    def turn(self) -> Worker[None] | None:
        """The running turn, including its clean-up."""
        for worker in self.workers:
            if worker.group == "turn" and not worker.is_finished:
                return worker
        return None

    @property
    def is_typing(self) -> bool:
        return self.clock.now() - self.typed_at < REST

    @property
    def is_busy(self) -> bool:
        return self.turn is not None or self.is_typing

    def stop_turn(self) -> bool:
        """Cancel the turn once: a second cancellation would interrupt its clean-up.
        False if no turn runs.
        """
        turn = self.turn
        if turn is None or turn.is_cancelled:
            return False
        turn.cancel()
        return True

    def exit(
        self,
        result: CddError | None = None,
        return_code: int = 0,
        message: Any | None = None,
    ) -> None:
        self.is_ending = True
        super().exit(result, return_code, message)

    def report_fault(self, error: Exception) -> None:
        """Show an internal error and continue; end the app if there is no session
        yet.
        """
        if not self.faults.is_new(error):
            return
        text = self.faults.write(error)
        if self.session is None:
            self.exit(
                CddError(text, refusal=Refusal.PROCESS_FAILED),
                return_code=ExitCode.FAILED,
            )
            return
        try:
            self.home.end_welcome()
            with beside_the_turn():
                self.home.transcript.add(BlockKind.ERROR, text)
        # The transcript itself may fail.
        except Exception as second:  # noqa: BLE001
            self.faults.write(second)
            self.notify(text, severity="error", markup=False, timeout=30)

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = True,
    ) -> None:
        self._message_count += 1
        text = Face.SHELL.name_commands(message)
        if self.screen is self.home and not self.home.has_room_for_notifications:
            self.home.activity.say_once(" ".join(text.split()))
        super().notify(
            text, title=title, severity=severity, timeout=timeout, markup=markup
        )

    def notify_error(self, error: CddError) -> None:
        text = f"{error.message}\n{error.remedy}".strip()
        self.notify(text, severity="warning", markup=False)

    def say_from_screen(self, line: str | None) -> None:
        """Put a line that a screen chose into the prompt. Up restores the draft."""
        prompt = self.home.prompt
        self.home.set_focus(prompt.area)
        self.home.steps.follow()
        if line:
            prompt.put_away()
            prompt.put(line)
            self.home.say_what_enter_does()

    def visible_state(self) -> Hashable:
        widgets = self.screen.walk_children(GuardedWidget, with_self=True)
        try:
            seen = tuple((id(widget), widget.seen()) for widget in widgets)
        # A fault here must not stop the key.
        except Exception as error:  # noqa: BLE001
            self.report_fault(error)
            return object()
        return (
            self.screen,
            self.focused,
            self._message_count,
            len(self.workers),
            seen,
            self.theme,
        )

    def show_no_effect(self, key: str) -> None:
        """Show that a key has no effect, until the next key."""
        if self.screen is self.home:
            self.home.say_that_nothing_is_done(key)
            self._restore_hint = partial(self.home.say_that_nothing_is_done, "")
            return
        line = self.screen.query_one("#keys", Static)
        usual = line.content
        self._restore_hint = partial(line.update, usual)
        line.update(f"{shown(key)} does nothing here · {usual}")

    def restore_hint(self) -> None:
        if self._restore_hint is not None:
            self._restore_hint()
            self._restore_hint = None

    def on_prompt_enter_ignored(self) -> None:
        self.home.say_that_enter_was_ignored()
        self._restore_hint = partial(self.home.say_that_nothing_is_done, "")
