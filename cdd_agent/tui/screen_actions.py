"""Screens and views that the user opens by a key, a command or a click."""

from __future__ import annotations

import asyncio
from functools import partial
from math import inf
from typing import TYPE_CHECKING

from textual import work

from cdd_agent.commands.registry import handle
from cdd_agent.errors import BadInput, CddError
from cdd_agent.events.stream import beside_the_turn
from cdd_agent.tui.app_base import SHORT_MESSAGE, ShellBase
from cdd_agent.tui.editor import edit_at_line
from cdd_agent.tui.transcript.diff import SIDE_BY_SIDE_WIDTH
from cdd_agent.tui.transcript.find_bar import FindBar, FindInput
from cdd_agent.tui.widgets.question import ReviewQuestion
from cdd_agent.tui.widgets.steps import StepList

if TYPE_CHECKING:
    from cdd_agent.tui.step_screen import StepScreen
    from cdd_agent.tui.transcript.widget import Transcript

HOME_ACTIONS = (
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
"""Actions that work only while the home screen is on top."""


class ScreenActions(ShellBase):
    """Opens screens, and changes what the home screen shows."""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool:
        """Give a screen on top all keys except those that stop and quit."""
        return self.screen is self.home or action not in HOME_ACTIONS

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
            self.notify_error(error)
            return
        if not timeline.steps and not timeline.undone:
            self.notify("No step has run yet.", markup=False)
            return
        look_at = partial(self.session.look_at_step, slug=timeline.ticket_slug)
        screen = TimelineScreen(timeline, look_at, self.session.preview_undo)
        self.push_screen(screen, self._say_to_run)

    def _say_to_run(self, line: str | None) -> None:
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

    @work(exclusive=True, group="criteria")
    async def action_show_criteria(self) -> None:
        """F3: show the steps and tests of each criterion, also while a turn runs."""
        if self.session is None:
            return
        try:
            with beside_the_turn():
                await handle(self.session, "/criteria")
        except CddError as error:
            self.notify_error(error)

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
            self.notify_error(error)
            return
        if isinstance(self.screen, StepScreen):
            self.screen.show(details)
        elif self.screen is self.home:
            screen = StepScreen(details, self._walk_to_step)
            self.step_screen = screen, inf
            self.push_screen(screen, self._say_to_run)
            screen.call_after_refresh(self._note_step_screen, screen)

    def _note_step_screen(self, screen: StepScreen) -> None:
        self.step_screen = screen, self.clock.now()

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
        if self.turn is None and self.session is not None:
            self.session.take_up_plan(slug)
            self.home.show_steps()
            self.home.say_what_to_type()

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
            timeout=SHORT_MESSAGE,
        )

    @work(group="editor", exclusive=True)
    async def on_transcript_file_chosen(self, event: Transcript.FileChosen) -> None:
        try:
            await edit_at_line(self, event.path, event.line)
        except BadInput as error:
            self.notify_error(error)

    def action_toggle_thoughts(self) -> None:
        self.home.transcript.toggle_thoughts()
