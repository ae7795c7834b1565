"""References in a repository elsewhere: looked at, fetched, and changed only by
compare-and-swap.

It is spoken to from a private folder, so that of the settings only the person's own
count, who has named the remote: how to log in (`ssh`, credential helpers, proxies). Of
the repository's settings, which a project that was only downloaded brings along, there
are the remote's address and what is sent with a request over HTTP, and nothing that
would be run.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.errors import BadInput
from cdd_agent.files.atomic import remove_folder
from cdd_agent.git.command import Git, GitUnusable, refusal
from cdd_agent.git.repository import Repository
from cdd_agent.process.run import CommandResult
from cdd_agent.redaction import Redactor
from cdd_agent.sanitize import sanitize_for_display

_PROTOCOLS = "file:git:http:https:ssh"
"""Those that run nothing of the address's own choice."""
_PERSONS_OWN = (
    "GIT_SSH_COMMAND",
    "GIT_SSH",
    "GIT_ASKPASS",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
)
_OF_REMOTES = (
    r"^(remote\..*\.(url|pushurl)|url\..*\.(insteadof|pushinsteadof)"
    r"|http\.(.*\.)?(extraheader|proxy|sslcainfo))$"
)
_NO_LOGIN = re.compile(
    r"Authentication failed|could not read (?:Username|Password)|Permission denied|Host"
    r" key verif"
)
_LOG_IN = (
    "Nothing is asked here: your global git settings have to log in (a credential"
    " helper, a key, a known host)."
)
_NOT_SENT = re.compile("the receiving end does not support|unexpected capabilities")
"""A push that ends so has not sent anything."""
_LET_IN = (
    "Whoever runs it can let you write and read refs/cdd/runs/*; or push to another"
    " one: `cdd push SLUG ADDRESS`."
)
_WORDS = 5
"""Lines that a remote says to a push, which are shown."""
_LOOK = 0.2
"""Seconds between two looks at how much has come."""
_SECONDS = 1800.0


class PushRefused(GitUnusable):
    """The remote does not take it: nothing was changed there."""


class Address(Struct, frozen=True):
    """Where a remote is."""

    name: str
    """As a person named it."""
    fetch: str
    push: str
    settings: tuple[tuple[str, str], ...] = ()
    """Those of the repository that belong to it."""

    @property
    def shown(self) -> str:
        """Its name without a password."""
        return Redactor().redact(self.name)


async def address_of(repository: Repository | None, name: str) -> Address:
    """The remote of this name that the project's repository knows, or the address
    itself. Raises `BadInput`.
    """
    top, urls, pushed, settings = (
        Path.cwd(),
        dict[str, str](),
        dict[str, str](),
        list[tuple[str, str]](),
    )
    shorthands: tuple[str, ...] = ()
    if repository is not None:
        asked = (
            "config",
            "--null",
            "--show-scope",
            "--includes",
            "--get-regexp",
            _OF_REMOTES,
        )
        listed = (await repository.git(*asked, codes=(0, 1))).stdout.split("\0")
        for scope, entry in zip(listed[::2], listed[1::2], strict=False):
            key, _, value = entry.partition("\n")
            section, _, rest = key.partition(".")
            if section == "remote":
                remote, _, what = rest.rpartition(".")
                (urls if what == "url" else pushed).setdefault(remote, value)
                continue
            # what all of the person's repositories have, git finds by itself
            if scope in (
                "local",
                "worktree",
            ):
                settings.append((key, value))
            if section == "url":
                shorthands = (*shorthands, value)
    if name in urls:
        assert repository is not None
        top, fetch, push = repository.top, urls[name], pushed.get(name, urls[name])
        if any(not url or url.startswith("-") for url in (fetch, push)):
            raise BadInput(f"The remote {name!r} has no address that can be used")
    elif name.startswith("-") or not (
        ":" in name or "/" in name or name in (".", "..")
    ):
        hint = (
            f"There are: {', '.join(urls)}."
            if urls
            else "Name one, or an address: `git remote add` makes one."
        )
        raise BadInput(f"There is no remote {name!r} here", hint=hint)
    else:
        fetch = push = name

    def resolved(url: str) -> str:
        """A path as an absolute one; addresses stay."""
        before, colon, _ = url.partition(":")
        is_path = (not colon or "/" in before) and not url.startswith(shorthands)
        return str((top / url).resolve()) if is_path else url

    return Address(name, resolved(fetch), resolved(push), tuple(settings))


