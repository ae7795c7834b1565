"""`cdd context`: the project context that a model would get."""

from argparse import Namespace
from pathlib import Path

from cdd_agent.commands.terminal import Argument, flag, terminal_command


@terminal_command(
    "context",
    """
    cdd context
    cdd context README.md src --json
    """,
    Argument("paths", "files and folders to include, relative to the project", metavar="PATH", nargs="*"),
    flag("--json", "one JSON object"),
)
def context(options: Namespace) -> int:
    from cdd_agent.cli.without_screen import open_project_of, print_json, print_text
    from cdd_agent.project.context import project_context

    root = open_project_of(options).root
    found = project_context(root, [_from_here(root, path) for path in options.paths])
    if options.json:
        print_json(found.to_json())
    else:
        print_text(found.as_text())
    return 0


def _from_here(root: Path, typed: str) -> str:
    """A path as the project knows it: what is there from here on, else as it was typed."""
    place = Path(typed).resolve()
    return (place.relative_to(root).as_posix() or ".") if place.exists() and place.is_relative_to(root) else typed
