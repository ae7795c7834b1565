"""The person's own editor: which it is, and how it is told a line."""

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

_PLUS_LINE = frozenset(
    (
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
        "ne",
    )
)
_GOTO = frozenset({"code", "code-insiders", "codium", "cursor", "windsurf"})
_COLON_LINE = frozenset({"hx", "helix", "subl", "zed", "zeditor"})


def editor_command(path: Path, line: int, environment: Mapping[str, str] = os.environ) -> tuple[str, ...] | None:
    """The command that opens a file at a line, by `$VISUAL` or `$EDITOR`; None where neither is set."""
    wanted = environment.get("VISUAL") or environment.get("EDITOR") or ""
    try:
        words = shlex.split(wanted)
    except ValueError:  # a quotation mark that nothing closes
        words = [wanted]
    if not words:
        return None
    name = Path(words[0]).name.removesuffix(".exe")
    if name in _PLUS_LINE:
        return (*words, f"+{line}", str(path))
    if name in _GOTO:
        return (*words, "--goto", f"{path}:{line}")
    return (*words, f"{path}:{line}" if name in _COLON_LINE else str(path))
