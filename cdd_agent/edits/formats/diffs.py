"""Unified diffs as models write them, as edits.

The format is POSIX's (https://pubs.opengroup.org/onlinepubs/9799919799/utilities/diff.html) with git's headers
(https://git-scm.com/docs/diff-format). What a model gets wrong in it is not needed: line numbers and counts, whole
`@@` lines, the space before a line that stays. Lines are found by the ladder of `matching.py`; a right line number
decides between several places.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from cdd_agent.edits.formats.naming import DIFFS
from cdd_agent.edits.model import Deletion, Edit, Hint, ModeChange, NewFile, Renaming, Replacement, ReplyRefused

_HUNK = re.compile(r"^@@+(?:\s*-(?P<old>\d+)(?:,(?P<olds>\d+))?\s+\+(?P<new>\d+)(?:,(?P<news>\d+))?)?.*$")
_GIT = re.compile(r'^diff --git (?P<old>"?a/.+?"?) (?P<new>"?b/.+?"?)$')
_EXTENDED = re.compile(
    r"^(?:index [0-9a-f]|old mode |new mode |similarity |dissimilarity |rename |copy |deleted file |new file |Index: "
    r"|={20,}$)"
)
_SIGNATURE = re.compile(r"^\d+\.\d+(\.\d+)*")
_FENCE = re.compile(r"^(?P<space> ?)(?P<mark>`{3,}|~{3,})(?P<info>.*)$")
_NOWHERE = "/dev/null"
_BINARY = ("GIT binary patch", "Binary files ")
_MARKED = (" ", "+", "-", "\\")
_PROSE = re.compile(r"^(?:[-+] \S|-{3,}\s*$|[^-+])")
"""What comes after a blank line and is no line of a hunk that has all its lines: a list, a rule, words."""
_LOOKED_AT = 50


@dataclass
class _Hunk:
    """Its lines as they are written, without its head."""

    line: int | None
    old_count: int | None
    new_count: int | None
    lines: list[str] = field(default_factory=list)
    _old: int = 0
    _new: int = 0

    def add(self, line: str) -> None:
        self.lines.append(line)
        self._old += line[:1] not in ("+", "\\")
        self._new += line[:1] not in ("-", "\\")

    @property
    def is_full(self) -> bool:
        """It has as many lines as its head says."""
        if self.old_count is None or self.new_count is None:
            return False
        return self._old >= self.old_count and self._new >= self.new_count


@dataclass
class _DiffSection:
    """What a diff says of one file."""

    old: str = ""
    new: str = ""
    is_deleted: bool = False
    is_new: bool = False
    has_mode: bool = False
    """It gives the file other permissions, or those of a program."""
    renamed_from: str = ""
    renamed_to: str = ""
    has_names: bool = False
    """Its `---` and `+++` lines were read."""
    hunks: list[_Hunk] = field(default_factory=list)


def is_diff(lines: Sequence[str]) -> bool:
    """Whether a text begins as a diff with names does."""
    told = [place for place, line in enumerate(lines) if line.strip()][:1]
    return bool(told) and (_begins(lines, told[0]) or lines[told[0]].startswith("Index: "))


def has_hunks(lines: Sequence[str]) -> bool:
    return any(line.startswith("@@") for line in lines)


def read_diff(lines: Sequence[str], path: str | None = None) -> list[Edit]:
    """The edits of a diff; `path` is the file of hunks without names. Raises `ReplyRefused`."""
    sections: list[_DiffSection] = []
    if path is not None and not holds_diff(lines):
        sections.append(_DiffSection(path, path, has_names=True))
    place = 0
    while place < len(lines):
        place = _take(lines, place, sections)
    return [edit for section in sections for edit in _edits(section)]


def holds_diff(lines: Sequence[str]) -> bool:
    """Whether a text has a diff with names somewhere."""
    return any(_begins(lines, place) for place in range(len(lines)))


def quoted_fences(lines: Sequence[str]) -> set[int]:
    """Lines of a diff in a code block that are fences of the changed file: they have a space before them."""
    found: set[int] = set()
    mark = ""
    inside: list[int] = []
    for place, line in enumerate(lines):
        opening = _FENCE.match(line) if line[:2].lstrip(" ")[:1] in ("`", "~") else None
        if not mark and opening and not opening["space"]:
            if opening["info"].strip().lower() in DIFFS or (place + 1 < len(lines) and _begins(lines, place + 1)):
                mark, inside = opening["mark"], []
        elif mark and opening and opening["space"]:
            inside.append(place)
        elif mark and opening and opening["mark"].startswith(mark) and not opening["info"].strip():
            found.update(inside)
            mark = ""
    return found


def find_diffs(lines: Sequence[str], taken: set[int], ends: set[int]) -> list[tuple[int, int]]:
    """Where diffs stand in a text, as first line and the one after the last. None begins in a line that is taken; one
    goes on, by its own marks, up to a line that `ends` it."""
    found: list[tuple[int, int]] = []
    place = 0
    while place < len(lines):
        if place not in taken and _begins(lines, place):
            end = _end(lines, place, ends)
            found.append((place, end))
            place = end
        else:
            place += 1
    return found


def _begins(lines: Sequence[str], place: int) -> bool:
    return lines[place].startswith("diff --git ") or _names_follow(lines, place)


def _names_follow(lines: Sequence[str], place: int) -> bool:
    after = lines[place + 1] if place + 1 < len(lines) else ""
    return lines[place].startswith("--- ") and after.startswith("+++ ")


def _end(lines: Sequence[str], start: int, ends: set[int]) -> int:
    """Where a diff in prose ends: there, every line has its mark."""
    hunk: _Hunk | None = None
    last = start
    for place in range(start, len(lines)):
        line = lines[place]
        if place in ends:
            break
        if hunk is not None and line.startswith(("+++ ", "--- ")) and not _ends_hunk(lines, place, hunk):
            hunk.add(line)
        elif _begins(lines, place) or _EXTENDED.match(line) or line.startswith(("+++ ", *_BINARY)):
            hunk = None
        elif line.startswith("@@"):
            hunk = _hunk(line)
        elif not line.strip():
            if hunk is not None:
                hunk.add(line)
            continue
        elif (
            hunk is None
            or not line.startswith(_MARKED)
            or _is_signature(lines, place)
            or (hunk.is_full and place - 1 > last and not _goes_on(lines[place : place + _LOOKED_AT]))
        ):
            break
        else:
            hunk.add(line)  # also beyond what its head says: a count may be wrong
        last = place
    return last + 1


def _goes_on(lines: Sequence[str]) -> bool:
    """Whether lines after a hunk that has all its lines, and a blank one, are still its: something changes in them."""
    told = next((line for line in lines if line.strip() and not line.startswith(" ")), "")
    return bool(told) and not _PROSE.match(told)


def _is_signature(lines: Sequence[str], place: int) -> bool:
    """The end of a mail from `git format-patch`: its version of git."""
    return lines[place].rstrip() == "--" and place + 1 < len(lines) and _SIGNATURE.match(lines[place + 1]) is not None


def _take(lines: Sequence[str], place: int, sections: list[_DiffSection]) -> int:
    """Read one line of a head, or a whole hunk; the line after it."""
    line = lines[place]
    section = sections[-1] if sections else None
    if line.startswith("diff --git "):
        names = _GIT.match(line)
        sections.append(_DiffSection(*((_name(names["old"]), _name(names["new"])) if names else ("", ""))))
    elif _names_follow(lines, place):
        if section is None or section.has_names or section.hunks:
            section = _DiffSection()
            sections.append(section)
        section.old, section.new = _names(lines[place], lines[place + 1])
        section.has_names = True
        return place + 2
    elif section is None:
        return place + 1
    elif line.startswith(_BINARY):
        raise ReplyRefused(f"The diff of {section.new} is binary; only text can be changed.", path=section.new)
    elif _EXTENDED.match(line) and not section.has_names:
        _extend(section, line)
    elif line.startswith("@@"):
        hunk = _hunk(line)
        section.hunks.append(hunk)
        return _fill(lines, place + 1, hunk)
    elif section.has_names and line[:1] in ("+", "-", " "):
        hunk = _Hunk(None, None, None)
        section.hunks.append(hunk)
        return _fill(lines, place, hunk)
    return place + 1


def _extend(section: _DiffSection, line: str) -> None:
    kind, _, name = line.partition(" from ") if " from " in line else line.partition(" to ")
    if kind == "rename":
        section.renamed_from, section.renamed_to = (
            (_unquoted(name), section.renamed_to) if " from " in line else (section.renamed_from, _unquoted(name))
        )
    elif kind == "copy":
        raise ReplyRefused("Copies in diffs are not read; give the new file whole.", path=_unquoted(name))
    section.is_deleted |= line.startswith("deleted file ")
    section.is_new |= line.startswith("new file ")
    section.has_mode |= line.startswith("new mode ") or line.rstrip() == "new file mode 100755"


def _hunk(head: str) -> _Hunk:
    found = _HUNK.match(head)
    if found is None or found["old"] is None:
        return _Hunk(None, None, None)
    return _Hunk(int(found["old"][:9]), int((found["olds"] or "1")[:9]), int((found["news"] or "1")[:9]))


def _fill(lines: Sequence[str], place: int, hunk: _Hunk) -> int:
    """Read the lines of a hunk up to the next head. Blank lines without a mark at its end are not its."""
    while place < len(lines):
        line = lines[place]
        if line.startswith(("@@", "diff --git ", "Index: ")):
            break
        if _ends_hunk(lines, place, hunk):
            break
        if _is_signature(lines, place):
            return len(lines)
        hunk.add(line)
        place += 1
    while hunk.lines and not hunk.lines[-1]:
        hunk.lines.pop()
    return place


def _ends_hunk(lines: Sequence[str], place: int, hunk: _Hunk) -> bool:
    """Whether another file's names stand here, and not a line `-- x` that goes, and one `++ y` that comes."""
    is_head = place + 2 < len(lines) and lines[place + 2].startswith("@@")
    return _names_follow(lines, place) and (hunk.is_full or hunk.old_count is None or is_head)


