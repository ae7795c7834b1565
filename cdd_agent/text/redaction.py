"""Remove secrets from text before it is stored or shown.

A secret is the value of a variable whose name suggests it (`secret_names.py`), a key
that the user typed, or a text in the shape of a well-known credential. Shapes have
bounded lengths, so the time is linear in the text, and a stream holds back only the
part that may become a secret.
"""

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.network.keys import clean_key
from cdd_agent.pattern import Pattern
from cdd_agent.text.secret_names import is_secret_name

_MIN_LENGTH = 8
_MAX_WORD_LENGTH = 15
_MIN_CHARACTERS = 4
"""Minimum number of different characters in a secret. `********` is a placeholder."""
_MARK = "[redacted]"
_CONTEXT = 2
"""Characters before a shape that matter for its beginning."""

_typed_keys: dict[str, str] = {}
"""Keys that the user typed in this process, with their variables' names."""

T = TypeVar("T")


def hide_typed_key(key: str, name: str) -> None:
    """Redact a key in all texts from now on, even by existing redactors."""
    if _can_be_secret(key):
        _typed_keys[key] = name


def is_typed_key(key: str) -> bool:
    return key in _typed_keys


def forget_typed_keys() -> None:
    """For tests: a process has one user."""
    _typed_keys.clear()


class _Run(Struct, frozen=True):
    characters: str
    least: int
    most: int


_Shape = list[_Run]


def _shape(*parts: str | _Run) -> _Shape:
    runs = []
    for part in parts:
        if isinstance(part, _Run):
            runs.append(part)
        else:
            runs += [_Run(re.escape(letter), 1, 1) for letter in part]
    return runs


_LETTERS, _BASE64URL = "[A-Za-z0-9]", "[A-Za-z0-9_-]"
_CAPITALS = "[A-Z ]"
_KEY_BODY = r"(?:[A-Za-z0-9+/=:,.\s\\]|-[A-Za-z0-9+/=:,.\s\\])"
_PREFIXES = {
    ("sk-",): _Run(_LETTERS, 20, 255),
    ("sk-ant-", "sk-proj-", "sk-svcacct-", "sk-admin-", "sk-or-", "glpat-"): _Run(
        _BASE64URL, 20, 255
    ),
    ("gsk_", "csk-", "xai-", "pplx-", "hf_", "r8_"): _Run(_LETTERS, 30, 255),
    ("nvapi-", "tgp_v1_", "sk_"): _Run(_BASE64URL, 30, 255),
    ("gho_", "ghp_", "ghr_", "ghs_", "ghu_"): _Run(_LETTERS, 36, 255),
    ("github_pat_",): _Run("[A-Za-z0-9_]", 22, 255),
    ("AKIA", "ASIA"): _Run("[A-Z0-9]", 16, 16),
    ("xoxa-", "xoxb-", "xoxe-", "xoxo-", "xoxp-", "xoxr-", "xoxs-"): _Run(
        "[A-Za-z0-9-]", 10, 255
    ),
    ("AIza",): _Run(_BASE64URL, 35, 35),
}
"""Credentials: prefix, and what follows."""
_SIGNED_TOKEN = _shape(
    *("eyJ", _Run(_BASE64URL, 8, 4096)),
    *(".eyJ", _Run(_BASE64URL, 8, 8192)),
    *(".", _Run(_BASE64URL, 16, 2048)),
)
"""A JWT."""
_WORDS = [
    *[_shape(prefix, run) for names, run in _PREFIXES.items() for prefix in names],
    _SIGNED_TOKEN,
]
"""Shapes of whole words: the `sk-…` in `task-…` means nothing."""
_ADDRESS = _shape(
    *("://", _Run(r"[^\s/:@\"'`<>{}\\]", 0, 128)),
    *(":", _Run(r"[^\s/\"'`<>{}\\]", 1, 256), "@"),
)
_PRIVATE_KEY = _shape(
    *("-----BEGIN ", _Run(_CAPITALS, 0, 30), "PRIVATE KEY", _Run(_CAPITALS, 0, 10)),
    *("-----", _Run(_KEY_BODY, 1, 16384), "-----END ", _Run(_CAPITALS, 1, 50)),
    "-----",
)
_OTHERS = [_ADDRESS, _PRIVATE_KEY]
_MAX_SHAPE = 2 * max(sum(run.most for run in shape) for shape in [*_WORDS, *_OTHERS])
"""A character of a run may be two long."""
# a word may also begin after an escaped line break
_WORD_START = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"


