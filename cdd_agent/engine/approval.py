"""Asking a person about the changes of a run; and their answers, kept with an attempt
so that nobody is asked twice.

An answer is to certain changes of certain files, known by a digest, and to the call or
the reply that proposed them. It is saved before anything is done about it, with the
contents that the person has taken: what they are given once more after an interruption
is what they have seen.
"""

import asyncio
import re
from pathlib import Path
from typing import Self

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.edits.changes import ChangeSet
from cdd_agent.edits.file_diff import LeftOut
from cdd_agent.edits.model import ReplyRefused
from cdd_agent.edits.review import Review
from cdd_agent.edits.targets import Protected
from cdd_agent.errors import BadInput
from cdd_agent.events.question_events import AcceptingAll, ChangesReviewed, Choice
from cdd_agent.events.stream import Emit
from cdd_agent.files.atomic import read_bytes, write_atomic
from cdd_agent.files.json_file import JsonFile, set_aside
from cdd_agent.frontend import Frontend, OneAtATime, Reviewed

_OF_CALL = re.compile(r"answer-([0-9]+)(?:-[0-9]+|\.json)")


class _Accepted(Struct):
    is_on: bool = False


class Approval(Struct, frozen=True):
    """Whom to ask about changes, until they accept everything of the run."""

    person: Frontend
    _all: _Accepted = field(default_factory=_Accepted)

    @property
    def accepts_all(self) -> bool:
        return self._all.is_on

    def one_at_a_time(self, lock: asyncio.Lock) -> Self:
        """The same for work beside other work: the person is asked while nobody else
        has the lock.
        """
        return replace(self, person=OneAtATime(self.person, lock))

    def accept_all(self, emit: Emit, *, is_on: bool) -> None:
        """From now on nobody is asked, or somebody is again."""
        if is_on is not self.accepts_all:
            self._all.is_on = is_on
            emit(AcceptingAll(is_on))


async def ask_about(
    changes: ChangeSet,
    step: str | None,
    person: Frontend,
    root: Path,
    protected: Protected,
) -> tuple[Reviewed, ChangeSet]:
    """A person's answer, and what is taken by it: nothing where they refuse. They are
    asked until what they take can be written: a hunk may need another one, and an edit
    may be wrong. Raises `NotApproved` where there is nobody.
    """
    review = await asyncio.to_thread(Review.of, step, changes)
    while True:
        answer = await person.review(review)
        if answer.choice not in (Choice.YES, Choice.ALWAYS):
            return replace(answer, review=review.leave_all(answer.reason)), ChangeSet(
                ()
            )
        if answer.review.is_untouched:
            return answer, changes
        try:
            return answer, await asyncio.to_thread(
                answer.review.changes, root, protected
            )
        except ReplyRefused as refusal:
            review = replace(answer.review, problem=refusal.message)


class _Saved(JsonFile, frozen=True):
    proposed: str
    choice: Choice
    reason: str
    left_out: tuple[LeftOut, ...]
    edited: tuple[str, ...]
    told: str
    results: dict[str, str | None] | None
    """The name of the copy of each file that was taken, None for one that goes; all
    together None: as proposed.
    """


class Answer(Struct, frozen=True):
    """A person's answer about changes, and those of them that are to be made."""

    reviewed: ChangesReviewed
    changes: ChangeSet
    told: str
    """For the model: what of its changes was not taken, and why; empty where all was.
    """

    @property
    def altered(self) -> frozenset[str]:
        """The files of which the model does not know what is in them now."""
        return frozenset(
            (*self.reviewed.edited, *(part.path for part in self.reviewed.left_out))
        )


class ChangesRefused(ReplyRefused):
    """A person has taken nothing of some changes, and said why: the model is told, and
    asked again.
    """

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.told)
        self.reason = answer.reviewed.reason or "; ".join(
            map(str, answer.reviewed.left_out)
        )


class KeptAnswers(Struct, frozen=True):
    """The answers in an attempt's folder: one for each call of a tool that changed
    files, and one for the reply.
    """

    folder: Path

    def save(self, call: int | None, proposed: str, answer: Answer) -> None:
        """Keep the answer to the changes of a call, or without one of the reply. Raises
        `BadInput`.
        """
        results: dict[str, str | None] | None = None
        if answer.told:
            results = {}
            for index, change in enumerate(answer.changes.changes):
                results[str(change.path)] = (
                    None if change.after is None else f"{self._name(call)}-{index}"
                )
                if change.after is not None:
                    write_atomic(
                        self.folder / f"{self._name(call)}-{index}", change.after
                    )
        told = answer.reviewed
        saved = _Saved(
            proposed=proposed,
            choice=told.choice,
            reason=told.reason,
            left_out=told.left_out,
            edited=told.edited,
            told=answer.told,
            results=results,
        )
        saved.save(self.folder / f"{self._name(call)}.json")

    def find(
        self, call: int | None, proposed: str, changes: ChangeSet, step: int
    ) -> Answer | None:
        """The answer to these changes, if it was given. Raises `BadInput` where a part
        of it is gone.
        """
        saved = _Saved.load(self.folder / f"{self._name(call)}.json")
        if saved is None or saved.proposed != proposed:
            return None
        told = ChangesReviewed(
            step, saved.choice, saved.reason, saved.left_out, saved.edited
        )
        if (results := saved.results) is not None:
            taken = (
                change for change in changes.changes if str(change.path) in results
            )
            changes = ChangeSet(
                tuple(
                    replace(change, after=self._content(results[str(change.path)]))
                    for change in taken
                ),
                changes.notes,
            )
        return Answer(told, changes, saved.told)

    def set_calls_aside(self, since: int) -> None:
        """The answers about calls from this one on, in a round that was interrupted."""
        for path in self.folder.glob("answer-*"):
            found = _OF_CALL.fullmatch(path.name)
            if found and int(found[1]) >= since:
                set_aside(path)

    def _name(self, call: int | None) -> str:
        return "answer-reply" if call is None else f"answer-{call}"

    def _content(self, name: str | None) -> bytes | None:
        content = read_bytes(self.folder / name) if name is not None else None
        if name is not None and content is None:
            raise BadInput(
                f"{self.folder / name} is gone: what was taken of a file's change"
            )
        return content
