"""Copy the files of a project to another folder, with links, permissions and times."""

import os
import shutil
import stat
from collections.abc import Callable, Iterable
from io import BufferedReader, FileIO
from pathlib import Path

from msgspec import Struct, field

from cdd_agent.files.regular_files import open_file

_PIECE = 1 << 26
"""Bytes that are copied at once."""


class Copy(Struct):
    """A copy of files of one folder in another one. Links are copied as links, and no
    link on the way is followed.
    """

    source: Path
    target: Path
    unreadable: list[str] = field(default_factory=list)
    """Files that could not be read."""
    _folders: dict[str, bool] = field(default_factory=lambda: {"": True})
    """True for a folder that was made; false if it is gone, or is a link."""

    def add(
        self, paths: Iterable[str], before_each: Callable[[], None] = lambda: None
    ) -> None:
        """Copy files by their paths. A file that is gone is left out. Raises `OSError`
        if the disk refuses to write.
        """
        for path in paths:
            before_each()
            if self._make_folder(path.rpartition("/")[0]):
                self._copy(path)

    def _make_folder(self, folder: str) -> bool:
        """Make a folder of the copy. False if the source has no such folder."""
        if folder not in self._folders:
            is_one = self._make_folder(folder.rpartition("/")[0])
            place = self.source / folder
            is_one = is_one and place.is_dir() and not place.is_symlink()
            if is_one:
                (self.target / folder).mkdir(exist_ok=True)
            self._folders[folder] = is_one
        return self._folders[folder]

    def _copy(self, path: str) -> None:
        source, target = self.source / path, self.target / path
        try:
            found = source.lstat()
        except OSError:
            return
        if stat.S_ISLNK(found.st_mode):
            target.symlink_to(self._find_link_target(source))
            return
        # pipes and sockets are no part of a project
        if not stat.S_ISREG(found.st_mode):
            return
        try:
            reading = open_file(source)
        except OSError:
            self.unreadable.append(path)
            return
        with reading, target.open("xb", buffering=0) as writing:
            _copy_content(reading, writing)
            target.chmod(stat.S_IMODE(found.st_mode))
            os.utime(writing.fileno(), ns=(found.st_atime_ns, found.st_mtime_ns))

    def _find_link_target(self, link: Path) -> Path:
        """Return where the copy of a link leads. A relative link that leads out of the
        source would lead elsewhere from the copy.
        """
        target = link.readlink()
        absolute = Path(os.path.normpath(link.parent / target))
        if target.is_absolute() or absolute.is_relative_to(self.source):
            return target
        return absolute


def _copy_content(reading: BufferedReader, writing: FileIO) -> None:
    """Copy a whole file. Disks that can share blocks between files do."""
    try:
        while os.copy_file_range(reading.fileno(), writing.fileno(), _PIECE):
            pass
    except (AttributeError, OSError):
        # other systems, two disks, or a disk that cannot
        reading.seek(0)
        writing.seek(0)
        shutil.copyfileobj(reading, writing, _PIECE)
