"""Which files a text is about, by many weak signs, put together by rank: none has a
weight that has to be explained.

The signs of all files come from the index: their words, the names that they define,
their paths, the past commits with such messages. The best by these have neighbours:
what they import, what imports them, what changed together with them, their tests. Then
the most likely files are read, and judged once more by the pieces that would be shown.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path, PurePosixPath
from types import MappingProxyType

from msgspec import Struct, field

from cdd_agent.context.cache import Cache, Holders
from cdd_agent.context.definitions import Definition
from cdd_agent.context.excerpts import Judged, head, judged, pieces, relevance
from cdd_agent.context.links import Links, last_name, module_of
from cdd_agent.context.places import Place, RankedFile
from cdd_agent.context.query import Query, is_in
from cdd_agent.context.traces import Frame, error_lines, frames
from cdd_agent.context.words import (
    Vocabulary,
    names_in_code,
    telling,
    words_in,
    words_of,
)
from cdd_agent.files.named import named_files, names_in
from cdd_agent.project.subjects import is_test_file, tested_name

_FUSED = 5
"""The constant of reciprocal rank fusion: how little the first ranks differ."""
_LISTED = 200
"""Files that a sign ranks."""
_SEEDS = 8
"""Files whose neighbours are looked at."""
_READ = 40
"""Files that are read, and judged by their pieces."""
_PLACES = 40
"""Of one file."""
_ASKED = 80
"""Words of a text that are looked for, the rarest."""
_FAILURE = 4_000
"""Characters of a failure's output in which names are looked for, the last ones."""
_COMMITS, _OF_A_FILE = 40, 100
"""Past commits that are looked at: for their messages, and for each seed."""
_IMPORTERS = 50
_PIECE_COST = 200
"""Bytes, to be added to a piece's own, for what it takes to show it."""
_RARER = 1.5
"""The power of a word's rarity."""
_LENGTH = 4_000
"""Bytes from which on a file counts as long."""
_FRAMES, _FOREMOST = 5, 1_000.0
"""Lines of a failure that are shown of one file, and their use: before everything else.
"""
_AFTER = 0.999
_TELLING = (
    "named",
    "traced",
    "defined",
    "uses",
    "touched",
    "together",
    "imports",
    "tests",
    "piece",
    "path",
    "past",
    "words",
)
"""The signs, those first whose reasons tell a person most."""
_ASIDE = re.compile(
    r"(?:^|/)(?:examples?|samples?|demos?|docs?|docs_src|documentation"
    r"|bench(?:mark)?s?|fixtures?|testdata|testing"
    r"|playground|website|e2e|unit|unittests?|t|\.\w+)/|^(?:CHANGE|CHANGES|CHANGELOG"
    r"|HISTORY|NEWS|README|LICENSE)\b[^/]*$"
    r"|\.(?:md|mdx|rst|txt|adoc|json|ya?ml|toml|html?|css|scss|less|cfg|ini|xml|conf)$"
    r"|[._-](?:test|spec|bench)\.\w+$"
    r"|(?:^|/)\.[^/]+$",
    re.IGNORECASE,
)


class Text(Struct, frozen=True):
    """A file's text, taken apart."""

    data: bytes
    definitions: tuple[Definition, ...]

    @property
    def lines(self) -> int:
        return self.data.count(b"\n") + (not self.data.endswith(b"\n"))


class Searched(Struct, frozen=True):
    """The files that are searched."""

    numbers: Mapping[str, int]
    lengths: Mapping[str, int]
    paths: Mapping[int, str]
    links: Links
    root: Path


class _Sign(Struct):
    """One sign's verdict: a score for each file, and why."""

    scores: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    reasons: dict[str, str] = field(default_factory=dict)

    def add(self, path: str, score: float, reason: str) -> None:
        """The first reason is kept: the strongest is given first."""
        self.scores[path] += score
        self.reasons.setdefault(path, reason)

    def order(self) -> list[str]:
        found = [path for path, score in self.scores.items() if score > 0]
        return sorted(found, key=lambda path: (-self.scores[path], path))[:_LISTED]


def is_aside(path: str) -> bool:
    """Whether a file is beside the source: a test, an example, a page, a setting."""
    return is_test_file(PurePosixPath(path)) or _ASIDE.search(path) is not None


