"""What an agent keeps of its work on a ticket: one JSON file of one form, in the ticket's record.

It is private to this machine, and ignored by git. While it is open it holds the ticket's lock, so that of two processes
the second is told who the first is.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Generic, Self, TypeVar

from pydantic import BaseModel, ValidationError

from cdd_agent.engine.lock import TicketLock
from cdd_agent.engine.record import RunRecord
from cdd_agent.events import About, Notice, Tone
from cdd_agent.files.atomic import read_bytes, remove
from cdd_agent.files.json_file import as_json, set_aside, write_text
from cdd_agent.redaction import Redactor

Form = TypeVar("Form", bound=BaseModel)


@dataclass
class AgentFile(Generic[Form]):
    """The file, open. Its texts come without secrets, but for what is used again as it is."""

    record: RunRecord
    name: str
    lock: TicketLock
    found: Form | None = None
    """What an earlier process has kept."""
    news: tuple[Notice, ...] = field(default=(), kw_only=True)
    """What a person has to know of how it was opened."""

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
    def path(self) -> Path:
        return self.record.folder / self.name

    @property
    def redactor(self) -> Redactor:
        return self.record.redactor

    def write(self, content: Form) -> None:
        """Whole or not at all. Raises `BadInput` when the disk refuses, and when the ticket is not held any more."""
        self.lock.check()
        write_text(self.path, as_json(content))

    def discard(self) -> None:
        self.lock.check()
        remove(self.path)

    def close(self) -> None:
        """Let go of the ticket; the file stays."""
        self.lock.release()

    def _read(self, form: type[Form], *, start_over: bool) -> None:
        data = read_bytes(self.path)
        if data is None:
            return
        if start_over:
            self.news = (Notice(f"Starting over. What was kept is in {self._set_aside()}.", about=About.STARTED_OVER),)
            return
        try:
            self.found = form.model_validate_json(data)
        except ValidationError as error:
            text = (
                f"What was kept of the conversation about this ticket is damaged ({error.errors()[0]['msg']}). It was "
                f"set aside as {self._set_aside()}, and the conversation begins anew."
            )
            self.news = (Notice(text, Tone.WARNING, about=About.SET_ASIDE),)

    def _set_aside(self) -> str:
        return set_aside(self.path).relative_to(self.record.root).as_posix()
