"""The files that a step's prompt shows: which ones, and each of them whole, in part, or
only named.
"""

import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct, field

from cdd_agent.context.choosing import choose_parts
from cdd_agent.context.code_text import (
    LARGEST_IN_PART,
    CodeReader,
    CodeText,
    ShownCode,
)
from cdd_agent.context.finder import CodeSearch
from cdd_agent.dialogue.token_budget import TokenBudget
from cdd_agent.engine.choices import Choices
from cdd_agent.errors import CddError
from cdd_agent.files.atomic import read_bytes
from cdd_agent.files.line_ranges import Ranges, describe_ranges, join_ranges
from cdd_agent.files.mention_reader import find_mentions
from cdd_agent.files.named import NamedFile, named_files, names_in
from cdd_agent.files.notebooks import LARGEST_NOTEBOOK, is_notebook
from cdd_agent.files.paths import PathRefused, confine, path_inside
from cdd_agent.files.read import locate
from cdd_agent.files.walk import Kind, WalkEntry
from cdd_agent.llm.pictures import (
    LARGEST,
    MOST,
    PictureUnusable,
    is_meant_as_picture,
    media_type,
    picture_of,
    picture_tokens,
)
from cdd_agent.llm.port import Picture, PromptShare
from cdd_agent.llm.token_estimates import estimated_tokens
from cdd_agent.project.context import plain_tree
from cdd_agent.sanitize import fenced
from cdd_agent.tickets.declared_files import DeclaredFiles
from cdd_agent.tickets.plan import PlanStep
from cdd_agent.tickets.state import ExecutionState
from cdd_agent.verification.test_id import TestId

_LARGEST_WHOLE = 200_000
"""Bytes of a file that is shown whole."""
_MOST_NAMED = 200_000
"""Bytes that are shown whole of the files that the step's text names."""
_MOST_RELATED = 60_000
"""Bytes that are shown whole of the files of steps that this step depends on."""
_MOST_MATCHED = 50_000
"""Tokens of the files that the patterns and folders of the step declare."""
_MOST_MEANT = 5
"""Files that are listed for a name that several files have."""
_MOST_IN_PART = 6_000
"""Tokens of the parts of one file; in a small window a third of it."""
_LONGEST_RANGE = 2_000
"""Lines of a range to look at."""
_PIECE = 40
"""Lines of a piece of such a range, which is shown or not."""
_MOST_HIDDEN = 5
"""Files of the step that are named although they are not shown."""
_FOR_NAMES = 80
"""Tokens that are reserved for the names of files that do not fit."""
_LEAST = 400
"""Tokens that are reserved for each later file, so that a large file does not hide
it.
"""


