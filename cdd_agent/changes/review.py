"""The user's review of proposed changes.

The user accepts or leaves out parts, and may edit the result. A part is one hunk, or
the whole file if it is created, deleted, renamed, re-encoded, or too large to compare.
Lines are compared as bytes: an accepted part is written exactly as proposed, a rejected
one keeps its old bytes. Diffs show decoded text.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cached_property

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.changes.change_set import ChangeSet, FileChange
from cdd_agent.changes.file_diff import LARGEST_COMPARED, MOST_LINES, LeftOut
from cdd_agent.errors import BadInput
from cdd_agent.files.atomic import digest
from cdd_agent.files.charsets import NOTHING_DECLARED, Charsets
from cdd_agent.files.text import UTF_8, Encoding, FileText, decode_versions, encode_file
from cdd_agent.refusals.kinds import Refusal

_CONTEXT = 3
"""Unchanged lines around a change. Changes at most twice this far apart share a
hunk.
"""
_LONGEST_DIFF_FOR_MODEL = 2_000
"""Characters of a rejected hunk in the answer to the model."""


class Hunk(Struct, frozen=True):
    """Ranges are half-open, from 0."""

    old: tuple[int, int]
    new: tuple[int, int]
    diff: str
    """With its `@@` line."""
    added: int
    removed: int

    @property
    def where(self) -> str:
        """The changed lines in words, numbered as in the old file."""
        first = self.old[0] + 1
        for line in self.diff.split("\n")[1:]:
            if line.startswith(("+", "-")):
                break
            first += 1
        if self.removed > 1:
            return f"lines {first}-{first + self.removed - 1}"
        return f"line {first}"


class FileReview(Struct, frozen=True, dict=True):
    """A file's change, and the parts that the user left out."""

    change: FileChange
    old_name: FileChange | None
    hunks: tuple[Hunk, ...]
    """Empty if the user restored the old content in the editor."""
    left_out: Mapping[int, str] = field(default_factory=dict)
    """Index in `hunks` → the user's reason."""
    is_edited: bool = False
    """True if the user edited the result."""
    charsets: Charsets = NOTHING_DECLARED

    @classmethod
    def compare(
        cls,
        change: FileChange,
        old_name: FileChange | None = None,
        *,
        is_edited: bool = False,
        charsets: Charsets = NOTHING_DECLARED,
    ) -> "FileReview":
        """Review a change, with nothing left out. Slow for large files."""
        review = cls(change, old_name, (), is_edited=is_edited, charsets=charsets)
        return replace(review, hunks=review._find_hunks())

    def _find_hunks(self) -> tuple[Hunk, ...]:
        if not self._is_compared:
            size = max(len(self._before or b""), len(self.change.after or b""))
            text = f"{self.path} has {size:,} bytes, too many to show the difference."
            return (Hunk((0, 0), (0, 0), text, 0, 0),)
        hunks = tuple(_find_hunks(self._old_lines, self._new_lines))
        if not self.is_whole:
            return hunks
        added = sum(hunk.added for hunk in hunks)
        removed = sum(hunk.removed for hunk in hunks)
        diff = "\n".join(hunk.diff for hunk in hunks)
        return (Hunk((0, 0), (0, 0), diff, added, removed),)

    @property
    def path(self) -> str:
        return str(self.change.path)

    @property
    def verb(self) -> str:
        if self.old_name is not None:
            return "rename"
        if self.change.before is None:
            return "create"
        if self.change.after is None:
            return "delete"
        return "change"

    @property
    def name(self) -> str:
        """The path, or both paths of a renamed file."""
        if self.old_name is None:
            return self.path
        return f"{self.old_name.path} → {self.path}"

    @property
    def is_whole(self) -> bool:
        """True if the file is one part."""
        return self.verb != "change" or not self._is_compared or self._changes_encoding

    @property
    def added(self) -> int:
        """Number of added lines; 0 if the file is too large to compare."""
        return sum(hunk.added for hunk in self.hunks)

    @property
    def removed(self) -> int:
        return sum(hunk.removed for hunk in self.hunks)

    def diff(self, parts: Collection[int] | None = None) -> str:
        texts = []
        for place, hunk in enumerate(self.hunks):
            if parts is None or place in parts:
                texts.append(hunk.diff)
        if self._is_compared:
            old_name = "/dev/null" if self._before is None else self._old_path
            new_name = "/dev/null" if self.change.after is None else self.path
            texts = [f"--- {old_name}", f"+++ {new_name}", *filter(None, texts)]
        return "".join(f"{text}\n" for text in texts)

    def leave(self, parts: Collection[int], reason: str = "") -> "FileReview":
        return replace(self, left_out={**self.left_out, **dict.fromkeys(parts, reason)})

    def accept(self, parts: Collection[int]) -> "FileReview":
        left_out = {**self.left_out}
        for part in parts:
            left_out.pop(part, None)
        return replace(self, left_out=left_out)

    def edit(self, content: bytes) -> "FileReview":
        """Review this content instead, with all parts accepted."""
        if content == self.result:
            return self
        return FileReview.compare(
            replace(self.change, after=content),
            self.old_name,
            is_edited=True,
            charsets=self.charsets,
        )

    @property
    def copy_for_editor(self) -> bytes | None:
        """The result in UTF-8, which all editors can write; None for a deletion."""
        text = self._text_for_editor
        return self.result if text is None else text.text.encode()

    def edit_copy(self, content: bytes) -> "FileReview":
        """Raises `BadInput` or `TextNotHeld`."""
        before = self._text_for_editor
        if before is None:
            return self.edit(content)
        try:
            text = content.decode()
        except UnicodeDecodeError as error:
            raise BadInput(
                f"The editor did not save {self.path} as UTF-8 (byte {error.start})",
                refusal=Refusal.WRONG_ENCODING,
            ) from error
        path = self.change.path
        return self.edit(encode_file(path, text, before, self.charsets))

    @property
    def _text_for_editor(self) -> FileText | None:
        """The decoded result; None if binary or already in UTF-8."""
        _, text = decode_versions(
            self.change.path, self._before, self.result, self.charsets
        )
        if text is None or text.is_binary or text.encoding.is_utf8:
            return None
        return text

    @property
    def result(self) -> bytes | None:
        """The content to write: only accepted parts change."""
        if not self.left_out:
            return self.change.after
        if self.is_whole:
            return self.change.before
        lines: list[_Line] = []
        copied = 0
        for place, hunk in enumerate(self.hunks):
            lines += self._old_lines[copied : hunk.old[0]]
            if place in self.left_out:
                lines += self._old_lines[slice(*hunk.old)]
            else:
                lines += self._new_lines[slice(*hunk.new)]
            copied = hunk.old[1]
        lines += self._old_lines[copied:]
        return b"".join(line.data for line in lines)

    @property
    def changes(self) -> tuple[FileChange, ...]:
        """The accepted changes. A renaming is two: the second deletes the old name."""
        result = self.result
        if result == self.change.before:
            return ()
        change = replace(self.change, after=result)
        return (change,) if self.old_name is None else (change, self.old_name)

    @property
    def _before(self) -> bytes | None:
        return (self.old_name or self.change).before

    @property
    def _old_path(self) -> str:
        return str((self.old_name or self.change).path)

    @cached_property
    def _texts(self) -> tuple[FileText | None, FileText | None]:
        path = self.change.path
        return decode_versions(path, self._before, self.change.after, self.charsets)

    @cached_property
    def _old_lines(self) -> list["_Line"]:
        return _split_lines(self._before, self._texts[0])

    @cached_property
    def _new_lines(self) -> list["_Line"]:
        return _split_lines(self.change.after, self._texts[1])

    @property
    def _changes_encoding(self) -> bool:
        old, new = self._texts
        if old is None or new is None or old.encoding.codec == new.encoding.codec:
            return False
        codecs = {old.encoding.codec, new.encoding.codec}
        is_superset = old.encoding.holds_ascii and new.encoding.holds_ascii
        return "ascii" not in codecs or not is_superset

    @cached_property
    def _is_compared(self) -> bool:
        for data in (self._before, self.change.after):
            if data is None:
                continue
            if len(data) > LARGEST_COMPARED or data.count(b"\n") > MOST_LINES:
                return False
        return True


