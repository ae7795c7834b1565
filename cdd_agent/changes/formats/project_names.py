"""File names known before a reply is read, from the project and the task."""

from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath
from typing import Self

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.errors import CddError
from cdd_agent.files.atomic import read_bytes
from cdd_agent.files.charsets import Charsets
from cdd_agent.files.paths import confine
from cdd_agent.files.spelling import compose
from cdd_agent.files.text import decode_file
from cdd_agent.pattern import Pattern

_SET_OFF = Pattern(r"`([^`\n]+)`|\"([^\"\n]+)\"|“([^”\n]+)”|\*\*([^*\n]+)\*\*")
"""A name in quotes, backticks or bold. It may contain spaces."""


class ProjectNames(Struct, frozen=True):
    root: Path | None = None
    """None if the reply is read without a project."""
    listed: frozenset[str] = frozenset()
    """Files that the task lists. They may not exist yet."""
    quoted: frozenset[str] = frozenset()
    """Names that the task's text quotes."""
    words: frozenset[str] = frozenset()
    folders: frozenset[str] = frozenset()
    """Folders of files in the reply."""
    has_tools: bool = False
    """True if the model could call tools."""

    @classmethod
    def collect(
        cls,
        root: Path,
        listed: Iterable[str] = (),
        text: str = "",
        *,
        has_tools: bool = False,
    ) -> Self:
        quoted = [
            next(filter(None, alternatives)) for alternatives in _SET_OFF.findall(text)
        ]
        words = (word.strip("`*_\"'“”.,:;!?()<>") for word in text.split())
        return cls(
            root,
            _names(listed),
            _names(quoted),
            _names(words),
            has_tools=has_tools,
        )

    def is_file(self, name: str) -> bool:
        """True if the project has this file, or the task lists it and it is no
        folder.
        """
        if not name:
            return False
        is_listed = plain_name(name) in self.listed and not self.is_folder(name)
        return is_listed or self._holds(name, Path.is_file)

    def is_named(self, name: str) -> bool:
        """True if the task's text quotes the name, or has it in capitals. `README` is
        not named if there is a README.md.
        """
        is_in_capitals = name.isupper() and name in self.words
        if plain_name(name) not in self.quoted and not is_in_capitals:
            return False
        return not self._holds(name, _has_another_suffix)

    def is_requested(self, name: str) -> bool:
        return plain_name(name) in self.listed or self.is_named(name)

    def is_folder(self, name: str) -> bool:
        """True if the project has this folder, or the reply has files in it."""
        return plain_name(name) in self.folders or self._holds(name, Path.is_dir)

    def with_files(self, paths: Iterable[str]) -> Self:
        """Return these names with the folders of files in the reply."""
        folders: set[str] = set()
        for path in paths:
            folders.update(map(str, PurePosixPath(plain_name(path)).parents))
        return replace(self, folders=frozenset(folders))

    def is_quotation(self, name: str, text: str) -> bool:
        """True if the text is an unchanged part of a file."""

        def holds_text(place: Path) -> bool:
            data = read_bytes(place) if place.is_file() else None
            if data is None:
                return False
            path = PurePosixPath(plain_name(name))
            content = decode_file(path, data, Charsets(self.root)).shown
            return text.strip() in content.replace("\r\n", "\n")

        return self._holds(name, holds_text)

    def _holds(self, name: str, is_so: Callable[[Path], bool]) -> bool:
        if self.root is None:
            return False
        try:
            path = plain_name(name)
            # an empty name is the project root
            is_top = not PurePosixPath(path).parts
            return is_so(self.root if is_top else self.root / confine(self.root, path))
        except (OSError, ValueError, CddError):
            return False


NO_PROJECT_NAMES = ProjectNames()


def plain_name(name: str) -> str:
    """Return a composed name with slashes and without `./`."""
    return compose(name.strip().replace("\\", "/").removeprefix("./"))


def _names(names: Iterable[str]) -> frozenset[str]:
    return frozenset(map(plain_name, names)) - {""}


def _has_another_suffix(place: Path) -> bool:
    """True if a file in the folder differs only by suffix."""
    return any(entry.stem == place.name for entry in place.parent.iterdir())
