"""The files that a step's prompt shows: which ones, and each of them whole or only named."""

import shlex
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath

from cdd_agent.dialogue.token_budget import TokenBudget
from cdd_agent.errors import CddError
from cdd_agent.files.atomic import digest, read_bytes
from cdd_agent.files.named import NamedFile, named_files, names_in
from cdd_agent.files.paths import PathRefused, confine
from cdd_agent.files.read import holds_secrets, locate
from cdd_agent.files.walk import Kind, WalkEntry
from cdd_agent.llm.pictures import (
    MOST,
    PictureUnusable,
    is_meant_as_picture,
    media_type,
    picture_of,
    picture_tokens,
)
from cdd_agent.llm.port import Picture
from cdd_agent.project.context import repo_tree
from cdd_agent.sanitize import fenced
from cdd_agent.tickets.plan_step import PlanStep
from cdd_agent.tickets.state import ExecutionState
from cdd_agent.verification.test_id import TestId

_LARGEST_SHOWN = 200_000
"""Bytes of a file that is shown; a larger one is named, never half shown."""
_MOST_NAMED = 200_000
"""Bytes of the files together that are shown because the step's words name them."""
_MOST_RELATED = 60_000
"""Bytes of those that are shown because the step depends on the steps that changed them."""
_MOST_MEANT = 5
"""Files that are listed where a name may mean several."""


class ShownFiles:
    """The files of a prompt: each whole, or only named."""

    def __init__(self, root: Path, room: TokenBudget) -> None:
        self._root, self._room = root, room
        self._parts: list[str] = []
        self._met: set[str] = set()
        self.seen: dict[str, str | None] = {}
        """The contents of those that are shown, as digests; None for one that is not there."""
        self.pictures: list[Picture] = []
        """Those among them that go with the prompt; what they hold is nothing that a reply could change."""
        self.notes: list[str] = []
        """Things that people should know of them, a sentence each."""

    @property
    def text(self) -> str:
        return "# Present files\n\n" + "\n\n".join(self._parts) if self._parts else ""

    def add(self, name: str) -> None:
        """Show a file, or say why it is not shown; not a second time."""
        try:
            path = str(confine(self._root, name))
        except PathRefused as refusal:
            self._say(f"{refusal.message}.", name)
            return
        if path in self._met:
            return
        self._met.add(path)
        place = self._root / path
        if place.is_dir():
            self._say(f"{path} is a folder.", path)
            return
        data = read_bytes(place)
        try:
            if data is None:
                self.seen[path] = None
                self._say(f"{path} does not exist yet.", path)
            elif media_type(data) or is_meant_as_picture(path):
                self._add_picture(path, picture_of(path, data))
            elif len(data) > _LARGEST_SHOWN:
                self._tell_unshown(path, f"it has over {_LARGEST_SHOWN:,} bytes")
            else:
                part = f"{path}:\n{fenced(data.decode('utf-8-sig'), path.rpartition('.')[2] if '.' in path else '')}"
                if self._say(part, f"{path} ({len(data):,} bytes)"):
                    self.seen[path] = digest(data)
        except PictureUnusable as error:
            self._tell_unshown(path, error.message)
        except UnicodeDecodeError:
            self._tell_unshown(path, "it is not UTF-8 text")

    def _tell_unshown(self, path: str, why: str) -> None:
        self._tell(path, f"{path} exists and cannot be shown: {why}.", why)

    def _add_picture(self, path: str, picture: Picture) -> None:
        if len(self.pictures) == MOST:
            self._tell(path, f"{path} is a picture and is not shown.", f"a prompt has at most {MOST} pictures")
        elif not self._room.takes(picture_tokens(picture)):
            self._room.leave_out(f"the picture {path}")
        elif self._say(f"{path} is a picture, and comes with this message. No reply can change it.", path):
            self.pictures.append(picture)

    def add_some(self, paths: Iterable[str], most: int) -> None:
        """Show files up to so many bytes together, and name those that would be more."""
        for path in paths:
            if path in self._met:
                continue
            size = (self._root / path).stat().st_size
            if most < size <= _LARGEST_SHOWN:
                self._met.add(path)
                why = f"it has {size:,} bytes, which is too much beside the others"
                self._tell(path, f"{path} exists and is not shown: {why}.", why)
                continue
            self.add(path)
            most -= size if path in self.seen else 0

    def name(self, name: str, why: str) -> None:
        """Say of a file that the step speaks of why it is not shown."""
        if name not in self._met:
            self._met.add(name)
            self._tell(name, f"{name} is not shown: {why}.", why)

    def _tell(self, name: str, part: str, why: str) -> None:
        """Say it to the model and to people."""
        self._say(part, name)
        self.notes.append(f"{name} is not shown to the model: {why}.")

    def _say(self, part: str, name: str) -> bool:
        """Whether there is room for it."""
        if is_said := bool(self._room.part(part, name)):
            self._parts.append(part)
        return is_said


