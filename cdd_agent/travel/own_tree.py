"""A tree of its own for a run: a git worktree on a branch `cdd/SLUG`, which leaves the person's files alone.

It is in `.cdd/runs/SLUG/tree`, and is a project as any other: the run's record and state are in it until it has landed.
What tests need and git does not have is found there too: `.venv` and `node_modules` are links to the person's.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from cdd_agent.engine.record import RunRecord
from cdd_agent.engine.whereabouts import OwnTreeMade, load_own_tree
from cdd_agent.errors import BadInput
from cdd_agent.events import About, Emit, Notice, Tone
from cdd_agent.files.atomic import read_bytes, remove, write_atomic
from cdd_agent.git.repository import repository_of
from cdd_agent.git.worktree import Trees
from cdd_agent.process.programs import find_program, own_python
from cdd_agent.process.run import run_command
from cdd_agent.tickets.store import Ticket

SHARED = (".venv", "venv", "node_modules")
"""Folders of the project that its tests need, and that are linked."""
_WHERE_FROM = """\
import importlib.util, os, sys
here = os.getcwd()
sys.path[:] = [path for path in sys.path if path and os.path.abspath(path) != here]
for name in sys.argv[1:]:
    try:
        found = importlib.util.find_spec(name)
    except Exception:
        continue
    places = list(found.submodule_search_locations or ()) if found else []
    print(name, os.path.realpath(places[0]) if places else "")
"""
_SECONDS = 20.0


@dataclass(frozen=True)
class OwnTree:
    """Of one ticket's run."""

    record: RunRecord
    """In the person's own tree."""
    ticket: Ticket
    trees: Trees
    prefix: str
    """The project's folder in the repository; empty where it is the top."""

    @classmethod
    async def of(cls, record: RunRecord, ticket: Ticket) -> OwnTree:
        """Raises `BadInput` where there is no repository, or none with a commit."""
        repository = await repository_of(record.root)
        if repository is None or await repository.head() is None:
            raise BadInput(
                "A tree of its own takes a git repository with a commit", hint="`git init`, and commit what there is."
            )
        prefix = record.root.relative_to(repository.top).as_posix()
        return cls(record, ticket, Trees.of(repository.top), "" if prefix == "." else prefix)

    @property
    def place(self) -> Path:
        return self.record.folder / "tree"

    @property
    def root(self) -> Path:
        """The project in it."""
        return self.place / self.prefix

    @property
    def branch(self) -> str:
        return f"cdd/{self.record.slug}"

    @property
    def is_variant(self) -> bool:
        """The run is one of several of its ticket, beside the ticket's own."""
        return self.record.slug != self.ticket.slug

    @property
    def ticket_folder(self) -> Path:
        return self.root / self.ticket.folder.relative_to(self.record.root)

    async def make(self, emit: Emit, base: str | None = None) -> None:
        """Make it, from this commit or where the person's branch is, or see that it is as it has to be. Raises
        `BadInput`."""
        made = load_own_tree(self.record.folder)
        if made is None or not made.is_made or not self.place.exists():
            await self._make_afresh(made, emit, base)
        self.equip(self.place)
        for path in (self.ticket.spec_path, self.ticket.plan_path):  # the person's own are what counts
            content = read_bytes(path)
            if content is not None and read_bytes(self.ticket_folder / path.name) != content:
                write_atomic(self.ticket_folder / path.name, content)
        settings = Path(".cdd", "config.yaml")
        content = read_bytes(self.record.root / settings)
        if content is not None and not (self.root / settings).exists():
            write_atomic(self.root / settings, content)

    async def _make_afresh(self, made: OwnTreeMade | None, emit: Emit, base: str | None) -> None:
        if not self.is_variant and (self.ticket.state_path.exists() or self.record.state.exists()):
            raise BadInput(
                f"A run of {self.ticket.slug} was begun in your own tree",
                hint="It goes on there, without `--worktree`.",
            )
        if made is not None and made.is_made:
            raise BadInput(
                f"{self.place} is gone, and with it the record of the run",
                hint=f"What it committed is on {self.branch}. To begin anew remove {self.record.folder / 'tree.json'} "
                "and that branch.",
            )
        there, head = (
            await self.trees.commit_of(f"refs/heads/{self.branch}"),
            await self.trees.commit_of(base or "HEAD"),
        )
        if head is None:
            raise BadInput(f"There is no commit {base}")
        if there is not None and (made is None or there != made.base):
            raise BadInput(f"There is a branch {self.branch} already", hint="Rename or delete it.")
        if there is not None:  # of one that was killed before it was ready
            await self.trees.delete_branch(self.branch)
        making = OwnTreeMade(branch=self.branch, base=head)
        making.keep(self.record.folder)
        await self.trees.add(self.place, head, self.branch)
        if self.is_variant:  # what the person has committed of their own run is not its
            remove(self.ticket_folder / self.ticket.state_path.name)
        making.model_copy(update={"is_made": True}).keep(self.record.folder)
        text = f"The run has a tree of its own, on the branch {self.branch}; your files are left alone."
        if await self.trees.changed(self.trees.top, untracked=False):
            text += " What you have changed and not committed is not in it."
        emit(Notice(text, about=About.OWN_TREE))

    def equip(self, place: Path) -> None:
        """Link what tests need into a tree, where it has nothing of that name. Raises `BadInput`."""
        for name in SHARED:
            source, link = self.record.root / name, place / self.prefix / name
            if source.is_dir() and not os.path.lexists(link):
                try:
                    link.symlink_to(source, target_is_directory=True)
                except OSError as error:
                    raise BadInput(f"{link} could not be made: {error.strerror or error}") from error

    async def expect_own_packages(self, place: Path, emit: Emit) -> None:
        """See that tests in a tree import its own packages, and not the person's that are installed in editable mode.

        Where they would, the tree's come first on PYTHONPATH of this process and what it starts, and that is told.
        Raises `BadInput` where they would all the same.
        """
        root = place / self.prefix
        first, names = await own_packages_first(root, self.trees.top)
        if not names:
            return
        os.environ["PYTHONPATH"] = first
        text = f"{', '.join(names)} is installed from your own tree (editable). In the run's tree PYTHONPATH puts its"
        text += " own first."
        emit(Notice(text, Tone.WARNING, about=About.EDITABLE_INSTALL))


