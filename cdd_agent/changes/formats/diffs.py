"""Edits from unified diffs as models write them.

The format is POSIX's
(https://pubs.opengroup.org/onlinepubs/9799919799/utilities/diff.html) with git's
headers (https://git-scm.com/docs/diff-format). Models often get line numbers, counts,
`@@` lines and the space before unchanged lines wrong, so none is required: `search.py`
finds the lines. A correct line number decides between several places.
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
from cdd_agent.pattern import Pattern

_HUNK = Pattern(
    r"^@@+(?:\s*-(?P<old>\d+)(?:,(?P<olds>\d+))?"
    r"\s+\+(?P<new>\d+)(?:,(?P<news>\d+))?)?.*$"
)
_GIT = Pattern(r'^diff --git (?P<old>"?a/.+?"?) (?P<new>"?b/.+?"?)$')
_EXTENDED = Pattern(
    r"^(?:index [0-9a-f]|old mode |new mode |similarity |dissimilarity |rename |copy"
    r" |deleted file |new file |Index: "
    r"|={20,}$)"
)
_MOVED = Pattern(r"^(?P<kind>rename|copy) (?P<end>from|to) (?P<name>.*)$")
_SIGNATURE = Pattern(r"^\d+\.\d+(\.\d+)*")
_FENCE = Pattern(r"^(?P<space> ?)(?P<mark>`{3,}|~{3,})(?P<info>.*)$")
_DATE = Pattern(r"\s\d{4}-\d\d-\d\d[ T]")
_NOWHERE = "/dev/null"
_BINARY = ("GIT binary patch", "Binary files ")
_MARKED = (" ", "+", "-", "\\")
_PROSE = Pattern(r"^(?:[-+] \S|-{3,}\s*$|[^-+])")
"""A list item, rule or sentence: prose, if after a complete hunk and a blank line."""
_MOST_INSPECTED = 50
"""Most lines to inspect for the continuation of a complete hunk."""


class Diffs(Form):
    """Diffs in code blocks, and in prose if every line has its mark."""

    kind = "diff"

    def in_prose(
        self, lines: Sequence[str], occupied: set[int], ends: set[int]
    ) -> list[Span]:
        spans: list[Span] = []
        end = 0
        for place in range(len(lines)):
            if place < end or place in occupied or not begins_diff(lines, place):
                continue
            end = _find_end(lines, place, ends)
            read = partial(_read, lines[place:end])
            spans.append(Span(place, end, read, kind=self.kind))
        return spans

    def accepts(self, fence: Fence) -> bool:
        if fence.is_file_of_diffs:
            return False
        if _is_diff(fence.lines):
            return True
        if fence.language not in DIFFS:
            return False
        has_hunk = any(line.startswith("@@") for line in fence.lines)
        return fence.path is not None or has_hunk or _holds_diff(fence.lines)

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


class DiffHunk(Struct):
    line: int | None = None
    old_count: int | None = None
    new_count: int | None = None
    lines: list[str] = field(default_factory=list)
    _old: int = 0
    _new: int = 0

    @classmethod
    def from_head(cls, head: str) -> "DiffHunk":
        numbers = _HUNK.match(head)
        if numbers is None or numbers["old"] is None:
            return cls()
        return cls(
            int(numbers["old"][:9]),
            int((numbers["olds"] or "1")[:9]),
            int((numbers["news"] or "1")[:9]),
        )

    def add(self, line: str) -> None:
        self.lines.append(line)
        self._old += line[:1] not in ("+", "\\")
        self._new += line[:1] not in ("-", "\\")

    @property
    def is_full(self) -> bool:
        """True if it has all the lines that its `@@` line counts."""
        if self.old_count is None or self.new_count is None:
            return False
        return self._old >= self.old_count and self._new >= self.new_count

    def is_over(self, lines: Sequence[str], place: int) -> bool:
        """True if this line and the next name another file.

        They could also remove a line `-- x` and add `++ y`.
        """
        if not names_follow(lines, place):
            return False
        has_head = place + 2 < len(lines) and lines[place + 2].startswith("@@")
        return self.is_full or self.old_count is None or has_head


class DiffSection(Struct):
    old: str = ""
    new: str = ""
    is_deleted: bool = False
    is_new: bool = False
    has_mode: bool = False
    """True if the diff changes permissions, or creates an executable file."""
    renamed: dict[str, str] = field(default_factory=dict)
    """Names after `rename from` and `rename to`."""
    has_names: bool = False
    """True if `---` and `+++` were read."""
    hunks: list[DiffHunk] = field(default_factory=list)

    @property
    def lines(self) -> list[str]:
        return [line for hunk in self.hunks for line in hunk.lines]

    @property
    def creates_file(self) -> bool:
        if self.is_new or self.old == _NOWHERE:
            return True
        return bool(self.hunks) and self.hunks[0].line == self.hunks[0].old_count == 0

    def begins_hunk(self, line: str) -> bool:
        if line.startswith("@@"):
            return True
        return self.has_names and line[:1] in ("+", "-", " ")

    def read_header(self, line: str) -> None:
        """Read a git header line. Unknown lines are ignored."""
        if line.startswith(_BINARY):
            raise ReplyRefused(
                f"The diff of {self.new} is binary; only text can be changed.",
                path=self.new,
            )
        if self.has_names or not _EXTENDED.match(line):
            return
        if moved := _MOVED.match(line):
            name = _unquoted(moved["name"])
            if moved["kind"] == "copy":
                raise ReplyRefused(
                    "Copies in diffs are not read; give the new file whole.", path=name
                )
            if name:
                self.renamed[moved["end"]] = name
        self.is_deleted |= line.startswith("deleted file ")
        self.is_new |= line.startswith("new file ")
        self.has_mode |= line.startswith("new mode ")
        self.has_mode |= line.rstrip() == "new file mode 100755"


def find_quoted_fences(lines: Sequence[str]) -> set[int]:
    """Return the numbers of fence lines that belong to a changed file: within a diff in
    a code block, after a space.
    """
    quoted: set[int] = set()
    mark = ""
    inside: list[int] = []
    for place, line in enumerate(lines):
        fence = _FENCE.match(line)
        if fence is None:
            continue
        if not mark:
            if _opens_diff(lines, place, fence):
                mark, inside = fence["mark"], []
        elif fence["space"]:
            inside.append(place)
        elif fence["mark"].startswith(mark) and not fence["info"].strip():
            quoted.update(inside)
            mark = ""
    return quoted


def _opens_diff(lines: Sequence[str], place: int, fence: re.Match[str]) -> bool:
    if fence["space"]:
        return False
    if fence["info"].strip().lower() in DIFFS:
        return True
    return place + 1 < len(lines) and begins_diff(lines, place + 1)


def _is_diff(lines: Sequence[str]) -> bool:
    for place, line in enumerate(lines):
        if line.strip():
            return line.startswith("Index: ") or begins_diff(lines, place)
    return False


def _holds_diff(lines: Sequence[str]) -> bool:
    return any(begins_diff(lines, place) for place in range(len(lines)))


def begins_diff(lines: Sequence[str], place: int) -> bool:
    return lines[place].startswith("diff --git ") or names_follow(lines, place)


def names_follow(lines: Sequence[str], place: int) -> bool:
    after = lines[place + 1] if place + 1 < len(lines) else ""
    return lines[place].startswith("--- ") and after.startswith("+++ ")


def is_signature(lines: Sequence[str], place: int) -> bool:
    """True for the `--` that ends a mail of `git format-patch`, above git's version."""
    if lines[place].rstrip() != "--" or place + 1 >= len(lines):
        return False
    return _SIGNATURE.match(lines[place + 1]) is not None


