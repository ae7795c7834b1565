"""`cdd undo`, `redo` and `diff` of changes by `cdd apply`, `cdd run` and chat."""

import shlex
from argparse import Namespace
from pathlib import Path
from typing import Literal

from cdd_agent.cli.without_screen import open_project_of
from cdd_agent.cli.working import Output
from cdd_agent.engine.change_history import ChangeHistory, list_changes
from cdd_agent.engine.outside import CHANGE_NAME, OutsideChange, OutsideChanges
from cdd_agent.engine.outside_undo import OutsideUndoing
from cdd_agent.errors import BadInput, ExitCode
from cdd_agent.files.paths import find_root
from cdd_agent.printer import JsonPrinter, TextPrinter
from cdd_agent.redaction import Redactor

Word = Literal["undo", "redo", "diff"]


def is_about_outside(options: Namespace) -> bool:
    """True if the user named no ticket."""
    slug = options.slug
    return slug is None or CHANGE_NAME.fullmatch(slug) is not None


def go_through_outside(options: Namespace, word: Word) -> ExitCode:
    """Undo, redo or show the named change, or the last one. Raises `CddError`."""
    if getattr(options, "step", None) is not None:
        raise BadInput("`--step` needs a ticket", hint="Name the ticket, too.")
    printer = JsonPrinter() if options.json else TextPrinter(to_stderr=word == "diff")
    output = Output(printer)
    project = open_project_of(options)
    redactor = Redactor.of_environment(project.config.commands.hide_env)
    changes = OutsideChanges.of(project.root, redactor)
    change = None
    if options.slug is not None:
        change = _find_change(changes, options.slug)
    undoing = OutsideUndoing(changes, output.emit)
    work = {"undo": undoing.undo, "redo": undoing.redo, "diff": undoing.diff}[word]
    output.carry_out(work(change))
    return ExitCode.DONE


def list_all(options: Namespace) -> ExitCode:
    """List the last changes of the project. Raises `CddError`."""
    output = Output(JsonPrinter() if options.json else TextPrinter())
    project = open_project_of(options)
    redactor = Redactor.of_environment(project.config.commands.hide_env)
    changes = OutsideChanges.of(project.root, redactor)
    output.emit(list_changes(ChangeHistory(project.tickets, changes, redactor)))
    return ExitCode.DONE


def _find_change(changes: OutsideChanges, name: str) -> OutsideChange:
    for change in changes.all():
        if change.name == name:
            return change
    raise BadInput(f"There is no {name}", hint="`cdd undo --list` lists all changes.")


def undo_command(root: Path) -> str:
    """Return the command that undoes the last change in a project, from the current
    folder.
    """
    if find_root(Path()) == root:
        return "cdd undo"
    return f"cdd undo -C {shlex.quote(str(root))}"
