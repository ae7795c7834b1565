"""Copy files of a project with links, permissions and times."""

import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterable
from io import BufferedReader, FileIO
from pathlib import Path

from msgspec import Struct, field

from cdd_agent.files.regular_files import open_file

_PIECE = 1 << 26
"""Bytes per copy operation."""


class Copy(Struct):
    """A copy of a folder. Links are not followed."""

    source: Path
    target: Path
    unreadable: list[str] = field(default_factory=list)
    _folders: dict[str, bool] = field(default_factory=lambda: {"": True})
    """By path; false for a link or a missing folder."""

    def add(
        self, paths: Iterable[str], before_each: Callable[[], None] = lambda: None
    ) -> None:
        """Copy files; skip missing ones. Raises `OSError` if the disk refuses to
        write.
        """
        for path in paths:
            before_each()
            if self._make_folder(path.rpartition("/")[0]):
                self._copy(path)

    def _make_folder(self, folder: str) -> bool:
        """False if the source has no such folder."""
        if folder in self._folders:
            return self._folders[folder]
        place = self.source / folder
        exists = self._make_folder(folder.rpartition("/")[0])
        exists = exists and place.is_dir() and not place.is_symlink()
        if exists:
            (self.target / folder).mkdir(exist_ok=True)
        self._folders[folder] = exists
        return exists

    def _copy(self, path: str) -> None:
        source, target = self.source / path, self.target / path
        try:
            details = source.lstat()
        except OSError:
            return
        if stat.S_ISLNK(details.st_mode):
            target.symlink_to(self._find_link_target(source))
            return
        # pipes and sockets
        if not stat.S_ISREG(details.st_mode):
            return
        try:
            reading = open_file(source)
        except OSError:
            self.unreadable.append(path)
            return
        with reading, target.open("xb", buffering=0) as writing:
            _copy_content(reading, writing)
            target.chmod(stat.S_IMODE(details.st_mode))
            times = (details.st_atime_ns, details.st_mtime_ns)
            os.utime(writing.fileno(), ns=times)

    def _find_link_target(self, link: Path) -> Path:
        target = link.readlink()
        absolute = Path(os.path.normpath(link.parent / target))
        if target.is_absolute() or absolute.is_relative_to(self.source):
            return target
        return absolute


def _copy_content(reading: BufferedReader, writing: FileIO) -> None:
    """Copy a file. On Linux, some disks share its blocks."""
    if sys.platform == "linux":
        try:
            while os.copy_file_range(reading.fileno(), writing.fileno(), _PIECE):
                pass
            return
        except (AttributeError, OSError):
            # an unsupported system, two disks, or no sharing
            reading.seek(0)
            writing.seek(0)
    shutil.copyfileobj(reading, writing, _PIECE)
