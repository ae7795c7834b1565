"""Checks that new text omits no lines and has no edit marks in it."""

import difflib
import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from cdd_agent.changes.model import PartialEdits, ReplyFault, ReplyRefused
from cdd_agent.changes.readability import is_whole
from cdd_agent.pattern import Pattern

_DOTS = r"[\(\[<{]*\s*(?:\.\.\.|…)"
_REST = (
    r"(?:rest|existing|unchanged|same|previous|remaining|omitted|before|other"
    r"|above|below|keep)"
)
_STAYS = (
    r"(?:\.\.\.|…|\b(?:unchanged|the same|as (?:before|is|above)|omitted|goes"
    r" here|(?:remain|stay)s?)\b)"
)
_THINGS = (
    r"(?:code|file|imports?|functions?|methods?|classe?s?|module|content"
    r"|implementation|logic|tests?|routes?|styles?|jsx"
    r"|html|body|lines?)"
)
_COMMENT = r"^\s*+(?:#+|//+|\{?/\*+|--|;|%|<!--|\*)\s*+(?:[-=~]{2,}\s*+)?"
_REMARK = Pattern(
    rf"{_COMMENT}(?:"
    rf"{_DOTS}\W*$"  # only dots
    rf"|{_DOTS}.*\b{_REST}\b.*"
    r"|[\(\[<{]*(?:the\s+)?(?:rest of|remaining|existing|previous|other|everything"
    rf" else)\b.*{_STAYS}.*"
    rf"|[\(\[<{{]*(?:the\s+)?rest of (?:the\s+|this\s+)?{_THINGS}\W*$"
    r"|keep (?:the )?(?:rest|everything|existing)\b.*"
    rf")|^\s*+{_DOTS}\s*(?=\w).*\b{_REST}\b.*",  # or a line that begins with dots
    re.IGNORECASE,
)
"""A line such as `... existing code ...`, which stands for other lines."""
_HEADING = Pattern(
    rf"{_COMMENT}[\(\[<{{]*(?:"
    rf"(?:(?:your|all|the|other|existing|previous|original|remaining|unchanged)\s+)*"
    rf"(?:existing|previous|original|remaining|unchanged)\s+{_THINGS}(?:\s+(?:here"
    rf"|above|below|continues))?"
    rf"|(?:{_THINGS}\s+)?(?:unchanged|omitted|snip(?:ped)?|truncated"
    rf"|continues)(?:\s+for\s+\w+)?"
    r"|no changes?(?:\s+(?:here|below|above|needed|to (?:the )?rest\b.*))?"
    r"|(?:the )?same as (?:the )?(?:above|before|original)"
    r")\W*$",
    re.IGNORECASE,
)
"""A comment that may stand for lines, or may be the heading of the lines below."""
_LINE_NUMBER = Pattern(r"^\s*(\d{1,7})(?:\s*[|:→]|\t)")
_MARK = Pattern(
    r"^(?:<{3,}|={3,}|>{3,})(?=\s*$|\s*(?:SEARCH|ORIGINAL|HEAD|REPLACE|UPDATED)\b| \w)",
    re.IGNORECASE,
)
PROSE = frozenset({".md", ".markdown", ".mdx", ".rst", ".txt", ".adoc"})
_HAVE_DOTS = PROSE | {".py", ".pyi", ".yaml", ".yml", ""}
"""Suffixes of files in which a line may be only dots."""
_FREELY_SHORTENED = 10
"""A file with more non-blank lines must keep half of them."""


def refuse_whole(
    path: PurePosixPath, before: str | None, content: str, parts: PartialEdits
) -> None:
    """Raise `ReplyRefused` if the content cannot be the whole file."""
    _refuse_marks(path, before, content, parts)
    if before is None:
        return
    if before.strip() and not content.strip():
        raise ReplyRefused(f"{path} would be emptied.", fault=ReplyFault.INCOMPLETE)
    new_lines = {line.strip() for line in content.splitlines()}
    # A remark stands for lines only if lines are missing.
    if any(line.strip() not in new_lines for line in before.splitlines()):
        _refuse_remarks(path, before, before, content, parts)
    if _is_numbered(content) and not _is_numbered(before):
        raise ReplyRefused(
            f"{path} is given with the numbers of its lines.",
            hint="Send its lines without them.",
            fault=ReplyFault.UNCLEAR,
        )


