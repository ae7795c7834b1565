"""Compute and judge the changes of files, in full, before anything is written. Edits
work on decoded text, which is encoded at the end.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import assert_never

from msgspec import Struct, field

from cdd_agent.actions.model import (
    FileAlreadyExistsError,
    MultipleMatchesFoundError,
    SearchTextNotFoundError,
)
from cdd_agent.changes.change_set import ChangeSet, FileChange, build_changed_refusal
from cdd_agent.changes.completeness import (
    refuse_part,
    refuse_shrunk,
    refuse_whole,
)
from cdd_agent.changes.draft import FileDraft, has_same_lines
from cdd_agent.changes.excerpts import find_changed_range, find_seen_after
from cdd_agent.changes.model import (
    BY_ACTION,
    BY_CALL,
    IN_BLOCKS,
    Deletion,
    Edit,
    EditProblem,
    ModeChange,
    Renaming,
    Replacement,
    ReplyFault,
    ReplyRefused,
    TextReplacement,
    WholeFile,
    list_reasons,
)
from cdd_agent.changes.policy import EditPolicy
from cdd_agent.changes.readability import refuse_unreadable
from cdd_agent.changes.targets import (
    Protected,
    find_collisions,
    look_at,
    refuse_unwritable,
    writable_path,
)
from cdd_agent.errors import CddError
from cdd_agent.files.atomic import digest, read_bytes
from cdd_agent.files.charsets import Charsets
from cdd_agent.files.hidden_from_models import HiddenFiles
from cdd_agent.files.line_ranges import Ranges, describe_ranges, join_ranges
from cdd_agent.files.notebooks import find_hidden_lines
from cdd_agent.files.paths import is_spelled, parse_path
from cdd_agent.files.spelling import read_entry, spell_for_any_disk
from cdd_agent.files.text import (
    Encoding,
    FileText,
    Origin,
    TextNotHeld,
    decode_file,
    encode_file,
)

_NEAR = 10
"""Lines around an edit's place that the model must see."""


def change_set(
    root: Path,
    edits: Iterable[Edit],
    terms: EditPolicy,
    protected: Protected = lambda place: False,
) -> ChangeSet:
    """Compute and judge the changes of a reply. Writes nothing.

    Raises `ReplyRefused` with every reason, in words that a model can act on.
    """
    edits = list(edits)
    work = _Work(root, terms, protected, _find_given_up(root, edits))
    for edit in edits:
        work.apply(edit)
    return work.result()


def creation(
    root: Path, file_path: str, content: str, protected: Protected
) -> ChangeSet:
    """Return the change that makes a new file. Raises `FileAlreadyExistsError`,
    `PathRefused` or `ReplyRefused`.
    """
    path = writable_path(root, file_path, protected)
    place = root / path
    if look_at(root, path) and place.is_file() and not place.is_symlink():
        raise FileAlreadyExistsError(str(path))
    refuse_unwritable(root, path)
    refuse_whole(path, None, content, BY_ACTION)
    after = _Content.new(content).encode(path, Charsets(root))
    return ChangeSet((FileChange(path, None, after),))


def edit(
    root: Path, file_path: str, find: str, replace: str, protected: Protected
) -> ChangeSet:
    """Return the change that replaces a text. An empty `find` replaces the whole file.

    Raises `SearchTextNotFoundError`, `MultipleMatchesFoundError`, `PathRefused` or
    `ReplyRefused`.
    """
    path = writable_path(root, file_path, protected)
    refuse_unwritable(root, path)
    before = read_bytes(root / path)
    if before is None:
        raise ReplyRefused(
            f"There is no file {path}.",
            hint="Use `create_file` to make it.",
            fault=ReplyFault.ABSENT,
            path=str(path),
        )
    charsets = Charsets(root)
    content = _Content.read(path, before, charsets)
    if find:
        refuse_part(path, content.text, find, replace, BY_ACTION)
        if not _replace_text(root, path, content, find, replace):
            return ChangeSet((), (f"{path} has the new text already",))
    else:
        refuse_whole(path, content.text, replace, BY_ACTION)
        content = content.replaced(replace)
    after = content.encode(path, charsets)
    doubt = refuse_unreadable(root, path, before, after)
    notes = (doubt,) if doubt else ()
    return ChangeSet((FileChange(path, before, after),), notes)


def _replace_text(
    root: Path, path: PurePosixPath, content: "_Content", find: str, replace: str
) -> bool:
    """Replace one text; False if the new one is there already. No message shows lines
    of a hidden file.
    """
    try:
        return content.draft.replace_text(find, replace)
    except SearchTextNotFoundError as error:
        if HiddenFiles(root).why(str(path), content.data):
            raise SearchTextNotFoundError(error.content) from error
        raise


