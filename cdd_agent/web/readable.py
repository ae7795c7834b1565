"""Convert the bytes of a page to text."""

import codecs

from cdd_agent.pattern import Pattern
from cdd_agent.web.markup import strip_tags, to_markdown
from cdd_agent.web.plain_text import remove_control

_TEXT = Pattern(
    r"text/.+|application/(json|xml|yaml|x-yaml|toml|javascript|x-javascript"
    r"|ecmascript|x-sh|sql|x-ndjson|jsonl)"
    r"|.+\+(json|xml|yaml)"
)
_HTML = frozenset({"text/html", "application/xhtml+xml"})
_UNSPECIFIC = frozenset({"", "application/octet-stream", "binary/octet-stream"})
"""Media types of any content."""
_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    # its beginning is UTF-16's mark
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_CHARSET = Pattern(rb"(?i:charset|encoding)\s{0,9}=\s{0,9}[\"']?\s{0,9}([\w.:-]{1,40})")
_UNUSUAL = frozenset(
    {"punycode", "idna", "unicode-escape", "raw-unicode-escape", "undefined"}
)
"""Codecs that no page uses. Some are very slow."""


def may_be_text(media_type: str) -> bool:
    return media_type in _UNSPECIFIC or _TEXT.fullmatch(media_type) is not None


def find_charset(text: bytes) -> str | None:
    """Return the charset of a Content-Type header or a declaration."""
    charset = _CHARSET.search(text)
    return charset[1].decode() if charset else None


def readable(
    content: bytes,
    media_type: str,
    charset: str | None,
    *,
    cut: bool,
    base: str,
    patience: float,
) -> str | None:
    """Return a page as text, HTML as Markdown; None if it is not text. `cut`: the end
    is missing. HTML that takes longer than `patience` seconds becomes bare text.
    """
    beginning = content[:1024].lstrip().lower()
    is_html = media_type in _HTML
    if media_type in _UNSPECIFIC:
        is_html = beginning.startswith((b"<!doctype html", b"<html"))
    if charset is None and (is_html or media_type.endswith("xml")):
        charset = find_charset(content[:1024])
        # then this declaration would not have been readable
        if charset and charset.lower().startswith("utf-16"):
            charset = None
    text = _decode(content, charset, cut=cut)
    if "\0" in text[:4096]:
        return None
    if is_html:
        try:
            text = to_markdown(text, base=base, patience=patience)
        # a page may be made to break libraries
        except Exception:  # noqa: BLE001
            text = strip_tags(text)
    return remove_control(text)


def _decode(content: bytes, charset: str | None, *, cut: bool) -> str:
    """Decode by the byte order mark, else by the charset, else as UTF-8."""
    for mark, marked_charset in _BYTE_ORDER_MARKS.items():
        if content.startswith(mark):
            charset = marked_charset
            break
    try:
        return _make_decoder(charset or "utf-8").decode(content, final=not cut)
    # an unknown charset, or no codec for text
    except (LookupError, ValueError):
        return _make_decoder("utf-8").decode(content, final=not cut)


def _make_decoder(charset: str) -> codecs.IncrementalDecoder:
    # a codec from bytes to bytes fails
    bytes(4).decode(charset, "replace")
    name = codecs.lookup(charset).name
    if name in _UNUSUAL:
        raise LookupError(charset)
    if name in ("ascii", "iso8859-1"):
        # on the web both mean this
        name = "cp1252"
    return codecs.getincrementaldecoder(name)(errors="replace")
