"""Rank the files that a query is about, by many weak signs. They are fused by rank, so
no sign needs a weight.

Signs for all files come from the index: words, defined names, paths, and past commits
with similar messages. The best files add their neighbours: imports in both directions,
files that changed together with them, tests. Then the likeliest files are read and
judged by the pieces that would be shown.
"""

import math
import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path, PurePosixPath

from msgspec import Struct, field

from cdd_agent.context.cache import Cache
from cdd_agent.context.definitions import Definition
from cdd_agent.context.excerpts import (
    ExcerptPiece,
    Judged,
    head,
    judged,
    pieces,
    relevance,
)
from cdd_agent.context.links import Links, last_name, module_of
from cdd_agent.context.places import CodePlace, RankedFile
from cdd_agent.context.query import Query, is_in
from cdd_agent.context.terms import DEFINED, IMPORTED, IN_PATH
from cdd_agent.context.traces import Frame, error_lines, frames
from cdd_agent.context.words import (
    Vocabulary,
    names_in_code,
    telling,
    words_in,
    words_of,
)
from cdd_agent.files.named import named_files, names_in
from cdd_agent.pattern import Pattern
from cdd_agent.project.subjects import is_test_file, tested_name

_FUSED = 5
"""The constant of reciprocal rank fusion. A lower one separates the first ranks
more.
"""
_LISTED = 200
"""Files that a sign ranks."""
_SEEDS = 8
"""Likely files whose neighbours are ranked too."""
_READ = 40
"""Files to read and judge by their pieces."""
_PLACES = 40
"""Places of one file."""
_ASKED = 80
"""Words of a query to search, the rarest ones."""
_FAILURE = 4_000
"""Characters at the end of a failure's output to search for names."""
_COMMITS = 40
"""Past commits with similar messages."""
_OF_A_FILE = 100
"""Past commits that changed one likely file."""
_IMPORTERS = 50
"""Candidates among which one file's importers are searched."""
_PIECE_COST = 200
"""Bytes of a prompt around a piece."""
_RARER = 1.5
"""Exponent for a word's rarity."""
_LENGTH = 4_000
"""Bytes of a file that counts as long."""
_FRAMES = 5
"""Lines of a failure to show per file."""
_FOREMOST = 1_000.0
"""The use of these lines: before everything else."""
_AFTER = 0.999
"""The use of a file's beginning, relative to its best piece."""
_MOST_REASONS = 4
_MOST_WORDS = 4
"""Words in one reason."""
_MOST_QUOTED = 3
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
"""The signs with reasons, most telling first."""
_ASIDE = Pattern(
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
    data: bytes
    definitions: tuple[Definition, ...]

    @property
    def lines(self) -> int:
        return self.data.count(b"\n") + (not self.data.endswith(b"\n"))


class Searched(Struct, frozen=True):
    numbers: Mapping[str, int]
    lengths: Mapping[str, int]
    paths: Mapping[int, str]
    links: Links
    root: Path


class _Sign(Struct):
    """The verdict of one sign: a score for each file, and the reason."""

    scores: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    reasons: dict[str, str] = field(default_factory=dict)

    def add(self, path: str, score: float, reason: str) -> None:
        """Add to a file's score. The first reason is the strongest and stays."""
        self.scores[path] += score
        self.reasons.setdefault(path, reason)

    def sort_paths(self) -> list[str]:
        paths = [path for path, score in self.scores.items() if score > 0]
        return sorted(paths, key=lambda path: (-self.scores[path], path))[:_LISTED]


def _rank_in_order(reasons: Iterable[tuple[str, str]]) -> _Sign:
    sign = _Sign()
    for place, (path, reason) in enumerate(reasons, start=1):
        sign.add(path, 1 / place, reason)
    return sign


def is_aside(path: str) -> bool:
    """True for a file beside the source: a test, an example, a page, a setting."""
    return is_test_file(PurePosixPath(path)) or _ASIDE.search(path) is not None


class Ranking:
    """The answer to one query."""

    def __init__(
        self,
        query: Query,
        cache: Cache,
        searched: Searched,
        read: Callable[[str], Text],
        vocabulary: Vocabulary,
    ) -> None:
        self._query = query
        self._cache = cache
        self._searched = searched
        self._read = read
        self._vocabulary = vocabulary
        self._live = {
            path for path in searched.numbers if not is_in(path, query.without)
        }
        names = names_in_code(f"{query.text}\n{query.failure[-_FAILURE:]}")
        self._names = list(dict.fromkeys(names))[:_ASKED]
        lines = [query.text, *error_lines(query.failure)]
        self._asked = telling(words_in("\n".join(lines)))
        self._past = cache.commits(self._asked)
        self._commits = cache.last_commit()
        self._spelling = _find_spelling(query.text)
        self._is_aside = lru_cache(maxsize=None)(is_aside)
        self._rarity: dict[str, float] = {}
        self._signs: dict[str, _Sign] = {}

    def files(self, most: int) -> list[RankedFile]:
        named = self._find_named()
        traced = self._find_traced()
        self._add_signs_of_index(named, traced)
        self._add_signs_of_neighbours([*named, *traced])
        first = {path: place for place, path in enumerate([*named, *traced])}
        judged_texts = {path: self._judge(path) for path in self._sort(first)[:_READ]}
        self._add_signs_of_reading(judged_texts)
        self._drop_other_case(judged_texts)
        ranked = []
        for rank, path in enumerate(self._sort(first)[:most], start=1):
            places: tuple[CodePlace, ...] = ()
            if path in judged_texts:
                frames_in_file = traced.get(path, [])
                places = self._places(path, rank, judged_texts[path], frames_in_file)
            ranked.append(RankedFile(path, self._reasons(path), path in named, places))
        return ranked

    def _add_signs_of_index(
        self, named: Mapping[str, str], traced: Mapping[str, list[Frame]]
    ) -> None:
        signs = self._signs
        signs["named"] = _rank_in_order(named.items())
        signs["words"] = self._sign_of_words()
        both = [*self._asked, *self._names]
        signs["defined"] = self._sign_of_terms(DEFINED, both, self._describe_defined)
        signs["uses"] = self._sign_of_terms(
            "", self._names, lambda names: f"uses {_quote(names)}"
        )
        signs["path"] = self._sign_of_terms(
            IN_PATH, self._asked, lambda words: f"its path has {_list_words(words, {})}"
        )
        signs["past"] = self._sign_of_past()
        signs["traced"] = _rank_in_order(
            (path, _describe_frames(frames)) for path, frames in traced.items()
        )

    def _add_signs_of_neighbours(self, first: Sequence[str]) -> None:
        touched = [path for path in self._query.touched if path in self._live]
        scores = self._fuse()
        likely = sorted(scores, key=lambda path: (-scores[path], path))
        source = [path for path in likely if not self._is_aside(path)]
        seeds = list(dict.fromkeys([*first, *touched, *source]))
        seeds = seeds[: _SEEDS + len(touched)]
        self._signs["together"] = self._sign_of_changes(seeds)
        self._signs["imports"] = self._sign_of_imports(seeds)
        self._signs["tests"] = self._sign_of_tests(seeds)
        self._signs["touched"] = _rank_in_order(
            (path, "changed by an earlier step") for path in touched
        )

    def _sort(self, first: Mapping[str, int]) -> list[str]:
        """Return the files that must come first, then the source, then files beside
        it.
        """
        scores = self._fuse()
        last = len(first)

        def key(path: str) -> tuple[int, bool, float, str]:
            place = first.get(path, last)
            return place, self._is_aside(path), -scores.get(path, 0.0), path

        return sorted(scores.keys() | first.keys(), key=key)

    def _fuse(self) -> dict[str, float]:
        """Fuse the reciprocal ranks. Source and files beside it are ranked
        separately.
        """
        scores: defaultdict[str, float] = defaultdict(float)
        for sign in self._signs.values():
            ranks = {True: 0, False: 0}
            for path in sign.sort_paths():
                side = self._is_aside(path)
                ranks[side] += 1
                scores[path] += 1 / (_FUSED + ranks[side])
        return scores

    def _find_named(self) -> dict[str, str]:
        named = {}
        for path in sorted(self._live):
            if is_in(path, self._query.pinned):
                named[path] = "pinned"
        text = self._query.text
        for name in named_files(text, self._live):
            if len(name.paths) == 1:
                named.setdefault(name.paths[0], f"`{name.name}` is named in the text")
        for half in names_in(text):
            target = half if "/" in half else half.replace(".", "/")
            if "/" not in target:
                continue
            paths = self._searched.links.ending(target)
            if len(paths) == 1 and paths[0] in self._live:
                named.setdefault(paths[0], f"`{half}` is named in the text")
        return named

    def _find_traced(self) -> dict[str, list[Frame]]:
        traced: dict[str, list[Frame]] = {}
        if self._query.failure:
            for frame in frames(self._query.failure, self._live, self._searched.root):
                traced.setdefault(frame.path, []).append(frame)
        return traced

    def _find_holders(
        self, mark: str, words: Iterable[str]
    ) -> list[tuple[str, list[str]]]:
        marked = [mark + word for word in words]
        holders = []
        for word, numbers in self._cache.holders(marked).items():
            paths = [self._searched.paths.get(number, "") for number in numbers]
            live = [path for path in paths if path in self._live]
            if live:
                holders.append((word[len(mark) :], live))
        return sorted(holders, key=lambda item: len(item[1]))

    def _measure_rarity(self, word: str, holding: int) -> float:
        """Return the rarity of a word in `holding` files, at most that in commit
        messages, where words such as `fix` are common.
        """
        files = len(self._live)
        in_files = rarity(holding, files)
        messages = len(self._past.get(word, ()))
        if not messages:
            return in_files
        return min(in_files, rarity(messages, max(self._commits, files)))

    def _sign_of_words(self) -> _Sign:
        """Rank files by their words. Long files have more of them."""
        sign = _Sign()
        words = defaultdict[str, list[str]](list)
        holders = self._find_holders("", [*self._asked, *self._names])
        for word, paths in holders[:_ASKED]:
            self._rarity[word] = self._measure_rarity(word, len(paths)) ** _RARER
            for path in paths:
                sign.scores[path] += self._rarity[word]
                words[path].append(word)
        for path in sign.scores:
            sign.scores[path] /= 1 + math.log1p(self._searched.lengths[path] / _LENGTH)
            sign.reasons[path] = f"has {_list_words(words[path], self._spelling)}"
        return sign

    def _sign_of_terms(
        self, mark: str, asked: Iterable[str], describe: Callable[[list[str]], str]
    ) -> _Sign:
        """Rank files by names that they define or use, or by words of their paths."""
        sign = _Sign()
        words = defaultdict[str, list[str]](list)
        for word, paths in self._find_holders(mark, asked):
            score = self._measure_rarity(word, len(paths))
            for path in paths:
                sign.scores[path] += score
                words[path].append(word)
        for path in sign.sort_paths():
            sign.reasons[path] = describe(words[path])
        return sign

    def _describe_defined(self, words: list[str]) -> str:
        names = [word for word in words if word in self._names]
        if names:
            return f"defines {_quote(names)}, named in the text"
        return f"defines names with {_list_words(words, self._spelling)}"

    def _sign_of_past(self) -> _Sign:
        likeness: defaultdict[int, float] = defaultdict(float)
        for numbers in self._past.values():
            for number in numbers:
                likeness[number] += rarity(len(numbers), self._commits)
        sign = _Sign()
        alike = sorted(likeness, key=lambda number: (-likeness[number], -number))
        for number in alike[:_COMMITS]:
            changed = self._cache.changed_in(number)
            for path in changed:
                if path in self._live:
                    score = likeness[number] / (2 + len(changed))
                    sign.add(
                        path, score, "changed by past commits with similar messages"
                    )
        return sign

    def _sign_of_changes(self, seeds: Sequence[str]) -> _Sign:
        sign = _Sign()
        for rank, seed in enumerate(seeds, start=1):
            sign.scores[seed] += 1 / rank
            term = f"@{seed}"
            commits = self._cache.commits([term]).get(term, array("I"))[-_OF_A_FILE:]
            times: Counter[str] = Counter()
            shares: defaultdict[str, float] = defaultdict(float)
            for number in commits:
                changed = self._cache.changed_in(number)
                for path in changed:
                    times[path] += 1
                    shares[path] += 1 / len(changed)
            for path, share in shares.items():
                if path not in self._live or path == seed:
                    continue
                noun = "commit" if times[path] == 1 else "commits"
                reason = f"changed with `{seed}` in {times[path]} {noun}"
                sign.add(path, share / rank / (5 + len(commits)), reason)
        return sign

    def _sign_of_imports(self, seeds: Sequence[str]) -> _Sign:
        sign = _Sign()
        for rank, seed in enumerate(seeds, start=1):
            sign.scores[seed] += 1 / rank
            imported: dict[str, None] = {}
            for name in self._imported_names(seed):
                imported.update(
                    dict.fromkeys(self._searched.links.imported(name, seed))
                )
            for path in imported:
                if path in self._live:
                    sign.add(path, 1 / rank / len(imported), f"imported by `{seed}`")
            importers = self._find_importers(seed)
            for path in importers:
                sign.add(path, 1 / rank / len(importers), f"imports `{seed}`")
        return sign

    def _imported_names(self, path: str) -> list[str]:
        return self._cache.imported(self._searched.numbers[path])

    def _find_importers(self, seed: str) -> list[str]:
        last = module_of(seed).rpartition("/")[2].lower()
        importers = []
        for _, paths in self._find_holders(IMPORTED, [last]):
            for path in paths[:_IMPORTERS]:
                for name in self._imported_names(path):
                    if last_name(name) != last:
                        continue
                    if seed in self._searched.links.imported(name, path):
                        importers.append(path)
                        break
        return importers

    def _sign_of_tests(self, seeds: Sequence[str]) -> _Sign:
        sign = _Sign()
        stems: dict[str, list[tuple[int, str]]] = {}
        for rank, seed in enumerate(seeds, start=1):
            stem = module_of(seed).rpartition("/")[2].strip("_")
            if stem and not self._is_aside(seed):
                stems.setdefault(stem, []).append((rank, seed))
        for path in self._live:
            if not any(stem in path for stem in stems):
                continue
            test = PurePosixPath(path)
            for rank, seed in stems.get(tested_name(test) or "", ()):
                if test.suffix == PurePosixPath(seed).suffix:
                    sign.add(path, 1 / rank, f"test of `{seed}`")
        return sign

    def _judge(self, path: str) -> Judged:
        text = self._read(path)
        return judged(text.data, text.definitions, self._rarity, self._vocabulary)

    def _add_signs_of_reading(self, judged_texts: Mapping[str, Judged]) -> None:
        piece = self._signs["piece"] = _Sign()
        text = self._signs["text"] = _Sign()
        length = sum(each.length for each in judged_texts.values())
        average = length / max(1, len(judged_texts)) or 1
        for path, each in judged_texts.items():
            if not each.pieces:
                continue
            best = each.pieces[0]
            where = f"`{best.name}`" if best.name else f"line {best.first} ff."
            words = _list_words(best.words, self._spelling)
            piece.add(path, best.score, f"{where} has {words}")
            text.scores[path] = relevance(
                each.counts, each.length / average, self._rarity
            )

    def _drop_other_case(self, judged_texts: Mapping[str, Judged]) -> None:
        """Drop files that use the query's names only in other case. The index ignores
        case, so only files that were read can be judged.
        """
        uses = self._signs["uses"]
        for path, each in judged_texts.items():
            if each.counts.keys().isdisjoint(self._names):
                uses.scores.pop(path, None)
                uses.reasons.pop(path, None)

    def _reasons(self, path: str) -> tuple[str, ...]:
        reasons = []
        for name in _TELLING:
            reason = self._signs[name].reasons.get(path)
            if reason is not None:
                reasons.append(reason)
        return tuple(reasons[:_MOST_REASONS])

    def _places(
        self, path: str, rank: int, judged_text: Judged, traced: Sequence[Frame]
    ) -> tuple[CodePlace, ...]:
        text = self._read(path)
        places: dict[tuple[int, int], CodePlace] = {}

        def add(piece: ExcerptPiece, why: str, use: float) -> None:
            place = CodePlace(piece.first, piece.last, piece.name, why, use)
            places.setdefault((piece.first, piece.last), place)

        all_pieces = pieces(text.lines, text.definitions) if traced else []
        for order, frame in enumerate(traced[:_FRAMES]):
            for piece in all_pieces:
                if frame.line <= piece.last:
                    add(piece, _describe_frames([frame]), _FOREMOST / (rank + order))
                    break
        beginning = head(text.definitions)
        for piece in judged_text.pieces[:_PLACES]:
            if (piece.first, piece.last) in places:
                continue
            use = piece.score / (_FUSED + rank) / math.sqrt(piece.size + _PIECE_COST)
            add(piece, f"has {_list_words(piece.words, self._spelling)}", use)
            if piece is judged_text.pieces[0] and piece.first > beginning > 0:
                add(
                    ExcerptPiece(1, beginning, ""),
                    "the beginning of the file",
                    use * _AFTER,
                )
        return tuple(sorted(places.values(), key=lambda place: -place.use))


def rarity(holding: int, count: int) -> float:
    """Return the rarity of a word in `holding` of `count` texts, as in BM25."""
    return math.log1p((count - holding + 0.5) / (holding + 0.5))


def _find_spelling(text: str) -> dict[str, str]:
    spelling = {}
    for name in reversed(re.findall(r"[^\W\d]\w*", text)):
        words = words_of(name)
        if len(words) == 1:
            spelling[words[0]] = name
    return spelling


def _list_words(words: Sequence[str], spelling: Mapping[str, str]) -> str:
    """List a few words as the text spells them. A stem becomes the word that begins
    with it.
    """
    listed = []
    for word in words[:_MOST_WORDS]:
        written = spelling.get(word)
        for longer in spelling.values():
            if written is None and longer.lower().startswith(word):
                written = longer
        listed.append(written or word)
    return ", ".join(dict.fromkeys(listed))


def _quote(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names[:_MOST_QUOTED])


def _describe_frames(frames: Sequence[Frame]) -> str:
    lines = sorted({frame.line for frame in frames[:_FRAMES]})
    noun = "line" if len(lines) == 1 else "lines"
    return f"the failure names {noun} {', '.join(map(str, lines))}"
