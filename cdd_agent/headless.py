"""The same work without a screen: events go to a printer, and the outcome becomes an exit code."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable
from contextlib import aclosing, closing, suppress
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

import yaml

from cdd_agent.actions.model import ActionResult, ActionStatus, ExecutionReport, ParsePlanAction
from cdd_agent.actions.plan import ActionPlan
from cdd_agent.agents.planning import Planning
from cdd_agent.commands.registry import WrongUsage, commands
from cdd_agent.errors import BadInput, ExitCode
from cdd_agent.events import ActionFinished, Event, Notice, PlanChecked, Tone
from cdd_agent.execution.action_plan import ActionPlanRun
from cdd_agent.execution.engine import Engine
from cdd_agent.execution.frontend import Frontend, Nobody
from cdd_agent.execution.recording import Recorder
from cdd_agent.guarded_yaml import LARGEST, decoded, read_file
from cdd_agent.printer import JsonPrinter, Printer, TextPrinter
from cdd_agent.session import Project
from cdd_agent.terminal import Terminal, find_keyboard
from cdd_agent.tickets.plan_check import errors
from cdd_agent.tickets.status import RunStatus
from cdd_agent.tickets.store import Ticket
from cdd_agent.wiring import (
    make_model,
    open_commands,
    open_desk,
    open_engine,
    open_planning,
    open_runner,
    open_session,
    prepare_model,
)

ReportForm = Literal["text", "json", "yaml"]


def run_plan(project: Project, slug: str, *, as_json: bool, start_over: bool = False) -> ExitCode:
    """Run a ticket's plan to its end. Raises `CddError`, `KeyboardInterrupt` when interrupted."""
    printer = _printer(as_json)
    engine = _open_engine(project, slug, printer, start_over=start_over)
    prepare_model(engine)
    return _carry_out(engine, _whole_run(engine, project.config.max_attempts), printer)


def run_planning(
    project: Project, slug: str, *, as_json: bool, approve: bool, regenerate: bool, basic: bool
) -> ExitCode:
    """Make a ticket's plan and write it; one that is there stays, unless it is to be made anew.

    FAILED where compiling the plan finds errors and they are not approved: it is kept, and not written. Raises
    `CddError`, such as `BadInput` when another process is at work on the ticket, `KeyboardInterrupt` when interrupted;
    what was learnt until then is kept, too.
    """
    printer, ticket = _printer(as_json), project.tickets.find(slug)
    desk = open_desk(project, ticket, open_commands(project, Nobody()))
    desk.complete_spec()
    if desk.present().plan is not None and not regenerate:
        printer.show(Notice(f"{desk.shown_path} is there, and stays. `--regenerate` makes another one."))
        return ExitCode.DONE
    with closing(_open_planning(project, ticket)) as planning:
        events = _planned(planning, basic=basic, anew=regenerate)
        _run(_shown(planning.desk.presented().presented(events), printer))
        wrong = errors(planning.problems())
        if wrong and not approve:
            text = f"{desk.shown_path} was not written. The plan is kept: `/plan {ticket.slug}` changes it, "
            printer.show(Notice(f"{text}`cdd plan {ticket.slug} --yes` writes it as it is.", Tone.ERROR))
            return ExitCode.FAILED
        planning.save()
    printer.show(Notice(f"Wrote {desk.shown_path}. `cdd exec {ticket.slug}` carries it out.", Tone.GOOD))
    return ExitCode.DONE


async def _planned(planning: Planning, *, basic: bool, anew: bool) -> AsyncGenerator[Event, None]:
    """A proposal: the one that an earlier planning left, or from where it was interrupted, or a new one."""
    notes = planning.notes
    for notice in planning.kept.news:
        yield notice
    if basic:
        for event in planning.basic():
            yield event
        return
    if notes.proposal and not (anew or notes.is_open or notes.questions):
        yield Notice("Taking up the plan that was proposed before, and not written.")
        for event in planning.shown():
            yield event
        return
    planning.model().warm_up()
    if notes.task == "plan" and (notes.is_open or notes.questions):
        yield Notice("Going on with the planning that was interrupted.")
        nobody = "Nobody can answer now. Decide, and write each assumption into `risks`: `Assumed: …`."
        events = planning.go_on() if notes.is_open else planning.answer(nobody)
    else:
        events = planning.plan()
    async with aclosing(events):
        async for event in events:
            yield event


def _open_planning(project: Project, ticket: Ticket) -> Planning:
    model = cache(lambda: make_model(project.config, project.root, watched=False))
    return open_planning(project, ticket, model, open_commands(project, Nobody()), may_ask=False)


def run_plan_check(project: Project, slug: str, *, as_json: bool) -> ExitCode:
    """Compile a ticket's plan and print its problems; FAILED where one is an error. Raises `BadInput`."""
    ticket = project.tickets.find(slug)
    desk = open_desk(project, ticket, open_commands(project, Nobody()))
    present = desk.present()
    problems = desk.problems(present.plan or ticket.read_plan(), ticket.read_spec(), present)
    wrong = errors(problems)
    if as_json:
        report = {"ticket_slug": ticket.slug, "ok": not wrong, "problems": [problem.to_json() for problem in problems]}
        sys.stdout.write(json.dumps(report, ensure_ascii=False) + "\n")
    else:
        TextPrinter().show(PlanChecked(ticket.slug, desk.shown_path, tuple(problems)))
    return ExitCode.FAILED if wrong else ExitCode.DONE


def run_undo(project: Project, slug: str, step: int | None, *, as_json: bool) -> ExitCode:
    """Go back to before a step, or before the last one. Raises `CddError`, such as `BadInput` for no such step."""
    return _going_through(project, slug, lambda engine: engine.undo(step), _printer(as_json))


