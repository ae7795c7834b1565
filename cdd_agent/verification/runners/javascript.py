"""How runners of JavaScript's tests are started."""

import re
from collections.abc import Sequence
from pathlib import PurePath

_LAUNCHERS = (
    "npx",
    "pnpm",
    "yarn",
    "bunx",
    "env",
    "cross-env",
    "nice",
    "timeout",
    "node",
    "c8",
    "nyc",
)
_ENDINGS = ("", ".js", ".mjs", ".cjs")
_NEAR = 6
"""How many words of a command may come before the tool."""


def place_of_tool(argv: Sequence[str], tool: str) -> int | None:
    """Where in a command the word is that is this tool."""
    names = [program_name(word) for word in argv[:_NEAR]]
    place = next(
        (
            index
            for index, name in enumerate(names)
            if name in {tool + end for end in _ENDINGS}
        ),
        None,
    )
    if place is None or place == 0:
        return place
    # `node node_modules/.bin/jest`, and not a word for another program
    if names[0] == "node":
        is_first_file = all(word.startswith("-") for word in argv[1:place])
        return place if is_first_file and argv[place] != names[place] else None
    return (
        place if names[0] in _LAUNCHERS or tuple(names[:2]) == ("npm", "exec") else None
    )


def program_name(word: str) -> str:
    """A program's name, without its folder and what Windows adds to it."""
    return re.sub(r"\.(cmd|exe|bat|ps1)$", "", PurePath(word).name)
