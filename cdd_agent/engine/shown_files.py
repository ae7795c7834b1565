"""The files of a step's prompt: whole, in part, or only named."""

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
from cdd_agent.context.sharing import (
    LARGEST_WHOLE,
    Priority,
    WantedFile,
    cut_ranges,
    limit_part,
    share_room,
)
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
from cdd_agent.llm.token_estimates import estimate_tokens
from cdd_agent.project.context import plain_tree
from cdd_agent.text.sanitize import fenced
from cdd_agent.tickets.declared_files import DeclaredFiles
from cdd_agent.tickets.plan import PlanStep
from cdd_agent.tickets.state import ExecutionState
from cdd_agent.verification.test_id import TestId

_MOST_NAMED = 200_000
"""Most bytes of whole files that the step's text names."""
_MOST_RELATED = 60_000
"""Most bytes of whole files from steps that this one depends on."""
_MOST_MEANT = 5
"""Most files to list for an ambiguous name."""
_MOST_HIDDEN = 5
"""Most hidden files of the step to name."""
_FOR_NAMES = 100
"""Tokens to leave for names of omitted files."""
_MISSED = "the last attempt missed it"
_MENTIONED = "mentioned in the guidance"
_DECLARED = "a file of the step"


class _Part(Struct):
    """A part about one file. Empty until the file has its room."""

    text: str
    share: PromptShare
    is_added: bool
    """True if only this attempt shows it."""


