"""Finds the code blocks of a reply and the files they name.

Fences follow CommonMark (https://spec.commonmark.org/0.31.2/#fenced-code-blocks).
Search/replace blocks and patches are hidden from the parser, because their own marks
say better where they end. Tags such as `<source>` on separate lines also are fences:
aider asks for them if a file contains fences.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from itertools import chain
from pathlib import PurePosixPath

from markdown_it import MarkdownIt
from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.changes.formats.file_names import (
    SHELLS,
    Grade,
    fits,
    grade_name,
    is_code,
    is_in_language,
    names_file,
)
from cdd_agent.changes.formats.naming import (
    Named,
    find_mentioned_files,
    find_name_above_edits,
    is_comment,
    name_in_comment,
    name_in_info,
    name_in_line,
)
from cdd_agent.changes.formats.project_names import NO_PROJECT_NAMES, ProjectNames
from cdd_agent.pattern import Pattern

_OPENING = Pattern(r"^(?P<container>[\s>]*)(?P<mark>`{3,}|~{3,})(?P<info>.*)$")
_TAG = Pattern(r"^<(?P<tag>source|sourcecode|code|codeblock|pre)>(?P<info>[\w+#-]*)$")
_PRIVATE_CHARACTERS = (range(0xE000, 0xF900), range(0xF0000, 0xFFFFE))
"""Characters without meaning. Two that the text lacks replace the marks of hidden
fences.
"""
_CAPTION = Pattern(r"^\s*(?:#{1,6}\s|(?:[-*]\s+)?\*\*)|:[\s*_]*$")
"""A line that introduces the block below: a heading, bold, or ending in a colon."""
_MIXED_SUFFIXES = {".md", ".mdx", ".rst", ".html", ".htm", ".vue", ".svelte", ".astro"}
"""Suffixes of files with parts in other languages."""
_SETS_OFF = Pattern(r"^\s*(?:#{1,6}\s|(?:[-*]\s+)?\*\*)")
"""A heading, or a line beginning in bold."""


class FenceOpening(Struct, frozen=True):
    container: str
    """Indentation and quote marks before the fence."""
    mark: str
    """The fence, or `<source>` for a tag."""
    info: str

    @classmethod
    def parse(cls, line: str) -> "FenceOpening | None":
        """None for other lines and inline code."""
        opening = _OPENING.match(line)
        if opening is None or ("`" in opening["mark"] and "`" in opening["info"]):
            return None
        return cls(opening["container"], opening["mark"], opening["info"])

    @classmethod
    def parse_tag(cls, line: str) -> "FenceOpening | None":
        """A tag counts only if it is closed."""
        opening = _TAG.match(line.rstrip())
        if opening is None:
            return None
        return cls("", f"<{opening['tag']}>", opening["info"])

    def is_closed_by(self, line: str) -> bool:
        if self.mark.startswith("<"):
            return line.strip() == f"</{self.mark[1:]}"
        bare = line.strip(" \t>")
        return len(bare) >= len(self.mark) and not bare.strip(self.mark[0])


class Fence(Struct, frozen=True):
    """A code block. Lines count from 0; `end` is the line after the closing fence."""

    start: int
    end: int
    mark: str
    language: str
    path: str | None
    content: str
    is_closed: bool
    info: str = ""
    is_named_apart: bool = True
    """True if the name is in the info string or below a blank line, not at the end of
    the text above.
    """
    above: str | None = None
    """For a block of edits: the file that the line above names, in any language."""
    doubt: str = ""
    """A file that the block may or may not be."""

    @property
    def lines(self) -> list[str]:
        return self.content.removesuffix("\n").split("\n") if self.content else []

    @property
    def is_file_of_diffs(self) -> bool:
        """True for a file of diffs, which are its content, not edits."""
        return self.path is not None and self.path.lower().endswith((".diff", ".patch"))

    def holds_a_name(self, project_names: ProjectNames) -> bool:
        """True if the block is only a file name: it names the next block."""
        if self.path is not None or self.language in SHELLS or len(self.lines) != 1:
            return False
        named = name_in_line(self.content.strip(), "", project_names)
        return named is not None and named.is_file

    @property
    def holds_an_opening(self) -> bool:
        """True if a line could open such a fence: the block may end too early."""
        if self.mark.startswith("<"):
            return False
        opening = re.compile(
            rf"^[ \t>]*{re.escape(self.mark)}[`~]*[ \t]*[A-Za-z{{]", re.MULTILINE
        )
        return opening.search(self.content) is not None


def find_fences(
    lines: Sequence[str],
    hidden: Collection[int] = (),
    project_names: ProjectNames = NO_PROJECT_NAMES,
) -> list[Fence]:
    """Return the code blocks in order. Fences do not begin or end in `hidden` lines."""
    hidden_lines = set(hidden)
    straight, tagged = _straighten(lines, hidden_lines)
    for fence in tagged:
        hidden_lines.update(range(fence.start, fence.end))
    unnamed = [*tagged, *_markdown_fences(straight, hidden_lines)]
    fences: list[Fence] = []
    for fence in sorted(unnamed, key=lambda fence: fence.start):
        previous = fences[-1] if fences else None
        floor = previous.end if previous else 0
        above, is_apart = line_above(straight, floor, fence.start)
        between = straight[floor : fence.start]
        is_next = not any(line.strip(" \t>") for line in between)
        if previous and is_next and previous.holds_a_name(project_names):
            above, is_apart = previous.content.strip(), True
        fences.append(name_fence(fence, above, is_apart, project_names))
    return fences


def _markdown_fences(lines: Sequence[str], hidden: set[int]) -> list[Fence]:
    # disguise the marks of hidden fences, also after a list mark
    hide: dict[int, str] = {}
    show: dict[int, str] = {}
    if hidden:
        backtick, tilde = _find_unused_characters(lines)
        hide = {ord("`"): backtick, ord("~"): tilde}
        show = {ord(backtick): "`", ord(tilde): "~"}
    visible = list(lines)
    for place in hidden:
        visible[place] = lines[place].translate(hide)
    text = "\n".join(visible)
    fences: list[Fence] = []
    for token in _parser().parse(text):
        if token.type != "fence" or token.map is None:
            continue
        (start, end), mark = token.map, token.markup
        last = lines[end - 1].strip(" \t>")
        is_mark = len(last) >= len(mark) and not last.rstrip(mark[0])
        fences.append(
            Fence(
                start,
                end,
                mark,
                "",
                None,
                token.content.translate(show),
                is_mark and end - start > 1,
                token.info,
            )
        )
    return fences


def _find_unused_characters(lines: Sequence[str]) -> tuple[str, str]:
    used = set().union(*lines)
    characters = map(chr, chain(*_PRIVATE_CHARACTERS))
    unused = (character for character in characters if character not in used)
    return next(unused), next(unused)


@cache
def _parser() -> MarkdownIt:
    """Return a parser of blocks only. It reads indented code, because a list can turn a
    fence into it.
    """
    return MarkdownIt("commonmark").disable(["inline", "html_block", "reference"])


def _straighten(
    lines: Sequence[str], hidden: Collection[int]
) -> tuple[list[str], list[Fence]]:
    """Return the lines, and the blocks between tags.

    A fence is unindented if a line inside has less indentation: then only the fence was
    moved.
    """
    straight = list(lines)
    tagged: list[Fence] = []
    # last place of each line, so that unclosed tags are searched only once
    last: dict[str, int] = {}
    for place, line in enumerate(lines):
        if place not in hidden:
            last[line.strip()] = place
    place = 0
    while place < len(lines):
        if place in hidden:
            place += 1
            continue
        if block := _between_tags(lines, place, last, hidden):
            tagged.append(block)
            place = block.end
            continue
        opening = FenceOpening.parse(lines[place])
        if opening is None:
            place += 1
            continue
        end = _find_closing(lines, place, opening, hidden)
        has_end = end < len(lines)
        if has_end and _is_moved(opening.container, lines[place + 1 : end]):
            straight[place] = lines[place].lstrip()
            straight[end] = lines[end].lstrip()
        place = end + 1
    return straight, tagged


def _is_moved(indent: str, inside: Sequence[str]) -> bool:
    """True if the fence is indented and a line inside is not."""
    if not indent or indent.strip():
        return False
    return any(line.strip() and not line.startswith(indent) for line in inside)


def _find_closing(
    lines: Sequence[str], start: int, opening: FenceOpening, hidden: Collection[int]
) -> int:
    for place in range(start + 1, len(lines)):
        if place not in hidden and opening.is_closed_by(lines[place]):
            return place
    return len(lines)


def _between_tags(
    lines: Sequence[str],
    start: int,
    last: Mapping[str, int],
    hidden: Collection[int],
) -> Fence | None:
    opening = FenceOpening.parse_tag(lines[start])
    if opening is None or last.get(f"</{opening.mark[1:]}", start) == start:
        return None
    for place in range(start + 1, len(lines)):
        if opening.is_closed_by(lines[place]) and place not in hidden:
            content = "".join(f"{line}\n" for line in lines[start + 1 : place])
            return Fence(
                start,
                place + 1,
                opening.mark,
                "",
                None,
                content,
                is_closed=True,
                info=opening.info,
            )
    return None


def line_above(lines: Sequence[str], floor: int, start: int) -> tuple[str, bool]:
    """Return the line above a fence, at most one blank line away, and True if the line
    is apart from the text above it.
    """
    place = start - 1
    if place >= floor and not lines[place].strip(" \t>"):
        place -= 1
    if place < floor or not lines[place].strip():
        return "", False
    line = lines[place]
    is_below_blank = place > floor and not lines[place - 1].strip()
    return line, place == 0 or is_below_blank or "#" in line[:4]


def name_fence(
    fence: Fence, above: str, is_apart: bool, project_names: ProjectNames
) -> Fence:
    """Add the language, and the file that the block is or could be."""
    language, in_info = name_in_info(fence.info, project_names)
    fence = replace(fence, language=language)
    if in_info is not None and in_info.is_file:
        return replace(fence, path=in_info.path)
    content = fence.content
    in_line = _unless_commands(
        content, language, name_in_line(above, language, project_names)
    )
    is_in_line = in_line is not None and in_line.is_file
    in_comment = None
    if not is_in_line:
        in_comment, content = _read_first_line(content, language, project_names)
    names = [named for named in (in_line, in_comment, in_info) if named is not None]
    path = next((named.path for named in names if named.is_file), None)
    doubt = ""
    if path is None:
        doubts = [
            *(named.path for named in names),
            *_find_doubts(fence, above, project_names),
        ]
        doubt = doubts[0] if doubts else ""
    path_of_edits = find_name_above_edits(above, project_names)
    return replace(
        fence,
        path=path,
        content=content,
        is_named_apart=is_apart and is_in_line,
        above=path_of_edits or (doubt if project_names.is_file(doubt) else None),
        doubt=doubt,
    )


def _read_first_line(
    content: str, language: str, project_names: ProjectNames
) -> tuple[Named | None, str]:
    if not content:
        return None, content
    first, _, rest = content.partition("\n")
    named = name_in_comment(first, language, project_names)
    # JSON has no comments, so the line is not content
    if named is not None and named.path.endswith(".json"):
        return named, rest
    return named, content


def _find_doubts(fence: Fence, above: str, project_names: ProjectNames) -> list[str]:
    """Return files that an unnamed block could be: the only one mentioned by the
    caption or first comment, or a name that fills the first line.
    """
    if fence.language in SHELLS:
        return []
    first = fence.content.partition("\n")[0].strip()
    names: list[str] = []
    if _CAPTION.search(above):
        names += _only_one(find_mentioned_files(above, project_names), fence, above)
    if is_code(fence.language):
        if is_comment(first):
            names += _only_one(find_mentioned_files(first, project_names), fence, first)
        elif names_file(first) and fits(fence.language, first):
            names.append(first)
    return names


def _only_one(names: Sequence[str], fence: Fence, text: str) -> list[str]:
    """Return the only name that can be the block's file."""
    if fence.language:
        names = [name for name in names if _may_hold(name, fence.language)]
    elif not _SETS_OFF.search(text):
        names = [name for name in names if f"`{name}`" in text]
    longest = max(names, key=len, default="")
    if not all(longest.endswith(name) for name in names):
        return []
    calls = [line for line in fence.lines if not line.lstrip().startswith("#")]
    is_called = not fence.language and any(longest in line for line in calls)
    return [longest] if longest and not is_called else []


def _may_hold(name: str, language: str) -> bool:
    suffix = PurePosixPath(name).suffix.lower()
    return suffix in _MIXED_SUFFIXES or is_in_language(language, name)


def _unless_commands(content: str, language: str, named: Named | None) -> Named | None:
    """Reject the name of a program that the block calls. A word above other commands is
    only a possible name.
    """
    name = PurePosixPath(named.path).name if named else ""
    if named is None or PurePosixPath(name).suffix or content.startswith("#!"):
        return named
    call = rf"^[ \t]*(?:\$ +)?(?:\S*/)?{re.escape(name)}(?:\s|$)"
    if re.search(call, content, re.MULTILINE):
        return None
    if language in SHELLS and grade_name(named.path) is Grade.WORD:
        return Named(named.path, False)
    return named
