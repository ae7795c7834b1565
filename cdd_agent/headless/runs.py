"""A ticket's run: its plan to the end, and going through what it did."""

from collections.abc import Callable, Coroutine
from contextlib import closing
from functools import cache

from cdd_agent.config import of_role
from cdd_agent.engine.engine import Engine
from cdd_agent.errors import ExitCode
from cdd_agent.events import About, Notice, Tone
from cdd_agent.frontend import Nobody
from cdd_agent.headless.showing import Output, printer_for, whoever_is_there
from cdd_agent.printer import JsonPrinter, TextPrinter
from cdd_agent.session import Project
from cdd_agent.tickets.status import RunStatus
from cdd_agent.wiring import configured_model, open_commands, open_engine, prepare_model


def run_plan(project: Project, slug: str, *, as_json: bool, start_over: bool = False) -> ExitCode:
    """Run a ticket's plan to its end. Raises `CddError`, `KeyboardInterrupt` when interrupted."""
    output = Output(printer_for(as_json))
    engine = _open_engine(project, slug, output, start_over=start_over)
    prepare_model(engine)
    return _recorded(engine, _whole_run(engine, project.config.max_attempts), output)


async def _whole_run(engine: Engine, attempts: int) -> None:
    await engine.recover()
    engine.emit(engine.run.opened())
    if engine.stopped_by is not None:
        return
    if engine.run.next_step is None:
        engine.emit(Notice("All steps are done already; nothing was run.", Tone.GOOD, about=About.ALL_DONE))
    await engine.run_all(attempts=attempts)


def run_undo(project: Project, slug: str, step: int | None, *, as_json: bool) -> ExitCode:
    """Go back to before a step, or before the last one. Raises `CddError`, such as `BadInput` for no such step."""
    return _going_through(project, slug, lambda engine: engine.undo(step), Output(printer_for(as_json)))


def run_redo(project: Project, slug: str, *, as_json: bool) -> ExitCode:
    """Undo the last undo."""
    return _going_through(project, slug, lambda engine: engine.redo(), Output(printer_for(as_json)))


def run_diff(project: Project, slug: str, step: int | None, *, as_json: bool) -> ExitCode:
    """Show what a step, or the last one, changed, and nothing else on standard output. Raises `BadInput`."""
    printer = JsonPrinter() if as_json else TextPrinter(to_stderr=True)
    return _going_through(project, slug, lambda engine: engine.diff(step), Output(printer))


def _going_through(
    project: Project, slug: str, what: Callable[[Engine], Coroutine[object, object, None]], output: Output
) -> ExitCode:
    engine = _open_engine(project, slug, output)
    _recorded(engine, what(engine), output)
    return ExitCode.DONE


def _recorded(engine: Engine, work: Coroutine[object, object, None], output: Output) -> ExitCode:
    """Do it, and record it; at the end, however it comes, the ticket is let go of."""

    async def recorded() -> None:
        with engine.recording():
            await work

    with closing(engine):
        output.carry_out(recorded())
        if engine.stopped_by is not None:
            return engine.stopped_by.exit_code
        return ExitCode.DONE if engine.run.summary().status is RunStatus.COMPLETED else ExitCode.FAILED


def _open_engine(project: Project, slug: str, output: Output, *, start_over: bool = False) -> Engine:
    config = of_role(project.config, "executor")
    model = cache(lambda: configured_model(config, project.root, watched=False))
    frontend = Nobody() if isinstance(output.printer, JsonPrinter) else whoever_is_there(output.printer)
    commands = open_commands(project, frontend)
    return open_engine(
        project, project.tickets.find(slug), frontend, model, commands, start_over=start_over, emit=output.emit
    )
