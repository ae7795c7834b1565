"""A ticket's run: `cdd exec` carries its plan out to the end; `cdd undo`, `redo` and
`diff` go through what it did.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Coroutine
from contextlib import closing, nullcontext

from msgspec.structs import replace

from cdd_agent.cli.land import in_own_tree
from cdd_agent.cli.many import execute_many
from cdd_agent.cli.trusting import open_for_work
from cdd_agent.cli.without_screen import open_project_of, printer_for, reference
from cdd_agent.cli.working import Output, preparing_model, whoever_is_there
from cdd_agent.config import only_model
from cdd_agent.engine.engine import Engine
from cdd_agent.engine.whereabouts import how_to_hand_back, in_its_tree
from cdd_agent.errors import BadInput, ExitCode
from cdd_agent.events import About, Notice
from cdd_agent.fleet.place import TicketJob
from cdd_agent.frontend import Nobody
from cdd_agent.llm.shared import Shared
from cdd_agent.open_project import Project, in_tree
from cdd_agent.printer import JsonPrinter, TextPrinter
from cdd_agent.process.child import stop_with_stdin
from cdd_agent.tickets.plan import NoSuchStep
from cdd_agent.tickets.status import RunStatus
from cdd_agent.wiring import Wiring, keeping_lease, prepare_model


def execute(options: Namespace) -> int:
    flags = {
        name: getattr(options, name)
        for name in ("model", "api_base", "max_attempts", "jobs", "require", "record")
    }
    flags |= {"approval": "auto"} if options.yes else {}
    if options.variant:  # it is the settings' address that is no other provider's
        flags |= {"model": None, "api_base": None}
    if options.on:
        flags["jobs"] = None  # of tickets
    if options.all or options.on or len(options.slugs) > 1:
        return execute_many(options, flags)
    if not options.slugs:
        raise BadInput("Which ticket?", hint="Name one, several, or `--all planned`.")
    shared = _one_of_several(options) if options.beside else None
    project, slug = open_for_work(options, flags), reference(options.slugs[0])
    if options.worktree:
        own = {"variant": options.variant, "base": options.base}
        project, slug = in_own_tree(project, slug, as_json=options.json, **own)
    if options.variant:
        project = replace(
            project, config=only_model(project.config, options.model, options.api_base)
        )
    lands = options.worktree and shared is None
    return run_plan(
        project,
        slug,
        as_json=options.json,
        start_over=options.start_over,
        shared=shared,
        lands=lands,
    )


def undo(options: Namespace) -> int:
    return _going_through(
        options, lambda engine: engine.undo(_typed_step(engine, options))
    )


def redo(options: Namespace) -> int:
    return _going_through(options, lambda engine: engine.redo())


def diff(options: Namespace) -> int:
    return _going_through(
        options,
        lambda engine: engine.diff(_typed_step(engine, options)),
        is_look=True,
    )


def _typed_step(engine: Engine, options: Namespace) -> int | None:
    """Return the number of the step that was typed, None for the last one."""
    if options.step is None:
        return None
    number = engine.run.find_number(options.step)
    if number is None:
        raise NoSuchStep(options.step, engine.run.plan)
    return number


def _one_of_several(options: Namespace) -> Shared:
    """What this run shares with others, beside which somebody has begun it: it ends
    with them.
    """
    stop_with_stdin()
    shared = Shared(options.beside, TicketJob(options.slugs[0], options.variant).name)
    shared.hold()
    return shared


def run_plan(
    project: Project,
    slug: str,
    *,
    as_json: bool,
    start_over: bool = False,
    shared: Shared | None = None,
    lands: bool = False,
) -> ExitCode:
    """Run a ticket's plan to its end. `lands`: it is in a tree of its own, and a person
    is told how it gets from there. Raises `CddError`, `KeyboardInterrupt` when
    interrupted.
    """
    output = Output(printer_for(as_json))
    engine = _open_engine(project, slug, output, start_over=start_over, shared=shared)
    with preparing_model():
        prepare_model(engine)

    async def whole_run() -> None:
        async with keeping_lease(engine.run.record, output.emit):
            await engine.carry_out(attempts=project.config.max_attempts)
        if text := how_to_hand_back(engine.run.record.folder):
            output.emit(Notice(text, about=About.STILL_HELD))
        if lands and engine.run.summary().status is RunStatus.COMPLETED:
            output.emit(
                Notice(
                    f"`cdd land {slug}` brings it over from its own tree.",
                    about=About.OWN_TREE,
                )
            )

    return _recorded(engine, whole_run(), output)


def _going_through(
    options: Namespace,
    what: Callable[[Engine], Coroutine[object, object, None]],
    *,
    is_look: bool = False,
) -> ExitCode:
    """`is_look`: nothing is changed, and standard output has nothing but what is looked
    at.
    """
    output = Output(JsonPrinter() if options.json else TextPrinter(to_stderr=is_look))
    project = open_project_of(options)
    ticket = in_its_tree(project.tickets.find(reference(options.slug)))
    if ticket.root != project.root:
        project = in_tree(project, ticket.root)
    engine = _open_engine(
        project, ticket.slug, output, runs_steps=False, is_look=is_look
    )

    async def work() -> None:
        async with (
            nullcontext() if is_look else keeping_lease(engine.run.record, output.emit)
        ):
            await what(engine)

    _recorded(engine, work(), output)
    return ExitCode.DONE


def _recorded(
    engine: Engine, work: Coroutine[object, object, None], output: Output
) -> ExitCode:
    """Do it, and record it; at the end, however it comes, the ticket is let go of."""

    async def recorded() -> None:
        with engine.recording():
            await work

    with closing(engine):
        output.carry_out(recorded())
        return engine.exit_code


def _open_engine(
    project: Project,
    slug: str,
    output: Output,
    *,
    start_over: bool = False,
    shared: Shared | None = None,
    runs_steps: bool = True,
    is_look: bool = False,
) -> Engine:
    frontend = (
        Nobody()
        if isinstance(output.printer, JsonPrinter)
        else whoever_is_there(output.printer)
    )
    wiring = Wiring(project, frontend, output.emit, watched=False, shared=shared)
    ticket = project.tickets.find(slug)
    return wiring.engine(
        ticket, start_over=start_over, runs_steps=runs_steps, is_look=is_look
    )
