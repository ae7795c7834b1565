"""Texts as the index takes them in: as terms, for the full-text search of the database.

A term is an identifier of a text as it is written, or a name after a mark:
`=parse_range` is defined there, `/mail` is in the path, `<http` is imported. That
search knows no case, but words are told apart by it: so a term has control characters
in the place of capital letters. Such characters are in no text when its terms are made.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache

from cdd_agent.context.words import BETWEEN, is_code, words_of

DEFINED, PLACED, IMPORTED = "=", "/", "<"
"""Marks."""
_CAPITALS = bytes(range(ord("A"), ord("Z") + 1))
_CODES = bytes([*range(1, 9), *range(14, 32)])
"""One for each capital letter; none of them is a blank."""
IN_TERMS = f"_{DEFINED}{PLACED}{IMPORTED}{_CODES.decode()}"
"""All characters of terms besides small letters, digits, and what is not ASCII."""
_WRITTEN = BETWEEN.translate(bytes.maketrans(_CAPITALS, _CODES))
_READ = str.maketrans(_CODES.decode(), _CAPITALS.decode())


def as_terms(data: bytes) -> str:
    """All identifiers and words of a text, with spaces between them."""
    return data.translate(_WRITTEN).decode("utf-8", "replace")


def marked(mark: str, names: Iterable[str]) -> str:
    """The terms of names after a mark, each led by a space."""
    written = as_terms(" ".join(names).encode("utf-8", "replace"))
    return "".join([f" {mark}{name}" for name in written.split(" ") if name])


def imported(name: str) -> str:
    """The term of a module's name, as it is looked up: it is not taken apart."""
    return IMPORTED + as_terms(name.encode("utf-8", "replace")).replace(" ", "")


def term_of(word: str) -> str | None:
    """The only term in which a word, that may have a mark, can be; None where words of
    many terms are meant.
    """
    mark = word[:1] if word[:1] in (DEFINED, PLACED, IMPORTED) else ""
    name = word.removeprefix(mark)
    if mark == IMPORTED:
        return imported(name)
    return mark + as_terms(name.encode("utf-8", "replace")) if is_code(name) else None


def taken_apart(terms: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Each of the words of these terms, with the mark of its term, and the term."""
    words = lru_cache(maxsize=50_000)(words_of)
    for term in terms:
        name = term.translate(_READ)
        if not name.startswith(IMPORTED):
            bare = name.lstrip(DEFINED + PLACED)
            mark = name[: len(name) - len(bare)]
            for word in words(bare):
                yield mark + word, term
