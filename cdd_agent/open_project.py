"""A project as commands get it: the folder that everything happens in, its settings and
its tickets.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from cdd_agent.config import Config, load_config
from cdd_agent.errors import BadInput
from cdd_agent.files.paths import PathRefused, confine, find_root
from cdd_agent.tickets.store import TicketStore


class Project(Struct, frozen=True):
    root: Path
    config: Config
    tickets: TicketStore


def open_project(
    folder: Path, flags: Mapping[str, Any], *, exactly: bool = False
) -> Project:
    """The project that `folder` is in, or is, with the settings that hold there. Raises
    `BadInput`.

    `exactly`: the folder itself is the root, whatever it lies in.
    """
    try:
        if not folder.is_dir():
            raise BadInput(f"{folder} is not a folder")
    except OSError as error:  # a name that is too long, a folder that is closed
        raise BadInput(f"{folder} cannot be used: {error.strerror or error}") from error
    root = folder.resolve() if exactly else find_root(folder)
    config = load_config(root, flags)
    try:
        confine(root, config.tickets_dir)
    except PathRefused as refusal:
        raise BadInput(
            f"tickets_dir: {refusal.message}", hint="It is a folder inside the project."
        ) from refusal
    return Project(root, config, TicketStore(root, config.tickets_dir))
