"""Records work outside of tickets, so that it can be undone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout
from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.changes.change_set import ChangeSet
from cdd_agent.engine.attempt import Attempt
from cdd_agent.engine.ledger import Ledger, OpenCheckpoints, States
from cdd_agent.engine.lock import TicketLock
from cdd_agent.engine.named_files import named
from cdd_agent.engine.outside import (
    INSPECTION,
    INSPECTION_LOCK,
    OutsideChange,
    OutsideChanges,
    in_words,
)
from cdd_agent.errors import BadInput, CddError
from cdd_agent.events.notices import Notice, NoticeKind, Tone
from cdd_agent.events.stream import Emit
from cdd_agent.git.checkpoint import Checkpoints
from cdd_agent.git.command import GitUnusable
from cdd_agent.git.ignored_files import IgnoredStates, changed, read_ignored
from cdd_agent.git.repository import repository_of
from cdd_agent.process.policy import CommandRunner
from cdd_agent.process.run import CommandResult
from cdd_agent.refusals.kinds import Refusal

_PREFIX = "changes-outside-of-tickets"
"""Prefix of checkpoints' names. With a suffix, it is no slug."""
_STEP = "step-01"
"""Prefix of a checkpoint's name, as the ledger builds it."""


class NotInRepository(GitUnusable):
    """Without a git repository, a checkpoint would copy the whole project."""


async def open_in_repository(
    root: Path, folder: Path, prefix: str, leave_out: Sequence[str] = ()
) -> Checkpoints:
    """Open checkpoints as `Checkpoints.open` does. Raises `NotInRepository`."""
    repository = await repository_of(root)
    if repository is None:
        raise NotInRepository(f"{root} is not in a git repository")
    return await Checkpoints.open(root, folder, prefix, leave_out, repository)


class OutsideOutcome(Struct, frozen=True):
    files: tuple[str, ...]
    others: tuple[str, ...]

    def notices(self, undo: str) -> Iterator[Notice]:
        """Say how to undo the work, with the command `undo`."""
        if self.files:
            yield Notice(f"Undo it with `{undo}`.", kind=NoticeKind.WHAT_NEXT)
        if self.others:
            text = (
                "Commands changed these files, too; `undo` leaves them unchanged:"
                f" {named(self.others)}"
            )
            yield Notice(text, kind=NoticeKind.LEFT_AS_IS)


