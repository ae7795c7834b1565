"""A conversation: its messages, and the file that keeps them for `/resume`.

Each shell writes a file of its own, `.cdd/conversations/<time>-<process>.jsonl`: a line is what one round added, or
with `instead` what stands for all before it. A line that is damaged loses a round, and nothing else.
"""

import contextlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from cdd_agent.errors import CddError
from cdd_agent.events import About, Answer, Event, Notice, Tone
from cdd_agent.files.atomic import append_line, create_exclusive, read_lines
from cdd_agent.llm.port import Message
from cdd_agent.redaction import Redactor

_FOLDER = Path(".cdd") / "conversations"
_MOST = 50
"""Conversations that are kept; the oldest go."""
_LONGEST_LINE = 64 * 1024 * 1024
"""Bytes. Pictures are in it, and no provider takes more of them in a request."""
_MESSAGES: TypeAdapter[tuple[Message, ...]] = TypeAdapter(tuple[Message, ...])


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class SavedConversation:
    """A conversation as a file tells it."""

    messages: tuple[Message, ...]
    damaged: int
    """Lines that could not be read."""


class Conversation:
    """What was said in chat, without secrets. It is saved in a folder with `.cdd`, and in no other."""

    def __init__(self, root: Path, redactor: Redactor, clock: Callable[[], datetime] = _now) -> None:
        self._root, self._redactor, self._clock = root, redactor, clock
        self._said: tuple[Message, ...] = ()
        self._file: Path | None = None
        self._problem: CddError | None = None
        """Why it is not saved any more."""
        self._is_told = False

    @property
    def messages(self) -> tuple[Message, ...]:
        """All of them, the system's left out."""
        return self._said

    def add(self, messages: Iterable[Message]) -> None:
        """Go on with these, and save them. A disk that refuses is told by `news`."""
        new = self._redacted(messages)
        self._said += new
        self._save("messages", new)

    def replace(self, messages: Iterable[Message]) -> None:
        """These stand for all that was said so far."""
        self._said = self._redacted(messages)
        self._save("instead", self._said)

    def begin_anew(self) -> None:
        """What was said so far stays in its file."""
        self._said, self._file = (), None

    def resume(self) -> list[Event]:
        """Take up the last conversation of this project, unless something was said in this one; tell what it was.

        It goes on in a file of its own: another shell may still write the old one.
        """
        files = [] if self._said else self._files()
        for file in reversed(files):
            saved = read_conversation(file)
            if saved.messages:
                self.replace(saved.messages)
                return list(_back_in(saved))
        return []

    def news(self) -> list[Event]:
        """That it cannot be saved; once."""
        if self._problem is None or self._is_told:
            return []
        self._is_told = True
        return [Notice(f"The conversation is not saved: {self._problem.message}", Tone.WARNING, about=About.NOT_SAVED)]

    def _redacted(self, messages: Iterable[Message]) -> tuple[Message, ...]:
        """Without secrets. What a provider sent with a message is of no use once it was changed: it goes whole."""
        return tuple(
            new if new.provider_data == message.provider_data else replace(new, provider_data=None)
            for message in messages
            for new in (self._redactor.redacted(message),)
        )

    def _save(self, key: str, messages: tuple[Message, ...]) -> None:
        if self._problem is not None or not (self._root / ".cdd").is_dir():
            return
        record = {"time": self._clock().isoformat(), key: _MESSAGES.dump_python(messages, mode="json")}
        try:
            if self._file is None:
                self._file = self._new_file()
            append_line(self._file, f"{json.dumps(record)}\n".encode(), 0o600)
        except CddError as error:
            self._problem = error

    def _new_file(self) -> Path:
        folder = self._root / _FOLDER
        with contextlib.suppress(FileExistsError):
            create_exclusive(folder / ".gitignore", b"# Conversations are this machine's own.\n*\n")
        for old in self._files()[: -(_MOST - 1)]:
            with contextlib.suppress(OSError):  # another shell was faster
                old.unlink()
        return folder / f"{self._clock():%Y%m%dT%H%M%S.%f}-{os.getpid()}.jsonl"

    def _files(self) -> list[Path]:
        """The conversations there are, the one that was gone on with last at the end."""
        found: list[tuple[int, Path]] = []
        for file in (self._root / _FOLDER).glob("*.jsonl"):
            with contextlib.suppress(OSError):  # another shell has just removed it
                found.append((file.stat().st_mtime_ns, file))
        return [file for _, file in sorted(found)]


def read_conversation(file: Path) -> SavedConversation:
    """What a file tells. Raises `BadInput` when it cannot be read at all."""
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
    return SavedConversation(messages, damaged)


def _back_in(saved: SavedConversation) -> Iterator[Event]:
    if saved.damaged:
        which = "A line is" if saved.damaged == 1 else f"{saved.damaged} lines are"
        yield Notice(f"{which} damaged in the saved conversation, and left out.", Tone.WARNING, about=About.DAMAGED)
    count = sum(message.role == "user" for message in saved.messages)
    yield Notice(
        f"Back in the last conversation: {count} message{'' if count == 1 else 's'} of yours. It ended with:",
        about=About.RESUMED,
    )
    last = next((message for message in reversed(saved.messages) if message.role in ("user", "assistant")), None)
    if last is not None and last.content.strip():
        yield Answer(last.content)
