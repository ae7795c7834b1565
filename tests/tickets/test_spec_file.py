"""spec.yaml on the disk is written only over what was read."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from cdd_agent.errors import BadInput
from cdd_agent.tickets.spec import TicketSpec, TicketType
from cdd_agent.tickets.spec_file import MAX_BYTES, SpecChanged, SpecFile
from cdd_agent.tickets.store import Ticket

TEXT = "# mine\ntitle: x\r\nowner: Ada\n"


@pytest.fixture
def file(tmp_path: Path) -> SpecFile:
    folder = tmp_path / "tickets" / "bug-x"
    folder.mkdir(parents=True)
    (folder / "spec.yaml").write_bytes(TEXT.encode())
    return SpecFile(Ticket("bug-x", folder, tmp_path))


def test_what_was_read_is_written_over(file: SpecFile) -> None:
    seen = file.read()
    assert file.write(seen, replace(seen.spec, title="y"))
    assert (
        file.ticket.spec_path.read_bytes()
        == TEXT.replace("title: x", "title: y").encode()
    )


def test_what_says_the_same_is_not_written(file: SpecFile) -> None:
    before = file.ticket.spec_path.stat().st_ino
    assert not file.write(file.read(), file.read().spec)
    assert file.ticket.spec_path.stat().st_ino == before


def test_a_read_only_file_is_not_replaced(file: SpecFile) -> None:
    seen = file.read()
    file.ticket.spec_path.chmod(0o444)
    with pytest.raises(BadInput, match="is read-only, so it is not written"):
        file.write(seen, replace(seen.spec, title="y"))
    assert file.ticket.spec_path.read_bytes() == TEXT.encode()


@pytest.mark.parametrize("edit", ["title: theirs\n", TEXT + "more: 1\n"])
def test_an_edit_that_was_not_seen_is_not_overwritten(
    file: SpecFile, edit: str
) -> None:
    seen = file.read()
    file.ticket.spec_path.write_bytes(edit.encode())
    with pytest.raises(SpecChanged):
        file.write(seen, replace(seen.spec, title="y"))
    assert file.ticket.spec_path.read_bytes() == edit.encode()


def test_a_file_that_went_meanwhile_is_not_made_anew(file: SpecFile) -> None:
    seen = file.read()
    file.ticket.spec_path.unlink()
    with pytest.raises(SpecChanged):
        file.write(seen, replace(seen.spec, title="y"))
    assert not file.ticket.spec_path.exists()


@pytest.mark.parametrize("content", [None, "", "\n", "# mine\n\n", "# mine"])
def test_where_nothing_is_written_yet_a_whole_spec_is(
    file: SpecFile, content: str | None
) -> None:
    file.ticket.spec_path.unlink()
    if content is not None:
        file.ticket.spec_path.write_text(content)
    seen = file.read()
    assert seen.spec == TicketSpec(type=TicketType.BUG)
    assert file.write(seen, replace(seen.spec, title="y"))
    assert file.read().spec == TicketSpec(title="y", type=TicketType.BUG)
    assert file.ticket.spec_path.read_text().startswith((content or "").strip())


def test_a_file_that_came_meanwhile_is_not_overwritten(file: SpecFile) -> None:
    file.ticket.spec_path.unlink()
    seen = file.read()
    file.ticket.spec_path.write_bytes(TEXT.encode())
    with pytest.raises(SpecChanged):
        file.write(seen, replace(seen.spec, title="y"))
    assert file.ticket.spec_path.read_bytes() == TEXT.encode()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"x" * (MAX_BYTES + 1), "200,001 bytes. The limit is 200,000"),
        (b"title: Gr\xf6\xdfe", "is not UTF-8 text"),
        (b"title: x\nb: [\n", r"spec\.yaml:3"),
    ],
)
def test_what_cannot_be_worked_on_is_refused(
    file: SpecFile, content: bytes, message: str
) -> None:
    file.ticket.spec_path.write_bytes(content)
    with pytest.raises(BadInput, match=message):
        file.read()
