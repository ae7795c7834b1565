"""The text of a project's file, and the bytes of a text in that file.

The encoding of a file is, in this order:

    1. that of its byte order mark;
    2. that of its coding line: PEP 263 (also Ruby), Emacs and Vim, XML, `@charset`,
       `<meta>`, a gettext catalogue;
    3. the charset that `.editorconfig` or `.gitattributes` declares;
    4. UTF-8;
    5. a guess, by `encoding_guess`.

An encoding is skipped unless it gives the file's own bytes back. If none fits, bytes
that are not UTF-8 become lone surrogates: the file comes back byte for byte, and only
ASCII can be added.

New text that the encoding cannot hold is refused before anything is written. With a
guessed encoding, a new character must have the same bytes in every encoding that fits.
"""

import codecs
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from enum import Enum
from functools import cache
from pathlib import PurePosixPath
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.errors import CddError
from cdd_agent.files.charsets import Charsets
from cdd_agent.files.encoding_guess import CANDIDATES, fitting_encodings
from cdd_agent.pattern import Pattern
from cdd_agent.refusals.kinds import Refusal

_MARKS = (
    # UTF-32 first: its mark begins with UTF-16's
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (codecs.BOM_UTF8, "utf-8"),
)
_WITH_MARK = {
    "utf-8-bom": ("utf-8", codecs.BOM_UTF8),
    "utf-16": ("utf-16-le", codecs.BOM_UTF16_LE),
    "utf-16le-bom": ("utf-16-le", codecs.BOM_UTF16_LE),
    "utf-32": ("utf-32-le", codecs.BOM_UTF32_LE),
}
"""Declared charsets in which a new file begins with a mark."""
BYTES_ARE_SHOWN = "\ufffd stands for each byte that could not be decoded"
HEAD = 8_000
"""Characters to search for a null, which makes a file binary. Git's value."""
_DECLARATION = 4_096
"""Bytes to search for a coding line."""
_EDITOR_LINE = Pattern(
    rb"\A(?:[^\n]*\n)?[^\n]*?(?:-\*-|vim?:)[^\n]*?coding[:=][ \t]*([-\w.]+)"
)
"""A line for Emacs or Vim."""
_COMMENT = Pattern(
    rb"\A(?:[ \t\f\r]*(?:#[^\n]*)?\n)?[ \t\f]*#[^\n]*?coding[:=][ \t]*([-\w.]+)"
)
"""Any comment, as in PEP 263."""
_WITH_COMMENT = {".py", ".pyi", ".pyw", ".pyx", ".pxd", ".rb", ".rake", ".gemspec"}
_PROGRAM = Pattern(rb"\A#![^\n]*(?:python|pypy|ruby)")
"""First lines with which a comment counts in a file of another name."""
_XML = Pattern(rb"\A\s*<\?xml\s[^>]*?encoding\s*=\s*[\"']([-\w.]+)[\"']")
_STYLE_SHEET = Pattern(rb"\A@charset\s+[\"']([-\w.]+)[\"']")
_PAGE = Pattern(rb"<meta\s[^>]*?charset\s*=\s*[\"']?([-\w.]+)", re.IGNORECASE)
_PAGES = {".html", ".htm", ".xhtml"}
_CATALOGUE = Pattern(rb"\"Content-Type:[^\"\n]*?charset=([-\w.]+)")
_CATALOGUES = {".po", ".pot"}
_JAPANESE_MAIL = Pattern(rb"\x1b\$[@B]")
"""ISO-2022-JP is all ASCII bytes and recognised by this sequence."""