class _Content(Struct):
    before: FileText | None
    """None for a new file."""
    data: bytes
    given: str = ""
    _draft: FileDraft | None = None

    @classmethod
    def read(cls, path: PurePosixPath, data: bytes, charsets: Charsets) -> "_Content":
        return cls(decode_file(path, data, charsets), data)

    @classmethod
    def new(cls, text: str) -> "_Content":
        return cls(None, b"", text)

    @property
    def draft(self) -> FileDraft:
        if self._draft is None:
            text = self.before or FileText(self.given, Encoding("utf-8", Origin.UTF_8))
            self._draft = FileDraft(text)
        return self._draft

    @property
    def text(self) -> str:
        if self._draft is not None:
            return self._draft.text
        return self.given if self.before is None else self.before.text

    @property
    def is_changed(self) -> bool:
        return self.before is None or self.text != self.before.text

    def replaced(self, text: str) -> "_Content":
        """Return a text in the format of this one; in UTF-8 if this is binary."""
        if self.before is None or self.before.is_binary or not self.before.text:
            return _Content.new(text)
        content = _Content(self.before, self.data)
        content.draft.replace_all(text)
        return content

    def encode(self, path: PurePosixPath, charsets: Charsets) -> bytes:
        """Return the file's bytes. Raises `ReplyRefused` if its encoding lacks a
        character.
        """
        if not self.is_changed:
            return self.data
        try:
            return encode_file(path, self.text, self.before, charsets)
        except TextNotHeld as error:
            raise ReplyRefused(
                error.message,
                hint=error.hint,
                fault=ReplyFault.ENCODING,
                path=str(path),
            ) from error


class _File(Struct):
    path: PurePosixPath
    before: bytes | None
    """On the disk; None if the file does not exist."""
    original: FileText | None
    content: _Content | None
    """After the edits so far; None if the file does not exist then."""
    whole: str | None = None
    """The content if the reply gave all of it."""
    like: PurePosixPath | None = None
    blocks: int = 0
    """Number of partial edits so far."""
    deleted: _Content | None = None
    """The content when the reply deleted the file: it may be created again."""
    has_failed: bool = False
    spellings: set[str] = field(default_factory=set)
    hidden: str = ""

    @property
    def unseen(self) -> frozenset[str]:
        """The file, for the next prompt to show; empty for a hidden one."""
        return frozenset() if self.hidden else frozenset({str(self.path)})


