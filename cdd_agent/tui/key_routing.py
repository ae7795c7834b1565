"""Routes a key to an open question, to the focused widget, or to the prompt. A key
without an effect gets a hint.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, TypeGuard

from textual import events

from cdd_agent.tui.app_base import ShellBase
from cdd_agent.tui.transcript.find_bar import FindInput
from cdd_agent.tui.transcript.widget import Transcript
from cdd_agent.tui.widgets.steps import StepList

if TYPE_CHECKING:
    from cdd_agent.tui.widgets.prompt_area import PromptArea

_LEAVING = ("ctrl+c", "ctrl+d", "ctrl+q")
_WITHOUT_HINT = (*_LEAVING, "ctrl+z")
"""Keys without a hint: they show their effect, or end the screen."""
_MOVING = ("tab", "shift+tab")


class KeyRouting(ShellBase):
    is_accepting_keys = False
    _early: tuple[events.Key | events.Paste, ...] = ()

    async def on_descendant_focus(self) -> None:
        await self._replay_early_keys()

    async def on_ready(self) -> None:
        # An unfocused page does not focus the prompt.
        await self._replay_early_keys()

    async def _replay_early_keys(self) -> None:
        self.is_accepting_keys = True
        early, self._early = self._early, ()
        for event in early:
            await self.on_event(event)

    async def on_event(self, event: events.Event) -> None:
        if not isinstance(event, events.Key | events.Paste):
            await super().on_event(event)
        elif not self.is_accepting_keys:
            self._early = (*self._early, event)
        elif event.is_forwarded:
            await self._run_bindings(event)
        else:
            self.restore_hint()
            if not self._is_handled(event):
                await self._pass_on(event)

    async def _pass_on(self, event: events.Key | events.Paste) -> None:
        if not _may_get_hint(event) or len(event.key) == 1:
            await super().on_event(event)
            return
        state_before = self.visible_state()
        await super().on_event(event)
        if not event.is_forwarded and self.visible_state() == state_before:
            self.show_no_effect(event.key)

    async def _run_bindings(self, event: events.Key | events.Paste) -> None:
        if not _may_get_hint(event):
            await super().on_event(event)
            return
        state_before = self.visible_state()
        await super().on_event(event)
        if self.visible_state() == state_before:
            self.show_no_effect(event.key)

    def _is_handled(self, event: events.Key | events.Paste) -> bool:
        if len(self.screen_stack) > 1:
            return isinstance(event, events.Key) and self._is_too_early(event)
        if isinstance(self.focused, FindInput):
            return False
        self._note_key(event)
        return self._is_answer(event) or self._is_directed(event)

    def _is_too_early(self, event: events.Key) -> bool:
        """True if the key was pressed before the inspector appeared. A letter is typed
        into the prompt.
        """
        self.asking.is_covered(event)
        if event.key == "enter":
            self.home.press_enter_elsewhere(event)
        if self.screen is not self.inspector or event.key in _LEAVING:
            return False
        if self.clock.pressed(event) >= self.inspector_shown_at:
            return False
        if event.is_printable and event.character:
            area = self.home.prompt.area
            start, end = area.selection
            area.replace(event.character, start, end, maintain_selection_offset=False)
        return True

    def _note_key(self, event: events.Key | events.Paste) -> None:
        key = event.key if isinstance(event, events.Key) else ""
        if not key or (isinstance(event, events.Key) and event.is_printable):
            self.typed_at = self.clock.pressed(event)
        if key not in _LEAVING:
            self.quit_asked_at = -inf

    def _is_answer(self, event: events.Key | events.Paste) -> bool:
        if self.asking.open is None:
            return self.asking.has_taken(event)
        state_before = self.visible_state()
        if not self.asking.has_taken(event):
            return False
        if isinstance(event, events.Key) and self.visible_state() == state_before:
            self.show_no_effect(event.key)
        return True

    def _is_directed(self, event: events.Key | events.Paste) -> bool:
        """Focus the prompt for keys that the focused widget does not use. True if the
        key is handled: End in an empty prompt scrolls to the end of the transcript.
        """
        home, focused = self.home, self.focused
        key = event.key if isinstance(event, events.Key) else ""
        is_end = key == "end" and not home.prompt.text and focused is not home.steps
        if is_end and not home.transcript.is_following:
            home.transcript.follow()
            return True
        is_kept = isinstance(focused, Transcript | StepList) and focused.keeps(key)
        if not is_kept and key not in _MOVING:
            home.set_focus(home.prompt.area)
        return False

    def on_prompt_area_nothing_done(self, event: PromptArea.NothingDone) -> None:
        self.show_no_effect(event.key)


def _may_get_hint(event: events.Key | events.Paste) -> TypeGuard[events.Key]:
    return isinstance(event, events.Key) and event.key not in _WITHOUT_HINT