class OutsideWork(Struct):
    """Records pieces of work in sequence. A record begins with the first change or
    command.
    """

    changes: OutsideChanges
    emit: Emit
    what: str = ""
    """Cause of the next changes, such as `cdd run plan.yaml`."""
    conversation: str = ""
    """The chat conversation that the work belongs to."""
    leave_out: tuple[str, ...] = ()
    """Patterns of files outside inspections."""
    open_checkpoints: OpenCheckpoints = open_in_repository
    _change: OutsideChange | None = None
    _ledger: Ledger | None = None
    _lock: TicketLock | None = None
    _inspection: FileLock | None = None
    _cannot_inspect: bool = False
    _calls: int = 0

    @property
    def folder(self) -> Path | None:
        """None before the first change or command."""
        return None if self._change is None else self._change.record.folder

    @contextmanager
    def writing(self, changes: ChangeSet, by: str) -> Iterator[None]:
        """Enter changes before they are made, with their cause. Raises `BadInput` if
        they could not be undone.
        """
        try:
            ledger, attempt = self._begin()
        except CddError as error:
            raise BadInput(
                "Nothing was written, because the change could not be undone"
                f" later: {error.in_a_line}",
                hint=error.hint,
                refusal=Refusal.CANNOT_UNDO,
            ) from error
        with ledger.writing(attempt, changes, (), self._next_call(), by=by):
            yield

    async def begin_inspecting(self) -> None:
        """Take a checkpoint before the first command, if possible."""
        if self._cannot_inspect or self._inspection is not None:
            return
        try:
            ledger, attempt = self._begin()
            await ledger.begin(attempt, ())
        except NotInRepository:
            self._cannot_inspect = True
        except CddError as error:
            self._cannot_inspect = True
            text = (
                "Changes by commands are not recorded, because the project"
                f" cannot be inspected: {error.in_a_line}"
            )
            self.emit(Notice(text, Tone.WARNING, kind=NoticeKind.NOT_IN_CHECKPOINT))

    def start_command(self, command: str) -> States | None:
        """Enter a command's start. Returns current states of this work's files; None
        without a record.
        """
        if self._change is None or self._ledger is None:
            return None
        return self._ledger.start(
            self._change.attempt, command, (), call=self._next_call()
        )

    async def enter_command(
        self, states: States, command: str, ignored: Sequence[str]
    ) -> None:
        """Enter a command's changes. `ignored` are ignored files."""
        if self._change is None or self._ledger is None:
            return
        try:
            await self._ledger.enter_after_command(
                self._change.attempt,
                states,
                lambda path: False,
                command,
                call=self._calls,
                ignored=ignored,
            )
        except CddError as error:
            # the command is over, so the next change starts a new record
            self._release()
            text = f"The changes of `{command}` are not recorded: {error.in_a_line}"
            self.emit(Notice(text, Tone.WARNING, kind=NoticeKind.NOT_IN_CHECKPOINT))

    async def finish(self) -> OutsideOutcome | None:
        """End the work, and drop its checkpoints. See `close`."""
        try:
            if self._inspection is not None and self._ledger is not None:
                with suppress(CddError):
                    await (await self._ledger.open()).forget(_STEP)
        finally:
            outcome = self.close()
        return outcome

    def close(self) -> OutsideOutcome | None:
        """None if nothing changed; then no record remains."""
        change = self._change
        self._release()
        if change is None:
            return None
        with suppress(CddError):
            ended = OutsideChange.load(change.record)
            if ended is not None and ended.has_effect:
                return OutsideOutcome(ended.files, ended.others)
            self.changes.discard(change)
        return None

    def _release(self) -> None:
        lock, inspection = self._lock, self._inspection
        self._change = self._ledger = self._lock = self._inspection = None
        self._cannot_inspect = False
        if inspection is not None:
            inspection.release()
        if lock is not None:
            lock.release()

    def _begin(self) -> tuple[Ledger, Attempt]:
        if self._change is None or self._ledger is None:
            for cut_off in self.changes.find_interrupted():
                self.emit(_describe_interrupted(cut_off))
            self._change, self._lock = self.changes.create(self.what, self.conversation)
            self._ledger = Ledger(
                self._change.record,
                self.leave_out,
                open_checkpoints=self._open_checkpoints,
            )
            self._calls = 0
        return self._ledger, self._change.attempt

    def _next_call(self) -> int:
        self._calls += 1
        return self._calls

    async def _open_checkpoints(
        self, root: Path, folder: Path, prefix: str, leave_out: Sequence[str]
    ) -> Checkpoints:
        """Open shared checkpoints, whose index knows the project's files; private ones
        while another process uses these.
        """
        above = self.changes.record.folder
        inspection = FileLock(above / INSPECTION_LOCK)
        place, name = above / INSPECTION, f"{_PREFIX}/shared"
        try:
            inspection.acquire(timeout=0)
        except Timeout:
            place, name = folder, f"{_PREFIX}/{prefix}"
        except (OSError, NotImplementedError) as error:
            raise BadInput(
                f"{above} could not be locked: {error}", refusal=Refusal.DISK
            ) from error
        try:
            opened = await self.open_checkpoints(root, place, name, leave_out)
            # left by a killed process
            await opened.forget(_STEP)
        except BaseException:
            inspection.release()
            raise
        self._inspection = inspection
        return opened


class RecordedCommands(Struct, frozen=True):
    """Runs commands as `CommandRunner` does, and records their changes. They run even
    without a record, because no undo reverses commands alone.
    """

    commands: CommandRunner
    work: OutsideWork

    async def execute(
        self, command: str, cwd: str | None = None, env: Mapping[str, str] | None = None
    ) -> CommandResult:
        work, root = self.work, self.commands.root
        await work.begin_inspecting()
        ignored = await read_ignored(root) if work.folder is not None else {}
        states: States | None = None

        def start() -> None:
            nonlocal states
            states = work.start_command(command)

        commands = replace(self.commands, noted_in=work.folder)
        try:
            result = await commands.run(command, cwd=cwd, env=env, starts=start)
        finally:
            # even if interrupted, once the command has ended
            if states is not None:
                await self._enter_changes(states, command, ignored)
        return result

    async def _enter_changes(
        self, states: States, command: str, ignored: IgnoredStates
    ) -> None:
        current = await read_ignored(self.commands.root)
        await self.work.enter_command(states, command, changed(ignored, current))


def _describe_interrupted(change: OutsideChange) -> Notice:
    files = named((*change.files, *change.others))
    text = (
        f"`{change.what}` of {in_words(change.at)} was interrupted after it"
        f" changed {files}. Undo it with `cdd undo {change.name}`."
    )
    return Notice(text, Tone.WARNING, kind=NoticeKind.CUT_OFF)
