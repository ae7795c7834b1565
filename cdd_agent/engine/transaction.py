"""A step's files while it is carried out: each change is judged, asked about, entered
in the ledger and written, in this order.

A reply in words makes its changes at once, at its end. A model with tools
(`step_tools.py`) makes them call by call, and runs commands in between: what a command
makes of a file that the step has written is the step's doing, too. Either way it is one
transaction: the ledger (`ledger.py`) knows what all of it replaced.
"""

import asyncio
import codecs
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from pathlib import Path, PurePosixPath

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.edits.build import change_set
from cdd_agent.edits.changes import ChangeSet, FileChange, changed_meanwhile
from cdd_agent.edits.excerpts import Ranges, joined, known_after, lines_of
from cdd_agent.edits.model import BY_CALL, IN_BLOCKS, Edit, ReplyRefused
from cdd_agent.edits.policy import EditPolicy
from cdd_agent.edits.review import proposal_digest
from cdd_agent.edits.targets import Protected
from cdd_agent.engine.approval import Answer, Approval, ChangesRefused, ask_about
from cdd_agent.engine.attempt import Attempt, Shown
from cdd_agent.engine.ledger import Ledger, Owns, RecordRemoved, States
from cdd_agent.engine.ledger_entries import private_paths
from cdd_agent.engine.ledger_file import Entry
from cdd_agent.engine.named_files import named
from cdd_agent.engine.restoring import Restorer
from cdd_agent.errors import NotApproved
from cdd_agent.events.notices import Notice, NoticeKind, Tone
from cdd_agent.events.question_events import ChangesProposed, ChangesReviewed, Choice
from cdd_agent.events.step_events import CheckpointStarted
from cdd_agent.events.stream import Emit
from cdd_agent.files.atomic import digest, read_bytes
from cdd_agent.files.paths import path_inside, without_links
from cdd_agent.git.diff import Change
from cdd_agent.git.snapshot import LARGEST_SAVED
from cdd_agent.threads import to_its_end
from cdd_agent.tickets.declared_files import DeclaredFiles
from cdd_agent.tickets.plan import PlanStep
from cdd_agent.verification.before import Before
from cdd_agent.verification.permissions import Permissions
from cdd_agent.work_clock import WorkClock

Known = Callable[[], Awaitable[Before]]
"""What is known of the tests before a step; from then on the project may be changed.
See `KnownBefore`.
"""


def tell_uncovered(ledger: Ledger) -> Iterator[Notice]:
    """Yield a warning about what no undo covers and nobody was told of."""
    uncovered = ledger.news_of_uncovered()
    if uncovered:
        text = f"No undo covers {', '.join(uncovered)}"
        yield Notice(text, Tone.WARNING, kind=NoticeKind.NOT_IN_CHECKPOINT)


