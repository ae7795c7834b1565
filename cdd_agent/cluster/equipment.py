"""The installed packages that a project's tests need on a worker."""

from __future__ import annotations

import os
from pathlib import Path

from cdd_agent.events.notices import Notice, NoticeKind, Tone
from cdd_agent.events.stream import Emit
from cdd_agent.project.own_packages import own_packages
from cdd_agent.project.tree_needs import Equipment

ENVIRONMENT = "CDD_WORKER_ENVIRONMENT"
"""Variable that names a folder with the `.venv` and `node_modules` for projects'
tests.
"""


async def equip_from_worker(root: Path, emit: Emit) -> None:
    """Link the worker's packages into this project, and set the variables for its
    commands in this process, which serves only this run. Raises `BadInput`,
    `GitUnusable`.
    """
    folder = _take_worker_folder()
    if folder is None:
        return
    equipment = await Equipment.find_in_folder(folder)
    needs = await equipment.link_into(root)
    packages = await own_packages(root, folder, bases=needs.python_bases)
    if packages.names:
        text = (
            f"{', '.join(packages.names)} is installed from the folder of {ENVIRONMENT}"
            " (editable). PYTHONPATH puts the run's own first."
        )
        emit(Notice(text, Tone.WARNING, kind=NoticeKind.EDITABLE_INSTALL))
    os.environ.update(packages.env(root))


def _take_worker_folder() -> Path | None:
    """Return the folder that the variable names, and hide the variable from the run's
    commands.
    """
    name = os.environ.pop(ENVIRONMENT, "")
    return Path(name).resolve() if name else None
