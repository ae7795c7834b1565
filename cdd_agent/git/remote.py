"""References in a remote repository: read, fetched, and changed by compare-and-swap.

git runs in a private folder, so that only the user's global settings decide how to log
in (`ssh`, credential helpers, proxies). A downloaded project brings its own settings;
from these only the remote's address and what an HTTP request sends are used, and
nothing that would be run.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.errors import BadInput
from cdd_agent.files.atomic import remove_folder
from cdd_agent.git.command import Git, GitUnusable, refusal
from cdd_agent.git.repository import Repository
from cdd_agent.pattern import Pattern
from cdd_agent.process.run import CommandResult
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.text.redaction import Redactor
from cdd_agent.text.sanitize import sanitize_for_display

_PROTOCOLS = "file:git:http:https:ssh"
"""Protocols whose addresses cannot name a program to run."""
_USERS_VARIABLES = (
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
_NO_LOGIN = Pattern(
    r"Authentication failed|could not read (?:Username|Password)|Permission denied|Host"
    r" key verif"
)
_LOG_IN = (
    "cdd cannot ask for a password. Set up a credential helper, an SSH key or a known"
    " host in your global git settings."
)
_NOT_SENT = Pattern("the receiving end does not support|unexpected capabilities")
"""Errors after which nothing was sent."""
_LET_IN = (
    "Ask its administrator for access to refs/cdd/runs/*, or push to another remote:"
    " `cdd push SLUG ADDRESS`."
)
_WORDS = 5
"""Number of lines to show of a remote's answer to a push."""
_LOOK = 0.2
"""Seconds between two checks of how much has arrived."""
_SECONDS = 1800.0


class PushRefused(GitUnusable):
    """The remote refused the push. Nothing changed there."""

    refusal = Refusal.PUSH_REFUSED


class Address(Struct, frozen=True):
    name: str
    fetch: str
    push: str
    settings: tuple[tuple[str, str], ...] = ()
    """The repository's settings for this remote."""

    @property
    def shown(self) -> str:
        """The name without a password."""
        return Redactor().redact(self.name)


async def address_of(repository: Repository | None, name: str) -> Address:
    """Resolve the name of a remote of the repository, or an address. Raises
    `BadInput`.
    """
    remotes = _Remotes()
    top = Path.cwd()
    if repository is not None:
        remotes = await _read_remotes(repository)
    if name in remotes.urls:
        assert repository is not None
        top, fetch = repository.top, remotes.urls[name]
        push = remotes.push_urls.get(name, fetch)
        if any(not url or url.startswith("-") for url in (fetch, push)):
            raise BadInput(
                f"The remote {name!r} has no usable address",
                refusal=Refusal.PUSH_REFUSED,
            )
    elif _is_address(name):
        fetch = push = name
    else:
        hint = "Add a remote with `git remote add`, or give an address."
        if remotes.urls:
            hint = f"Remotes: {', '.join(remotes.urls)}."
        raise BadInput(
            f"Unknown remote {name!r}", hint=hint, refusal=Refusal.PUSH_REFUSED
        )

    def resolve(url: str) -> str:
        before, colon, _ = url.partition(":")
        is_path = (not colon or "/" in before) and not url.startswith(
            remotes.shorthands
        )
        return str((top / url).resolve()) if is_path else url

    return Address(name, resolve(fetch), resolve(push), tuple(remotes.settings))


def _is_address(name: str) -> bool:
    if name.startswith("-"):
        return False
    return ":" in name or "/" in name or name in (".", "..")


class _Remotes(Struct):
    urls: dict[str, str] = field(default_factory=dict)
    push_urls: dict[str, str] = field(default_factory=dict)
    settings: list[tuple[str, str]] = field(default_factory=list)
    shorthands: tuple[str, ...] = ()
    """Prefixes of addresses that git replaces."""


async def _read_remotes(repository: Repository) -> _Remotes:
    words = (
        "config",
        "--null",
        "--show-scope",
        "--includes",
        "--get-regexp",
        _OF_REMOTES,
    )
    listed = (await repository.git(*words, codes=(0, 1))).stdout.split("\0")
    remotes = _Remotes()
    for scope, entry in zip(listed[::2], listed[1::2], strict=False):
        key, _, value = entry.partition("\n")
        section, _, rest = key.partition(".")
        if section == "remote":
            remote, _, kind = rest.rpartition(".")
            urls = remotes.urls if kind == "url" else remotes.push_urls
            urls.setdefault(remote, value)
            continue
        # git reads the user's global settings itself
        if scope in ("local", "worktree"):
            remotes.settings.append((key, value))
        if section == "url":
            remotes.shorthands = (*remotes.shorthands, value)
    return remotes


