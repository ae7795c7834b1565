"""Files of a project that a text names. A name is what a file is called: no list of
suffixes knows them all.
"""

import re
from collections.abc import Collection, Iterator

from msgspec import Struct

_TICKED = re.compile(r"(?<!`)(`{1,2})(?!`)(?P<text>[^\n]{1,300}?)(?<!`)\1(?!`)")
_WORD = re.compile(r"[^\s`'\"“”‘’()\[\]{}<>,;:!?*|=]+")
_SAYS_SO = re.compile(r"[./\\A-Z]")
"""In a plain word that is no English one: `src/app`, `app.py`, `Makefile`; not `run`,
for which there may be a file.
"""


class NamedFile(Struct, frozen=True):
    """A name in a text, and the files that it may mean: one, unless several are called
    so.
    """

    name: str
    paths: tuple[str, ...]


def names_in(text: str) -> Iterator[str]:
    """Possible names of files, in the order of the text: all that stands in back-ticks,
    and words that look like one by a dot, a slash or a capital. One with an `@` before
    it comes also without.
    """
    at = 0
    for ticked in _TICKED.finditer(text):
        yield from _words(text[at : ticked.start()])
        yield from _spellings(ticked["text"].strip())
        yield from _words(ticked["text"])
        at = ticked.end()
    yield from _words(text[at:])


def named_files(text: str, paths: Collection[str]) -> list[NamedFile]:
    """Which of these `paths` a text names, in its order: by the whole path, by its end,
    or by the file's name alone.
    """
    by_name: dict[str, list[str]] = {}
    for path in paths:
        by_name.setdefault(path.rpartition("/")[2], []).append(path)
    found: dict[tuple[str, ...], NamedFile] = {}
    for name in names_in(text):
        alike = by_name.get(name.rpartition("/")[2], ())
        meant = (
            [name]
            if name in alike
            else sorted(path for path in alike if path.endswith(f"/{name}"))
        )
        if meant:
            found.setdefault(tuple(meant), NamedFile(name, tuple(meant)))
    return list(found.values())


def _words(text: str) -> Iterator[str]:
    for word in _WORD.findall(text):
        name = word.rstrip(".")  # the sentence's full stop
        if _SAYS_SO.search(name):
            yield from _spellings(name)


def _spellings(name: str) -> Iterator[str]:
    plain = name.replace("\\", "/").removeprefix("./")
    yield plain
    if plain.startswith("@"):
        yield plain[1:]
