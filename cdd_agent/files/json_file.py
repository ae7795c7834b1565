"""Values in JSON files, and renaming files that must not be used again."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Self, TypeVar

import msgspec

from cdd_agent.errors import BadInput
from cdd_agent.files.atomic import read_bytes, sync_folder, write_atomic
from cdd_agent.refusals.kinds import Refusal

Kind = TypeVar("Kind")
Moment = Annotated[datetime, msgspec.Meta(tz=True)]
"""A moment with a time zone."""


class Damaged(BadInput):
    refusal = Refusal.STATE_UNREADABLE

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(
            f"{path} is damaged: {why}",
            hint="cdd wrote this file for a run. Move it to another folder, then run"
            " the command again.",
        )
        self.path = path


class JsonFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A value with a file."""

    @classmethod
    def load(cls, path: Path) -> Self | None:
        """None if there is no file. Raises `Damaged`."""
        text = read_text(path)
        if text is None:
            return None
        try:
            return from_json(text, cls)
        except ValueError as error:
            raise Damaged(path, str(error)) from error

    def save(self, path: Path) -> None:
        """Fails for lone surrogates; use `as_json` for such texts."""
        write_atomic(path, msgspec.json.format(msgspec.json.encode(self), indent=1))


def from_json(data: bytes | str, kind: type[Kind]) -> Kind:
    """Raises `ValueError` with the reason."""
    try:
        return msgspec.json.decode(data, type=kind)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def as_json(saved: object, indent: int = 1) -> bytes:
    """Encode texts of models and tools. Lone surrogates become `?`."""
    return msgspec.json.format(as_short_json(saved), indent=indent)


def as_short_json(saved: object) -> bytes:
    """Encode like `as_json`, without white space."""
    try:
        return msgspec.json.encode(saved)
    except UnicodeEncodeError:
        text = json.dumps(msgspec.to_builtins(saved), ensure_ascii=False)
        return text.encode(errors="replace")


def read_text(path: Path) -> str | None:
    data = read_bytes(path)
    return None if data is None else data.decode("utf-8", errors="replace")


def write_text(path: Path, text: str) -> None:
    write_atomic(path, text.encode("utf-8", errors="replace"))


def choose_aside_name(path: Path) -> Path:
    return path.with_name(f"{path.stem}.aside-{stamp()}{path.suffix}")


def set_aside(path: Path) -> Path:
    """Rename a file that must neither be used nor lost. Return its new path."""
    aside = choose_aside_name(path)
    try:
        path.rename(aside)
        sync_folder(aside.parent)
    except OSError as error:
        reason = error.strerror or error
        raise BadInput(
            f"{path} could not be renamed: {reason}", refusal=Refusal.DISK
        ) from error
    return aside


STAMP = "%Y%m%dT%H%M%S%f"
"""A `strftime` format for UTC that sorts as text."""


def stamp() -> str:
    """Return the current time as a name that sorts by time."""
    return datetime.now(UTC).strftime(STAMP)
