"""Ends, suspends or stops the shell: Ctrl+C, Ctrl+D, Ctrl+Z, Escape, signals, and
closed terminals.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from textual import messages, work
from textual.worker import WorkerCancelled, WorkerFailed

from cdd_agent.errors import ExitCode
from cdd_agent.tui.app_base import SHORT_MESSAGE, ShellBase

if TYPE_CHECKING:
    from cdd_agent.tui.terminal_input.driver_messages import InputEnded


class Leaving(ShellBase):
    def action_stop(self) -> None:
        """Ctrl+C: copy the selection, else stop the turn, else clear the prompt. Twice:
        quit.
        """
        selected = self._selected_text()
        if selected:
            self._copy(selected)
        elif self.stop_turn():
            pass
        elif self.clock.now() - self.quit_asked_at < SHORT_MESSAGE:
            self.action_leave()
        else:
            self._clear_prompt()

    def _selected_text(self) -> str:
        prompt = self.home.prompt
        selected = self.screen.get_selected_text()
        if not selected and not prompt.is_suggesting:
            selected = prompt.area.selected_text
        return selected or self.home.transcript.chosen_text

    def _copy(self, text: str) -> None:
        area = self.home.prompt.area
        self.copy_to_clipboard(text)
        self.screen.clear_selection()
        area.move_cursor(area.cursor_location)
        self.notify("Copied.", timeout=SHORT_MESSAGE)

    def _clear_prompt(self) -> None:
        prompt = self.home.prompt
        self.quit_asked_at = self.clock.now()
        hint = ""
        if prompt.text.strip() and not prompt.is_suggesting:
            hint = "Press ↑ to restore your line. "
        prompt.put_away()
        self.notify(f"{hint}Press Ctrl+C again to quit.", timeout=SHORT_MESSAGE)

    def on_prompt_stopped(self) -> None:
        """Escape: stop the turn."""
        if not self.stop_turn():
            self.show_no_effect("escape")

    def action_leave(self) -> None:
        """Ctrl+D: quit. If drafts cannot be saved, warn first."""
        now = self.clock.now()
        is_repeated = now - self.quit_asked_at < SHORT_MESSAGE
        if is_repeated or not self.home.prompt.loses_drafts:
            self.leave()
            return
        self.quit_asked_at = now
        text = (
            "Your text will be lost: drafts are saved only in a project. Press"
            " the same key again to quit."
        )
        self.notify(text, timeout=SHORT_MESSAGE)

    @work(group="leave")
    async def leave(self, code: ExitCode = ExitCode.DONE) -> None:
        """Quit after the turn has cleaned up."""
        try:
            await self._release()
        finally:
            self.exit(return_code=code)

    async def _release(self) -> None:
        self.home.prompt.keep_drafts()
        turn = self.turn
        if turn is not None:
            self.stop_turn()
            with suppress(WorkerFailed, WorkerCancelled):
                await turn.wait()
        if self.session is not None:
            self.session.leave()

    def on_exit_app(self, event: messages.ExitApp) -> None:
        """Handle Textual's request to end. If `exit` was not called, the browser page
        was closed.
        """
        if not self.is_ending:
            event.prevent_default()
            self.leave(ExitCode.INTERRUPTED)

    @work(group="leave")
    async def action_vanish(self) -> None:
        """End without Textual, which would wait forever to restore a closed
        terminal.
        """
        try:
            await self._release()
        finally:
            os._exit(ExitCode.INTERRUPTED)

    def on_input_ended(self, event: InputEnded) -> None:
        if event.is_gone:
            self.action_vanish()
        else:
            self.leave(ExitCode.INTERRUPTED)

    async def action_quit(self) -> None:
        """Ctrl+Q, or Textual's command palette."""
        self.action_leave()

    def action_suspend_process(self) -> None:
        """Ctrl+Z."""
        if os.name != "nt" and self.driver is not None and self.driver.can_suspend:
            super().action_suspend_process()
        else:
            self.notify("Cannot suspend the shell: this terminal has no job control.")
