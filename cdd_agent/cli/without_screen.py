"""Opening the project and printing, without a screen."""

import json
import sys
from collections.abc import Mapping

from cdd_agent.cli.invocation import Invocation
from cdd_agent.faces.printer import JsonPrinter, Printer, TextPrinter
from cdd_agent.session.open_project import Project, accept_once, leave_out, open_project
from cdd_agent.text.sanitize import sanitize_for_display


def open_for_reading(
    invocation: Invocation, settings: Mapping[str, object] | None = None
) -> Project:
    """Open the project and ignore untrusted settings. Raises `BadInput`."""
    decide = accept_once if invocation.trust else leave_out
    return open_project(invocation.project, settings or {}, decide=decide)


def print_text(text: str) -> None:
    """Print text from files, on a terminal without escape sequences."""
    sys.stdout.write(
        "\n".join(map(sanitize_for_display, text.split("\n")))
        if sys.stdout.isatty()
        else text
    )


def print_json(value: object) -> None:
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")


def printer_for(as_json: bool) -> Printer:
    return JsonPrinter() if as_json else TextPrinter()