def _whole_pattern(shape: _Shape) -> str:
    return "".join(f"{run.characters}{{{run.least},{run.most}}}" for run in shape)


def _partial_pattern(shape: _Shape) -> str:
    pattern = ""
    for run in reversed(shape):
        part = f"{run.characters}{{0,{run.most}}}"
        whole = f"{run.characters}{{{run.least},{run.most}}}"
        pattern = f"(?:{whole}{pattern}|{part})" if pattern else part
    return pattern


def _any_shape(words: list[str], others: list[str], *, first: int) -> str:
    """Match all shapes. Comparing their `first` characters first saves time."""
    starts = set()
    for shape in [*_WORDS, *_OTHERS]:
        starts.add("".join(run.characters for run in shape[:first]))
    return (
        f"(?={'|'.join(sorted(starts))})"
        f"(?:{_WORD_START}(?:{'|'.join(words)})|{'|'.join(others)})"
    )


_WHOLE = _any_shape(
    [_whole_pattern(shape) for shape in _WORDS],
    [_whole_pattern(shape) for shape in _OTHERS],
    first=2,
)
_PARTIAL = Pattern(
    _any_shape(
        [_partial_pattern(shape) for shape in _WORDS],
        [_partial_pattern(shape) for shape in _OTHERS],
        first=1,
    )
    + r"\Z"
)

_FOLDER = r"(?:(?<![\w.~*)\]}}…-])|(?<=\\[nrt])){}(?![\w-])"
"""A folder's path that is not part of another path or name. It may follow a line end or
a tab in JSON.
"""


