"""The terms of files, for the database's full-text search.

A term is an identifier of a text, or a name after a mark: `=parse_range` is defined
there, `/mail` is in the path, `<http` is imported. Search and terms ignore case. The
ranking reads the best files and compares the case.
"""

from collections.abc import Iterable

from cdd_agent.context.links import last_name
from cdd_agent.context.source import Source
from cdd_agent.context.words import BETWEEN, is_code, words_of

DEFINED, IN_PATH, IMPORTED = "=", "/", "<"
TERM_SIGNS = "_=/<"
"""All ASCII signs of terms, except letters and digits."""


class TermWriter:
    """Writes the terms of files, and collects the words of new terms."""

    def __init__(self) -> None:
        self._seen: dict[str, set[bytes]] = {"": set(), DEFINED: set(), IN_PATH: set()}
        self._words: list[tuple[str, str]] = []

    def write_terms(self, path: str, data: bytes, source: Source) -> str:
        plain = data.translate(BETWEEN)
        self._collect("", set(plain.split()))
        terms = [plain.lower().decode("utf-8", "replace")]
        for mark, text in ((IN_PATH, path), (DEFINED, " ".join(source.defined))):
            names = text.encode("utf-8", "replace").translate(BETWEEN).split()
            self._collect(mark, set(names))
            terms += [mark + _fold(name) for name in names]
        for name in source.imported:
            terms.append(mark_import(name))
        return " ".join(terms)

    def take_words(self) -> list[tuple[str, str]]:
        words = self._words
        self._words = []
        return words

    def _collect(self, mark: str, names: set[bytes]) -> None:
        new = names.difference(self._seen[mark])
        self._seen[mark].update(new)
        for name in new:
            term = mark + _fold(name)
            for word in words_of(name.decode("utf-8", "replace")):
                self._words.append((mark + word, term))


def mark_import(name: str) -> str:
    """Return the term of an import. Its name is not split into words."""
    return IMPORTED + _join(last_name(name))


def find_only_term(word: str) -> str | None:
    """Return the only term that can contain a word, which may have a mark. None if
    several can.
    """
    mark = word[:1] if word[:1] in (DEFINED, IN_PATH, IMPORTED) else ""
    name = word.removeprefix(mark)
    if mark == IMPORTED or is_code(name):
        return mark + _join(name)
    return None


def quote_terms(terms: Iterable[str]) -> str:
    """Return a query for files with any of the terms."""
    return " OR ".join(f'"{term}"' for term in terms)


def _join(name: str) -> str:
    parts = name.encode("utf-8", "replace").translate(BETWEEN).split()
    return "".join(map(_fold, parts))


def _fold(name: bytes) -> str:
    return name.lower().decode("utf-8", "replace")
