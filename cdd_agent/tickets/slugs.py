"""Turns typed names into file and folder names that every system accepts."""

import re
import unicodedata
from collections.abc import Sequence
from enum import Enum, auto

from cdd_agent.errors import BadInput
from cdd_agent.pattern import Pattern
from cdd_agent.refusals.kinds import Refusal

_MAX_LENGTH = 100
_MAX_BYTES = 180
"""Git extends ticket names, and file systems allow 255 bytes."""
_RESERVED = Pattern(r"con|prn|aux|nul|(com|lpt)[0-9]")
_CHANGE = "change-"
_CHANGE_NAME = Pattern(rf"{_CHANGE}\d+")
# Invisible Unicode letters and marks.
_UNSEEN = Pattern(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0100-\U000e01ef]"
)


def to_kebab(name: str) -> str:
    """Return a name in kebab-case, in its own script.

    Latin letters lose accents: "Größe ändern" is grosse-andern. Raises `BadInput`
    without a letter or digit.
    """
    words = ""
    # Some capitals appear only after decomposition.
    small = unicodedata.normalize("NFKD", name).lower().replace("ß", "ss")
    for sign in unicodedata.normalize("NFKD", small):
        kind = unicodedata.category(sign)
        if kind == "Cf" or _UNSEEN.match(sign):
            continue
        if kind[0] in "LN":
            words += sign
        elif kind[0] != "M":
            words += "-"
        elif words and not words[-1].isascii():
            # Latin accents go; vowel signs of other scripts stay.
            words += sign
    words = re.sub("-+", "-", unicodedata.normalize("NFC", words)).strip("-")
    if not words:
        raise BadInput(
            f"{shorten(name)} has no letters or digits.",
            hint="Use letters or digits, such as user-auth.",
            refusal=Refusal.TICKET_UNUSABLE,
        )
    if len(words) > _MAX_LENGTH or len(words.encode()) > _MAX_BYTES:
        raise BadInput(
            f"{shorten(name)} is too long for a name; {_MAX_LENGTH} letters are the"
            f" limit, and {_MAX_BYTES} bytes.",
            refusal=Refusal.TICKET_UNUSABLE,
        )
    return words


def is_folder_name(name: str) -> bool:
    """True for letters, digits, `-` and `_` only."""
    if not name or len(name.encode(errors="replace")) > _MAX_BYTES:
        return False
    kinds = [unicodedata.category(sign)[0] for sign in name]
    if kinds[0] not in "LN":
        return False
    return all(
        kind in "LMN" or sign in "-_" for kind, sign in zip(kinds, name, strict=True)
    )


def comparable(name: str) -> str:
    """Return a form in which spellings compare equal: file systems and keyboards differ
    in case and composition.
    """
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def to_file_stem(name: str) -> str:
    """Return a name in kebab-case that can name a file. Raises `BadInput`."""
    words = to_kebab(name)
    if _RESERVED.fullmatch(words):
        raise BadInput(
            f"{shorten(name)} is a reserved name on Windows.",
            hint="Add a word, such as con-guide.",
            refusal=Refusal.TICKET_UNUSABLE,
        )
    return words


def shorten(text: str) -> str:
    """Quote and shorten user text for a message."""
    return repr(text if len(text) <= 60 else f"{text[:59]}…")


def name_change(number: int) -> str:
    """Return the name of a change outside of tickets."""
    return f"{_CHANGE}{number}"


def is_change_name(typed: str) -> bool:
    """True for the name of a change outside of tickets. No ticket has such a name."""
    return _CHANGE_NAME.fullmatch(typed) is not None


class EnoughOfSlug(Enum):
    """The part of a slug that is enough to name a ticket."""

    WHOLE = auto()
    """For commands that start, change or judge something: if a ticket is gone, none
    with a longer name takes its place.
    """
    WORDS = auto()
    """The beginning, or whole words: for commands that only show something."""
    PART = auto()
    """Any part: in the shell, which shows the ticket while the user types."""


class SeveralTickets(BadInput):
    refusal = Refusal.TICKET_UNUSABLE

    def __init__(self, reference: str, slugs: Sequence[str]) -> None:
        super().__init__(
            f"Several tickets match {shorten(reference)}: {', '.join(slugs)}.",
            hint="Type more of the name.",
        )
        self.short_reason = f"{len(slugs)} tickets match; type more of the name"
        """For a line of 60 columns."""
