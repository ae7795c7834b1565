"""Unified diffs as models write them, as edits.

The format is POSIX's
(https://pubs.opengroup.org/onlinepubs/9799919799/utilities/diff.html) with git's
headers (https://git-scm.com/docs/diff-format). What a model gets wrong in it is not
needed: line numbers and counts, whole `@@` lines, the space before a line that stays.
Lines are found by the ladder of `search.py`; a right line number decides between
several places.
"""

import re
from collections.abc import Sequence
from functools import partial
from itertools import pairwise

from msgspec import Struct, field

from cdd_agent.changes.formats.fences import Fence
from cdd_agent.changes.formats.form import Form, Span
from cdd_agent.changes.formats.naming import DIFFS
from cdd_agent.changes.model import (
    Deletion,
    Edit,
    Hint,
    ModeChange,
    Renaming,
    Replacement,
    ReplyRefused,
    WholeFile,
)

_HUNK = re.compile(
    r"^@@+(?:\s*-(?P<old>\d+)(?:,(?P<olds>\d+))?"
    r"\s+\+(?P<new>\d+)(?:,(?P<news>\d+))?)?.*$"
)
_GIT = re.compile(r'^diff --git (?P<old>"?a/.+?"?) (?P<new>"?b/.+?"?)$')
_EXTENDED = re.compile(
    r"^(?:index [0-9a-f]|old mode |new mode |similarity |dissimilarity |rename |copy"
    r" |deleted file |new file |Index: "
    r"|={20,}$)"
)
_MOVED = re.compile(r"^(?P<kind>rename|copy) (?P<end>from|to) (?P<name>.*)$")
_SIGNATURE = re.compile(r"^\d+\.\d+(\.\d+)*")
_FENCE = re.compile(r"^(?P<space> ?)(?P<mark>`{3,}|~{3,})(?P<info>.*)$")
_DATE = re.compile(r"\s\d{4}-\d\d-\d\d[ T]")
_NOWHERE = "/dev/null"
_BINARY = ("GIT binary patch", "Binary files ")
_MARKED = (" ", "+", "-", "\\")
_PROSE = re.compile(r"^(?:[-+] \S|-{3,}\s*$|[^-+])")
"""After a blank line, no line of a hunk that has all its lines: a list, a rule, words.
"""
_LOOKED_AT = 50


class Diffs(Form):
    """In code blocks, and in prose, where every line has its mark."""

    kind = "diff"

    def in_prose(
        self, lines: Sequence[str], taken: set[int], ends: set[int]
    ) -> list[Span]:
        spans: list[Span] = []
        for place in range(len(lines)):
            if (
                place not in taken
                and _begins(lines, place)
                and (not spans or place >= spans[-1].end)
            ):
                end = _end(lines, place, ends)
                read = partial(_read, lines[place:end])
                spans.append(Span(place, end, read, kind=self.kind))
        return spans

    def takes(self, fence: Fence) -> bool:
        if fence.is_file_of_diffs:
            return False
        is_meant = fence.path is not None or any(
            line.startswith("@@") for line in fence.lines
        )
        return _is_diff(fence.lines) or (
            fence.language in DIFFS and (is_meant or _holds_diff(fence.lines))
        )

    def read(self, fence: Fence) -> list[Edit]:
        has_names = _is_diff(fence.lines) or _holds_diff(fence.lines)
        if fence.path is None and not has_names:
            raise ReplyRefused(
                f"The diff in line {fence.start + 1} of the reply names no file.",
                hint="Begin it with `--- a/PATH` and `+++ b/PATH`.",
            )
        if not has_names and not any(line.startswith("@@") for line in fence.lines):
            raise ReplyRefused(
                f"The diff of {fence.path} has no `@@` line.",
                hint="Begin each hunk with a line `@@`.",
                path=fence.path or "",
            )
        return _read(fence.lines, fence.path)


