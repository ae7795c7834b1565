"""Where a person's own state is, which belongs to no project."""

from os import environ
from pathlib import Path


def state_folder() -> Path:
    """The folder; it need not be there yet."""
    return (
        Path(environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "cdd"
    )
