"""`cdd undo`, `redo` and `diff` without a ticket: changes by `cdd apply`, `cdd run` and
chat.
"""

import shlex
from pathlib import Path

from cdd_agent.cli.invocation import Invocation
from cdd_agent.cli.without_screen import open_for_reading
from cdd_agent.cli.working import Output
from cdd_agent.engine.outside import OutsideChanges
from cdd_agent.engine.outside_undo import OutsideUndoing, Word
from cdd_agent.errors import ExitCode
from cdd_agent.files.paths import find_root
from cdd_agent.printer import JsonPrinter, TextPrinter
from cdd_agent.redaction import Redactor


def go_through_outside(
    invocation: Invocation, word: Word, *, as_json: bool
) -> ExitCode:
    """Carry out a word of `OutsideUndoing`. Raises `CddError`."""
    printer = JsonPrinter() if as_json else TextPrinter(to_stderr=word == "diff")
    output = Output(printer)
    project = open_for_reading(invocation)
    redactor = Redactor.of_environment(project.config.commands.hide_env)
    changes = OutsideChanges.of(project.root, redactor)
    output.carry_out(OutsideUndoing(changes, output.emit).carry_out(word))
    return ExitCode.DONE


def undo_command(root: Path) -> str:
    """Return the command that undoes the last change in a project, from the current
    folder.
    """
    if find_root(Path()) == root:
        return "cdd undo"
    return f"cdd undo -C {shlex.quote(str(root))}"
