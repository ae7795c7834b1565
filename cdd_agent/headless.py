"""The same work without a screen: events go to a printer, and the outcome becomes an exit code."""

import asyncio
import signal
from collections.abc import AsyncGenerator, Coroutine, Iterable
from contextlib import aclosing, suppress
from functools import cache, partial
from typing import Any

from cdd_agent.commands.registry import commands
from cdd_agent.errors import ExitCode
from cdd_agent.events import Event, Notice, Tone
from cdd_agent.execution.engine import Engine
from cdd_agent.execution.frontend import Nobody
from cdd_agent.printer import JsonPrinter, Printer, TextPrinter
from cdd_agent.session import Project
from cdd_agent.tickets.status import RunStatus
from cdd_agent.wiring import make_model, open_engine, open_session


def run_plan(project: Project, slug: str, *, as_json: bool) -> ExitCode:
    """Run a ticket's plan to its end. Raises `CddError`, `KeyboardInterrupt` when interrupted."""
    model = cache(lambda: make_model(project.config, project.root, watched=False))
    engine = open_engine(project, project.tickets.find(slug), Nobody(), model)
    printer = _printer(as_json)
    try:
        _run(_shown(_whole_run(engine, project.config.max_attempts), printer))
        if engine.stopped_by is not None:
            return engine.stopped_by.exit_code
        return ExitCode.DONE if engine.state.status is RunStatus.COMPLETED else ExitCode.FAILED
    finally:
        for event in engine.news():
            printer.show(event)
        engine.close()


def run_command_line(project: Project, name: str, arguments: Iterable[str], *, as_json: bool) -> ExitCode:
    """Carry out a slash command."""
    session = open_session(project, Nobody())
    _run(_shown(commands()[name].run(session, *arguments), _printer(as_json)))
    return ExitCode.DONE


async def _whole_run(engine: Engine, attempts: int) -> AsyncGenerator[Event, None]:
    for event in engine.recover():
        yield event
    yield engine.opened()
    if engine.next_step is None:
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
