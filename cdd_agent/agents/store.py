"""The files that agents keep, each in the form that its use needs: of work on a ticket
one that is written whole, under the ticket's lock (`AgentFile`); of chat one of lines,
by which a long conversation only grows (`Conversation`); and who was active last
(`LastActive`). All of it is this machine's own, and git ignores it.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Generic, Self, TypeVar

from msgspec import Struct, convert, to_builtins
from msgspec.structs import replace

from cdd_agent.agents.attachments import without_files
from cdd_agent.agents.retelling import retold
from cdd_agent.engine.lock import TicketLock
from cdd_agent.engine.record import RunRecord
from cdd_agent.engine.retelling import MOST_EVENTS, shortened
from cdd_agent.errors import CddError
from cdd_agent.events.notices import Answer, Notice, NoticeKind, Tone
from cdd_agent.events.shell_events import SessionView
from cdd_agent.events.stream import Emit, SessionRestored
from cdd_agent.files.atomic import (
    append_line,
    create_exclusive,
    ignore_runs,
    read_bytes,
    read_lines,
    read_tail,
    remove,
    write_atomic,
)
from cdd_agent.files.json_file import JsonFile, as_json, set_aside
from cdd_agent.llm.port import Message
from cdd_agent.redaction import Redactor

Form = TypeVar("Form", bound=Struct)
_CONVERSATIONS = Path(".cdd") / "conversations"
_MOST = 50
"""Conversations that are kept; the oldest go."""
_LISTED = 1_000_000
"""Bytes of a conversation that are read for a list."""
_LONGEST_LINE = 64 * 1024 * 1024
"""Bytes. Pictures are in it, and no provider takes more of them in a request."""


def without_secrets(
    messages: Iterable[Message], redactor: Redactor
) -> tuple[Message, ...]:
    """A dialogue as it is kept. What a provider sent with a message is of no use once
    it was changed: it goes whole.
    """
    return tuple(
        (
            new
            if new.provider_data == message.provider_data
            else replace(new, provider_data=None)
        )
        for message in messages
        for new in (redactor.redacted(message),)
    )


# work on a ticket


class AgentFile(Struct, Generic[Form]):
    """One JSON file of one form, in the ticket's record. While it is open it holds the
    ticket's lock, so that of two processes the second is told who the first is.
    """

    record: RunRecord
    name: str
    lock: TicketLock
    found: Form | None = None
    """Kept by an earlier process."""
    news: tuple[Notice, ...] = ()
    """For people, of how it was opened."""

    @classmethod
    def open(
        cls,
        record: RunRecord,
        name: str,
        read: Callable[[bytes], Form],
        *,
        start_over: bool = False,
    ) -> Self:
        """Take the ticket's lock and read the file with `read`, which raises
        `ValueError` for a damaged one. A damaged file is set aside, with `start_over`
        any.

        Raises `BadInput` when another process is at work on the ticket, and when the
        disk refuses.
        """
        record.prepare()
        kept = cls(
            record,
            name,
            TicketLock.take(record.folder, record.slug, datetime.now(UTC).isoformat()),
        )
        try:
            kept._read(read, start_over=start_over)
        except BaseException:
            kept.close()
            raise
        return kept

    @property
    def redactor(self) -> Redactor:
        return self.record.redactor

    @property
    def _path(self) -> Path:
        return self.record.folder / self.name

    def write(self, content: Form) -> None:
        """Whole or not at all. Raises `BadInput` when the disk refuses, and when the
        ticket is not held any more.
        """
        self.lock.check()
        write_atomic(self._path, as_json(content))

    def discard(self) -> None:
        self.lock.check()
        remove(self._path)

    def close(self) -> None:
        """Let go of the ticket; the file stays."""
        self.lock.release()

    def _read(self, read: Callable[[bytes], Form], *, start_over: bool) -> None:
        data = read_bytes(self._path)
        if data is None:
            return
        why = ""
        if not start_over:
            try:
                self.found = read(data)
                return
            except ValueError as error:
                why = str(error)
        aside = set_aside(self._path).relative_to(self.record.root).as_posix()
        if start_over:
            self.news = (
                Notice(
                    f"Starting over. What was kept is in {aside}.",
                    kind=NoticeKind.STARTED_OVER,
                ),
            )
            return
        text = (
            f"What was kept of the conversation about this ticket is damaged ({why})."
            f" It was set aside as {aside}, and the conversation begins anew."
        )
        self.news = (Notice(text, Tone.WARNING, kind=NoticeKind.DAMAGED),)


# chat


class Conversation:
    """A conversation in chat, without secrets. It is saved in a folder with `.cdd`, and
    in no other.

    Each shell writes a file of its own, `.cdd/conversations/<time>-<process>.jsonl`: a
    line is what one round added, or with `instead` what stands for all before it. A
    line that is damaged loses a round, and nothing else.
    """

    def __init__(
        self,
        root: Path,
        redactor: Redactor,
        emit: Emit,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """`emit` is told once where a disk refuses, and what `resume` has found."""
        self._root, self._redactor, self._emit, self._clock = (
            root,
            redactor,
            emit,
            clock,
        )
        self.messages: tuple[Message, ...] = ()
        """All of them, the system's left out."""
        self._file: Path | None = None
        self._is_refused = False
        """By the disk: it is not saved any more."""

    def add(self, messages: Iterable[Message]) -> None:
        """Go on with these, and save them."""
        new = without_secrets(messages, self._redactor)
        self.messages += new
        self._save("messages", new)

    def replace(self, messages: Iterable[Message]) -> None:
        """These stand for all that was said so far."""
        self.messages = without_secrets(messages, self._redactor)
        self._save("instead", self.messages)

    def begin_anew(self) -> None:
        """Forget what was said; it stays in its file."""
        self.messages, self._file = (), None

    def resume(self, key: str = "", *, in_short: bool = False) -> bool:
        """Take up the last conversation of this project, unless something was said in
        this one, or the one of this key; tell what it was, or `in_short` how it ended.
        Whether there was one.

        It goes on in a file of its own: another shell may still write the old one.
        """
        files = [file for file in self._files() if key_of(file).startswith(key)]
        for file in [] if self.messages and not key else reversed(files):
            messages, damaged = read_conversation(file)
            if not messages:
                continue
            self.begin_anew()
            self.messages = without_secrets(messages, self._redactor)
            self._save("instead", self.messages, goes_on=file.stem)
            said = [
                place
                for place, message in enumerate(messages)
                if message.role in ("user", "assistant")
            ]
            if earlier := (
                () if in_short else retold(messages[: said[-1]] if said else messages)
            ):
                self._emit(
                    SessionRestored(
                        key_of(file), earlier[-MOST_EVENTS:], len(earlier) > MOST_EVENTS
                    )
                )
            if damaged:
                which = "A line is" if damaged == 1 else f"{damaged} lines are"
                text = f"{which} damaged in the saved conversation, and left out."
                self._emit(Notice(text, Tone.WARNING, kind=NoticeKind.DAMAGED))
            count = sum(message.role == "user" for message in messages)
            which = "the last conversation" if not key else "that conversation"
            text = (
                f"Back in {which}: {count} message{'' if count == 1 else 's'} of yours."
                " It ended with:"
            )
            self._emit(Notice(text, kind=NoticeKind.RESUMED))
            if said and (last := messages[said[-1]].content).strip():
                self._emit(Answer(last))
            return True
        return False

    def earlier(self) -> tuple[SessionView, ...]:
        """The conversations that there are, without the present one and those that one
        of them went on with.
        """
        read = [(file, _look(file)) for file in self._files() if file != self._file]
        gone_on = {look.goes_on: look.began for _, look in read if look.goes_on}
        return tuple(
            SessionView(
                key_of(file),
                "chat",
                look.touched.isoformat(),
                f"{look.said} message{'s' * (look.said != 1)}" if look.said else "",
                look.last,
            )
            for file, look in read
            if look.last
            and not (file.stem in gone_on and look.touched <= gone_on[file.stem])
        )

    def _save(self, key: str, messages: tuple[Message, ...], **more: str) -> None:
        if self._is_refused or not (self._root / ".cdd").is_dir():
            return
        record = {"time": self._clock().isoformat(), **more, key: to_builtins(messages)}
        try:
            if self._file is None:
                self._file = self._new_file()
            append_line(self._file, f"{json.dumps(record)}\n".encode(), 0o600)
        except CddError as error:
            self._is_refused = True
            text = f"The conversation is not saved: {error.message}"
            self._emit(Notice(text, Tone.WARNING, kind=NoticeKind.NOT_SAVED))

    def _new_file(self) -> Path:
        folder = self._root / _CONVERSATIONS
        with contextlib.suppress(FileExistsError):
            create_exclusive(
                folder / ".gitignore", b"# Conversations are this machine's own.\n*\n"
            )
        for old in self._files()[: -(_MOST - 1)]:
            with contextlib.suppress(OSError):  # another shell was faster
                old.unlink()
        return folder / f"{self._clock():%Y%m%dT%H%M%S.%f}-{os.getpid()}.jsonl"

    def _files(self) -> list[Path]:
        """The conversations there are, the one that was gone on with last at the
        end.
        """
        found: list[tuple[int, Path]] = []
        for file in (self._root / _CONVERSATIONS).glob("*.jsonl"):
            with contextlib.suppress(OSError):  # another shell has just removed it
                found.append((file.stat().st_mtime_ns, file))
        return [file for _, file in sorted(found)]


