"""A ticket's spec on disk, written only if unchanged since it was read."""

from msgspec import Struct

from cdd_agent.errors import BadInput
from cdd_agent.files.atomic import create_exclusive, read_bytes, write_atomic
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.tickets.spec import SpecEmpty, TicketSpec, TicketType
from cdd_agent.tickets.spec_editor import edit_spec
from cdd_agent.tickets.store import Ticket

MAX_BYTES = 200_000
"""Models receive the whole spec in every turn."""


class SpecTooLarge(BadInput):
    refusal = Refusal.SPEC_UNUSABLE

    def __init__(self, shown: str, size: int) -> None:
        super().__init__(
            f"{shown} has {size:,} bytes. The limit is {MAX_BYTES:,}, because each turn"
            " sends all of it to the model",
            hint=(
                "Move logs and data into separate files next to it, and name them in"
                " the spec."
            ),
        )
        self.size = size


class SpecChanged(BadInput):
    """The file has changed since it was read. Nothing was written."""

    refusal = Refusal.SPEC_CHANGED


class SpecOnDisk(Struct, frozen=True):
    """A spec.yaml when it was read."""

    data: bytes | None
    spec: TicketSpec
    is_written: bool = True
    """False if the file is missing, empty or only comments."""


class SpecFile(Struct, frozen=True):
    ticket: Ticket

    @property
    def shown(self) -> str:
        return self.ticket.shown(self.ticket.spec_path)

    def read(self) -> SpecOnDisk:
        """Raises `SpecTooLarge`, or `BadInput` with file, line and reason."""
        data = read_bytes(self.ticket.find_spec())
        if data is not None and len(data) > MAX_BYTES:
            raise SpecTooLarge(self.shown, len(data))
        slug = self.ticket.slug
        try:
            return SpecOnDisk(
                data, TicketSpec.from_yaml(self._decode(data), self.shown, slug=slug)
            )
        except SpecEmpty:
            return SpecOnDisk(
                data, TicketSpec(type=TicketType.from_slug(slug)), is_written=False
            )

    def write(self, previous: SpecOnDisk, spec: TicketSpec) -> bool:
        """Write the fields of `spec`. False if nothing changes.

        Raises `SpecChanged` if the file differs from `previous`, `SpecTooLarge` if it
        could not be read back, and `BadInput` if it cannot be written.
        """
        path = self.ticket.spec_path
        self.ticket.refuse_to_write(path)
        text = self._decode(previous.data)
        try:
            new = edit_spec(text, spec, self.shown, slug=self.ticket.slug)
        except SpecEmpty:
            comments = text.rstrip()
            new = f"{comments}\n{spec.to_yaml()}" if comments else spec.to_yaml()
        if read_bytes(path) != previous.data:
            raise SpecChanged(
                f"{self.shown} was changed by another program; nothing was written"
            )
        data = new.encode()
        if data == previous.data:
            return False
        if len(data) > MAX_BYTES:
            raise SpecTooLarge(self.shown, len(data))
        if previous.data is not None:
            write_atomic(path, data)
            return True
        try:
            create_exclusive(path, data)
        except FileExistsError as error:
            raise SpecChanged(
                f"{self.shown} was created by another program; nothing was written"
            ) from error
        return True

    def _decode(self, data: bytes | None) -> str:
        try:
            return (data or b"").decode()
        except UnicodeDecodeError as error:
            raise BadInput(
                f"{self.shown} is not UTF-8 text (byte {error.start}).",
                hint="Save it as UTF-8.",
                refusal=Refusal.WRONG_ENCODING,
            ) from error
