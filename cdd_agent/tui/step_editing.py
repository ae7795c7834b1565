"""Editing a step's text in plan.md, from the step's screen. Imported when that is asked
for.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from cdd_agent.errors import CddError
from cdd_agent.tui.editor import edit_file
from cdd_agent.tui.step_screen import StepScreen
from cdd_agent.tui.transcript.blocks import BlockKind

if TYPE_CHECKING:
    from cdd_agent.tui.screen_actions import ScreenActions

_KEPT = (
    "Your text is saved. Press `e` to open it again. To discard it, delete all of it"
    " in the editor: the plan stays unchanged."
)


async def edit_step(app: ScreenActions, slug: str, number: int) -> None:
    """Open the user's editor with the text; the step's screen shows the result."""
    screen, session = app.screen, app.session
    if not isinstance(screen, StepScreen) or session is None:
        return
    has_begun = False
    try:
        editing = session.edit_step(number, slug)
        was_kept = await asyncio.to_thread(editing.begin)
        has_begun = True
        if was_kept:
            app.notify("Opened your earlier edit, which is not in the plan yet.")
        await edit_file(app, editing.file)
        warnings = await asyncio.to_thread(editing.finish)
    except CddError as error:
        words = "\n".join(filter(None, (error.message, error.hint)))
        kept = [(BlockKind.NOTE, _KEPT)] if has_begun and editing.is_kept else []
        screen.tell((BlockKind.ERROR, words), *kept)
        return
    if warnings is None:
        screen.tell((BlockKind.NOTE, "No changes."))
        return
    app.take_up_plan(slug)
    screen.show(await asyncio.to_thread(session.look_at_step, number, slug))
    told = [(BlockKind.WARNING, problem.text) for problem in warnings]
    screen.tell((BlockKind.GOOD, f"Saved to {editing.desk.shown_path}."), *told)