_KNOWN = frozenset(
    (
        *CANDIDATES,
        *("ascii", "utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"),
        *("gb2312", "big5hkscs", "shift_jis", "shift_jis_2004", "euc_jis_2004"),
        *("iso2022_jp", "euc_kr", "johab", "koi8-u", "tis-620"),
        *(f"iso8859-{number}" for number in range(1, 17) if number != 12),
        *(f"cp{number}" for number in range(1250, 1259)),
        *("cp775", "cp852", "cp855", "cp857", "cp858", "cp860", "cp861", "cp862"),
        *("cp863", "cp864", "cp865", "cp869", "cp874"),
        *("mac-cyrillic", "mac-greek", "mac-latin2", "mac-turkish"),
    )
)
"""Encodings that a file or project may declare, by Python's names."""
_NO_TEXT = "\ufffd"
"""The character shown for a byte that is not text."""
_ENDLESS = 200
"""Accents in a row."""
_LINE = Pattern(r"[^\r\n]*+(?:\r{0,2}\n|\r)|[^\r\n]++")

_WIDE = ("utf-16", "utf-32")
"""Encodings in which ASCII has null bytes."""

NormalForm = Literal["NFC", "NFD"]


class TextNotHeld(CddError):
    """The encoding of a file cannot hold a text."""

    refusal = Refusal.WRONG_ENCODING


class Origin(Enum):
    """The evidence for the encoding of a file."""

    MARK = "by its byte order mark"
    CODING_LINE = "by its coding line"
    DECLARED = "declared by the project"
    UTF_8 = "valid UTF-8"
    GUESS = "guessed"
    NONE = "no encoding fits"


class Encoding(Struct, frozen=True):
    codec: str
    """Python's name."""
    origin: Origin
    mark: bytes = b""
    others: tuple[str, ...] = ()
    """For a guess: the other encodings that fit."""

    @property
    def is_utf8(self) -> bool:
        """True for UTF-8, even if some bytes of the file are not."""
        return self.codec in ("ascii", "utf-8")

    @property
    def holds_ascii(self) -> bool:
        """True if ASCII has its usual bytes, so that a line feed is one byte."""
        return not self.codec.startswith(_WIDE)

    @property
    def shown_name(self) -> str:
        """For users and models; empty for UTF-8, with or without a mark."""
        if self.origin is Origin.NONE:
            return "unknown encoding"
        if self.is_utf8:
            return ""
        return f"{self.codec}, guessed" if self.origin is Origin.GUESS else self.codec


UTF_8 = Encoding("utf-8", Origin.UTF_8)
_ASCII = Encoding("ascii", Origin.UTF_8)
_UNKNOWN = Encoding("utf-8", Origin.NONE)


class FileText(Struct, frozen=True):
    """The text of a file, with its line ends, without its byte order mark."""

    text: str
    encoding: Encoding

    @property
    def shown(self) -> str:
        """The text with `\ufffd` for each byte that is not text."""
        return as_shown(self.text)

    @property
    def note(self) -> str:
        """A clause on how the text differs from UTF-8, or empty."""
        notes = []
        if self.encoding.shown_name:
            notes.append(f"in {self.encoding.shown_name}")
        if self.shown != self.text:
            notes.append(BYTES_ARE_SHOWN)
        return "; ".join(notes)

    @property
    def is_binary(self) -> bool:
        return "\0" in self.text[:HEAD]

    @property
    def line_end(self) -> str:
        """The most frequent line end; `\\n` for a text of one line."""
        windows = self.text.count("\r\n")
        counts = {
            "\n": self.text.count("\n") - windows,
            "\r\n": windows,
            "\r": self.text.count("\r") - windows,
        }
        return max(counts, key=counts.__getitem__)

    @property
    def normal_form(self) -> NormalForm | None:
        """The Unicode normal form of most characters that have two, if any."""
        if self.text.isascii() or _has_endless_accents(self.text):
            return None
        is_composed = unicodedata.is_normalized("NFC", self.text)
        if is_composed != unicodedata.is_normalized("NFD", self.text):
            return "NFC" if is_composed else "NFD"
        if is_composed:
            return None
        composed = sum(
            count
            for char, count in Counter(self.text).items()
            if not unicodedata.is_normalized("NFD", char)
        )
        decomposed = len(self.text) - len(unicodedata.normalize("NFC", self.text))
        if decomposed == composed:
            return None
        return "NFD" if decomposed > composed else "NFC"


