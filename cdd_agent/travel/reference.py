"""The reference of a run in a remote, with real git: what `Claim` needs of it, and
reading what is in its commits.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Self

from msgspec import Struct, field

from cdd_agent.engine.ledger import STORE
from cdd_agent.errors import BadInput
from cdd_agent.files.atomic import read_bytes
from cdd_agent.files.json_file import as_json, from_json
from cdd_agent.git.command import Git
from cdd_agent.git.new_commit import Entry, new_commit
from cdd_agent.git.remote import Remote, address_of
from cdd_agent.git.repository import Repository
from cdd_agent.git.snapshot import CONFIG
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.travel.lease import Lease

LEASE = "lease.json"
MOST_BYTES = 2_000_000_000
"""That a run may have, with all that it needs and is not here yet."""
LARGEST_LEASE = 10_000


class NotARun(BadInput):
    """A remote has no run that can be taken under this name; nothing of it was."""

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
    """The commit that the project is at."""
    have: tuple[str, ...] = ()
    """Commits that are here, and that the run may be built on."""
    fetched: str | None = None
    """The commit that is here as it came, and was not accepted yet."""
    contents: dict[str, bytes | None] = field(default_factory=dict)
    """Files that were read already, by git's names for them."""

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
        """Open the reference of the run whose record is in this folder; no other
        process may use it at the same time. `remote` is a name or an address. Raises
        `BadInput`, `GitUnusable`.
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
        git = Git(
            root,
            env,
            (*plain.config, *(repository.settings if repository else ()), *CONFIG),
        )
        shallow, head = None, None
        if repository is not None:
            shallow, head = (
                read_bytes(repository.shared / "shallow"),
                await repository.head(),
            )
        made = cls(
            slug,
            Remote.of(address, git, shallow),
            folder,
            now,
            head,
            (head,) if head else (),
        )
        await made.remote.clear()
        return made

    @property
    def name(self) -> str:
        return f"refs/cdd/runs/{self.slug}"

    @property
    def git(self) -> Git:
        """With what came, if something did."""
        return self.remote.quarantined if self.fetched else self.remote.git

    async def tip(self) -> str | None:
        return await self.remote.tip(self.name)

    async def fetch(self) -> str | None:
        """Fetch the current commit of the reference and return it, or None."""
        self.fetched = None
        self.fetched = await self.remote.fetch(self.name, self.have, MOST_BYTES)
        return self.fetched

    async def lease(self, tip: str) -> Lease | None:
        name = f"{tip}:{LEASE}"
        is_here = name in self.contents or tip == self.fetched or await self.has(tip)
        if not is_here and await self.fetch() != tip:
            # who has it now is what counts
            return await self.lease(self.fetched) if self.fetched else None
        data = await self.content(name, LARGEST_LEASE)
        try:
            return None if data is None else from_json(data, Lease)
        except ValueError as error:
            raise NotARun(f"{LEASE}: {error}") from error

    async def leased(self, tip: str, lease: Lease) -> str:
        entry = Entry(LEASE, as_json(lease))
        message = f"{self.slug} is held by {lease.host}"
        return await new_commit(
            self.git, self.folder, message, self.now(), [tip], [entry], afresh=False
        )

    async def swap(self, expected: str | None, new: str) -> bool:
        remote = Remote(self.remote.address, self.git)
        return await remote.swap(self.name, expected, new)

    async def content(self, name: str, most: int) -> bytes | None:
        """A file by git's name for it; None where there is none. Raises `NotARun` for
        one larger than `most`.
        """
        if name in self.contents:
            return self.contents[name]
        asked, told = self.folder / "asked", self.folder / "told"
        try:
            asked.write_text(f"{name}\n")
        except OSError as error:
            raise BadInput(
                f"{asked} could not be written: {error.strerror or error}",
                refusal=Refusal.DISK,
            ) from error
        await self.git("cat-file", "--batch-check", stdin=asked, stdout=told)
        kind, size = ([*told.read_text(errors="replace").split(), "", ""])[1:3]
        if kind != "blob":
            return None
        if int(size) > most:
            raise NotARun(f"{name.partition(':')[2]} has {size} bytes")
        await self.git("cat-file", "blob", name, stdout=told)
        return told.read_bytes()

    async def bring(self, tip: str) -> None:
        """See that a commit, which the reference is at, is here to be built on."""
        if not await self.has(tip):
            await self.fetch()
        self.accept()

    def accept(self) -> None:
        """Keep what came."""
        if self.fetched is not None:
            self.remote.accept()
            self.fetched = None

    async def has(self, commit: str) -> bool:
        return (
            await self.git("cat-file", "-e", f"{commit}^{{commit}}", codes=(0, 1, 128))
        ).return_code == 0