def _names(old_line: str, new_line: str) -> tuple[str, str]:
    old, new = (_unquoted(line[4:].partition("\t")[0].strip()) for line in (old_line, new_line))
    old, new = (re.split(r"\s\d{4}-\d\d-\d\d[ T]", name, maxsplit=1)[0].rstrip() for name in (old, new))
    bare_old, bare_new = old.removeprefix("a/"), new.removeprefix("b/")
    if (old == _NOWHERE or old.startswith("a/")) and (new == _NOWHERE or new.startswith("b/")):
        return bare_old, bare_new
    for one, other in ((bare_old, new), (old, bare_new), (bare_old, bare_new)):
        if one == other:
            return one, other
    return old, new


def _name(text: str) -> str:
    """A name as the `diff --git` line has it."""
    name = _unquoted(text)
    return name[2:] if name.startswith(("a/", "b/")) else name


def _unquoted(name: str) -> str:
    """git quotes names with characters beyond ASCII as C does: "b/gr\\303\\266sse"."""
    name = name.strip()
    if len(name) < 2 or not (name.startswith('"') and name.endswith('"')):
        return name.strip("`")
    data = re.sub(
        rb'\\([0-7]{3}|[\\"tn])',
        lambda found: bytes([int(found[1], 8) & 255]) if len(found[1]) == 3 else _ESCAPED[found[1]],
        name[1:-1].encode("utf-8", "surrogatepass"),
    )
    return data.decode("utf-8", errors="replace")


