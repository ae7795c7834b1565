from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from textual import work

from cdd_agent.errors import BadInput
from cdd_agent.tui.app_base import SHORT_MESSAGE, ShellBase
from cdd_agent.tui.editor import edit_at_line
from cdd_agent.tui.transcript.diff import SIDE_BY_SIDE_WIDTH
from cdd_agent.tui.transcript.find_bar import FindBar, FindInput
from cdd_agent.tui.widgets.question import ReviewQuestion
from cdd_agent.tui.widgets.steps import StepList

if TYPE_CHECKING:
    from cdd_agent.tui.inspector.screen import InspectorScreen
    from cdd_agent.tui.transcript.widget import Transcript

HOME_ACTIONS = (
    *(
        "open_screen",
        "toggle_thoughts",
        "inspect",
        "toggle_plan",
        "find",
        "choose_block",
    ),
    *("turn_diffs", "scroll_transcript", "toggle_approval"),
)


class ScreenActions(ShellBase):
    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool:
        """Disable the actions of the home screen below other screens."""
        return self.screen is self.home or action not in HOME_ACTIONS

    def action_toggle_approval(self) -> None:
        """Shift+Tab: switch between asking before edits and editing. Open questions
        stay.
        """
        if self.session is not None:
            self.session.change_approval(self.session.approval.toggled)

    def action_scroll_transcript(self, how: str) -> None:
        getattr(self.home.transcript, f"scroll_{how}")(animate=False)

    def action_toggle_plan(self) -> None:
        """F2: go to the steps and unfold them; from the steps, fold them."""
        steps = self.home.steps
        if steps.has_focus:
            steps.fold(is_folded=True)
            self.home.set_focus(self.home.prompt.area)
        elif steps.has_steps:
            steps.fold(is_folded=False)
            self.home.set_focus(steps)

    def action_inspect(self, tab: str) -> None:
        """F3, F7, F8: open the inspector at a tab, even during a turn."""
        self.inspect(tab)

    def inspect(
        self, tab: str, slug: str | None = None, number: int | None = None
    ) -> None:
        """Open the inspector of a ticket, by default of the current one."""
        # late: screens are imported when one is opened
        from cdd_agent.tui.inspector.opening import open_inspector  # noqa: PLC0415

        screen = open_inspector(self, tab, slug=slug, number=number)
        if screen is not None:
            self.inspector, self.inspector_shown_at = screen, inf
            screen.call_after_refresh(self._note_inspector)

    def _note_inspector(self) -> None:
        self.inspector_shown_at = self.clock.now()

    def on_step_list_step_chosen(self, event: StepList.StepChosen) -> None:
        self.open_step(event.number)

    def open_step(self, number: int) -> None:
        self.inspect("step", number=number)

    @work(group="editor", exclusive=True)
    async def on_inspector_screen_edit_requested(
        self, event: InspectorScreen.EditRequested
    ) -> None:
        # late: screens are imported when one is opened
        from cdd_agent.tui.inspector.step_editing import edit_step  # noqa: PLC0415

        await edit_step(self, event.ticket_slug, event.number)

    def take_up_plan(self, slug: str) -> None:
        """Load an edited plan. A running turn reads it before its next step."""
        if self.turn is None and self.session is not None:
            self.session.take_up_plan(slug)
            self.home.show_steps()
            self.home.say_what_to_type()

    def action_find(self) -> None:
        if not isinstance(self.focused, FindInput):
            # An earlier fault may have left an unusable bar.
            self.home.query(FindBar).remove()
            self.home.mount(
                FindBar(self.home.transcript, self.home.prompt.area.focus),
                before="#questions",
            )

    def action_choose_block(self, step: int) -> None:
        self.home.transcript.choose_block(step)

    def action_turn_diffs(self) -> None:
        """F6: switch between diffs side by side and in one column."""
        shown = [
            self.home.transcript,
            *(review.diffs for review in self.home.query(ReviewQuestion)),
        ]
        if not any(transcript.has_room_for_columns for transcript in shown):
            text = f"Diffs side by side need {SIDE_BY_SIDE_WIDTH} columns."
            if self.home.steps.display and self.size.width >= SIDE_BY_SIDE_WIDTH:
                text += " Press F2 twice to hide the plan."
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
