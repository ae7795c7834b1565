from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from textual import constants, events, messages

from cdd_agent.pattern import Pattern
from cdd_agent.text.sanitize import is_text, text_of_paste
from cdd_agent.tui.terminal_input.driver_messages import BackgroundReported
from cdd_agent.tui.terminal_input.key_names import (
    ALT_KEYS,
    CHARACTERS_OF_KEYS,
    CONTROL_KEYS,
    KEYPAD,
    KEYS_BY_CODE,
    KEYS_BY_LETTER,
    KEYS_BY_NUMBER,
    LINUX_CONSOLE,
    OPTION_CHARACTERS,
    RXVT_LETTERS,
    RXVT_MODIFIERS,
    name_of_character,
    name_with_alt,
    name_with_modifiers,
    pressed_modifiers,
)
from cdd_agent.tui.terminal_input.splitting import AltCharacter, Pasted, PasteEnd
from cdd_agent.tui.terminal_input.typed_text import key_event

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.message import Message

    from cdd_agent.tui.terminal_input.splitting import Token

_ITERM = "iTerm2", "iTerm.app"
"""It reports wrong sizes."""
_RELEASED = "3"
"""The kitty protocol's event type for a released key."""
_EXTRA_BUTTONS = 128


class Decoder:
    """Decodes the tokens of one terminal, and tracks its mouse."""

    def __init__(self) -> None:
        self._mouse_at = 0.0, 0.0
        self._cell: tuple[float, float] = (1.0, 1.0)
        """Columns and rows for each unit of the mouse's position."""

    def decode(self, token: Token) -> list[Message]:
        """Return the events of a token. An unknown sequence has none."""
        match token:
            case Pasted(text):
                text = text_of_paste(text)
                return [events.Paste(text)] if text else []
            case AltCharacter(character):
                return [_key_with_alt(character)]
            case PasteEnd():
                return []
            case str() if len(token) == 1:
                return [*_keys_of_character(token)]
        for pattern, decode in self._reports:
            match = pattern.fullmatch(token)
            if match is not None:
                return decode(self, match)
        return [*_keys_of_sequence(token)]

    def _mouse(self, match: re.Match[str]) -> list[Message]:
        code, column, row = int(match[1]), int(match[2]) - 1, int(match[3]) - 1
        if column < 0 or row < 0 or code & _EXTRA_BUTTONS:
            return []
        x, y = column * self._cell[0], row * self._cell[1]
        last_x, last_y = self._mouse_at
        self._mouse_at = x, y
        kind: type[events.MouseEvent] = events.MouseMove
        button = (code + 1) & 3
        if code & 64:
            kind, button = _SCROLLING[code & 3], 0
        elif button and not code & 32:
            kind = events.MouseDown if match[4] == "M" else events.MouseUp
        return [
            kind(
                None,
                x,
                y,
                int(x) - int(last_x),
                int(y) - int(last_y),
                button,
                bool(code & 4),
                bool(code & 8),
                bool(code & 16),
                screen_x=x,
                screen_y=y,
            )
        ]

    def _resize(self, match: re.Match[str]) -> list[Message]:
        height, width, pixel_height, pixel_width = map(int, match.groups())
        if pixel_height and pixel_width:
            self._cell = width / pixel_width, height / pixel_height
        event = events.Resize.from_dimensions(
            (width, height), (pixel_width, pixel_height)
        )
        return [event]

    def _mode(self, match: re.Match[str]) -> list[Message]:
        mode, setting = match[1], int(match[2])
        if mode == "2026" and setting:
            return [messages.TerminalSupportsSynchronizedOutput()]
        if mode == "2048" and constants.SMOOTH_SCROLL and not _is_iterm():
            return [messages.InBandWindowResize.from_setting_parameter(setting)]
        return []

    def _cursor(self, match: re.Match[str]) -> list[Message]:
        return [events.CursorPosition(int(match[2]) - 1, int(match[1]) - 1)]

    def _background(self, match: re.Match[str]) -> list[Message]:
        return [BackgroundReported(match[1])]

    def _focus(self, match: re.Match[str]) -> list[Message]:
        return [events.AppFocus() if match[1] == "I" else events.AppBlur()]

    _reports: tuple[
        tuple[Pattern[str], Callable[[Decoder, re.Match[str]], list[Message]]], ...
    ] = (
        (Pattern(r"\x1b\[<(\d+);(-?\d+);(-?\d+)([Mm])"), _mouse),
        (Pattern(r"\x1b\[([IO])"), _focus),
        (Pattern(r"\x1b\[(\d+);(\d+)R"), _cursor),
        (Pattern(r"\x1b\[\?(\d+);(\d)\$y"), _mode),
        (
            Pattern(
                r"\x1b\[48;(\d+)[\d:]*;(\d+)[\d:]*;(\d+)[\d:]*;(\d+)[\d:]*t",
            ),
            _resize,
        ),
        (Pattern(r"\x1b\]11;([^\x07\x1b]{1,64})(?:\x07|\x1b\\)"), _background),
    )


_SCROLLING = (
    events.MouseScrollUp,
    events.MouseScrollDown,
    events.MouseScrollLeft,
    events.MouseScrollRight,
)


def _is_iterm() -> bool:
    return (
        os.environ.get("LC_TERMINAL") in _ITERM
        or os.environ.get("TERM_PROGRAM") in _ITERM
    )


def _keys_of_character(character: str) -> list[events.Key]:
    if character not in CONTROL_KEYS and not is_text(character):
        return []
    return [key_event(name_of_character(character), character)]


