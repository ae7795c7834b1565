"""`/init` and `cdd init`: what a folder needs to be a cdd project, made where it is
missing and never overwritten.
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
from cdd_agent.open_project import Project
from cdd_agent.settings.config import PROJECT_FILE, declared_settings
from cdd_agent.tickets.templates import copy_bundled
from cdd_agent.user_folders import home_folder

_SETTINGS_HEAD = """\
# Settings of this project; commit this file. Every key is shown with its default.
# Keys come from the environment: OPENAI_API_KEY, ANTHROPIC_API_KEY, ...
# Your own templates for new tickets go into .cdd/templates/; `cdd init --templates`
# copies the bundled ones there.

"""
_COMMENT_COLUMN = 40

_SYSTEM = (
    *("/bin", "/boot", "/etc", "/lib", "/lib32", "/lib64", "/proc", "/sbin", "/sys"),
    *("/usr/bin", "/usr/lib", "/usr/sbin", "/usr/share", "/System", "/Library"),
)
"""The system's own folders: neither they nor what is in them is a project."""
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
        # named to be refused, and not written to
        "/tmp",  # noqa: S108
        "/dev",
    ),
    *("/Users", "/Applications", "/Volumes"),
)
"""Folders in which projects may be, but which are none themselves."""
_WINDOWS_SYSTEM = ("SYSTEMROOT", "PROGRAMFILES", "PROGRAMFILES(X86)", "PROGRAMDATA")
"""The variables by which Windows names such folders."""


def initialise(project: Project, *, templates: bool = False) -> Iterator[Notice]:
    """Make what is missing of a project's own files, and tell of each; with
    `templates`, copies of the bundled ones.

    Raises `NoPlace` for a folder that is none for a project, and `BadInput` where the
    disk refuses.
    """
    root = project.root
    _refuse_no_place(root)
    yield Notice(
        f"The project is {root}"
        + (", a git repository." if (root / ".git").exists() else ".")
    )
    made = [file] if (file := ignore_runs(root)) else []
    made += _created(root / PROJECT_FILE, settings_template())
    if not (tickets := root / project.config.tickets_dir).is_dir():
        made += _created(tickets / ".gitkeep", "")  # git keeps no empty folder
    try:
        names = {path.name.casefold() for path in root.iterdir()}
    except OSError as error:
        raise BadInput(f"{root} cannot be listed: {error.strerror or error}") from error
    if FILE.casefold() not in names:
        text, unread = agents_file(project)
        made += _created(root / FILE, text)
        yield from (
            Notice(
                f"Nothing in {FILE} is from {problem}",
                Tone.WARNING,
            )
            for problem in unread
        )
    made += copy_bundled(root) if templates else []
    yield from (
        Notice(
            f"Created {path.relative_to(root).as_posix()}",
            Tone.GOOD,
            kind=NoticeKind.CREATED,
        )
        for path in made
    )
    if root / FILE in made:
        yield Notice(
            f"Fill in the <…> placeholders in {FILE}. Until you do, those lines are"
            " left out of prompts."
        )
    if not made:
        yield Notice(
            "Already set up; nothing was changed.",
            Tone.GOOD,
            kind=NoticeKind.NOT_DONE,
        )


def settings_template() -> str:
    """Return a settings file in which all settings are comments, with their defaults
    and descriptions.
    """
    lines = []
    for setting in declared_settings():
        section, _, key = setting.name.rpartition(".")
        line = f"#   {key}:" if section else f"# {key}:"
        if not setting.is_section:
            value = setting.example or setting.default
            text = json.dumps(to_builtins(value))
            line += f" {value if isinstance(value, str) else text}"
        if setting.description:
            line = f"{line:<{_COMMENT_COLUMN}}# {setting.description}"
        lines.append(f"{line}\n")
    return _SETTINGS_HEAD + "".join(lines)


class NoPlace(BadInput):
    """A folder in which no project is begun: a person's home, or the system's."""

    def __init__(self, folder: Path, what: str) -> None:
        super().__init__(
            f"{folder} is no place for a project: it is {what}.",
            hint=(
                "A project is the nearest folder with .cdd or .git, or else the one you"
                " are in. Change to the project's own folder; if that is in this one,"
                " `git init` there first."
            ),
        )
        self.folder = folder


def _created(path: Path, text: str) -> list[Path]:
    try:
        create_exclusive(path, text.encode())
    except FileExistsError:
        return []
    return [path]


def _refuse_no_place(root: Path) -> None:
    """Judged by which folder it is, and not by its name: a link to `/etc` is `/etc`."""
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
        raise NoPlace(root, "a folder of the system")


def _is(folder: Path, place: Path) -> bool:
    try:
        return folder.samefile(place)
    except OSError:  # there is no such place here, or it cannot be looked at
        return False