def key_of(file: Path) -> str:
    """The name by which a person chooses the conversation in this file."""
    return f"chat-{file.stem}"


class _Look(Struct, frozen=True):
    """A conversation's row in a list. Of one in a large file it says only how it
    ended.
    """

    began: datetime
    touched: datetime
    said: int = 0
    last: str = ""
    goes_on: str = ""


def _look(file: Path) -> _Look:
    began = touched = datetime.fromtimestamp(0, UTC)
    messages: tuple[Message, ...] = ()
    goes_on, is_whole = "", False
    with contextlib.suppress(OSError, CddError):
        touched = datetime.fromtimestamp(file.stat().st_mtime, UTC)
        is_whole = file.stat().st_size <= _LISTED
        for place, line in enumerate(read_tail(file, _LISTED)):
            with contextlib.suppress(ValueError, KeyError, TypeError, RecursionError):
                record = json.loads(line)
                new = convert(
                    record["instead" if "instead" in record else "messages"],
                    tuple[Message, ...],
                )
                messages = new if "instead" in record else messages + new
                if place == 0 and is_whole:
                    began, goes_on = (
                        datetime.fromisoformat(record["time"]),
                        record.get("goes_on", ""),
                    )
    words = [
        without_files(message.content)
        for message in messages
        if message.role in ("user", "assistant")
    ]
    said = sum(message.role == "user" for message in messages) if is_whole else 0
    return _Look(
        began,
        touched,
        said,
        next(filter(None, map(shortened, reversed(words))), ""),
        goes_on,
    )


