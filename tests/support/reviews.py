"""Reviews of changes for tests."""

from collections.abc import Mapping
from pathlib import PurePosixPath

from cdd_agent.changes.change_set import ChangeSet, FileChange
from cdd_agent.changes.review import Review


def review_of(
    step: int | None, files: Mapping[str, tuple[str | None, str | None]]
) -> Review:
    """`files` has the text before and after, by path."""

    def data(text: str | None) -> bytes | None:
        return None if text is None else text.encode()

    changes = (
        FileChange(PurePosixPath(path), data(old), data(new))
        for path, (old, new) in files.items()
    )
    return Review.from_changes(step, ChangeSet(tuple(changes)))
