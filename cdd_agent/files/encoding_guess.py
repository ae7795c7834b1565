"""Guess the encoding of a text when nothing declares it.

All candidates include ASCII, so only words with other bytes count.
"""

import codecs
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import cache
from itertools import pairwise

from cdd_agent.pattern import Pattern

_EAST_ASIAN = ("cp932", "euc_jp", "gbk", "gb18030", "big5", "cp949")
"""Encodings in which most characters have two bytes."""
CANDIDATES = (
    *("cp1252", "iso8859-1", "iso8859-15", "cp1250", "iso8859-2", "cp1254"),
    *("cp1251", "koi8-r", "iso8859-5", "cp866", "cp1253", "iso8859-7"),
    *("mac-roman", "cp850", "cp437"),
    *_EAST_ASIAN,
)
"""The encodings to guess from, most common first."""
_SAMPLE = 4_000
"""Bytes of the sample that decides a guess."""
_BETWEEN_WORDS = Pattern(rb"[\x00-\x2f:-?]+")
"""Bytes that are in no two-byte character."""
_LETTERS = {
    "German": "üäöß",
    "French": "éèàêçùîôâûëïœ",
    "Spanish": "óíáéñúü¿¡",
    "Portuguese": "ãçéáíóõêúâàô",
    "Italian": "èàòùìé",
    "Swedish": "äåöé",
    "Danish": "åøæé",
    "Dutch": "ëéïèö",
    "Icelandic": "áíðéóþúöæý",
    "Catalan": "àéóèíòçú·ïü",
    "Polish": "łąęóżśćńź",
    "Czech": "íáéěřýžčšůúťďňó",
    "Slovak": "áíčéýžšúľťôňäďóĺŕ",
    "Hungarian": "áéöóőüíúű",
    "Croatian": "čšžćđ",
    "Romanian": "ăşîţâ",
    "Turkish": "ıüşçğöİâî",
    "Russian": "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъё",
    "Ukrainian": "оаинівертслкдумпзябгьчйхцюжїєшфщґ",
    "Greek": "αοιετσνηυρπκμάλίόςέγδήωχύθφώβξζψϊϋ",
}
"""The non-ASCII letters of languages, most frequent first."""
_SIGNS = "’‘“”„«»–—…•°§©®€£¿¡·×²³µ±½ºª\xa0№"
"""Signs that all languages use."""
_PRIORS = {
    **dict.fromkeys(("cp1252", "iso8859-1", "iso8859-15"), 0.0),
    **dict.fromkeys(("mac-roman", "cp850", "cp437", "cp866"), -8.0),
}
_USUAL_PRIOR = -3.0
"""Log of how usual an encoding is; matters for texts of few letters."""
_STRANGE = math.log(0.000_01)
"""Log of the probability of any other character."""

_SCRIPTS = {"LATIN", "CYRILLIC", "GREEK"}
"""Scripts that a word does not mix."""
_WORD = Pattern(r"[^\W\d_]+")
_INNER_SIGN = Pattern(r"(?<=[^\W\d_])[^\s\x00-\x7f](?=[^\W\d_])")
_USUAL_INNER_SIGNS = frozenset("’‘‐‑–—·…\xad")
"""Signs that may be between two letters."""
_ACCENTED_RUN = Pattern(r"[^\W\d_\x00-\x7f]{4,}")
"""More consecutive non-ASCII letters than a word in Latin script has."""
_NOT_WIDE = Pattern(
    "(?<![^\\x00-\\x7f])[^\\x00-\\x7f](?![^\\x00-\\x7f])|[\uff61-\uff9f]"
)
"""Rare characters in East Asian text: alone among ASCII, or of half width."""
_ODD_SHARE = 0.1
"""Maximum share of characters that may look wrong in an encoding that fits."""

_ROWS = {
    "cp932": ("euc_jp", (((4, 5), 0.5), ((16, 47), 0.35), ((1, 3), 0.14))),
    "gbk": ("gb2312", (((16, 55), 0.85), ((1, 3), 0.14))),
    "big5": ("big5", (((4, 38), 0.85), ((1, 3), 0.14))),
    "cp949": ("euc_kr", (((16, 40), 0.85), ((1, 3), 0.14))),
}
"""The rows of each character table in common use (kana, frequent characters, signs),
with their shares in usual texts.
"""
_TABLES = {"euc_jp": "cp932", "gb18030": "gbk"}
_RARE = 0.01 / 6_000
"""Probability of any other character."""
_RARE_SHARE = 0.1
"""Maximum share of rare characters in an East Asian text."""


