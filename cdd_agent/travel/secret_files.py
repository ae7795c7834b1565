"""Find the files of checkpoints that may contain secrets and are not sent."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path

from msgspec import Struct

from cdd_agent.files.hidden_from_models import is_secret_path
from cdd_agent.git.checkpoint import Checkpoint
from cdd_agent.git.objects import find_objects
from cdd_agent.git.snapshot import Snapshots
from cdd_agent.settings.config import PROJECT_FILE
from cdd_agent.text.redaction import Redactor
from cdd_agent.threads import in_thread
from cdd_agent.travel.manifest import EMPTY_TREE

LARGEST_SEARCHED = 5_000_000
"""Bytes of a content to search for secrets."""
_REPOSITORY, _ABSENT = b"160000", b"000000"


class Reason(StrEnum):
    """Why files, or their contents, are not sent."""

    SETTINGS = "they are settings of this copy"
    NAME = "their names suggest secrets"
    CONTENT = "they contain secrets"
    IGNORED = "git ignores them"
    INNER = "they are in another repository"


def judge_name(path: str) -> Reason | None:
    """Return why a project file with this path is never sent."""
    if path == PROJECT_FILE.as_posix():
        return Reason.SETTINGS
    if is_secret_path(path):
        return Reason.NAME
    return None


def has_secret(content: bytes, redactor: Redactor) -> bool:
    text = content.decode(errors="replace")
    return redactor.redact(text) != text


class SecretSearch(Struct, frozen=True):
    """Searches contents that are in checkpoints and in no commit of the user."""

    snapshots: Snapshots
    redactor: Redactor
    head: str | None
    """The project's commit."""

    async def find(self, checkpoints: Sequence[Checkpoint]) -> dict[str, Reason]:
        """Return the files that are not sent, by path. Raises `GitUnusable`."""
        contents = await self._list_uncommitted(checkpoints)
        secrets = await self._find_secrets(sorted(contents))
        private = set(secrets)
        for content, paths in contents.items():
            if any(judge_name(path) for path in paths):
                private.add(content)
        if private and self.head:
            committed = await self.snapshots.entries(self.head) or {}
            private -= {entry.content for entry in committed.values()}
        reasons = dict[str, Reason]()
        for content in private:
            for path in contents[content]:
                reason = judge_name(path)
                if reason is None and content in secrets:
                    reason = Reason.CONTENT
                if reason is not None:
                    reasons[path] = reason
        return reasons

    async def _list_uncommitted(
        self, checkpoints: Sequence[Checkpoint]
    ) -> dict[str, set[str]]:
        """Return the ids of contents that differ from the user's commit, with their
        paths. Each tree is compared with the previous one, so that each change of a run
        is listed once.
        """
        git, folder = self.snapshots.git, self.snapshots.folder
        base = EMPTY_TREE[len(checkpoints[0].id)]
        if self.head:
            prefix = self.snapshots.prefix.removesuffix("/")
            (committed,) = await find_objects(git, folder, [f"{self.head}:{prefix}"])
            base = committed.id if committed else base
        trees = [base, *dict.fromkeys(one.id for one in checkpoints)]
        pairs = itertools.pairwise(trees)
        asked = self.snapshots.input(f"{old} {new}\n" for old, new in pairs)
        listed = folder / "listed"
        words = ("diff-tree", "--stdin", "-r", "-z", "--no-renames", "--no-abbrev")
        await git(*words, stdin=asked, stdout=listed)
        contents = dict[str, set[str]]()
        fields = listed.read_bytes().split(b"\0")
        for head, path in zip(fields[0::2], fields[1::2], strict=False):
            # a line with the two trees precedes their first difference
            _, mode, _, content, _ = head.rpartition(b"\n")[2].split(b" ")
            if mode not in (_ABSENT, _REPOSITORY):
                contents.setdefault(content.decode(), set()).add(os.fsdecode(path))
        return contents

    async def _find_secrets(self, contents: Sequence[str]) -> set[str]:
        """Return those of the contents that are texts with a secret."""
        git, folder = self.snapshots.git, self.snapshots.folder
        objects = await find_objects(git, folder, contents)
        small = [one.id for one in objects if one and one.size <= LARGEST_SEARCHED]
        if not small:
            return set()
        batch = folder / "listed"
        asked = self.snapshots.input(f"{content}\n" for content in small)
        await git("cat-file", "--batch", "--buffer", stdin=asked, stdout=batch)
        search = partial(_list_secrets, batch, self.redactor)
        return await in_thread(search, name="secrets")


def _list_secrets(batch: Path, redactor: Redactor) -> set[str]:
    """Return the ids of the texts with secrets in the output of `git cat-file`."""
    secrets = set[str]()
    with batch.open("rb") as file:
        while head := file.readline().split():
            content = file.read(int(head[2]) + 1)[:-1]
            if b"\0" not in content and has_secret(content, redactor):
                secrets.add(head[0].decode())
    return secrets
