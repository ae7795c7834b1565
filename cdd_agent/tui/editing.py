"""A file in the person's own editor, with the shell out of its way."""

import asyncio
from pathlib import Path
from typing import Any

from textual.app import App, SuspendNotSupported


async def edit_at_line(app: App[Any], root: Path, path: Path, line: int) -> str:
    """Open a file at a line, and come back when the person has left the editor. What runs meanwhile goes on.

    Returns why it was not possible, as a sentence; nothing, where it was.
    """
    from cdd_agent.process.editor import editor_command  # the shell's start does not wait for what starts programs
    from cdd_agent.process.run import run_at_terminal

    command = editor_command(path, line)
    if command is None:
        return "Set `EDITOR` to your editor: a click with Ctrl opens the file there."
    try:
        with app.suspend(), app.batch_update():  # nothing is drawn over the editor
            code = await asyncio.to_thread(run_at_terminal, command, root)
    except SuspendNotSupported:
        return "This terminal cannot be lent to an editor."
    except OSError as error:
        return f"{command[0]} could not be started: {error.strerror or error}."
    return f"{command[0]} ended with exit code {code}." if code else ""
