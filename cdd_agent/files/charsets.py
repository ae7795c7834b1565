"""The charset that a project declares for a file in `.editorconfig` or
`.gitattributes`.

Formats: https://spec.editorconfig.org (`charset`) and
https://git-scm.com/docs/gitattributes (`working-tree-encoding`, `encoding`). Number
ranges (`{1..3}`) and attribute macros are not supported.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath

from msgspec import Struct

from cdd_agent.files.globs import PatternRefused, compile_glob, expand
from cdd_agent.files.regular_files import read_small
from cdd_agent.pattern import Pattern

_LARGEST = 200_000
"""Bytes of a declaration file to read."""
_LONGEST_PATTERN = 1_000
_MOST_PATTERNS = 500
"""Maximum number of patterns per file, with each alternative counted."""
_SECTION = Pattern(r"\[(?P<pattern>[^\n]+)\]")
_SETTING = Pattern(r"(?P<key>[\w-]+)[ \t]*[:=][ \t]*(?P<value>[^\s#;]*)")
_ATTRIBUTES = Pattern(r'(?:"(?P<quoted>[^"]*)"|(?P<bare>\S+))\s+(?P<attributes>.*)')
_ENCODING = Pattern(r"(?:^|\s)(?:working-tree-encoding|encoding)=(?P<name>\S+)")


class _Rule(Struct, frozen=True):
    folder: Path
    is_path: bool
    """True if the patterns match the path relative to the folder, false for the name
    alone.
    """
    patterns: tuple[Callable[[str], object], ...]
    charset: str

    def matches(self, place: Path) -> bool:
        path = place.name
        if self.is_path:
            path = place.relative_to(self.folder).as_posix()
        return any(matches(path) for matches in self.patterns)


def _make_rules(folder: Path, rows: Iterable[tuple[str, str]]) -> list[_Rule]:
    """Return the rules of a file. Unusable patterns and those beyond the limit are
    skipped.
    """
    rules: list[_Rule] = []
    count = 0
    for pattern, charset in rows:
        if len(pattern) > _LONGEST_PATTERN:
            continue
        try:
            globs = expand(pattern.removeprefix("/"))
            count += len(globs)
            if count > _MOST_PATTERNS:
                break
            patterns = tuple(map(compile_glob, globs))
        except PatternRefused:
            continue
        rules.append(_Rule(folder, "/" in pattern, patterns, charset))
    return rules


class Charsets:
    """The charsets that a project declares. Each declaration file is read once, so use
    one instance per batch of files.
    """

    def __init__(self, root: Path | None) -> None:
        """`None` as root: no project, so nothing is declared."""
        self._root = None if root is None else root.resolve()
        self._rules: dict[str, tuple[_Rule, ...]] = {}
        self._editorconfig_rules: dict[Path, tuple[_Rule, ...]] = {}
        self._attribute_rules: dict[PurePosixPath, tuple[_Rule, ...]] = {}

    def declared(self, path: PurePosixPath) -> str:
        """Return the charset that the project declares for a file, unchanged, or an
        empty text. `.editorconfig` takes precedence.
        """
        if self._root is None:
            return ""
        folder = str(path).rpartition("/")[0]
        if folder not in self._rules:
            self._rules[folder] = (
                *self._read_editorconfig(self._root / folder),
                *self._read_attributes(self._root, PurePosixPath(folder)),
            )
        for rule in self._rules[folder]:
            if rule.matches(self._root / path):
                return "" if rule.charset == "unset" else rule.charset
        return ""

    def _read_editorconfig(self, folder: Path) -> tuple[_Rule, ...]:
        """Return the rules for the files of a folder, strongest first."""
        if folder not in self._editorconfig_rules:
            settings = list(_settings(_read(folder / ".editorconfig")))
            charsets = (setting for setting in reversed(settings) if setting.is_charset)
            rules = _make_rules(
                folder, ((setting.pattern, setting.value) for setting in charsets)
            )
            is_top = any(setting.is_top for setting in settings)
            if folder != folder.parent and not is_top:
                rules += self._read_editorconfig(folder.parent)
            self._editorconfig_rules[folder] = tuple(rules)
        return self._editorconfig_rules[folder]

    def _read_attributes(self, root: Path, folder: PurePosixPath) -> tuple[_Rule, ...]:
        """Return the rules for the files of a folder, strongest first."""
        if folder not in self._attribute_rules:
            place = root / folder
            rows = list(_attributes(_read(place / ".gitattributes")))
            rules = _make_rules(place, reversed(rows))
            if folder != folder.parent:
                rules += self._read_attributes(root, folder.parent)
            self._attribute_rules[folder] = tuple(rules)
        return self._attribute_rules[folder]


class _Setting(Struct, frozen=True):
    pattern: str
    """The pattern of its section; empty above the first section."""
    key: str
    value: str

    @property
    def is_charset(self) -> bool:
        return self.key == "charset" and bool(self.pattern)

    @property
    def is_top(self) -> bool:
        """True if `.editorconfig` files in parent folders do not apply."""
        return self.key == "root" and not self.pattern and self.value == "true"


def _read(place: Path) -> str:
    return read_small(place, _LARGEST) if place.is_file() else ""


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
    for line in text.splitlines():
        attributes = _ATTRIBUTES.fullmatch(line.strip())
        if attributes is None or line.lstrip().startswith("#"):
            continue
        encoding = _ENCODING.search(attributes["attributes"])
        if encoding:
            yield attributes["quoted"] or attributes["bare"] or "", encoding["name"]


NOTHING_DECLARED = Charsets(None)
