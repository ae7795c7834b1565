"""The themes of the shell: its own and all of Textual's.

The last theme is saved in the user's state, so that the next start can show it before
it reads the settings.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from textual.theme import BUILTIN_THEMES, Theme

from cdd_agent.errors import BadInput, CddError
from cdd_agent.files.atomic import write_atomic
from cdd_agent.settings.user_folders import state_folder

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from textual.app import App

AUTOMATIC = "auto"
_DARK_NUMBERS = (0, 1, 2, 3, 4, 5, 6, 8)
"""The dark colours among a terminal's sixteen."""
CONTRAST_THEME = Theme(
    name="cdd-contrast",
    primary="#7fd7ff",
    secondary="#7fd7ff",
    accent="#ffff5f",
    warning="#ffd75f",
    error="#ff8787",
    success="#87ff87",
    foreground="#ffffff",
    background="#000000",
    surface="#000000",
    panel="#1c1c1c",
    boost="#000000",
    text_alpha=1.0,
    variables={
        "text-muted": "#e4e4e4",
        "text-disabled": "#d0d0d0",
        "block-cursor-background": "#ffffff",
        "block-cursor-foreground": "#000000",
    },
)
_SHORT_NAMES: Mapping[str, Theme] = {
    "dark": BUILTIN_THEMES["textual-dark"],
    "light": BUILTIN_THEMES["textual-light"],
    "contrast": CONTRAST_THEME,
}
_DESCRIPTIONS: Mapping[str, str] = {
    "dark": "for dark terminals",
    "light": "for light terminals",
    "contrast": "high contrast",
    "ansi-dark": "your 16 colours",
    "ansi-light": "your 16 colours",
}


def _all_themes() -> dict[str, Theme]:
    """Return the themes by the names that users choose, cdd's own first."""
    themes = dict(_SHORT_NAMES)
    for name, theme in sorted(BUILTIN_THEMES.items()):
        if theme not in themes.values():
            themes[name] = theme
    return themes


THEMES: Mapping[str, Theme] = _all_themes()
THEME_NAMES = (*THEMES, AUTOMATIC)
"""The names that a user can type."""


class LastTheme(Struct, frozen=True):
    """The theme of the last session. `is_chosen`: a setting chose it."""

    name: str
    is_chosen: bool = False


def describe_theme(name: str) -> str:
    default = "dark" if THEMES[name].dark else "light"
    return _DESCRIPTIONS.get(name, default)


def load_last_theme(environment: Mapping[str, str] = os.environ) -> LastTheme:
    """Return the last session's theme; without one, decide by `COLORFGBG`, otherwise
    dark.
    """
    file = _file()
    with suppress(OSError, ValueError, RecursionError):
        content = json.loads(file.read_bytes()) if file else None
        if isinstance(content, dict) and content.get("theme") in THEMES:
            return LastTheme(content["theme"], content.get("chosen") is True)
    number = environment.get("COLORFGBG", "").rpartition(";")[2]
    if not number.isdecimal() or int(number) > 15 or int(number) in _DARK_NUMBERS:
        return LastTheme("dark")
    return LastTheme("light")


def save_last_theme(theme: LastTheme) -> None:
    """Save the theme for the next start. Ignore disk errors."""
    file = _file()
    if file is None:
        return
    with suppress(CddError):
        text = json.dumps({"theme": theme.name, "chosen": theme.is_chosen})
        write_atomic(file, f"{text}\n".encode())


def find_theme(typed: str) -> str:
    """Return the name that equals or uniquely begins with this text. Raises
    `BadInput`.
    """
    name = typed.lower()
    if name in THEME_NAMES:
        return name
    matches = [one for one in THEME_NAMES if name and one.startswith(name)]
    if len(matches) != 1:
        hint = f"Themes: {', '.join(THEME_NAMES)}."
        raise BadInput(f"Unknown theme {typed!r}", hint=hint)
    return matches[0]


def use_theme(app: App[Any], name: str) -> None:
    """Show a theme. A terminal of sixteen colours keeps its own colours."""
    app.register_theme(CONTRAST_THEME)
    theme = THEMES[name]
    if app.console.color_system == "standard" and theme is not CONTRAST_THEME:
        theme = BUILTIN_THEMES["ansi-dark" if theme.dark else "ansi-light"]
    app.theme = theme.name


def theme_for_background(colour: str) -> str | None:
    parts = _read_colour(colour)
    if parts is None:
        return None
    red, green, blue = parts
    return "light" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else "dark"


def _read_colour(colour: str) -> list[float] | None:
    """Return red, green and blue, each from 0 to 1."""
    scaled = re.fullmatch(
        r"rgba?:([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})"
        r"(?:/[0-9a-fA-F]+)?",
        colour,
    )
    if scaled:
        return [int(part, 16) / (16 ** len(part) - 1) for part in scaled.groups()]
    bytewise = re.fullmatch(r"#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})", colour.lower())
    if bytewise:
        return [int(part, 16) / 255 for part in bytewise.groups()]
    return None


def _file() -> Path | None:
    folder = state_folder()
    return folder / "theme.json" if folder else None
