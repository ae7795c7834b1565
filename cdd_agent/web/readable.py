"""The bytes of a page → text to read: decoded, HTML as Markdown, and nothing in it that
steers a terminal.
"""

import codecs
import contextlib
import html
import re

from cdd_agent.sanitize import UNSEEN
from cdd_agent.web.unread_tags import UNREAD

_CONTROL = re.compile(f"[{UNSEEN}]")
_TEXT = re.compile(
    r"text/.+|application/(json|xml|yaml|x-yaml|toml|javascript|x-javascript"
    r"|ecmascript|x-sh|sql|x-ndjson|jsonl)"
    r"|.+\+(json|xml|yaml)"
)
_HTML = frozenset({"text/html", "application/xhtml+xml"})
_UNSAID = frozenset({"", "application/octet-stream", "binary/octet-stream"})
_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16's, which is its beginning
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_CHARSET = re.compile(
    rb"(?i:charset|encoding)\s{0,9}=\s{0,9}[\"']?\s{0,9}([\w.:-]{1,40})"
)
_UNUSUAL = frozenset(
    {"punycode", "idna", "unicode-escape", "raw-unicode-escape", "undefined"}
)
"""Codecs of Python's that no page is written in; decoding some of them takes for ever.
"""
_TAG = re.compile(r"<([^<>]*)>")
_INLINE = frozenset(
    {
        "a",
        "b",
        "code",
        "em",
        "i",
        "kbd",
        "mark",
        "q",
        "s",
        "samp",
        "small",
        "span",
        "strong",
        "sub",
        "sup",
    }
)
"""Elements of HTML that hold nothing to read."""


def plain(text: str) -> str:
    """The text without control characters, but with its lines and tabs."""
    return _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def one_line(text: str) -> str:
    return " ".join(plain(text).split())


def may_be_text(media_type: str) -> bool:
    """Whether it is worth reading the body to see."""
    return media_type in _UNSAID or _TEXT.fullmatch(media_type) is not None


def charset_of(content_type: str) -> str | None:
    """The charset that a Content-Type header names."""
    return _named_charset(content_type.encode())


def readable(
    content: bytes,
    media_type: str,
    charset: str | None,
    *,
    cut: bool,
    base: str,
    patience: float,
) -> str | None:
    """The text of a page; None when it is not text after all.

    `cut` says that the content has no end, `base` is what its links are relative to.
    HTML that takes more than `patience` seconds, or that no parser takes, becomes bare
    text.
    """
    head = content[:1024].lstrip().lower()
    marked_up = media_type in _HTML or (
        media_type in _UNSAID and head.startswith((b"<!doctype html", b"<html"))
    )
    if charset is None and (marked_up or media_type.endswith("xml")):
        declared = _named_charset(content[:1024]) or ""
        # it could not have been read in UTF-16
        charset = None if declared.lower().startswith("utf-16") else declared
    text = _decoded(content, charset, cut=cut)
    if "\0" in text[:4096]:
        return None
    if marked_up:
        # late: bs4 and markdownify take 0.1 s to import
        from cdd_agent.web.markup import to_markdown  # noqa: PLC0415

        try:
            text = to_markdown(text, base=base, patience=patience)
        # three libraries on a text that somebody may have written to break them
        except Exception:  # noqa: BLE001
            text = _bare(text)
    return plain(text)


def _named_charset(text: bytes) -> str | None:
    named = _CHARSET.search(text)
    return named[1].decode() if named else None


def _decoded(content: bytes, charset: str | None, *, cut: bool) -> str:
    """By its byte order mark, else by the charset it is said to have, else as UTF-8.
    Never fails.
    """
    marks = (
        charset_
        for mark, charset_ in _BYTE_ORDER_MARKS.items()
        if content.startswith(mark)
    )
    charset = next(marks, charset or "utf-8")
    try:
        return _codec(charset).decode(content, final=not cut)
    except (LookupError, ValueError):  # no such charset, or none for text
        return _codec("utf-8").decode(content, final=not cut)


def _codec(charset: str) -> codecs.IncrementalDecoder:
    bytes(4).decode(charset, "replace")  # fails for codecs from bytes to bytes
    name = codecs.lookup(charset).name
    if name in _UNUSUAL:
        raise LookupError(charset)
    if name in ("ascii", "iso8859-1"):
        name = "cp1252"  # what the web means by both
    return codecs.getincrementaldecoder(name)(errors="replace")


def _bare(text: str) -> str:
    """The text outside of tags. Takes time in proportion to the text, whatever the text
    is.
    """
    kept: list[str] = []
    hidden, at = "", 0
    for tag in _TAG.finditer(text):
        name = "".join(tag[1].split(maxsplit=1)[:1]).lower()
        if not hidden:
            kept += [text[at : tag.start()], "" if name.strip("/") in _INLINE else "\n"]
            hidden = name if name in UNREAD else ""
        elif name == f"/{hidden}":
            hidden = ""
        at = tag.end()
    kept.append("" if hidden else text[at:])
    bare = "".join(kept)
    # a character reference with thousands of digits
    with contextlib.suppress(ValueError):
        bare = html.unescape(bare)
    lines = (" ".join(line.split()) for line in bare.split("\n"))
    return "\n".join(line for line in lines if line)
