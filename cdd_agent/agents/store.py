"""The files of agents. They stay on this machine; git ignores them.

`AgentFile` is a JSON file in a ticket's record, under the ticket's lock. `Conversation`
is a chat's file, to which lines are appended. `LastActive` names the last agent.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
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
from cdd_agent.text.redaction import Redactor

Form = TypeVar("Form", bound=Struct)
_CONVERSATIONS = Path(".cdd") / "conversations"
_MOST = 50
_LISTED = 1_000_000
"""Bytes of a conversation that are read for a list."""
_LONGEST_LINE = 64 * 1024 * 1024
"""In bytes, including pictures. No provider accepts a larger request."""


def without_secrets(
    messages: Iterable[Message], redactor: Redactor
) -> tuple[Message, ...]:
    """Return the messages to save. Provider data that contains secrets is dropped: it
    would be useless after a change.
    """
    redacted = []
    for message in messages:
        new = redactor.redacted(message)
        if new.provider_data != message.provider_data:
            new = replace(new, provider_data=None)
        redacted.append(new)
    return tuple(redacted)


# work on a ticket


class AgentFile(Struct, Generic[Form]):
    """A JSON file in a ticket's record. While open, it holds the ticket's lock."""

    record: RunRecord
    name: str
    lock: TicketLock
    saved: Form | None = None
    news: tuple[Notice, ...] = ()

    @classmethod
    def open(
        cls,
        record: RunRecord,
        name: str,
        read: Callable[[bytes], Form],
        *,
        start_over: bool = False,
    ) -> Self:
        """Take the ticket's lock, and read the file with `read`, which raises
        `ValueError` for damage. Rename a damaged file, or any file if `start_over`.

        Raises `BadInput` if another process works on the ticket, or the disk refuses.
        """
        record.prepare()
        now = datetime.now(UTC).isoformat()
        opened = cls(record, name, TicketLock.take(record.folder, record.slug, now))
        try:
            opened._read(read, start_over=start_over)
        except BaseException:
            opened.close()
            raise
        return opened

    @property
    def redactor(self) -> Redactor:
        return self.record.redactor

    @property
    def _path(self) -> Path:
        return self.record.folder / self.name

    def write(self, content: Form) -> None:
        self.lock.check()
        write_atomic(self._path, as_json(content))

    def discard(self) -> None:
        self.lock.check()
        remove(self._path)

    def close(self) -> None:
        self.lock.release()

    def _read(self, parse: Callable[[bytes], Form], *, start_over: bool) -> None:
        data = read_bytes(self._path)
        if data is None:
            return
        why = ""
        if not start_over:
            try:
                self.saved = parse(data)
                return
            except ValueError as error:
                why = str(error)
        aside = set_aside(self._path).relative_to(self.record.root).as_posix()
        if start_over:
            self.news = (
                Notice(
                    f"Starting over. The previous conversation is saved in {aside}.",
                    kind=NoticeKind.STARTED_OVER,
                ),
            )
            return
        text = (
            f"The saved conversation about this ticket is damaged ({why}). It was"
            f" renamed to {aside}, and the conversation starts from scratch."
        )
        self.news = (Notice(text, Tone.WARNING, kind=NoticeKind.DAMAGED),)


# chat


class Conversation:
    """A conversation in chat, without secrets. It is saved only in a project with
    `.cdd`.

    Each shell writes a separate file, `.cdd/conversations/<time>-<process>.jsonl`. A
    line contains the messages of one round, or under `instead` the messages that
    replace all earlier ones. A damaged line loses one round.
    """

    def __init__(
        self,
        root: Path,
        redactor: Redactor,
        emit: Emit,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._root = root
        self._redactor = redactor
        self._emit = emit
        self._clock = clock
        self.messages: tuple[Message, ...] = ()
        """All messages except the system message."""
        self._file: Path | None = None
        self.name = self._new_name()
        """The name of the file, known before the file exists."""
        self.names = frozenset((self.name,))
        """The conversations that this shell held or resumed."""
        self._is_refused = False

    def add(self, messages: Iterable[Message]) -> None:
        new = without_secrets(messages, self._redactor)
        self.messages += new
        self._save("messages", new)

    def replace(self, messages: Iterable[Message]) -> None:
        self.messages = without_secrets(messages, self._redactor)
        self._save("instead", self.messages)

    def begin_conversation(self) -> None:
        self.messages = ()
        self._file = None
        self.name = self._new_name()
        self.names |= {self.name}

    def resume(self, key: str = "", *, in_short: bool = False) -> bool:
        """Continue the conversation with this key; without a key, the project's last
        one, unless this one has messages. Show it, or only its end if `in_short`. False
        if there is none.

        A new file continues it, because another shell may still write to the old one.
        """
        if self.messages and not key:
            return False
        for file in reversed(self._files()):
            if not key_of(file).startswith(key):
                continue
            messages, damaged = read_conversation(file)
            if messages:
                self.begin_conversation()
                self.messages = without_secrets(messages, self._redactor)
                self._save("instead", self.messages, goes_on=file.stem)
                self.names = self.names.union(_find_continued(file))
                self._show(file, damaged, is_last=not key, in_short=in_short)
                return True
        return False

    def _show(self, file: Path, damaged: int, *, is_last: bool, in_short: bool) -> None:
        messages = self.messages
        places = [
            place
            for place, message in enumerate(messages)
            if message.role in ("user", "assistant")
        ]
        earlier = messages[: places[-1]] if places else messages
        events = () if in_short else retold(earlier)
        if events:
            is_cut = len(events) > MOST_EVENTS
            self._emit(
                SessionRestored(key_of(file), events[-MOST_EVENTS:], left_out=is_cut)
            )
        if damaged:
            which = "A line is" if damaged == 1 else f"{damaged} lines are"
            text = f"{which} damaged in the saved conversation and left out."
            self._emit(Notice(text, Tone.WARNING, kind=NoticeKind.DAMAGED))
        count = sum(message.is_typed for message in messages)
        lines = "1 message" if count == 1 else f"{count} messages"
        which = "the last conversation" if is_last else "that conversation"
        text = f"Resuming {which} ({lines} from you). It ended with:"
        self._emit(Notice(text, kind=NoticeKind.RESUMED))
        last = messages[places[-1]].content if places else ""
        if last.strip():
            self._emit(Answer(last))

    def earlier(self) -> tuple[SessionView, ...]:
        """Return the saved conversations, except this one and those that another one
        continues.
        """
        saved = {file: _read_row(file) for file in self._files() if file != self._file}
        continued_at = {row.goes_on: row.began for row in saved.values() if row.goes_on}
        views = []
        for file, row in saved.items():
            continued = continued_at.get(file.stem)
            if not row.last or (continued is not None and row.touched <= continued):
                continue
            count = ""
            if row.lines:
                count = "1 message" if row.lines == 1 else f"{row.lines} messages"
            views.append(
                SessionView(
                    key_of(file), "chat", row.touched.isoformat(), count, row.last
                )
            )
        return tuple(views)

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
            # Another shell may have deleted it.
            with contextlib.suppress(OSError):
                old.unlink()
        return folder / f"{self.name}.jsonl"

    def _new_name(self) -> str:
        return f"{self._clock():%Y%m%dT%H%M%S.%f}-{os.getpid()}"

    def _files(self) -> list[Path]:
        files: list[tuple[int, Path]] = []
        for file in (self._root / _CONVERSATIONS).glob("*.jsonl"):
            # Another shell may have deleted it.
            with contextlib.suppress(OSError):
                files.append((file.stat().st_mtime_ns, file))
        return [file for _, file in sorted(files)]


def key_of(file: Path) -> str:
    return f"chat-{file.stem}"


def _find_continued(file: Path) -> Iterator[str]:
    name = file.stem
    visited = set[str]()
    while name and name not in visited:
        yield name
        visited.add(name)
        name = _read_successor(file.with_name(f"{name}.jsonl"))


def _read_successor(file: Path) -> str:
    try:
        for line in read_lines(file, _LONGEST_LINE):
            record = _parse_record(line)
            return "" if record is None else record.goes_on
    except CddError:
        pass
    return ""


class _SavedConversation(Struct, frozen=True):
    """A conversation in a list. Only the end of a large file is read."""

    began: datetime
    touched: datetime
    lines: int = 0
    """The number of the user's lines; 0 for a large file."""
    last: str = ""
    goes_on: str = ""
    """The name of the file that this one continues."""