def _key_with_alt(character: str) -> events.Key:
    if character in ALT_KEYS:
        return events.Key(ALT_KEYS[character], None)
    if character in OPTION_CHARACTERS:
        character = OPTION_CHARACTERS[character]
        return events.Key(name_of_character(character), character)
    typed = character if is_text(character) else None
    return key_event(name_with_alt(character), typed)


def _keys_of_sequence(sequence: str) -> list[events.Key]:
    introducer, parameters, final = sequence[1], sequence[2:-1], sequence[-1]
    if introducer == "O":
        return _keys_of_ss3(parameters, final)
    if introducer != "[":
        return []
    if parameters == "[":
        return _functional_key(LINUX_CONSOLE.get(final), "")
    if not re.fullmatch(r"[\d:;]*", parameters):
        return []
    return _keys_of_csi(parameters, final)


def _keys_of_csi(parameters: str, final: str) -> list[events.Key]:
    numbers = parameters.split(";")
    first = _number(numbers[0])
    modifiers = numbers[1] if len(numbers) > 1 else ""
    match final:
        case "~" if first == 27 and len(numbers) == 3:
            return _keys_of_code(_number(numbers[2]), modifiers, "")
        case "~":
            return _functional_key(KEYS_BY_NUMBER.get(first), modifiers)
        case "u" if first > 1:
            text = numbers[2] if len(numbers) > 2 else _shifted(numbers[0], modifiers)
            return _keys_of_code(first, modifiers, text)
        case "Z":
            return _functional_key("tab", modifiers or "2")
        case "$" | "^" | "@":
            return _functional_key(
                KEYS_BY_NUMBER.get(first), str(RXVT_MODIFIERS[final])
            )
        case _:
            return _keys_of_letter(final, parameters, modifiers)


def _keys_of_letter(final: str, parameters: str, modifiers: str) -> list[events.Key]:
    if final in RXVT_LETTERS and not parameters:
        return _functional_key(RXVT_LETTERS[final], "2")
    if final in KEYPAD and modifiers:
        return _functional_key(KEYPAD[final], modifiers)
    # Old terminals send the modifiers alone: CSI 5 A.
    number = parameters.partition(";")[0]
    return _functional_key(
        KEYS_BY_LETTER.get(final), modifiers or number.replace("1", "", 1)
    )


def _keys_of_ss3(modifiers: str, final: str) -> list[events.Key]:
    if final == "M":
        return _functional_key("enter", modifiers)
    if final in RXVT_LETTERS:
        return _functional_key(RXVT_LETTERS[final], "5")
    if final in KEYPAD and not modifiers:
        return _keys_of_character(KEYPAD[final])
    return _functional_key(KEYS_BY_LETTER.get(final), modifiers)


def _functional_key(name: str | None, modifiers: str) -> list[events.Key]:
    """Return a key that types nothing. `modifiers` is a number, optionally followed by
    a colon and the event type.
    """
    number, _, kind = modifiers.partition(":")
    if name is None or kind == _RELEASED:
        return []
    return [
        events.Key(name_with_modifiers(name, pressed_modifiers(_number(number))), None)
    ]


def _keys_of_code(code: int, modifiers: str, text: str) -> list[events.Key]:
    """Return the keys of kitty's protocol and of `modifyOtherKeys`. `text` contains the
    codes of the typed characters, if the terminal reports them.
    """
    number, _, kind = modifiers.partition(":")
    if kind == _RELEASED:
        return []
    pressed = pressed_modifiers(_number(number))
    typed = [_character(_number(part)) for part in text.split(":") if part]
    keys = []
    for character in typed or [None]:
        name = KEYS_BY_CODE.get(code)
        if name is None:
            character_of_key = character or _character(code)
            if character_of_key is None or not is_text(character_of_key):
                continue
            name = name_of_character(character_of_key)
        keys.append(_key_of_code(name, pressed, character, _character(code)))
    return keys


def _shifted(codes: str, modifiers: str) -> str:
    """Return the code of the text that Shift and a key type, if the terminal does not
    report it. It is known only for letters and the space.
    """
    code, _, alternative = codes.partition(":")
    character = _character(_number(code))
    if pressed_modifiers(_number(modifiers)) != ["shift"] or character is None:
        return ""
    if alternative:
        return alternative.partition(":")[0]
    shifted = character.upper()
    is_known = len(shifted) == 1 and (character.isalpha() or character == " ")
    return str(ord(shifted)) if is_known else ""


def _key_of_code(
    name: str, pressed: list[str], typed: str | None, plain: str | None
) -> events.Key:
    if typed is not None:
        # Shift and Alt are already part of the text.
        ignored = ("alt",) if typed.isspace() else ("alt", "shift")
        pressed = [modifier for modifier in pressed if modifier not in ignored]
        return key_event(name_with_modifiers(name, pressed), typed)
    if pressed:
        return events.Key(name_with_modifiers(name, pressed), None)
    if name in CHARACTERS_OF_KEYS:
        return events.Key(name, CHARACTERS_OF_KEYS[name])
    is_typed = plain is not None and is_text(plain) and name_of_character(plain) == name
    return key_event(name, plain if is_typed else None)


def _number(digits: str) -> int:
    """Return the first value of a parameter, by default 1."""
    first = digits.partition(":")[0]
    return int(first) if first else 1


def _character(code: int) -> str | None:
    is_character = code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF
    return chr(code) if is_character else None