class ShownFiles(Struct, dict=True):
    """The files of a prompt: each whole, in part, or only named."""

    root: Path
    room: TokenBudget
    search: CodeSearch
    unshown: Collection[str] = ()
    """Paths of files whose text the prompt has in another part: the project's rules."""
    once: Mapping[str, str] = MappingProxyType({})
    """The digests of files of which equal ones are shown once, by path."""
    allowed: Collection[str] = ()
    """Paths of files that the user shows to models although they are hidden."""
    seen: dict[str, str | None] = field(default_factory=dict)
    """The digests of the files that are shown; None for a file that does not exist."""
    in_part: dict[str, Ranges] = field(default_factory=dict)
    """The lines that are shown of files that are not shown whole."""
    pictures: list[Picture] = field(default_factory=list)
    """Pictures that are sent with the prompt. No reply can change them."""
    notes: list[str] = field(default_factory=list)
    """Warnings for the user, a sentence each."""
    shares: list[PromptShare] = field(default_factory=list)
    """The tokens of each part."""
    _parts: list[str] = field(default_factory=list)
    _added: list[str] = field(default_factory=list)
    _met: set[str] = field(default_factory=set)
    _waiting: dict[str, int] = field(default_factory=dict)
    """The tokens that are reserved for each expected file."""

    @cached_property
    def reader(self) -> CodeReader:
        return CodeReader(self.root, self.allowed)

    @property
    def whole_paths(self) -> Collection[str]:
        """The files that are shown whole."""
        return self.seen.keys() - self.in_part.keys()

    @property
    def text(self) -> str:
        """The files that every attempt at the step shows."""
        return "# Present files\n\n" + "\n\n".join(self._parts) if self._parts else ""

    @property
    def added(self) -> str:
        """The files that only this attempt shows."""
        return "# More files\n\n" + "\n\n".join(self._added) if self._added else ""

    @property
    def tokens(self) -> int:
        """The tokens of all that is shown."""
        return sum(share.tokens for share in self.shares)

    @property
    def is_full(self) -> bool:
        """True if no other file fits beside those that are expected."""
        return self.room.left is not None and self.room.left - self._reserved < _LEAST

    @property
    def _reserved(self) -> int:
        """The tokens that are reserved for all expected files."""
        tokens = sum(self._waiting.values())
        if self.room.left is None:
            return tokens
        return min(tokens, self.room.left // 2)

    def expect(self, paths: Iterable[str]) -> None:
        """Reserve some room for each of these files."""
        for name in paths:
            with suppress(PathRefused, OSError):
                path = str(confine(self.root, name))
                if (self.root / path).is_file():
                    self._waiting[path] = min(
                        _LEAST, (self.root / path).stat().st_size // 3 + 20
                    )

    def add(
        self,
        name: str,
        why: str,
        *,
        most: int = _LARGEST_WHOLE,
        added: bool = False,
        lines: Ranges = (),
        is_own: bool = False,
    ) -> None:
        """Show a file, unless it is shown already: whole, in part if it has more bytes
        than `most` or does not fit, or only the reason why it is not shown.

        The `lines` matter most. `added` shows the file for this attempt alone. A file
        that `is_own`, the step's, is shown as far as there is room.
        """
        try:
            path = str(confine(self.root, name))
        except PathRefused as refusal:
            self._say(f"{refusal.message}.", name, why, added=added)
            return
        self._waiting.pop(path, None)
        is_more = added and path in self.in_part
        if path in self.unshown or (path in self._met and not is_more):
            return
        self._met.add(path)
        place = self.root / path
        if place.is_dir():
            self._say(f"{path} is a folder.", path, why, added=added)
            return
        largest = LARGEST_NOTEBOOK if is_notebook(path) else LARGEST_IN_PART
        # a larger file is not shown at all
        data = read_bytes(place, max(largest, LARGEST) + 1)
        if data is not None and (hidden := self.reader.hidden.why(path, data)):
            self._tell_unshown(path, hidden)
            return
        try:
            if other := self._shown_equal(path):
                self.seen[path] = self.seen[other]
                if other in self.in_part:
                    self.in_part[path] = self.in_part[other]
                self._say(f"{path} has the text of {other}.", path, why, added=added)
            elif data is None:
                self.seen[path] = None
                self._say(f"{path} does not exist yet.", path, why, added=added)
            elif media_type(data) or is_meant_as_picture(path):
                self._add_picture(path, picture_of(path, data), why)
            elif len(data) > largest:
                self._tell_unshown(path, f"it has over {largest:,} bytes")
            else:
                source = CodeText(path, data, self.reader.charsets)
                self._add_text(
                    source,
                    source.visible_size,
                    why,
                    most=most,
                    added=added,
                    lines=lines,
                    is_own=is_own,
                )
        except PictureUnusable as error:
            self._tell_unshown(path, error.message)

    def _shown_equal(self, path: str) -> str | None:
        """Return another file that has this one's text and is shown."""
        for other, content in self.once.items():
            if other in self.seen and other != path and self.once.get(path) == content:
                return other
        return None

    def _add_text(
        self,
        source: CodeText,
        size: int,
        why: str,
        *,
        most: int,
        added: bool,
        lines: Ranges,
        is_own: bool,
    ) -> None:
        if source.is_binary:
            self._tell_unshown(source.path, f"it is a binary file of {size:,} bytes")
            return
        if not source.is_shown_by_lines:
            self._tell_unshown(source.path, "it is a notebook with too long lines")
            return
        whole = source.whole()
        is_small = size <= min(most, _LARGEST_WHOLE)
        if is_small and self.room.takes(whole.tokens, beside=self._reserved):
            self.show(whole, why, added=added)
            return
        path = source.path
        part = choose_parts(
            source,
            self.search.find_file(path),
            self._most_in_part,
            first=_in_pieces(lines),
            outline=self.search.outline(path),
            grows=is_own,
        )
        if part is None and size > _LARGEST_WHOLE:
            self._tell_unshown(path, f"it has {size:,} bytes")
        elif part is None:
            self.room.leave_out(f"{path} ({size:,} bytes)")
        elif self._has_new_lines(part):
            self.room.takes(part.tokens)
            self.show(part, why, added=added)
            if part.lines is not None:
                reason = "for want of room" if is_small else f"it has {size:,} bytes"
                self.notes.append(
                    f"{path} is shown to the model in part"
                    f" ({describe_ranges(part.lines)}): {reason}."
                )

    @property
    def _most_in_part(self) -> int:
        """The tokens that a part of a file may have."""
        left, window = self.room.left, self.room.window
        if left is None or window is None:
            return _MOST_IN_PART
        return min(_MOST_IN_PART, window // 3, left - self._reserved - _FOR_NAMES)

    def _has_new_lines(self, part: ShownCode) -> bool:
        """True if a part has lines that are not shown yet."""
        shown = self.in_part.get(part.path, ())
        return not shown or join_ranges((*shown, *(part.lines or ()))) != shown

    def show(self, code: ShownCode, why: str, *, added: bool) -> None:
        """Show code of a file. The caller has taken the room for it."""
        (self._added if added else self._parts).append(code.text)
        if code.lines != ():
            self.seen[code.path] = code.digest
            known = self.in_part.pop(code.path, ())
            if code.lines is not None:
                self.in_part[code.path] = join_ranges((*known, *code.lines))
        self.shares.append(PromptShare(code.name, code.tokens, why))

    def _tell_unshown(self, path: str, why: str) -> None:
        self._tell(path, f"{path} exists and cannot be shown: {why}.", why)

    def _add_picture(self, path: str, picture: Picture, why: str) -> None:
        tokens = picture_tokens(picture)
        if len(self.pictures) == MOST:
            self._tell(
                path,
                f"{path} is a picture and is not shown.",
                f"a prompt has at most {MOST} pictures",
            )
        elif not self.room.takes(tokens):
            self.room.leave_out(f"the picture {path}")
        elif self._say(
            f"{path} is a picture, and comes with this message. No reply can"
            " change it.",
            path,
            why,
        ):
            self.pictures.append(picture)
            self.shares.append(PromptShare(f"the picture {path}", tokens, why))

    def add_some(
        self, paths: Iterable[str], why: str, most: int, *, added: bool = False
    ) -> None:
        """Show files: whole until they have `most` bytes together, then in part."""
        for path in paths:
            if path in self._met:
                continue
            self.add(path, why, most=most, added=added)
            most -= (
                (self.root / path).stat().st_size
                if path in self.seen and path not in self.in_part
                else 0
            )

    def list_hidden(self, paths: Sequence[str], reason: str) -> None:
        """Say to the model and to the user that files of the step are not shown."""
        if not paths:
            return
        names = ", ".join(paths[:_MOST_HIDDEN])
        if len(paths) > _MOST_HIDDEN:
            names += f" and {len(paths) - _MOST_HIDDEN} more"
        self._say(
            f"These files of the step are not shown ({reason}). Do not replace them:"
            f" {names}.",
            "files of the step that are not shown",
            reason,
        )
        count = f"{len(paths):,} files of the step are"
        if len(paths) == 1:
            count = "1 file of the step is"
        self.notes.append(f"{count} not shown to the model ({reason}): {names}.")

    def name(self, name: str, why: str) -> None:
        """Say why a file that the step names is not shown."""
        if name not in self._met:
            self._met.add(name)
            self._tell(name, f"{name} is not shown: {why}.", why)

    def _tell(self, name: str, part: str, why: str) -> None:
        """Say it to the model and to the user."""
        self._say(part, name, why)
        self.notes.append(f"{name} is not shown to the model: {why}.")

    def _say(self, part: str, name: str, why: str, *, added: bool = False) -> bool:
        """Add a sentence to the prompt. Return False if there is no room for it."""
        if not self.room.part(part, name):
            return False
        (self._added if added else self._parts).append(part)
        self.shares.append(PromptShare(name, estimated_tokens(part), why))
        return True


def show_files(
    shown: ShownFiles,
    state: ExecutionState,
    step: PlanStep,
    declared: DeclaredFiles,
    *,
    guidance: str = "",
    missed: Mapping[str, Ranges] | None = None,
    choices: Choices = Choices(),  # noqa: B008
    found: Iterable[WalkEntry] = (),
) -> None:
    """Show the files that a step needs, the most important first: the files that it
    declares, files that the last attempt missed, files of its checks, files that the
    user pinned, files that its text names among those `found` in the project, and the
    files of steps that it depends on.

    A file that is hidden from models is shown only if the user pinned it.
    """
    root = shown.root
    paths = {entry.text for entry in found if entry.kind is not Kind.FOLDER}
    checked = _checked_files(root, step)
    pinned = [path for path in choices.pinned if _may_show(shown, path)]
    notes = (file.file.note for file in declared.files)
    text = "\n\n".join((step.title, step.description, *notes))
    named, unclear = _named(shown, text, paths, choices, {*declared.paths, *checked})
    always = {*declared.named, *checked, *named, *pinned}
    shown.expect(always)
    missed = {
        path: lines
        for path, lines in (missed or {}).items()
        if not shown.reader.hidden.why_by_name(path)
    }

    for path in declared.named:
        lines = declared.lines(path)
        shown.add(path, "a file of the step", lines=lines, is_own=True)
    _show_matched(shown, declared, choices, always)
    _show_missed(shown, missed, (missed.keys() - always) | shown.in_part.keys())
    for path in checked:
        shown.add(path, "named by the step's check")
    for path in pinned:
        shown.add(path, "pinned")
    shown.add_some(named, "named in the step", _MOST_NAMED)
    if guidance:
        for mention in find_mentions(root, guidance):
            if mention.path is not None and not choices.leaves_out(str(mention.path)):
                why = "mentioned in the guidance"
                shown.add(str(mention.path), why, added=True, lines=mention.ranges)
        guided, also_unclear = _named(shown, guidance, paths, choices, set())
        shown.add_some(guided, "named in the guidance", _MOST_NAMED, added=True)
        unclear += also_unclear
    later = (shown.in_part.keys() & always).difference(declared.named)
    _show_missed(shown, missed, later)
    _list_meanings(shown, unclear)
    related = [
        path
        for path in _files_of_dependencies(state, step)
        if _may_show(shown, path) and not choices.leaves_out(path)
    ]
    why = "the work of a step that this one depends on"
    shown.add_some(related, why, _MOST_RELATED)


def _show_missed(
    shown: ShownFiles, missed: Mapping[str, Ranges], paths: Collection[str]
) -> None:
    for path in sorted(missed.keys() & paths):
        why = "the last attempt missed it"
        shown.add(path, why, added=True, lines=missed[path])


def _show_matched(
    shown: ShownFiles,
    declared: DeclaredFiles,
    choices: Choices,
    always: Collection[str],
) -> None:
    """Show the files that patterns and folders of the step declare, while there is
    room. The user reads how many are not shown, and the model which ones.
    """
    no_text = []
    no_room = []
    tokens = _MOST_MATCHED
    for path in declared.matched:
        # a file that the step deletes need not be read
        if path in always or choices.leaves_out(path) or declared.may_delete(path):
            continue
        if why := shown.reader.hidden.why(path):
            shown.name(path, why)
        elif shown.reader.read(path) is None:
            no_text.append(path)
        elif tokens <= 0 or shown.is_full:
            no_room.append(path)
        else:
            before = shown.tokens
            shown.add(path, "a file of the step")
            tokens -= shown.tokens - before
    shown.list_hidden(no_text, "not text, or too large")
    shown.list_hidden(no_room, "too many")
    if declared.more:
        shown.notes.append(
            f"{declared.more:,} more files match what the step declares. They are not"
            " listed; name fewer files in the step."
        )


def _list_meanings(shown: ShownFiles, unclear: Iterable[NamedFile]) -> None:
    """List the files that an unclear name may mean, unless one of them is shown."""
    for file in unclear:
        if not shown.seen.keys().isdisjoint(file.paths):
            continue
        more = len(file.paths) - _MOST_MEANT
        meant = ", ".join(file.paths[:_MOST_MEANT])
        if more > 0:
            meant += f" or {more} more"
        shown.name(file.name, f"it may be {meant}")


def _files_of_dependencies(state: ExecutionState, step: PlanStep) -> list[str]:
    paths = []
    for number in step.dependencies:
        done = state.step(number)
        paths += [*done.files_created, *done.files_modified]
    return paths


def _named(
    shown: ShownFiles, text: str, paths: set[str], choices: Choices, declared: set[str]
) -> tuple[list[str], list[NamedFile]]:
    """Return the files that a text names, and the names that several files have. A file
    that is hidden from models is not shown; the prompt says so.
    """
    root = shown.root
    # The text may also name files that git ignores, but not those of this program.
    for name in set(names_in(text)) - paths:
        with suppress(CddError):
            path = locate(root, name)
            if path.parts[:1] != (".cdd",) and (root / path).is_file():
                paths.add(str(path))
    named, unclear = list[str](), list[NamedFile]()
    for file in named_files(text, paths):
        first, *others = file.paths
        is_known = first in shown.seen or first in declared
        if others:
            unclear.append(file)
        elif choices.leaves_out(first):
            continue
        elif not is_known and (why := shown.reader.hidden.why_by_name(first)):
            shown.name(first, why)
        else:
            named.append(first)
    return named, unclear


def tree(found: Sequence[WalkEntry], room: TokenBudget, lines: int) -> str:
    """Return the project's files as a tree of about `lines` lines, or an empty text if
    there is no room.
    """
    return room.part(
        f"# Files of the project\n\n{fenced(plain_tree(found, lines), 'text')}", TREE
    )


TREE = "the tree of the project's files"
"""The name of the tree among the parts that are left out."""
TREE_LINES = 1_000
TREE_LINES_WITH_TOOLS = 200
"""The tree is shorter for a model with tools: it can list folders, and is sent the tree
again in each round.
"""


def _checked_files(root: Path, step: PlanStep) -> list[str]:
    """Return the files that the step's checks name: the model cannot satisfy a test
    that it cannot read.
    """
    words: list[str] = []
    for check in step.checks or ():
        with suppress(ValueError):
            words += shlex.split(check)
    names = [TestId.parse(word).file for word in words if not word.startswith("-")]
    paths = [path_inside(root, name) for name in names]
    return [path for path in paths if path and (root / path).is_file()]


def _in_pieces(ranges: Ranges) -> Ranges:
    """Cut long ranges, so that the beginning of one that does not fit is shown."""
    pieces = []
    for first, last in ranges:
        end = min(last, first + _LONGEST_RANGE - 1)
        for start in range(first, end + 1, _PIECE):
            pieces.append((start, min(start + _PIECE - 1, end)))
    return tuple(pieces)


def _may_show(shown: ShownFiles, name: str) -> bool:
    """True for a file in the project that is not hidden from models."""
    path = path_inside(shown.root, name)
    return (
        path is not None
        and (shown.root / path).is_file()
        and not shown.reader.hidden.why_by_name(path)
    )