class _Hunk(Struct):
    """The lines of a hunk with their marks, without its head."""

    line: int | None = None
    old_count: int | None = None
    new_count: int | None = None
    lines: list[str] = field(default_factory=list)
    _old: int = 0
    _new: int = 0

    @classmethod
    def of(cls, head: str) -> "_Hunk":
        found = _HUNK.match(head)
        if found is None or found["old"] is None:
            return cls()
        return cls(
            int(found["old"][:9]),
            int((found["olds"] or "1")[:9]),
            int((found["news"] or "1")[:9]),
        )

    def add(self, line: str) -> None:
        self.lines.append(line)
        self._old += line[:1] not in ("+", "\\")
        self._new += line[:1] not in ("-", "\\")

    @property
    def is_full(self) -> bool:
        """True if it has the number of lines of its head."""
        if self.old_count is None or self.new_count is None:
            return False
        return self._old >= self.old_count and self._new >= self.new_count

    def is_over(self, lines: Sequence[str], place: int) -> bool:
        """True if the names of another file are here, and not a removed line `-- x`
        and an added line `++ y`.
        """
        is_head = place + 2 < len(lines) and lines[place + 2].startswith("@@")
        return _names_follow(lines, place) and (
            self.is_full or self.old_count is None or is_head
        )


class _DiffSection(Struct):
    """The part of a diff that is about one file."""

    old: str = ""
    new: str = ""
    is_deleted: bool = False
    is_new: bool = False
    has_mode: bool = False
    """True if it changes the permissions of the file."""
    renamed: dict[str, str] = field(default_factory=dict)
    """The names after `rename from` and `rename to`."""
    has_names: bool = False
    """True once its `---` and `+++` lines were read."""
    hunks: list[_Hunk] = field(default_factory=list)

    @property
    def lines(self) -> list[str]:
        """The lines of all hunks, with their marks."""
        return [line for hunk in self.hunks for line in hunk.lines]

    @property
    def was_empty(self) -> bool:
        """True if the head of its first hunk says that there was no line before."""
        first = self.hunks[0] if self.hunks else None
        return first is not None and first.line == 0 and first.old_count == 0


def quoted_fences(lines: Sequence[str]) -> set[int]:
    """Return the lines of diffs in code blocks that are fences of the changed file:
    they have a space before them.
    """
    found: set[int] = set()
    mark = ""
    inside: list[int] = []
    for place, line in enumerate(lines):
        opening = _FENCE.match(line) if line[:2].lstrip(" ")[:1] in ("`", "~") else None
        if not mark and opening and not opening["space"]:
            if opening["info"].strip().lower() in DIFFS or (
                place + 1 < len(lines) and _begins(lines, place + 1)
            ):
                mark, inside = opening["mark"], []
        elif mark and opening and opening["space"]:
            inside.append(place)
        elif (
            mark
            and opening
            and opening["mark"].startswith(mark)
            and not opening["info"].strip()
        ):
            found.update(inside)
            mark = ""
    return found


def _is_diff(lines: Sequence[str]) -> bool:
    """True if a text begins as a diff with names."""
    first = next((place for place, line in enumerate(lines) if line.strip()), None)
    return first is not None and (
        _begins(lines, first) or lines[first].startswith("Index: ")
    )


def _holds_diff(lines: Sequence[str]) -> bool:
    """True if a text contains a diff with names."""
    return any(_begins(lines, place) for place in range(len(lines)))


def _begins(lines: Sequence[str], place: int) -> bool:
    return lines[place].startswith("diff --git ") or _names_follow(lines, place)


def _names_follow(lines: Sequence[str], place: int) -> bool:
    after = lines[place + 1] if place + 1 < len(lines) else ""
    return lines[place].startswith("--- ") and after.startswith("+++ ")


def _is_signature(lines: Sequence[str], place: int) -> bool:
    """True for the end of a mail from `git format-patch`: the version of git."""
    return (
        lines[place].rstrip() == "--"
        and place + 1 < len(lines)
        and _SIGNATURE.match(lines[place + 1]) is not None
    )


