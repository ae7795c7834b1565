"""The files that a run saves: values as JSON, read back as what they were. What must
not be used again is set aside.
"""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Self, TypeVar

import msgspec

from cdd_agent.errors import BadInput
from cdd_agent.files.atomic import read_bytes, sync_folder, write_atomic

Kind = TypeVar("Kind")
Moment = Annotated[datetime, msgspec.Meta(tz=True)]
"""With its zone: it means the same on every machine."""


class Damaged(BadInput):
    """A file of a run's own record that does not hold what belongs there."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(
            f"{path} is damaged: {why}",
            hint="It is a run's own record. Look at it, and move it away to go on.",
        )
        self.path = path


class JsonFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A value that has a file."""

    @classmethod
    def load(cls, path: Path) -> Self | None:
        """None where there is no file. Raises `Damaged`."""
        text = read_text(path)
        if text is None:
            return None
        try:
            return from_json(text, cls)
        except ValueError as error:
            raise Damaged(path, str(error)) from error

    def save(self, path: Path) -> None:
        """Exactly as it is: for texts that may have half of a character in them there
        is `as_json`.
        """
        write_atomic(path, msgspec.json.format(msgspec.json.encode(self), indent=1))


def from_json(data: bytes | str, kind: type[Kind]) -> Kind:
    """A value from JSON that may be anything. Raises `ValueError`, which says what is
    wrong with it.
    """
    try:
        return msgspec.json.decode(data, type=kind)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def as_json(saved: object, indent: int = 1) -> bytes:
    """Texts from models and tools as JSON, where half of a character becomes `?`."""
    return msgspec.json.format(as_short_json(saved), indent=indent)


def as_short_json(saved: object) -> bytes:
    """The same without white space."""
    try:
        return msgspec.json.encode(saved)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(saved), ensure_ascii=False).encode(
            errors="replace"
        )


def read_text(path: Path) -> str | None:
    data = read_bytes(path)
    return None if data is None else data.decode("utf-8", errors="replace")


def write_text(path: Path, text: str) -> None:
    write_atomic(path, text.encode("utf-8", errors="replace"))


def aside_of(path: Path) -> Path:
    """A name beside a path that nothing has yet."""
    return path.with_name(f"{path.stem}.aside-{stamp()}{path.suffix}")


def set_aside(path: Path) -> Path:
    """Rename a file or folder that must neither be used nor lost. Returns where it is
    now.
    """
    aside = aside_of(path)
    try:
        path.rename(aside)
        sync_folder(aside.parent)
    except OSError as error:
        raise BadInput(
            f"{path} could not be set aside: {error.strerror or error}"
        ) from error
    return aside


def stamp() -> str:
    """The present moment as a name that sorts by time."""
    return datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