class ShownFiles(Struct, dict=True):
    """A prompt's files: whole, in part, or only named.

    `share_room` shows the added ones.
    """

    root: Path
    room: TokenBudget
    search: CodeSearch
    unshown: Collection[str] = ()
    """Files whose text is elsewhere in the prompt: the project's rules."""
    once: Mapping[str, str] = MappingProxyType({})
    """Path → digest, for files to show once if they are equal."""
    allowed: Collection[str] = ()
    """Hidden files that the user shows to models."""
    seen: dict[str, str | None] = field(default_factory=dict)
    """Digests of shown files; None for absent ones."""
    in_part: dict[str, Ranges] = field(default_factory=dict)
    """Shown lines of files not shown whole."""
    pictures: list[Picture] = field(default_factory=list)
    """Pictures sent along. No reply can change them."""
    notes: list[str] = field(default_factory=list)
    """Warnings for the user, one sentence each."""
    _parts: list[_Part] = field(default_factory=list)
    _wanted: list[tuple[WantedFile, _Part]] = field(default_factory=list)
    _added_names: set[str] = field(default_factory=set)
    _copies: dict[str, str] = field(default_factory=dict)
    """Omitted file → shown file with the same text."""

    @cached_property
    def reader(self) -> CodeReader:
        return CodeReader(self.root, self.allowed)

    @property
    def whole_paths(self) -> Collection[str]:
        return self.seen.keys() - self.in_part.keys()

    @property
    def text(self) -> str:
        """Files for every attempt at the step."""
        return self._join("# Present files", is_added=False)

    @property
    def added(self) -> str:
        """Files for this attempt only."""
        return self._join("# More files", is_added=True)

    @property
    def shares(self) -> list[PromptShare]:
        """Tokens of each part."""
        return [part.share for part in self._parts if part.text]

    def _join(self, heading: str, *, is_added: bool) -> str:
        texts = []
        for part in self._parts:
            if part.text and part.is_added is is_added:
                texts.append(part.text)
        return "\n\n".join([heading, *texts]) if texts else ""

    def shows_any(self, paths: Collection[str]) -> bool:
        """True if one of the files is shown, or will be if it fits."""
        wanted = {file.text.path for file, _ in self._wanted}
        return not {*self.seen, *wanted}.isdisjoint(paths)

    def add(
        self,
        name: str,
        why: str,
        priority: Priority = Priority.OTHER,
        *,
        most: int = LARGEST_WHOLE,
        added: bool = False,
        lines: Ranges = (),
    ) -> WantedFile | None:
        """Add a file once, or say why it is not shown. Beyond `most` bytes it is shown
        in part.

        `lines` matter most. `added`: for this attempt only.
        """
        try:
            path = str(confine(self.root, name))
        except PathRefused as refusal:
            self._add_sentence(f"{refusal.message}.", name, why, added=added)
            return None
        if path in self.unshown or path in self._added_names:
            return None
        self._added_names.add(path)
        place = self.root / path
        if place.is_dir():
            self._add_sentence(f"{path} is a folder.", path, why, added=added)
            return None
        largest = LARGEST_NOTEBOOK if is_notebook(path) else LARGEST_IN_PART
        # not shown if larger
        data = read_bytes(place, max(largest, LARGEST) + 1)
        if data is None:
            self.seen[path] = None
            self._add_sentence(f"{path} does not exist yet.", path, why, added=added)
        elif hidden := self.reader.hidden.why(path, data):
            self._warn_unshown(path, hidden)
        elif other := self._find_equal(path):
            self._copies[path] = other
            self._add_sentence(
                f"{path} has the text of {other}.", path, why, added=added
            )
        elif media_type(data) or is_meant_as_picture(path):
            self._add_picture(path, data, why)
        elif len(data) > largest:
            self._warn_unshown(path, f"it has over {largest:,} bytes")
        else:
            text = CodeText(path, data, self.reader.charsets)
            wanted = WantedFile(text, priority, most, lines)
            return self._add_wanted(wanted, path, len(data), why, added=added)
        return None

    def _add_wanted(
        self, wanted: WantedFile, path: str, size: int, why: str, *, added: bool
    ) -> WantedFile | None:
        if wanted.text.is_binary:
            self._warn_unshown(path, f"it is a binary file of {size:,} bytes")
            return None
        if not wanted.text.is_shown_by_lines:
            self._warn_unshown(path, "it is a notebook with too long lines")
            return None
        part = _Part("", PromptShare(path, 0, why), added)
        self._wanted.append((wanted, part))
        self._parts.append(part)
        return wanted

    def _find_equal(self, path: str) -> str | None:
        for other, content in self.once.items():
            if (
                other != path
                and other in self._added_names
                and self.once.get(path) == content
            ):
                return other
        return None

    def share_room(self) -> None:
        """Show added files, whole or in part, as far as they fit."""
        files = [file for file, _ in self._wanted]
        shown = share_room(files, self.search, self.room.remaining, self.room.window)
        for (file, part), code in zip(self._wanted, shown, strict=True):
            if code is None:
                self._leave_out(file)
                continue
            self.room.take(code.tokens)
            self._mark_seen(code)
            part.text = code.text
            part.share = PromptShare(code.name, code.tokens, part.share.why)
            if code.lines is not None:
                self._note_part(file, code.lines)
        self._wanted.clear()
        for path, other in self._copies.items():
            if other in self.seen:
                self.seen[path] = self.seen[other]
            if other in self.in_part:
                self.in_part[path] = self.in_part[other]

    def _note_part(self, file: WantedFile, lines: Ranges) -> None:
        path = file.text.path
        reason = f"it has {file.text.visible_size:,} bytes"
        if file.may_be_whole:
            reason = "there is no room for more"
        ranges = describe_ranges(lines)
        self.notes.append(f"{path} is shown only in part ({ranges}): {reason}.")

    def _leave_out(self, file: WantedFile) -> None:
        path = file.text.path
        size = file.text.visible_size
        if file.priority is Priority.PATTERN:
            # listed by the caller
            self._added_names.discard(path)
        elif size > LARGEST_WHOLE:
            self._warn_unshown(path, f"it has {size:,} bytes")
        else:
            self.room.omit(f"{path} ({size:,} bytes)")

    def add_lines(self, path: str, lines: Ranges, why: str) -> None:
        """Show more lines of a partly shown file, for this attempt only."""
        text = self.reader.read(path)
        if text is None:
            return
        most = limit_part(self.room.window)
        if self.room.remaining is not None:
            most = min(most, self.room.remaining - _FOR_NAMES)
        code = choose_parts(
            text,
            self.search.find_file(path),
            most,
            first=cut_ranges(lines),
            outline=self.search.outline(path),
        )
        if code is None:
            self.room.omit(f"further lines of {path}")
        elif self._has_new_lines(code) and self.room.take(code.tokens):
            self.show(code, why, added=True)

    def _has_new_lines(self, code: ShownCode) -> bool:
        shown = self.in_part.get(code.path, ())
        return join_ranges((*shown, *(code.lines or ()))) != shown

    def show(self, code: ShownCode, why: str, *, added: bool) -> None:
        """The caller has taken the room for it."""
        share = PromptShare(code.name, code.tokens, why)
        self._parts.append(_Part(code.text, share, added))
        self._mark_seen(code)

    def _mark_seen(self, code: ShownCode) -> None:
        if code.form == "outline":
            return
        self.seen[code.path] = code.digest
        earlier = self.in_part.pop(code.path, ())
        if code.lines is not None:
            self.in_part[code.path] = join_ranges((*earlier, *code.lines))

    def _warn_unshown(self, path: str, why: str) -> None:
        self._warn(path, f"{path} exists and cannot be shown: {why}.", why)

    def _add_picture(self, path: str, data: bytes, why: str) -> None:
        try:
            picture = picture_of(path, data)
        except PictureUnusable as error:
            self._warn_unshown(path, error.message)
            return
        tokens = picture_tokens(picture)
        sentence = (
            f"{path} is a picture, and comes with this message. No reply can change it."
        )
        if len(self.pictures) == MOST:
            self._warn(
                path,
                f"{path} is a picture and is not shown.",
                f"a prompt has at most {MOST} pictures",
            )
        elif not self.room.take(tokens):
            self.room.omit(f"the picture {path}")
        elif self._add_sentence(sentence, path, why):
            self.pictures.append(picture)
            share = PromptShare(f"the picture {path}", tokens, why)
            self._parts.append(_Part("", share, is_added=False))

    def add_some(
        self, paths: Iterable[str], why: str, most: int, *, added: bool = False
    ) -> None:
        """Add files: whole up to `most` bytes in total, then in part."""
        for path in paths:
            file = self.add(path, why, most=most, added=added)
            if file is not None and file.may_be_whole:
                most -= file.text.visible_size

    def list_hidden(self, paths: Sequence[str], reason: str) -> None:
        """Tell model and user which files of the step are hidden."""
        if not paths:
            return
        names = ", ".join(paths[:_MOST_HIDDEN])
        if len(paths) > _MOST_HIDDEN:
            names += f" and {len(paths) - _MOST_HIDDEN} more"
        self._add_sentence(
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
        if name not in self._added_names:
            self._added_names.add(name)
            self._warn(name, f"{name} is not shown: {why}.", why)

    def _warn(self, name: str, part: str, why: str) -> None:
        self._add_sentence(part, name, why)
        self.notes.append(f"{name} is not shown to the model: {why}.")

    def _add_sentence(
        self, sentence: str, name: str, why: str, *, added: bool = False
    ) -> bool:
        """Add a sentence to the prompt. False if it does not fit."""
        if not self.room.take_text(sentence, name):
            return False
        share = PromptShare(name, estimate_tokens(sentence), why)
        self._parts.append(_Part(sentence, share, added))
        return True


def _mentioned_lines(root: Path, guidance: str, choices: Choices) -> dict[str, Ranges]:
    """Return files in the guidance, with the lines it names."""
    mentioned: dict[str, Ranges] = {}
    for mention in find_mentions(root, guidance) if guidance else ():
        path = str(mention.path or "")
        if path and not choices.leaves_out(path):
            lines = (*mentioned.get(path, ()), *mention.ranges)
            mentioned[path] = join_ranges(lines)
    return mentioned


def show_files(
    shown: ShownFiles,
    state: ExecutionState,
    step: PlanStep,
    declared: DeclaredFiles,
    *,
    guidance: str = "",
    missed: Mapping[str, Ranges] | None = None,
    choices: Choices = Choices(),  # noqa: B008
    entries: Iterable[WalkEntry] = (),
) -> None:
    """Show a step's files, most important first: declared files, files that the last
    attempt missed, files of checks, pinned files, files among `entries` that the text
    names, and files of dependencies.

    Hidden files are shown only if pinned.
    """
    root = shown.root
    paths = {entry.text for entry in entries if entry.kind is not Kind.FOLDER}
    checked = _checked_files(root, step)
    pinned = [path for path in choices.pinned if _may_show(shown, path)]
    notes = (file.file.note for file in declared.files)
    text = "\n\n".join((step.title, step.description, *notes))
    named, unclear = _named(shown, text, paths, choices, {*declared.paths, *checked})
    always = {*declared.named, *checked, *named, *pinned}
    missed = {
        path: lines
        for path, lines in (missed or {}).items()
        if not shown.reader.hidden.why_by_name(path)
    }

    for path in declared.named:
        shown.add(path, _DECLARED, Priority.STEP, lines=declared.lines(path))
    matched = _add_matched(shown, declared, choices, always)
    for path in sorted(missed.keys() - always):
        shown.add(path, _MISSED, added=True, lines=missed[path])
    for path in checked:
        shown.add(path, "named by the step's check")
    for path in pinned:
        shown.add(path, "pinned")
    shown.add_some(named, "named in the step", _MOST_NAMED)
    mentioned = _mentioned_lines(root, guidance, choices)
    if guidance:
        for path, lines in mentioned.items():
            shown.add(path, _MENTIONED, added=True, lines=lines)
        guided, also_unclear = _named(shown, guidance, paths, choices, set())
        shown.add_some(guided, "named in the guidance", _MOST_NAMED, added=True)
        unclear += also_unclear
    _list_meanings(shown, unclear)
    related = _files_of_dependencies(state, step)
    related = [path for path in related if _may_show(shown, path)]
    related = [path for path in related if not choices.leaves_out(path)]
    why = "the work of a step that this one depends on"
    shown.add_some(related, why, _MOST_RELATED)
    shown.share_room()
    for path, lines in mentioned.items():
        if lines and path in shown.in_part:
            shown.add_lines(path, lines, _MENTIONED)
    _show_missed(shown, missed, matched)
    shown.list_hidden([path for path in matched if path not in shown.seen], "too many")
    if declared.more:
        shown.notes.append(
            f"{declared.more:,} more files match what the step declares. They are not"
            " listed; name fewer files in the step."
        )


def _show_missed(
    shown: ShownFiles, missed: Mapping[str, Ranges], matched: Collection[str]
) -> None:
    """Show what the last attempt missed of partly shown files, and missed files of
    patterns.
    """
    for path in sorted(missed):
        if path in shown.in_part:
            shown.add_lines(path, missed[path], _MISSED)
        elif path in matched and path not in shown.seen:
            shown.add(path, _MISSED, added=True, lines=missed[path])
    shown.share_room()


def _add_matched(
    shown: ShownFiles,
    declared: DeclaredFiles,
    choices: Choices,
    always: Collection[str],
) -> list[str]:
    """Add files of patterns and folders. Return their paths. Reports to the user how
    many others match.
    """
    matched = []
    no_text = []
    for path in declared.matched:
        # files to delete need not be read
        if path in always or choices.leaves_out(path) or declared.may_delete(path):
            continue
        if why := shown.reader.hidden.why(path):
            shown.name(path, why)
        elif shown.reader.read(path) is None:
            no_text.append(path)
        else:
            shown.add(path, _DECLARED, Priority.PATTERN)
            matched.append(path)
    shown.list_hidden(no_text, "not text, or too large")
    return matched


def _list_meanings(shown: ShownFiles, unclear: Iterable[NamedFile]) -> None:
    """List the candidates for an ambiguous name, unless one is shown."""
    for file in unclear:
        if shown.shows_any(file.paths):
            continue
        more = len(file.paths) - _MOST_MEANT
        paths = ", ".join(file.paths[:_MOST_MEANT])
        if more > 0:
            paths += f" or {more} more"
        shown.name(file.name, f"it may be {paths}")


def _files_of_dependencies(state: ExecutionState, step: PlanStep) -> list[str]:
    paths = []
    for number in step.dependencies:
        done = state.step(number)
        paths += [*done.files_created, *done.files_modified]
    return paths


def _named(
    shown: ShownFiles, text: str, paths: set[str], choices: Choices, declared: set[str]
) -> tuple[list[str], list[NamedFile]]:
    """Return named files, and ambiguous names. A hidden file is only mentioned."""
    root = shown.root
    # including files that git ignores, but not this program's
    for name in set(names_in(text)) - paths:
        with suppress(CddError):
            path = locate(root, name)
            if path.parts[:1] != (".cdd",) and (root / path).is_file():
                paths.add(str(path))
    named, unclear = list[str](), list[NamedFile]()
    for file in named_files(text, paths):
        first, *others = file.paths
        is_known = first in declared or shown.shows_any([first])
        if others:
            unclear.append(file)
        elif choices.leaves_out(first):
            continue
        elif not is_known and (why := shown.reader.hidden.why_by_name(first)):
            shown.name(first, why)
        else:
            named.append(first)
    return named, unclear


def tree(entries: Sequence[WalkEntry], room: TokenBudget, lines: int) -> str:
    """Return the project as a tree of about `lines` lines; empty if it does not fit."""
    return room.take_text(
        f"# Files of the project\n\n{fenced(plain_tree(entries, lines), 'text')}", TREE
    )


TREE = "the tree of the project's files"
"""The tree's name among omitted parts."""
TREE_LINES = 1_000
TREE_LINES_WITH_TOOLS = 200
"""Fewer, because a model with tools can list folders, and receives the tree in each
round.
"""


def _checked_files(root: Path, step: PlanStep) -> list[str]:
    """Return files in the step's checks: the model cannot satisfy a test that it cannot
    read.
    """
    words: list[str] = []
    for check in step.checks or ():
        with suppress(ValueError):
            words += shlex.split(check)
    names = [TestId.parse(word).file for word in words if not word.startswith("-")]
    paths = [path_inside(root, name) for name in names]
    return [path for path in paths if path and (root / path).is_file()]


def _may_show(shown: ShownFiles, name: str) -> bool:
    path = path_inside(shown.root, name)
    return (
        path is not None
        and (shown.root / path).is_file()
        and not shown.reader.hidden.why_by_name(path)
    )
