"""Edits a step's text in plan.md from the inspector. Imported on first use."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from cdd_agent.errors import CddError
from cdd_agent.tui.editor import edit_file
from cdd_agent.tui.inspector.screen import InspectorScreen
from cdd_agent.tui.transcript.blocks import BlockKind

if TYPE_CHECKING:
    from cdd_agent.tui.screen_actions import ScreenActions

_TEXT_SAVED = (
    "Your text is saved. Press `e` to open it again. To discard it, delete all of it"
    " in the editor: the plan stays unchanged."
)


async def edit_step(app: ScreenActions, slug: str, number: int) -> None:
    screen, session = app.screen, app.session
    if not isinstance(screen, InspectorScreen) or session is None:
        return
    editing, has_begun = None, False
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
        news = [(BlockKind.ERROR, words)]
        if editing is not None and has_begun and editing.is_kept:
            news.append((BlockKind.NOTE, _TEXT_SAVED))
        screen.report(number, *news)
        return
    if warnings is None:
        screen.report(number, (BlockKind.NOTE, "No changes."))
        return
    app.take_up_plan(slug)
    news = [(BlockKind.GOOD, f"Saved to {editing.desk.shown_path}.")]
    news += [(BlockKind.WARNING, problem.text) for problem in warnings]
    screen.show_edited_plan(number, *news)
