"""Textual's names of keys, for the sequences of terminals."""

import unicodedata
from collections.abc import Iterable
from functools import lru_cache

from textual.keys import KEY_NAME_REPLACEMENTS

CONTROL_KEYS = {
    **{chr(code): f"ctrl+{chr(code + 96)}" for code in range(1, 27)},
    "\x00": "ctrl+@",
    "\x08": "backspace",
    "\t": "tab",
    "\r": "enter",
    "\x1b": "escape",
    "\x1c": "ctrl+backslash",
    "\x1d": "ctrl+right_square_bracket",
    "\x1e": "ctrl+circumflex_accent",
    "\x1f": "ctrl+underscore",
    " ": "space",
    "\x7f": "backspace",
}
"""Control characters and the space."""

CHARACTERS_OF_KEYS = {"enter": "\r", "tab": "\t", "backspace": "\x7f"}

KEYS_BY_LETTER = {
    "A": "up",
    "B": "down",
    "C": "right",
    "D": "left",
    "E": "kp_begin",
    "F": "end",
    "H": "home",
    "P": "f1",
    "Q": "f2",
    "R": "f3",
    "S": "f4",
}
"""`CSI A`, `CSI 1 ; modifiers A`, `SS3 A`."""

KEYPAD = {
    "j": "*",
    "k": "+",
    "l": ",",
    "m": "-",
    "n": ".",
    "o": "/",
    "X": "=",
    **dict(zip("pqrstuvwxy", "0123456789", strict=True)),
}
"""`SS3 j`: the keypad in application mode."""

RXVT_LETTERS = {"a": "up", "b": "down", "c": "right", "d": "left"}
"""`CSI a` with Shift, `SS3 a` with Ctrl."""

LINUX_CONSOLE = {"A": "f1", "B": "f2", "C": "f3", "D": "f4", "E": "f5"}
"""`CSI [ A`."""

KEYS_BY_NUMBER = {
    1: "home",
    2: "insert",
    3: "delete",
    4: "end",
    5: "pageup",
    6: "pagedown",
    7: "home",
    8: "end",
    **{number: f"f{number - 10}" for number in range(11, 16)},
    **{number: f"f{number - 11}" for number in range(17, 22)},
    **{number: f"f{number - 12}" for number in range(23, 27)},
    **{number: f"f{number - 13}" for number in (28, 29)},
    **{number: f"f{number - 14}" for number in range(31, 35)},
    57427: "kp_begin",
}
"""`CSI 5 ~`, `CSI 5 ; modifiers ~`."""

RXVT_MODIFIERS = {"$": 2, "^": 5, "@": 6}
"""`CSI 5 ^`: the last character is the modifier, here as xterm's number."""

_KITTY_LOCKS = "caps_lock scroll_lock num_lock print_screen pause menu"
_KITTY_KEYPAD = """
0 1 2 3 4 5 6 7 8 9 decimal divide multiply subtract add enter equal separator
left right up down pageup pagedown home end insert delete kp_begin
media_play media_pause media_play_pause media_reverse media_stop media_fast_forward
media_rewind media_track_next media_track_previous media_record
lower_volume raise_volume mute_volume
"""
_KITTY_MODIFIER_KEYS = """
left_shift left_control left_alt left_super left_hyper left_meta
right_shift right_control right_alt right_super right_hyper right_meta
iso_level3_shift iso_level5_shift
"""

MODIFIER_KEYS = frozenset(_KITTY_MODIFIER_KEYS.split())

KEYS_BY_CODE = {
    8: "backspace",
    9: "tab",
    13: "enter",
    27: "escape",
    127: "backspace",
    **dict(enumerate(_KITTY_LOCKS.split(), 57358)),
    **{57363 + number: f"f{number}" for number in range(13, 36)},
    **dict(enumerate(_KITTY_KEYPAD.split(), 57399)),
    **dict(enumerate(_KITTY_MODIFIER_KEYS.split(), 57441)),
}
"""`CSI 13 u`, `CSI 13 ; modifiers ; text u`: kitty's keyboard protocol."""

_MODIFIERS = ("shift", "alt", "ctrl", "super", "hyper", "meta")

OPTION_CHARACTERS = dict(zip("§1234567890-=", "§¡™£¢∞§¶•ªº–≠", strict=True))
"""Characters of the Option key on a Mac. Some terminals send them as `ESC 1`."""

ALT_KEYS = {
    "\t": "shift+tab",
    "\x7f": "ctrl+w",
    "f": "ctrl+right",
    "b": "ctrl+left",
}
"""Keys that terminals send as Escape and a character. They type nothing."""


@lru_cache(maxsize=1024)
def name_of_character(character: str) -> str:
    if character in CONTROL_KEYS:
        return CONTROL_KEYS[character]
    if character.isalnum():
        return character
    name = unicodedata.name(character, character)
    name = name.lower().replace("-", "_").replace(" ", "_")
    return KEY_NAME_REPLACEMENTS.get(name, name)


def name_with_alt(character: str) -> str:
    *modifiers, key = name_of_character(character).split("+")
    if len(key) == 1 and key.isupper():
        modifiers.append("shift")
        key = key.lower()
    return name_with_modifiers(key, ["alt", *modifiers])


def pressed_modifiers(number: int) -> list[str]:
    """Return the modifiers in xterm's number, which is their bits plus one. Caps Lock
    and Num Lock are omitted.
    """
    bits = max(number - 1, 0)
    return [name for bit, name in enumerate(_MODIFIERS) if bits & (1 << bit)]


def name_with_modifiers(key: str, modifiers: Iterable[str]) -> str:
    """Return `ctrl+shift+up` for `up` and modifiers in any order."""
    if key in MODIFIER_KEYS:
        return key
    return "+".join([*sorted(modifiers), key])
