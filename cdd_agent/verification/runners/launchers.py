"""Finds the program that a command starts, perhaps after a launcher such as `npx` or
`poetry run`.
"""

import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from pathlib import PurePath

from cdd_agent.pattern import Pattern

WRAPPERS = ("env", "nice", "timeout", "xvfb-run")
"""Programs that start the rest of their words."""
PYTHON_LAUNCHERS = (
    *("coverage", "hatch", "pdm", "pipenv", "pixi", "poetry", "python", "rye"),
    *("uv", "uvx"),
    *WRAPPERS,
)
_PYTHON = Pattern(r"python[\d.]*")
NEAR = 8
"""Number of leading words of a command that can name a runner."""


@lru_cache(maxsize=1_000)
def program_name(word: str) -> str:
    """Remove the folder and Windows endings. Every Python is `python`."""
    name = re.sub(r"\.(cmd|exe|bat|ps1)$", "", PurePath(word).name)
    return "python" if _PYTHON.fullmatch(name) else name


def first_programs(argv: Sequence[str]) -> list[str]:
    """Return the first words as program names."""
    return [program_name(word) for word in argv[:NEAR]]


def find_word(words: Sequence[str], wanted: Collection[str]) -> int | None:
    """Return the index of the first match, or None."""
    for index, word in enumerate(words):
        if word in wanted:
            return index
    return None
