"""Find the files of a project that a text names. Any file's name counts, because no
list of suffixes is complete.
"""

from collections.abc import Collection, Iterator

from msgspec import Struct

from cdd_agent.files.spelling import compose
from cdd_agent.pattern import Pattern

_TICKED = Pattern(r"(?<!`)(`{1,2})(?!`)(?P<text>[^\n]{1,300}?)(?<!`)\1(?!`)")
_WORD = Pattern(r"[^\s`'\"“”‘’()\[\]{}<>,;:!?*|=]+")
_SIGN_OF_NAME = Pattern(r"[./\\A-Z]")
"""Signs that make a plain word a name: `src/app`, `app.py`, `Makefile`. Without one it
is an English word, such as `run`, even if a file is called so.
"""


class NamedFile(Struct, frozen=True):
    """A name in a text and the files that it may mean; several if they share the
    name.
    """

    name: str
    paths: tuple[str, ...]


def names_in(text: str) -> Iterator[str]:
    """Yield possible file names in the text's order: everything in back-ticks, and
    words with a dot, a slash or a capital. A name after an `@` comes with and without
    it.
    """
    start = 0
    for ticked in _TICKED.finditer(text):
        yield from _names_in_words(text[start : ticked.start()])
        yield from _spellings(ticked["text"].strip())
        yield from _names_in_words(ticked["text"])
        start = ticked.end()
    yield from _names_in_words(text[start:])


def named_files(text: str, paths: Collection[str]) -> list[NamedFile]:
    """Return the `paths` that a text names, in its order: by the whole path, its end,
    or the file name. Unicode normal forms matter only if two files differ in them.
    """
    by_name: dict[str, list[str]] = {}
    for path in paths:
        by_name.setdefault(_last_part(compose(path)), []).append(path)
    named: dict[tuple[str, ...], NamedFile] = {}
    for name in names_in(text):
        candidates = by_name.get(_last_part(compose(name)), [])
        chosen = _choose(name, candidates)
        if chosen:
            named.setdefault(chosen, NamedFile(name, chosen))
    return list(named.values())


def _choose(name: str, candidates: list[str]) -> tuple[str, ...]:
    """Return the paths that a name means: exactly this path, else the same path in
    another normal form, else paths that end with the name.
    """
    if name in candidates:
        return (name,)
    composed = compose(name)
    same = [path for path in candidates if compose(path) == composed]
    if same:
        return tuple(sorted(same))
    end = f"/{composed}"
    return tuple(sorted(path for path in candidates if compose(path).endswith(end)))


def _last_part(path: str) -> str:
    return path.rpartition("/")[2]


def _names_in_words(text: str) -> Iterator[str]:
    for word in _WORD.findall(text):
        name = word.rstrip(".")  # the sentence's full stop
        if _SIGN_OF_NAME.search(name):
            yield from _spellings(name)


def _spellings(name: str) -> Iterator[str]:
    plain = name.replace("\\", "/").removeprefix("./")
    yield plain
    if plain.startswith("@"):
        yield plain[1:]
