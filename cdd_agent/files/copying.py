"""Copy the files of a project to another folder, with links, permissions and times."""

import os
import shutil
import stat
from collections.abc import Callable, Iterable
from pathlib import Path

from msgspec import Struct, field


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
        if not os.access(source, os.R_OK):
            self.unreadable.append(path)
            return
        shutil.copyfile(source, target, follow_symlinks=False)
        target.chmod(stat.S_IMODE(found.st_mode))
        os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))

    def _find_link_target(self, link: Path) -> Path:
        """Return where the copy of a link leads. A relative link that leads out of the
        source would lead elsewhere from the copy.
        """
        target = link.readlink()
        absolute = Path(os.path.normpath(link.parent / target))
        if target.is_absolute() or absolute.is_relative_to(self.source):
            return target
        return absolute
