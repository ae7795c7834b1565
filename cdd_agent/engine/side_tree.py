"""Side trees: git worktrees made from a run's checkpoint, one for each step.

They are in `.cdd/runs/SLUG/side`, with their checkpoints, and are removed after the
step: paid work is in the attempt's folder. Trees of a killed run are removed when it is
opened.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.engine.ledger import Ledger, literal_patterns
from cdd_agent.engine.record import RunRecord
from cdd_agent.errors import BadInput
from cdd_agent.files.atomic import remove_folder, sync_folder
from cdd_agent.files.json_file import stamp
from cdd_agent.git.checkpoint import Checkpoint
from cdd_agent.git.repository import repository_of
from cdd_agent.git.worktree import Trees
from cdd_agent.project.own_packages import (
    OwnPackages,
    own_packages,
    package_names,
)
from cdd_agent.project.tree_needs import Equipment
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.threads import to_its_end

_SIDE = "side"


class SideTree(Struct, frozen=True):
    place: Path
    record: RunRecord
    """The project's record in the tree: its root, and the folder for its checkpoints.
    """
    ledger: Ledger
    packages: OwnPackages

    @property
    def root(self) -> Path:
        return self.record.root


class NoSideTrees(Exception):
    """Why side trees are impossible."""


class SideTrees(Struct):
    record: RunRecord
    ledger: Ledger
    trees: Trees
    head: str
    """The commit checked out in the trees."""
    prefix: str
    """The project's folder in the repository; empty for the top folder."""
    env: Mapping[str, str]
    """Variables of the run's commands."""
    _made: int = 0
    _packages: dict[frozenset[str], OwnPackages] = field(default_factory=dict)
    """Package names → settings that make Python find the tree's packages."""
    _equipment: Equipment | None = None
    _one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)

    @classmethod
    async def of(cls, ledger: Ledger, env: Mapping[str, str]) -> SideTrees:
        """Prepare a run's trees. Raises `NoSideTrees` without a git repository or
        commit, or with repositories below, whose files a tree would lack.
        """
        record = ledger.record
        repository = await repository_of(record.root)
        head = await repository.head() if repository is not None else None
        checkpoints = await ledger.open()
        if repository is None or head is None or checkpoints.snapshots.is_private:
            raise NoSideTrees(
                "running side by side needs a git repository with a commit"
            )
        if checkpoints.has_inner:
            raise NoSideTrees(
                "running side by side does not work with submodules or"
                " repositories inside the project"
            )
        prefix = record.root.relative_to(repository.top).as_posix()
        return cls(
            record,
            ledger,
            Trees.of(repository.top),
            head,
            "" if prefix == "." else prefix,
            env,
        )

    async def base(self, also: Iterable[str]) -> Checkpoint:
        """Take the checkpoint for trees. It contains `also`, even if ignored by git.
        Raises `GitUnusable` or `BadInput`.
        """
        self._begin(self.record.folder / _SIDE)
        return await (await self.ledger.open()).take(f"{_SIDE}/{stamp()}-base", also)

    async def make(self, step: int, base: Checkpoint) -> SideTree:
        """Make a tree with a checkpoint's files, for the step with this folder. Raises
        `GitUnusable` or `BadInput`.
        """
        self._made += 1  # the previous tree may still exist
        folder = self.record.folder / _SIDE / f"step-{step:02}-{self._made}"
        place, root = folder / "tree", folder / "tree" / self.prefix
        self._begin(folder)
        async with self._one_at_a_time:  # git chooses the names of worktrees
            await self.trees.add(place, self.head, is_empty=not self.prefix)
        if self.prefix:  # files outside the project are the last commit's
            await to_its_end(partial(remove_folder, root), name="cleared")
            _make(root)
        record = replace(self.record, root=root, folder=folder)
        main, name = await self.ledger.open(), f"{_SIDE}/{folder.name}"
        equipment = await self._find_equipment()
        links = literal_patterns(equipment.installed)
        checkpoints = main.beside(place, folder, name, links)
        indexed = [] if self.prefix else [self.trees.expect_files(place, self.head)]
        await asyncio.gather(checkpoints.check_out(base), *indexed)
        needs = await equipment.link_into(root)
        packages = await self._find_packages(root, needs.python_bases)
        ledger = Ledger(record, self.ledger.leave_out, checkpoints)
        return SideTree(place, record, ledger, packages)

    async def _find_equipment(self) -> Equipment:
        if self._equipment is None:
            self._equipment = await Equipment.find(self.record.root)
        return self._equipment

    async def _find_packages(self, root: Path, bases: Sequence[str]) -> OwnPackages:
        names = package_names(root, bases)
        if not names:
            return OwnPackages()
        if names not in self._packages:
            top, env = self.trees.top, self.env
            self._packages[names] = await own_packages(root, top, env, bases)
        return self._packages[names]

    def _begin(self, folder: Path) -> None:
        """Create the folder before the tree: if it exists, even after a power cut,
        there is something to remove.
        """
        _make(folder)
        sync_folder(self.record.folder)

    async def remove(self, tree: SideTree) -> None:
        """Remove a tree and its checkpoints. Raises `GitUnusable` or `BadInput`."""
        async with self._one_at_a_time:
            await self.trees.remove(tree.place)
        await to_its_end(partial(remove_folder, tree.record.folder), name="removed")


async def remove_all(ledger: Ledger) -> None:
    """Remove a run's side trees, also those of a killed process. Raises `GitUnusable`
    or `BadInput`.
    """
    folder = ledger.record.folder / _SIDE
    if not folder.exists():
        return
    repository = await repository_of(ledger.record.root)
    if repository is not None:
        trees = Trees.of(repository.top)
        for step in folder.iterdir():
            await trees.remove(step / "tree")
    await (await ledger.open()).forget(_SIDE)
    await to_its_end(partial(remove_folder, folder), name="removed")


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(
            f"{folder} could not be created: {error.strerror or error}",
            refusal=Refusal.DISK,
        ) from error