def show_files(
    shown: ShownFiles,
    root: Path,
    state: ExecutionState,
    step: PlanStep,
    *,
    guidance: str = "",
    also_show: frozenset[str] = frozenset(),
    found: Iterable[WalkEntry] = (),
) -> None:
    """Show what a step needs, the most important first: its own files, those that an attempt missed, those of its
    check, those that its words name among what is `found` in the project, the work of steps that it depends on.

    What holds secrets is shown only as a file of the step or of its check: nobody else but its author says so.
    """
    missed = (path for path in sorted(also_show) if not _leads_to_secrets(root, path))
    for path in (*(file.path for file in step.files_affected), *missed, *_checked_files(root, step)):
        shown.add(path)
    named: list[str] = []
    unclear: list[NamedFile] = []
    for file in _named(root, step, guidance, found):
        path, *others = file.paths
        if others:
            unclear.append(file)
        elif path not in shown.seen and _leads_to_secrets(root, path):
            shown.name(path, "by its name it holds secrets")
        else:
            named.append(path)
    shown.add_some(named, _MOST_NAMED)
    for file in unclear:
        if shown.seen.keys().isdisjoint(file.paths):
            more = len(file.paths) - _MOST_MEANT
            some = ", ".join(file.paths[:_MOST_MEANT]) + (f" or {more} more" if more > 0 else "")
            shown.name(file.name, f"it may be {some}")
    before = (state.of(number) for number in step.dependencies)
    related = [path for done in before for path in (*done.files_created, *done.files_modified)]
    there = (path for path in related if _is_file(root, path) and not _leads_to_secrets(root, path))
    shown.add_some(there, _MOST_RELATED)


def _named(root: Path, step: PlanStep, guidance: str, found: Iterable[WalkEntry]) -> list[NamedFile]:
    """The files that a step's words, or those of who guides it, name."""
    text = "\n\n".join((step.title, step.description, *(file.note for file in step.files_affected), guidance))
    paths = {entry.text for entry in found if entry.kind is not Kind.FOLDER}
    for name in set(names_in(text)) - paths:  # what git ignores is the project's, too, but not this program's own
        with suppress(CddError):
            path = locate(root, name)
            if path.parts[:1] != (".cdd",) and (root / path).is_file():
                paths.add(name)
    return named_files(text, paths)


def tree(root: Path, found: Sequence[WalkEntry], room: TokenBudget) -> str:
    """The project's files as a tree; empty where there is no room for it."""
    _, _, inside = repo_tree(root, found).partition("\n")  # the root's name differs where a run is replayed
    text = f"# Files of the project\n\n{fenced(inside, 'text')}"
    return room.part(text, "the tree of the project's files")


def _checked_files(root: Path, step: PlanStep) -> list[str]:
    """Files that the step's own check names: its author cannot aim at a test that they cannot read."""
    try:
        words = shlex.split(step.verify or "")
    except ValueError:
        return []
    names = [TestId.parse(word).file for word in words]
    return [name for name in names if not name.startswith("-") and _is_file(root, name)]


def _is_file(root: Path, name: str) -> bool:
    try:
        return (root / confine(root, name)).is_file()
    except PathRefused:
        return False


def _leads_to_secrets(root: Path, name: str) -> bool:
    """By its own name, or by that of what it is a link to."""
    return holds_secrets(PurePosixPath(name).name) or holds_secrets((root / name).resolve().name)
