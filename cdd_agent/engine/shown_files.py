"""The files that a step's prompt shows: which ones, and each of them whole, in part, or
only named.
"""

import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path, PurePosixPath
from types import MappingProxyType

from msgspec import Struct, field

from cdd_agent.context.finder import CodeFinder
from cdd_agent.context.places import RankedFile
from cdd_agent.context.query import Query
from cdd_agent.dialogue.code_context import CodeText, ShownCode, parts_that_matter
from cdd_agent.dialogue.token_budget import TokenBudget
from cdd_agent.edits.excerpts import Ranges, in_words, joined
from cdd_agent.engine.choices import Choices
from cdd_agent.errors import CddError
from cdd_agent.files.atomic import read_bytes
from cdd_agent.files.named import NamedFile, named_files, names_in
from cdd_agent.files.paths import PathRefused, confine
from cdd_agent.files.read import holds_secrets, locate
from cdd_agent.files.walk import Kind, WalkEntry
from cdd_agent.llm.budget import estimated_tokens
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
from cdd_agent.project.context import plain_tree
from cdd_agent.sanitize import fenced
from cdd_agent.tickets.plan import PlanStep
from cdd_agent.tickets.state import ExecutionState
from cdd_agent.verification.test_id import TestId

_LARGEST_WHOLE = 200_000
"""Bytes of a file that is shown whole."""
_LARGEST = 1_000_000
"""Bytes of one of which parts are."""
_MOST_NAMED = 200_000
"""Bytes of the files together that are shown whole because the step's words name them.
"""
_MOST_RELATED = 60_000
"""Bytes of those that are shown whole because the step depends on the steps that
changed them.
"""
_MOST_MEANT = 5
"""Files that are listed where a name may mean several."""
_MOST_IN_PART = 6_000
"""Tokens of the parts of one file; in a small window a third of it."""
_FOR_NAMES = 80
"""Tokens that are left for the names of files that there is no room for."""
_LEAST = 400
"""Tokens that are kept free for each file that comes later, so that a large one before
it does not hide it.
"""


class CodeLook(Struct, frozen=True, dict=True):
    """A look for the code that a step is about; made when something depends on it."""

    finder: CodeFinder | None
    query: Query

    @cached_property
    def ranked(self) -> Sequence[RankedFile]:
        return self.finder.rank(self.query) if self.finder else ()

    def at(self, path: str) -> RankedFile | None:
        """Its part about one file; None where it has none."""
        return next((file for file in self.ranked if file.path == path), None)

    def outline(self, path: str) -> str:
        return self.finder.outline(path) if self.finder else ""


