"""Names as people type them, turned into names of files and folders that every system takes."""

import re
import unicodedata

from cdd_agent.errors import BadInput

_LONGEST = 100
_RESERVED = re.compile(r"con|prn|aux|nul|(com|lpt)[0-9]")  # Windows has no such file, whatever its ending


def kebab(name: str) -> str:
    """Kebab-case of plain letters: "Größe ändern" is grosse-andern. Raises `BadInput` where no usable name is left."""
    letters = unicodedata.normalize("NFKD", name.casefold()).encode("ascii", "ignore").decode()
    words = re.sub(r"[^a-z0-9]+", "-", letters).strip("-")
    if not words:
        raise BadInput(f"{short(name)} leaves no letters for a name.", hint="Use some of a-z and 0-9, as user-auth.")
    if len(words) > _LONGEST:
        raise BadInput(f"{short(name)} is too long for a name; {_LONGEST} letters are the limit.")
    return words


def file_stem(name: str) -> str:
    """The same for the name of a file by itself, which Windows does not let be everything."""
    words = kebab(name)
    if _RESERVED.fullmatch(words):
        raise BadInput(f"{short(name)} is a name that Windows keeps for itself.", hint="Add a word, as con-guide.")
    return words


def short(words: str) -> str:
    """Words that somebody typed, for a message."""
    return repr(words if len(words) <= 60 else f"{words[:59]}…")