def run_redo(project: Project, slug: str, *, as_json: bool) -> ExitCode:
    """Undo the last undo."""
    return _going_through(project, slug, lambda engine: engine.redo(), _printer(as_json))


def run_diff(project: Project, slug: str, step: int | None, *, as_json: bool) -> ExitCode:
    """Show what a step, or the last one, changed, and nothing else on standard output. Raises `BadInput`."""
    printer = JsonPrinter() if as_json else TextPrinter(to_stderr=True)
    return _going_through(project, slug, lambda engine: engine.diff(step), printer)


def _going_through(
    project: Project, slug: str, what: Callable[[Engine], AsyncGenerator[Event, None]], printer: Printer
) -> ExitCode:
    engine = _open_engine(project, slug, printer)
    _carry_out(engine, what(engine), printer)
    return ExitCode.DONE


def _carry_out(engine: Engine, events: AsyncGenerator[Event, None], printer: Printer) -> ExitCode:
    """Show and record what happens; at the end, however it comes, the ticket is let go of."""
    with closing(engine):
        recorder = Recorder(engine)
        try:
            _run(_shown(recorder.recorded(events), printer))
            if engine.stopped_by is not None:
                return engine.stopped_by.exit_code
            return ExitCode.DONE if engine.run.state.status is RunStatus.COMPLETED else ExitCode.FAILED
        finally:
            for event in recorder.news():
                printer.show(event)


def _open_engine(project: Project, slug: str, printer: Printer, *, start_over: bool = False) -> Engine:
    model = cache(lambda: make_model(project.config, project.root, watched=False))
    frontend = Nobody() if isinstance(printer, JsonPrinter) else _whoever_is_there(printer)
    commands = open_commands(project, frontend)
    return open_engine(project, project.tickets.find(slug), frontend, model, commands, start_over=start_over)


def run_command_line(project: Project, name: str, arguments: Iterable[str], *, as_json: bool) -> ExitCode:
    """Carry out a slash command."""
    session = open_session(project, Nobody())
    try:
        _run(_shown(commands()[name].run(session, *arguments), _printer(as_json)))
    except WrongUsage as error:
        raise BadInput(f"Usage: cdd {error.usage}", hint=error.hint) from error
    return ExitCode.DONE


def run_actions(project: Project, source: str, *, confirm: bool, form: ReportForm) -> ExitCode:
    """Carry out an action plan and print its report. `source` is a file, or `-` for standard input.

    Raises `NotApproved` where there is nobody to ask.
    """
    printer = TextPrinter(to_stderr=form != "text")
    try:
        plan = _read_plan(source)
    except BadInput as error:
        return _refused(project, error, printer, form)
    frontend = _whoever_is_there(printer)
    run = ActionPlanRun(open_runner(project, frontend), frontend, plan, confirm)
    try:
        _run(_shown(run.run(), printer))
    finally:
        _print_report(run.report(), form)
    return run.exit_code


def _whoever_is_there(printer: Printer) -> Frontend:
    keyboard = find_keyboard()
    return Nobody() if keyboard is None else Terminal(keyboard, follows=printer.is_seen)


def _read_plan(source: str) -> ActionPlan:
    if source == "-":
        data = sys.stdin.buffer.read(LARGEST + 1)
        return ActionPlan.from_yaml(decoded(data, "standard input"), "standard input")
    text = read_file(Path(source)) if source else None
    if text is None:
        raise BadInput(f"There is no file {source!r}", hint="Give a YAML file with a list of actions, or - for a pipe.")
    return ActionPlan.from_yaml(text, source)


def _refused(project: Project, error: BadInput, printer: Printer, form: ReportForm) -> ExitCode:
    """A plan that cannot be read gives a report too."""
    words = "\n".join(filter(None, (error.message, error.hint)))
    result = ActionResult(ParsePlanAction(), ActionStatus.FAILURE, error=words)
    printer.show(ActionFinished(1, 1, result.action.title(), result.status, result.error))
    _print_report(ExecutionReport.of(project.root, [result], datetime.now(UTC), 0.0), form)
    return error.exit_code


def _print_report(report: ExecutionReport, form: ReportForm) -> None:
    """The text form is what the printer has shown already."""
    if form == "json":
        sys.stdout.write(json.dumps(report.to_json(), ensure_ascii=False) + "\n")
    elif form == "yaml":
        yaml.safe_dump(report.to_json(), sys.stdout, sort_keys=False, allow_unicode=True)


async def _whole_run(engine: Engine, attempts: int) -> AsyncGenerator[Event, None]:
    async with aclosing(engine.recover()) as events:
        async for event in events:
            yield event
    yield engine.run.opened()
    if engine.stopped_by is not None:
        return
    if engine.run.next_step is None:
        yield Notice("All steps are done already; nothing was run.", Tone.GOOD)
    async with aclosing(engine.run_all(attempts=attempts)) as events:
        async for event in events:
            yield event


async def _shown(events: AsyncGenerator[Event, None], printer: Printer) -> None:
    try:
        async with aclosing(events):
            async for event in events:
                printer.show(event)
    finally:
        printer.close()


def _printer(as_json: bool) -> Printer:
    return JsonPrinter() if as_json else TextPrinter()


def _run(work: Coroutine[Any, Any, None]) -> None:
    """Run to the end; a request to terminate, or a closed terminal, is an interrupt like Ctrl+C."""
    try:
        asyncio.run(_interruptible(work))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


async def _interruptible(work: Coroutine[Any, Any, None]) -> None:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    for name in ("SIGTERM", "SIGHUP"):
        with suppress(AttributeError, NotImplementedError):  # Windows has no SIGHUP, and no such handlers
            loop.add_signal_handler(getattr(signal, name), partial(task.cancel, name))
    await work