class _Work:
    def __init__(
        self,
        root: Path,
        terms: EditPolicy,
        protected: Protected,
        given_up: frozenset[str],
    ) -> None:
        self._root, self._terms, self._protected = root, terms, protected
        self._given_up = given_up
        self._hidden = HiddenFiles(root)
        self._charsets = Charsets(root)
        self._files: dict[PurePosixPath, _File] = {}
        self._named: dict[str, _File] = {}
        self._problems: list[EditProblem] = []
        self._unseen: set[str] = set()
        self._lines: dict[str, Ranges] = {}
        self._notes: list[str] = []

    def apply(self, edit: Edit) -> None:
        """Make one edit, or record the reason if it cannot be made."""
        file: _File | None = None
        try:
            file = self._file(edit.path)
            match edit:
                case WholeFile(content=content, must_be_new=True):
                    self._create(file, content)
                case WholeFile(content=content):
                    self._replace_whole(file, content)
                case Replacement() | TextReplacement():
                    self._replace_part(file, edit)
                case Deletion(lines=lines):
                    self._delete(file, lines)
                case Renaming(to=to):
                    self._rename(file, to)
                case ModeChange():
                    self._present(file)
                    self._notes.append(
                        f"{file.path} keeps its permissions: a reply changes content"
                        " only"
                    )
                case _:
                    assert_never(edit)
        except CddError as refusal:
            if file is not None:
                file.has_failed = True
            self._complain(str(file.path) if file else edit.path, refusal)

    def result(self) -> ChangeSet:
        """Raises `ReplyRefused` with all problems."""
        changes: list[FileChange] = []
        for file in self._files.values():
            try:
                after = self._judge(file)
            except ReplyRefused as refusal:
                self._complain(str(file.path), refusal)
                continue
            if after != file.before:
                changes.append(
                    FileChange(file.path, file.before, after, self._like(file))
                )
        written = [change.path for change in changes if change.after is not None]
        deleted = [change.path for change in changes if change.after is None]
        for reason in find_collisions(written, deleted):
            self._problems.append(EditProblem("", reason, ReplyFault.NAME_TAKEN))
        self._refuse_problems()
        return ChangeSet(tuple(changes), tuple(self._notes))

    def _judge(self, file: _File) -> bytes | None:
        """Return the new bytes of a file. Raises `ReplyRefused` if they are wrong."""
        if file.content is None:
            return None
        if file.has_failed:
            return file.before
        after = file.content.encode(file.path, self._charsets)
        if after != file.before:
            self._refuse_beyond(file, file.content.text)
            before = file.before
            if before is None and file.like is not None:
                before = self._files[file.like].before
            doubt = refuse_unreadable(self._root, file.path, before, after)
            if doubt:
                self._notes.append(doubt)
        return after

    def _refuse_problems(self) -> None:
        if not self._problems:
            return
        raise ReplyRefused(
            list_reasons(self._problems),
            unseen=frozenset(self._unseen),
            lines=self._lines,
            problems=tuple(self._problems),
        )

    def _like(self, file: _File) -> PurePosixPath | None:
        """Return the file whose permissions a new one gets: its old name, or a deleted
        file whose name differs only in case or normal form.
        """
        if file.like is not None or file.before is not None:
            return file.like
        used = {file.like for file in self._files.values()}
        spelling = spell_for_any_disk(file.path)
        for candidate in self._files.values():
            is_deleted = candidate.content is None and candidate.before is not None
            if not is_deleted or candidate.path in used:
                continue
            if spell_for_any_disk(candidate.path) == spelling:
                return candidate.path
        return None

    def _complain(self, path: str, refusal: CddError) -> None:
        self._problems.append(EditProblem.from_error(path, refusal))
        if isinstance(refusal, ReplyRefused):
            self._unseen |= refusal.unseen
            self._lines |= refusal.lines

    def _file(self, text: str) -> _File:
        if text not in self._named:
            self._named[text] = self._open(text)
        return self._named[text]

    def _open(self, text: str) -> _File:
        path = writable_path(self._root, text, self._protected, self._given_up)
        if path not in self._files:
            refuse_unwritable(self._root, path)
            data = read_entry(self._root, path)
            original = content = None
            if data is not None:
                original = decode_file(path, data, self._charsets)
                content = _Content(original, data)
            hidden = self._hidden.why(str(path), data or b"")
            self._files[path] = _File(path, data, original, content, hidden=hidden)
        self._files[path].spellings.add(str(parse_path(text)))
        return self._files[path]

    def _create(self, file: _File, text: str) -> None:
        if file.content is None or not file.content.text:
            self._make(file, text)
        elif has_same_lines(file.content.text, text):
            self._notes.append(f"{file.path} already has this content")
        else:
            lines = ""
            if self._terms.parts is IN_BLOCKS:
                lines = " whose SEARCH holds lines of the file"
            raise ReplyRefused(
                f"{file.path} exists already, and is given as new.",
                hint=f"Change it with {self._terms.parts.name}{lines}.",
                fault=ReplyFault.UNSEEN,
                unseen=file.unseen,
            )

    def _make(self, file: _File, text: str) -> None:
        self._refuse_incomplete(file.path, file.deleted, text)
        old = file.deleted or _Content.new("")
        file.content = old.replaced(text)

    def _replace_whole(self, file: _File, text: str) -> None:
        if file.whole is not None and file.whole != text:
            raise ReplyRefused(
                f"The reply gives {file.path} twice, with different content.",
                fault=ReplyFault.CONTRADICTORY,
            )
        present = "" if file.content is None else file.content.text
        if file.whole is None and file.blocks and not has_same_lines(present, text):
            raise ReplyRefused(
                f"The reply changes parts of {file.path}, and then gives all of it with"
                " something else.",
                hint="Send either the parts or the whole.",
                fault=ReplyFault.CONTRADICTORY,
            )
        file.whole = text
        if file.content is None or file.original is None or file.before is None:
            self._make(file, text)
            return
        before = _Content(file.original, file.before)
        file.content = before.replaced(text)
        if file.content.text != before.text:
            self._refuse_unseen(file, file.before)
            self._refuse_incomplete(file.path, before, text)

    def _refuse_unseen(self, file: _File, before: bytes) -> None:
        """Raise `ReplyRefused` if the model replaces a file that it has not seen."""
        text = "" if file.original is None else file.original.text
        has_seen_all = self._terms.knows(file.path, before)
        if not has_seen_all and find_hidden_lines(file.path, text):
            raise ReplyRefused(
                f"{file.path} is given whole, and models see notebooks without outputs"
                " and attachments.",
                hint=f"Change its cells with {self._terms.parts.name}.",
                fault=ReplyFault.UNSEEN,
                unseen=file.unseen,
            )
        if not self._terms.was_shown(file.path):
            if not file.unseen:
                raise ReplyRefused(
                    f"{file.path} exists already and is not shown: {file.hidden}. Do"
                    " not replace it.",
                    fault=ReplyFault.FORBIDDEN,
                    detail=file.hidden,
                )
            raise ReplyRefused(
                f"{file.path} exists already and was not shown.",
                hint=f"Change it with {self._terms.parts.name}, or give it whole once"
                " you have seen it.",
                fault=ReplyFault.UNSEEN,
                unseen=file.unseen,
            )
        if shown := self._terms.in_part.get(str(file.path)):
            raise ReplyRefused(
                f"{file.path} was shown in part only ({describe_ranges(shown)}), and"
                " is given whole.",
                hint=f"Change what was shown with {self._terms.parts.name}.",
                fault=ReplyFault.UNSEEN,
                unseen=file.unseen,
            )
        if not has_seen_all:
            raise build_changed_refusal(file.path)

    def _refuse_beyond(self, file: _File, after: str) -> None:
        """Raise `ReplyRefused` if an edit changes lines that were not shown. A renamed
        file is judged by its old name.
        """
        origin, visited = file, set[PurePosixPath]()
        # a chain of renames may lead back to the first name
        while origin.like is not None and origin.path not in visited:
            visited.add(origin.path)
            origin = self._files[origin.like]
        name, before = str(origin.path), origin.original
        shown = self._terms.in_part.get(name)
        if shown is None or before is None or self._terms.seen is None:
            return
        if self._terms.seen.get(name) != digest(origin.before):
            raise build_changed_refusal(origin.path)
        if find_seen_after(before.text, after, shown) is not None:
            return
        changed = find_changed_range(before.text, after)
        hint = "Change only what is shown."
        if self._terms.parts is BY_CALL:
            hint = "Read those first."
        raise ReplyRefused(
            f"{name} was shown in part only ({describe_ranges(shown)}), and the edits"
            f" change other lines of it ({describe_ranges((changed,))}).",
            hint=hint,
            fault=ReplyFault.UNSEEN,
            unseen=origin.unseen,
            lines={name: (changed,)} if origin.unseen else {},
        )

    def _refuse_incomplete(
        self, path: PurePosixPath, before: _Content | None, text: str
    ) -> None:
        parts = self._terms.parts
        old = None if before is None else before.text
        refuse_whole(path, old, text, parts)
        if old is not None and not self._terms.may_shrink(str(path)):
            refuse_shrunk(path, old, text, parts)

    def _replace_part(self, file: _File, edit: Replacement | TextReplacement) -> None:
        file.blocks += 1
        self._refuse_hidden(file, "change")
        if isinstance(edit, TextReplacement):
            find, new = edit.find, edit.replace
        else:
            find, new = "\n".join(edit.find), "\n".join(edit.replace)
        original = None if file.original is None else file.original.text
        refuse_part(file.path, original, find, new, self._terms.parts)
        draft = self._present(file).draft
        try:
            if isinstance(edit, TextReplacement):
                is_new = draft.replace_text(find, new)
            else:
                is_new = draft.replace(edit)
        except SearchTextNotFoundError as error:
            raise self._refusal_of_missing_text(file, find, error) from error
        except MultipleMatchesFoundError as error:
            raise self._refusal_of_repeated_text(file, find, error) from error
        if not is_new:
            self._notes.append(
                f"{file.path}, block {file.blocks}: the file has the new text already"
            )

    def _refuse_hidden(self, file: _File, verb: str) -> None:
        if file.hidden and not self._terms.was_shown(file.path):
            raise ReplyRefused(
                f"{file.path} is not shown: {file.hidden}. Do not {verb} it.",
                fault=ReplyFault.FORBIDDEN,
                detail=file.hidden,
            )

    def _present(self, file: _File) -> _Content:
        if file.content is None:
            raise ReplyRefused(
                f"There is no file {file.path}.",
                hint="Give a new file whole, and one that exists by its path.",
                fault=ReplyFault.ABSENT,
            )
        return file.content

    def _refusal_of_missing_text(
        self, file: _File, find: str, error: SearchTextNotFoundError
    ) -> ReplyRefused:
        words = [f"{self._block(file, find)}: the lines to find are not in the file."]
        if error.difference and file.unseen:
            words.append(f"{error.difference}.")
        if error.closest and file.unseen:
            words.append(f"The closest lines of the file are\n{error.closest}\n")
        advice = "Copy them exactly as the file has them"
        if self._terms.parts is IN_BLOCKS:
            advice += ", and send all edits again"
        words.append(f"{advice}.")
        closest = re.findall(r"^ *(\d+) ", error.closest, re.MULTILINE)
        return ReplyRefused(
            " ".join(words).replace("\n ", "\n"),
            fault=ReplyFault.NO_MATCH,
            unseen=file.unseen,
            lines=_find_near_lines(file, [int(number) for number in closest]),
        )

    def _refusal_of_repeated_text(
        self, file: _File, find: str, error: MultipleMatchesFoundError
    ) -> ReplyRefused:
        places = ", ".join(map(str, error.lines))
        return ReplyRefused(
            f"{self._block(file, find)}: the lines to find are there more than once,"
            f" beginning in lines {places}.",
            hint="Add the lines before or after them, so that they are there once.",
            fault=ReplyFault.SEVERAL_MATCHES,
            unseen=file.unseen,
            lines=_find_near_lines(file, error.lines),
        )

    def _block(self, file: _File, find: str) -> str:
        if self._terms.parts is not IN_BLOCKS:
            return str(file.path)
        filled = (line.strip() for line in find.split("\n") if line.strip())
        first = next(filled, "")[:80]
        return f"{file.path}, block {file.blocks} (it begins with {first!r})"

    def _delete(self, file: _File, lines: tuple[str, ...] | None) -> None:
        if file.content is None:
            self._notes.append(f"{file.path} is deleted already")
            return
        if file.whole is not None and len(file.spellings) > 1:
            names = " and ".join(map(ascii, sorted(file.spellings)))
            raise ReplyRefused(
                f"The reply gives {file.path} and deletes it: {names} are one file.",
                fault=ReplyFault.CONTRADICTORY,
            )
        if not self._may_delete(file, file.content):
            self._refuse_hidden(file, "delete")
            raise ReplyRefused(
                f"{file.path} would be deleted, and neither was all of it shown nor"
                " does the step name it.",
                fault=ReplyFault.UNSEEN,
                unseen=file.unseen,
            )
        if lines is not None and not has_same_lines(
            file.content.text, "\n".join(lines), exactly=False
        ):
            raise ReplyRefused(
                f"{file.path} would be deleted, and what the diff removes is not what"
                " is in it.",
                hint="Show all of its lines, or none: `*** Delete File: PATH` in a"
                " `*** Begin Patch`.",
                fault=ReplyFault.NO_MATCH,
                unseen=file.unseen,
            )
        file.content, file.deleted = None, file.content

    def _may_delete(self, file: _File, content: _Content) -> bool:
        if self._terms.seen is None or self._terms.may_delete(str(file.path)):
            return True
        return not content.is_changed and self._terms.knows(file.path, content.data)

    def _rename(self, file: _File, to: str) -> None:
        target = self._file(to)
        if target is file:
            self._refuse_respelled_folder(file, to)
            return
        if file.content is None and target.content is not None:
            self._notes.append(f"{file.path} is called {target.path} already")
            return
        self._refuse_hidden(file, "rename")
        content = self._present(file)
        if target.content is not None:
            raise ReplyRefused(
                f"{file.path} cannot be renamed: {target.path} exists already.",
                fault=ReplyFault.NAME_TAKEN,
            )
        target.content, target.like, file.content = content, file.path, None

    def _refuse_respelled_folder(self, file: _File, to: str) -> None:
        if is_spelled(self._root, to):
            self._notes.append(f"{file.path} is called {to} already")
            return
        raise ReplyRefused(
            f"{file.path} cannot be renamed to {to}: the folder is spelled"
            f" {file.path.parent} here.",
            hint="Only a command can rename a folder.",
            fault=ReplyFault.FORBIDDEN,
        )


def _find_given_up(root: Path, edits: Iterable[Edit]) -> frozenset[str]:
    """Return the names that a reply deletes or renames, spelled as on the disk. A new
    file may have another spelling of one.
    """
    names = (edit.path for edit in edits if isinstance(edit, Deletion | Renaming))
    return frozenset(str(parse_path(name)) for name in names if is_spelled(root, name))


def _find_near_lines(file: _File, lines: Sequence[int]) -> dict[str, Ranges]:
    if not lines or not file.unseen:
        return {}
    ranges = join_ranges((max(1, line - _NEAR), line + _NEAR) for line in lines)
    return {str(file.path): ranges}
