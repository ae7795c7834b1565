"""Colours with readable contrast for each pair of text and background that the shell
draws.

`BACKGROUNDS_OF` lists the pairs. Style sheets and the transcript use its names as theme
variables.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache

from textual.color import Color

LEAST_CONTRAST = 4.5
"""The minimum for readable text in the Web Content Accessibility Guidelines 2."""
_AIM = 4.6
"""A margin, because colours are rounded."""
_TINT_CONTRAST = 6.0
"""The contrast of black or white text with a tint. More contrast keeps less hue."""
_BLACK, _WHITE = Color(0, 0, 0), Color(255, 255, 255)

_TINTS: Mapping[str, tuple[str, float]] = {
    "diff-removed": ("error", 0.15),
    "diff-added": ("success", 0.15),
    "diff-removed-word": ("error", 0.4),
    "diff-added-word": ("success", 0.4),
    "input-selection-background": ("primary", 0.4),
    "screen-selection-background": ("primary", 0.5),
    "block-hover-background": ("foreground", 0.1),
}
"""Mixes of the theme's background and a share of another colour."""

_PLAIN = ("background", "surface", "panel")
_CHANGED_LINES = ("diff-removed", "diff-added")
_CHANGED_WORDS = ("diff-removed-word", "diff-added-word")
_CODE = ("background", "surface", *_CHANGED_LINES)

CODE_COLOURS: Mapping[str, str] = {
    "code-quiet": "text-muted",
    "code-keyword": "text-accent",
    "code-string": "text-success",
    "code-number": "text-warning",
    "code-name": "text-primary",
    "code-builtin": "text-secondary",
    "code-removed": "text-error",
    "code-added": "text-success",
}
"""Colours of code and diffs, and their base colours in the theme."""
_LIKE: Mapping[str, str] = {
    **CODE_COLOURS,
    "on-primary": "background",
    "on-warning": "background",
    "on-success": "background",
    "screen-selection-foreground": "foreground",
}
"""Base colours for names that Textual lacks or makes transparent."""

BACKGROUNDS_OF: Mapping[str, tuple[str, ...]] = {
    "foreground": (*_CODE, *_CHANGED_WORDS, "panel", "block-hover-background"),
    "text-muted": _PLAIN,
    "text-disabled": _PLAIN,
    "text-primary": _PLAIN,
    "text-secondary": _PLAIN,
    "text-accent": _PLAIN,
    "text-warning": _PLAIN,
    "text-error": _PLAIN,
    "text-success": _PLAIN,
    "block-cursor-foreground": ("block-cursor-background",),
    "input-cursor-foreground": ("input-cursor-background",),
    "input-selection-foreground": ("input-selection-background",),
    "screen-selection-foreground": ("screen-selection-background",),
    "on-primary": ("primary",),
    "on-warning": ("warning",),
    "on-success": ("success",),
    **dict.fromkeys(CODE_COLOURS, _CODE),
}


def contrast_ratio(one: Color, other: Color) -> float:
    """Return the contrast of two opaque colours, from 1 to 21."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def readable_on(colour: Color, backgrounds: Iterable[Color]) -> Color:
    """Return the colour, lightened or darkened until it is readable on all
    backgrounds.
    """
    behind = list(backgrounds)
    end = max((_BLACK, _WHITE), key=lambda text: _lowest_contrast(text, behind))
    for tenths in range(10):
        mixed = colour.blend(end, tenths / 10)
        if _lowest_contrast(mixed, behind) >= _AIM:
            return mixed
    return end


def readable_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Return a theme's variables with readable colours. A theme of the terminal's own
    colours keeps them.
    """
    if Color.parse(variables["background"]).ansi is not None:
        return {**variables, **_terminal_colours(variables)}
    return {**variables, **_readable_colours(tuple(variables.items()))}


def _terminal_colours(variables: Mapping[str, str]) -> dict[str, str]:
    """Return substitutes for colours that a terminal has no name for. The contrast is
    unknown, so changed lines have no background.
    """
    colours = {name: variables[base] for name, base in CODE_COLOURS.items()}
    colours |= dict.fromkeys((*_CHANGED_LINES, *_CHANGED_WORDS), "transparent")
    colours |= dict.fromkeys(("on-warning", "on-success"), "ansi_black")
    colours["on-primary"] = "ansi_bright_white"
    return colours


@lru_cache(maxsize=4)
def _readable_colours(items: tuple[tuple[str, str], ...]) -> dict[str, str]:
    variables = dict(items)
    background = Color.parse(variables["background"])
    colours = {
        name: _tint(background, Color.parse(variables[base]), share)
        for name, (base, share) in _TINTS.items()
    }

    def find(name: str) -> Color:
        if name not in colours:
            colours[name] = _parse(variables[_LIKE.get(name, name)], background)
        return colours[name]

    if variables["block-cursor-foreground"].startswith("auto"):
        row = Color.parse(variables["block-cursor-background"])
        row = readable_on(row, [row + row.get_contrast_text(0.87)])
        colours["block-cursor-background"] = row
        colours["block-cursor-foreground"] = row + row.get_contrast_text(0.87)
    for name, backgrounds in BACKGROUNDS_OF.items():
        colours[name] = readable_on(find(name), map(find, backgrounds))
    return {name: colour.hex for name, colour in colours.items()}


def _parse(text: str, background: Color) -> Color:
    """Return an opaque colour. `auto 60%` contrasts with the background, at a share of
    60%.

    Where Textual reads a style from words, it drops that percentage, and muted text
    would be the brightest. So muted text must be a plain colour.
    """
    if not text.startswith("auto"):
        return background + Color.parse(text)
    share = text.removeprefix("auto").strip().removesuffix("%")
    return background + background.get_contrast_text(float(share or 100) / 100)


def _tint(background: Color, colour: Color, share: float) -> Color:
    tint = background.blend(colour, share)
    while share > 0 and _text_contrast(tint) < _TINT_CONTRAST:
        share -= 0.05
        tint = background.blend(colour, max(share, 0))
    return tint


def _text_contrast(background: Color) -> float:
    return max(contrast_ratio(text, background) for text in (_BLACK, _WHITE))


def _lowest_contrast(text: Color, backgrounds: Iterable[Color]) -> float:
    return min(contrast_ratio(text, background) for background in backgrounds)


def _luminance(colour: Color) -> float:
    weighted = 0.0
    for part, weight in zip(colour.normalized, (0.2126, 0.7152, 0.0722), strict=True):
        if part <= 0.04045:
            weighted += weight * part / 12.92
        else:
            weighted += weight * ((part + 0.055) / 1.055) ** 2.4
    return weighted