_LONG_AGO = datetime.fromtimestamp(0, UTC)


def _read_row(file: Path) -> _SavedConversation:
    try:
        status = file.stat()
        records = [_parse_record(line) for line in read_tail(file, _LISTED)]
    except (OSError, CddError):
        return _SavedConversation(_LONG_AGO, _LONG_AGO)
    touched = datetime.fromtimestamp(status.st_mtime, UTC)
    messages = _join_records(records)
    last = ""
    for message in messages:
        if message.role in ("user", "assistant"):
            last = shortened(without_files(message.content)) or last
    if status.st_size > _LISTED:
        return _SavedConversation(touched, touched, last=last)
    first = records[0] if records else None
    lines = sum(message.is_typed for message in messages)
    if first is None:
        return _SavedConversation(touched, touched, lines, last)
    return _SavedConversation(
        first.time or touched, touched, lines, last, first.goes_on
    )


def read_conversation(file: Path) -> tuple[tuple[Message, ...], int]:
    """Return the messages of a saved conversation, and the number of damaged lines.
    Raises `BadInput` if the file cannot be read.
    """
    records = []
    damaged = 0
    for line in read_lines(file, _LONGEST_LINE):
        record = _parse_record(line)
        records.append(record)
        damaged += record is None and bool(line.strip())
    return _join_records(records), damaged


class _Record(Struct, frozen=True):
    time: datetime | None = None
    goes_on: str = ""
    messages: tuple[Message, ...] = ()
    instead: tuple[Message, ...] | None = None
    """The messages that replace all earlier ones."""


def _parse_record(line: bytes) -> _Record | None:
    """Return None for a damaged line."""
    try:
        record = json.loads(line)
        if "instead" not in record and "messages" not in record:
            return None
        return convert(record, _Record)
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _join_records(records: Iterable[_Record | None]) -> tuple[Message, ...]:
    messages: tuple[Message, ...] = ()
    for record in records:
        if record is None:
            continue
        if record.instead is not None:
            messages = record.instead
        messages += record.messages
    return messages


# the last agent


class LastActive(JsonFile, frozen=True):
    """The agent that was active last, for `/resume` in a later session. Both fields are
    None for chat.
    """

    agent: str | None
    ticket: str | None

    @classmethod
    def of_project(cls, root: Path) -> Self | None:
        """Return the saved agent; None without one."""
        try:
            last = cls.load(_last_active(root))
        except CddError:
            return None
        return None if last is None or (last.agent and not last.ticket) else last

    def remember(self, root: Path) -> None:
        """Save the agent, unless the project's folder is not writable."""
        if (root / ".cdd").is_dir():
            with contextlib.suppress(CddError):
                ignore_runs(root)
                self.save(_last_active(root))


def _last_active(root: Path) -> Path:
    return root / ".cdd" / "runs" / "last-active.json"
