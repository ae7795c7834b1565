"""The bounds of a project: find its root, and check that paths stay inside it."""

import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

from cdd_agent.errors import BadInput
from cdd_agent.files.spelling import find_names, has_entry
from cdd_agent.pattern import Pattern
from cdd_agent.refusals.kinds import Refusal

_ABSOLUTE = Pattern(r"[A-Za-z]:|[/\\~]|file:|\$\{?HOME\b|%\w+%[/\\]", re.IGNORECASE)
"""The beginning of an absolute path in a shell, on Windows or in an address."""
_MAX_LENGTH = 1000
_MAX_NAME = 255
"""Maximum bytes of a name on most disks."""
_MARKERS = (".cdd", ".git")


class PathRefused(BadInput):
    """A text does not name a file inside the project."""

    refusal = Refusal.OUTSIDE_PROJECT


def find_root(start: Path) -> Path:
    """Return the project root: the nearest folder with `.cdd` or `.git`, else
    `start`.
    """
    try:
        start = start.resolve()
        for folder in (start, *start.parents):
            if any((folder / name).exists() for name in _MARKERS):
                return folder
    except OSError as error:
        # the working folder was removed, or cannot be entered
        raise BadInput(
            f"{start} cannot be read: {error.strerror or error}", refusal=Refusal.DISK
        ) from error
    return start


def confine(root: Path, text: str, given_up: Collection[str] = ()) -> PurePosixPath:
    """Return the path, relative to `root`, of a file named by a reply, a plan or the
    user. Raises `PathRefused` if it is outside the project.

    Links are resolved first, so neither a link nor a sibling such as `../app-evil`
    leads outside. Windows drive and UNC forms are absolute on every platform.

    The result is spelled as on disk. A name without an entry means the one entry whose
    name is equal after Unicode normalisation, except paths in `given_up`: a new file
    may have another spelling of an old name. The file need not exist.
    """
    path = parse_path(text)
    if ".." in path.parts:
        raise PathRefused(
            f"{text} contains `..` or leaves the project; write the path from the"
            " project's root"
        )
    if not path.parts:
        raise PathRefused(f"{text} is the project's root, not a file in it")
    _expect_inside(root, path, text)
    spelled = _spell(root, path, given_up)
    if spelled != path:
        _expect_inside(root, spelled, text)
    return spelled


def _expect_inside(root: Path, path: PurePosixPath, text: str) -> None:
    if not _resolved(root, path).is_relative_to(root.resolve()):
        raise PathRefused(f"{text} leads outside the project through a link")


def _spell(
    root: Path, path: PurePosixPath, given_up: Collection[str] = ()
) -> PurePosixPath:
    unused = [PurePosixPath(given) for given in given_up]
    spelled = PurePosixPath()
    for name in path.parts:
        ignored = {given.name for given in unused if given.parent == spelled}
        try:
            names = find_names(root / spelled, name, ignored)
        except (OSError, ValueError) as error:
            raise PathRefused(f"{str(path)!r} cannot be used: {error}") from error
        if len(names) > 1:
            shown = " and ".join(ascii(str(spelled / other)) for other in sorted(names))
            raise PathRefused(
                f"{path} could be {shown}, which look the same; write one of these"
                " spellings"
            )
        spelled /= next(iter(names), name)
    return spelled


def is_spelled(root: Path, text: str) -> bool:
    """True if the disk has an entry with exactly this spelling."""
    try:
        return has_entry(root, parse_path(text))
    except (PathRefused, OSError, ValueError):
        return False


def expect_no_link_out(root: Path, places: Iterable[Path]) -> None:
    """Raise `PathRefused` if one of these places is a link out of the project."""
    top = root.resolve()
    for place in places:
        # most places are no links, and resolving is slow
        if place.is_symlink() and not _leads_inside(top, place):
            raise PathRefused(
                f"{place} leads outside the project through a link",
                hint="cdd writes only inside the project. Replace the link by a"
                " folder.",
            )


def _leads_inside(top: Path, place: Path) -> bool:
    try:
        return place.resolve().is_relative_to(top)
    except (OSError, RuntimeError):  # also a circle of links
        return False


def path_inside(root: Path, text: str) -> str | None:
    """Like `confine`, but return None instead of raising."""
    try:
        return str(confine(root, text))
    except PathRefused:
        return None


def without_links(root: Path, path: str) -> str:
    """Resolve links in a file's folders, because git follows no links."""
    try:
        folder, top = (root / path).parent.resolve(), root.resolve()
    except (OSError, RuntimeError):  # also a circle of links
        return path
    if not folder.is_relative_to(top):
        return path
    return (folder.relative_to(top) / Path(path).name).as_posix()


def confine_folder(root: Path, text: str) -> PurePosixPath:
    """Return the path, relative to `root` and with links resolved, of the folder that a
    text names. Raises `PathRefused` if it is outside the project or no folder.

    `.` and an empty text mean the project. `..` may stay inside. The folder need not
    exist.
    """
    top = root.resolve()
    path = PurePosixPath()
    if text:
        path = parse_path(text)
    folder = _resolve_folder(top, path, text)
    # entries on disk may have another spelling and be links
    path = _spell(top, PurePosixPath(folder.relative_to(top).as_posix()))
    folder = _resolve_folder(top, path, text)
    try:
        is_folder = all(map(_may_be_folder, _up_to(top, folder)))
    except OSError as error:
        raise PathRefused(
            f"{text} cannot be used: {error.strerror or error}"
        ) from error
    if not is_folder:
        raise PathRefused(f"{text} is not a folder")
    return PurePosixPath(folder.relative_to(top).as_posix())


def _resolve_folder(top: Path, path: PurePosixPath, text: str) -> Path:
    folder = _resolved(top, path)
    if not folder.is_relative_to(top):
        raise PathRefused(f"{text} leaves the project")
    return folder


def _up_to(top: Path, folder: Path) -> Iterator[Path]:
    for place in (folder, *folder.parents):
        if place.is_relative_to(top):
            yield place


def _may_be_folder(place: Path) -> bool:
    return place.is_dir() or not place.exists()


def parse_path(text: str) -> PurePosixPath:
    """Parse a path relative to the project. Raises `PathRefused` if it is absolute on
    any platform, or unusable on most.
    """
    if not text.strip() or text != text.strip():
        raise PathRefused(f"{text!r} is not a usable path")
    if len(text) > _MAX_LENGTH or any(ord(sign) < 32 for sign in text):
        raise PathRefused(
            f"{text[:60]!r} is not a usable path: too long, or with control characters"
        )
    if _ABSOLUTE.match(text):
        raise PathRefused(f"{text} is absolute; paths are relative to the project")
    path = PurePosixPath(text.replace("\\", "/"))
    for name in path.parts:
        if len(name.encode("utf-8", "surrogatepass")) > _MAX_NAME:
            raise PathRefused(
                f"{text[:60]!r} is not a usable path: a name in it is too long"
            )
    return path


def _resolved(root: Path, path: PurePosixPath) -> Path:
    try:
        place = (root / path).resolve()
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            place.stat()  # since Python 3.13, a circle of links fails only here
        return place
    except (OSError, RuntimeError, ValueError) as error:
        # too long for the disk, a circle of links, not a text
        raise PathRefused(f"{str(path)!r} cannot be used: {error}") from error
