"""A first AGENTS.md for a project, filled in from the project's files."""

from cdd_agent.errors import BadInput
from cdd_agent.project.profile import profile
from cdd_agent.project.unfilled import (
    COMMANDS,
    CONVENTIONS,
    DESCRIPTION,
    FOLDER,
    FOLDER_NAME,
)
from cdd_agent.session.open_project import Project
from cdd_agent.text.sanitize import sanitize_for_display
from cdd_agent.verification.detection import detect

FILE = "AGENTS.md"

_TEXT = """\
# {name}

{description}

Notes for coding agents and newcomers. Keep this page short and correct: agents follow \
it literally.

## Commands

{commands}

## Where things are

- {folder_name}: {folder}

## Conventions

{conventions}

## Tickets

Each folder in `{tickets}/` is a ticket: `spec.yaml` describes the goal, `plan.md` the \
steps.
`cdd list` lists the tickets and their states.
"""


def agents_file(project: Project) -> tuple[str, list[str]]:
    """Return the text, and the files that could not be read, with reasons."""
    project_profile = profile(project.root)
    unread = list(project_profile.unread)
    try:
        tests = [check.shown for check in detect(project.root)]
        if project.config.test_command:
            tests = [project.config.test_command]
    except (BadInput, OSError) as error:
        tests = []
        # Otherwise the same file was reported already.
        if not unread:
            unread.append(error.message if isinstance(error, BadInput) else str(error))
    commands = {**project_profile.commands, "test": tests}
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
        name=sanitize_for_display(project_profile.name),
        description=sanitize_for_display(project_profile.description) or DESCRIPTION,
        commands="\n".join(lines),
        folder_name=FOLDER_NAME,
        folder=FOLDER,
        conventions="\n".join(f"- {place}" for place in CONVENTIONS),
        tickets=project.config.tickets_dir.rstrip("/"),
    )
    return text, unread
