"""Trees beside the person's own, each for one attempt at a step: git worktrees made
from a checkpoint of the run.

They are in `.cdd/runs/SLUG/side`, with what is known of the doings in them, and are
gone when their step is. Nothing in them is needed again: what was paid for is in the
attempt's own folder. Those of a run that was killed are removed before anything else is
done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.engine.ledger import Ledger
from cdd_agent.engine.record import RunRecord
from cdd_agent.errors import BadInput
from cdd_agent.files.atomic import remove_folder, sync_folder
from cdd_agent.files.json_file import stamp
from cdd_agent.git.checkpoint import Checkpoint
from cdd_agent.git.repository import repository_of
from cdd_agent.git.worktree import Trees
from cdd_agent.project.tree_needs import SHARED, OwnPackages, link_shared, own_packages
from cdd_agent.threads import to_its_end

_SIDE = "side"


class SideTree(Struct, frozen=True):
    """One of them, ready to be worked in."""

    place: Path
    record: RunRecord
    """Of the project in it: its root, and where what is done to its files is kept."""
    ledger: Ledger
    packages: OwnPackages

    @property
    def root(self) -> Path:
        return self.record.root


class NoSideTrees(Exception):
    """There can be no trees for steps. The text says why."""


class SideTrees(Struct):
    """Those of one run."""

    record: RunRecord
    """In the person's own tree."""
    ledger: Ledger
    trees: Trees
    head: str
    """The commit that they are on."""
    prefix: str
    """The project's folder in the repository; empty where it is the top."""
    env: Mapping[str, str]
    """The variables of the run's commands."""
    _made: int = 0
    _packages: dict[frozenset[str], OwnPackages] = field(default_factory=dict)
    """By the names of the packages that a tree has, those that have to be told where
    they are.
    """
    _one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)

    @classmethod
    async def of(cls, ledger: Ledger, env: Mapping[str, str]) -> SideTrees:
        """Prepare the trees of a run. Raises `NoSideTrees` without a git repository or
        a commit, or if there are repositories below: a tree would not have their files.
        """
        record = ledger.record
        repository = await repository_of(record.root)
        head = await repository.head() if repository is not None else None
        checkpoints = await ledger.open()
        if repository is None or head is None or checkpoints.snapshots.is_private:
            raise NoSideTrees("side by side takes a git repository with a commit")
        if checkpoints.has_inner:
            raise NoSideTrees(
                "side by side does not work with submodules or other repositories"
                " inside the project"
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
        """The project as it is now, to make trees from; with these files, also if they
        are ignored. Raises `GitUnusable` or `BadInput`.
        """
        self._begin(self.record.folder / _SIDE)
        return await (await self.ledger.open()).take(f"{_SIDE}/{stamp()}-base", also)

    async def make(self, step: int, base: Checkpoint) -> SideTree:
        """Make one for the step with this folder, with all files as they are in a
        checkpoint. Raises `GitUnusable` or `BadInput`.
        """
        self._made += 1  # the step's last one may still be on its way out
        folder = self.record.folder / _SIDE / f"step-{step:02}-{self._made}"
        place, root = folder / "tree", folder / "tree" / self.prefix
        self._begin(folder)
        async with self._one_at_a_time:  # git names them itself
            await self.trees.add(place, self.head, is_empty=not self.prefix)
        if self.prefix:  # what is around the project is as the last commit has it
            await to_its_end(partial(remove_folder, root), name="cleared")
            _make(root)
        record = replace(self.record, root=root, folder=folder)
        main, name = await self.ledger.open(), f"{_SIDE}/{folder.name}"
        checkpoints = main.beside(place, folder, name, SHARED)
        indexed = [] if self.prefix else [self.trees.expect_files(place, self.head)]
        await asyncio.gather(checkpoints.check_out(base), *indexed)
        link_shared(self.record.root, root)
        names = frozenset(
            init.parent.name
            for init in (*root.glob("*/__init__.py"), *root.glob("src/*/__init__.py"))
        )
        if names not in self._packages:
            self._packages[names] = (
                await own_packages(root, self.trees.top, self.env)
                if names
                else OwnPackages()
            )
        return SideTree(
            place,
            record,
            Ledger(record, self.ledger.leave_out, checkpoints),
            self._packages[names],
        )

    def _begin(self, folder: Path) -> None:
        """Where the folder is, there is something to be removed, also after a cut of
        power.
        """
        _make(folder)
        sync_folder(self.record.folder)

    async def remove(self, tree: SideTree) -> None:
        """Remove one, and what was kept of the doings in it. Raises `GitUnusable` or
        `BadInput`.
        """
        async with self._one_at_a_time:
            await self.trees.remove(tree.place)
        await to_its_end(partial(remove_folder, tree.record.folder), name="removed")


async def remove_all(ledger: Ledger) -> None:
    """Remove all that there are, whoever made them. Raises `GitUnusable` or
    `BadInput`.
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
            f"{folder} could not be made: {error.strerror or error}"
        ) from error