def _end(lines: Sequence[str], start: int, ends: set[int]) -> int:
    """Return the line after a diff in prose, whose lines all have marks."""
    hunk: _Hunk | None = None
    last = start
    for place in range(start, len(lines)):
        line = lines[place]
        if place in ends:
            break
        if (
            hunk is not None
            and line.startswith(("+++ ", "--- "))
            and not hunk.is_over(lines, place)
        ):
            hunk.add(line)
        elif (
            _begins(lines, place)
            or _EXTENDED.match(line)
            or line.startswith(("+++ ", *_BINARY))
        ):
            hunk = None
        elif line.startswith("@@"):
            hunk = _Hunk.of(line)
        elif not line.strip():
            if hunk is not None:
                hunk.add(line)
            continue
        elif (
            hunk is None or not line.startswith(_MARKED) or _is_signature(lines, place)
        ):
            break
        else:
            # and a blank line: they are its if something changes in them
            if hunk.is_full and place - 1 > last:
                rest = (
                    other
                    for other in lines[place : place + _LOOKED_AT]
                    if other.strip() and other[0] != " "
                )
                if _PROSE.match(next(rest, "words")):
                    break
            hunk.add(line)  # also beyond what its head says: a count may be wrong
        last = place
    return last + 1


def _read(lines: Sequence[str], path: str | None = None) -> list[Edit]:
    """Return the edits of a diff. `path` is the file of hunks without names. Raises
    `ReplyRefused`.
    """
    sections: list[_DiffSection] = []
    if path is not None and not _holds_diff(lines):
        sections.append(_DiffSection(path, path, has_names=True))
    place = 0
    while place < len(lines):
        line = lines[place]
        if line.startswith("diff --git "):
            sections.append(_section_of_git(line))
            place += 1
        elif _names_follow(lines, place):
            if not sections or sections[-1].has_names or sections[-1].hunks:
                sections.append(_DiffSection())
            section = sections[-1]
            section.old, section.new = _names(line, lines[place + 1])
            section.has_names = True
            place += 2
        elif sections:
            place = _read_in_section(sections[-1], lines, place)
        else:
            place += 1
    return [edit for section in sections for edit in _edits(section)]


def _section_of_git(line: str) -> _DiffSection:
    found = _GIT.match(line)
    if found is None:
        return _DiffSection()
    old, new = (_unquoted(found[end]) for end in ("old", "new"))
    return _DiffSection(re.sub("^[ab]/", "", old), re.sub("^[ab]/", "", new))


def _read_in_section(section: _DiffSection, lines: Sequence[str], place: int) -> int:
    """Read the line, or the hunk that begins there. Return the line after it."""
    line = lines[place]
    if line.startswith(_BINARY):
        raise ReplyRefused(
            f"The diff of {section.new} is binary; only text can be changed.",
            path=section.new,
        )
    if _EXTENDED.match(line) and not section.has_names:
        _read_header(section, line)
        return place + 1
    is_head = line.startswith("@@")
    if is_head or (section.has_names and line[:1] in ("+", "-", " ")):
        section.hunks.append(_Hunk.of(line))
        return _fill(lines, place + is_head, section.hunks[-1])
    return place + 1


def _read_header(section: _DiffSection, line: str) -> None:
    """Read one of git's lines between `diff --git` and the names."""
    if moved := _MOVED.match(line):
        name = _unquoted(moved["name"])
        section.renamed[moved["end"]] = name
        if moved["kind"] == "copy":
            raise ReplyRefused(
                "Copies in diffs are not read; give the new file whole.", path=name
            )
    section.is_deleted |= line.startswith("deleted file ")
    section.is_new |= line.startswith("new file ")
    is_program = line.rstrip() == "new file mode 100755"
    section.has_mode |= line.startswith("new mode ") or is_program


def _fill(lines: Sequence[str], place: int, hunk: _Hunk) -> int:
    """Read the lines of a hunk up to the next head. Blank lines without a mark at its
    end are not its.
    """
    while place < len(lines):
        line = lines[place]
        if line.startswith(("@@", "diff --git ", "Index: ")) or hunk.is_over(
            lines, place
        ):
            break
        if _is_signature(lines, place):
            return len(lines)
        hunk.add(line)
        place += 1
    while hunk.lines and not hunk.lines[-1]:
        hunk.lines.pop()
    return place


def _names(old_line: str, new_line: str) -> tuple[str, str]:
    """Return the names of the `---` and `+++` lines, without git's `a/` and `b/`."""
    old, new = (
        _unquoted(line[4:].partition("\t")[0].strip()) for line in (old_line, new_line)
    )
    old, new = (_DATE.split(name, maxsplit=1)[0].rstrip() for name in (old, new))
    bare_old, bare_new = old.removeprefix("a/"), new.removeprefix("b/")
    if (old == _NOWHERE or old.startswith("a/")) and (
        new == _NOWHERE or new.startswith("b/")
    ):
        return bare_old, bare_new
    pairs = ((bare_old, new), (old, bare_new), (bare_old, bare_new))
    return next((pair for pair in pairs if pair[0] == pair[1]), (old, new))


