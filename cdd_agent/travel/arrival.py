"""An arriving run: read into a separate folder, validated as a whole, then installed. A
killed pull starts from the beginning.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Self

from msgspec import Struct

from cdd_agent.engine.record import RunRecord
from cdd_agent.files.atomic import NotWritten, remove, write_atomic
from cdd_agent.files.json_file import set_aside
from cdd_agent.tickets.store import Ticket
from cdd_agent.travel.manifest import (
    RECORD_FILES,
    TICKET_FILES,
    Manifest,
    is_step_file,
)
from cdd_agent.travel.reference import RunReference
from cdd_agent.travel.unpacking import unpack_run
from cdd_agent.travel.validation import expect_valid


class Arrival(Struct, frozen=True):
    """The content of a commit, validated as a run."""

    manifest: Manifest
    folder: Path
    """Contains the folders `ticket` and `record`."""

    @classmethod
    async def read(cls, reference: RunReference, tip: str, folder: Path) -> Self:
        """Read the run in a commit into this folder, which is emptied first. Raises
        `NotARun`, and `BadInput` if the disk refuses.
        """
        shutil.rmtree(folder, ignore_errors=True)
        try:
            manifest = await unpack_run(reference, tip, folder)
            expect_valid(folder, manifest)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return cls(manifest, folder)

    def discard(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def ticket_file(self, name: str) -> bytes | None:
        path = self.folder / "ticket" / name
        return path.read_bytes() if path.exists() else None

    def install_record(self, record: RunRecord) -> None:
        """Replace the run's files in a record. Files that only this copy has and that
        are never sent stay. Raises `BadInput`.
        """
        source = self.folder / "record"
        arrived = {
            path.relative_to(source).as_posix()
            for path in source.rglob("*")
            if path.is_file()
        }
        not_sent = {record.root / name for name in self.manifest.left_out}
        for name in _list_files(record):
            place = record.folder / name
            if name not in arrived and place not in not_sent:
                remove(place)
        try:
            # the state is last
            for name in sorted(arrived, key=lambda name: (name == "state.json", name)):
                place = record.folder / name
                place.parent.mkdir(parents=True, exist_ok=True)
                (source / name).replace(place)
        except OSError as error:
            raise NotWritten(record.folder, error) from error

    def install_ticket(self, ticket: Ticket) -> None:
        """Write the ticket's files, the state last. Raises `BadInput`."""
        for name in TICKET_FILES:
            content, place = self.ticket_file(name), ticket.folder / name
            if content is not None:
                write_atomic(place, content)
            elif place == ticket.state_path and place.exists():
                set_aside(place)


def _list_files(record: RunRecord) -> list[str]:
    names = list(RECORD_FILES)
    for path in record.folder.glob("step-*/**/*"):
        name = path.relative_to(record.folder).as_posix()
        if is_step_file(name):
            names.append(name)
    return names
