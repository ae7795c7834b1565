"""Opens the user's editor, which has the terminal until it is closed."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from textual.app import SuspendNotSupported

from cdd_agent.errors import BadInput
from cdd_agent.process.editor import NAME_ONE, at_line, copies, editor_argv, read_back
from cdd_agent.process.run import run_in_foreground
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.threads import in_thread

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from textual.app import App


async def edit_text(app: App[Any], text: str) -> str:
    """Return the text as edited by the user. Work in the shell continues.

    Raises `BadInput` if there is no editor, it fails, or the terminal cannot be lent.
    """
    content = text.encode("utf-8", errors="replace")
    edited = (await edit_texts(app, {"prompt.md": content}))["prompt.md"]
    try:
        return edited.decode("utf-8").replace("\r\n", "\n").removesuffix("\n")
    except UnicodeDecodeError as error:
        raise BadInput(
            f"The edited text is not UTF-8: {error}", refusal=Refusal.WRONG_ENCODING
        ) from error


async def edit_texts(app: App[Any], files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return contents by path, edited together in one editor. Raises `BadInput`, as
    `edit_text` does.
    """
    with copies(files) as places:
        await open_in_editor(app, editor_argv(os.environ), *places.values())
        return read_back(places)


async def edit_file(app: App[Any], file: Path) -> None:
    """Open a file. Raises `BadInput`, as `edit_text` does."""
    await open_in_editor(app, editor_argv(os.environ), file)


async def edit_at_line(app: App[Any], path: Path, line: int) -> None:
    """Open a file at a line. Raises `BadInput`, as `edit_text` does."""
    argv = editor_argv(os.environ)
    await open_in_editor(app, argv, *at_line(argv[0], path, line))


async def open_in_editor(
    app: App[Any], argv: list[str], *arguments: Path | str
) -> None:
    """Open the editor, and wait for its end. Raises `BadInput` if it fails or cannot
    start.
    """
    failed, code = "", 0
    try:
        with app.batch_update(), app.suspend(), _ignore_interrupts():
            try:
                code = await in_thread(
                    partial(run_in_foreground, [*argv, *map(str, arguments)]),
                    name="editor",
                )
            except OSError as error:
                # An error raised here would leave the app suspended.
                failed = error.strerror or str(error)
    except SuspendNotSupported as error:
        raise BadInput(
            "This terminal cannot run an editor", refusal=Refusal.NO_EDITOR
        ) from error
    if failed:
        raise BadInput(
            f"Could not start {argv[0]}: {failed}",
            hint=NAME_ONE,
            refusal=Refusal.NO_EDITOR,
        )
    if code:
        raise BadInput(
            f"{argv[0]} ended with exit code {code}; its changes are ignored",
            refusal=Refusal.NO_EDITOR,
        )


@contextmanager
def _ignore_interrupts() -> Iterator[None]:
    """Ignore Ctrl+C while the editor has the terminal. A handler is used because the
    editor would inherit `SIG_IGN`.
    """
    previous = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
