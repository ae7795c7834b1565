"""AGENTS.md, what coding agents and newcomers have to know of a project: a start, with
what its files say already.
"""

from cdd_agent.errors import BadInput
from cdd_agent.open_project import Project
from cdd_agent.project.profile import profile
from cdd_agent.project.unfilled import (
    COMMANDS,
    CONVENTIONS,
    DESCRIPTION,
    FOLDER,
    FOLDER_NAME,
)
from cdd_agent.sanitize import sanitize_for_display
from cdd_agent.verification.detection import detect

FILE = "AGENTS.md"

_TEXT = """\
# {name}

{description}

This page is for coding agents and for people who are new here. Keep it short, and \
true: whatever is wrong in it is done
wrong.

## Commands

{commands}

## Where things are

- {folder_name}: {folder}

## Conventions

{conventions}

## Tickets

Work is described in `{tickets}/`, a folder for each ticket: `spec.yaml` says what is \
wanted, `plan.md` in which steps.
`cdd list` shows how far each is.
"""


def agents_file(project: Project) -> tuple[str, list[str]]:
    """The text, and which files it could not be made from, each with the reason."""
    found = profile(project.root)
    unread = list(found.unread)
    try:
        tests = [check.shown for check in detect(project.root)]
        if project.config.test_command:
            tests = [project.config.test_command]
    except (BadInput, OSError) as error:
        tests = []
        if not unread:  # else it is the same file, and told already
            unread.append(error.message if isinstance(error, BadInput) else str(error))
    commands = {**found.commands, "test": tests}
    lines: list[str] = []
    for purpose, unknown in COMMANDS.items():
        code = [
            f"`` {command} ``" if "`" in command else f"`{command}`"
            for command in commands[purpose]
        ]
        lines.append(
            f"- {purpose[:1].upper() + purpose[1:]}: {', '.join(code) or unknown}"
        )
    text = _TEXT.format(
        name=sanitize_for_display(found.name),
        description=sanitize_for_display(found.description) or DESCRIPTION,
        commands="\n".join(lines),
        folder_name=FOLDER_NAME,
        folder=FOLDER,
        conventions="\n".join(f"- {place}" for place in CONVENTIONS),
        tickets=project.config.tickets_dir.rstrip("/"),
    )
    return text, unread
