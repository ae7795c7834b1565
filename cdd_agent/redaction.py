"""Redaction: secrets are taken out of text before it is stored or shown.

A secret is the value of a variable whose name says so (`secret_names.py`), or what has
the shape of a well-known credential. Shapes are sequences of characters with bounded
lengths. So the time is linear in the text, and for any beginning of a text it is known
what could still become a secret: that is what a stream holds back.
"""

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.secret_names import is_secret_name

_SHORTEST = 8
_LONGEST_WORD = 15
_FEWEST_CHARACTERS = 4
"""Different ones in a value: what has fewer is no secret but a placeholder or a line,
as `********`.
"""
_MARK = "[redacted]"
_CONTEXT = 2
"""Characters before a shape that decide whether it begins there."""

Value = TypeVar("Value")


class _Run(Struct, frozen=True):
    """So many characters of a kind."""

    characters: str
    least: int
    most: int


def _credential(*parts: str | _Run) -> tuple[_Run, ...]:
    """A shape, from literal text and runs."""
    runs = (
        (
            (part,)
            if isinstance(part, _Run)
            else (_Run(re.escape(letter), 1, 1) for letter in part)
        )
        for part in parts
    )
    return tuple(run for some in runs for run in some)


_LETTERS, _CAPITALS, _BASE64URL = "[A-Za-z0-9]", "[A-Z ]", "[A-Za-z0-9_-]"
_KEY_BODY = r"(?:[A-Za-z0-9+/=:,.\s\\]|-[A-Za-z0-9+/=:,.\s\\])"
_WORDS = (
    _credential("sk-", _Run(_LETTERS, 20, 255)),
    *(
        _credential(f"sk-{kind}-", _Run(_BASE64URL, 20, 255))
        for kind in ("ant", "proj", "svcacct", "admin", "or")
    ),
    *(
        _credential(kind, _Run(_LETTERS, 30, 255))
        for kind in ("gsk_", "csk-", "xai-", "pplx-", "hf_", "r8_")
    ),
    *(
        _credential(kind, _Run(_BASE64URL, 30, 255))
        for kind in ("nvapi-", "tgp_v1_", "sk_")
    ),
    _credential("gh", _Run("[oprsu]", 1, 1), "_", _Run(_LETTERS, 36, 255)),
    _credential("glpat-", _Run(_BASE64URL, 20, 255)),
    _credential("github_pat_", _Run("[A-Za-z0-9_]", 22, 255)),
    _credential("A", _Run("[KS]", 1, 1), "IA", _Run("[A-Z0-9]", 16, 16)),
    _credential("xox", _Run("[abeoprs]", 1, 1), "-", _Run("[A-Za-z0-9-]", 10, 255)),
    _credential("AIza", _Run(_BASE64URL, 35, 35)),
    # A signed token (JWT): its first two parts are JSON objects.
    _credential(
        "eyJ",
        _Run(_BASE64URL, 8, 4096),
        ".eyJ",
        _Run(_BASE64URL, 8, 8192),
        ".",
        _Run(_BASE64URL, 16, 2048),
    ),
)
"""Credentials that are words of their own: within a longer word, as in `task-…`, they
are not what they look like.
"""
_ADDRESS = _credential(
    "://",
    _Run(r"[^\s/:@\"'`<>{}\\]", 0, 128),
    ":",
    _Run(r"[^\s/\"'`<>{}\\]", 1, 256),
    "@",
)
_PRIVATE_KEY = _credential(
    *(
        "-----BEGIN ",
        _Run(_CAPITALS, 0, 30),
        "PRIVATE KEY",
        _Run(_CAPITALS, 0, 10),
        "-----",
    ),
    *(_Run(_KEY_BODY, 1, 16384), "-----END ", _Run(_CAPITALS, 1, 50), "-----"),
)
_PLACED_ANYWHERE = (_ADDRESS, _PRIVATE_KEY)
# a unit may be two long
_LONGEST = 2 * max(
    sum(run.most for run in shape) for shape in (*_WORDS, *_PLACED_ANYWHERE)
)
_WORD_BEGINS = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"  # after an escaped line break, too


def _whole(shape: tuple[_Run, ...]) -> str:
    return "".join(f"{run.characters}{{{run.least},{run.most}}}" for run in shape)


def _begun(shape: tuple[_Run, ...]) -> str:
    """A pattern for the end of a text after which the shape could go on."""
    pattern = ""
    for run in reversed(shape):
        whole, part = (
            f"{run.characters}{{{least},{run.most}}}" for least in (run.least, 0)
        )
        pattern = f"(?:{whole}{pattern}|{part})" if pattern else part
    return pattern


def _beginnings(length: int) -> str:
    """A pattern for the first characters of all shapes, so that most of a text is done
    with quickly.
    """
    shapes = (*_WORDS, *_PLACED_ANYWHERE)
    return "|".join(
        sorted({"".join(run.characters for run in shape[:length]) for shape in shapes})
    )


_SHAPES, _BEGUN = (
    f"(?={_beginnings(length)})"
    f"(?:{_WORD_BEGINS}(?:{'|'.join(map(form, _WORDS))})"
    f"|{'|'.join(map(form, _PLACED_ANYWHERE))})"
    for form, length in ((_whole, 2), (_begun, 1))
)
_BEGINNING = re.compile(rf"{_BEGUN}\Z")


