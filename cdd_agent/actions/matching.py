"""Finding the one place in a file that an edit means."""

from cdd_agent.actions.model import MultipleMatchesFoundError, SearchTextNotFoundError


def replaced_once(content: bytes, find: str, replace: str) -> bytes:
    """The content with the one occurrence of `find` replaced. Everything else stays byte for byte.

    In a file whose lines end in CRLF, the line ends of both texts are taken for those. Raises
    `SearchTextNotFoundError` or `MultipleMatchesFoundError`, which carry the content as text.
    """
    old, new = find.encode(), replace.encode()
    if content.count(b"\r\n") * 2 > content.count(b"\n"):
        new = _with_crlf(new)
        old = old if old in content else _with_crlf(old)
    first = content.find(old)
    if first < 0:
        raise SearchTextNotFoundError(content.decode("utf-8", errors="replace"))
    if content.find(old, first + 1) >= 0:
        raise MultipleMatchesFoundError(content.decode("utf-8", errors="replace"), _lines_of(content, old))
    return content[:first] + new + content[first + len(old) :]


def _with_crlf(text: bytes) -> bytes:
    return text.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


def _lines_of(content: bytes, text: bytes) -> list[int]:
    """The lines, from 1, in which a text begins; the first few."""
    lines: list[int] = []
    at = content.find(text)
    while at >= 0 and len(lines) < 10:
        lines.append(content.count(b"\n", 0, at) + 1)
        at = content.find(text, at + 1)
    return lines
