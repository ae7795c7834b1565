"""Shared by the commands that run without a screen: their project, and how they print.
Little is imported: a command that only looks needs no more. One that works has
`working.py` besides.
"""

import json
import sys
from argparse import Namespace
from pathlib import Path

from cdd_agent.open_project import Project, accept_once, leave_out, open_project
from cdd_agent.printer import JsonPrinter, Printer, TextPrinter
from cdd_agent.sanitize import sanitize_for_display


def open_project_of(options: Namespace, *settings: str) -> Project:
    """Open the project of a command that does without settings that are not trusted.
    Of its flags, the ones named are settings there. Raises `BadInput`.
    """
    return open_project(
        options.project,
        {name: getattr(options, name) for name in settings},
        decide=accept_once if options.trust else leave_out,
    )


def reference(typed: str) -> str:
    """A ticket as it was typed; a path is one from here, not from the project's
    root.
    """
    is_path = "/" in typed or typed in (".", "..")
    return str(Path(typed).resolve()) if is_path and Path(typed).exists() else typed


def print_text(text: str) -> None:
    """Text from files: as it is into a file or a pipe, but a terminal is not steered by
    it.
    """
    sys.stdout.write(
        "\n".join(map(sanitize_for_display, text.split("\n")))
        if sys.stdout.isatty()
        else text
    )


def print_json(value: object) -> None:
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")


def printer_for(as_json: bool) -> Printer:
    return JsonPrinter() if as_json else TextPrinter()
