"""The charset that a project declares for a file, in `.editorconfig` or
`.gitattributes`.

Formats: https://spec.editorconfig.org (`charset`) and
https://git-scm.com/docs/gitattributes (`working-tree-encoding`, `encoding`). Number
ranges (`{1..3}`) and macros of attributes are not read.
"""

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path, PurePosixPath

from cdd_agent.files.globs import PatternRefused, expand
from cdd_agent.files.ignore import fits
from cdd_agent.files.regular_files import read_small

_LARGEST = 200_000
"""Bytes of a file of declarations that are read."""
_SECTION = re.compile(r"\[(?P<pattern>[^\n]+)\]")
_SETTING = re.compile(r"(?P<key>[\w-]+)[ \t]*[:=][ \t]*(?P<value>[^\s#;]*)")
_ATTRIBUTES = re.compile(r'(?:"(?P<quoted>[^"]*)"|(?P<bare>\S+))\s+(?P<attributes>.*)')
_ENCODING = re.compile(r"(?:^|\s)(?:working-tree-encoding|encoding)=(?P<name>\S+)")


class Charsets:
    """The charsets that a project declares. Each file of declarations is read once."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()
        self._texts: dict[Path, str] = {}

    def declared(self, path: PurePosixPath) -> str:
        """The charset that is declared for a file of the project, as it is written
        there; empty if none is. `.editorconfig` counts first.
        """
        return self._in_editorconfig(path) or self._in_gitattributes(path)

    def _in_editorconfig(self, path: PurePosixPath) -> str:
        place = self._root / path
        for folder in place.parents:
            text = self._read(folder / ".editorconfig")
            charset = _editorconfig_charset(text, place.relative_to(folder).as_posix())
            if charset:
                return "" if charset == "unset" else charset
            if _is_top(text):
                break
        return ""

    def _in_gitattributes(self, path: PurePosixPath) -> str:
        for folder in path.parents:
            text = self._read(self._root / folder / ".gitattributes")
            charset = _attributes_charset(text, path.relative_to(folder).as_posix())
            if charset:
                return charset
        return ""

    def _read(self, place: Path) -> str:
        if place not in self._texts:
            self._texts[place] = read_small(place, _LARGEST)
        return self._texts[place]


def _is_top(editorconfig: str) -> bool:
    """Whether folders above this one declare nothing for it."""
    return any(
        not pattern and key == "root" and value == "true"
        for pattern, key, value in _settings(editorconfig)
    )


def _editorconfig_charset(text: str, path: str) -> str:
    """The last matching section wins."""
    charset = ""
    for pattern, key, value in _settings(text):
        if key == "charset" and pattern and _matches(pattern, path):
            charset = value
    return charset


def _settings(editorconfig: str) -> Iterator[tuple[str, str, str]]:
    """Each setting with the pattern of its section, empty above the first one."""
    pattern = ""
    for line in editorconfig.removeprefix("\ufeff").splitlines():
        bare = line.strip()
        if section := _SECTION.match(bare):
            pattern = section["pattern"]
        elif setting := _SETTING.match(bare):
            yield pattern, setting["key"].lower(), setting["value"].lower()


def _attributes_charset(text: str, path: str) -> str:
    """The last matching line wins."""
    charset = ""
    for line in text.splitlines():
        attributes = _ATTRIBUTES.fullmatch(line.strip())
        if attributes is None or line.lstrip().startswith("#"):
            continue
        pattern = attributes["quoted"] or attributes["bare"] or ""
        encoding = _ENCODING.search(attributes["attributes"])
        if encoding and _matches(pattern, path):
            charset = encoding["name"]
    return charset


def _matches(pattern: str, path: str) -> bool:
    """Whether a pattern of either file matches a path from that file's folder. One
    without a slash matches the name in any folder.
    """
    if "/" not in pattern:
        pattern = f"**/{pattern}"
    try:
        patterns = expand(pattern.removeprefix("/"))
    except PatternRefused:
        return False
    return any(
        fits(
            path,
            [
                None if part == "**" else partial(fnmatchcase, pat=part)
                for part in each.split("/")
            ],
        )
        for each in patterns
    )