class Redactor:
    """Replaces texts of known shapes, and given values by the names of their
    variables.
    """

    def __init__(
        self,
        names: Mapping[str, str] | None = None,
        folders: Mapping[str, str] | None = None,
    ) -> None:
        """`folders` are absolute paths and their names. Such a text within another
        path, as `/app` in `src/app.py`, is not the folder.
        """
        self._given = dict(names or {})
        self._folders = dict(folders or {})
        self._find_names()

    def _find_names(self) -> None:
        self._typed = len(_typed_keys)
        self._names = {**self._given, **_typed_keys, **self._folders}
        patterns = []
        for value in sorted(self._names, key=len, reverse=True):
            pattern = re.escape(value)
            if value in self._folders:
                pattern = _FOLDER.format(pattern)
            patterns.append(pattern)
        self._pattern = re.compile("|".join([*patterns, _WHOLE]))

    @classmethod
    def of_environment(
        cls, hide: Iterable[str] = (), environment: Mapping[str, str] | None = None
    ) -> "Redactor":
        """Return a redactor for the secrets of this process. `hide` names additional
        variables. Variables that commands may see (`pass_env`) are secrets, too.
        """
        hide = tuple(hide)
        variables = os.environ if environment is None else environment
        names = {}
        for name, value in sorted(variables.items(), reverse=True):
            if not is_secret_name(name, hide=hide):
                continue
            # a key is sent without its quotes
            for secret in (value.strip(), clean_key(value).text):
                if _can_be_secret(secret):
                    names[secret] = name
        return cls(names)

    def with_folders(self, folders: Mapping[str, str]) -> "Redactor":
        return Redactor(self._given, {**self._folders, **folders})

    def redact(self, text: str) -> str:
        """Replace each secret by `[redacted]` or `[redacted: NAME]`."""
        self._take_over_typed_keys()
        return self._pattern.sub(self.replacement, text)

    def redacted(self, value: T) -> T:
        """Redact all texts of a value, such as an event or a JSON value. Keys stay. A
        Struct without secrets is returned itself.
        """
        return cast("T", self._redact_value(value))

    def stream(self) -> "StreamRedactor":
        return StreamRedactor(self)

    def _take_over_typed_keys(self) -> None:
        if len(_typed_keys) != self._typed:
            self._find_names()

    def _redact_value(self, value: Any) -> Any:
        if type(value) is str:
            return self.redact(value)
        if isinstance(value, tuple | list):
            items = [self._redact_value(item) for item in value]
            is_same = all(new is old for new, old in zip(items, value, strict=True))
            return value if is_same else type(value)(items)
        if isinstance(value, dict):
            return {key: self._redact_value(item) for key, item in value.items()}
        if not isinstance(value, Struct):
            return value
        changes = {}
        for name in value.__struct_fields__:
            before = getattr(value, name)
            after = self._redact_value(before)
            if after is not before:
                changes[name] = after
        return replace(value, **changes) if changes else value

    def replacement(self, match: re.Match[str]) -> str:
        text = match[0]
        if text in self._names:
            return f"[redacted: {self._names[text]}]"
        if text.startswith("://"):
            user = text.removeprefix("://").partition(":")[0]
            return f"://{user}:{_MARK}@"
        return _MARK

    def find_secret(self, text: str, start: int) -> re.Match[str] | None:
        self._take_over_typed_keys()
        return self._pattern.search(text, start)

    def find_partial(self, text: str, start: int) -> int:
        """Return the index of the first text that may become a secret or a longer one,
        else the length of the text.
        """
        self._take_over_typed_keys()
        partial = _PARTIAL.search(text, max(start, len(text) - _MAX_SHAPE))
        first = partial.start() if partial else len(text)
        for value in self._names:
            longest = len(value) - 1
            if value in self._folders:
                # the next character decides
                longest += 1
            place = text.find(value[0], max(start, len(text) - longest))
            while 0 <= place < first:
                if value.startswith(text[place:]):
                    first = place
                place = text.find(value[0], place + 1)
        return first


class StreamRedactor:
    """Redacts a text in pieces, with the same result as for the whole."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._text = ""
        """A few characters that were passed on, and the waiting part."""
        self._start = 0

    def feed(self, piece: str) -> str:
        """Return the redacted text that can be passed on."""
        return self._take(piece, is_last=False)

    def end(self) -> str:
        """Return the rest of the text. Another text may follow."""
        rest = self._take("", is_last=True)
        self._text, self._start = "", 0
        return rest

    def _take(self, piece: str, *, is_last: bool) -> str:
        text, place = self._text + piece, self._start
        end = len(text) if is_last else self._redactor.find_partial(text, place)
        passed = []
        secret = self._redactor.find_secret(text, place)
        while secret and secret.start() < end:
            passed += [text[place : secret.start()], self._redactor.replacement(secret)]
            place = secret.end()
            if end < place:
                end = self._redactor.find_partial(text, place)
            secret = self._redactor.find_secret(text, place)
        passed.append(text[place:end])
        context = max(0, end - _CONTEXT)
        self._text, self._start = text[context:], end - context
        return "".join(passed)


def _can_be_secret(value: str) -> bool:
    is_word = (
        value.isalpha()
        and len(value) <= _MAX_WORD_LENGTH
        and (value[1:].islower() or value.isupper())
    )
    if len(value) < _MIN_LENGTH or is_word or len(set(value)) < _MIN_CHARACTERS:
        return False
    try:
        return not Path(value).exists()
    # too long for a path, or with a null character
    except (OSError, ValueError):
        return True