class Ranking:
    """One answer."""

    def __init__(
        self,
        query: Query,
        cache: Cache,
        searched: Searched,
        read: Callable[[str], Text],
        vocabulary: Vocabulary,
    ) -> None:
        self._query, self._cache, self._searched, self._read = (
            query,
            cache,
            searched,
            read,
        )
        self._vocabulary = vocabulary
        self._live = {
            path for path in searched.numbers if not is_in(path, query.without)
        }
        self._names = list(
            dict.fromkeys(names_in_code(f"{query.text}\n{query.failure[-_FAILURE:]}"))
        )[:_ASKED]
        self._asked = telling(
            words_in("\n".join([query.text, *error_lines(query.failure)]))
        )
        self._past, self._commits = cache.commits(self._asked), cache.last_commit()
        written = re.findall(r"[^\W\d]\w*", query.text)
        self._spelled = {
            words[0]: name
            for name in written[::-1]
            if len(words := words_of(name)) == 1
        }
        """How the text writes its words."""
        self._is_aside = lru_cache(maxsize=None)(is_aside)
        self._rarity: dict[str, float] = {}
        self._signs: dict[str, _Sign] = {}

    def files(self, most: int) -> list[RankedFile]:
        named, traced = self._named(), self._traced()
        self._signs["named"] = _Sign()
        for path, reason in named.items():
            self._signs["named"].add(
                path, 1 / (1 + len(self._signs["named"].scores)), reason
            )
        self._signs["words"] = self._by_words()
        self._signs["defined"] = self._by_marked(
            "=", [*self._asked, *self._names], self._defines
        )
        self._signs["uses"] = self._by_marked(
            "", self._names, lambda path, names: f"uses {_quoted(names)}"
        )
        self._signs["path"] = self._by_marked(
            "/", self._asked, lambda path, words: f"its path has {_listed(words)}"
        )
        self._signs["past"] = self._by_past()
        self._signs["traced"] = _Sign()
        for path, found in traced.items():
            self._signs["traced"].add(
                path, 1 / (1 + len(self._signs["traced"].scores)), _traced(found)
            )
        touched = [path for path in self._query.touched if path in self._live]
        likely = sorted(
            self._fused().items(), key=lambda scored: (-scored[1], scored[0])
        )
        seeds = list(
            dict.fromkeys(
                [
                    *named,
                    *traced,
                    *touched,
                    *[path for path, _ in likely if not self._is_aside(path)],
                ]
            )
        )
        seeds = seeds[: _SEEDS + len(touched)]
        self._signs["together"] = self._by_changes(seeds)
        self._signs["imports"] = self._by_imports(seeds)
        self._signs["tests"] = self._by_tests(seeds)
        self._signs["touched"] = _Sign()
        for at, path in enumerate(touched, 1):
            self._signs["touched"].add(path, 1 / at, "changed by an earlier step")
        first = {path: at for at, path in enumerate([*named, *traced])}
        read = {path: self._judged(path) for path in self._order(first)[:_READ]}
        self._by_reading(read)
        self._drop_other_case(read)
        order = self._order(first)[:most]
        return [
            RankedFile(
                path,
                self._reasons(path),
                path in named,
                self._places(path, rank, read.get(path), traced.get(path, [])),
            )
            for rank, path in enumerate(order, 1)
        ]

    def _order(self, first: Mapping[str, int]) -> list[str]:
        """The files, those that must come first, then the source, then what is beside
        it.
        """
        scores = self._fused()
        last = len(first)
        return sorted(
            scores.keys() | first.keys(),
            key=lambda path: (
                first.get(path, last),
                self._is_aside(path),
                -scores.get(path, 0.0),
                path,
            ),
        )

    def _fused(self) -> dict[str, float]:
        """Reciprocal rank fusion: source and what is beside it each among its own."""
        scores: defaultdict[str, float] = defaultdict(float)
        for sign in self._signs.values():
            ranks = [0, 0]
            for path in sign.order():
                ranks[self._is_aside(path)] += 1
                scores[path] += 1 / (_FUSED + ranks[self._is_aside(path)])
        return scores

    def _named(self) -> dict[str, str]:
        """The files that are to be shown in any case, with the reason."""
        found = {
            path: "pinned"
            for path in sorted(self._live)
            if is_in(path, self._query.pinned)
        }
        for name in named_files(self._query.text, self._live):
            if len(name.paths) == 1:
                found.setdefault(name.paths[0], f"`{name.name}` is named in the text")
        for half in names_in(self._query.text):
            target = half if "/" in half else half.replace(".", "/")
            if (
                "/" in target
                and len(meant := self._searched.links.ending(target)) == 1
                and meant[0] in self._live
            ):
                found.setdefault(meant[0], f"`{half}` is named in the text")
        return found

    def _traced(self) -> dict[str, list[Frame]]:
        found: dict[str, list[Frame]] = {}
        for frame in (
            frames(self._query.failure, self._live, self._searched.root)
            if self._query.failure
            else ()
        ):
            found.setdefault(frame.path, []).append(frame)
        return found

    def _held(self, mark: str, words: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
        """Each of the words that some files hold, and those files; the rarest first."""
        by_word: Holders = self._cache.holders([mark + word for word in words])
        paths = self._searched.paths
        held = {
            word[len(mark) :]: [
                path for number in numbers if (path := paths.get(number)) in self._live
            ]
            for word, numbers in by_word.items()
        }
        yield from sorted(
            ((word, found) for word, found in held.items() if found),
            key=lambda item: len(item[1]),
        )

    def _says(self, word: str, holding: int) -> float:
        """How much a word says that so many files hold: no more than it does in
        messages, where `fix` is common.
        """
        files, messages = len(self._live), len(self._past.get(word, ()))
        says = rarity(holding, files)
        return (
            min(says, rarity(messages, max(self._commits, files))) if messages else says
        )

    def _by_words(self) -> _Sign:
        """Files by how many of the words they have; long ones have more of them."""
        sign, words = _Sign(), defaultdict[str, list[str]](list)
        for word, found in islice(self._held("", [*self._asked, *self._names]), _ASKED):
            self._rarity[word] = self._says(word, len(found)) ** _RARER
            for path in found:
                sign.scores[path] += self._rarity[word]
                words[path].append(word)
        for path in sign.scores:
            sign.scores[path] /= 1 + math.log1p(self._searched.lengths[path] / _LENGTH)
            sign.reasons[path] = f"has {_listed(words[path], self._spelled)}"
        return sign

    def _by_marked(
        self, mark: str, asked: Iterable[str], reason: Callable[[str, list[str]], str]
    ) -> _Sign:
        """Files by the names that they define or use, or by the words of their
        paths.
        """
        sign, words = _Sign(), defaultdict[str, list[str]](list)
        for word, found in self._held(mark, asked):
            for path in found:
                sign.scores[path] += self._says(word, len(found))
                words[path].append(word)
        for path in sign.order():
            sign.reasons[path] = reason(path, words[path])
        return sign

    def _defines(self, path: str, words: list[str]) -> str:
        if names := [word for word in words if word in self._names]:
            return f"defines {_quoted(names)}, named in the text"
        return f"defines names with {_listed(words, self._spelled)}"

    def _by_past(self) -> _Sign:
        """Files that past commits with such messages changed."""
        likeness: defaultdict[int, float] = defaultdict(float)
        for numbers in self._past.values():
            for number in numbers:
                likeness[number] += rarity(len(numbers), self._commits)
        sign = _Sign()
        for number in sorted(likeness, key=lambda number: (-likeness[number], -number))[
            :_COMMITS
        ]:
            changed = self._cache.changed_in(number)
            for path in changed:
                if path in self._live:
                    sign.add(
                        path,
                        likeness[number] / (2 + len(changed)),
                        "changed by past commits with such messages",
                    )
        return sign

    def _by_changes(self, seeds: Sequence[str]) -> _Sign:
        """The likely files, and those that changed together with them."""
        sign = _Sign()
        for rank, seed in enumerate(seeds, 1):
            sign.scores[seed] += 1 / rank
            commits = list(self._cache.commits([f"@{seed}"]).get(f"@{seed}", ()))[
                -_OF_A_FILE:
            ]
            times: Counter[str] = Counter()
            shares: defaultdict[str, float] = defaultdict(float)
            for number in commits:
                changed = self._cache.changed_in(number)
                for path in changed:
                    times[path] += 1
                    shares[path] += 1 / len(changed)
            for path, share in shares.items():
                if path in self._live and path != seed:
                    n = times[path]
                    reason = (
                        f"changed with `{seed}` in {n} commit{'' if n == 1 else 's'}"
                    )
                    sign.add(path, share / rank / (5 + len(commits)), reason)
        return sign

    def _by_imports(self, seeds: Sequence[str]) -> _Sign:
        """The likely files, those that they import, and those that import them."""
        sign, links, numbers = _Sign(), self._searched.links, self._searched.numbers
        for rank, seed in enumerate(seeds, 1):
            sign.scores[seed] += 1 / rank
            imported = dict.fromkeys(
                path
                for name in self._cache.imported(numbers[seed])
                for path in links.imported(name, seed)
            )
            for path in imported:
                if path in self._live:
                    sign.add(path, 1 / rank / len(imported), f"imported by `{seed}`")
            last = module_of(seed).rpartition("/")[2].lower()
            importers = [
                path
                for _, holders in self._held("<", [last])
                for path in holders[:_IMPORTERS]
                if any(
                    seed in links.imported(name, path)
                    for name in self._cache.imported(numbers[path])
                    if last_name(name) == last
                )
            ]
            for path in importers:
                sign.add(path, 1 / rank / len(importers), f"imports `{seed}`")
        return sign

    def _by_tests(self, seeds: Sequence[str]) -> _Sign:
        """Tests of the likely files, by their names; of a test, the file that it is
        named after.
        """
        sign = _Sign()
        stems: dict[str, list[tuple[int, str]]] = {}
        for rank, seed in enumerate(seeds, 1):
            stem = module_of(seed).rpartition("/")[2].strip("_")
            if stem and not self._is_aside(seed):
                stems.setdefault(stem, []).append((rank, seed))
        for path in self._live:
            if not any(stem in path for stem in stems):
                continue
            for rank, seed in stems.get(tested_name(PurePosixPath(path)) or "", ()):
                if PurePosixPath(path).suffix == PurePosixPath(seed).suffix:
                    sign.add(path, 1 / rank, f"test of `{seed}`")
        return sign

    def _judged(self, path: str) -> Judged:
        text = self._read(path)
        return judged(text.data, text.definitions, self._rarity, self._vocabulary)

    def _by_reading(self, read: Mapping[str, Judged]) -> None:
        """Files by their best piece, and by all of their words."""
        piece, text = self._signs["piece"], self._signs["text"] = _Sign(), _Sign()
        average = sum(each.length for each in read.values()) / max(1, len(read)) or 1
        for path, each in read.items():
            if each.pieces:
                best = each.pieces[0]
                where = f"`{best.name}`" if best.name else f"line {best.first} ff."
                piece.add(
                    path,
                    best.score,
                    f"{where} has {_listed(best.words, self._spelled)}",
                )
                text.scores[path] = relevance(
                    each.counts, each.length / average, self._rarity
                )

    def _drop_other_case(self, read: Mapping[str, Judged]) -> None:
        """Of the files that were read, drop those that use the names of the question
        only with other capitals. The index ignores the case.
        """
        uses = self._signs["uses"]
        for path, judged_text in read.items():
            if judged_text.counts.keys().isdisjoint(self._names):
                uses.scores.pop(path, None)
                uses.reasons.pop(path, None)

    def _reasons(self, path: str) -> tuple[str, ...]:
        """At most four, those of the strongest kinds."""
        said = [
            sign.reasons[path]
            for name in _TELLING
            if path in (sign := self._signs[name]).reasons
        ]
        return tuple(said[:4])

    def _places(
        self, path: str, rank: int, found: Judged | None, traced: Sequence[Frame]
    ) -> tuple[Place, ...]:
        """Where the failure was, then the best pieces, with the beginning after the
        first of them.
        """
        if found is None:
            return ()
        text = self._read(path)
        places: list[Place] = []
        for at, frame in enumerate(traced[:_FRAMES]):
            piece = next(
                (
                    piece
                    for piece in pieces(text.lines, text.definitions)
                    if frame.line <= piece.last
                ),
                None,
            )
            if piece and (piece.first, piece.last) not in [
                (place.first, place.last) for place in places
            ]:
                places.append(
                    Place(
                        piece.first,
                        piece.last,
                        piece.name,
                        _traced([frame]),
                        _FOREMOST / (rank + at),
                    )
                )
        beginning = head(text.definitions)
        for piece in found.pieces[:_PLACES]:
            if (piece.first, piece.last) in [
                (place.first, place.last) for place in places
            ]:
                continue
            use = piece.score / (_FUSED + rank) / math.sqrt(piece.size + _PIECE_COST)
            places.append(
                Place(
                    piece.first,
                    piece.last,
                    piece.name,
                    f"has {_listed(piece.words, self._spelled)}",
                    use,
                )
            )
            if piece is found.pieces[0] and piece.first > beginning > 0:
                places.append(
                    Place(1, beginning, "", "the beginning of the file", use * _AFTER)
                )
        return tuple(sorted(places, key=lambda place: -place.use))


def rarity(holding: int, all_of_them: int) -> float:
    """How much a word says that so many have, as BM25 has it."""
    return math.log1p((all_of_them - holding + 0.5) / (holding + 0.5))


def _listed(
    words: Iterable[str], spelled: Mapping[str, str] = MappingProxyType({})
) -> str:
    """A few words as the text has them; a stem as the word that begins with it."""
    written = list(spelled.values())
    return ", ".join(
        dict.fromkeys(
            spelled.get(word)
            or next((said for said in written if said.lower().startswith(word)), word)
            for word in islice(words, 4)
        )
    )


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names[:3])


def _traced(found: Sequence[Frame]) -> str:
    lines = sorted({frame.line for frame in found[:_FRAMES]})
    return (
        f"the failure names line{'' if len(lines) == 1 else 's'}"
        f" {', '.join(map(str, lines))}"
    )