def _find_end(lines: Sequence[str], start: int, ends: set[int]) -> int:
    hunk: DiffHunk | None = None
    last = start
    for place in range(start, len(lines)):
        line = lines[place]
        if place in ends:
            break
        if not line.strip():
            # belongs to the diff only if a line of the hunk follows
            if hunk is not None:
                hunk.add(line)
            continue
        is_name = line.startswith(("+++ ", "--- "))
        if hunk is not None and is_name and not hunk.is_over(lines, place):
            hunk.add(line)
        elif _is_header(lines, place):
            hunk = None
        elif line.startswith("@@"):
            hunk = DiffHunk.from_head(line)
        elif hunk is None or _is_over(lines, place, hunk, last):
            break
        else:
            hunk.add(line)
        last = place
    return last + 1


def _is_over(lines: Sequence[str], place: int, hunk: DiffHunk, last: int) -> bool:
    is_over = ends_hunk(lines, place, hunk, is_below_blank=place - 1 > last)
    return is_over is not False


def _is_header(lines: Sequence[str], place: int) -> bool:
    return begins_diff(lines, place) or is_diff_header(lines[place])


def is_diff_header(line: str) -> bool:
    """True for a header line other than `diff --git` and `---`."""
    return _EXTENDED.match(line) is not None or line.startswith(("+++ ", *_BINARY))


