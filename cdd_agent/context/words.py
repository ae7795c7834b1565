"""The words of texts and code: `parseRange`, `parse_range` and "parse the range" have
two words in common.
"""

from collections.abc import Iterable

from cdd_agent.pattern import Pattern

BETWEEN = bytes(
    code if code >= 0x80 or chr(code).isalnum() or chr(code) == "_" else 0x20
    for code in range(256)
)
"""For `bytes.translate`: a space for each byte outside identifiers. Non-ASCII bytes
belong to identifiers.
"""
_PARTS = Pattern(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\dA-Z_]+")
_IDENTIFIER = Pattern(r"[^\W\d]\w*")
_SHORTEST = 2
"""Characters of a word."""
_SHORTEST_STEM = 3
_LONGEST = 60
"""Characters of an identifier. A longer one is data."""
_ENDINGS = ("ing", "ed", "es", "s", "e")


class Vocabulary(dict[bytes, tuple[str, ...]]):
    """The words of identifiers, and the identifier itself if it is a name in code. Each
    identifier is split once.
    """

    def __missing__(self, identifier: bytes) -> tuple[str, ...]:
        name = identifier.decode("utf-8", "replace")
        words = words_of(name)
        if is_code(name):
            words = (*words, name)
        self[identifier] = words = tuple(dict.fromkeys(words))
        return words


def words_of(identifier: str) -> tuple[str, ...]:
    """Return the stems of the words of an identifier."""
    if len(identifier) > _LONGEST:
        return ()
    parts = [identifier]
    if not (identifier.isalpha() and identifier.islower()):
        parts = _PARTS.findall(identifier)
    return tuple([stem(part.lower()) for part in parts if len(part) >= _SHORTEST])


def words_in(text: str) -> list[str]:
    words: list[str] = []
    for identifier in _IDENTIFIER.findall(text):
        words += words_of(identifier)
    return words


def telling(words: Iterable[str]) -> list[str]:
    """Return each word once, without common English words unless there are no
    others.
    """
    once = list(dict.fromkeys(words))
    return [word for word in once if word not in _COMMON] or once


def names_in_code(text: str) -> list[str]:
    """Return the identifiers of a text that can only be names in code: `parse_range`,
    `HTTPServer`, `sha1`.
    """
    return [name for name in _IDENTIFIER.findall(text) if is_code(name)]


def is_code(name: str) -> bool:
    """True if an identifier cannot be an English word."""
    if len(name) > _LONGEST:
        return False
    is_word = name.islower() or name.istitle() or name.isupper()
    return not (name.isalpha() and is_word)


def stem(word: str) -> str:
    """Return a word without its ending: `parsing`, `parsed` and `parses` become
    `pars`.
    """
    if word.endswith("ss"):
        return word
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            return word[: -len(ending)]
    return word


_COMMON = frozenset(
    words_in(
        "a about above after again all also although always am an and another any are"
        " as at be because been before being below between both but by can cannot could"
        " did do does doing done down during each either else even ever every few for"
        " from further get gets had has have having he her here hers him his how"
        " however i if in instead into is it its itself just like made make makes"
        " making many may me might more most much must my neither never new no nor not"
        " now of off often on once one only onto or other others otherwise our out over"
        " own per quite rather really same she should since so some something still"
        " such than that the their them then there therefore these they thing things"
        " this those though through thus to too under until up upon us use used uses"
        " using very via want was way we well were what when where whether which while"
        " who whom whose why will with within without would yet you your"
    )
)
