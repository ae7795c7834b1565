"""The encodings that a text may have of which nothing names one.

All encodings here hold ASCII as it is, so that only the words with other bytes are
judged.
"""

import codecs
import re
import unicodedata
from collections.abc import Iterable
from functools import cache
from itertools import pairwise

_EAST_ASIAN = ("cp932", "euc_jp", "gbk", "gb18030", "big5", "cp949")
"""Encodings most of whose characters have two bytes."""
CANDIDATES = (
    *("cp1252", "iso8859-1", "iso8859-15", "cp1250", "iso8859-2", "cp1254"),
    *("cp1251", "koi8-r", "iso8859-5", "cp866", "cp1253", "iso8859-7"),
    *("mac-roman", "cp850", "cp437"),
    *_EAST_ASIAN,
)
"""Encodings that are guessed at, the commonest first."""
_SAMPLE = 4_000
"""Bytes of the words by which a guess is judged."""
_BETWEEN_WORDS = re.compile(rb"[\x00-\x2f:-?]+")
"""Bytes that are in no character of two bytes."""
_SCRIPTS = {"LATIN", "CYRILLIC", "GREEK"}
"""Scripts of which a word has one only."""
_WORD = re.compile(r"[^\W\d_]+")
_INNER_SIGN = re.compile(r"(?<=[^\W\d_])[^\s\x00-\x7f](?=[^\W\d_])")
_USUAL_INNER_SIGNS = frozenset("’‘‐‑–—·…\xad")
"""Signs that stand between two letters."""
_ACCENTED_RUN = re.compile(r"[^\W\d_\x00-\x7f]{4,}")
"""More letters beyond ASCII in a row than words in Latin script have."""
_NOT_WIDE = re.compile(
    "(?<![^\\x00-\\x7f])[^\\x00-\\x7f](?![^\\x00-\\x7f])|[\uff61-\uff9f]"
)
"""Characters of East Asian text that are rare: alone among ASCII, or of half width."""
_ODD_SHARE = 0.1
"""Share of a text's characters that may look wrong in an encoding that fits."""


def fitting_encodings(data: bytes, *, is_cut: bool) -> list[str]:
    """The encodings that fit bytes which are not UTF-8, the likeliest first. `is_cut`:
    the last character may be incomplete.
    """
    lines = b"\n".join(_without_ascii(data.split(b"\n")))
    joined = b"\n".join(_without_ascii(_BETWEEN_WORDS.split(lines)))
    sample = joined[:_SAMPLE].rpartition(b"\n")[0] if len(joined) > _SAMPLE else joined
    sample = sample or joined[:_SAMPLE]
    texts: dict[str, str] = {}
    for codec in CANDIDATES:
        if not _holds_all(joined, codec, is_cut=is_cut):
            continue
        text = codecs.getincrementaldecoder(codec)().decode(sample)
        if _looks_right(text, codec):
            texts[codec] = text
    if not texts:
        return []
    likeliest = _likeliest(texts, sample)
    return [likeliest, *(codec for codec in texts if codec != likeliest)]


def _without_ascii(pieces: Iterable[bytes]) -> list[bytes]:
    """Each different piece that is not ASCII."""
    return list(dict.fromkeys(piece for piece in pieces if not piece.isascii()))


def _holds_all(data: bytes, codec: str, *, is_cut: bool) -> bool:
    """True if the encoding gives the same bytes back."""
    try:
        text = codecs.getincrementaldecoder(codec)().decode(data, final=not is_cut)
        return data.startswith(text.encode(codec))
    except UnicodeError:
        return False


def _looks_right(text: str, codec: str) -> bool:
    """True if a text has no characters where nobody writes them."""
    beyond_ascii = re.findall(r"[^\x00-\x7f]", text)
    if any(unicodedata.category(char) in ("Cc", "Cn", "Co") for char in beyond_ascii):
        return False
    if codec in _EAST_ASIAN:
        return len(_NOT_WIDE.findall(text)) * 2 <= len(beyond_ascii)
    odd = sum(_is_odd_sign(sign) for sign in _INNER_SIGN.findall(text))
    odd += sum(_count_odd_letters(word) for word in _WORD.findall(text))
    return odd <= len(beyond_ascii) * _ODD_SHARE


def _is_odd_sign(char: str) -> bool:
    """True if a character between two letters is no letter, and does not belong
    there.
    """
    is_letter = unicodedata.category(char) in ("Ll", "Lu", "Lt", "Mn")
    return not is_letter and char not in _USUAL_INNER_SIGNS


def _count_odd_letters(word: str) -> int:
    """Count the letters of a word that nobody would write there: of two scripts, a row
    of accents, capitals after small letters.
    """
    letters = [char for char in word if not char.isascii()]
    if not letters:
        return 0
    scripts = {_script(char) for char in word} & _SCRIPTS
    if len(scripts) > 1:
        return len(letters)
    if "LATIN" in scripts and _ACCENTED_RUN.search(word):
        return len(letters)
    return sum(
        first.islower() and second.isupper() and not first.isascii()
        for first, second in pairwise(word)
        if not second.isascii()
    )


@cache
def _script(char: str) -> str:
    return unicodedata.name(char, "?").split()[0]


def _likeliest(texts: dict[str, str], sample: bytes) -> str:
    """One of the encodings that fit a sample; of equally likely ones the first."""
    from charset_normalizer import from_bytes  # noqa: PLC0415  rarely needed, 12 ms

    matches = from_bytes(sample, cp_isolation=list(texts))
    best = matches.best()
    if best is None:
        return next(iter(texts))
    likely = {
        str(match)
        for match in matches
        if (match.chaos, match.coherence) == (best.chaos, best.coherence)
    }
    return next(
        (codec for codec, text in texts.items() if text in likely), next(iter(texts))
    )
