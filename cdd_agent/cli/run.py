"""`cdd run`: carry out a plan of actions, and print a report without secrets."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

import yaml
from msgspec.structs import replace

from cdd_agent.actions.model import (
    ActionResult,
    ActionStatus,
    ExecutionReport,
    ParsePlanAction,
)
from cdd_agent.actions.plan import ActionPlan
from cdd_agent.cli.invocation import Invocation
from cdd_agent.cli.outside import undo_command
from cdd_agent.cli.trusting import open_for_work
from cdd_agent.cli.without_screen import print_json
from cdd_agent.cli.working import Output, frontend_at_terminal
from cdd_agent.dialogue.redacted_events import RedactedEvents
from cdd_agent.engine.action_plan import ActionPlanRun
from cdd_agent.engine.outside_work import RecordedCommands
from cdd_agent.errors import BadInput, ExitCode
from cdd_agent.events.action_events import ActionFinished
from cdd_agent.faces.printer import TextPrinter
from cdd_agent.faces.terminal import AnswersFromPipe, find_pipe
from cdd_agent.text.redaction import Redactor
from cdd_agent.values.guarded_yaml import MAX_BYTES, decode, read_file
from cdd_agent.wiring.projects import open_commands, open_outside_work, open_runner


def run(
    invocation: Invocation,
    *,
    plan: str,
    root: Path | None,
    yes: bool,
    as_json: bool,
    as_yaml: bool,
) -> ExitCode:
    """Carry out the plan. Questions go to standard error. Answers come from standard
    input, if it is a pipe or a terminal and does not contain the plan.
    """
    if root is not None:
        invocation = invocation._replace(project=root)
    project = open_for_work(invocation, {}, exactly=root is not None, as_json=as_json)
    printer = TextPrinter(to_stderr=as_json or as_yaml)
    redactor = Redactor.of_environment(project.config.commands.hide_env)

    def print_report(report: ExecutionReport) -> None:
        """Print the report as JSON or YAML. The printer has printed the text form."""
        shown = redactor.redacted(report.to_json())
        if as_json:
            print_json(shown)
        elif as_yaml:
            yaml.safe_dump(shown, sys.stdout, sort_keys=False, allow_unicode=True)

    try:
        action_plan = _read_plan(plan)
    except BadInput as error:
        words = "\n".join(filter(None, (error.message, error.remedy)))
        result = ActionResult(ParsePlanAction(), ActionStatus.FAILURE, error=words)
        printer.show(
            redactor.redacted(
                ActionFinished(1, 1, result.action.title(), result.status, result.error)
            )
        )
        print_report(
            ExecutionReport.from_logs(project.root, [result], datetime.now(UTC), 0.0)
        )
        return error.exit_code
    frontend = frontend_at_terminal(printer)
    if plan != "-" and (pipe := find_pipe()) is not None:
        frontend = AnswersFromPipe(pipe, frontend)
    output = Output(printer)
    emit = RedactedEvents(redactor, output.emit).emit
    actions = ActionPlanRun(action_plan, project.root, frontend, not yes, emit)
    commands = open_commands(project, frontend, actions.show_output)
    work = open_outside_work(project, emit)
    work.what = f"cdd run {plan}"
    runner = replace(
        open_runner(project, frontend, RecordedCommands(commands, work)),
        writing=work.writing,
    )

    async def run_recorded() -> None:
        try:
            await actions.run(runner)
        finally:
            done = await work.finish()
            if done is not None and not (as_json or as_yaml):
                for notice in done.notices(undo_command(project.root)):
                    emit(notice)

    try:
        output.carry_out(run_recorded())
    finally:
        print_report(actions.report())
    return actions.exit_code


def _read_plan(source: str) -> ActionPlan:
    if source == "-":
        data = sys.stdin.buffer.read(MAX_BYTES + 1)
        return ActionPlan.from_yaml(decode(data, "standard input"), "standard input")
    text = read_file(Path(source)) if source else None
    if text is None:
        raise BadInput(
            f"There is no file {source!r}",
            hint="Name a YAML file with a list of actions, or - for standard input.",
        )
    return ActionPlan.from_yaml(text, source)