class ShownFiles(Struct):
    """The files of a prompt: each whole, in part, or only named."""

    root: Path
    room: TokenBudget
    look: CodeLook
    unshown: Collection[str] = ()
    """Paths of files whose text the prompt has in another part: the project's rules."""
    once: Mapping[str, str] = MappingProxyType({})
    """The digests of files of which equal ones are shown once, by path."""
    seen: dict[str, str | None] = field(default_factory=dict)
    """The contents of those that are shown, as digests; None for one that is not there.
    """
    in_part: dict[str, Ranges] = field(default_factory=dict)
    """The lines of those that are not shown whole."""
    pictures: list[Picture] = field(default_factory=list)
    """Those among them that go with the prompt; what they hold is nothing that a reply
    could change.
    """
    notes: list[str] = field(default_factory=list)
    """Things that people should know of them, a sentence each."""
    shares: list[PromptShare] = field(default_factory=list)
    """The tokens that each takes of the prompt."""
    _parts: list[str] = field(default_factory=list)
    _added: list[str] = field(default_factory=list)
    _met: set[str] = field(default_factory=set)
    _waiting: dict[str, int] = field(default_factory=dict)
    """Tokens kept free for files to come."""

    @property
    def text(self) -> str:
        """Those that each attempt at the step is shown."""
        return "# Present files\n\n" + "\n\n".join(self._parts) if self._parts else ""

    @property
    def added(self) -> str:
        """Those that this attempt is shown besides."""
        return "# More files\n\n" + "\n\n".join(self._added) if self._added else ""

    def expect(self, paths: Iterable[str]) -> None:
        """Files that will be added: there is to be some room for each."""
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
        """Show a file, in part where it has more bytes than `most` or there is not the
        room, or say why it is not shown; not a second time. `lines` are those that
        matter. `added`: for this attempt alone; `is_own`: it is the step's, and as much
        of it is shown as there is room for.
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
        # of what is larger, nothing is shown
        data = read_bytes(place, max(_LARGEST, LARGEST) + 1)
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
            elif len(data) > _LARGEST:
                self._tell_unshown(path, f"it has over {_LARGEST:,} bytes")
            else:
                source = CodeText(path, data)
                self._add_text(
                    source,
                    len(data),
                    why,
                    most=most,
                    added=added,
                    lines=lines,
                    is_own=is_own,
                )
        except PictureUnusable as error:
            self._tell_unshown(path, error.message)
        except UnicodeDecodeError:
            self._tell_unshown(path, "it is not UTF-8 text")

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
        path, left = source.path, self.room.left
        kept_free = (
            sum(self._waiting.values())
            if left is None
            else min(sum(self._waiting.values()), left // 2)
        )
        whole = source.whole()
        if size <= min(most, _LARGEST_WHOLE) and self.room.takes(
            whole.tokens, beside=kept_free
        ):
            self.show(whole, why, added=added)
            return
        known = self.in_part.get(path, ())
        tokens = _MOST_IN_PART
        # what the last attempt's failure takes changes nothing
        if left is not None and self.room.window is not None:
            tokens = min(
                _MOST_IN_PART, self.room.window // 3, left - kept_free - _FOR_NAMES
            )
        ranked, outline = self.look.at(path), self.look.outline(path)
        part = parts_that_matter(
            source, ranked, tokens, also=lines, outline=outline, grows=is_own
        )
        if (
            part is not None
            and known
            and joined((*known, *(part.lines or ()))) == known
        ):
            return  # it says nothing new
        if part is None:
            if size > _LARGEST_WHOLE:
                self._tell_unshown(path, f"it has {size:,} bytes")
            else:
                self.room.leave_out(f"{path} ({size:,} bytes)")
            return
        self.room.takes(part.tokens)
        self.show(part, why, added=added)
        if part.lines is not None:
            reason = (
                "for want of room"
                if size <= min(most, _LARGEST_WHOLE)
                else f"it has {size:,} bytes"
            )
            self.notes.append(
                f"{path} is shown to the model in part ({in_words(part.lines)}):"
                f" {reason}."
            )

    def show(self, code: ShownCode, why: str, *, added: bool) -> None:
        """Show this of a file, for which room is taken."""
        (self._added if added else self._parts).append(code.text)
        if code.lines != ():
            self.seen[code.path] = code.digest
            known = self.in_part.pop(code.path, ())
            if code.lines is not None:
                self.in_part[code.path] = joined((*known, *code.lines))
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
        """Show files: whole up to so many bytes together, and parts of those that would
        be more.
        """
        for path in paths:
            if path in self._met:
                continue
            self.add(path, why, most=most, added=added)
            most -= (
                (self.root / path).stat().st_size
                if path in self.seen and path not in self.in_part
                else 0
            )

    def name(self, name: str, why: str) -> None:
        """Say of a file that the step speaks of why it is not shown."""
        if name not in self._met:
            self._met.add(name)
            self._tell(name, f"{name} is not shown: {why}.", why)

    def _tell(self, name: str, part: str, why: str) -> None:
        """Say it to the model and to people."""
        self._say(part, name, why)
        self.notes.append(f"{name} is not shown to the model: {why}.")

    def _say(self, part: str, name: str, why: str, *, added: bool = False) -> bool:
        """Whether there is room for it."""
        if is_said := bool(self.room.part(part, name)):
            (self._added if added else self._parts).append(part)
            self.shares.append(PromptShare(name, estimated_tokens(part), why))
        return is_said


def show_files(
    shown: ShownFiles,
    root: Path,
    state: ExecutionState,
    step: PlanStep,
    *,
    guidance: str = "",
    missed: Mapping[str, Ranges] | None = None,
    choices: Choices = Choices(),  # noqa: B008
    found: Iterable[WalkEntry] = (),
) -> None:
    """Show what a step needs, the most important first: its own files, those that an
    attempt missed, those of its check, those that a person wants to be there, those
    that its words name among what is `found` in the project, the work of steps that it
    depends on.

    What holds secrets is shown only as a file of the step or of its check: nobody else
    but its author says so.
    """
    paths = {entry.text for entry in found if entry.kind is not Kind.FOLDER}
    own, checked = (
        [_plain(root, file.path) for file in step.files_affected],
        _checked_files(root, step),
    )
    text = "\n\n".join(
        (step.title, step.description, *(file.note for file in step.files_affected))
    )
    named, unclear = _named(shown, text, paths, choices, {*own, *checked})
    pinned = [
        path
        for path in choices.pinned
        if _is_file(root, path) and not _leads_to_secrets(root, path)
    ]
    wanted = {
        path: lines
        for path, lines in (missed or {}).items()
        if not _leads_to_secrets(root, path)
    }
    in_any_case = {*own, *checked, *named, *pinned}
    shown.expect([*own, *checked, *named, *pinned])

    def add_missed(paths: Collection[str]) -> None:
        for path in sorted(wanted.keys() & paths):
            shown.add(
                path, "the last attempt missed it", added=True, lines=wanted[path]
            )

    for path in own:
        shown.add(path, "a file of the step", is_own=True)
    add_missed(wanted.keys() - in_any_case | shown.in_part.keys())
    for path in checked:
        shown.add(path, "named by the step's check")
    for path in pinned:
        shown.add(path, "pinned")
    shown.add_some(named, "named in the step", _MOST_NAMED)
    guided, also_unclear = (
        _named(shown, guidance, paths, choices, set()) if guidance else ([], [])
    )
    shown.add_some(guided, "named in the guidance", _MOST_NAMED, added=True)
    add_missed(in_any_case.intersection(shown.in_part).difference(own))
    for file in (*unclear, *also_unclear):
        if shown.seen.keys().isdisjoint(file.paths):
            more = len(file.paths) - _MOST_MEANT
            some = ", ".join(file.paths[:_MOST_MEANT]) + (
                f" or {more} more" if more > 0 else ""
            )
            shown.name(file.name, f"it may be {some}")
    before = (state.step(number) for number in step.dependencies)
    related = [
        path for done in before for path in (*done.files_created, *done.files_modified)
    ]
    there = (
        path
        for path in related
        if _is_file(root, path) and not _leads_to_secrets(root, path)
    )
    wanted_there = (path for path in there if not choices.leaves_out(path))
    shown.add_some(
        wanted_there, "the work of a step that this one depends on", _MOST_RELATED
    )


def _named(
    shown: ShownFiles, text: str, paths: set[str], choices: Choices, declared: set[str]
) -> tuple[list[str], list[NamedFile]]:
    """The files that a text names, and names that several have. Of one that holds
    secrets it is said that it does, if it is not `declared`.
    """
    root = shown.root
    # what git ignores is the project's, too, but not this program's own
    for name in set(names_in(text)) - paths:
        with suppress(CddError):
            path = locate(root, name)
            if path.parts[:1] != (".cdd",) and (root / path).is_file():
                paths.add(name)
    named, unclear = list[str](), list[NamedFile]()
    for file in named_files(text, paths):
        path_, *others = file.paths
        if others:
            unclear.append(file)
        elif choices.leaves_out(path_):
            continue
        elif (
            path_ not in shown.seen
            and path_ not in declared
            and _leads_to_secrets(root, path_)
        ):
            shown.name(path_, "by its name it holds secrets")
        else:
            named.append(path_)
    return named, unclear


def tree(found: Sequence[WalkEntry], room: TokenBudget, lines: int) -> str:
    """The project's files as a tree of about so many lines at most; empty where there
    is no room for it.
    """
    return room.part(
        f"# Files of the project\n\n{fenced(plain_tree(found, lines), 'text')}", TREE
    )


TREE = "the tree of the project's files"
"""Its name where a prompt had no room for it."""
TREE_LINES = 1_000
TREE_LINES_WITH_TOOLS = 200
"""For a model that can look at folders by itself, and is sent the tree with each round.
"""


def _plain(root: Path, name: str) -> str:
    """A path as the project knows it; one that leads out of it as it was written."""
    try:
        return str(confine(root, name))
    except PathRefused:
        return name


def _checked_files(root: Path, step: PlanStep) -> list[str]:
    """Files that the step's own check names: its author cannot aim at a test that they
    cannot read.
    """
    words: list[str] = []
    for check in step.checks or ():
        with suppress(ValueError):
            words += shlex.split(check)
    names = [TestId.parse(word).file for word in words]
    return [
        _plain(root, name)
        for name in names
        if not name.startswith("-") and _is_file(root, name)
    ]


def _is_file(root: Path, name: str) -> bool:
    try:
        return (root / confine(root, name)).is_file()
    except PathRefused:
        return False


def _leads_to_secrets(root: Path, name: str) -> bool:
    """By its own name, or by that of what it is a link to."""
    return holds_secrets(PurePosixPath(name).name) or holds_secrets(
        (root / name).resolve().name
    )
