"""Edits → the changes that they come to, computed and judged in full before anything is
written.
"""

import codecs
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import assert_never

from msgspec import Struct, field

from cdd_agent.actions.model import (
    FileAlreadyExistsError,
    MultipleMatchesFoundError,
    SearchTextNotFoundError,
)
from cdd_agent.changes.change_set import ChangeSet, FileChange, changed_meanwhile
from cdd_agent.changes.completeness import (
    refuse_part,
    refuse_shrunk,
    refuse_whole,
)
from cdd_agent.changes.excerpts import (
    Ranges,
    changed_lines,
    in_words,
    joined,
    known_after,
)
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
    ReplyRefused,
    TextReplacement,
    WholeFile,
)
from cdd_agent.changes.policy import EditPolicy
from cdd_agent.changes.readability import refuse_unreadable
from cdd_agent.changes.search import TextDraft, replaced_once
from cdd_agent.changes.targets import (
    Protected,
    find_collisions,
    look_at,
    refuse_unwritable,
    writable_path,
)
from cdd_agent.errors import CddError
from cdd_agent.files.atomic import digest, read_bytes
from cdd_agent.files.hidden_from_models import HiddenFiles
from cdd_agent.files.notebooks import has_hidden_lines
from cdd_agent.files.paths import is_spelled, parse_path
from cdd_agent.files.spelling import read_entry, spell_for_any_disk

_NEAR = 10
"""Lines before and after one that the model has to see."""
_MOST_NAMED = 20
"""Problems that are told at once."""


def change_set(
    root: Path,
    edits: Iterable[Edit],
    terms: EditPolicy,
    protected: Protected = lambda place: False,
) -> ChangeSet:
    """Judge what a reply wants to do and compute the changes, reading but not writing.

    Raises `ReplyRefused` that names every reason at once, in words that a model can act
    on.
    """
    edits = list(edits)
    work = _Work(root, terms, protected, _find_given_up(root, edits))
    for edit in edits:
        work.take(edit)
    return work.result()


def creation(
    root: Path, file_path: str, content: str, protected: Protected
) -> ChangeSet:
    """The change that makes a new file. Raises `FileAlreadyExistsError`, `PathRefused`
    or `ReplyRefused`.
    """
    path = writable_path(root, file_path, protected)
    place = root / path
    if look_at(root, path) and place.is_file() and not place.is_symlink():
        raise FileAlreadyExistsError(str(path))
    refuse_unwritable(root, path)
    refuse_whole(path, None, content, BY_ACTION)
    return ChangeSet((FileChange(path, None, content.encode()),))


def edit(
    root: Path, file_path: str, find: str, replace: str, protected: Protected
) -> ChangeSet:
    """The change that replaces one text by another in a file, or with an empty `find`
    the whole file.

    Raises `SearchTextNotFoundError`, `MultipleMatchesFoundError`, `PathRefused` or
    `ReplyRefused`.
    """
    path = writable_path(root, file_path, protected)
    refuse_unwritable(root, path)
    before = read_bytes(root / path)
    if before is None:
        raise ReplyRefused(
            f"There is no file {path}.", hint="Use `create_file` to make it."
        )
    if not find:
        refuse_whole(path, before, replace, BY_ACTION)
        return ChangeSet((FileChange(path, before, in_the_habit_of(before, replace)),))
    refuse_part(path, before, find, replace, BY_ACTION)
    try:
        after = replaced_once(before, find, replace)
    except SearchTextNotFoundError as error:
        if HiddenFiles(root).why(str(path), before):
            # the message would show its lines
            raise SearchTextNotFoundError(error.content) from error
        raise
    if after is None:
        return ChangeSet((), (f"{path} has the new text already",))
    return ChangeSet((FileChange(path, before, after),))


def in_the_habit_of(before: bytes, content: str) -> bytes:
    """The new content with the old file's byte order mark and line ends."""
    new = content.removeprefix("\ufeff").encode().replace(b"\r\n", b"\n")
    if before.count(b"\r\n") * 2 > before.count(b"\n"):
        new = new.replace(b"\n", b"\r\n")
    return codecs.BOM_UTF8 + new if before.startswith(codecs.BOM_UTF8) else new


