"""A project's rules for agents: AGENTS.md and similar files."""

import os
from collections.abc import Collection, Iterator
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.errors import CddError
from cdd_agent.files.read import read_source
from cdd_agent.project.unfilled import without_unfilled
from cdd_agent.text.sanitize import sanitize_for_display

NAMES = ("AGENTS.md", "CLAUDE.md", "CDD.md")
LONGEST = 20_000
"""Maximum characters of one file to use."""
LONGEST_TOGETHER = 40_000
RULES_FOR_AGENTS = "the project's rules for agents"
"""Their name in messages."""
_LONGEST_BLANKS = 2_000
"""Maximum characters of a file's blanks."""


class RulesFile(Struct, frozen=True):
    """The common text of one or more files of rules."""

    name: str
    """Relative to the project's root, such as `../AGENTS.md`."""
    text: str
    """Without blanks."""
    paths: frozenset[str] = frozenset()
    """Files in the project with this text, relative to the root."""


class ProjectRules(Struct, frozen=True):
    files: tuple[RulesFile, ...] = ()
    """Nearest to the root first."""
    notes: tuple[str, ...] = ()
    unfilled: frozenset[str] = frozenset()
    """Paths of files in which the user has filled in nothing."""

    @property
    def text(self) -> str:
        parts = [f"## {file.name}\n\n{file.text}" for file in self.files]
        return "\n\n".join(parts)

    @property
    def section(self) -> str:
        """A part of a prompt; empty without rules."""
        if not self.files:
            return ""
        return f"# The project's rules\n\n{self.text}"

    @property
    def paths(self) -> frozenset[str]:
        """Files that a prompt with the rules need not show."""
        return self.unfilled.union(*(file.paths for file in self.files))

    def pointing_to(self, shown: Collection[str]) -> "ProjectRules":
        """Return the rules without the texts of files that a prompt shows."""
        files = []
        for file in self.files:
            if place := min(file.paths.intersection(shown), default=""):
                text = f"They are in {place}, which is shown as a file."
                files.append(replace(file, text=text))
            else:
                files.append(file)
        return replace(self, files=tuple(files))


def project_rules(root: Path) -> ProjectRules:
    """Read the rules at the root, then in the folders around it in the repository.
    Equal files, often links, count once.
    """
    reading = _Reading(root.resolve())
    for depth, folder in enumerate(_folders_around(root.resolve())):
        for name in NAMES:
            if os.path.lexists(folder / name):
                reading.add(folder, name, depth)
    files = tuple(reading.files.values())
    return ProjectRules(files, tuple(reading.notes), frozenset(reading.unfilled))


def _folders_around(root: Path) -> Iterator[Path]:
    folders = (root, *root.parents)
    for top, folder in enumerate(folders):
        if (folder / ".git").exists():
            yield from folders[: top + 1]
            return
    yield root


class _Reading(Struct):
    root: Path
    files: dict[str, RulesFile] = field(default_factory=dict)
    """By text without trailing spaces."""
    notes: list[str] = field(default_factory=list)
    unfilled: set[str] = field(default_factory=set)
    left_out: set[str] = field(default_factory=set)
    room: int = LONGEST_TOGETHER

    def add(self, folder: Path, name: str, depth: int) -> None:
        """Read one file of a folder that is `depth` levels above the root."""
        shown = sanitize_for_display(f"{'../' * depth}{name}")
        try:
            source = read_source(folder, name, limit=LONGEST + _LONGEST_BLANKS)
        except CddError as error:
            self.notes.append(f"Skipped the rules in {shown}: {error.message}.")
            return
        read = source.text.replace("\r\n", "\n").strip()
        if source.is_folder or not read:
            return
        paths = self._paths_of(folder / name)
        text = without_unfilled(read)
        if not text:
            self.unfilled |= paths
            return
        key = "\n".join(line.rstrip() for line in text.splitlines())
        if key in self.files:
            rule = self.files[key]
            self.files[key] = replace(rule, paths=rule.paths | paths)
        elif key not in self.left_out:
            is_cut = source.cut or len(text) > LONGEST
            self._add_text(key, RulesFile(shown, text, paths), is_cut=is_cut)

    def _add_text(self, key: str, file: RulesFile, *, is_cut: bool) -> None:
        if not self.room:
            self.left_out.add(key)
            self.notes.append(
                f"Skipped the rules in {file.name}: together, rules may have"
                f" {LONGEST_TOGETHER:,} characters."
            )
            return
        if is_cut or len(file.text) > self.room:
            cut = file.text[:LONGEST].rstrip()
            file = replace(file, text=cut[: self.room])
            self.notes.append(
                f"Shortened the rules in {file.name}: only the first"
                f" {len(file.text):,} characters are used."
            )
        self.room -= len(file.text)
        self.files[key] = file

    def _paths_of(self, file: Path) -> frozenset[str]:
        paths = set()
        for place in (file, file.resolve()):
            if place.is_relative_to(self.root):
                paths.add(place.relative_to(self.root).as_posix())
        return frozenset(paths)
