"""The charset that a project declares for a file, in `.editorconfig` or
`.gitattributes`.

Formats: https://spec.editorconfig.org (`charset`) and
https://git-scm.com/docs/gitattributes (`working-tree-encoding`, `encoding`). Number
ranges (`{1..3}`) and macros of attributes are not read.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath, PurePosixPath

from msgspec import Struct

from cdd_agent.files.globs import PatternRefused, compile_glob, expand
from cdd_agent.files.regular_files import read_small

_LARGEST = 200_000
"""Bytes of a file of declarations that are read."""
_SECTION = re.compile(r"\[(?P<pattern>[^\n]+)\]")
_SETTING = re.compile(r"(?P<key>[\w-]+)[ \t]*[:=][ \t]*(?P<value>[^\s#;]*)")
_ATTRIBUTES = re.compile(r'(?:"(?P<quoted>[^"]*)"|(?P<bare>\S+))\s+(?P<attributes>.*)')
_ENCODING = re.compile(r"(?:^|\s)(?:working-tree-encoding|encoding)=(?P<name>\S+)")


class Charsets:
    """The charsets that a project declares. Each file of declarations is read once, so
    one of these serves a run of many files, and none is kept for long.
    """

    def __init__(self, root: Path | None) -> None:
        """`None`: no project, so nothing is declared."""
        self._root = None if root is None else root.resolve()
        self._settings: dict[Path, tuple[_Setting, ...]] = {}
        self._attributes: dict[Path, tuple[tuple[str, str], ...]] = {}

    def declared(self, path: PurePosixPath) -> str:
        """The charset that is declared for a file of the project, as it is written
        there; empty if none is. `.editorconfig` counts first.
        """
        if self._root is None:
            return ""
        return self._in_editorconfig(self._root / path) or self._in_gitattributes(
            self._root, path
        )

    def _in_editorconfig(self, place: Path) -> str:
        for folder in place.parents:
            if folder not in self._settings:
                text = read_small(folder / ".editorconfig", _LARGEST)
                self._settings[folder] = tuple(_settings(text))
            settings = self._settings[folder]
            charset = _last_match(
                [
                    (setting.pattern, setting.value)
                    for setting in settings
                    if setting.is_charset
                ],
                place.relative_to(folder),
            )
            if charset:
                return "" if charset == "unset" else charset
            if any(setting.is_top for setting in settings):
                break
        return ""

    def _in_gitattributes(self, root: Path, path: PurePosixPath) -> str:
        for folder in path.parents:
            place = root / folder
            if place not in self._attributes:
                text = read_small(place / ".gitattributes", _LARGEST)
                self._attributes[place] = tuple(_attributes(text))
            charset = _last_match(self._attributes[place], path.relative_to(folder))
            if charset:
                return charset
        return ""


class _Setting(Struct, frozen=True):
    """A setting of `.editorconfig` that matters here."""

    pattern: str
    """Of its section; empty above the first one."""
    key: str
    value: str

    @property
    def is_charset(self) -> bool:
        return self.key == "charset" and bool(self.pattern)

    @property
    def is_top(self) -> bool:
        """True if folders above this one declare nothing for it."""
        return self.key == "root" and not self.pattern and self.value == "true"


def _settings(editorconfig: str) -> Iterator[_Setting]:
    pattern = ""
    for line in editorconfig.removeprefix("\ufeff").splitlines():
        bare = line.strip()
        if section := _SECTION.match(bare):
            pattern = section["pattern"]
        elif setting := _SETTING.match(bare):
            key = setting["key"].lower()
            if key in ("charset", "root"):
                yield _Setting(pattern, key, setting["value"].lower())


def _attributes(text: str) -> Iterator[tuple[str, str]]:
    """Each pattern of `.gitattributes` with the charset that it declares."""
    for line in text.splitlines():
        attributes = _ATTRIBUTES.fullmatch(line.strip())
        if attributes is None or line.lstrip().startswith("#"):
            continue
        encoding = _ENCODING.search(attributes["attributes"])
        if encoding:
            yield attributes["quoted"] or attributes["bare"] or "", encoding["name"]


def _last_match(rows: Sequence[tuple[str, str]], path: PurePath) -> str:
    """The charset of the last pattern that matches; empty if none does."""
    charset = ""
    for pattern, declared in rows:
        if _matches(pattern, path.as_posix()):
            charset = declared
    return charset


def _matches(pattern: str, path: str) -> bool:
    """Whether a pattern of either file matches a path from that file's folder. One
    without a slash matches the name in any folder.
    """
    if "/" not in pattern:
        pattern = f"**/{pattern}"
    try:
        globs = expand(pattern.removeprefix("/"))
        return any(compile_glob(glob)(path) for glob in globs)
    except PatternRefused:
        return False


NOTHING_DECLARED = Charsets(None)