async def own_packages_first(root: Path, top: Path) -> tuple[str, tuple[str, ...]]:
    """A PYTHONPATH by which the packages in `root` come before those installed from below `top`, and the names of the
    packages that it is needed for. Raises `BadInput` where they would come from there all the same."""
    sources = [folder for folder in (root / "src", root) if folder.is_dir()]
    packages = {init.parent.name: init.parent.parent for folder in sources for init in folder.glob("*/__init__.py")}
    packages = {name: folder for name, folder in packages.items() if name.isidentifier()}
    python = own_python(root) or find_program("python") or find_program("python3") or Path(sys.executable)
    before = os.environ.get("PYTHONPATH", "")
    if not packages or not (elsewhere := await _elsewhere(python, root, top, before, [*packages])):
        return before, ()
    first = os.pathsep.join(filter(None, (*dict.fromkeys(str(packages[name]) for name in elsewhere), before)))
    if still := await _elsewhere(python, root, top, first, [*elsewhere]):
        raise BadInput(
            f"Tests in the run's tree would import {', '.join(sorted(still))} from {still[min(still)]}",
            hint="It is installed so that nothing can come before. Run without `--worktree`, or uninstall it.",
        )
    return first, tuple(sorted(elsewhere))


async def _elsewhere(python: Path, root: Path, top: Path, path: str, packages: list[str]) -> dict[str, Path]:
    """The packages that would come from below `top`, and from where."""
    env = {"PYTHONPATH": path} if path else {}
    found = await run_command([str(python), "-c", _WHERE_FROM, *packages], cwd=root, limit=_SECONDS, env=env)
    entries = (line.split(" ", 1) for line in found.stdout.splitlines() if " " in line)
    places = {name: Path(place) for name, place in entries if place}
    return {
        name: place
        for name, place in places.items()
        if place.is_relative_to(top)
        and not place.is_relative_to(root)
        and {"site-packages", "dist-packages"}.isdisjoint(place.parts)  # a copy in an environment is no source
    }
