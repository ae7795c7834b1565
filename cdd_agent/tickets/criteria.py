"""Acceptance criteria by their words: references in plans, and digests for runs."""

import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import TypeAlias

from cdd_agent.files.atomic import digest
from cdd_agent.pattern import Pattern
from cdd_agent.tickets.writable_text import one_line

CriterionRef: TypeAlias = int | str
"""A reference in a plan: the place in the spec, from 1, or the words."""
_LONGEST = 100
"""Longest criterion, in characters, that a plan names in full."""
_SHORTENED = Pattern(r"(?:…|\.\.\.)$")
_NUMBER_MARK = r"[-_ #]*[0-9]{1,9}\s*[:.)–—-]\s+"
_NAMED_LABEL = Pattern(rf"\s*(?:AC|criterion){_NUMBER_MARK}", re.IGNORECASE)
_ANY_LABEL = Pattern(rf"(?:AC|criterion)?{_NUMBER_MARK}", re.IGNORECASE)
_MARKS = " *_`\"'“”‘’„«»"
_STOPS = f"{_MARKS}.;,"
_MARKED = Pattern(r"(`+|\*+|_+|\"|'|[“„‘«])(.+?)(`+|\*+|_+|\"|'|[”“’»])")
_CLOSING = {"“": "”", "„": "“", "‘": "’", "«": "»"}
_TYPOGRAPHIC = str.maketrans("’‘“”„", '\'\'"""')
_REMARK = Pattern(r"\([^()]*\)")
_NUMBERS_ONLY = Pattern(
    r"\W*(?:none|n/a)?\W*|(?:acceptance|criteri(?:on|a)|\bac|and|to|through|[0-9]"
    r"|[\s,;:&#`+._\-–—])*",
    re.IGNORECASE,
)
_NUMBER_LABEL = Pattern(r"\bAC[-_ ]?(?=[0-9])", re.IGNORECASE)
_NUMBER = r"(?<![\w.])([0-9]{1,9})(?!\w|\.[0-9])"
_NUMBERS = Pattern(rf"{_NUMBER}(?:\s*(?:-|–|—|to|through)\s*{_NUMBER})?")
_MAX_RANGE = 100_000


@lru_cache(maxsize=8)
def criteria_digests(criteria: tuple[str, ...]) -> tuple[str, ...]:
    """Return digests that ignore white space, labels such as `AC-1:`, and Unicode
    spelling.
    """
    return tuple(map(_digest, criteria))


def is_numbers(text: str) -> bool:
    """True for places such as `1, 3-5 and AC8`, and for `none`."""
    return _NUMBERS_ONLY.fullmatch(_REMARK.sub("", text)) is not None


def read_refs(text: str) -> tuple[CriterionRef, ...]:
    """Return the listed places, or else the words. Huge ranges are reduced to their
    ends.
    """
    if not is_numbers(text):
        words = one_line_words(text)
        return (words,) if words else ()
    numbers: list[int] = []
    text = _NUMBER_LABEL.sub("", _REMARK.sub("", text))
    for first, last in _NUMBERS.findall(text):
        numbers.append(int(first))
        if last and int(last) - int(first) < _MAX_RANGE:
            numbers += range(int(first) + 1, int(last))
        if last:
            numbers.append(int(last))
    return tuple(numbers)


def normal_refs(refs: Iterable[CriterionRef]) -> tuple[CriterionRef, ...]:
    """Return references as plan.md can hold them: sorted places, then words."""
    places: set[int] = set()
    words: list[str] = []
    for ref in refs:
        for read in (ref,) if isinstance(ref, int) else read_refs(ref):
            if isinstance(read, int):
                places.add(read)
            else:
                words.append(read)
    return (*sorted(places), *dict.fromkeys(words))


