"""Asks the user about a run's changes, and saves the answers.

An answer belongs to certain changes, identified by a digest, and to the call or reply
that proposed them. It is saved with the accepted contents before anything else, so that
after an interruption the same changes are made without asking.
"""

import asyncio
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from typing import Self

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.changes.accepted_changes import accepted_changes
from cdd_agent.changes.change_set import ChangeSet
from cdd_agent.changes.file_diff import LeftOut
from cdd_agent.changes.model import ReplyRefused
from cdd_agent.changes.review import Review
from cdd_agent.changes.targets import Protected
from cdd_agent.engine.approval_mode import ApprovalMode
from cdd_agent.errors import BadInput
from cdd_agent.events.question_events import AcceptingAll, ChangesReviewed, Choice
from cdd_agent.events.stream import Emit
from cdd_agent.files.atomic import read_bytes, write_atomic
from cdd_agent.files.charsets import Charsets
from cdd_agent.files.json_file import JsonFile, set_aside
from cdd_agent.frontend import Decision, Frontend
from cdd_agent.pattern import Pattern
from cdd_agent.refusals.kinds import Refusal

_OF_CALL = Pattern(r"answer-([0-9]+)(?:-[0-9]+|\.json)")


class Approval(Struct, frozen=True):
    """Asks the user about a run's changes, as the session's mode requires."""

    person: Frontend
    mode: ApprovalMode
    run: Path
    lock: asyncio.Lock | None = None
    """Held while asking, if steps run side by side."""

    def must_ask(self) -> bool:
        return self.mode.asks_before_edits(self.run)

    @property
    def accepts_all(self) -> bool:
        return self.mode.accepted_run == self.run

    def one_at_a_time(self, lock: asyncio.Lock) -> Self:
        """Return an approval for a side tree, which asks only while it holds the
        lock.
        """
        return replace(self, lock=lock)

    def turn(self) -> AbstractAsyncContextManager[object]:
        """Wait until the user can be asked. The mode may change during the wait."""
        return nullcontext() if self.lock is None else self.lock

    def accept_all(self, emit: Emit, *, is_on: bool) -> None:
        if is_on is not self.accepts_all:
            self.mode.accepted_run = self.run if is_on else None
            emit(AcceptingAll(is_on))

    def end(self) -> None:
        """Stop accepting all changes of the run, which is closed."""
        if self.accepts_all:
            self.mode.accepted_run = None


async def ask_about(
    changes: ChangeSet,
    step: str | None,
    person: Frontend,
    root: Path,
    protected: Protected,
) -> tuple[Decision, ChangeSet]:
    """Return the user's answer and the accepted changes, none if refused. Asks again
    until they can be written: hunks may depend on each other, and edits may be wrong.
    Raises `NotApproved` if there is no user.
    """
    review = await asyncio.to_thread(Review.from_changes, step, changes, Charsets(root))
    while True:
        answer = await person.review(review)
        if answer.choice not in (Choice.YES, Choice.ALWAYS):
            refused = replace(answer, review=review.leave_all(answer.reason))
            return refused, ChangeSet(())
        if answer.review.is_untouched:
            return answer, changes
        try:
            accepted = await asyncio.to_thread(
                accepted_changes, answer.review, root, protected
            )
        except ReplyRefused as refusal:
            review = replace(answer.review, problem=refusal.message)
        else:
            return answer, accepted


class _SavedOutcome(JsonFile, frozen=True):
    proposed: str
    choice: Choice
    reason: str
    left_out: tuple[LeftOut, ...]
    edited: tuple[str, ...]
    told: str
    results: dict[str, str | None] | None
    """File → name of the saved copy of its accepted content, None if deleted. None
    instead of a dictionary: all was accepted as proposed.
    """


class ReviewOutcome(Struct, frozen=True):
    reviewed: ChangesReviewed
    changes: ChangeSet
    told: str
    """For the model: which changes were not accepted, and why; empty if all were."""

    @property
    def altered(self) -> frozenset[str]:
        """Files whose current content the model does not know."""
        return frozenset(
            (*self.reviewed.edited, *(part.path for part in self.reviewed.left_out))
        )


class ChangesRefused(ReplyRefused):
    """The user accepted nothing, and gave a reason. The model is asked again."""

    def __init__(self, answer: ReviewOutcome) -> None:
        super().__init__(answer.told)
        self.reason = answer.reviewed.reason or "; ".join(
            map(str, answer.reviewed.left_out)
        )
        self.refusal = Refusal.CHANGES_REJECTED


class KeptAnswers(Struct, frozen=True):
    """Answers in an attempt's folder: one for each call that changed files, and one for
    the reply.
    """

    folder: Path

    def save(self, call: int | None, proposed: str, answer: ReviewOutcome) -> None:
        """`call` is None for the reply. Raises `BadInput`."""
        name = self._name(call)
        results: dict[str, str | None] | None = None
        if answer.told:
            results = {}
            for index, change in enumerate(answer.changes.changes):
                path = str(change.path)
                if change.after is None:
                    results[path] = None
                    continue
                results[path] = f"{name}-{index}"
                write_atomic(self.folder / f"{name}-{index}", change.after)
        reviewed = answer.reviewed
        saved = _SavedOutcome(
            proposed=proposed,
            choice=reviewed.choice,
            reason=reviewed.reason,
            left_out=reviewed.left_out,
            edited=reviewed.edited,
            told=answer.told,
            results=results,
        )
        saved.save(self.folder / f"{name}.json")

    def find(
        self, call: int | None, proposed: str, changes: ChangeSet, step: int
    ) -> ReviewOutcome | None:
        """Return the saved answer about these changes, or None. Raises `BadInput` if a
        part of it is missing.
        """
        saved = _SavedOutcome.load(self.folder / f"{self._name(call)}.json")
        if saved is None or saved.proposed != proposed:
            return None
        reviewed = ChangesReviewed(
            step, saved.choice, saved.reason, saved.left_out, saved.edited
        )
        if saved.results is None:
            return ReviewOutcome(reviewed, changes, saved.told)
        accepted = []
        for change in changes.changes:
            path = str(change.path)
            if path in saved.results:
                content = self._content(saved.results[path])
                accepted.append(replace(change, after=content))
        changes = ChangeSet(tuple(accepted), changes.notes)
        return ReviewOutcome(reviewed, changes, saved.told)

    def set_calls_aside(self, since: int) -> None:
        """Rename answers about calls from this number on, of an interrupted round."""
        for path in self.folder.glob("answer-*"):
            match = _OF_CALL.fullmatch(path.name)
            if match and int(match[1]) >= since:
                set_aside(path)

    def _name(self, call: int | None) -> str:
        return "answer-reply" if call is None else f"answer-{call}"

    def _content(self, name: str | None) -> bytes | None:
        if name is None:
            return None
        content = read_bytes(self.folder / name)
        if content is None:
            raise BadInput(
                f"{self.folder / name} is missing: it has the accepted part of a file's"
                " change",
                refusal=Refusal.STATE_UNREADABLE,
            )
        return content
