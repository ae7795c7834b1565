"""The commit of a completed step, and the conditions for it, which are checked before
the step.
"""

import textwrap
from collections.abc import Collection, Sequence
from pathlib import Path

from cdd_agent.errors import BadInput
from cdd_agent.files.paths import without_links
from cdd_agent.git.commit import CommittedFiles, commit_files, expect_ready
from cdd_agent.git.commit_message import CommitMessage
from cdd_agent.git.index import TrackedFiles, read_tracked_files
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.tickets.declared_files import (
    DeclaredFile,
    DeclaredFiles,
    declare_files,
)
from cdd_agent.tickets.outcome_words import step_proof_in_words
from cdd_agent.tickets.plan import PlanStep
from cdd_agent.tickets.status import Evidence, Verification

_WIDTH = 72


def step_message(
    ticket_slug: str,
    ticket_title: str,
    step: PlanStep,
    attempt: int,
    verification: Verification,
    evidence: Evidence | None = None,
    *,
    folder: int = 0,
) -> CommitMessage:
    """The step's title, its ticket, and how far it can be trusted.

    The trailer names the attempt, because a repeated step has another. `folder` is the
    step's number in the record, if different: after renumbering, two steps have had the
    same number.
    """
    origin = _wrapped(f"Step {step.label} of {ticket_slug}: {ticket_title}")
    proof = step_proof_in_words(verification, evidence)
    trailer = f"{trailer_prefix(ticket_slug, folder or step.number)}{attempt}"
    return CommitMessage(step.title, f"{origin}\n\n{_wrapped(proof)}", trailer)


def _wrapped(text: str) -> str:
    return textwrap.fill(text, _WIDTH, break_long_words=False, break_on_hyphens=False)


def trailer_prefix(ticket_slug: str, folder: int) -> str:
    return f"Cdd-Step: {ticket_slug}/{folder}/"


def expect_checked_out(root: Path, steps: Sequence[PlanStep]) -> None:
    """Raise `BadInput` if a step declares a tracked file that is not checked out: no
    one would see what is replaced.
    """
    tracked = read_tracked_files(root)
    if not tracked.lacks_any:
        return
    for step in steps:
        for file in declare_files(root, step).files:
            path = _find_absent(file, tracked)
            if why := tracked.explain_absence(path):
                raise BadInput(
                    f"Step {step.label} declares {file.path}: {why}.",
                    hint=tracked.describe_checkout(path),
                    refusal=Refusal.PLAN_INVALID,
                )


def _find_absent(file: DeclaredFile, tracked: TrackedFiles) -> str:
    """Return a declared path that may not be checked out. For a pattern, existing files
    count.
    """
    if file.refusal:
        return ""
    if file.glob is None:
        return file.path
    if file.matches:
        return ""
    for path in sorted(tracked.index.skipped):
        if file.covers(path):
            return path
    return str(file.glob.folder / "any file")


async def expect_commit(
    root: Path, steps: Sequence[PlanStep], trailers: Collection[str]
) -> None:
    """Raise `CommitRefused` if declared files could not be committed. `trailers` are
    the beginnings of the steps' trailers.
    """
    declared = [declare_files(root, step) for step in steps]
    paths = {
        without_links(root, path) for files in declared for path in files.usable_paths()
    }

    def declares(path: str) -> bool:
        return any(files.covers(path) for files in declared)

    await expect_ready(root, paths, declares, trailers)


async def commit_step(
    root: Path, step: PlanStep, touched: Sequence[str], message: CommitMessage
) -> CommittedFiles:
    """Raises `CommitRefused`."""
    declared: DeclaredFiles = declare_files(root, step)
    places = {path: without_links(root, path) for path in touched}
    is_declared = {place for path, place in places.items() if declared.covers(path)}
    return await commit_files(
        root, tuple(places.values()), message, is_declared.__contains__
    )
