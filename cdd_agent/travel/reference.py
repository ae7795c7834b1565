"""The reference of a run in a remote, and reading files of its commits."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Self

from msgspec import Struct

from cdd_agent.engine.ledger import STORE
from cdd_agent.errors import BadInput
from cdd_agent.files.atomic import read_bytes
from cdd_agent.files.json_file import as_json, from_json
from cdd_agent.git.command import Git
from cdd_agent.git.new_commit import CommitEntry, new_commit
from cdd_agent.git.objects import find_objects
from cdd_agent.git.remote import Remote, address_of
from cdd_agent.git.repository import Repository
from cdd_agent.git.snapshot import CONFIG
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.travel.lease import Lease
from cdd_agent.travel.manifest import LARGEST_LEASE, LEASE

MOST_BYTES = 2_000_000_000
"""Maximum size of a fetch, with the history that this copy lacks."""


class NotARun(BadInput):
    """The remote has no valid run under this name."""

    refusal = Refusal.RUN_INCOMPLETE

    def __init__(self, why: str) -> None:
        super().__init__(
            f"The remote does not hold a valid run: {why}",
            hint="Nothing was pulled.",
        )


class RunReference(Struct):
    """`refs/cdd/runs/SLUG` in a remote."""

    slug: str
    remote: Remote
    folder: Path
    """A private folder for git's input and output."""
    now: Callable[[], datetime]
    head: str | None = None
    """The project's commit."""
    have: tuple[str, ...] = ()
    """Commits in this copy that the run may build on."""
    fetched: str | None = None
    """The fetched commit, until it is accepted."""

    @classmethod
    async def open(
        cls,
        root: Path,
        record: Path,
        slug: str,
        remote: str,
        now: Callable[[], datetime],
        repository: Repository | None,
    ) -> Self:
        """Open the reference of the run with this record; no other process may use it
        then. `remote` is a name or an address. Raises `BadInput`, `GitUnusable`.
        """
        address = await address_of(repository, remote)
        folder = record / "travel.git"
        form = [f"--object-format={repository.object_format}"] if repository else []
        plain = Git(root)
        if not (folder / "HEAD").exists():
            await plain("init", "--quiet", "--bare", "--template=", *form, str(folder))
        store = repository.objects if repository else record / STORE / "objects"
        store.mkdir(parents=True, exist_ok=True)
        env = {"GIT_DIR": str(folder), "GIT_OBJECT_DIRECTORY": str(store)}
        settings = tuple[str, ...]()
        shallow, head = None, None
        if repository is not None:
            settings = repository.settings
            shallow = read_bytes(repository.shared / "shallow")
            head = await repository.head()
        git = Git(root, env, (*plain.config, *settings, *CONFIG))
        private = Remote.of(address, git, shallow)
        await private.clear()
        return cls(slug, private, folder, now, head, (head,) if head else ())

    @property
    def name(self) -> str:
        return f"refs/cdd/runs/{self.slug}"

    @property
    def git(self) -> Git:
        """git with the fetched objects, even before they are accepted."""
        return self.remote.quarantined if self.fetched else self.remote.git

    async def tip(self) -> str | None:
        return await self.remote.tip(self.name)

    async def fetch(self) -> str | None:
        """Fetch the reference and return its commit, or None."""
        self.fetched = None
        self.fetched = await self.remote.fetch(self.name, self.have, MOST_BYTES)
        return self.fetched

    async def lease(self, tip: str) -> Lease | None:
        """Return the lease in a commit. Raises `NotARun`."""
        if tip != self.fetched and not await self.has(tip):
            current = await self.fetch()
            # the reference has moved: its current holder matters
            if current != tip:
                return await self.lease(current) if current else None
        data = await self.read_file(tip, LEASE, LARGEST_LEASE)
        try:
            return None if data is None else from_json(data, Lease)
        except ValueError as error:
            raise NotARun(f"{LEASE}: {error}") from error

    async def leased(self, tip: str, lease: Lease) -> str:
        entry = CommitEntry(LEASE, as_json(lease))
        message = f"{self.slug} is held by {lease.host}"
        return await new_commit(
            self.git, self.folder, message, self.now(), [tip], [entry], afresh=False
        )

    async def swap(self, expected: str | None, new: str) -> bool:
        remote = Remote(self.remote.address, self.git)
        return await remote.swap(self.name, expected, new)

    async def read_file(self, commit: str, path: str, most: int) -> bytes | None:
        """Return a file in a commit, or None. Raises `NotARun` if it is larger than
        `most` bytes.
        """
        name = f"{commit}:{path}"
        (file,) = await find_objects(self.git, self.folder, [name])
        if file is None or file.kind != "blob":
            return None
        if file.size > most:
            raise NotARun(f"{path} has {file.size} bytes")
        content = self.folder / "content"
        await self.git("cat-file", "blob", file.id, stdout=content)
        return content.read_bytes()

    async def bring(self, tip: str) -> None:
        """Fetch the reference's commit, unless it is here already."""
        if not await self.has(tip):
            await self.fetch()
        self.accept()

    def accept(self) -> None:
        if self.fetched is not None:
            self.remote.accept()
            self.fetched = None

    async def has(self, commit: str) -> bool:
        name = f"{commit}^{{commit}}"
        answer = await self.git("cat-file", "-e", name, codes=(0, 1, 128))
        return answer.return_code == 0
