"""`/init` and `cdd init`: what a folder needs to be a cdd project, made where it is
missing and never overwritten.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from cdd_agent.commands.agents_file import FILE, agents_file
from cdd_agent.config import PROJECT_FILE
from cdd_agent.errors import BadInput
from cdd_agent.events.notices import Notice, NoticeKind, Tone
from cdd_agent.files.atomic import create_exclusive, ignore_runs
from cdd_agent.open_project import Project
from cdd_agent.tickets.templates import copy_bundled
from cdd_agent.user_folders import home_folder

# as it is written to the disk, a key with its comment on each line
CONFIG = """\
# Settings of this project; commit this file. Every key is shown with its default.
# Keys come from the environment: OPENAI_API_KEY, ANTHROPIC_API_KEY, ...
# Your own templates for new tickets go into .cdd/templates/; `cdd init --templates` copies the bundled ones there.

# model: anthropic/claude-sonnet-4-5   # any litellm model string
# api_base: null                       # a server of your own, e.g. http://127.0.0.1:8080/v1
# model_adapter: auto                  # auto: directly where the protocol is spoken | direct | litellm
# tool_calls: auto                     # auto: to models that are known to call tools | on | off
# context_window: null                 # tokens that the model takes in; null: what is known of it
# pictures: null                       # true, false: whether the model takes pictures; null: what is known of it
# effort: null                         # how much the model thinks: none | low | medium | high | max; null: its default
# temperature: null                    # 0 to 2; null: the provider's default
# max_output_tokens: null              # the longest reply, thoughts included; null: the model's own limit
# request:                             # what every request has besides, as the provider calls it
#   body: {}
#   headers: {}
# models: {}                           # by role: planner, executor, chat, socrates; a model, or a mapping of the above
# fallbacks: []                        # models to ask where the provider is down, or has no quota left
# tickets_dir: tickets                 # the folder of tickets, inside the project
# test_command: null                   # null: found by what the project holds
# test_timeout: 300                    # seconds
# max_attempts: 3                      # model attempts a step without a screen, the first included
# jobs: 1                              # steps that run at once, where they can
# approval: edits                      # ask: before files are written | edits | auto
# require: off                         # verified: a step fails unless its tests passed | checked: unless it was checked | off
# strength: null                       # a percentage: `cdd verify --strength` calls a lower score weak
# strength_faults: 30                  # small faults that it tries for a step, at most
# strength_seconds: 300                # and the time for a step
# commit: off                          # step: one git commit for each completed step, of its files alone
# budget:                              # of a run: it stops before the call that could pass it
#   usd: null                          # dollars, where the model's price is known
#   tokens: null
# record: null                         # a file that keeps what the model is asked and answers
# commands:
#   mode: safe                         # safe: refuse what is not on the list | ask | unsafe: a real shell
#   allow: []                          # programs beside ls, cat, python, pytest, ruff, make, ...
#   timeout: 60                        # seconds
#   hide_env: []                       # variables that no command sees, beside those that look like secrets
#   pass_env: []                       # variables that commands see although they look like secrets
# web:
#   private: false                     # true: pages of this machine and its network may be read
# notifications:                       # while the terminal of the shell is not in focus
#   bell: true
#   desktop: auto                      # auto: where the terminal is known to show them | osc9 | osc777 | off
#   title: true                        # the terminal's title says how far a run is
#   progress: auto                     # so does the taskbar: auto | on | off
"""  # noqa: E501

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
    made += _created(root / PROJECT_FILE, CONFIG)
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
            f"Made {path.relative_to(root).as_posix()}",
            Tone.GOOD,
            kind=NoticeKind.CREATED,
        )
        for path in made
    )
    if root / FILE in made:
        yield Notice(
            f"{FILE} describes the project to coding agents and newcomers. Replace each"
            " <…>: models do not see lines that have one."
        )
    if not made:
        yield Notice(
            "It was set up already; nothing was changed.",
            Tone.GOOD,
            kind=NoticeKind.NOT_DONE,
        )


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
