"""`cdd undo`, `redo` and `diff` without a ticket: changes by `cdd apply`, `cdd run` and
chat.
"""

import shlex
from argparse import Namespace
from pathlib import Path

from cdd_agent.cli.without_screen import open_project_of
from cdd_agent.cli.working import Output
from cdd_agent.engine.outside import OutsideChanges
from cdd_agent.engine.outside_undo import OutsideUndoing, Word
from cdd_agent.errors import BadInput, ExitCode
from cdd_agent.files.paths import find_root
from cdd_agent.printer import JsonPrinter, TextPrinter
from cdd_agent.redaction import Redactor


def go_through_outside(options: Namespace, word: Word) -> ExitCode:
    """Carry out a word of `OutsideUndoing`. Raises `CddError`."""
    if getattr(options, "step", None) is not None:
        raise BadInput("`--step` needs a ticket", hint="Name the ticket, too.")
    printer = JsonPrinter() if options.json else TextPrinter(to_stderr=word == "diff")
    output = Output(printer)
    project = open_project_of(options)
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
