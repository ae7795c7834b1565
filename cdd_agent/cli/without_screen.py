"""Opening the project and printing, for all commands without a screen."""

import json
import sys
from argparse import Namespace
from pathlib import Path

from cdd_agent.open_project import Project, accept_once, leave_out, open_project
from cdd_agent.printer import JsonPrinter, Printer, TextPrinter
from cdd_agent.sanitize import sanitize_for_display


def open_project_of(options: Namespace, *settings: str) -> Project:
    """Open the project of a command that ignores untrusted settings. `settings` names
    the flags that are settings. Raises `BadInput`.
    """
    return open_project(
        options.project,
        {name: getattr(options, name) for name in settings},
        decide=accept_once if options.trust else leave_out,
    )


def reference(typed: str) -> str:
    """Return a typed ticket. A path is relative to the current folder."""
    is_path = "/" in typed or typed in (".", "..")
    return str(Path(typed).resolve()) if is_path and Path(typed).exists() else typed


def print_text(text: str) -> None:
    """Print text of files. At a terminal, escape sequences are removed."""
    sys.stdout.write(
        "\n".join(map(sanitize_for_display, text.split("\n")))
        if sys.stdout.isatty()
        else text
    )


def print_json(value: object) -> None:
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")


def printer_for(as_json: bool) -> Printer:
    return JsonPrinter() if as_json else TextPrinter()