class StepTransaction(Struct):
    """The files of one attempt."""

    root: Path
    step: PlanStep
    declared: DeclaredFiles
    attempt: Attempt
    ledger: Ledger
    approval: Approval | None
    """None: changes are written without a question."""
    protected: Protected
    clock: WorkClock
    """Stands still while a person is asked, and until it is `known` what the tests were
    like.
    """
    emit: Emit
    known: Known
    is_begun: bool = False
    """Its checkpoint is taken."""
    call_by_call: bool = False
    """Calls change the files one after the other: what they will write is not known
    when the checkpoint is taken.
    """
    told: str = ""
    """The attempt's changes that the person did not take, or edited, in words for the
    model.
    """
    _seen: dict[str, str | None] = field(default_factory=dict)
    """The model's knowledge of files, as `EditPolicy` has it."""
    in_part: dict[str, Ranges] = field(default_factory=dict)
    """The same of those that its prompt shows in part."""
    _read: dict[str, tuple[str | None, Ranges]] = field(default_factory=dict)
    """The lines that it has read of others, each with the content that they were read
    of.
    """
    _made: dict[PurePosixPath, FileChange] = field(default_factory=dict)
    """The fate of each file since the attempt began."""

    def __post_init__(self) -> None:
        if (shown := self.attempt.shown) is not None:
            self.show(shown)

    @property
    def changes(self) -> ChangeSet:
        """All that the attempt changed so far."""
        return ChangeSet(
            tuple(made for made in self._made.values() if made.before != made.after)
        )

    def show(self, shown: Shown) -> None:
        """The model is shown this."""
        self._seen |= shown.files
        self.in_part = {
            path: lines
            for path, lines in self.in_part.items()
            if path not in shown.files
        }
        self.in_part |= shown.in_part

    def remember(
        self, name: str, text: str, first: int = 1, *, is_whole: bool = False
    ) -> None:
        """The model has read this, as lines of a file from the `first` on. Where they
        are there, it may change them; who has read all that is in a file may replace
        it. `is_whole`: it was told that this is all.
        """
        path = path_inside(self.root, name)
        if path is None or not (self.root / path).is_file():
            return
        content = read_bytes(self.root / path)
        if content is None:
            return
        now = digest(content)
        self._note_reading(path, now)
        if is_whole and content.decode("utf-8-sig", errors="replace") == text:
            self._seen[path] = now
            self.in_part.pop(path, None)
            return
        lines = lines_of(content.removeprefix(codecs.BOM_UTF8))
        told = b"".join(
            lines[first - 1 : first - 1 + len(lines_of(text.encode(errors="replace")))]
        )
        if told.decode(errors="replace").rstrip("\r\n") != text.rstrip("\r\n"):
            return
        last = first + len(lines_of(told)) - 1
        if path in self.in_part:
            known = self.in_part[path] if self._seen.get(path) == now else ()
        else:
            read_of, known = self._read.get(path, (now, ()))
            known = known if read_of == now else ()
        known = joined((*known, (first, last)))
        if known == ((1, len(lines)),):
            self._seen[path] = now
            self.in_part.pop(path, None)
        elif path in self.in_part:
            self._seen[path], self.in_part[path] = now, known
        else:
            self._read[path] = now, known

    def _note_reading(self, path: str, now: str | None) -> None:
        """In a tree beside the person's it matters also what was only read."""
        shown = self.attempt.shown if self.attempt.side is not None else None
        if (
            shown is not None
            and path not in shown.all_files
            and PurePosixPath(path) not in self._made
        ):
            self.attempt.save_shown(replace(shown, read={**shown.read, path: now}))

    async def change(
        self, edits: Sequence[Edit], *, call: int | None = None, again: bool = False
    ) -> tuple[ChangeSet, str]:
        """Do all of these edits, or none; or what a person takes of them. Returns what
        that changed, and what they did not take, in words for the model; what did not
        have to be done is told. `call` is the number of the call that makes the edits,
        None for the reply. `again`: they were done before an interruption; nobody is
        asked or told once more.

        Raises `ReplyRefused` with reasons for the model, `NotApproved`, `GitUnusable`
        when no checkpoint can be taken, or `BadInput` when the disk refuses.
        """
        await self._wait_until_known()
        changes = await asyncio.to_thread(
            change_set, self.root, edits, self._policy(), self.protected
        )
        for note in () if again else changes.notes:
            self.emit(Notice(f"{note}.", kind=NoticeKind.FILE_NOTE))
        if not changes.changes:
            return changes, ""
        for change in changes.changes:
            made = self._made.get(change.path)
            if made is not None and made.after != change.before:
                raise changed_meanwhile(change.path)
        if not again:
            self.emit(
                ChangesProposed(
                    self.step.number, changes.created, changes.modified, changes.deleted
                )
            )
        answer = await self._answer(changes, call, again=again)
        told, altered = (
            (answer.told, answer.altered) if answer else ("", frozenset[str]())
        )
        self.told = "\n\n".join(filter(None, (self.told, told)))
        changes = answer.changes if answer else changes
        if answer is not None and not changes.changes:
            raise ChangesRefused(answer)
        ignored = await self._begin_change(changes)
        with self.ledger.writing(self.attempt, changes, ignored, call):
            # the answer may have taken hours: each file is looked at once more
            changes.apply(self.root)
        for change in changes.changes:
            self._take_over(change)
        for path in altered:
            self._seen.pop(path, None)
        return changes, told

    async def _answer(
        self, changes: ChangeSet, call: int | None, *, again: bool
    ) -> Answer | None:
        """The person's answer about changes, which may have been given before an
        interruption. None: nobody has to be asked. Raises `NotApproved` where they want
        nothing of it, and gave no reason.
        """
        answers, proposed, number = (
            self.attempt.answers,
            proposal_digest(changes),
            self.step.number,
        )
        answer = answers.find(call, proposed, changes, number)
        if (
            answer is None
            and not again
            and self.approval is not None
            and not self.approval.accepts_all
        ):
            answer = await self._ask(self.approval, changes)
            answers.save(call, proposed, answer)
            if answer.reviewed.choice is Choice.ALWAYS:
                self.approval.accept_all(self.emit, is_on=True)
        if answer is not None and not again:
            self.emit(answer.reviewed)
        return answer

    async def _ask(self, approval: Approval, changes: ChangeSet) -> Answer:
        with self.clock.standing_still():
            answer, taken = await ask_about(
                changes, self.step.label, approval.person, self.root, self.protected
            )
        redact, review = self.attempt.redactor.redact, answer.review
        reason = redact(answer.reason)
        if answer.choice not in (Choice.YES, Choice.ALWAYS) and not reason:
            raise NotApproved(
                f"The changes of step {self.step.label} were not approved; nothing was"
                " written"
            )
        left_out, edited = ((), ()) if reason else (review.left_out, review.edited)
        told = ChangesReviewed(
            self.step.number, answer.choice, reason, left_out, edited
        )
        return Answer(
            self.attempt.redactor.redacted(told), taken, redact(review.told(reason))
        )

    async def begin(self, touched: Sequence[str] = ()) -> None:
        """See that there is a checkpoint from before the attempt, in which all is that
        will be written.
        """
        if not self.is_begun:
            await self._wait_until_known()
            self.emit(CheckpointStarted(self.step.number))
            # commands and checks may change declared files that git ignores
            declared = await asyncio.to_thread(self._declared_paths)
            await self.ledger.begin(self.attempt, (*declared, *touched))
            self.is_begun = True
            for notice in tell_uncovered(self.ledger):
                self.emit(notice)

    async def _begin_change(self, changes: ChangeSet) -> frozenset[str]:
        """Begin, and return the ignored files among the changes. Raises `ReplyRefused`
        for a large ignored file that the step does not declare.
        """
        touched = changes.touched
        was_begun = self.is_begun
        await self.begin(touched)
        if was_begun:
            ignored = await self.ledger.find_ignored(self.attempt, touched)
        else:
            # the first look has asked for all of these
            ignored = private_paths(self.attempt).intersection(touched)
        for change in changes.changes:
            path = str(change.path)
            if path not in ignored or self.declared.covers(path):
                continue
            size = max(len(data or b"") for data in (change.before, change.after))
            if size > LARGEST_SAVED:
                raise ReplyRefused(
                    f"{path} is ignored by git and has {size:,} bytes: there would be"
                    " no way back from a change of it.",
                    hint="Leave it alone.",
                )
        return ignored

    async def _wait_until_known(self) -> None:
        with self.clock.standing_still():
            await self.known()

    def start_command(self, by: str, call: int | None = None) -> States:
        """Enter that a command of a tool's call, or without `call` a check, starts.
        Returns the step's files as they are.
        """
        return self.ledger.start(self.attempt, by, self._declared_paths(), call=call)

    def _declared_paths(self) -> frozenset[str]:
        """Return the files that the step declares, as their folders are without
        links.
        """
        paths = self.declared.usable_paths()
        return frozenset(without_links(self.root, path) for path in paths)

    def _find_declared(self) -> Owns:
        """Return what tells whether the step declares a file, whose path has no
        links.
        """
        paths = self._declared_paths()
        return lambda path: path in paths or self.declared.covers(path)

    async def take_over_from_check(self, states: States, by: str) -> None:
        """Whatever the checks made of the step's files is the step's doing."""
        await self._look_after(states, by)

    async def _look_after(
        self,
        states: States,
        by: str,
        call: int | None = None,
        ignored: Sequence[str] = (),
    ) -> Entry:
        """See `Ledger.look_after`. If the record was removed, what the attempt wrote
        is entered once more, so that it can be undone.
        """
        owns = self._find_declared()
        try:
            return await self.ledger.look_after(
                self.attempt, states, owns, by, call=call, ignored=ignored
            )
        except RecordRemoved:
            self.ledger.enter_again(self.attempt, self.changes)
            raise

    async def take_over_from_command(
        self, states: States, by: str, call: int, ignored: Sequence[str]
    ) -> None:
        """Whatever a command made of the step's files is the step's doing from now on.
        The model has seen none of it: what it knows of these files is out of date.
        `ignored` are files that git ignores and that the command changed.
        """
        owns = self._find_declared()
        ignored = [path for path in ignored if not owns(path)]
        entry = await self._look_after(states, by, call, ignored)
        self._take_over_changes(entry.changes)
        if entry.ignored:
            text = (
                f"`{by}` changed files that git ignores, which no undo restores:"
                f" {named(entry.ignored)}"
            )
            self.emit(Notice(text, kind=NoticeKind.CHANGED_BESIDE))

    async def redo_command(self, entry: Entry) -> None:
        """Write once more what a command made of the step's files. Raises
        `ReplyRefused` where somebody else has changed one since.
        """
        await self.begin([change.path for change in entry.changes])
        changes = await to_its_end(
            partial(self.ledger.redo_command, self.attempt, entry), name="redo"
        )
        self._take_over_changes(changes)

    def _take_over_changes(self, changes: Sequence[Change]) -> None:
        """Take in what a command changed."""
        for change in changes:
            path = PurePosixPath(change.path)
            before = self.ledger.read(self.attempt, change.before)
            first = self._made.get(path)
            self._made[path] = FileChange(
                path,
                first.before if first else before,
                self.ledger.read(self.attempt, change.after),
            )
            if first is None:
                self._note_change(change.path, before)

    async def save_diff(self) -> None:
        """Save what the attempt changed as a diff for people."""
        if self.attempt.side is None:
            self.attempt.save_diff(await self.ledger.diff([self.attempt]))

    def discard_work(self) -> None:
        """Restore the files that were written, and forget what the model has seen."""
        Restorer(self.root, [self.attempt]).restore()
        self._made.clear()
        self._seen.clear()
        self.in_part.clear()
        self._read.clear()
        self.told = ""
        self.call_by_call = self.is_begun = False

    def _policy(self) -> EditPolicy:
        """Return the rules by what the model knows, and by what the plan allows."""
        permissions = Permissions.of_step(
            self.step, self.declared, self.attempt.all_guidance
        )
        return EditPolicy(
            self._seen,
            self.in_part,
            permissions.may_delete,
            permissions.declares,
            BY_CALL if self.call_by_call else IN_BLOCKS,
        )

    def _take_over(self, change: FileChange) -> None:
        first, path = self._made.get(change.path), str(change.path)
        self._made[change.path] = replace(
            change, before=first.before if first else change.before
        )
        if first is None:
            self._note_change(path, change.before)
        is_known = change.before is None or self._seen.get(path) == digest(
            change.before
        )
        # who has changed a part has not seen the rest
        if is_known or change.after is None:
            self._seen[path] = digest(change.after)
            shown_lines = self.in_part.pop(path, None)
            if (
                shown_lines is not None
                and change.before is not None
                and change.after is not None
            ):
                self.in_part[path] = (
                    known_after(change.before, change.after, shown_lines) or ()
                )

    def _note_change(self, path: str, before: bytes | None) -> None:
        """Save what a file was before tools changed it: the dialogue goes on only where
        that is there.
        """
        shown = self.attempt.shown
        # a reply finds its places again, or is refused
        is_needed = self.call_by_call or self.attempt.side is None
        if shown is not None and path not in shown.all_files and is_needed:
            changed = {**shown.changed, path: digest(before)}
            self.attempt.save_shown(replace(shown, changed=changed))