class Review(Struct, frozen=True):
    """All changes in one question to the user."""

    step: str | None
    """The label of the step; None in chat."""
    files: tuple[FileReview, ...]
    problem: str = ""
    """Why the parts accepted last could not be written."""

    @classmethod
    def from_changes(
        cls,
        step: str | None,
        changes: ChangeSet,
        charsets: Charsets = NOTHING_DECLARED,
    ) -> "Review":
        """Review changes, with nothing left out. A renamed file is one entry."""
        deleted = {}
        for change in changes.changes:
            if change.after is None:
                deleted[change.path] = change
        old_names = {}
        for change in changes.changes:
            if change.like in deleted:
                old_names[change.path] = deleted[change.like]
        renamed = {old.path for old in old_names.values()}
        files = []
        for change in changes.changes:
            if change.path not in renamed:
                old_name = old_names.get(change.path)
                files.append(FileReview.compare(change, old_name, charsets=charsets))
        return cls(step, tuple(files))

    @property
    def parts(self) -> tuple[tuple[int, int], ...]:
        """For each part, the index of its file and its index in the file."""
        places: list[tuple[int, int]] = []
        for place, file in enumerate(self.files):
            places += [(place, part) for part in range(len(file.hunks))]
        return tuple(places)

    @property
    def is_untouched(self) -> bool:
        """True if all is accepted unedited."""
        return not any(file.left_out or file.is_edited for file in self.files)

    @property
    def is_empty(self) -> bool:
        """True if nothing is accepted."""
        return not any(file.changes for file in self.files)

    @property
    def edited(self) -> tuple[str, ...]:
        return tuple(file.path for file in self.files if file.is_edited)

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        return tuple(_list_left_out(self.files))

    def with_file(self, place: int, file: FileReview) -> "Review":
        return replace(
            self,
            files=(*self.files[:place], file, *self.files[place + 1 :]),
            problem="",
        )

    def leave_all(self, reason: str) -> "Review":
        files = (file.leave(range(len(file.hunks)), reason) for file in self.files)
        return replace(self, files=tuple(files))

    def diff(self) -> str:
        return "".join(file.diff() for file in self.files)

    def answer_model(self, reason: str = "") -> str:
        """Return the user's answer for the model; empty if all is accepted unedited.
        `reason` is for a refusal of everything.
        """
        lines: list[str] = []
        if reason:
            lines.append(
                f"The user refused this change and nothing of it was written: {reason}"
            )
        for file in self.files:
            if not reason:
                lines += _describe_left_out(file)
            if file.is_edited and not file.left_out:
                lines.append(_describe_edit(file))
        return "\n".join(lines)


