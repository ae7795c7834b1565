"""File content between tags that name the file: `<file path="…">`.

It is refused, because text for readers may have such tags.
"""

import re
from collections.abc import Sequence
from functools import partial

from cdd_agent.changes.formats.form import Form, Span
from cdd_agent.changes.model import Edit, ReplyRefused
from cdd_agent.pattern import Pattern

_OPENING = Pattern(
    r"[ \t]*<(?P<tag>file|document|artifact|antArtifact|boltAction|source_file"
    r"|code_file|new_file|create|update|write|edit)\s(?:[^<>\n]*\s)?"
    r"(?:path|file_?[pP]ath|file_?[nN]ame|file|name|title)\s*=\s*"
    r"(?P<quote>[\"'])(?P<path>[^\"'<>\n]*[./][^\"'<>\n]*)(?P=quote)"
    r"[^<>/\n]*>(?P<rest>.*)"
)

_DIFFS = ("--- ", "diff --git ", "@@")


class TaggedFiles(Form):
    """A code block below the opening tag is read as a block instead."""

    kind = "file between tags"

    def in_prose(
        self, lines: Sequence[str], used_lines: set[int], ends: set[int]
    ) -> list[Span]:
        spans: list[Span] = []
        unclosed: dict[str, int] = {}
        place = 0
        while place < len(lines):
            opening = _OPENING.match(lines[place]) if place not in used_lines else None
            if opening is None or place < unclosed.get(opening["tag"], 0):
                place += 1
                continue
            if _holds_edits(lines, place + 1, used_lines):
                place += 1
                continue
            end, is_closed = _find_end(lines, place, opening, used_lines, ends)
            if not is_closed:
                unclosed[opening["tag"]] = end
                has_text = place + 1 < end and lines[place + 1].strip()
                is_cut = end == len(lines) and has_text and not opening["rest"].strip()
                if not is_cut:
                    place += 1
                    continue
            read = partial(_refuse, place + 1, opening["path"], is_closed)
            spans.append(Span(place, end, read, names_files=True, kind=self.kind))
            place = end
        return spans


def _holds_edits(lines: Sequence[str], start: int, used_lines: set[int]) -> bool:
    """True if the tags hold only a code block or another form of edits."""
    for place in range(start, len(lines)):
        if lines[place].strip():
            return place in used_lines or lines[place].startswith(_DIFFS)
    return False


def _find_end(
    lines: Sequence[str],
    start: int,
    opening: re.Match[str],
    used_lines: set[int],
    ends: set[int],
) -> tuple[int, bool]:
    """Return the line after the text, and True if the closing tag is there."""
    closing = f"</{opening['tag']}>"
    if closing in opening["rest"]:
        return start + 1, True
    for place in range(start + 1, len(lines)):
        if place in ends:
            return place, False
        if place not in used_lines and lines[place].rstrip().endswith(closing):
            return place + 1, True
    return len(lines), False


def _refuse(number: int, name: str, is_closed: bool, path: str | None) -> list[Edit]:
    del path
    words = f"Line {number} of the reply has {name} between tags, not in a code block."
    if not is_closed:
        words = f"{name}, from line {number} of the reply on, has no end."
    hint = "Give each file as a code block whose info string is `language:path`."
    raise ReplyRefused(words, hint=hint, path=name)
