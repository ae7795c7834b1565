"""Reads a model's reply: its edits, and the fate of each block.

docs/reference/replies.md lists the forms of edits. The stages:

1. `split_lines`, `hide_thoughts`: the lines of the answer;
2. `hide_wrapper`: unwrap a reply that is one code block;
3. `lay_out_with_calls`: where blocks are, and which files they name;
4. `read_parts`: the edits of each block, or why it is unreadable;
5. `find_unclear`: code blocks whose end is unclear;
6. `list_blocks`: the fate of each block.

Unclear replies are refused, with advice for the model.
"""

import re
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.changes.formats.all_forms import all_forms
from cdd_agent.changes.formats.naming import name_in_line
from cdd_agent.changes.formats.project_names import NO_PROJECT_NAMES, ProjectNames
from cdd_agent.changes.model import (
    Edit,
    Reply,
    ReplyFault,
    ReplyRefused,
    WholeFile,
    join_refusals,
)
from cdd_agent.changes.reply.boundaries import find_unclear
from cdd_agent.changes.reply.calls import lay_out_with_calls
from cdd_agent.changes.reply.fates import list_blocks, refused
from cdd_agent.changes.reply.layout import Layout
from cdd_agent.changes.reply.lines import (
    ReplyLines,
    hide_thoughts,
    hide_wrapper,
    split_lines,
)
from cdd_agent.changes.reply.parts import Part, read_parts


class _Reading(Struct, frozen=True):
    reply: ReplyLines
    layout: Layout
    parts: tuple[Part, ...]
    project_names: ProjectNames


def parse_reply(text: str, project_names: ProjectNames = NO_PROJECT_NAMES) -> Reply:
    """Raises `ReplyRefused` if the edits are not certain."""
    answer = hide_thoughts(split_lines(text), project_names)
    inside = hide_wrapper(answer)
    if inside is not None:
        try:
            reading = _read(inside, project_names)
            reply = _judge(reading)
        except ReplyRefused:
            pass
        else:
            if reply.edits and all(fence.is_closed for fence in reading.layout.fences):
                return reply
    return _judge(_read(answer, project_names))


def _read(reply: ReplyLines, project_names: ProjectNames) -> _Reading:
    forms = all_forms()
    layout = lay_out_with_calls(reply.lines, project_names, forms)
    parts = read_parts(reply.lines, layout, project_names, forms)
    with_folders = project_names.with_files(
        edit.path for part in parts for edit in part.edits
    )
    named = [fence.path for fence in layout.fences if fence.path]
    # a title above an explanation may name a folder of files in the reply
    if not project_names.folders and any(map(with_folders.is_folder, named)):
        return _read(reply, with_folders)
    return _Reading(reply, layout, tuple(parts), project_names)


def _judge(reading: _Reading) -> Reply:
    """Raises `ReplyRefused` with all reasons."""
    lines, parts = reading.reply.lines, reading.parts
    if not any(part.is_refused for part in parts):
        unclear = find_unclear(parts, lines, reading.layout, all_forms())
        if unclear is not None:
            parts = _refuse(parts, *unclear)
    if not any(part.is_refused for part in parts):
        parts = tuple(_with_line_ends(part, reading.reply.crlf) for part in parts)
        if (second := _find_second_version(parts)) is not None:
            parts = _refuse(parts, *second)
    blocks = list_blocks(reading.reply, parts, reading.project_names)
    refusals = [
        piece.refusal for part in parts for piece in part.pieces if piece.refusal
    ]
    if refusals:
        raise join_refusals(refusals, refused(blocks))
    explanation = _explanation(lines, parts, reading.project_names)
    return Reply(_without_repeats(parts), explanation, blocks)


def _refuse(
    parts: Sequence[Part], which: Part, refusal: ReplyRefused
) -> tuple[Part, ...]:
    first = which.pieces[0]
    piece = replace(first, end=which.end, edits=(), refusal=refusal)
    changed = replace(which, pieces=(piece,))
    return tuple(changed if part is which else part for part in parts)


def _with_line_ends(part: Part, crlf: frozenset[int]) -> Part:
    """Give whole files CRLF, if the reply has it on their lines but not around them."""
    if not crlf or part.start in crlf:
        return part
    wholes = [edit for edit in part.edits if isinstance(edit, WholeFile)]
    count = sum(whole.content.count("\n") for whole in wholes)
    ended = sum(place in crlf for place in range(part.start + 1, part.end))
    if not count or ended < count:
        return part
    pieces = [
        replace(piece, edits=tuple(map(_with_crlf, piece.edits)))
        for piece in part.pieces
    ]
    return replace(part, pieces=tuple(pieces))


def _with_crlf(edit: Edit) -> Edit:
    if not isinstance(edit, WholeFile):
        return edit
    return replace(edit, content=edit.content.replace("\n", "\r\n"))


def _find_second_version(parts: Sequence[Part]) -> tuple[Part, ReplyRefused] | None:
    wholes: dict[str, Edit] = {}
    for part in parts:
        for edit in part.edits:
            if not _replaces(edit) or wholes.setdefault(edit.path, edit) == edit:
                continue
            reason = f"The reply gives {edit.path} twice, with different content."
            refusal = ReplyRefused(
                reason, fault=ReplyFault.CONTRADICTORY, path=edit.path
            )
            return part, refusal
    return None


def _without_repeats(parts: Sequence[Part]) -> tuple[Edit, ...]:
    """Return all edits. A whole file given twice is one edit."""
    edits: list[Edit] = []
    wholes: set[Edit] = set()
    for part in parts:
        for edit in part.edits:
            if edit in wholes:
                continue
            if _replaces(edit):
                wholes.add(edit)
            edits.append(edit)
    return tuple(edits)


def _replaces(edit: Edit) -> bool:
    return isinstance(edit, WholeFile) and not edit.must_be_new


def _explanation(
    lines: Sequence[str], parts: Sequence[Part], project_names: ProjectNames
) -> str:
    words: list[str] = []
    place = 0
    for part in parts:
        if not part.edits:
            continue
        words += lines[place : part.start]
        while words and (
            not words[-1].strip() or _names_a_file(words[-1], project_names)
        ):
            words.pop()
        words.append("")
        place = max(place, part.end)
    words += lines[place:]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(words)).strip()


def _names_a_file(line: str, project_names: ProjectNames) -> bool:
    named = name_in_line(line, "", project_names)
    return named is not None and named.is_file
