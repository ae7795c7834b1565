"""How the shell looks: dark, light or in high contrast; chosen by the person, or else
by the terminal's background.

What was chosen is remembered where the person's other state is: it is theirs, not the
project's.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct
from textual.color import Color
from textual.theme import Theme

from cdd_agent.errors import BadInput, CddError
from cdd_agent.files.atomic import write_atomic
from cdd_agent.user_folders import state_folder

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from textual.app import App

AUTOMATIC = "auto"
_COLOURS_OF_TEXT = (
    *("text-primary", "text-secondary", "text-accent"),
    *("text-warning", "text-error", "text-success"),
)
_BACKGROUNDS = ("background", "surface", "panel")
"""The backgrounds of coloured text."""
_LEAST_CONTRAST = 4.6
"""The contrast of coloured text with its background. Readable text has 4.5; colours are
rounded.
"""
_BLACK_BY_NUMBER = (0, 1, 2, 3, 4, 5, 6, 8)
"""The dark colours among a terminal's sixteen."""


class Look(NamedTuple):
    """A theme that users can choose. On a terminal of sixteen colours it uses the
    user's own colours.
    """

    about: str
    theme: str
    in_sixteen: str


THEMES: Mapping[str, Look] = {
    "dark": Look("for a dark terminal", "textual-dark", "ansi-dark"),
    "light": Look("for a light terminal", "textual-light", "ansi-light"),
    "contrast": Look(
        "high contrast: black, white and a few bright colours",
        "cdd-contrast",
        "cdd-contrast",
    ),
}
_CONTRAST = Theme(
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


class ThemeChoice(Struct, frozen=True):
    """A theme, and whether the user chose it."""

    name: str
    is_chosen: bool = False


def remembered(environment: Mapping[str, str] = os.environ) -> ThemeChoice:
    """Return the theme that the user chose, or the last one that fitted the terminal;
    at first by the environment, or dark.
    """
    file = _file()
    with suppress(OSError, ValueError, RecursionError):
        kept = json.loads(file.read_bytes()) if file else None
        if isinstance(kept, dict) and kept.get("theme") in THEMES:
            return ThemeChoice(kept["theme"], kept.get("chosen") is True)
    last = environment.get("COLORFGBG", "").rpartition(";")[2]
    is_light = last.isdecimal() and int(last) < 16 and int(last) not in _BLACK_BY_NUMBER
    return ThemeChoice("light" if is_light else "dark")


def remember(choice: ThemeChoice) -> None:
    """Save the choice for the next start. A disk error is ignored."""
    file = _file()
    if file is None:
        return
    with suppress(CddError):
        text = json.dumps({"theme": choice.name, "chosen": choice.is_chosen})
        write_atomic(file, f"{text}\n".encode())


def known_theme(name: str) -> str:
    """Return the theme whose name is, or begins with, this text. Raises `BadInput`."""
    fitting = [
        known for known in (*THEMES, AUTOMATIC) if known.startswith(name.lower())
    ]
    if not name or len(fitting) != 1:
        raise BadInput(
            f"Unknown theme {name!r}",
            hint=f"Themes: {', '.join((*THEMES, AUTOMATIC))}.",
        )
    return fitting[0]


def use_theme(app: App[Any], name: str) -> None:
    """Use this theme."""
    look = THEMES[name]
    app.register_theme(_CONTRAST)
    app.theme = (
        look.in_sixteen if app.console.color_system == "standard" else look.theme
    )


def with_readable_text(variables: dict[str, str]) -> dict[str, str]:
    """Return a theme's variables with colours of text that contrast with each
    background, and a chosen row that contrasts with its text. A theme of a terminal's
    own colours stays unchanged.

    Muted text becomes a colour: where Textual reads a style from words, it drops the
    percentage of its own `auto 60%`, and what should be muted is the brightest text of
    all.
    """
    if not variables["text-muted"].startswith("auto"):
        return variables
    background = Color.parse(variables["background"])
    changed = {"text-muted": (background + background.get_contrast_text(0.6)).hex}
    for name in _COLOURS_OF_TEXT:
        colour = Color.parse(variables[name])
        for behind in _BACKGROUNDS:
            colour = _contrasting(colour, Color.parse(variables[behind]))
        changed[name] = colour.hex
    if variables["block-cursor-foreground"].startswith("auto"):
        chosen = Color.parse(variables["block-cursor-background"])
        text = chosen + chosen.get_contrast_text(0.87)
        changed["block-cursor-background"] = _contrasting(chosen, text).hex
    return {**variables, **changed}


def _contrasting(colour: Color, other: Color) -> Color:
    """Return the colour, or the nearest one that contrasts enough with the other."""
    full = other.get_contrast_text(1.0)
    for share in range(11):
        mixed = colour.blend(full, share / 10)
        if _contrast(mixed, other) >= _LEAST_CONTRAST:
            return mixed
    return full


def _contrast(one: Color, other: Color) -> float:
    """Return the contrast of two colours, as the Web Content Accessibility Guidelines
    define it.
    """
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: Color) -> float:
    weighted = 0.0
    for part, weight in zip(colour.normalized, (0.2126, 0.7152, 0.0722), strict=True):
        if part <= 0.04045:
            weighted += weight * part / 12.92
        else:
            weighted += weight * ((part + 0.055) / 1.055) ** 2.4
    return weighted


def by_background(colour: str) -> str | None:
    """Return the theme for a background such as `rgb:1e1e/1e1e/1e1e` or `#1e1e1e`; None
    for any other text.
    """
    if found := re.fullmatch(
        r"rgba?:([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})"
        r"(?:/[0-9a-fA-F]+)?",
        colour,
    ):
        parts = [int(part, 16) / (16 ** len(part) - 1) for part in found.groups()]
    elif found := re.fullmatch(
        r"#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})", colour.lower()
    ):
        parts = [int(part, 16) / 255 for part in found.groups()]
    else:
        return None
    red, green, blue = parts
    return "light" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else "dark"


def _file() -> Path | None:
    folder = state_folder()
    return folder / "theme.json" if folder else None