def _describe_left_out(file: FileReview) -> Iterator[str]:
    for part, why in sorted(file.left_out.items()):
        hunk = file.hunks[part]
        what = file.name if file.is_whole else f"{file.name}, {hunk.where}"
        because = f": {why}" if why else ", and gave no reason"
        yield f"The user did not accept this part of the change ({what}){because}"
        if not file.is_whole:
            yield hunk.diff[:_LONGEST_DIFF_FOR_MODEL]


def _describe_edit(file: FileReview) -> str:
    if not file.changes:
        return f"The user edited {file.path} back to what it was."
    return (
        f"The user edited {file.path} before it was written: read it before you"
        " change it."
    )


def proposal_digest(changes: ChangeSet) -> str:
    """Return a digest of the changes: an answer counts only for these."""
    described = []
    for change in changes.changes:
        digests = (digest(change.before), digest(change.after))
        described.append((str(change.path), *digests, str(change.like or "")))
    return digest(repr(described).encode("utf-8", "surrogatepass")) or ""


def _list_left_out(files: Sequence[FileReview]) -> Iterator[LeftOut]:
    for file in files:
        reasons = set(file.left_out.values())
        is_all = len(file.left_out) == len(file.hunks) and len(reasons) == 1
        if file.left_out and (file.is_whole or is_all):
            yield LeftOut(file.name, "", reasons.pop())
            continue
        for part, why in sorted(file.left_out.items()):
            yield LeftOut(file.path, file.hunks[part].where, why)


class _Line(Struct, frozen=True):
    """Includes the line end. Lines are equal if their bytes are."""

    data: bytes
    encoding: Encoding = UTF_8

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Line) and self.data == other.data

    def __hash__(self) -> int:
        return hash(self.data)

    def as_diff(self, sign: str) -> str:
        data = self.data.removeprefix(self.encoding.mark)
        text = data.decode(self.encoding.codec, errors="replace")
        if text.endswith("\n"):
            return f"{sign}{text[:-1]}"
        return f"{sign}{text}\n\\ No newline at end of file"


def _split_lines(data: bytes | None, text: FileText | None) -> list[_Line]:
    """Split at line feeds only: the joined lines are the same bytes."""
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


def _find_hunks(old: list[_Line], new: list[_Line]) -> Iterator[Hunk]:
    for group in SequenceMatcher(None, old, new).get_grouped_opcodes(_CONTEXT):
        if all(tag == "equal" for tag, *_ in group):
            continue
        _, old_start, _, new_start, _ = group[0]
        _, _, old_end, _, new_end = group[-1]
        old_range = _format_range(old_start, old_end)
        new_range = _format_range(new_start, new_end)
        lines = [f"@@ -{old_range} +{new_range} @@"]
        added = removed = 0
        for tag, old_from, old_to, new_from, new_to in group:
            if tag == "equal":
                lines += [line.as_diff(" ") for line in old[old_from:old_to]]
                continue
            lines += [line.as_diff("-") for line in old[old_from:old_to]]
            lines += [line.as_diff("+") for line in new[new_from:new_to]]
            added += new_to - new_from
            removed += old_to - old_from
        yield Hunk(
            (old_start, old_end),
            (new_start, new_end),
            "\n".join(lines),
            added,
            removed,
        )


def _format_range(start: int, end: int) -> str:
    """Return a range as in `@@` lines: from 1; an empty range names the line
    before it.
    """
    count = end - start
    if count == 1:
        return f"{start + 1}"
    return f"{start + bool(count)},{count}"