class Remote(Struct, frozen=True):
    address: Address
    git: Git
    """Uses the private folder as GIT_DIR, and the store for all objects as
    GIT_OBJECT_DIRECTORY.
    """

    @classmethod
    def of(cls, address: Address, git: Git, shallow: bytes | None) -> Remote:
        """Prepare the private folder. `shallow` is git's list of commits at which the
        store's history ends. Raises `BadInput`.
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
                f"{remote._folder} could not be written: {error.strerror or error}",
                refusal=Refusal.DISK,
            ) from error
        return remote

    async def tip(self, reference: str) -> str | None:
        listed = await self._speak(
            "ls-remote", "--quiet", "--", self.address.fetch, reference
        )
        for line in listed.stdout.splitlines():
            commit, _, name = line.partition("\t")
            if name == reference:
                return commit
        return None

    @property
    def incoming(self) -> Path:
        """The folder of objects that arrived and are not checked yet."""
        return self._folder / "incoming"

    @property
    def quarantined(self) -> Git:
        """git with the objects that arrived and all earlier ones."""
        quoted = '"' + str(self._store).replace("\\", "\\\\").replace('"', '\\"') + '"'
        env = {
            "GIT_OBJECT_DIRECTORY": str(self.incoming),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": quoted,
        }
        return replace(self.git, env={**self.git.env, **env})

    async def fetch(
        self, reference: str, have: tuple[str, ...], most: int
    ) -> str | None:
        """Fetch a reference and all its objects into `incoming`. Returns its commit, or
        None if the remote lacks it.

        `have` are commits that are here already. Raises `GitUnusable`, also if more
        than `most` bytes or damaged objects arrive.
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
            while not fetching.done():
                await asyncio.wait([fetching], timeout=_LOOK)
                if _size(self.incoming) > most:
                    raise GitUnusable(
                        f"{self.address.shown} sends more than {most // 1_000_000} MB."
                        " Nothing was fetched."
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
        """Move the fetched objects to the store. Repeating is harmless. Raises
        `BadInput`.
        """
        store = self._store
        files = [path for path in self.incoming.rglob("*") if path.is_file()]
        try:
            # git uses a pack as soon as its index exists, so move the index last
            for path in sorted(files, key=lambda path: path.suffix == ".idx"):
                target = store / path.relative_to(self.incoming)
                target.parent.mkdir(exist_ok=True)
                if not target.exists():
                    _move(path, target)
        except OSError as error:
            raise BadInput(
                f"{store} could not be written: {error.strerror or error}",
                refusal=Refusal.DISK,
            ) from error

    async def clear(self) -> None:
        """Delete fetched objects that were not accepted. Raises `BadInput`."""
        for place in (self.incoming, self._folder / "refs" / "travel"):
            remove_folder(place)

    async def swap(self, reference: str, expected: str | None, new: str) -> bool:
        """Move a reference from one commit (None: it does not exist) to another. False
        if the reference has changed.

        Raises `PushRefused` if the remote refuses, `GitUnusable` if the result is
        unknown.
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
                    f"{self.address.shown} accepted {reference} but does not list it,"
                    " so it could not be pulled"
                )
                raise PushRefused(why, hint=_LET_IN)
            return True
        refused = next(
            (line for line in done.stdout.splitlines() if line.startswith("!")), ""
        )
        current = await self.tip(reference)
        if current == new:  # the answer was lost
            return True
        if current != expected:
            return False
        answers = [
            line.removeprefix("remote: ")
            for line in done.stderr.splitlines()
            if line.startswith("remote: ")
        ]
        reason = refused.rpartition("\t")[2] or done.stderr.strip()
        why = " ".join([reason, *answers[:_WORDS]])
        raise PushRefused(
            f"{self.address.shown} does not accept {reference}:"
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
        git = git or self.git
        env = {
            "GIT_ALLOW_PROTOCOL": _PROTOCOLS,
            "GIT_CONFIG_COUNT": str(len(self.address.settings)),
        }
        # not as arguments, which other users can read
        for number, (key, value) in enumerate(self.address.settings):
            env |= {
                f"GIT_CONFIG_KEY_{number}": key,
                f"GIT_CONFIG_VALUE_{number}": value,
            }
        env |= {
            name: os.environ[name] for name in _USERS_VARIABLES if name in os.environ
        }
        done = await replace(git, env={**git.env, **env}).run(*words)
        if done.timed_out or done.return_code == 127:
            raise refusal(words[0], done)
        if done.return_code not in codes:
            lines = [line for line in done.stderr.splitlines() if line.strip()]
            first = lines[0].removeprefix("fatal: ") if lines else ""
            why = sanitize_for_display(Redactor().redact(first))
            raise GitUnusable(
                f"{self.address.shown} did not answer `git {words[0]}`: {why}",
                hint=_LOG_IN if _NO_LOGIN.search(done.stderr) else "",
            )
        return done


def _size(folder: Path) -> int:
    size = 0
    for path in folder.rglob("*"):
        try:
            size += path.lstat().st_size
        except OSError:  # it was renamed just now
            continue
    return size


def _move(path: Path, target: Path) -> None:
    try:
        path.replace(target)
    except OSError:
        # git deletes old files with such a name
        temporary = target.with_name(f"tmp_obj_{target.name}")
        shutil.copyfile(path, temporary)
        temporary.replace(target)
