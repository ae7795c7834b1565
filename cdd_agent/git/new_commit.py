"""A commit made in one go from contents and existing trees, without an index or
files.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path

from msgspec import Struct

from cdd_agent.errors import BadInput
from cdd_agent.git.command import Git
from cdd_agent.refusals.kinds import Refusal

OUT = "refs/travel/out"
"""The reference to the last one, in the private repository."""


class CommitEntry(Struct, frozen=True):
    """A path in a commit: a file's content, the id of a tree, or None to remove it."""

    path: str
    what: bytes | str | None


async def new_commit(
    git: Git,
    folder: Path,
    message: str,
    now: datetime,
    parents: Sequence[str],
    entries: Iterable[CommitEntry],
    *,
    afresh: bool,
) -> str:
    """Make the commit. Only a reference of `git`'s private repository leads to it.

    `afresh`: with the entries alone, otherwise also with the files of the first parent.
    `folder` is for git's input. Raises `BadInput` if the disk refuses, `GitUnusable` if
    a parent is missing.
    """
    message_file, marks = folder / "commit", folder / "commit-id"
    try:
        with message_file.open("wb") as file:
            text = os.fsencode(message)
            file.write(b"commit %s\nmark :1\n" % OUT.encode())
            file.write(
                b"committer cdd <cdd@localhost> %d +0000\ndata %d\n%s\n"
                % (now.timestamp(), len(text), text)
            )
            for number, parent in enumerate(parents):
                file.write(
                    b"%s %s\n" % (b"merge" if number else b"from", parent.encode())
                )
            if afresh:
                file.write(b"deleteall\n")
            for entry in entries:
                name = os.fsencode(entry.path)
                for letter, escaped in (
                    (b"\\", b"\\\\"),
                    (b'"', b'\\"'),
                    (b"\n", b"\\n"),
                ):
                    name = name.replace(letter, escaped)
                match entry.what:
                    case bytes(content):
                        file.write(
                            b'M 100644 inline "%s"\ndata %d\n%s\n'
                            % (name, len(content), content)
                        )
                    case str(tree):
                        file.write(b'M 040000 %s "%s"\n' % (tree.encode(), name))
                    case None:
                        file.write(b'D "%s"\n' % name)
            file.write(b"done\n")
        await git(
            "fast-import",
            "--quiet",
            "--done",
            "--force",
            f"--export-marks={marks}",
            stdin=message_file,
        )
        return marks.read_text().split()[1]
    except OSError as error:
        raise BadInput(
            f"{message_file} could not be written: {error.strerror or error}",
            refusal=Refusal.DISK,
        ) from error
    finally:
        for path in (message_file, marks):
            path.unlink(missing_ok=True)