def _unquoted(name: str) -> str:
    """git quotes names with characters beyond ASCII as C does: "b/gr\\303\\266sse"."""
    name = name.strip()
    if len(name) < 2 or not (name.startswith('"') and name.endswith('"')):
        return name.strip("`")
    data = re.sub(
        rb'\\([0-7]{3}|[\\"tn])',
        lambda found: (
            bytes([int(found[1], 8) & 255])
            if len(found[1]) == 3
            else _ESCAPED[found[1]]
        ),
        name[1:-1].encode("utf-8", "surrogatepass"),
    )
    return data.decode("utf-8", errors="replace")


_ESCAPED = {b"\\": b"\\", b'"': b'"', b"t": b"\t", b"n": b"\n"}


def _edits(section: _DiffSection) -> list[Edit]:
    old, new = section.old, section.new
    if section.is_deleted or new == _NOWHERE:
        content = sides(section.lines)[0] if section.hunks else None
        return [Deletion(old if old != _NOWHERE else new, content)]
    modes = [ModeChange(new)] if section.has_mode else []
    if section.is_new or old == _NOWHERE or section.was_empty:
        return [_new_file(section), *modes]
    if section.has_names and not (section.hunks or section.renamed or modes):
        raise ReplyRefused(
            f"The diff of {new} changes nothing: it has no hunk.", path=new
        )
    edits: list[Edit] = []
    if section.renamed:
        old, new = section.renamed.get("from") or old, section.renamed.get("to") or new
        edits.append(Renaming(old, new))
    elif old != new and re.sub(r"\.(orig|old|bak)$", "", old) != new:
        raise ReplyRefused(
            f"The diff names two files, {old} and {new}.",
            hint="For a new name, add the lines `rename from` and `rename to`.",
            path=new,
        )
    for hunk in section.hunks:
        edits += replacement(new, hunk.lines, Hint(line=hunk.line))
    return [*edits, *modes]


def _new_file(section: _DiffSection) -> WholeFile:
    lines = section.lines
    if any(line.strip() for line in sides(lines)[0]):
        raise ReplyRefused(
            f"The diff makes {section.new} anew, and has lines in it that do not begin"
            " with `+`.",
            path=section.new,
        )
    added = [line[1:] for line in lines if not line.startswith("\\")]
    end = "\n" if added and len(added) == len(lines) else ""
    return WholeFile(section.new, "\n".join(added) + end, must_be_new=True)


def replacement(path: str, lines: Sequence[str], hint: Hint) -> list[Replacement]:
    """Return the lines of a hunk as an edit, or nothing if it changes nothing. Raises
    `ReplyRefused`.
    """
    find, new = sides(lines)
    # `\ No newline at end of file` below a line that goes or comes says how the file's
    # end changes
    unended = {above[:1] for above, line in pairwise(lines) if line.startswith("\\")}
    final_newline = True if unended == {"-"} else False if unended == {"+"} else None
    if find == new and final_newline is None:
        return []
    if not find:
        raise ReplyRefused(
            f"A hunk for {path} adds lines and shows none that stay: it is unclear"
            " where they go.",
            hint="Give the lines around them, each with a space before it.",
            path=path,
        )
    kept = sides(lines, keep_space=True)
    return [
        Replacement(
            path, find, new, hint, final_newline, kept if kept != (find, new) else None
        )
    ]


def sides(
    lines: Sequence[str], *, keep_space: bool = False
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the lines before and after. A line without a mark stays, and has lost the
    space before it.

    With `keep_space`, all lines that stay have lost it.
    """
    old: list[str] = []
    new: list[str] = []
    for line in lines:
        mark, text = line[:1], line[1:]
        if mark == "\\":
            continue
        if mark not in ("+", "-"):
            text = text if mark == " " and not keep_space else line
        if mark != "+":
            old.append(text)
        if mark != "-":
            new.append(text)
    return tuple(old), tuple(new)
