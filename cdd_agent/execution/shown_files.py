"""The files that a step's prompt shows: which ones, and each of them whole or only named."""

import re
import shlex
from collections.abc import Collection
from pathlib import Path, PurePosixPath

from cdd_agent.dialogue.room import Room
from cdd_agent.harmless import fenced
from cdd_agent.tickets.plan import PlanStep
from cdd_agent.tickets.state import ExecutionState
from cdd_agent.workspace.context import repo_tree
from cdd_agent.workspace.files import digest, read_bytes
from cdd_agent.workspace.paths import PathRefused, confine
from cdd_agent.workspace.reading import holds_secrets

_LARGEST_SHOWN = 200_000
"""Bytes of a file that is shown; a larger one is named, never half shown."""
_MOST_RELATED = 60_000
"""Bytes of the files that are shown because a step is related to them."""
_QUOTED = re.compile(r"`([^`\s]+\.\w+)`")


class ShownFiles:
    """The files of a prompt: each whole, or only named."""

    def __init__(self, root: Path, room: Room) -> None:
        self._root, self._room = root, room
        self._parts: list[str] = []
        self.seen: dict[str, str | None] = {}
        """What is in those that are shown, as a digest; None for one that is not there."""
        self.notes: list[str] = []
        """What people should know of them, a sentence each."""

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
        if path in self.seen:
            return
        place = self._root / path
        if place.is_dir():
            self._say(f"{path} is a folder.", path)
            return
        data = read_bytes(place)
        text = _as_text(data)
        if data is None:
            self.seen[path] = None
            self._say(f"{path} does not exist yet.", path)
        elif text is None:
            why = f"it has over {_LARGEST_SHOWN:,} bytes" if len(data) > _LARGEST_SHOWN else "it is not UTF-8 text"
            self._say(f"{path} exists and cannot be shown: {why}.", path)
            self.notes.append(f"{path} is not shown to the model: {why}.")
        elif self._say(f"{path}:\n{fenced(text, _language(path))}", f"{path} ({len(data):,} bytes)"):
            self.seen[path] = digest(data)

    def _say(self, part: str, name: str) -> bool:
        """Whether there is room for it."""
        if is_said := bool(self._room.part(part, name)):
            self._parts.append(part)
        return is_said


def wanted_files(root: Path, state: ExecutionState, step: PlanStep, also_show: frozenset[str]) -> list[str]:
    """The files to show, the most important first: those of the step, those that an attempt missed, those of its check,
    and those it is related to: the work of steps that it depends on, and what its description names. What holds secrets
    is shown only as a file of the step or of its check: nobody else but its author says so."""
    own = [file.path for file in step.files_affected]
    missed = (path for path in sorted(also_show) if not _leads_to_secrets(root, path))
    wanted = [*own, *missed, *_checked_files(root, step)]
    before = (state.of(number) for number in step.dependencies)
    related = [path for done in before for path in (*done.files_created, *done.files_modified)]
    related += _QUOTED.findall(step.description)
    size = 0
    for path in related:
        if path in wanted or not _is_file(root, path) or _leads_to_secrets(root, path):
            continue
        size += (root / path).stat().st_size
        if size > _MOST_RELATED:
            break
        wanted.append(path)
    return list(dict.fromkeys(wanted))


def tree(root: Path, own: Collection[str], room: Room) -> str:
    """The project's files as a tree, without those of this program; empty where there is no room for it."""
    _, _, inside = repo_tree(root, (".cdd", *own)).partition("\n")  # the root's name differs where a run is replayed
    text = f"# Files of the project\n\n{fenced(inside, 'text')}"
    return room.part(text, "the tree of the project's files")


def _as_text(data: bytes | None) -> str | None:
    if data is None or len(data) > _LARGEST_SHOWN:
        return None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None


def _language(path: str) -> str:
    return path.rpartition(".")[2] if "." in path else ""


def _checked_files(root: Path, step: PlanStep) -> list[str]:
    """Files that the step's own check names: its author cannot aim at a test that they cannot read."""
    try:
        words = shlex.split(step.verify or "")
    except ValueError:
        return []
    names = [word.partition("::")[0] for word in words]
    return [name for name in names if not name.startswith("-") and _is_file(root, name)]


def _is_file(root: Path, name: str) -> bool:
    try:
        return (root / confine(root, name)).is_file()
    except PathRefused:
        return False


def _leads_to_secrets(root: Path, name: str) -> bool:
    """By its own name, or by that of what it is a link to."""
    return holds_secrets(PurePosixPath(name).name) or holds_secrets((root / name).resolve().name)
