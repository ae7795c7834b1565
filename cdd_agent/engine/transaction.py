"""A step's files while it runs. Each change is checked, approved, entered in the
ledger, and written, in this order.

A reply in text makes its changes at its end. A model with tools (`step_tools.py`) makes
them call by call, with commands between; a command's change to a file of the step
belongs to the step. Either way it is one transaction, with every file's old content in
the ledger (`ledger.py`).
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path, PurePosixPath

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.changes.build import change_set
from cdd_agent.changes.change_set import ChangeSet, FileChange, build_changed_refusal
from cdd_agent.changes.excerpts import find_seen_after
from cdd_agent.changes.model import BY_CALL, IN_BLOCKS, Edit, ReplyFault, ReplyRefused
from cdd_agent.changes.policy import EditPolicy
from cdd_agent.changes.review import proposal_digest
from cdd_agent.changes.targets import Protected
from cdd_agent.engine.approval import Approval, ChangesRefused, ReviewOutcome, ask_about
from cdd_agent.engine.attempt import Attempt, Shown
from cdd_agent.engine.ledger import Ledger, Owns, RecordRemoved, States
from cdd_agent.engine.ledger_entries import private_paths
from cdd_agent.engine.ledger_file import LedgerEntry
from cdd_agent.engine.named_files import named
from cdd_agent.engine.restoring import Restorer
from cdd_agent.errors import NotApproved
from cdd_agent.events.notices import Notice, NoticeKind, Tone
from cdd_agent.events.question_events import ChangesProposed, ChangesReviewed, Choice
from cdd_agent.events.step_events import CheckpointStarted
from cdd_agent.events.stream import Emit
from cdd_agent.files.atomic import digest, read_bytes
from cdd_agent.files.charsets import Charsets
from cdd_agent.files.line_ranges import Ranges, join_ranges
from cdd_agent.files.notebooks import find_hidden_lines, find_shown_lines
from cdd_agent.files.paths import path_inside, without_links
from cdd_agent.files.text import decode_file, decode_versions, lines_of
from cdd_agent.git.diff import Change
from cdd_agent.git.snapshot import LARGEST_SAVED
from cdd_agent.process.work_clock import WorkClock
from cdd_agent.threads import to_its_end
from cdd_agent.tickets.declared_files import DeclaredFiles
from cdd_agent.tickets.plan import PlanStep
from cdd_agent.verification.permissions import Permissions


def uncovered_notices(ledger: Ledger) -> Iterator[Notice]:
    """Yield a warning about new paths that no undo covers."""
    uncovered = ledger.new_uncovered()
    if uncovered:
        text = f"Changes of {', '.join(uncovered)} cannot be undone"
        yield Notice(text, Tone.WARNING, kind=NoticeKind.NOT_IN_CHECKPOINT)


class StepTransaction(Struct):
    """The files of one attempt."""

    root: Path
    step: PlanStep
    declared: DeclaredFiles
    attempt: Attempt
    ledger: Ledger
    approval: Approval
    protected: Protected
    clock: WorkClock
    """Stops while the user is asked."""
    emit: Emit
    is_begun: bool = False
    """True after the checkpoint before the attempt was taken."""
    call_by_call: bool = False
    """True if calls change the files one by one, so that the checkpoint is taken before
    all changed files are known.
    """
    told: str = ""
    """For the model: changes that the user refused or edited."""
    _seen: dict[str, str | None] = field(default_factory=dict)
    """File → digest of the content that the model knows, as in `EditPolicy`."""
    in_part: dict[str, Ranges] = field(default_factory=dict)
    """Lines of files that the prompt shows in part."""
    _read: dict[str, tuple[str | None, Ranges]] = field(default_factory=dict)
    """File → digest of its content, and the lines of it that the model has read."""
    _made: dict[PurePosixPath, FileChange] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shown = self.attempt.shown
        if shown is not None:
            self.show(shown)

    @property
    def changes(self) -> ChangeSet:
        """All changes so far."""
        return ChangeSet(
            tuple(made for made in self._made.values() if made.before != made.after)
        )

    def show(self, shown: Shown) -> None:
        """Note what the model was shown."""
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
        """Note that the model has read these lines, from line `first` on, and may
        change them; having read a whole file, it may replace it. `is_whole`: the tool's
        answer was the whole file.
        """
        path = path_inside(self.root, name)
        if path is None or not (self.root / path).is_file():
            return
        content = read_bytes(self.root / path)
        if content is None:
            return
        now = digest(content)
        self._note_reading(path, now)
        shown = decode_file(PurePosixPath(path), content, Charsets(self.root)).shown
        if is_whole and shown == text:
            self._seen[path] = now
            self.in_part.pop(path, None)
            return
        lines = lines_of(shown)
        if find_hidden_lines(path, shown):
            seen = find_shown_lines(path, shown, text, first)
            self._remember_lines(path, now, seen, len(lines))
            return
        in_file = lines[first - 1 : first - 1 + len(lines_of(text))]
        if "".join(in_file).rstrip("\r\n") != text.rstrip("\r\n"):
            return
        last = first + len(in_file) - 1
        self._remember_lines(path, now, ((first, last),), len(lines))

    def _remember_lines(
        self, path: str, now: str | None, seen: Ranges, line_count: int
    ) -> None:
        lines = join_ranges((*self._known_lines(path, now), *seen))
        if lines == ((1, line_count),):
            self._seen[path] = now
            self.in_part.pop(path, None)
        elif path in self.in_part:
            self._seen[path], self.in_part[path] = now, lines
        else:
            self._read[path] = now, lines

    def _known_lines(self, path: str, now: str | None) -> Ranges:
        if path in self.in_part:
            return self.in_part[path] if self._seen.get(path) == now else ()
        digest_read, lines = self._read.get(path, (now, ()))
        return lines if digest_read == now else ()

    def _note_reading(self, path: str, now: str | None) -> None:
        shown = self.attempt.shown
        if self.attempt.side is None or shown is None:
            return
        if path in shown.all_files or PurePosixPath(path) in self._made:
            return
        self.attempt.save_shown(replace(shown, read={**shown.read, path: now}))

    def _expect_current(self, changes: ChangeSet) -> None:
        """Raise `ReplyRefused` if a file was edited since the attempt wrote it."""
        for change in changes.changes:
            made = self._made.get(change.path)
            if made is not None and made.after != change.before:
                raise build_changed_refusal(change.path)

    async def change(
        self, edits: Sequence[Edit], *, call: int | None = None, again: bool = False
    ) -> tuple[ChangeSet, str]:
        """Make all edits or none; or those that the user accepts. Returns the changes,
        and what the user did not accept, for the model.

        `call` is the number of the call that makes the edits, None for the reply.
        `again`: repeat edits from before an interruption, without questions or reports.

        Raises `ReplyRefused` with reasons for the model, `NotApproved`, `GitUnusable`
        if no checkpoint can be taken, or `BadInput` if the disk refuses.
        """
        changes = await asyncio.to_thread(
            change_set, self.root, edits, self._policy(), self.protected
        )
        for note in () if again else changes.notes:
            self.emit(Notice(f"{note}.", kind=NoticeKind.FILE_NOTE))
        if not changes.changes:
            return changes, ""
        self._expect_current(changes)
        if not again:
            self.emit(
                ChangesProposed(
                    self.step.number, changes.created, changes.modified, changes.deleted
                )
            )
        ignored = None
        if not again and not self.approval.must_ask():
            # this may take seconds, in which the mode may change
            ignored = await self._begin_change(changes)
        answer = await self._answer(changes, call, again=again)
        answer_for_model = ""
        altered = frozenset[str]()
        if answer is not None:
            answer_for_model, altered, changes = (
                answer.told,
                answer.altered,
                answer.changes,
            )
            self.told = "\n\n".join(filter(None, (self.told, answer_for_model)))
            if not changes.changes:
                raise ChangesRefused(answer)
        if ignored is None or answer is not None:
            ignored = await self._begin_change(changes)
        with self.ledger.writing(self.attempt, changes, ignored, call):
            # the answer may have taken hours, so files are compared again
            changes.apply(self.root)
        self._note_written(changes, altered)
        return changes, answer_for_model

    def _note_written(self, changes: ChangeSet, altered: Iterable[str]) -> None:
        for change in changes.changes:
            self._take_over(change)
        for path in altered:
            self._seen.pop(path, None)

    async def _answer(
        self, changes: ChangeSet, call: int | None, *, again: bool
    ) -> ReviewOutcome | None:
        """Return the user's answer, perhaps from before an interruption. None if no
        question is needed. Raises `NotApproved` if the user refuses all without a
        reason.
        """
        answers, proposed = self.attempt.answers, proposal_digest(changes)
        answer = answers.find(call, proposed, changes, self.step.number)
        if again:
            return answer
        if answer is None:
            answer = await self._ask(changes)
            if answer is None:
                return None
            answers.save(call, proposed, answer)
            if answer.reviewed.choice is Choice.ALWAYS:
                self.approval.accept_all(self.emit, is_on=True)
        self.emit(answer.reviewed)
        return answer

    async def _ask(self, changes: ChangeSet) -> ReviewOutcome | None:
        approval = self.approval
        if not approval.must_ask():
            return None
        with self.clock.standing_still():
            async with approval.turn():
                if not approval.must_ask():
                    return None
                answer, accepted = await ask_about(
                    changes, self.step.label, approval.person, self.root, self.protected
                )
        redact, review = self.attempt.redactor.redact, answer.review
        reason = redact(answer.reason)
        if answer.choice not in (Choice.YES, Choice.ALWAYS) and not reason:
            raise NotApproved(
                f"You did not approve the changes of step {self.step.label}."
                " Nothing was written"
            )
        reviewed = ChangesReviewed(self.step.number, answer.choice, reason)
        if not reason:
            reviewed = replace(reviewed, left_out=review.left_out, edited=review.edited)
        return ReviewOutcome(
            self.attempt.redactor.redacted(reviewed),
            accepted,
            redact(review.answer_model(reason)),
        )

    async def begin(self, touched: Sequence[str] = ()) -> None:
        """Take the checkpoint before the attempt, once. `touched` are files that will
        be written.
        """
        if self.is_begun:
            return
        self.emit(CheckpointStarted(self.step.number))
        # commands and checks may change ignored declared files
        declared = await asyncio.to_thread(self._declared_paths)
        await self.ledger.begin(self.attempt, (*declared, *touched))
        self.is_begun = True
        for notice in uncovered_notices(self.ledger):
            self.emit(notice)

    async def _begin_change(self, changes: ChangeSet) -> frozenset[str]:
        """Return the ignored files. Raises `ReplyRefused` for a large one that is not
        declared.
        """
        touched = changes.touched
        was_begun = self.is_begun
        await self.begin(touched)
        if was_begun:
            ignored = await self.ledger.find_ignored(self.attempt, touched)
        else:
            # the first checkpoint covers all of these
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
                    fault=ReplyFault.FORBIDDEN,
                    detail="git ignores it, and it is too large to save",
                    path=str(path),
                )
        return ignored

    def start_command(self, by: str, call: int | None = None) -> States:
        """Enter the start of a command or, without `call`, a check. Returns the states
        of the step's files.
        """
        return self.ledger.start(self.attempt, by, self._declared_paths(), call=call)

    def _declared_paths(self) -> frozenset[str]:
        """Return the declared files, with links in their folders resolved."""
        paths = self.declared.usable_paths()
        return frozenset(without_links(self.root, path) for path in paths)

    def _find_declared(self) -> Owns:
        paths = self._declared_paths()
        return lambda path: path in paths or self.declared.covers(path)

    async def take_over_from_check(self, states: States, by: str) -> None:
        """Enter the checks' changes. Those to the step's files belong to the step."""
        await self._enter_after_command(states, by)

    async def _enter_after_command(
        self,
        states: States,
        by: str,
        call: int | None = None,
        ignored: Sequence[str] = (),
    ) -> LedgerEntry:
        """See `Ledger.enter_after_command`. If the record was removed, the attempt's
        changes are entered again, so that they can be undone.
        """
        owns = self._find_declared()
        try:
            entry = await self.ledger.enter_after_command(
                self.attempt, states, owns, by, call=call, ignored=ignored
            )
        except RecordRemoved:
            self.ledger.enter_again(self.attempt, self.changes)
            raise
        # a repository may have been made or removed
        for notice in uncovered_notices(self.ledger):
            self.emit(notice)
        return entry

    async def take_over_from_command(
        self, states: States, by: str, call: int, ignored: Sequence[str]
    ) -> None:
        """Enter a command's changes. Those to the step's files belong to the step; the
        model's knowledge of these is then outdated. `ignored` are ignored files that it
        changed.
        """
        entry = await self._enter_after_command(states, by, call, ignored)
        self._take_over_changes(entry.changes)
        if entry.ignored:
            text = (
                f"`{by}` changed files that git ignores. `undo` cannot restore"
                f" them: {named(entry.ignored)}"
            )
            self.emit(Notice(text, kind=NoticeKind.CHANGED_BESIDE))

    async def redo_command(self, entry: LedgerEntry) -> None:
        """Repeat a command's changes to the step's files. Raises `ReplyRefused` if one
        has changed since.
        """
        await self.begin([change.path for change in entry.changes])
        changes = await to_its_end(
            partial(self.ledger.redo_command, self.attempt, entry), name="redo"
        )
        self._take_over_changes(changes)

    def _take_over_changes(self, changes: Sequence[Change]) -> None:
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
        """Save the attempt's changes as a diff, for the user."""
        if self.attempt.side is None:
            self.attempt.save_diff(await self.ledger.diff([self.attempt]))

    def discard_work(self) -> None:
        """Restore written files, and forget what the model has seen."""
        Restorer(self.root, [self.attempt]).restore()
        self._made.clear()
        self._seen.clear()
        self.in_part.clear()
        self._read.clear()
        self.told = ""
        self.call_by_call = self.is_begun = False

    def _policy(self) -> EditPolicy:
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
        path, before, after = str(change.path), change.before, change.after
        first = self._made.get(change.path)
        if first is None:
            self._made[change.path] = change
            self._note_change(path, before)
        else:
            self._made[change.path] = replace(change, before=first.before)
        is_known = before is None or self._seen.get(path) == digest(before)
        # a partial change does not show the model the rest
        if not is_known and after is not None:
            return
        self._seen[path] = digest(after)
        lines = self.in_part.pop(path, None)
        if lines is not None and before is not None and after is not None:
            old, new = decode_versions(change.path, before, after, Charsets(self.root))
            if old is not None and new is not None:
                self.in_part[path] = find_seen_after(old.text, new.text, lines) or ()

    def _note_change(self, path: str, before: bytes | None) -> None:
        shown = self.attempt.shown
        # a saved reply's edits are matched again, or refused
        is_needed = self.call_by_call or self.attempt.side is None
        if shown is not None and path not in shown.all_files and is_needed:
            changed = {**shown.changed, path: digest(before)}
            self.attempt.save_shown(replace(shown, changed=changed))