class _File(Struct):
    """One file on its way; `content` is None where there is none (any more)."""

    path: PurePosixPath
    before: bytes | None
    content: bytes | None
    draft: TextDraft | None = None
    """Of its content, while blocks are taken one after the other; then it is the one
    that counts.
    """
    whole: str | None = None
    """The content that the reply gave as all of it."""
    like: PurePosixPath | None = None
    blocks: int = 0
    deleted: bytes | None = None
    """Its content when the reply deleted it, perhaps to give it anew."""
    has_failed: bool = False
    spellings: set[str] = field(default_factory=set)
    """The paths by which the reply names the file."""
    hidden: str = ""
    """The reason why the file is hidden from models."""

    @property
    def unseen(self) -> frozenset[str]:
        """The file, as one that the model has to be shown to do better; empty for a
        hidden one.
        """
        return frozenset() if self.hidden else frozenset({str(self.path)})

    def settle(self) -> bytes | None:
        if self.draft is not None:
            self.content, self.draft = self.draft.content, None
        return self.content


class _Work:
    """The files that a reply touches, as they are after the edits so far."""

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
        self._files: dict[PurePosixPath, _File] = {}
        self._problems: list[EditProblem] = []
        self._unseen: set[str] = set()
        self._lines: dict[str, Ranges] = {}
        self._notes: list[str] = []

    def take(self, edit: Edit) -> None:
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
        for file in self._files.values():
            after = file.settle()
            if after is None or after == file.before or file.has_failed:
                continue
            try:
                self._refuse_beyond(file, after)
                before = file.before
                if before is None and file.like is not None:
                    before = self._files[file.like].before
                if doubt := refuse_unreadable(self._root, file.path, before, after):
                    self._notes.append(doubt)
            except ReplyRefused as refusal:
                self._complain(str(file.path), refusal)
        files = [file for file in self._files.values() if file.content != file.before]
        self._problems += [
            EditProblem("", reason)
            for reason in find_collisions(
                [file.path for file in files if file.content is not None],
                [file.path for file in files if file.content is None],
            )
        ]
        if self._problems:
            reasons = list(dict.fromkeys(problem.reason for problem in self._problems))
            more = (
                [f"… and {len(reasons) - _MOST_NAMED} more"]
                if len(reasons) > _MOST_NAMED
                else []
            )
            words = "\n".join(reasons[:_MOST_NAMED] + more)
            raise ReplyRefused(
                words,
                unseen=frozenset(self._unseen),
                lines=self._lines,
                problems=tuple(self._problems),
            )
        changes = (
            FileChange(file.path, file.before, file.content, self._like(file))
            for file in files
        )
        return ChangeSet(tuple(changes), tuple(self._notes))

    def _like(self, file: _File) -> PurePosixPath | None:
        """Return the file whose permissions a new one gets: its old name, which may be
        a deleted file whose name differs only in case or normal form.
        """
        if file.like is not None or file.before is not None:
            return file.like
        taken = {other.like for other in self._files.values()}
        spelling = spell_for_any_disk(file.path)
        for other in self._files.values():
            is_deleted = other.content is None and other.before is not None
            if not is_deleted or other.path in taken:
                continue
            if spell_for_any_disk(other.path) == spelling:
                return other.path
        return None

    def _complain(self, path: str, refusal: CddError) -> None:
        self._problems.append(EditProblem(path, refusal.in_a_line))
        if isinstance(refusal, ReplyRefused):
            self._unseen |= refusal.unseen
            self._lines |= refusal.lines

    def _file(self, text: str) -> _File:
        path = writable_path(self._root, text, self._protected, self._given_up)
        if path not in self._files:
            refuse_unwritable(self._root, path)
            content = read_entry(self._root, path)
            hidden = self._hidden.why(str(path), content or b"")
            self._files[path] = _File(path, content, content, hidden=hidden)
        self._files[path].spellings.add(str(parse_path(text)))
        return self._files[path]

    def _create(self, file: _File, content: str) -> None:
        present = file.settle()
        if not present:
            self._refuse_incomplete(file.path, file.deleted, content)
            file.content = content.encode()
        elif _as_text(present) == content.replace("\r\n", "\n"):
            self._notes.append(f"{file.path} is there already, as it should be")
        else:
            lines = (
                " whose SEARCH holds lines of the file"
                if self._terms.parts is IN_BLOCKS
                else ""
            )
            raise ReplyRefused(
                f"{file.path} exists already, and is given as new.",
                hint=f"Change it with {self._terms.parts.name}{lines}.",
                unseen=file.unseen,
            )

    def _replace_whole(self, file: _File, content: str) -> None:
        if file.whole is not None and file.whole != content:
            raise ReplyRefused(
                f"The reply gives {file.path} twice, with different content."
            )
        present = file.settle()
        given = content.replace("\r\n", "\n").removesuffix("\n")
        as_before = _as_text(present or b"").removesuffix("\n") == given
        if file.whole is None and file.blocks and not as_before:
            raise ReplyRefused(
                f"The reply changes parts of {file.path}, and then gives all of it with"
                " something else.",
                hint="Send either the parts or the whole.",
            )
        file.whole = content
        if present is None or file.before is None:
            self._refuse_incomplete(file.path, file.deleted, content)
            file.content = content.encode()
            return
        new = in_the_habit_of(file.before, content)
        if not file.before.endswith(b"\n") and file.before.strip():
            # a code block cannot say that there is no last line end
            new = new.removesuffix(b"\n").removesuffix(b"\r")
        if new != file.before:
            self._refuse_unseen(file, file.before)
            self._refuse_incomplete(file.path, file.before, content)
        file.content = new

    def _refuse_unseen(self, file: _File, before: bytes) -> None:
        """A file may be replaced only by someone who saw what is in it."""
        if not self._terms.knows(file.path, before) and has_hidden_lines(
            file.path, before
        ):
            raise ReplyRefused(
                f"{file.path} is given whole, and models see notebooks without outputs"
                " and attachments.",
                hint=f"Change its cells with {self._terms.parts.name}.",
                unseen=file.unseen,
            )
        if not self._terms.was_shown(file.path):
            if not file.unseen:
                raise ReplyRefused(
                    f"{file.path} exists already and is not shown: {file.hidden}. Do"
                    " not replace it."
                )
            raise ReplyRefused(
                f"{file.path} exists already and was not shown.",
                hint=(
                    f"Change it with {self._terms.parts.name}, or give it whole once"
                    " you have seen it."
                ),
                unseen=file.unseen,
            )
        if shown := self._terms.in_part.get(str(file.path)):
            raise ReplyRefused(
                f"{file.path} was shown in part only ({in_words(shown)}), and is given"
                " whole.",
                hint=f"Change what was shown with {self._terms.parts.name}.",
                unseen=file.unseen,
            )
        if not self._terms.knows(file.path, before):
            raise changed_meanwhile(file.path)

    def _refuse_beyond(self, file: _File, after: bytes) -> None:
        """Of a file that was shown in part, only what was shown may be changed; also
        while it gets another name.
        """
        origin, met = file, set[PurePosixPath]()
        # back under its first name, it is its own origin
        while origin.like is not None and origin.path not in met:
            met.add(origin.path)
            origin = self._files[origin.like]
        name, before = str(origin.path), origin.before
        shown = self._terms.in_part.get(name)
        if shown is None or before is None or self._terms.seen is None:
            return
        if self._terms.seen.get(name) != digest(before):
            raise changed_meanwhile(origin.path)
        if known_after(before, after, shown) is None:
            changed = changed_lines(before, after)
            how = (
                "Read those first"
                if self._terms.parts is BY_CALL
                else "Change only what is shown"
            )
            raise ReplyRefused(
                f"{name} was shown in part only ({in_words(shown)}), and the edits"
                f" change other lines of it ({in_words((changed,))}).",
                hint=f"{how}.",
                unseen=origin.unseen,
                lines={name: (changed,)} if origin.unseen else {},
            )

    def _refuse_incomplete(
        self, path: PurePosixPath, before: bytes | None, content: str
    ) -> None:
        refuse_whole(path, before, content, self._terms.parts)
        if before is not None and not self._terms.may_shrink(str(path)):
            refuse_shrunk(path, before, content, self._terms.parts)

    def _replace_part(self, file: _File, edit: Replacement | TextReplacement) -> None:
        file.blocks += 1
        self._refuse_hidden(file, "change")
        find, new = (
            (edit.find, edit.replace)
            if isinstance(edit, TextReplacement)
            else ("\n".join(edit.find), "\n".join(edit.replace))
        )
        refuse_part(file.path, file.before, find, new, self._terms.parts)
        try:
            if isinstance(edit, TextReplacement):
                file.settle()
                after = replaced_once(self._present(file), find, new)
                was_new = after is not None
                file.content = after if after is not None else file.content
            else:
                file.draft = file.draft or TextDraft(self._present(file))
                was_new = file.draft.replace(edit)
        except (SearchTextNotFoundError, MultipleMatchesFoundError) as error:
            raise self._not_found(file, find, error) from error
        if not was_new:
            self._notes.append(
                f"{file.path}, block {file.blocks}: the new text was there already"
            )

    def _refuse_hidden(self, file: _File, verb: str) -> None:
        if file.hidden and not self._terms.was_shown(file.path):
            raise ReplyRefused(
                f"{file.path} is not shown: {file.hidden}. Do not {verb} it."
            )

    def _present(self, file: _File) -> bytes:
        if file.content is None:
            raise ReplyRefused(
                f"There is no file {file.path}.",
                hint="Give a new file whole, and one that exists by its path.",
            )
        return file.content

    def _not_found(
        self,
        file: _File,
        find: str,
        error: SearchTextNotFoundError | MultipleMatchesFoundError,
    ) -> ReplyRefused:
        """With all that a model needs to do better: which block it was, and what the
        file really says there.
        """
        first = next((line.strip() for line in find.split("\n") if line.strip()), "")[
            :80
        ]
        in_reply = self._terms.parts is IN_BLOCKS
        block = (
            f"{file.path}, block {file.blocks} (it begins with {first!r})"
            if in_reply
            else str(file.path)
        )
        if isinstance(error, MultipleMatchesFoundError):
            places = ", ".join(map(str, error.lines))
            return ReplyRefused(
                f"{block}: the lines to find are there more than once, beginning in"
                f" lines {places}.",
                hint="Add the lines before or after them, so that they are there once.",
                unseen=file.unseen,
                lines=_around(file, error.lines),
            )
        near = (
            f" The closest lines of the file are\n{error.closest}\n"
            if error.closest and file.unseen
            else " "
        )
        return ReplyRefused(
            f"{block}: the lines to find are not in the file.{near}Copy them exactly as"
            f" the file has them{', and send all edits again' if in_reply else ''}.",
            unseen=file.unseen,
            lines=_around(
                file, [int(line.split()[0]) for line in error.closest.splitlines()]
            ),
        )

    def _delete(self, file: _File, lines: tuple[str, ...] | None) -> None:
        present = file.settle()
        if present is None:
            self._notes.append(f"{file.path} is gone already")
            return
        if file.whole is not None and len(file.spellings) > 1:
            names = " and ".join(map(ascii, sorted(file.spellings)))
            raise ReplyRefused(
                f"The reply gives {file.path} and deletes it: {names} are one file."
            )
        if not self._terms.may_delete(str(file.path)) and not self._terms.knows(
            file.path, present
        ):
            self._refuse_hidden(file, "delete")
            raise ReplyRefused(
                f"{file.path} would be deleted, and neither was all of it shown nor"
                " does the step name it.",
                unseen=file.unseen,
            )
        present_lines = [line.rstrip() for line in TextDraft(present).lines]
        if lines is not None and [line.rstrip() for line in lines] != present_lines:
            raise ReplyRefused(
                f"{file.path} would be deleted, and what the diff removes is not what"
                " is in it.",
                hint=(
                    "Show all of its lines, or none: `*** Delete File: PATH` in a"
                    " `*** Begin Patch`."
                ),
                unseen=file.unseen,
            )
        file.content, file.deleted = None, present

    def _rename(self, file: _File, to: str) -> None:
        target = self._file(to)
        if target is file:
            self._refuse_other_folder(file, to)
            return
        content = file.settle()
        if content is None and target.settle() is not None:
            self._notes.append(f"{file.path} is called {target.path} already")
            return
        self._refuse_hidden(file, "rename")
        content = self._present(file)
        if target.settle() is not None:
            raise ReplyRefused(
                f"{file.path} cannot be renamed: {target.path} exists already."
            )
        target.content, target.like, file.content = content, file.path, None

    def _refuse_other_folder(self, file: _File, to: str) -> None:
        """Refuse to give a file a name that this disk takes for the one it has."""
        if is_spelled(self._root, to):
            self._notes.append(f"{file.path} is called {to} already")
            return
        raise ReplyRefused(
            f"{file.path} cannot be renamed to {to}: the folder is spelled"
            f" {file.path.parent} here.",
            hint="Only a command can rename a folder.",
        )


def _find_given_up(root: Path, edits: Iterable[Edit]) -> frozenset[str]:
    """Return the names that a reply deletes or renames, spelled as on the disk: a new
    file may be given another spelling of one.
    """
    names = (edit.path for edit in edits if isinstance(edit, Deletion | Renaming))
    return frozenset(str(parse_path(name)) for name in names if is_spelled(root, name))


def _around(file: _File, lines: Sequence[int]) -> dict[str, Ranges]:
    """These lines of a file, and those near them; empty for none."""
    if not lines or not file.unseen:
        return {}
    return {
        str(file.path): joined((max(1, line - _NEAR), line + _NEAR) for line in lines)
    }


def _as_text(data: bytes) -> str:
    return data.decode("utf-8-sig", errors="replace").replace("\r\n", "\n")
