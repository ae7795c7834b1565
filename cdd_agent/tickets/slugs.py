"""Turn names that users type into names of files and folders that every system
accepts.
"""

import re
import unicodedata

from cdd_agent.errors import BadInput

_MAX_LENGTH = 100
_RESERVED = re.compile(r"con|prn|aux|nul|(com|lpt)[0-9]")


def to_kebab(name: str) -> str:
    """Return a name in kebab-case with plain letters: "Größe ändern" is grosse-andern.
    Raises `BadInput`.
    """
    letters = (
        unicodedata.normalize("NFKD", name.casefold())
        .encode("ascii", "ignore")
        .decode()
    )
    words = re.sub(r"[^a-z0-9]+", "-", letters).strip("-")
    if not words:
        raise BadInput(
            f"{shorten(name)} leaves no letters for a name.",
            hint="Use some of a-z and 0-9, as user-auth.",
        )
    if len(words) > _MAX_LENGTH:
        raise BadInput(
            f"{shorten(name)} is too long for a name; {_MAX_LENGTH} letters are the"
            " limit."
        )
    return words


def to_file_stem(name: str) -> str:
    """Return a name in kebab-case that can be the name of a file. Raises `BadInput`."""
    words = to_kebab(name)
    if _RESERVED.fullmatch(words):
        raise BadInput(
            f"{shorten(name)} is a name that Windows keeps for itself.",
            hint="Add a word, as con-guide.",
        )
    return words


def shorten(text: str) -> str:
    """Return text of the user for a message."""
    return repr(text if len(text) <= 60 else f"{text[:59]}…")
