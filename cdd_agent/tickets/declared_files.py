"""The files that a step declares, resolved in its project."""

from collections.abc import Collection
from functools import cached_property
from itertools import islice
from pathlib import Path, PurePosixPath

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.files.globs import Glob, PatternRefused, escape_sets, expand
from cdd_agent.files.hidden_from_models import HiddenFiles, is_secret_path
from cdd_agent.files.paths import PathRefused, confine, is_spelled, path_inside
from cdd_agent.files.spelling import compose, has_entry
from cdd_agent.files.walk import Kind, WalkEntry, walk
from cdd_agent.tickets.plan import AffectedFile, PlanStep

MOST_MATCHES = 300
"""Most files of a step that patterns and folders declare."""
_MOST_ENTRIES = 100_000
"""Most entries of a folder to compare with a pattern."""
_OWN_FOLDER = ".cdd"


class DeclaredFile(Struct, frozen=True, dict=True):
    root: Path
    file: AffectedFile
    path: str
    """From the project's root; a folder ends with a slash. As written in the plan if
    `refusal` is set.
    """
    glob: Glob | None = None
    """None for a file; for a folder, everything inside."""
    refusal: str = ""
    """Why the path cannot be used."""

    def covers(self, path: str) -> bool:
        """True if the path is this file or a match; it need not exist. Files hidden
        from models match only by name.
        """
        if self.refusal:
            return False
        if self.glob is None:
            return path == self.path or self._is_spelled_as(path)
        return self._matches(path) and not self._hidden.why_by_name(path)

    def _is_spelled_as(self, path: str) -> bool:
        """True if only the normal form differs and the declared form does not exist:
        the step created the file in this form.
        """
        if compose(path) != compose(self.path):
            return False
        return not has_entry(self.root, self.path)

    def _matches(self, path: str) -> bool:
        is_ours = path.partition("/")[0] == _OWN_FOLDER
        return self.glob is not None and not is_ours and self.glob.matches(path)

    @cached_property
    def _hidden(self) -> HiddenFiles:
        return HiddenFiles(self.root)

    def overlaps(self, other: "DeclaredFile") -> bool:
        """True if both may declare the same file, or one a folder around the other."""
        if self.refusal or other.refusal:
            return False
        if self.covers(other.path) or other.covers(self.path):
            return True
        if self.glob is None and other.glob is None:
            return _is_inside(self.path, other.path)
        if self.glob is None or other.glob is None:
            single, pattern = (self, other) if self.glob is None else (other, self)
            return pattern._folder.is_relative_to(single.path)
        return _is_inside(self._folder, other._folder)

    @cached_property
    def matches(self) -> tuple[str, ...]:
        """Current matches, without files that git ignores, links out of the project,
        and files hidden from models.
        """
        if self.glob is None or not (self.root / self._folder).is_dir():
            return ()
        entries = islice(walk(self.root, self._folder), _MOST_ENTRIES)
        return tuple(entry.text for entry in entries if self._is_match(entry))

    def _is_match(self, entry: WalkEntry) -> bool:
        is_file = entry.kind in (Kind.FILE, Kind.LINK)
        if not is_file or not self._matches(entry.text):
            return False
        # the walk skips ignored files
        if entry.kind is Kind.FILE:
            return not is_secret_path(entry.text)
        return (
            path_inside(self.root, entry.text) is not None
            and (self.root / entry.text).is_file()
            and not self._hidden.why_by_name(entry.text)
        )

    @property
    def exists(self) -> bool:
        """True if the file, the folder or a match exists."""
        if self.refusal:
            return False
        place = self.root / self.path
        return bool(self.matches) or place.exists() or place.is_symlink()

    @property
    def _folder(self) -> PurePosixPath:
        """The folder that contains all matches."""
        return self.glob.folder if self.glob else PurePosixPath(self.path)