def read_conversation(file: Path) -> tuple[tuple[Message, ...], int]:
    """The messages that a file tells, and how many of its lines are damaged. Raises
    `BadInput` when it cannot be read at all.
    """
    messages: tuple[Message, ...] = ()
    damaged = 0
    for line in read_lines(file, _LONGEST_LINE):
        try:
            record = json.loads(line)
            new = convert(
                record["instead" if "instead" in record else "messages"],
                tuple[Message, ...],
            )
        except (ValueError, KeyError, TypeError, RecursionError):
            damaged += bool(line.strip())
            continue
        messages = new if "instead" in record else messages + new
    return messages, damaged


# who was active last


class LastActive(JsonFile, frozen=True):
    """An agent on a ticket, or chat, for which both are None; for `/resume` in a later
    session.
    """

    agent: str | None
    ticket: str | None

    @classmethod
    def of(cls, root: Path) -> Self | None:
        """None where that is not known."""
        try:
            last = cls.load(_last_active(root))
        except CddError:
            return None
        return None if last is None or (last.agent and not last.ticket) else last

    def remember(self, root: Path) -> None:
        """Only in a project, and only where its folder can be written: a convenience,
        as history is.
        """
        if (root / ".cdd").is_dir():
            with contextlib.suppress(CddError):
                ignore_runs(root)
                self.save(_last_active(root))


def _last_active(root: Path) -> Path:
    return root / ".cdd" / "runs" / "last-active.json"
