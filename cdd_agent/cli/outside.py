"""`cdd undo`, `redo` and `diff` of changes by `cdd apply`, `cdd run` and chat."""

import shlex
from pathlib import Path
from typing import Literal

from cdd_agent.cli.invocation import Invocation
from cdd_agent.cli.without_screen import open_for_reading
from cdd_agent.cli.working import Output
from cdd_agent.engine.change_history import ChangeHistory, list_changes
from cdd_agent.engine.outside import OutsideChange, OutsideChanges
from cdd_agent.engine.outside_undo import OutsideUndoing
from cdd_agent.errors import BadInput, ExitCode
from cdd_agent.faces.printer import JsonPrinter, TextPrinter
from cdd_agent.files.paths import find_root
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.text.redaction import Redactor

Word = Literal["undo", "redo", "diff"]


def go_through_outside(
    invocation: Invocation, word: Word, *, name: str | None, as_json: bool
) -> ExitCode:
    """Undo, redo or show the named change, or the last one. Raises `CddError`."""
    printer = JsonPrinter() if as_json else TextPrinter(to_stderr=word == "diff")
    output = Output(printer)
    project = open_for_reading(invocation)
    redactor = Redactor.of_environment(project.config.commands.hide_env)
    changes = OutsideChanges.open(project.root, redactor)
    change = None
    if name is not None:
        change = _find_change(changes, name)
    undoing = OutsideUndoing(changes, output.emit)
    work = {"undo": undoing.undo, "redo": undoing.redo, "diff": undoing.diff}[word]
    output.carry_out(work(change))
    return ExitCode.DONE


def list_all(invocation: Invocation, *, as_json: bool) -> ExitCode:
    """List the project's last changes. Raises `CddError`."""
    output = Output(JsonPrinter() if as_json else TextPrinter())
    project = open_for_reading(invocation)
    redactor = Redactor.of_environment(project.config.commands.hide_env)
    changes = OutsideChanges.open(project.root, redactor)
    output.emit(list_changes(ChangeHistory(project.tickets, changes, redactor)))
    return ExitCode.DONE


def _find_change(changes: OutsideChanges, name: str) -> OutsideChange:
    for change in changes.all():
        if change.name == name:
            return change
    raise BadInput(
        f"There is no {name}",
        hint="`cdd undo --list` lists all changes.",
        refusal=Refusal.CANNOT_UNDO,
    )


def undo_command(root: Path) -> str:
    """Return the command that undoes a project's last change, for the current
    folder.
    """
    if find_root(Path()) == root:
        return "cdd undo"
    return f"cdd undo -C {shlex.quote(str(root))}"
