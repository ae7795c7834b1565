"""A separate git worktree for a run, on a branch `cdd/SLUG`, so that the user's files
do not change.

It is in `.cdd/runs/SLUG/tree` and is an ordinary project: it has the run's record and
state until landing. Folders that tests need and git lacks, such as `.venv` and
`node_modules`, are links to the user's.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.engine.lock import locked
from cdd_agent.engine.record import RunRecord
from cdd_agent.engine.renamed_ticket import expect_no_tree_of_former_name
from cdd_agent.engine.whereabouts import TREE, OwnTreeMade, load_own_tree
from cdd_agent.errors import BadInput
from cdd_agent.events.notices import Notice, NoticeKind, Tone
from cdd_agent.events.stream import Emit
from cdd_agent.files.atomic import read_bytes, remove, write_atomic
from cdd_agent.git.repository import Repository, repository_of
from cdd_agent.git.worktree import Trees
from cdd_agent.project.own_packages import own_packages
from cdd_agent.project.tree_needs import Equipment, add_files, load_tree_needs
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.settings.config import PROJECT_FILE
from cdd_agent.threads import in_thread
from cdd_agent.tickets.store import Ticket


class OwnTree(Struct, frozen=True):
    record: RunRecord
    """In the user's tree."""
    ticket: Ticket
    trees: Trees
    repository: Repository
    """The user's, as it was when the tree was opened."""
    prefix: str
    """The project's folder in the repository, or empty."""

    @classmethod
    async def open(cls, record: RunRecord, ticket: Ticket) -> OwnTree:
        """Raises `BadInput` if there is no repository with a commit."""
        repository = await repository_of(record.root)
        if repository is None or await repository.head() is None:
            raise BadInput(
                "A worktree needs a git repository with a commit",
                hint="Run `git init` and commit your files.",
                refusal=Refusal.GIT_UNUSABLE,
            )
        prefix = record.root.relative_to(repository.top).as_posix()
        if prefix == ".":
            prefix = ""
        return cls(record, ticket, Trees.of(repository.top), repository, prefix)

    @property
    def place(self) -> Path:
        return self.record.folder / TREE

    @property
    def root(self) -> Path:
        """The project's folder in the tree."""
        return self.place / self.prefix

    @property
    def branch(self) -> str:
        return f"cdd/{self.record.slug}"

    @property
    def is_variant(self) -> bool:
        """True if the run is an additional one of its ticket."""
        return self.record.folder != self.ticket.record

    @property
    def ticket_in_it(self) -> Ticket:
        return self.ticket.at(self.root)

    async def prepare(self, emit: Emit, base: str | None = None) -> Mapping[str, str]:
        """Prepare the tree for starting or resuming a run. Returns variables for its
        commands. Raises `BadInput`, also if another process works on the ticket.
        """
        self.record.prepare()
        with locked(self.record.folder, self.record.slug, emit):
            await self.make(emit, base)
            return await self.expect_own_packages(self.place, emit)

    async def make(self, emit: Emit, base: str | None = None) -> None:
        """Create the tree from `base` or the user's branch, or check the existing one.
        Raises `BadInput`.
        """
        made = load_own_tree(self.record.folder)
        if made is None or not made.is_made or not self.place.exists():
            self._expect_no_other_run(made)
            await self._create(made, emit, base)
        await self.equip(self.place)
        self._copy_ticket()

    def _copy_ticket(self) -> None:
        """Copy the spec and plan, which the user edits in the user's tree, and settings
        that are not in the commit.
        """
        old_spec = self.ticket_in_it.spec_path
        if old_spec.name != self.ticket.spec_path.name:
            remove(old_spec)
        for path in (self.ticket.spec_path, self.ticket.plan_path):
            content = read_bytes(path)
            place = self.ticket_in_it.folder / path.name
            if content is not None and read_bytes(place) != content:
                write_atomic(place, content)
        settings = read_bytes(self.record.root / PROJECT_FILE)
        if settings is not None and not (self.root / PROJECT_FILE).exists():
            write_atomic(self.root / PROJECT_FILE, settings)

    def _expect_no_other_run(self, made: OwnTreeMade | None) -> None:
        """Raise `BadInput` if a new tree would lose or repeat a run."""
        if not self.is_variant:
            if self.ticket.state_path.exists() or self.record.state.exists():
                raise BadInput(
                    f"A run of {self.ticket.slug} has begun in your working tree",
                    hint="Resume it there, without `--worktree`.",
                    refusal=Refusal.RUN_ELSEWHERE,
                )
            expect_no_tree_of_former_name(self.ticket)
        if made is not None and made.is_made:
            raise BadInput(
                f"{self.place} was deleted, and the record of the run with it",
                hint=(
                    f"Its commits are on {self.branch}. To start over, delete"
                    f" {self.record.folder / 'tree.json'} and that branch."
                ),
                refusal=Refusal.WORKTREE_UNUSABLE,
            )

    async def _create(
        self, made: OwnTreeMade | None, emit: Emit, base: str | None
    ) -> None:
        """Create the tree and its branch. `made` is from a killed start."""
        tip = await self.trees.commit_of(f"refs/heads/{self.branch}")
        start = await self.trees.commit_of(base or "HEAD")
        if start is None:
            raise BadInput(f"There is no commit {base}", refusal=Refusal.GIT_UNUSABLE)
        if tip is not None:
            if made is None or tip != made.base:
                raise BadInput(
                    f"There is a branch {self.branch} already",
                    hint="Rename or delete it.",
                    refusal=Refusal.WORKTREE_UNUSABLE,
                )
            await self.trees.delete_branch(self.branch)
        making = OwnTreeMade(branch=self.branch, base=start, prefix=self.prefix)
        making.keep(self.record.folder)
        await self.trees.add(self.place, start, self.branch)
        if self.is_variant:  # the state that the user committed belongs to another run
            remove(self.ticket_in_it.state_path)
        replace(making, is_made=True).keep(self.record.folder)
        text = (
            f"The run uses its own worktree, on the branch {self.branch}. Your files"
            " are not touched."
        )
        if await self.trees.changed(self.trees.top, untracked=False):
            text += " It does not contain your uncommitted changes."
        emit(Notice(text, kind=NoticeKind.OWN_TREE))

    async def equip(self, place: Path) -> None:
        """Link what tests need into a tree. A tree other than the run's also gets the
        ignored files of the run's tree. Raises `BadInput` or `GitUnusable`.
        """
        equipment = await Equipment.find(self.record.root, self.repository)
        needs = await equipment.link_into(place / self.prefix)
        if place != self.place:
            # the user may have copied files into the run's tree
            await in_thread(
                partial(add_files, self.place, place, needs.missing), name="missing"
            )

    async def expect_own_packages(self, place: Path, emit: Emit) -> Mapping[str, str]:
        """Return the variables with which tests import the tree's own packages instead
        of editable installs from the user's tree. Raises `BadInput` if no variable
        helps.
        """
        root = place / self.prefix
        bases = load_tree_needs(root).python_bases
        packages = await own_packages(root, self.trees.top, bases=bases)
        if packages.names:
            text = (
                f"{', '.join(packages.names)} is installed from your working tree"
                " (editable). In the run's tree PYTHONPATH puts its own first."
            )
            emit(Notice(text, Tone.WARNING, kind=NoticeKind.EDITABLE_INSTALL))
        return packages.env(root)
