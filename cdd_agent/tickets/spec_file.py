"""A ticket's spec.yaml on the disk: read as it is, and written only over what was read."""

from msgspec import Struct

from cdd_agent.errors import BadInput
from cdd_agent.files.atomic import create_exclusive, read_bytes, write_atomic
from cdd_agent.tickets.spec import SpecEmpty, TicketSpec, TicketType
from cdd_agent.tickets.spec_writing import rewritten
from cdd_agent.tickets.store import Ticket

LARGEST = 200_000
"""Bytes of a spec that is worked on: a model gets all of it in every turn."""


class SpecTooLarge(BadInput):
    """A spec that is too long for a model to get all of it in every turn."""

    def __init__(self, shown: str, size: int) -> None:
        super().__init__(
            f"{shown} has {size:,} bytes; up to {LARGEST:,} can be worked on, as a model gets all of it in every turn",
            hint="Move logs and data into files of their own beside it, and name these in the spec.",
        )
        self.size = size


class ChangedMeanwhile(BadInput):
    """The file is not what it was when it was read; nothing was written."""


class SpecOnDisk(Struct, frozen=True):
    """A file as it was read."""

    data: bytes | None
    spec: TicketSpec
    is_written: bool = True
    """There is a file, and more than comments in it."""


class SpecFile(Struct, frozen=True):
    ticket: Ticket

    @property
    def shown(self) -> str:
        return self.ticket.shown(self.ticket.spec_path)

    def read(self) -> SpecOnDisk:
        """Raises `SpecTooLarge`, or `BadInput` with file, line and reason for one that cannot be worked on."""
        data = read_bytes(self.ticket.spec_path)
        if data is not None and len(data) > LARGEST:
            raise SpecTooLarge(self.shown, len(data))
        try:
            return SpecOnDisk(data, TicketSpec.from_yaml(self._text(data), self.shown, slug=self.ticket.slug))
        except SpecEmpty:
            return SpecOnDisk(data, TicketSpec(type=TicketType.of_slug(self.ticket.slug)), is_written=False)

    def write(self, seen: SpecOnDisk, spec: TicketSpec) -> bool:
        """Put the fields of `spec` in the place of those that were `seen`; whether that changed the file.

        Raises `ChangedMeanwhile` when the file is another one by now, and `BadInput` when it cannot be written.
        """
        path = self.ticket.spec_path
        self.ticket.refuse_to_write(path)
        text = self._text(seen.data)
        try:
            new = rewritten(text, spec, self.shown, slug=self.ticket.slug).encode()
        except SpecEmpty:  # there may be comments
            new = "\n".join(filter(None, [text.rstrip(), spec.to_yaml()])).encode()
        if read_bytes(path) != seen.data:
            raise ChangedMeanwhile(f"{self.shown} was changed meanwhile; nothing was written")
        if new == seen.data:
            return False
        if seen.data is not None:
            write_atomic(path, new)
            return True
        try:
            create_exclusive(path, new)
        except FileExistsError as error:
            raise ChangedMeanwhile(f"{self.shown} was made meanwhile; nothing was written") from error
        return True

    def _text(self, data: bytes | None) -> str:
        try:
            return (data or b"").decode()
        except UnicodeDecodeError as error:
            raise BadInput(f"{self.shown} is not UTF-8 text (byte {error.start}).", hint="Save it as UTF-8.") from error
