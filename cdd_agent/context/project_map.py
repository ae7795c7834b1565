"""A project's files, and which of them a text is about."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from cdd_agent.context.places import Place, RankedFile
from cdd_agent.context.query import Query
from cdd_agent.context.words import words
from cdd_agent.files.named import named_files
from cdd_agent.files.read import holds_secrets
from cdd_agent.files.walk import Kind, open_file, walk
from cdd_agent.project.subjects import is_test_file

_LARGEST = 1_000_000
_LINES = 30
_DEFINED = re.compile(
    r"^[ \t]*(?:(?:export|default|pub(?:\([^)\n]*\))?|public|private|protected|static|abstract|async|final)[ \t]+)*"
    r"(?:def|class|func(?:tion)?\*?|fn|struct|enum|trait|interface|type|impl|mod|module|namespace|macro_rules!)[ \t]+"
    r"(?:\([^)\n]*\)[ \t]*)?([^\W\d]\w*)",
    re.MULTILINE,
)


@dataclass(frozen=True)
class _File:
    stamp: tuple[int, int]
    words: Counter[str]
    length: int


class ProjectMap:
    """The index of a project. Calls come from one thread at a time."""

    def __init__(self, root: Path, own: Collection[str] = ()) -> None:
        """`own` are this program's files and folders, which are no part of the project."""
        self._root = root
        self._own = frozenset(own) | {".cdd"}
        self._files: dict[str, _File] = {}

    def update(self) -> None:
        """Bring the index up to date with the disk. It takes its time: to be called in a thread."""
        files: dict[str, _File] = {}
        for entry in walk(self._root):
            if entry.kind is Kind.FILE and not _inside(entry.text, self._own) and not holds_secrets(entry.name):
                try:
                    about = (self._root / entry.text).lstat()
                except OSError:
                    continue
                stamp, known = (about.st_mtime_ns, about.st_size), self._files.get(entry.text)
                if known and known.stamp == stamp:
                    files[entry.text] = known
                elif (text := self._text(entry.text)) is not None:
                    counted = Counter(words(f"{entry.text}\n{text}"))
                    files[entry.text] = _File(stamp, counted, counted.total())
        self._files = files

    def rank(self, query: Query, most: int = 100) -> list[RankedFile]:
        """The files that the query is about, the most likely first."""
        files = {path: file for path, file in self._files.items() if not _inside(path, query.without)}
        asked = Counter(words(f"{query.text}\n{query.failure}"))
        holding = {word: sum(word in file.words for file in files.values()) for word in asked}
        rarity = {word: math.log(1 + len(files) / count) for word, count in holding.items() if count}
        average = sum(file.length for file in files.values()) / max(1, len(files))
        scores: defaultdict[str, float] = defaultdict(float)
        for path, file in files.items():
            norm = 1.2 * (0.25 + 0.75 * file.length / average)
            for word, weight in rarity.items():
                if count := file.words[word]:
                    scores[path] += weight * count * 2.2 / (count + norm)
        named = {path for name in named_files(query.text, files.keys()) for path in name.paths if len(name.paths) == 1}
        pinned = {path for path in files if _inside(path, query.pinned)}
        order = sorted(
            {*scores, *named, *pinned},
            key=lambda path: (path not in named | pinned, is_test_file(PurePosixPath(path)), -scores[path], path),
        )
        ranked = []
        for path in order[:most]:
            said = sorted(rarity.keys() & files[path].words.keys(), key=lambda word: (-rarity[word], word))
            reasons = [
                *(["pinned"] if path in pinned else []),
                *(["named in the text"] if path in named else []),
                *([f"speaks of {', '.join(said[:4])}"] if said else []),
            ]
            ranked.append(RankedFile(path, tuple(reasons), path in named | pinned, self._places(path, rarity)))
        return ranked

    def outline(self, path: str) -> str:
        """A file's definitions, each with its line's number; empty where it has none that are recognised."""
        lines = (self._text(path) or "").split("\n")
        return "".join(
            f"{number:>5}  {line.rstrip()}\n" for number, line in enumerate(lines, 1) if _DEFINED.match(line)
        )

    def close(self) -> None:
        """Give back what it holds."""
        self._files = {}

    def _places(self, path: str, rarity: dict[str, float]) -> tuple[Place, ...]:
        lines = (self._text(path) or "").removesuffix("\n").split("\n")
        found = []
        for start in range(0, len(lines), _LINES):
            piece = lines[start : start + _LINES]
            score = sum(rarity.get(word, 0.0) for word in {*words("\n".join(piece))})
            if score:
                found.append((-score, Place(start + 1, start + len(piece), "", "has words of the text")))
        return tuple(place for _, place in sorted(found, key=lambda scored: scored[0])[:10])

    def _text(self, path: str) -> str | None:
        try:
            with open_file(self._root / path) as file:
                data = file.read(_LARGEST + 1)
        except (OSError, ValueError):
            return None
        return None if len(data) > _LARGEST or b"\0" in data else data.decode("utf-8", errors="replace")


def _inside(path: str, places: Collection[str]) -> bool:
    """Whether a path is one of these files, or in one of these folders."""
    return any(path == (place := each.rstrip("/")) or path.startswith(f"{place}/") for each in places)
