"""`cdd run`: a plan of actions, and its report. What it prints is without secrets."""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import yaml

from cdd_agent.actions.model import ActionResult, ActionStatus, ExecutionReport, ParsePlanAction
from cdd_agent.actions.plan import ActionPlan
from cdd_agent.dialogue.redacted_events import RedactedEvents
from cdd_agent.engine.action_plan import ActionPlanRun
from cdd_agent.errors import BadInput, ExitCode
from cdd_agent.events import ActionFinished
from cdd_agent.guarded_yaml import LARGEST, decoded, read_file
from cdd_agent.headless.showing import Output, whoever_is_there
from cdd_agent.printer import Printer, TextPrinter
from cdd_agent.redaction import Redactor
from cdd_agent.session import Project
from cdd_agent.terminal import AnswersFromPipe, find_pipe
from cdd_agent.wiring import open_runner

ReportForm = Literal["text", "json", "yaml"]


def run_actions(project: Project, source: str, *, confirm: bool, form: ReportForm) -> ExitCode:
    """Carry out an action plan and print its report. `source` is a file, or `-` for standard input.

    Questions of the plan are answered from standard input, where that is a pipe or a file and not the plan itself.
    Raises `NotApproved` where there is nobody to ask.
    """
    printer = TextPrinter(to_stderr=form != "text")
    output = Output(printer)
    redactor = Redactor.of_environment(project.config.commands.hide_env)
    try:
        plan = _read_plan(source)
    except BadInput as error:
        return _refused(project, error, printer, form, redactor)
    frontend = whoever_is_there(printer)
    if source != "-" and (pipe := find_pipe()) is not None:
        frontend = AnswersFromPipe(pipe, frontend)
    emit = RedactedEvents(redactor, output.emit).emit
    run = ActionPlanRun(open_runner(project, frontend), frontend, plan, confirm, emit)
    try:
        output.carry_out(run.run())
    finally:
        _print_report(run.report(), form, redactor)
    return run.exit_code


def _read_plan(source: str) -> ActionPlan:
    if source == "-":
        data = sys.stdin.buffer.read(LARGEST + 1)
        return ActionPlan.from_yaml(decoded(data, "standard input"), "standard input")
    text = read_file(Path(source)) if source else None
    if text is None:
        raise BadInput(f"There is no file {source!r}", hint="Give a YAML file with a list of actions, or - for a pipe.")
    return ActionPlan.from_yaml(text, source)


def _refused(project: Project, error: BadInput, printer: Printer, form: ReportForm, redactor: Redactor) -> ExitCode:
    """A plan that cannot be read gives a report too."""
    words = "\n".join(filter(None, (error.message, error.hint)))
    result = ActionResult(ParsePlanAction(), ActionStatus.FAILURE, error=words)
    printer.show(redactor.redacted(ActionFinished(1, 1, result.action.title(), result.status, result.error)))
    _print_report(ExecutionReport.of(project.root, [result], datetime.now(UTC), 0.0), form, redactor)
    return error.exit_code


def _print_report(report: ExecutionReport, form: ReportForm, redactor: Redactor) -> None:
    """The text form is what the printer has shown already."""
    told = redactor.redacted_json(report.to_json())
    if form == "json":
        sys.stdout.write(json.dumps(told, ensure_ascii=False) + "\n")
    elif form == "yaml":
        yaml.safe_dump(told, sys.stdout, sort_keys=False, allow_unicode=True)