class Redactor:
    """Replaces secrets: those it is given as value → name of its variable, and those
    that have a known shape.
    """

    def __init__(self, names: Mapping[str, str] | None = None) -> None:
        self._names = dict(names or {})
        longest_first = sorted(self._names, key=len, reverse=True)
        self._pattern = re.compile("|".join([*map(re.escape, longest_first), _SHAPES]))

    @classmethod
    def of_environment(
        cls, hide: Iterable[str] = (), environment: Mapping[str, str] | None = None
    ) -> "Redactor":
        """Knows the secrets of this process. `hide` names variables beside those that
        look like secrets.

        What a command is allowed to see (`pass_env`) is no less secret in a file or on
        a screen.
        """
        hide = tuple(hide)
        variables = sorted(
            (os.environ if environment is None else environment).items(), reverse=True
        )
        found = {
            value.strip(): name
            for name, value in variables
            if is_secret_name(name, hide=hide)
        }
        return cls(
            {value: name for value, name in found.items() if _can_be_secret(value)}
        )

    def redact(self, text: str) -> str:
        """The text with each secret replaced by `[redacted]`, or `[redacted: NAME]`;
        all else is as it was.
        """
        return self._pattern.sub(self._replacement, text)

    def redacted(self, value: Value) -> Value:
        """A Struct, such as an event, with all its texts redacted; the same object if
        none holds a secret.
        """
        return cast("Value", self._redacted(value))

    def redacted_json(self, value: Any) -> Any:
        """A value of JSON with all its texts redacted; the keys stay."""
        match value:
            case str():
                return self.redact(value)
            case dict():
                return {key: self.redacted_json(item) for key, item in value.items()}
            case list() | tuple():
                return [self.redacted_json(item) for item in value]
            case _:
                return value

    def stream(self) -> "StreamRedactor":
        return StreamRedactor(self)

    def _redacted(self, value: object) -> object:
        if type(value) is str:
            return self.redact(value)
        if isinstance(value, tuple):
            items = tuple(map(self._redacted, value))
            return (
                items
                if any(new is not old for new, old in zip(items, value, strict=True))
                else value
            )
        if isinstance(value, Struct):
            before = {name: getattr(value, name) for name in value.__struct_fields__}
            after = {name: self._redacted(item) for name, item in before.items()}
            changed = {
                name: item for name, item in after.items() if item is not before[name]
            }
            return replace(value, **changed) if changed else value
        return value

    def _replacement(self, match: re.Match[str]) -> str:
        text = match[0]
        if text in self._names:
            return f"[redacted: {self._names[text]}]"
        if text.startswith("://"):
            user = text.removeprefix("://").partition(":")[0]
            return f"://{user}:{_MARK}@"
        return _MARK

    def _beginning(self, text: str, start: int) -> int:
        """Where the first secret begins, from `start` on, that the text may hold only a
        part of; else its end.
        """
        begun = _BEGINNING.search(text, max(start, len(text) - _LONGEST))
        first = begun.start() if begun else len(text)
        for value in self._names:
            place = text.find(value[0], max(start, len(text) - len(value) + 1))
            while 0 <= place < first:
                if value.startswith(text[place:]):
                    first = place
                place = text.find(value[0], place + 1)
        return first


class StreamRedactor:
    """Redacts a text that comes in pieces, as the whole would be. Only what may be a
    part of a secret has to wait.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._text = ""
        """The last characters that were passed on, and all that waits."""
        self._start = 0

    def feed(self, piece: str) -> str:
        """Take a piece; returns the text that can be passed on now, redacted."""
        text, place, passed = self._text + piece, self._start, []
        waiting = self._redactor._beginning(text, place)
        while (
            match := self._redactor._pattern.search(text, place)
        ) and match.start() < waiting:
            passed += [text[place : match.start()], self._redactor._replacement(match)]
            place = match.end()
            if waiting < place:
                waiting = self._redactor._beginning(text, place)
        context = max(0, waiting - _CONTEXT)
        self._text, self._start = text[context:], waiting - context
        return "".join([*passed, text[place:waiting]])

    def end(self) -> str:
        """End the text; returns the rest of it. Another text may be fed then."""
        pattern, text, start = self._redactor._pattern, self._text, self._start
        pieces = []
        for match in pattern.finditer(text, start):
            pieces += [text[start : match.start()], self._redactor._replacement(match)]
            start = match.end()
        self._text, self._start = "", 0
        return "".join([*pieces, text[start:]])


def _can_be_secret(value: str) -> bool:
    """Not short, a plain word, a line of the same characters, or a path: those are all
    over every text.
    """
    is_word = (
        value.isalpha()
        and len(value) <= _LONGEST_WORD
        and (value[1:].islower() or value.isupper())
    )
    if len(value) < _SHORTEST or is_word or len(set(value)) < _FEWEST_CHARACTERS:
        return False
    try:
        return not Path(value).exists()
    except (OSError, ValueError):  # too long for a path, or no path at all
        return True