def ends_hunk(
    lines: Sequence[str], place: int, hunk: DiffHunk, *, is_below_blank: bool
) -> bool | None:
    """True if the line ends a hunk in prose. None if later lines decide."""
    if not lines[place].startswith(_MARKED) or is_signature(lines, place):
        return True
    # counts may be too low: adjacent lines still belong to the hunk
    if not hunk.is_full or not is_below_blank:
        return False
    following = lines[place : place + _MOST_INSPECTED]
    for line in following:
        if line.strip() and line[0] != " ":
            return _PROSE.match(line) is not None
    return True if len(following) == _MOST_INSPECTED else None


def _read(lines: Sequence[str], path: str | None = None) -> list[Edit]:
    """`path` is the file of hunks without names. Raises `ReplyRefused`."""
    edits: list[Edit] = []
    if _holds_diff(lines):
        path = None
    for section in _read_sections(lines, path):
        edits += _edit_section(section)
    return edits


def _read_sections(lines: Sequence[str], path: str | None) -> list[DiffSection]:
    sections: list[DiffSection] = []
    if path is not None:
        sections.append(DiffSection(path, path, has_names=True))
    place = 0
    while place < len(lines):
        line = lines[place]
        if line.startswith("diff --git "):
            sections.append(read_git_line(line))
            place += 1
        elif names_follow(lines, place):
            if not sections or sections[-1].has_names or sections[-1].hunks:
                sections.append(DiffSection())
            section = sections[-1]
            section.old, section.new = read_names(line, lines[place + 1])
            section.has_names = True
            place += 2
        elif sections and sections[-1].begins_hunk(line):
            hunk, place = _read_hunk(lines, place)
            sections[-1].hunks.append(hunk)
        else:
            if sections:
                sections[-1].read_header(line)
            place += 1
    return sections


def read_git_line(line: str) -> DiffSection:
    names = _GIT.match(line)
    if names is None:
        return DiffSection()
    old, new = _unquoted(names["old"]), _unquoted(names["new"])
    return DiffSection(re.sub("^[ab]/", "", old), re.sub("^[ab]/", "", new))


def _read_hunk(lines: Sequence[str], start: int) -> tuple[DiffHunk, int]:
    """Return the hunk and the line after it. Trailing blank lines without a mark are
    excluded.
    """
    hunk = DiffHunk.from_head(lines[start])
    place = start + 1 if lines[start].startswith("@@") else start
    while place < len(lines):
        line = lines[place]
        if line.startswith(("@@", "diff --git ", "Index: ")):
            break
        if hunk.is_over(lines, place):
            break
        if is_signature(lines, place):
            place = len(lines)
            break
        hunk.add(line)
        place += 1
    while hunk.lines and not hunk.lines[-1]:
        hunk.lines.pop()
    return hunk, place


def read_names(old_line: str, new_line: str) -> tuple[str, str]:
    """Return the names without git's `a/` and `b/`."""
    old, new = _read_name(old_line), _read_name(new_line)
    bare_old, bare_new = old.removeprefix("a/"), new.removeprefix("b/")
    is_old_git = old == _NOWHERE or old.startswith("a/")
    is_new_git = new == _NOWHERE or new.startswith("b/")
    if is_old_git and is_new_git:
        return bare_old, bare_new
    for pair in ((bare_old, new), (old, bare_new), (bare_old, bare_new)):
        if pair[0] == pair[1]:
            return pair
    return old, new


def _read_name(line: str) -> str:
    name = _unquoted(line[4:].partition("\t")[0].strip())
    return _DATE.split(name, maxsplit=1)[0].rstrip()


