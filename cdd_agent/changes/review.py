"""Proposed changes, looked at part by part: a person takes some, leaves others out, and
may edit the result.

A part is a hunk of a file that stays, or all of a file that comes, goes, gets another
name or another encoding, or is too large to be compared. Files are compared by the
bytes of their lines, so that a part that is taken is exactly what was proposed, and one
that is left out is exactly as it was before. Diffs show the decoded text.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cached_property
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.changes.change_set import ChangeSet, FileChange
from cdd_agent.changes.file_diff import LeftOut
from cdd_agent.changes.model import EditProblem, ReplyRefused
from cdd_agent.changes.readability import refuse_unreadable
from cdd_agent.changes.targets import (
    Protected,
    find_collisions,
    refuse_unwritable,
    writable_path,
)
from cdd_agent.errors import BadInput, CddError
from cdd_agent.files.atomic import digest
from cdd_agent.files.charsets import NOTHING_DECLARED, Charsets
from cdd_agent.files.text import UTF_8, Encoding, FileText, decode_versions, encode_file

_CONTEXT = 3
"""Lines around a change that are shown; changes with no more than twice as many between
them are one hunk.
"""
_LARGEST_COMPARED = 500_000
_MOST_LINES = 10_000
_LONGEST_TOLD = 2_000
"""Characters of what was left out that the model is shown again."""


class Hunk(Struct, frozen=True):
    """Lines of a file and those that take their place; both numbered from 0, the second
    number is behind the last.
    """

    old: tuple[int, int]
    new: tuple[int, int]
    diff: str
    """Unified, with its `@@`."""
    added: int
    removed: int

    @property
    def where(self) -> str:
        """The lines that it is about, as the file was before, without those around
        them.
        """
        first = (
            self.old[0]
            + next((n for n, line in enumerate(self._body) if line[:1] in "+-"), 0)
            + 1
        )
        return (
            f"lines {first}-{first + self.removed - 1}"
            if self.removed > 1
            else f"line {first}"
        )

    @property
    def _body(self) -> list[str]:
        return self.diff.split("\n")[1:]


class FileReview(Struct, frozen=True, dict=True):
    """The change of one file, and which of its parts are left out, each with the
    reason.
    """

    change: FileChange
    old_name: FileChange | None
    """The file under its old name, which goes; then nothing of it can be taken without
    the rest.
    """
    hunks: tuple[Hunk, ...]
    """The parts; none where the person has edited it back to what it was."""
    left_out: Mapping[int, str] = field(default_factory=dict)
    is_edited: bool = False
    """The person has changed the result."""
    charsets: Charsets = NOTHING_DECLARED

    @classmethod
    def of(
        cls,
        change: FileChange,
        old_name: FileChange | None = None,
        *,
        is_edited: bool = False,
        charsets: Charsets = NOTHING_DECLARED,
    ) -> "FileReview":
        """With nothing left out. Takes a while for large files."""
        review = cls(change, old_name, (), is_edited=is_edited, charsets=charsets)
        return replace(review, hunks=tuple(review._compared()))

    def _compared(self) -> Iterator[Hunk]:
        if not self._is_compared:
            size = max(len(self._before or b""), len(self.change.after or b""))
            text = (
                f"{self.path} has {size:,} bytes, too many to show what is different."
            )
            yield Hunk((0, 0), (0, 0), text, 0, 0)
            return
        hunks = list(_hunks(self._old_lines, self._new_lines))
        if not self.is_whole:
            yield from hunks
            return
        added = sum(hunk.added for hunk in hunks)
        removed = sum(hunk.removed for hunk in hunks)
        diff = "\n".join(hunk.diff for hunk in hunks)
        yield Hunk((0, 0), (0, 0), diff, added, removed)

    @property
    def path(self) -> str:
        return str(self.change.path)

    @property
    def verb(self) -> str:
        if self.old_name is not None:
            return "rename"
        return (
            "create"
            if self.change.before is None
            else "delete"
            if self.change.after is None
            else "change"
        )

    @property
    def name(self) -> str:
        """The path, of a renamed file both."""
        return (
            f"{self.old_name.path} → {self.path}"
            if self.old_name is not None
            else self.path
        )

    @property
    def is_whole(self) -> bool:
        """It can only be taken or left as a whole."""
        return self.verb != "change" or not self._is_compared or self._changes_encoding

    @property
    def added(self) -> int:
        """Lines; where the file is too large to be compared, 0."""
        return sum(hunk.added for hunk in self.hunks)

    @property
    def removed(self) -> int:
        return sum(hunk.removed for hunk in self.hunks)

    def diff(self, parts: Collection[int] | None = None) -> str:
        """Unified; of some parts, or of all."""
        was, now = ("/dev/null" if data is None else name for data, name in self._names)
        hunks = [
            hunk.diff
            for place, hunk in enumerate(self.hunks)
            if parts is None or place in parts
        ]
        if not self._is_compared:
            return "".join(f"{text}\n" for text in hunks)
        return "".join(
            f"{text}\n" for text in (f"--- {was}", f"+++ {now}", *hunks) if text
        )

    def leave(self, parts: Collection[int], reason: str = "") -> "FileReview":
        """Without these parts."""
        return replace(self, left_out={**self.left_out, **dict.fromkeys(parts, reason)})

    def take(self, parts: Collection[int]) -> "FileReview":
        """With these parts after all."""
        return replace(
            self,
            left_out={
                part: why for part, why in self.left_out.items() if part not in parts
            },
        )

    def edit(self, content: bytes) -> "FileReview":
        """With this as the result; all parts of that are taken."""
        if content == self.result:
            return self
        return FileReview.of(
            replace(self.change, after=content),
            self.old_name,
            is_edited=True,
            charsets=self.charsets,
        )

    @property
    def copy_for_editor(self) -> bytes | None:
        """The result in UTF-8, which all editors can write; None if the file goes."""
        text = self._text_for_editor
        return self.result if text is None else text.text.encode()

    def edit_copy(self, content: bytes) -> "FileReview":
        """With the edited copy as the result, in the file's encoding. Raises `BadInput`
        or `TextNotHeld`.
        """
        before = self._text_for_editor
        if before is None:
            return self.edit(content)
        try:
            text = content.decode()
        except UnicodeDecodeError as error:
            raise BadInput(
                f"The editor has not written {self.path} in UTF-8 (byte {error.start})"
            ) from error
        path = self.change.path
        return self.edit(encode_file(path, text, before, self.charsets))

    @property
    def _text_for_editor(self) -> FileText | None:
        """The text of a result that is not in UTF-8; None for others."""
        _, text = decode_versions(
            self.change.path, self._before, self.result, self.charsets
        )
        if text is None or text.is_binary or text.encoding.is_utf8:
            return None
        return text

    @property
    def result(self) -> bytes | None:
        """The content that the file would have, with what is left out as it was."""
        if not self.left_out:
            return self.change.after
        if self.is_whole:
            return self.change.before
        lines: list[_Line] = []
        at = 0
        for place, hunk in enumerate(self.hunks):
            lines += self._old_lines[at : hunk.old[0]]
            if place in self.left_out:
                lines += self._old_lines[slice(*hunk.old)]
            else:
                lines += self._new_lines[slice(*hunk.new)]
            at = hunk.old[1]
        lines += self._old_lines[at:]
        return b"".join(line.data for line in lines)

    @property
    def changes(self) -> tuple[FileChange, ...]:
        """Of what is taken."""
        result = self.result
        if result == self.change.before:
            return ()
        return (
            replace(self.change, after=result),
            *((self.old_name,) if self.old_name is not None else ()),
        )

    @property
    def _before(self) -> bytes | None:
        return self.old_name.before if self.old_name is not None else self.change.before

    @property
    def _names(self) -> tuple[tuple[bytes | None, object], ...]:
        was = self.old_name.path if self.old_name is not None else self.path
        return ((self._before, was), (self.change.after, self.path))

    @cached_property
    def _texts(self) -> tuple[FileText | None, FileText | None]:
        path = self.change.path
        return decode_versions(path, self._before, self.change.after, self.charsets)

    @cached_property
    def _old_lines(self) -> list["_Line"]:
        return _lines(self._before, self._texts[0])

    @cached_property
    def _new_lines(self) -> list["_Line"]:
        return _lines(self.change.after, self._texts[1])

    @property
    def _changes_encoding(self) -> bool:
        """True if lines of both versions would not be one text."""
        old, new = self._texts
        if old is None or new is None or old.encoding.codec == new.encoding.codec:
            return False
        codecs = {old.encoding.codec, new.encoding.codec}
        is_superset = old.encoding.holds_ascii and new.encoding.holds_ascii
        return "ascii" not in codecs or not is_superset

    @cached_property
    def _is_compared(self) -> bool:
        sides = [data or b"" for data in (self._before, self.change.after)]
        return (
            max(map(len, sides)) <= _LARGEST_COMPARED
            and max(data.count(b"\n") for data in sides) <= _MOST_LINES
        )


class Review(Struct, frozen=True):
    """All changes that a person is asked about at once."""

    step: str | None
    """The label of the step that makes them; None in chat."""
    files: tuple[FileReview, ...]
    problem: str = ""
    """Why what they took before could not be written."""

    @classmethod
    def of(
        cls,
        step: str | None,
        changes: ChangeSet,
        charsets: Charsets = NOTHING_DECLARED,
    ) -> "Review":
        gone = {
            change.path: change for change in changes.changes if change.after is None
        }
        renamed = {
            change.path: gone[change.like]
            for change in changes.changes
            if change.like in gone
        }
        old_names = {old.path for old in renamed.values()}
        files = (
            FileReview.of(change, renamed.get(change.path), charsets=charsets)
            for change in changes.changes
            if change.path not in old_names
        )
        return cls(step, tuple(files))

    @property
    def parts(self) -> tuple[tuple[int, int], ...]:
        """Each hunk, as the places of its file and its own."""
        return tuple(
            (place, part)
            for place, file in enumerate(self.files)
            for part in range(len(file.hunks))
        )

    @property
    def is_untouched(self) -> bool:
        """It is what was proposed."""
        return not any(file.left_out or file.is_edited for file in self.files)

    @property
    def takes_nothing(self) -> bool:
        return not any(file.changes for file in self.files)

    @property
    def edited(self) -> tuple[str, ...]:
        return tuple(file.path for file in self.files if file.is_edited)

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        return tuple(_left_out(self.files))

    def with_file(self, place: int, file: FileReview) -> "Review":
        return replace(
            self,
            files=(*self.files[:place], file, *self.files[place + 1 :]),
            problem="",
        )

    def leave_all(self, reason: str) -> "Review":
        """Without anything of it."""
        return replace(
            self,
            files=tuple(
                file.leave(range(len(file.hunks)), reason) for file in self.files
            ),
        )

    def diff(self) -> str:
        """Unified, of all files."""
        return "".join(file.diff() for file in self.files)

    def changes(self, root: Path, protected: Protected) -> ChangeSet:
        """The parts that are taken, judged anew as a whole: a hunk may need another
        one, and what a person has edited is judged for the first time. Raises
        `ReplyRefused` that names every reason.
        """
        changes = tuple(change for file in self.files for change in file.changes)
        contents = {change.path: change.before for change in changes}
        notes, problems = list[str](), list[EditProblem]()
        deleted = [change.path for change in changes if change.after is None]
        given_up = frozenset(map(str, deleted))
        for change in changes:
            try:
                path = writable_path(root, str(change.path), protected, given_up)
                refuse_unwritable(root, path)
                if change.after is not None:
                    before = change.before
                    if before is None and change.like is not None:
                        before = contents.get(change.like)
                    doubt = refuse_unreadable(root, path, before, change.after)
                    notes += [doubt] if doubt else []
            except CddError as refusal:
                problems.append(EditProblem(str(change.path), refusal.in_a_line))
        problems += [
            EditProblem("", reason)
            for reason in find_collisions(
                [change.path for change in changes if change.after is not None],
                deleted,
            )
        ]
        if problems:
            raise ReplyRefused(
                "\n".join(problem.reason for problem in problems),
                problems=tuple(problems),
            )
        return ChangeSet(changes, tuple(notes))

    def told(self, reason: str = "") -> str:
        """The person's answer, for the model: empty where all was taken as it is."""
        lines = (
            [f"The person refused this change and nothing of it was written: {reason}"]
            if reason
            else []
        )
        for file in self.files:
            for part, why in sorted(file.left_out.items()) if not reason else ():
                hunk, because = (
                    file.hunks[part],
                    f": {why}" if why else ", and gave no reason",
                )
                what = file.name if file.is_whole else f"{file.name}, {hunk.where}"
                lines.append(
                    f"The person did not take this part of the change ({what}){because}"
                )
                lines += [hunk.diff[:_LONGEST_TOLD]] if not file.is_whole else []
            if file.is_edited and not file.left_out:
                then = (
                    "before it was written: read it before you change it"
                    if file.changes
                    else "back to what it was"
                )
                lines.append(f"The person edited {file.path} {then}.")
        return "\n".join(lines)