def find_criteria(
    refs: Iterable[CriterionRef], criteria: Sequence[str]
) -> dict[CriterionRef, int]:
    """Return reference → place, from 1, for references that name a criterion."""
    keys = _keys(tuple(criteria))
    places: dict[CriterionRef, int] = {}
    for ref in refs:
        place = ref if isinstance(ref, int) else _find_place(ref, keys)
        if place is not None and 1 <= place <= len(criteria):
            places[ref] = place
    return places


def served_places(
    refs: Iterable[CriterionRef], criteria: Sequence[str]
) -> frozenset[int]:
    """Return the places, from 1, of the criteria that a step names."""
    return frozenset(find_criteria(refs, criteria).values())


def name_criteria(
    refs: Collection[CriterionRef], criteria: Sequence[str]
) -> tuple[CriterionRef, ...]:
    """Replace references by the words of the spec. A reference that names none stays,
    and so does a number whose words name another criterion.
    """
    places = find_criteria(refs, criteria)
    named = [_words_of(places[ref], criteria) if ref in places else ref for ref in refs]
    return tuple(dict.fromkeys(named))


def one_line_words(text: str) -> str:
    """Return words for a plan to name a criterion, without surrounding quotes or
    Markdown.
    """
    words = one_line(text)
    if not words.strip(_MARKS):
        return ""
    while match := _MARKED.fullmatch(words):
        opening, inner, closing = match.groups()
        is_pair = closing == _CLOSING.get(opening, opening)
        if not is_pair or opening in _runs(inner) or closing in _runs(inner):
            break
        words = inner.strip()
    return words


def _runs(text: str) -> set[str]:
    """Return the marks in a text; repeated ones together."""
    return {match[0] for match in re.finditer(r"([*_`\"'“”‘’„«»])\1*", text)}


def _digest(text: str) -> str:
    text = _without(_NAMED_LABEL, text) or text
    words = unicodedata.normalize("NFC", " ".join(text.split()))
    return digest(words.encode("utf-8", "surrogatepass")) or ""


def _words_of(place: int, criteria: Sequence[str]) -> CriterionRef:
    full = one_line_words(criteria[place - 1])
    short = full
    if len(full) > _LONGEST:
        short = f"{full[:_LONGEST].rpartition(' ')[0] or full[:_LONGEST]} …"
    for words in (short, full):
        criterion = find_criteria([words], criteria).get(words)
        if criterion == place and read_refs(words) == (words,):
            return words
    return place


def _find_place(words: str, keys: Sequence[str]) -> int | None:
    """Return the place of the criterion with these words. Words ending in "…" match a
    unique beginning. Labels such as `AC-1:` may differ.
    """
    without_label = _without(_ANY_LABEL, words.strip(_MARKS))
    unlabelled = [_without(_NAMED_LABEL, key) for key in keys]
    for text, names in (
        (words, keys),
        (without_label, keys),
        (without_label, unlabelled),
    ):
        place = _find_key(text, names)
        if place is not None:
            return place
    return None


def _without(label: Pattern[str], text: str) -> str:
    match = label.match(text)
    return text[match.end() :] if match else text


def _find_key(words: str, keys: Sequence[str]) -> int | None:
    key = _key(words)
    if key and key in keys:
        return keys.index(key) + 1
    text, is_shortened = _SHORTENED.subn("", words.rstrip(_MARKS))
    beginning = _key(text)
    if not is_shortened or not beginning:
        return None
    keys_that_fit = [key for key in keys if key.startswith(beginning)]
    # Repeated words are one criterion.
    return keys.index(keys_that_fit[0]) + 1 if len(set(keys_that_fit)) == 1 else None


@lru_cache(maxsize=8)
def _keys(criteria: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(_key, criteria))


def _key(text: str) -> str:
    """Return the form in which references are compared."""
    text = unicodedata.normalize("NFC", text).translate(_TYPOGRAPHIC)
    return " ".join(re.sub(r"[*_`]", "", text).split()).casefold().strip(_STOPS)
