"""The changes that the user accepted, as they are written."""

from pathlib import Path

from cdd_agent.changes.change_set import ChangeSet
from cdd_agent.changes.model import EditProblem, ReplyFault, ReplyRefused
from cdd_agent.changes.readability import refuse_unreadable
from cdd_agent.changes.review import Review
from cdd_agent.changes.targets import (
    Protected,
    find_collisions,
    refuse_unwritable,
    writable_path,
)
from cdd_agent.errors import CddError


def accepted_changes(review: Review, root: Path, protected: Protected) -> ChangeSet:
    """Return the accepted parts of a review, checked again as a whole.

    One hunk may need another, and the user's edits are still unchecked. Raises
    `ReplyRefused` with every reason.
    """
    changes = tuple(change for file in review.files for change in file.changes)
    contents = {change.path: change.before for change in changes}
    written = [change.path for change in changes if change.after is not None]
    deleted = [change.path for change in changes if change.after is None]
    given_up = frozenset(map(str, deleted))
    notes: list[str] = []
    problems: list[EditProblem] = []
    for change in changes:
        try:
            path = writable_path(root, str(change.path), protected, given_up)
            refuse_unwritable(root, path)
            if change.after is None:
                continue
            before = change.before
            if before is None and change.like is not None:
                before = contents.get(change.like)
            doubt = refuse_unreadable(root, path, before, change.after)
            if doubt:
                notes.append(doubt)
        except CddError as refusal:
            problems.append(EditProblem.from_error(str(change.path), refusal))
    collisions = find_collisions(written, deleted)
    problems += [
        EditProblem("", reason, ReplyFault.NAME_TAKEN) for reason in collisions
    ]
    if problems:
        raise ReplyRefused(
            "\n".join(problem.reason for problem in problems),
            problems=tuple(problems),
        )
    return ChangeSet(changes, tuple(notes))