_ESCAPED = {b"\\": b"\\", b'"': b'"', b"t": b"\t", b"n": b"\n"}


def _unquoted(name: str) -> str:
    r"""git escapes non-ASCII as C does: "b/gr\303\266sse"."""
    name = name.strip()
    if len(name) < 2 or not (name.startswith('"') and name.endswith('"')):
        return name.strip("`")
    quoted = name[1:-1].encode("utf-8", "surrogatepass")
    data = re.sub(rb'\\([0-7]{3}|[\\"tn])', _unescape, quoted)
    return data.decode("utf-8", errors="replace")


def _unescape(escape: re.Match[bytes]) -> bytes:
    code = escape[1]
    return bytes([int(code, 8) & 255]) if len(code) == 3 else _ESCAPED[code]


def _edit_section(section: DiffSection) -> list[Edit]:
    new = section.new
    if section.is_deleted or new == _NOWHERE:
        return [_delete_file(section)]
    modes = [ModeChange(new)] if section.has_mode else []
    if section.creates_file:
        return [_create_file(section), *modes]
    is_empty = not (section.hunks or section.renamed or modes)
    if section.has_names and is_empty:
        raise ReplyRefused(
            f"The diff of {new} changes nothing: it has no hunk.", path=new
        )
    edits: list[Edit] = []
    if section.renamed:
        old = section.renamed.get("from", section.old)
        new = section.renamed.get("to", new)
        edits.append(Renaming(old, new))
    else:
        _refuse_two_files(section.old, new)
    for hunk in section.hunks:
        edits += replace_lines(new, hunk.lines, Hint(line=hunk.line))
    return [*edits, *modes]


def _refuse_two_files(old: str, new: str) -> None:
    if old != new and re.sub(r"\.(orig|old|bak)$", "", old) != new:
        raise ReplyRefused(
            f"The diff names two files, {old} and {new}.",
            hint="For a new name, add the lines `rename from` and `rename to`.",
            path=new,
        )


def _delete_file(section: DiffSection) -> Deletion:
    path = section.new if section.old == _NOWHERE else section.old
    removed = split_sides(section.lines)[0] if section.hunks else None
    return Deletion(path, removed)


def _create_file(section: DiffSection) -> WholeFile:
    lines, path = section.lines, section.new
    if any(line.strip() for line in split_sides(lines)[0]):
        raise ReplyRefused(
            f"The diff creates {path}, and has lines that do not begin with `+`.",
            path=path,
        )
    added = [line[1:] for line in lines if not line.startswith("\\")]
    has_final_newline = added and len(added) == len(lines)
    content = "\n".join(added) + ("\n" if has_final_newline else "")
    return WholeFile(path, content, must_be_new=True)


def replace_lines(path: str, lines: Sequence[str], hint: Hint) -> list[Replacement]:
    """Return a hunk's edit; none if it changes nothing.

    Raises `ReplyRefused`.
    """
    find, new = split_sides(lines)
    # `\ No newline at end of file` on only one side changes the file's end
    unended = {above[:1] for above, line in pairwise(lines) if line.startswith("\\")}
    final_newline = None
    if unended in ({"-"}, {"+"}):
        final_newline = unended == {"-"}
    if find == new and final_newline is None:
        return []
    if not find:
        raise ReplyRefused(
            f"A hunk for {path} adds lines and shows none that stay: it is unclear"
            " where they go.",
            hint="Give the lines around them, each with a space before it.",
            path=path,
        )
    with_space = split_sides(lines, keep_space=True)
    otherwise = with_space if with_space != (find, new) else None
    return [Replacement(path, find, new, hint, final_newline, otherwise)]


def split_sides(
    lines: Sequence[str], *, keep_space: bool = False
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the old and new lines of a hunk.

    A line without a mark is unchanged and has lost its space. `keep_space` assumes this
    for all unchanged lines.
    """
    old: list[str] = []
    new: list[str] = []
    for line in lines:
        mark, text = line[:1], line[1:]
        if mark == "\\":
            continue
        if mark not in ("+", "-") and (mark != " " or keep_space):
            text = line
        if mark != "+":
            old.append(text)
        if mark != "-":
            new.append(text)
    return tuple(old), tuple(new)
