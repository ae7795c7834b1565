"""Names of files that are known before a reply is read: those that the project has, or
that the task speaks of.
"""

import re
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

_SET_OFF = re.compile(r"`([^`\n]+)`|\"([^\"\n]+)\"|“([^”\n]+)”|\*\*([^*\n]+)\*\*")
"""Set off from the other words of a sentence; such a name may have spaces in it."""


class KnownNames(Struct, frozen=True):
    """Tells of a name whether it is a file's; without a project, nobody knows."""

    root: Path | None = None
    listed: frozenset[str] = frozenset()
    """Files that the task lists as its own: they are files, there or not."""
    quoted: frozenset[str] = frozenset()
    """Names that the task sets off from its words: in backticks, quotes, or bold."""
    words: frozenset[str] = frozenset()
    """The words of the task."""
    folders: frozenset[str] = frozenset()
    """Folders in which the reply has files."""
    has_tools: bool = False
    """The author of the reply could call tools."""

    @classmethod
    def of(
        cls,
        root: Path,
        listed: Iterable[str] = (),
        text: str = "",
        *,
        has_tools: bool = False,
    ) -> Self:
        set_off = (next(filter(None, found)) for found in _SET_OFF.findall(text))
        words = (word.strip("`*_\"'“”.,:;!?()<>") for word in text.split())
        return cls(
            root,
            _names(listed),
            _names(set_off),
            _names(words),
            has_tools=has_tools,
        )

    def is_file(self, name: str) -> bool:
        """Whether the project has a file of this name, or the task lists it and it is
        no folder.
        """
        is_listed = _plain(name) in self.listed and not self.is_folder(name)
        return bool(name) and (is_listed or self._holds(name, Path.is_file))

    def is_named(self, name: str) -> bool:
        """Whether the words of the task name it, and cannot mean a file that is called
        so but for its suffix.
        """
        is_said = _plain(name) in self.quoted or (name.isupper() and name in self.words)
        return is_said and not self._holds(
            name,
            lambda place: any(
                other.stem == place.name for other in place.parent.iterdir()
            ),
        )

    def is_requested(self, name: str) -> bool:
        """Whether the task names it in any way."""
        return _plain(name) in self.listed or self.is_named(name)

    def is_folder(self, name: str) -> bool:
        """Whether the project has a folder of this name, or the reply has files in
        one.
        """
        return _plain(name) in self.folders or self._holds(name, Path.is_dir)

    def with_files(self, paths: Iterable[str]) -> Self:
        """The same, and the folders of files that the reply has."""
        return replace(
            self,
            folders=frozenset(
                str(up) for path in paths for up in PurePosixPath(_plain(path)).parents
            ),
        )

    def is_quotation(self, name: str, text: str) -> bool:
        """Whether a text is part of the file as it is."""

        def is_in(place: Path) -> bool:
            data = read_bytes(place) if place.is_file() else None
            if data is None:
                return False
            path = PurePosixPath(_plain(name))
            shown = decode_file(path, data, Charsets(self.root)).shown
            return text.strip() in shown.replace("\r\n", "\n")

        return self._holds(name, is_in)

    def _holds(self, name: str, asked: Callable[[Path], bool]) -> bool:
        """Whether this is so of the place that has the name in the project; of none
        outside of it.
        """
        if self.root is None:
            return False
        try:
            path = _plain(name)
            # an empty name is the project itself
            is_top = not PurePosixPath(path).parts
            return asked(self.root if is_top else self.root / confine(self.root, path))
        except (OSError, ValueError, CddError):
            return False


NOTHING_KNOWN = KnownNames()


def _names(texts: Iterable[str]) -> frozenset[str]:
    return frozenset(map(_plain, texts)) - {""}


def _plain(name: str) -> str:
    return compose(name.strip().replace("\\", "/").removeprefix("./"))
