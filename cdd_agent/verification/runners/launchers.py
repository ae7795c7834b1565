"""The program that a command starts, perhaps through a launcher such as `npx` or
`poetry run`.
"""

import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from pathlib import PurePath

WRAPPERS = ("env", "nice", "timeout", "xvfb-run")
"""Programs that start the rest of their words."""
PYTHON_LAUNCHERS = (
    *("coverage", "hatch", "pdm", "pipenv", "pixi", "poetry", "python", "rye"),
    *("uv", "uvx"),
    *WRAPPERS,
)
_PYTHON = re.compile(r"python[\d.]*")
NEAR = 8
"""The number of words at the beginning of a command that can name a test runner."""


@lru_cache(maxsize=1_000)
def program_name(word: str) -> str:
    """Return a program's name, without its folder and the ending that Windows adds.
    Every Python is `python`.
    """
    name = re.sub(r"\.(cmd|exe|bat|ps1)$", "", PurePath(word).name)
    return "python" if _PYTHON.fullmatch(name) else name


def first_programs(argv: Sequence[str]) -> list[str]:
    """Return the first words of a command as names of programs."""
    return [program_name(word) for word in argv[:NEAR]]


def find_word(words: Sequence[str], wanted: Collection[str]) -> int | None:
    """Return the index of the first of these words; None if there is none."""
    for index, word in enumerate(words):
        if word in wanted:
            return index
    return None