_ESCAPED = {b"\\": b"\\", b'"': b'"', b"t": b"\t", b"n": b"\n"}


def _edits(section: _DiffSection) -> list[Edit]:
    old, new = section.old, section.new
    if section.is_deleted or new == _NOWHERE:
        path = old if old != _NOWHERE else new
        lines = [line for hunk in section.hunks for line in sides(hunk.lines)[0]]
        return [Deletion(path, tuple(lines) if section.hunks else None)]
    modes = [ModeChange(new)] if section.has_mode else []
    is_empty_before = section.hunks and section.hunks[0].line == 0 and section.hunks[0].old_count == 0
    if section.is_new or old == _NOWHERE or is_empty_before:
        return [NewFile(new, _content(new, section.hunks)), *modes]
    is_renamed = bool(section.renamed_from or section.renamed_to)
    if section.has_names and not section.hunks and not is_renamed and not modes:
        raise ReplyRefused(f"The diff of {new} changes nothing: it has no hunk.", path=new)
    edits: list[Edit] = []
    if is_renamed:
        old, new = section.renamed_from or old, section.renamed_to or new
        edits.append(Renaming(old, new))
    elif old != new and re.sub(r"\.(orig|old|bak)$", "", old) != new:
        raise ReplyRefused(
            f"The diff names two files, {old} and {new}.",
            hint="For a new name, add the lines `rename from` and `rename to`.",
            path=new,
        )
    parts = [edit for hunk in section.hunks for edit in replacement(new, hunk.lines, Hint(line=hunk.line))]
    return [*edits, *parts, *modes]


def _content(path: str, hunks: Sequence[_Hunk]) -> str:
    old = [line for hunk in hunks for line in sides(hunk.lines)[0] if line.strip()]
    if old:
        raise ReplyRefused(f"The diff makes {path} anew, and has lines in it that do not begin with `+`.", path=path)
    lines = [line[1:] for hunk in hunks for line in hunk.lines if not line.startswith("\\")]
    ends = not any(line.startswith("\\") for hunk in hunks for line in hunk.lines)
    return "\n".join(lines) + ("\n" if ends and lines else "")


def replacement(path: str, lines: Sequence[str], hint: Hint) -> list[Replacement]:
    """A hunk's lines as an edit; none for a hunk that changes nothing. Raises `ReplyRefused`."""
    find, new = sides(lines)
    final_newline = _final_newline(lines)
    if find == new and final_newline is None:
        return []
    if not find:
        raise ReplyRefused(
            f"A hunk for {path} adds lines and shows none that stay: it is unclear where they go.",
            hint="Give the lines around them, each with a space before it.",
            path=path,
        )
    kept = sides(lines, keep_space=True)
    otherwise = kept if kept != (find, new) else None
    return [Replacement(path, find, new, hint, final_newline, otherwise)]


def sides(lines: Sequence[str], *, keep_space: bool = False) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The lines before and after. One without a mark stays, and has lost the space before it.

    `keep_space`: the other reading, in which all lines that stay have lost it.
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


def _final_newline(lines: Sequence[str]) -> bool | None:
    """What `\\ No newline at end of file` says of the file afterwards, where that differs from before."""
    marks = {above[:1] for above, line in pairwise(lines) if line.startswith("\\")}
    if marks == {"-"}:
        return True
    return False if marks == {"+"} else None