def fitting_encodings(data: bytes, *, is_cut: bool) -> list[str]:
    """Return the encodings that fit bytes that are not UTF-8, likeliest first.
    `is_cut`: the last character may be incomplete.
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
    likeliest = _likeliest_east_asian(texts) or _likeliest(texts)
    return [likeliest, *(codec for codec in texts if codec != likeliest)]


def _without_ascii(pieces: Iterable[bytes]) -> list[bytes]:
    return list(dict.fromkeys(piece for piece in pieces if not piece.isascii()))


def _holds_all(data: bytes, codec: str, *, is_cut: bool) -> bool:
    """True if decoding and encoding gives the same bytes."""
    try:
        text = codecs.getincrementaldecoder(codec)().decode(data, final=not is_cut)
        return data.startswith(text.encode(codec))
    except UnicodeError:
        return False


def _looks_right(text: str, codec: str) -> bool:
    beyond_ascii = re.findall(r"[^\x00-\x7f]", text)
    if any(unicodedata.category(char) in ("Cc", "Cn", "Co") for char in beyond_ascii):
        return False
    if codec in _EAST_ASIAN:
        return len(_NOT_WIDE.findall(text)) * 2 <= len(beyond_ascii)
    odd = sum(_is_odd_sign(sign) for sign in _INNER_SIGN.findall(text))
    odd += sum(_count_odd_letters(word) for word in _WORD.findall(text))
    return odd <= len(beyond_ascii) * _ODD_SHARE


def _is_odd_sign(char: str) -> bool:
    is_letter = unicodedata.category(char) in ("Ll", "Lu", "Lt", "Mn")
    return not is_letter and char not in _USUAL_INNER_SIGNS


def _count_odd_letters(word: str) -> int:
    """Count the unusual letters of a word: of a second script, in long runs of accents,
    capitals after small letters.
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


def _likeliest_east_asian(texts: dict[str, str]) -> str:
    """Return the likeliest East Asian encoding in which nearly all characters are
    common, or an empty text.
    """
    best = ""
    best_score = -math.inf
    for codec, text in texts.items():
        if codec not in _EAST_ASIAN:
            continue
        chances = _chances(_TABLES.get(codec, codec))
        beyond_ascii = re.findall(r"[^\x00-\x7f]", text)
        shares = [chances.get(char, _RARE) for char in beyond_ascii]
        score = sum(map(math.log, shares))
        is_common = shares.count(_RARE) <= len(shares) * _RARE_SHARE
        if shares and is_common and score > best_score:
            best, best_score = codec, score
    return best


@cache
def _chances(codec: str) -> dict[str, float]:
    table, groups = _ROWS[codec]
    chances: dict[str, float] = {}
    for (first, last), share in groups:
        rows = b"".join(
            bytes((row + 0xA0, column))
            for row in range(first, last + 1)
            for column in range(0x40 if table == "big5" else 0xA1, 0xFF)
        )
        chars = set(rows.decode(table, "ignore"))
        chances |= dict.fromkeys(chars, share / len(chars))
    return chances


def _likeliest(texts: dict[str, str]) -> str:
    best = ""
    best_score = -math.inf
    for codec, text in texts.items():
        beyond_ascii = Counter(re.findall(r"[^\x00-\x7f]", text))
        for language in _LETTERS:
            chances = _letter_chances(language)
            score = sum(
                count * chances.get(char, _STRANGE)
                for char, count in beyond_ascii.items()
            )
            score += _PRIORS.get(codec, _USUAL_PRIOR)
            if score > best_score:
                best, best_score = codec, score
    return best


@cache
def _letter_chances(language: str) -> dict[str, float]:
    chances = dict.fromkeys(_SIGNS, math.log(0.1 / len(_SIGNS)))
    letters = _LETTERS[language]
    total = sum(1 / (rank + 1) for rank in range(len(letters)))
    for rank, letter in enumerate(letters):
        chance = 0.9 / (rank + 1) / total
        chances[letter] = math.log(chance)
        if letter.upper() != letter and len(letter.upper()) == 1:
            chances[letter.upper()] = math.log(chance / 20)
    return chances
