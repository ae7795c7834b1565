"""A repository for a copy of a project, for commands that run in the copy."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from cdd_agent.errors import BadInput
from cdd_agent.git.command import Git
from cdd_agent.git.repository import Repository
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.threads import to_its_end

_BRANCHES_AND_TAGS = ("refs/heads", "refs/tags")


async def make_private_repository(
    place: Path, repository: Repository, scratch: Path
) -> None:
    """Make a repository with the commits, branches and tags of another one, at the
    commit that is checked out there. It reads the other's objects and changes nothing
    in it. Files in `place` stay unchanged.

    `scratch` is a folder for git's input. Raises `GitUnusable` or `BadInput`.
    """
    git = Git(place)
    form = f"--object-format={repository.object_format}"
    await git("init", "--quiet", "--template=", form, "--", str(place))
    await to_its_end(partial(_borrow_objects, place, repository), name="objects")
    listed = scratch / "references"
    create = "--format=create %(refname) %(objectname)"
    await repository.git("for-each-ref", create, *_BRANCHES_AND_TAGS, stdout=listed)
    await git("update-ref", "--stdin", stdin=listed)
    head = await repository.head()
    if head is None:
        return
    branch = await repository.git("symbolic-ref", "--quiet", "HEAD", codes=(0, 1))
    if branch.stdout.strip():
        await git("symbolic-ref", "HEAD", branch.stdout.strip())
    else:
        await git("update-ref", "--no-deref", "HEAD", head)
    # 128: a clone without all objects
    await git("read-tree", "HEAD", codes=(0, 128))


def _borrow_objects(place: Path, repository: Repository) -> None:
    folder = place / ".git"
    files = {
        "objects/info/alternates": f"{repository.objects.resolve()}\n".encode(),
        "info/exclude": repository.exclude,
    }
    shallow = repository.shared / "shallow"
    try:
        if shallow.exists():
            files["shallow"] = shallow.read_bytes()
        for name, content in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
    except OSError as error:
        raise BadInput(
            f"{folder} could not be written: {error.strerror or error}",
            refusal=Refusal.DISK,
        ) from error