class DeclaredFiles(Struct, frozen=True, dict=True):
    """Everything that a step declares. Patterns and folders are expanded once, on first
    use; `covers` includes later files.
    """

    files: tuple[DeclaredFile, ...] = ()
    """In plan order."""
    without: Collection[str] = ()
    """Files and folders that no pattern declares."""

    def __bool__(self) -> bool:
        return bool(self.files)

    @cached_property
    def named(self) -> tuple[str, ...]:
        """Files that are named one by one. Unusable paths stay as written."""
        single = (file.path for file in self.files if file.glob is None)
        return tuple(dict.fromkeys(single))

    @cached_property
    def matched(self) -> tuple[str, ...]:
        """Further files, from patterns and folders."""
        return tuple(islice(self._all_matches, MOST_MATCHES))

    @property
    def paths(self) -> tuple[str, ...]:
        return (*self.named, *self.matched)

    def usable_paths(self) -> tuple[str, ...]:
        """Return the paths inside the project."""
        refused = {file.path for file in self.files if file.refusal}
        return tuple(path for path in self.paths if path not in refused)

    @property
    def places(self) -> tuple[str, ...]:
        """The paths, and patterns and folders without matches."""
        unmatched = [file.path for file in self.files if file.glob and not file.matches]
        return (*self.paths, *unmatched)

    @property
    def names_all(self) -> bool:
        return bool(self.files) and all(file.glob is None for file in self.files)

    @property
    def more(self) -> int:
        """Number of matches beyond the limit."""
        return len(self._all_matches) - len(self.matched)

    def covers(self, path: str) -> bool:
        """True if the step declares the file, which need not exist."""
        return any(file.covers(path) for file in self.files)

    def may_delete(self, path: str) -> bool:
        """True if the step names the file, or its pattern is marked as deleted."""
        return path in self.named or any(
            file.file.is_deleted and file.covers(path) for file in self.files
        )

    def overlaps(self, other: "DeclaredFiles") -> bool:
        return any(
            mine.overlaps(theirs) for mine in self.files for theirs in other.files
        )

    def are_named(self, names: Collection[str]) -> bool:
        """True if a name means a declared file, folder or pattern. File names may lack
        their folder.
        """
        if not self._endings.isdisjoint(names):
            return True
        return any(
            file.glob is not None and file.covers(name)
            for file in self.files
            for name in names
        )

    @cached_property
    def _endings(self) -> frozenset[str]:
        """Each declared path, and each end of a file's path: `app.py` of
        `src/app.py`.
        """
        endings = set[str]()
        for file in self.files:
            endings.add(file.path)
            if file.glob is None:
                parts = PurePosixPath(file.path).parts
                endings.update("/".join(parts[at:]) for at in range(1, len(parts)))
        return frozenset(endings)

    def lines(self, path: str) -> tuple[tuple[int, int], ...]:
        """Return the line ranges that the step names in a file."""
        ranges = []
        for file in self.files:
            if file.path == path and file.glob is None:
                numbers = [
                    int(number) for number in file.file.lines.split("-") if number
                ]
                if numbers and min(numbers) > 0:
                    ranges.append((min(numbers), max(numbers)))
        return tuple(sorted(set(ranges)))

    @cached_property
    def _all_matches(self) -> dict[str, None]:
        """An ordered set."""
        inside = tuple(f"{folder}/" for folder in self.without)
        matches = dict[str, None]()
        for file in self.files:
            for path in file.matches:
                if path not in self.without and not path.startswith(inside):
                    matches[path] = None
        for path in self.named:
            matches.pop(path, None)
        return matches


def declare_files(
    root: Path, step: PlanStep, without: Collection[str] = ()
) -> DeclaredFiles:
    """Return the files that a step declares. `without` are files and folders that no
    pattern declares.
    """
    # a file declared in two spellings is renamed
    given_up = frozenset(
        file.path for file in step.files_affected if is_spelled(root, file.path)
    )
    files = [_declare(root, file, given_up) for file in step.files_affected]
    paths = {file.path for file in files}
    for position, file in enumerate(files):
        if file.glob or file.refusal or file.file.is_created:
            continue
        spelling = _find_spelling(root, file.path)
        if spelling not in paths:
            files[position] = _declare(root, replace(file.file, path=spelling))
    return DeclaredFiles(tuple(files), without)


def find_hidden_reason(declared: DeclaredFile, hidden: HiddenFiles) -> str:
    """Return why models cannot see an existing file or folder of the step; empty if
    they can, or if it is only deleted.
    """
    if declared.refusal or declared.file.is_deleted or not declared.exists:
        return ""
    path = declared.path.removesuffix("/")
    if declared.glob:
        return hidden.why_by_name(path)
    return hidden.why(path)


def describe_hidden(path: str, why: str) -> str:
    """Return the end of a sentence about a step that declares a hidden file."""
    text = f"declares `{path}`, which is hidden from models: {why}"
    if path.endswith("/"):
        return f"{text}; declare its files one by one"
    return f"{text}; no reply can change it unless you show it (`/context +{path}`)"


def _find_spelling(root: Path, path: str) -> str:
    """Return the only path that differs in case or letter composition, else `path`."""
    folder = PurePosixPath()
    for name in PurePosixPath(path).parts:
        similar = [name]
        if not (root / folder / name).exists():
            similar = _find_similar(root / folder, name)
        if len(similar) != 1:
            return path
        folder /= similar[0]
    return str(folder)


def _find_similar(folder: Path, name: str) -> list[str]:
    wanted = _plain_letters(name)
    try:
        names = [entry.name for entry in islice(folder.iterdir(), _MOST_ENTRIES)]
    except OSError:
        return []
    return [other for other in names if _plain_letters(other) == wanted]


def _plain_letters(name: str) -> str:
    return compose(name).casefold()


def _declare(
    root: Path, file: AffectedFile, given_up: Collection[str] = ()
) -> DeclaredFile:
    try:
        path = str(confine(root, file.path, given_up))
        place = root / path
        is_folder = place.is_dir() or (file.is_folder and not place.exists())
        glob = _make_glob(root, path, is_folder=is_folder)
    except (PathRefused, PatternRefused) as error:
        return DeclaredFile(root, file, file.path, refusal=error.message)
    return DeclaredFile(root, file, f"{path}/" if is_folder else path, glob)


def _make_glob(root: Path, path: str, *, is_folder: bool) -> Glob | None:
    """None for a single file. An existing path is not a pattern."""
    exists = (root / path).exists()
    pattern = _exactly(path) if exists else escape_sets(path)
    if is_folder:
        return Glob(root, f"{pattern}/**")
    if not exists and (AffectedFile(path).is_pattern or len(expand(path)) > 1):
        return Glob(root, pattern)
    return None


def _exactly(path: str) -> str:
    for sign in "[?*":
        path = path.replace(sign, f"[{sign}]")
    return path


def _is_inside(path: PurePosixPath | str, other: PurePosixPath | str) -> bool:
    """True if one path equals or contains the other."""
    one, two = PurePosixPath(path), PurePosixPath(other)
    return one.is_relative_to(two) or two.is_relative_to(one)