def decode_file(
    path: PurePosixPath, data: bytes, charsets: Charsets, *, is_cut: bool = False
) -> FileText:
    """Decode a file, or its beginning (`is_cut`). Never fails: see
    `FileText.is_binary`.
    """
    if data.isascii() and b"\0" not in data and not _is_japanese_mail(data):
        return FileText(data.decode("ascii"), _ASCII)
    for encoding in _named_encodings(path, data, charsets):
        text = _decode(data, encoding, is_cut=is_cut)
        if text is not None:
            return FileText(text, encoding)
    return _guess(data, is_cut=is_cut)


def decode_versions(
    path: PurePosixPath, before: bytes | None, after: bytes | None, charsets: Charsets
) -> tuple[FileText | None, FileText | None]:
    """Decode an older and a newer content of a file; None for no file. If both
    encodings are guesses, the newer text keeps the older one's encoding if it fits.
    """
    old = None if before is None else decode_file(path, before, charsets)
    if after is None:
        return old, None
    if after == before:
        return old, old
    new = decode_file(path, after, charsets)
    if old is None or {old.encoding.origin, new.encoding.origin} != {Origin.GUESS}:
        return old, new
    text = _decode(after, old.encoding, is_cut=False)
    return old, new if text is None else FileText(text, old.encoding)


def as_utf8(path: PurePosixPath, data: bytes, charsets: Charsets) -> bytes:
    """Return a file's text as UTF-8 without a mark, for readers that expect UTF-8. A
    binary file stays unchanged.
    """
    if data.isascii():
        return data
    decoded = decode_file(path, data, charsets)
    if decoded.encoding.is_utf8 or decoded.is_binary:
        return data.removeprefix(decoded.encoding.mark)
    return decoded.text.encode()


def lines_of(text: str) -> list[str]:
    """Split a text into lines with their ends: a line feed, a carriage return, or both.

    No other character ends a line. Two carriage returns and a line feed, the result of
    a double conversion, are one end.
    """
    if "\r" in text:
        return _LINE.findall(text)
    lines = text.split("\n")
    last = lines.pop()
    ended = [f"{line}\n" for line in lines]
    return [*ended, last] if last else ended


def as_shown(text: str) -> str:
    """Replace each byte that is not text by `\\ufffd`."""
    return text if text.isascii() else re.sub("[\ud800-\udfff]", _NO_TEXT, text)


def in_normal_form(new: str, form: NormalForm | None) -> str:
    if form is None or new.isascii():
        return new
    converted = normalize(form, new)
    back = normalize("NFD" if form == "NFC" else "NFC", converted)
    return converted if back == new else new


def normalize(form: NormalForm, text: str) -> str:
    """Normalise a text, unless that would take very long."""
    return text if _has_endless_accents(text) else unicodedata.normalize(form, text)


