"""Words of questions to the user, and of the answers."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cdd_agent.changes.file_diff import FileDiff
from cdd_agent.engine.approval_mode import MEANINGS
from cdd_agent.events.notices import Tone
from cdd_agent.events.question_events import (
    AcceptingAll,
    ActionProposed,
    ApprovalChanged,
    ChangesProposed,
    ChangesReviewed,
    Choice,
    CommandProposed,
    PersonAnswered,
    Proposal,
    TestLossProposed,
    UndoProposed,
)
from cdd_agent.wording.dialogue_words import lines_changed
from cdd_agent.wording.registry import Lines, words_of
from cdd_agent.wording.step_signs import SHOWN_NAMES, first_names

if TYPE_CHECKING:
    from cdd_agent.changes.review import FileReview, Review

_SHOWN_TESTS = 20
_SHOWN_DIFF = 300
"""Maximum lines of a difference."""
_ORDER = ("delete", "rename", "create", "change")
"""Deleted files come first, so that none of them is cut off."""


def question(proposal: "Proposal | Review", *, diff: bool = True) -> str:
    """Return the question for the user. `diff`: a question about changes contains the
    difference.
    """
    match proposal:
        case CommandProposed(command=command, reason=reason):
            first = (
                f"Run this command? {reason}. (always: allow this exact command"
                " until cdd exits)"
            )
            return "\n  ".join([first, *command.splitlines()])
        case ActionProposed(number=number, total=total, title=title, details=details):
            return "\n  ".join([f"[{number}/{total}] {title}", *details.splitlines()])
        case TestLossProposed():
            return _test_loss(proposal)
        case UndoProposed():
            return _undo(proposal)
        case _:
            return _review(proposal, diff=diff)


def _test_loss(proposal: TestLossProposed) -> str:
    count = len(proposal.tests)
    tests = "a test" if count == 1 else f"{count} tests"
    question = (
        f"Step {proposal.label} removes or weakens {tests}, and the plan does not"
        " list them under `Removes tests`. Allow it?"
    )
    lines = [question]
    lines += [f"  {lost.test} {lost.how}" for lost in proposal.tests[:_SHOWN_TESTS]]
    if count > _SHOWN_TESTS:
        lines.append(f"  and {count - _SHOWN_TESTS} more")
    return "\n".join(lines)


def _undo(proposal: UndoProposed) -> str:
    count = len(proposal.restored)
    files = "no files to restore"
    if count:
        noun = "1 file" if count == 1 else f"{count} files"
        files = f"{noun}: {first_names(proposal.restored)}"
    lines = [f"Undo {proposal.title}? ({files})"]
    facts = (
        ("  keeps your later edits in", proposal.merged),
        ("  edited since, left unchanged:", proposal.kept),
        ("  changed by commands, left unchanged:", proposal.others),
        ("  commits that stay:", tuple(name[:10] for name in proposal.commits)),
        (
            "  ran, with other effects that stay:",
            tuple(f"`{' '.join(command.split())}`" for command in proposal.commands),
        ),
    )
    for label, names in facts:
        if names:
            lines.append(f"{label} {first_names(names)}")
    return "\n".join(lines)


def _review(review: "Review", *, diff: bool) -> str:
    files = [
        _without_left_out(file)
        for file in review.files
        if len(file.left_out) < len(file.hunks) or not file.hunks
    ]
    files.sort(key=lambda file: _ORDER.index(file.verb))
    first = _review_question(review)
    if len(files) > 1:
        first += f"  {len(files)} files {_counts(*files)}".rstrip()
    lines = [first]
    if review.problem:
        lines.append(f"  cannot be applied: {' '.join(review.problem.split())}")
    rows = [f"  {_file_in_review(file)}  {_counts(file)}".rstrip() for file in files]
    lines += _cut(rows, "  and {} more files")
    left_out = [f"  left out: {part}" for part in review.left_out]
    lines += _cut(left_out, "  left out: {} more parts")
    if not diff:
        return "\n".join(lines)
    shown = review.diff().splitlines()
    lines += shown[:_SHOWN_DIFF]
    if len(shown) > _SHOWN_DIFF:
        lines.append(f"… and {len(shown) - _SHOWN_DIFF:,} more lines")
    return "\n".join(lines)


def _review_question(review: "Review") -> str:
    if review.is_empty:
        return "You left out every change. Reject them all?"
    parts = len(review.parts)
    accepted = parts - sum(len(file.left_out) for file in review.files)
    what = "these changes"
    if accepted != parts:
        what = f"{accepted} of {parts} parts"
    if review.step is not None:
        what += f" of step {review.step}"
    return f"Apply {what}?"


def _cut(lines: list[str], more: str) -> list[str]:
    """Return at most `SHOWN_NAMES` lines, and a last line with the number of further
    ones.
    """
    if len(lines) <= SHOWN_NAMES:
        return lines
    shown = lines[: SHOWN_NAMES - 1]
    return [*shown, more.format(len(lines) - len(shown))]


def _file_in_review(file: "FileReview") -> str:
    return f"{file.verb} {file.name}{' (edited)' * file.is_edited}"


def _without_left_out(file: "FileReview") -> "FileReview":
    hunks = tuple(
        hunk for place, hunk in enumerate(file.hunks) if place not in file.left_out
    )
    return replace(file, hunks=hunks, left_out={})


def _counts(*files: "FileReview") -> str:
    return lines_changed(
        [FileDiff(file.path, file.added, file.removed, "") for file in files]
    )


def part_in_words(file: "FileReview", hunks: Sequence[int]) -> str:
    """Return the part of the changes that is shown."""
    if len(hunks) == len(file.hunks):
        return f"{_file_in_review(file)}  {_counts(file)}"
    hunk = file.hunks[hunks[0]]
    counts = lines_changed([FileDiff(file.path, hunk.added, hunk.removed, "")])
    return f"{_file_in_review(file)}, {hunk.where}  {counts}"


def answers(proposal: Proposal) -> dict[str, Choice]:
    """Return the possible answers as words. The first letter of each is its key."""
    always = "all" if isinstance(proposal, ActionProposed) else "always"
    words = {
        Choice.YES: "yes",
        Choice.NO: "no",
        Choice.ALWAYS: always,
        Choice.QUIT: "quit",
    }
    return {words[choice]: choice for choice in proposal.choices}


@words_of.register
def describe_review(event: ChangesReviewed) -> Lines:
    lines = [(f"you left out: {part}", Tone.WARNING) for part in event.left_out]
    lines += [(f"you edited: {path}", Tone.PLAIN) for path in event.edited]
    return lines


@words_of.register
def describe_accepting_all(event: AcceptingAll) -> Lines:
    if not event.is_on:
        return [("cdd asks before it changes files again.", Tone.PLAIN)]
    text = (
        "From now on cdd changes files in this run without asking. Stop the run to be"
        " asked again."
    )
    return [(text, Tone.WARNING)]


@words_of.register
def describe_approval(event: ApprovalChanged) -> Lines:
    text = f"`{event.approval}` from now on: {MEANINGS[event.approval]}"
    return [(text, Tone.PLAIN)]


@words_of.register
def describe_person_answered(event: PersonAnswered) -> Lines:
    lines = [(event.question, Tone.QUIET)]
    if event.answer:
        lines.append((f"Your answer: {event.answer}", Tone.PLAIN))
    else:
        lines.append(("Not answered", Tone.WARNING))
    return lines


@words_of.register
def leave_out_proposals(
    event: ChangesProposed
    | CommandProposed
    | ActionProposed
    | TestLossProposed
    | UndoProposed,
) -> Lines:
    del event
    return []
