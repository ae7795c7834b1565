"""The person's own editor, which has the terminal to itself for as long as it is open."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdd_agent.errors import BadInput
from cdd_agent.process.run import run_in_foreground
from cdd_agent.threads import in_thread

if TYPE_CHECKING:
    from textual.app import App

_USUAL = ("notepad",) if os.name == "nt" else ("sensible-editor", "nano", "vi")
_PLUS_LINE = (
    *("vi", "vim", "nvim", "gvim", "view", "nano", "pico", "emacs", "emacsclient", "kak", "joe", "jed", "micro", "mg"),
    *("ne", "sensible-editor"),
)
_GOTO = ("code", "code-insiders", "codium", "cursor", "windsurf")
_COLON_LINE = ("hx", "helix", "subl", "zed", "zeditor")
_NAME_ONE = "Set $VISUAL or $EDITOR to a program that is there."


def editor_argv(environment: Mapping[str, str]) -> list[str]:
    """How the editor is called: by $VISUAL, $EDITOR, or one that is there. Raises `BadInput`."""
    for name in ("VISUAL", "EDITOR"):
        if text := environment.get(name, "").strip():
            try:
                argv = [text] if shutil.which(text) else words_of(text, posix=os.name != "nt")
            except ValueError as error:
                raise BadInput(f"${name} cannot be read: {error}", hint=_NAME_ONE) from error
            if shutil.which(argv[0]) is None:
                raise BadInput(f"${name} names {argv[0]!r}, and there is no such program", hint=_NAME_ONE)
            return argv
    found = next((name for name in _USUAL if shutil.which(name)), None)
    if found is None:
        raise BadInput("There is no editor", hint=_NAME_ONE)
    return [found]


def words_of(command: str, *, posix: bool) -> list[str]:
    """A command line as words, without their quotation marks. Outside of POSIX a backslash is part of a path, and only
    double quotation marks hold words together. Raises `ValueError` for one that is not closed."""
    scanner = shlex.shlex(command, posix=True)
    scanner.whitespace_split, scanner.commenters = True, ""
    if not posix:
        scanner.escape, scanner.quotes = "", '"'
    return list(scanner)


async def edited(app: App[Any], text: str) -> str:
    """The text as the person leaves it in their editor. What runs in the shell goes on meanwhile.

    Raises `BadInput` where there is no editor, it fails, or the terminal is not the program's to lend.
    """
    argv = editor_argv(os.environ)
    with tempfile.TemporaryDirectory(prefix="cdd-") as folder:
        file = Path(folder) / "prompt.md"
        file.write_text(text, encoding="utf-8", newline="")
        await open_in_editor(app, argv, file)
        try:
            return file.read_bytes().decode("utf-8").replace("\r\n", "\n").removesuffix("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise BadInput(f"What {argv[0]} has left cannot be read: {error}") from error


async def edit_file(app: App[Any], file: Path) -> None:
    """Raises `BadInput` as `edited` does."""
    await open_in_editor(app, editor_argv(os.environ), file)


async def edit_at_line(app: App[Any], path: Path, line: int) -> None:
    """Open a file at a line. Raises `BadInput` as `edited` does."""
    argv = editor_argv(os.environ)
    await open_in_editor(app, argv, *at_line(argv[0], path, line))


def at_line(program: str, path: Path, line: int) -> tuple[str, ...]:
    """The arguments that open a file at a line, as far as it is known how the program is told that."""
    name = Path(program).name.removesuffix(".exe")
    if name in _PLUS_LINE:
        return f"+{line}", str(path)
    if name in _GOTO:
        return "--goto", f"{path}:{line}"
    return (f"{path}:{line}" if name in _COLON_LINE else str(path),)


async def open_in_editor(app: App[Any], argv: list[str], *arguments: Path | str) -> None:
    """Wait until the editor is closed. Raises `BadInput` where it fails, or cannot be opened."""
    from textual.app import SuspendNotSupported

    failed, code = "", 0
    try:
        with app.batch_update(), app.suspend(), _interrupts_for_others():
            try:
                code = await in_thread(partial(run_in_foreground, [*argv, *map(str, arguments)]), name="editor")
            except OSError as error:  # let through here, it would leave the app suspended
                failed = error.strerror or str(error)
    except SuspendNotSupported as error:
        raise BadInput("This terminal cannot be lent to an editor") from error
    if failed:
        raise BadInput(f"{argv[0]} could not be started: {failed}", hint=_NAME_ONE)
    if code:
        raise BadInput(f"{argv[0]} ended with exit code {code}; nothing was taken from it")


@contextmanager
def _interrupts_for_others() -> Iterator[None]:
    """Ctrl+C is the editor's while it has the terminal; a handler, unlike `SIG_IGN`, is not handed on to it."""
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