def _has_endless_accents(text: str) -> bool:
    """True if a character has more accents than any language writes. Normalising takes
    time quadratic in their number.
    """
    if len(text) < _ENDLESS:
        return False
    # a run of that length covers three of these places, which is quick to find
    if not _accents(3).search(text[:: _ENDLESS // 4]):
        return False
    return _accents(_ENDLESS).search(text) is not None


@cache
def _accents(count: int) -> re.Pattern[str]:
    # no character beyond these is an accent
    accents = filter(unicodedata.combining, map(chr, range(0x20000)))
    return re.compile(f"[{''.join(accents)}]{{{count}}}")


def encode_file(
    path: PurePosixPath, new: str, before: FileText | None, charsets: Charsets
) -> bytes:
    """Return the bytes of a new text in a file. `before` is its current text, None for
    a new file. Raises `TextNotHeld`.
    """
    encoding = _encoding_of(path, new, before, charsets)
    if before is not None and encoding.origin in (Origin.GUESS, Origin.NONE):
        _refuse_ambiguous(path, new, before)
    errors = "surrogateescape" if encoding.origin is Origin.NONE else "strict"
    try:
        return encoding.mark + new.encode(encoding.codec, errors)
    except UnicodeEncodeError as error:
        raise TextNotHeld(
            f"{_place(path, new, error.start)}: the file's encoding, {encoding.codec},"
            f" has no {_name(new[error.start])}.",
            hint="Use other characters.",
        ) from error


def _named_encodings(
    path: PurePosixPath, data: bytes, charsets: Charsets
) -> Iterator[Encoding]:
    """Yield the declared encodings, strongest first, then UTF-8."""
    for mark, codec in _MARKS:
        if data.startswith(mark):
            yield Encoding(codec, Origin.MARK, mark)
            break
    if codec := _coding_line(path, data):
        yield Encoding(codec, Origin.CODING_LINE)
    declared = _declared(path, charsets)
    # nearly any bytes are UTF-16, and nearly any text in it has nulls
    if declared and (declared.holds_ascii or b"\0" in data):
        yield replace(declared, mark=b"")
    if _is_japanese_mail(data):
        yield Encoding("iso2022_jp", Origin.GUESS)
    yield UTF_8


def _is_japanese_mail(data: bytes) -> bool:
    return b"\x1b" in data and _JAPANESE_MAIL.search(data) is not None


def _coding_line(path: PurePosixPath, data: bytes) -> str:
    """Return the codec that the file declares, or an empty text."""
    head = data[:_DECLARATION]
    patterns = [_EDITOR_LINE, _XML, _STYLE_SHEET]
    suffix = path.suffix.lower()
    if suffix in _WITH_COMMENT or _PROGRAM.match(head):
        patterns.append(_COMMENT)
    if suffix in _PAGES:
        patterns.append(_PAGE)
    if suffix in _CATALOGUES:
        patterns.append(_CATALOGUE)
    for pattern in patterns:
        named = pattern.search(head)
        codec = _known_codec(named[1].decode("ascii", "replace")) if named else ""
        # a name that is readable as ASCII cannot mean these
        if codec and not codec.startswith(_WIDE):
            return codec
    return ""


def _named_in(path: PurePosixPath, text: str) -> str:
    return _coding_line(path, text[:_DECLARATION].encode("utf-8", "replace"))


def _declared(path: PurePosixPath, charsets: Charsets) -> Encoding | None:
    charset = charsets.declared(path).lower()
    codec, mark = _WITH_MARK.get(charset, (_known_codec(charset), b""))
    return Encoding(codec, Origin.DECLARED, mark) if codec else None


def _known_codec(name: str) -> str:
    """Return Python's name of a text encoding, or an empty text."""
    try:
        codec = codecs.lookup(name).name
    except (LookupError, ValueError):
        return ""
    return codec if codec in _KNOWN else ""


def _decode(data: bytes, encoding: Encoding, *, is_cut: bool) -> str | None:
    """Return the text if encoding it gives the same bytes, else None."""
    body = data.removeprefix(encoding.mark)
    try:
        if encoding.codec == "utf-8" and not is_cut:  # UTF-8 has one form for each text
            return body.decode()
        decoder = codecs.getincrementaldecoder(encoding.codec)()
        text = decoder.decode(body, final=not is_cut)
        again = text.encode(encoding.codec)
    except UnicodeError:
        return None
    is_same = body.startswith(again) if is_cut else body == again
    return text if is_same else None


def _guess(data: bytes, *, is_cut: bool) -> FileText:
    damaged = data.decode("utf-8", "surrogateescape")
    # no text in a guessed encoding has a null
    if b"\0" in data[:HEAD] or _is_mostly_utf8(damaged):
        return FileText(damaged, _UNKNOWN)
    codecs_that_fit = fitting_encodings(data, is_cut=is_cut)
    if not codecs_that_fit:
        return FileText(damaged, _UNKNOWN)
    likeliest, *alternatives = codecs_that_fit
    encoding = Encoding(likeliest, Origin.GUESS, others=tuple(alternatives))
    text = _decode(data, encoding, is_cut=is_cut)
    return FileText(damaged, _UNKNOWN) if text is None else FileText(text, encoding)


def _is_mostly_utf8(text: str) -> bool:
    bad = len(re.findall("[\ud800-\udfff]", text))
    good = len(re.findall("[^\x00-\x7f\ud800-\udfff]", text))
    return good > bad


def _encoding_of_new_text(
    path: PurePosixPath, new: str, charsets: Charsets
) -> Encoding:
    encoding = _declared(path, charsets) or UTF_8
    if named := _named_in(path, new):
        encoding = Encoding(named, Origin.CODING_LINE)
    if encoding.codec == "utf-8" and new.startswith("#!"):
        # no system runs a script that begins with a mark
        encoding = replace(encoding, mark=b"")
    return encoding


def _encoding_of(
    path: PurePosixPath, new: str, before: FileText | None, charsets: Charsets
) -> Encoding:
    """Raises `TextNotHeld` if the new coding line names another encoding."""
    named = _named_in(path, new)
    if before is None or (not before.text and before.encoding == _ASCII):
        return _encoding_of_new_text(path, new, charsets)
    if before.encoding == _ASCII:
        encoding = _encoding_of_new_text(path, new, charsets)
        return _without_change_of_ascii(encoding, before.text)
    encoding = before.encoding
    is_named_as_before = named == _named_in(path, before.text)
    if is_named_as_before or new.isascii() or encoding.mark:
        return encoding
    by_default = "utf-8" if encoding.origin is Origin.CODING_LINE else encoding.codec
    if (named or by_default) != encoding.codec:
        raise TextNotHeld(
            f"{path} is in {encoding.codec}, and the new text's coding line makes it"
            f" {named or by_default}.",
            hint="Leave the coding line unchanged.",
        )
    return encoding


def _without_change_of_ascii(encoding: Encoding, before: str) -> Encoding:
    """Return the encoding for an edited ASCII file. Its text keeps its bytes."""
    try:
        is_kept = before.encode(encoding.codec) == before.encode("ascii")
    except UnicodeEncodeError:
        is_kept = False
    return replace(encoding, mark=b"") if is_kept else UTF_8


def _refuse_ambiguous(path: PurePosixPath, new: str, before: FileText) -> None:
    """Raise `TextNotHeld` if a new character has other bytes in another encoding that
    fits the file.
    """
    encoding = before.encoding
    has_no_encoding = encoding.origin is Origin.NONE
    if has_no_encoding and new.count(_NO_TEXT) > before.text.count(_NO_TEXT):
        raise TextNotHeld(
            f"{_place(path, new, new.index(_NO_TEXT))}: {_name(_NO_TEXT)} stands for"
            " bytes that are not text. An edit cannot add it.",
            hint="Keep it only where the file already has it.",
        )
    for char in sorted(set(new) - set(before.text)):
        if char.isascii() or not (has_no_encoding or _holds(encoding.codec, char)):
            continue
        rivals = (
            other
            for other in encoding.others
            if not _agree(char, encoding.codec, other)
        )
        rival = next(rivals, "")
        if has_no_encoding:
            why = "the file is in no encoding that is known here"
        elif rival:
            why = f"the file may be {encoding.codec} or {rival}"
        else:
            continue
        raise TextNotHeld(
            f"{_place(path, new, new.index(char))}: the bytes of {_name(char)} are not"
            f" known, because {why}.",
            hint=(
                "Use characters that the file has already, or ASCII. The user can name"
                " its charset in .editorconfig."
            ),
        )


def _holds(codec: str, char: str) -> bool:
    try:
        char.encode(codec)
    except UnicodeEncodeError:
        return False
    return True


def _agree(char: str, codec: str, other: str) -> bool:
    """True if two encodings have the same bytes for a character of the first."""
    return char.encode(codec) == char.encode(other, "replace")


def _place(path: PurePosixPath, text: str, start: int) -> str:
    lines = len(lines_of(text[: start + 1]))
    return f"{path}, line {lines}"


def _name(char: str) -> str:
    return f"{char!r} (U+{ord(char):04X})"
