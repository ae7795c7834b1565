"""The files that a run saves: values as JSON, read back as what they were. What must not be used again is set aside."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, ValidationError

from cdd_agent.errors import BadInput
from cdd_agent.files.atomic import read_bytes, sync_folder, write_atomic


class Damaged(BadInput):
    """A file of a run's own record that does not hold what belongs there."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(
            f"{path} is damaged: {why}", hint="It is a run's own record. Look at it, and move it away to go on."
        )
        self.path = path


class JsonFile(BaseModel):
    """A value that has a file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @classmethod
    def load(cls, path: Path) -> Self | None:
        """None where there is no file. Raises `Damaged`."""
        text = read_text(path)
        if text is None:
            return None
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            raise Damaged(path, error.errors()[0]["msg"]) from error

    def save(self, path: Path) -> None:
        write_text(path, self.model_dump_json(indent=1))


def as_json(saved: BaseModel) -> str:
    """Texts from models and tools as JSON, also those with half of a character, which pydantic's own writer refuses."""
    return json.dumps(saved.model_dump(mode="json"), ensure_ascii=False, indent=1)


def read_text(path: Path) -> str | None:
    data = read_bytes(path)
    return None if data is None else data.decode("utf-8", errors="replace")


def write_text(path: Path, text: str) -> None:
    write_atomic(path, text.encode("utf-8", errors="replace"))


def aside_of(path: Path) -> Path:
    """A name beside a path that nothing has yet."""
    return path.with_name(f"{path.stem}.aside-{stamp()}{path.suffix}")


def set_aside(path: Path) -> Path:
    """Rename a file or folder that must neither be used nor lost. Returns where it is now."""
    aside = aside_of(path)
    try:
        path.rename(aside)
        sync_folder(aside.parent)
    except OSError as error:
        raise BadInput(f"{path} could not be set aside: {error.strerror or error}") from error
    return aside


def stamp() -> str:
    """The present moment as a name that sorts by time."""
    return datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