class Remote(Struct, frozen=True):
    """A remote, from a folder of git's own with a place for what comes from there."""

    address: Address
    git: Git
    """Its GIT_DIR is the private folder, and its GIT_OBJECT_DIRECTORY the store that
    everything ends in.
    """

    @classmethod
    def of(cls, address: Address, git: Git, shallow: bytes | None) -> Remote:
        """`shallow` is git's list of where the history of the store's repository ends.
        Raises `BadInput`.
        """
        remote = cls(address, replace(git, seconds=_SECONDS))
        try:
            place = remote._folder / "shallow"
            if shallow is None:
                place.unlink(missing_ok=True)
            else:
                place.write_bytes(shallow)
        except OSError as error:
            raise BadInput(
                f"{remote._folder} could not be written: {error.strerror or error}"
            ) from error
        return remote

    async def tip(self, reference: str) -> str | None:
        """The commit that it is at there. Raises `GitUnusable`."""
        listed = await self._speak(
            "ls-remote", "--quiet", "--", self.address.fetch, reference
        )
        lines = (line.split("\t") for line in listed.stdout.splitlines())
        return next((line[0] for line in lines if line[1:] == [reference]), None)

    @property
    def incoming(self) -> Path:
        """Where the objects are that came, and that nobody has looked at yet."""
        return self._folder / "incoming"

    @property
    def quarantined(self) -> Git:
        """Git with what came, and with all that was there before."""
        quoted = '"' + str(self._store).replace("\\", "\\\\").replace('"', '\\"') + '"'
        env = {
            "GIT_OBJECT_DIRECTORY": str(self.incoming),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": quoted,
        }
        return replace(self.git, env={**self.git.env, **env})

    async def fetch(
        self, reference: str, have: tuple[str, ...], most: int
    ) -> str | None:
        """Bring a reference and all it needs into `incoming`; its commit, or None where
        it is not there. `have` are commits that are here already.

        Raises `GitUnusable`, also where more than `most` bytes come, or objects that
        are not as they should be.
        """
        await self.clear()
        (self.incoming / "pack").mkdir(parents=True, exist_ok=True)
        for number, commit in enumerate(have):
            await self.git("update-ref", f"refs/travel/have-{number}", commit)
        how = (
            "--no-tags",
            "--write-fetch-head",
            "--no-auto-maintenance",
            "--no-recurse-submodules",
        )
        settings = (
            "fetch.fsckObjects=true",
            "fetch.unpackLimit=1",
            "core.fsync=committed,loose-object,reference",
        )
        git = replace(self.quarantined, config=(*self.quarantined.config, *settings))
        words = ("fetch", "--quiet", *how, "--", self.address.fetch, reference)
        fetching = asyncio.ensure_future(self._speak(*words, git=git))
        try:
            is_over = False
            while not is_over:
                is_over = bool((await asyncio.wait([fetching], timeout=_LOOK))[0])
                if _size(self.incoming) > most:
                    raise GitUnusable(
                        f"{self.address.shown} sends more than {most // 1_000_000} MB:"
                        " it was not taken."
                    )
            await fetching
        except GitUnusable as error:
            if f"couldn't find remote ref {reference}" in error.message:
                return None
            raise
        finally:
            if not fetching.done():
                fetching.cancel()
                await asyncio.wait([fetching])
        return (self._folder / "FETCH_HEAD").read_text().split()[0]

    def accept(self) -> None:
        """Move what came to where all objects are. To do it again is harmless. Raises
        `BadInput`.
        """
        store = self._store
        files = [path for path in self.incoming.rglob("*") if path.is_file()]
        try:
            # git believes in a pack by its index
            for path in sorted(files, key=lambda path: path.suffix == ".idx"):
                target = store / path.relative_to(self.incoming)
                target.parent.mkdir(exist_ok=True)
                if not target.exists():
                    _move(path, target)
        except OSError as error:
            raise BadInput(
                f"{store} could not be written: {error.strerror or error}"
            ) from error

    async def clear(self) -> None:
        """Remove what came and was not accepted, and what was needed meanwhile. Raises
        `BadInput`.
        """
        for place in (self.incoming, self._folder / "refs" / "travel"):
            remove_folder(place)

    async def swap(self, reference: str, expected: str | None, new: str) -> bool:
        """Move it from one commit (None: it is not there) to another; False where it
        was not there any more.

        Raises `PushRefused` by a remote that does not take it; `GitUnusable` where it
        is not known what became of it.
        """
        lease = f"--force-with-lease={reference}:{expected or ''}"
        words = ("push", "--porcelain", "--no-verify", "--recurse-submodules=no", lease)
        git = replace(
            self.git,
            config=(*self.git.config, "push.gpgSign=false", "push.followTags=false"),
        )
        try:
            done = await self._speak(
                *words,
                "--",
                self.address.push,
                f"{new}:{reference}",
                git=git,
                codes=(0, 1),
            )
        except GitUnusable as error:
            if _NOT_SENT.search(error.message):
                raise PushRefused(error.message, hint=error.hint) from error
            raise
        if done.return_code == 0:
            if expected is None and await self.tip(reference) is None:
                why = (
                    f"{self.address.shown} took {reference}, but does not show it:"
                    " nobody could take it from there"
                )
                raise PushRefused(why, hint=_LET_IN)
            return True
        refused = next(
            (line for line in done.stdout.splitlines() if line.startswith("!")), ""
        )
        now = await self.tip(reference)
        if now == new:  # the answer was lost
            return True
        if now != expected:
            return False
        said = [
            line.removeprefix("remote: ")
            for line in done.stderr.splitlines()
            if line.startswith("remote: ")
        ]
        why = " ".join(
            [refused.rpartition("\t")[2] or done.stderr.strip(), *said[:_WORDS]]
        )
        raise PushRefused(
            f"{self.address.shown} does not take {reference}:"
            f" {sanitize_for_display(why)}",
            hint=_LET_IN,
        )

    @property
    def _folder(self) -> Path:
        return Path(self.git.env["GIT_DIR"])

    @property
    def _store(self) -> Path:
        return Path(
            self.git.env.get("GIT_OBJECT_DIRECTORY") or self._folder / "objects"
        )

    async def _speak(
        self, *words: str, git: Git | None = None, codes: tuple[int, ...] = (0,)
    ) -> CommandResult:
        """Run what goes to the remote."""
        git = git or self.git
        env = {
            "GIT_ALLOW_PROTOCOL": _PROTOCOLS,
            "GIT_CONFIG_COUNT": str(len(self.address.settings)),
        }
        # not as arguments, which everybody can read
        for number, (key, value) in enumerate(self.address.settings):
            env |= {
                f"GIT_CONFIG_KEY_{number}": key,
                f"GIT_CONFIG_VALUE_{number}": value,
            }
        env |= {name: os.environ[name] for name in _PERSONS_OWN if name in os.environ}
        done = await replace(git, env={**git.env, **env}).run(*words)
        if done.timed_out or done.return_code == 127:
            raise refusal(words[0], done)
        if done.return_code not in codes:
            said = next((line for line in done.stderr.splitlines() if line.strip()), "")
            why = sanitize_for_display(Redactor().redact(said.removeprefix("fatal: ")))
            raise GitUnusable(
                f"{self.address.shown} did not answer `git {words[0]}`: {why}",
                hint=_LOG_IN if _NO_LOGIN.search(done.stderr) else "",
            )
        return done


def _size(folder: Path) -> int:
    found = 0
    for path in folder.rglob("*"):
        try:
            found += path.lstat().st_size
        except OSError:  # it was renamed just now
            continue
    return found


def _move(path: Path, target: Path) -> None:
    """Whole or not at all, also to another disk."""
    try:
        path.replace(target)
    except OSError:
        # a name that git's own cleaning knows
        beside = target.with_name(f"tmp_obj_{target.name}")
        shutil.copyfile(path, beside)
        beside.replace(target)