def refuse_part(
    path: PurePosixPath, before: str | None, old: str, new: str, parts: PartialEdits
) -> None:
    """Raise `ReplyRefused` if the new text omits lines or has edit marks."""
    _refuse_marks(path, before, new, parts)
    _refuse_remarks(path, before, old, new, parts)


def refuse_shrunk(
    path: PurePosixPath, before: str, content: str, parts: PartialEdits
) -> None:
    """Raise `ReplyRefused` if a whole file loses more than half of its lines: the reply
    most likely holds only a part.
    """
    old = sum(bool(line.strip()) for line in before.splitlines())
    new = sum(bool(line.strip()) for line in content.splitlines())
    if old > _FREELY_SHORTENED and new * 2 < old:
        raise ReplyRefused(
            f"{path} has {old} lines and would have {new}: a whole file is never"
            " shortened by more than half.",
            hint=f"Send all of its lines, or remove some with {parts.name}.",
            fault=ReplyFault.INCOMPLETE,
        )


def _refuse_remarks(
    path: PurePosixPath, before: str | None, old: str, new: str, parts: PartialEdits
) -> None:
    """Refuse lines that stand for other lines, unless the file already has them."""
    lines = new.splitlines()
    remarks = [place for place, line in enumerate(lines) if _is_remark(path, line)]
    if not remarks:
        return
    present = set((before or "").splitlines())
    for place in remarks:
        line = lines[place]
        if line in present:
            continue
        if _HEADING.match(line) and not _replaces_lines(old.splitlines(), lines, place):
            continue
        raise ReplyRefused(
            f"{path} is given with a part left out (line {place + 1}:"
            f" {line.strip()[:80]!r}). The whole file is needed, every line of it,"
            f" or {parts.name} for what changes.",
            hint="Word a comment that stays in the file differently.",
            fault=ReplyFault.INCOMPLETE,
        )


def _is_remark(path: PurePosixPath, line: str) -> bool:
    suffix = path.suffix.lower()
    if line.strip() in ("...", "…"):
        return suffix not in _HAVE_DOTS
    # In prose these begin a heading or an item, not a comment.
    if suffix in PROSE and line.lstrip().startswith(("#", "*", "-")):
        return False
    return bool(_REMARK.match(line) or _HEADING.match(line))


def _replaces_lines(old: Sequence[str], new: Sequence[str], place: int) -> bool:
    matcher = difflib.SequenceMatcher(None, old, new)
    for _, old_start, old_end, new_start, new_end in matcher.get_opcodes():
        if new_start <= place < new_end:
            removed = sum(bool(line.strip()) for line in old[old_start:old_end])
            added = sum(bool(line.strip()) for line in new[new_start:new_end])
            return removed > added - 1
    return False


def _refuse_marks(
    path: PurePosixPath, before: str | None, content: str, parts: PartialEdits
) -> None:
    """Refuse marks of a merge conflict or a search/replace block."""
    marks = [line for line in content.splitlines() if _MARK.match(line)]
    kinds = "".join(dict.fromkeys(line[0] for line in marks))
    if kinds != "<=>" or path.suffix.lower() in PROSE or is_whole(str(path), content):
        return
    if marks[0] not in (before or ""):
        raise ReplyRefused(
            f"{path} would have the line {marks[0][:80]!r} in it.",
            hint=f"To change a part of a file, {parts.how}.",
            fault=ReplyFault.UNCLEAR,
        )


def _is_numbered(text: str) -> bool:
    numbers = []
    for line in text.splitlines():
        if not line.strip():
            continue
        number = _LINE_NUMBER.match(line)
        if number is None:
            return False
        numbers.append(int(number[1]))
    if len(numbers) < 3:
        return False
    return numbers == list(range(numbers[0], numbers[0] + len(numbers)))
