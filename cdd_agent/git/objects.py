"""Look up objects of a repository by any name that git understands."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from cdd_agent.files.atomic import NotWritten
from cdd_agent.git.command import Git
from cdd_agent.pattern import Pattern

_ANSWER = Pattern(r"([0-9a-f]{40,64}) (blob|tree|commit|tag) ([0-9]+)")


class GitObject(Struct, frozen=True):
    id: str
    kind: str
    """`blob`, `tree`, `commit` or `tag`."""
    size: int
    """Bytes."""


async def find_objects(
    git: Git, folder: Path, names: Iterable[str]
) -> list[GitObject | None]:
    """Return the objects with these names, such as `COMMIT:PATH`, None for a missing
    one. A name must not contain a line break. `folder` is a private folder for git's
    files. Raises `BadInput`, `GitUnusable`.
    """
    asked, answers = folder / "asked", folder / "answers"
    try:
        asked.write_text("".join(f"{name}\n" for name in names))
    except OSError as error:
        raise NotWritten(asked, error) from error
    await git("cat-file", "--batch-check", stdin=asked, stdout=answers)
    objects = list[GitObject | None]()
    for line in answers.read_text(errors="replace").split("\n")[:-1]:
        answer = _ANSWER.fullmatch(line)
        if answer is None:
            objects.append(None)
        else:
            objects.append(GitObject(answer[1], answer[2], int(answer[3])))
    return objects
