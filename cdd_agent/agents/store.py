"""The files that agents keep, each in the form that its use needs: of work on a ticket one that is written whole, under
the ticket's lock (`AgentFile`); of chat one of lines, by which a long conversation only grows (`Conversation`); and who
was active last (`LastActive`). All of it is this machine's own, and git ignores it.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from cdd_agent.engine.lock import TicketLock
from cdd_agent.errors import CddError
from cdd_agent.events import About, Answer, Emit, Notice, Tone
from cdd_agent.files.atomic import append_line, create_exclusive, ignore_runs, read_bytes, read_lines, remove
from cdd_agent.files.json_file import JsonFile, as_json, set_aside, write_text
from cdd_agent.llm.port import Message

if TYPE_CHECKING:
    from cdd_agent.engine.record import RunRecord
    from cdd_agent.redaction import Redactor

Form = TypeVar("Form", bound=BaseModel)
_CONVERSATIONS = Path(".cdd") / "conversations"
_MOST = 50
"""Conversations that are kept; the oldest go."""
_LONGEST_LINE = 64 * 1024 * 1024
"""Bytes. Pictures are in it, and no provider takes more of them in a request."""
_MESSAGES: TypeAdapter[tuple[Message, ...]] = TypeAdapter(tuple[Message, ...])


def without_secrets(messages: Iterable[Message], redactor: Redactor) -> tuple[Message, ...]:
    """A dialogue as it is kept. What a provider sent with a message is of no use once it was changed: it goes whole."""
    return tuple(
        new if new.provider_data == message.provider_data else replace(new, provider_data=None)
        for message in messages
        for new in (redactor.redacted(message),)
    )


# ------------------------------------------------------------------------------------------- work on a ticket


@dataclass
class AgentFile(Generic[Form]):
    """One JSON file of one form, in the ticket's record. While it is open it holds the ticket's lock, so that of two
    processes the second is told who the first is."""

    record: RunRecord
    name: str
    lock: TicketLock
    found: Form | None = None
    """Kept by an earlier process."""
    news: tuple[Notice, ...] = field(default=(), kw_only=True)
    """For people, of how it was opened."""

    @classmethod
    def open(cls, record: RunRecord, name: str, form: type[Form], *, start_over: bool = False) -> Self:
        """Take the ticket's lock and read what there is. A file that is damaged is set aside, with `start_over` any.

        Raises `BadInput` when another process is at work on the ticket, and when the disk refuses.
        """
        record.prepare()
        kept = cls(record, name, TicketLock.take(record.folder, record.slug, datetime.now(UTC).isoformat()))
        try:
            kept._read(form, start_over=start_over)
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
        """Whole or not at all. Raises `BadInput` when the disk refuses, and when the ticket is not held any more."""
        self.lock.check()
        write_text(self._path, as_json(content))

    def discard(self) -> None:
        self.lock.check()
        remove(self._path)

    def close(self) -> None:
        """Let go of the ticket; the file stays."""
        self.lock.release()

    def _read(self, form: type[Form], *, start_over: bool) -> None:
        data = read_bytes(self._path)
        if data is None:
            return
        why = ""
        if not start_over:
            try:
                self.found = form.model_validate_json(data)
                return
            except ValidationError as error:
                why = error.errors()[0]["msg"]
        aside = set_aside(self._path).relative_to(self.record.root).as_posix()
        if start_over:
            self.news = (Notice(f"Starting over. What was kept is in {aside}.", about=About.STARTED_OVER),)
            return
        text = (
            f"What was kept of the conversation about this ticket is damaged ({why}). It was set aside as {aside}, and "
            "the conversation begins anew."
        )
        self.news = (Notice(text, Tone.WARNING, about=About.SET_ASIDE),)


# ------------------------------------------------------------------------------------------------------- chat


class Conversation:
    """A conversation in chat, without secrets. It is saved in a folder with `.cdd`, and in no other.

    Each shell writes a file of its own, `.cdd/conversations/<time>-<process>.jsonl`: a line is what one round added, or
    with `instead` what stands for all before it. A line that is damaged loses a round, and nothing else.
    """

    def __init__(
        self, root: Path, redactor: Redactor, emit: Emit, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        """`emit` is told once where a disk refuses, and what `resume` has found."""
        self._root, self._redactor, self._emit, self._clock = root, redactor, emit, clock
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

    def resume(self) -> bool:
        """Take up the last conversation of this project, unless something was said in this one; tell what it was.
        Whether there was one.

        It goes on in a file of its own: another shell may still write the old one.
        """
        for file in [] if self.messages else reversed(self._files()):
            messages, damaged = read_conversation(file)
            if not messages:
                continue
            self.replace(messages)
            if damaged:
                which = "A line is" if damaged == 1 else f"{damaged} lines are"
                text = f"{which} damaged in the saved conversation, and left out."
                self._emit(Notice(text, Tone.WARNING, about=About.DAMAGED))
            count = sum(message.role == "user" for message in messages)
            text = f"Back in the last conversation: {count} message{'' if count == 1 else 's'} of yours. It ended with:"
            self._emit(Notice(text, about=About.RESUMED))
            last = next((message for message in reversed(messages) if message.role in ("user", "assistant")), None)
            if last is not None and last.content.strip():
                self._emit(Answer(last.content))
            return True
        return False

    def _save(self, key: str, messages: tuple[Message, ...]) -> None:
        if self._is_refused or not (self._root / ".cdd").is_dir():
            return
        record = {"time": self._clock().isoformat(), key: _MESSAGES.dump_python(messages, mode="json")}
        try:
            if self._file is None:
                self._file = self._new_file()
            append_line(self._file, f"{json.dumps(record)}\n".encode(), 0o600)
        except CddError as error:
            self._is_refused = True
            text = f"The conversation is not saved: {error.message}"
            self._emit(Notice(text, Tone.WARNING, about=About.NOT_SAVED))

    def _new_file(self) -> Path:
        folder = self._root / _CONVERSATIONS
        with contextlib.suppress(FileExistsError):
            create_exclusive(folder / ".gitignore", b"# Conversations are this machine's own.\n*\n")
        for old in self._files()[: -(_MOST - 1)]:
            with contextlib.suppress(OSError):  # another shell was faster
                old.unlink()
        return folder / f"{self._clock():%Y%m%dT%H%M%S.%f}-{os.getpid()}.jsonl"

    def _files(self) -> list[Path]:
        """The conversations there are, the one that was gone on with last at the end."""
        found: list[tuple[int, Path]] = []
        for file in (self._root / _CONVERSATIONS).glob("*.jsonl"):
            with contextlib.suppress(OSError):  # another shell has just removed it
                found.append((file.stat().st_mtime_ns, file))
        return [file for _, file in sorted(found)]


def read_conversation(file: Path) -> tuple[tuple[Message, ...], int]:
    """The messages that a file tells, and how many of its lines are damaged. Raises `BadInput` when it cannot be read
    at all."""
    messages: tuple[Message, ...] = ()
    damaged = 0
    for line in read_lines(file, _LONGEST_LINE):
        try:
            record = json.loads(line)
            new = _MESSAGES.validate_python(record["instead" if "instead" in record else "messages"])
        except (ValidationError, ValueError, KeyError, TypeError, RecursionError):
            damaged += bool(line.strip())
            continue
        messages = new if "instead" in record else messages + new
    return messages, damaged


# ---------------------------------------------------------------------------------------- who was active last


class LastActive(JsonFile):
    """An agent on a ticket, or chat, for which both are None; for `/resume` in a later session."""

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
        """Only in a project, and only where its folder can be written: a convenience, as history is."""
        if (root / ".cdd").is_dir():
            with contextlib.suppress(CddError):
                ignore_runs(root)
                self.save(_last_active(root))


def _last_active(root: Path) -> Path:
    return root / ".cdd" / "runs" / "last-active.json"