def proposal_digest(changes: ChangeSet) -> str:
    """Identifies changes: what was answered about some is no answer about others."""
    known = [
        (str(c.path), digest(c.before), digest(c.after), str(c.like or ""))
        for c in changes.changes
    ]
    return digest(repr(known).encode("utf-8", "surrogatepass")) or ""


def _left_out(files: Sequence[FileReview]) -> Iterator[LeftOut]:
    for file in files:
        reasons = set(file.left_out.values())
        if file.left_out and (
            file.is_whole
            or (len(file.left_out) == len(file.hunks) and len(reasons) == 1)
        ):
            yield LeftOut(file.name, "", reasons.pop())
        else:
            yield from (
                LeftOut(file.path, file.hunks[part].where, why)
                for part, why in sorted(file.left_out.items())
            )


class _Line(Struct, frozen=True):
    """A line of a file with its end. Lines are equal if their bytes are."""

    data: bytes
    encoding: Encoding = UTF_8

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Line) and self.data == other.data

    def __hash__(self) -> int:
        return hash(self.data)

    def as_diff(self, sign: str) -> str:
        """The line in a unified diff."""
        data = self.data.removeprefix(self.encoding.mark)
        text = data.decode(self.encoding.codec, errors="replace")
        if text.endswith("\n"):
            return f"{sign}{text[:-1]}"
        return f"{sign}{text}\n\\ No newline at end of file"


