"""The user's editor: which one, how to open a line, and file copies for it."""

import os
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from cdd_agent.errors import BadInput
from cdd_agent.refusals.kinds import Refusal

_USUAL = ("notepad",) if os.name == "nt" else ("sensible-editor", "nano", "vi")
_PLUS_LINE = (
    *(
        "vi",
        "vim",
        "nvim",
        "gvim",
        "view",
        "nano",
        "pico",
        "emacs",
        "emacsclient",
        "kak",
        "joe",
        "jed",
        "micro",
        "mg",
    ),
    *("ne", "sensible-editor"),
)
_GOTO = ("code", "code-insiders", "codium", "cursor", "windsurf")
_COLON_LINE = ("hx", "helix", "subl", "zed", "zeditor")
NAME_ONE = "Set $VISUAL or $EDITOR to an installed program."


def editor_argv(environment: Mapping[str, str]) -> list[str]:
    """Return the editor's command: $VISUAL, $EDITOR or an installed one. Raises
    `BadInput`.
    """
    for name in ("VISUAL", "EDITOR"):
        if text := environment.get(name, "").strip():
            try:
                argv = (
                    [text]
                    if shutil.which(text)
                    else words_of(text, posix=os.name != "nt")
                )
            except ValueError as error:
                raise BadInput(
                    f"${name} cannot be read: {error}",
                    hint=NAME_ONE,
                    refusal=Refusal.DISK,
                ) from error
            if shutil.which(argv[0]) is None:
                raise BadInput(
                    f"${name} names {argv[0]!r}, which is not installed",
                    hint=NAME_ONE,
                    refusal=Refusal.NO_EDITOR,
                )
            return argv
    program = next((name for name in _USUAL if shutil.which(name)), None)
    if program is None:
        raise BadInput("No editor program", hint=NAME_ONE, refusal=Refusal.NO_EDITOR)
    return [program]


def words_of(command: str, *, posix: bool) -> list[str]:
    """Split a command line into words without quotes. Outside POSIX, a backslash is
    part of a path and only double quotes group words. Raises `ValueError` for an open
    quote.
    """
    scanner = shlex.shlex(command, posix=True)
    scanner.whitespace_split, scanner.commenters = True, ""
    if not posix:
        scanner.escape, scanner.quotes = "", '"'
    return list(scanner)


def at_line(program: str, path: Path, line: int) -> tuple[str, ...]:
    """Return the arguments that open a file at a line, if the editor is known."""
    name = Path(program).name.removesuffix(".exe")
    if name in _PLUS_LINE:
        return f"+{line}", str(path)
    if name in _GOTO:
        return "--goto", f"{path}:{line}"
    return (f"{path}:{line}" if name in _COLON_LINE else str(path),)


@contextmanager
def copies(files: Mapping[str, bytes]) -> Iterator[Mapping[str, Path]]:
    with tempfile.TemporaryDirectory(prefix="cdd-") as folder:
        places = {name: Path(folder, name) for name in files}
        for name, place in places.items():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(files[name])
        yield places


def read_back(places: Mapping[str, Path]) -> dict[str, bytes]:
    """Return the edited contents. Raises `BadInput` if a copy cannot be read."""
    try:
        return {name: place.read_bytes() for name, place in places.items()}
    except OSError as error:
        raise BadInput(
            f"The edited text cannot be read: {error}", refusal=Refusal.DISK
        ) from error
