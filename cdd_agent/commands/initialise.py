"""`/init` and `cdd init`: create the missing files of a project. No file is
overwritten.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path

from msgspec import to_builtins

from cdd_agent.commands.agents_file import FILE, agents_file
from cdd_agent.errors import BadInput
from cdd_agent.events.notices import Notice, NoticeKind, Tone
from cdd_agent.files.atomic import create_exclusive, ignore_runs
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.session.open_project import Project
from cdd_agent.settings.config import PROJECT_FILE, declared_settings
from cdd_agent.settings.user_folders import home_folder
from cdd_agent.tickets.templates import copy_bundled

_SETTINGS_HEAD = """\
# Settings of this project. Commit this file. Each line shows a key with its default;
# remove the # to set it. API keys are not settings: export OPENAI_API_KEY,
# ANTHROPIC_API_KEY, ... and restart cdd.
# To change the templates of new tickets, run `cdd init --templates` and edit
# .cdd/templates/.

"""
_COMMENT_COLUMN = 40

_SYSTEM = (
    *("/bin", "/boot", "/etc", "/lib", "/lib32", "/lib64", "/proc", "/sbin", "/sys"),
    *("/usr/bin", "/usr/lib", "/usr/sbin", "/usr/share", "/System", "/Library"),
)
"""System folders. Neither they nor their subfolders can be projects."""
_SHARED = (
    *(
        "/home",
        "/root",
        "/usr",
        "/usr/local",
        "/var",
        "/opt",
        "/srv",
        "/mnt",
        "/media",
        "/run",
        # These are refused, never written to.
        "/tmp",  # noqa: S108
        "/dev",
    ),
    *("/Users", "/Applications", "/Volumes"),
)
"""Folders that may contain projects but are none."""
_WINDOWS_SYSTEM = ("SYSTEMROOT", "PROGRAMFILES", "PROGRAMFILES(X86)", "PROGRAMDATA")
"""Windows variables that name system folders."""


def initialise(project: Project, *, templates: bool = False) -> Iterator[Notice]:
    """Create the missing files, and yield a notice for each. `templates`: also copy the
    ticket templates.

    Raises `NoPlace` for a folder that cannot be a project, and `BadInput` if the disk
    refuses.
    """
    root = project.root
    refuse_no_place(root)
    yield Notice(
        f"The project is {root}"
        + (", a git repository." if (root / ".git").exists() else ".")
    )
    files = [file] if (file := ignore_runs(root)) else []
    files += _created(root / PROJECT_FILE, settings_template())
    if not (tickets := root / project.config.tickets_dir).is_dir():
        files += _created(tickets / ".gitkeep", "")  # git ignores empty folders
    try:
        names = {path.name.casefold() for path in root.iterdir()}
    except OSError as error:
        raise BadInput(
            f"{root} cannot be listed: {error.strerror or error}", refusal=Refusal.DISK
        ) from error
    if FILE.casefold() not in names:
        text, unread = agents_file(project)
        files += _created(root / FILE, text)
        yield from (
            Notice(
                f"{FILE} has no facts from {problem}",
                Tone.WARNING,
            )
            for problem in unread
        )
    files += copy_bundled(root) if templates else []
    yield from (
        Notice(
            f"Created {path.relative_to(root).as_posix()}",
            Tone.GOOD,
            kind=NoticeKind.CREATED,
        )
        for path in files
    )
    if root / FILE in files:
        yield Notice(
            f"Fill in the <…> placeholders in {FILE}. Until you do, those lines are"
            " left out of prompts."
        )
    if not files:
        yield Notice(
            "Already set up; nothing was changed.",
            Tone.GOOD,
            kind=NoticeKind.NOT_DONE,
        )


def initialise_and_say_next(
    project: Project, *, templates: bool = False
) -> Iterator[Notice]:
    """`initialise`, followed by a notice with the next command."""
    yield from initialise(project, templates=templates)
    text = "create a ticket with `/new feature NAME`."
    if project.config.model is None:
        text = f"set up a model with `/model`, then {text}"
    yield Notice(f"Next: {text}")


def settings_template() -> str:
    """Return a settings file with all settings as comments, with defaults and
    descriptions.
    """
    lines = []
    for setting in declared_settings():
        section, _, key = setting.name.rpartition(".")
        line = f"#   {key}:" if section else f"# {key}:"
        description = setting.description
        if description:
            value = description.example or setting.default
            text = json.dumps(to_builtins(value))
            line += f" {value if isinstance(value, str) else text}"
            line = f"{line:<{_COMMENT_COLUMN}}# {description.in_short}"
        lines.append(f"{line}\n")
    return _SETTINGS_HEAD + "".join(lines)


class NoPlace(BadInput):
    """The folder cannot be a project: it is the user's home, or a system folder."""

    refusal = Refusal.DISK

    def __init__(self, folder: Path, what: str) -> None:
        super().__init__(
            f"{folder} cannot be a project: it is {what}.",
            hint=(
                "The project is the nearest folder with .cdd or .git, otherwise the"
                " current folder. Change to your project's folder; if it is inside this"
                " one, run `git init` there first."
            ),
        )
        self.folder = folder


def _created(path: Path, text: str) -> list[Path]:
    try:
        create_exclusive(path, text.encode())
    except FileExistsError:
        return []
    return [path]


def refuse_no_place(root: Path) -> None:
    """Raise `NoPlace` for such a folder, even through a link."""
    home = home_folder()
    if home is not None and _is(root, home):
        raise NoPlace(root, "your home folder")
    alone = [Path(root.anchor), *map(Path, _SHARED)]
    whole = [
        *map(Path, _SYSTEM),
        *(Path(os.environ[name]) for name in _WINDOWS_SYSTEM if os.environ.get(name)),
    ]
    if drive := os.environ.get("SYSTEMDRIVE"):
        alone.append(Path(f"{drive}/Users"))
    if any(_is(root, place) for place in alone) or any(
        _is(folder, place) for folder in (root, *root.parents) for place in whole
    ):
        raise NoPlace(root, "a system folder")


def _is(folder: Path, place: Path) -> bool:
    try:
        return folder.samefile(place)
    except OSError:
        return False