def _lines(data: bytes | None, text: FileText | None) -> list[_Line]:
    """Lines by line feeds alone, so that joined they are the same bytes."""
    if data is None or text is None:
        return []
    encoding = text.encoding
    if encoding.holds_ascii:
        pieces = data.split(b"\n")
        ended = [piece + b"\n" for piece in pieces[:-1]]
        lines = [*ended, pieces[-1]] if pieces[-1] else ended
    else:
        ended = [f"{line}\n".encode(encoding.codec) for line in text.text.split("\n")]
        line_end = len("\n".encode(encoding.codec))
        lines = [*ended[:-1], ended[-1][:-line_end]]
        lines[0] = encoding.mark + lines[0]
        lines = [line for line in lines if line]
    return [_Line(line, encoding) for line in lines]


def _hunks(old: list[_Line], new: list[_Line]) -> Iterator[Hunk]:
    for group in SequenceMatcher(None, old, new).get_grouped_opcodes(_CONTEXT):
        if all(tag == "equal" for tag, *_ in group):
            continue
        (_, old_from, _, new_from, _), (_, _, old_to, _, new_to) = group[0], group[-1]
        lines: list[str] = []
        added = removed = 0
        for tag, i, j, k, m in group:
            if tag == "equal":
                lines += [line.as_diff(" ") for line in old[i:j]]
                continue
            lines += [line.as_diff("-") for line in old[i:j]]
            lines += [line.as_diff("+") for line in new[k:m]]
            added += m - k
            removed += j - i
        head = f"@@ -{_range(old_from, old_to)} +{_range(new_from, new_to)} @@"
        yield Hunk(
            (old_from, old_to),
            (new_from, new_to),
            "\n".join((head, *lines)),
            added,
            removed,
        )


def _range(start: int, end: int) -> str:
    """As unified diffs have it: lines from 1, and without any the line before."""
    count = end - start
    return f"{start + 1}" if count == 1 else f"{start + bool(count)},{count}"
