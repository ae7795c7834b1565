"""`cdd exec`, and `cdd undo`, `redo` and `diff` of a ticket."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, closing, nullcontext
from typing import Any

from msgspec import convert
from msgspec.structs import replace

from cdd_agent.cli.driven import (
    DrivenPrinter,
    Driver,
    DriverAnswers,
    calls_of_driven_run,
    holding_run,
)
from cdd_agent.cli.invocation import Invocation
from cdd_agent.cli.land import in_own_tree
from cdd_agent.cli.many import execute_many
from cdd_agent.cli.orders import ExecOptions, read_order
from cdd_agent.cli.outside import go_through_outside, list_all
from cdd_agent.cli.trusting import open_for_work
from cdd_agent.cli.without_screen import open_for_reading, printer_for
from cdd_agent.cli.working import Output, frontend_for, preparing_model
from cdd_agent.cluster.equipment import equip_from_worker
from cdd_agent.engine.engine import Engine
from cdd_agent.engine.whereabouts import how_to_hand_back, in_its_tree
from cdd_agent.errors import BadInput, ExitCode
from cdd_agent.events.notices import Notice, NoticeKind
from cdd_agent.faces.printer import JsonPrinter, TextPrinter
from cdd_agent.fleet.local_runs import folder_of, prepare_folder
from cdd_agent.fleet.order import RunOrder
from cdd_agent.frontend import Frontend
from cdd_agent.llm.budget import Limit
from cdd_agent.llm.purse import SharedCalls
from cdd_agent.session.open_project import Project, accept_once, in_tree, open_project
from cdd_agent.settings.writing import only_model
from cdd_agent.text.redaction import Redactor
from cdd_agent.tickets.plan import NoSuchStep
from cdd_agent.tickets.slugs import EnoughOfSlug, is_change_name
from cdd_agent.tickets.status import RunStatus
from cdd_agent.wiring.root import Wiring
from cdd_agent.wiring.runs import keeping_lease, prepare_model


def execute(invocation: Invocation, **typed: Any) -> int:
    options = convert(typed, ExecOptions)
    if options.selection or options.cluster or len(options.slugs) > 1:
        return execute_many(invocation, options)
    if not options.slugs:
        raise BadInput(
            "Which ticket?", hint="Name one or several tickets, or add `--all planned`."
        )
    order = read_order(invocation, options)
    if not order.own_tree and (order.variant or order.base):
        raise BadInput("`--variant` and `--base` need `--worktree`")
    if order.is_driven:
        return _execute_driven(order, Output(DrivenPrinter()))
    output = Output(printer_for(order.as_json))
    project = open_for_work(invocation, order.settings, as_json=order.as_json)
    return run_plan(project, order, output, frontend_for(output.printer))


def _execute_driven(order: RunOrder, output: Output) -> ExitCode:
    driver = Driver(output)
    driver.start()
    decide = accept_once if order.trusts_all else driver.decide_about_trust
    project = open_project(order.project, order.settings, decide=decide)
    ticket = project.tickets.find(order.ticket)
    name = replace(order, ticket=ticket.slug).job.name
    folder = folder_of(project.root)
    prepare_folder(folder)
    budget = Limit(project.config.budget.tokens, project.config.budget.usd)
    shared = calls_of_driven_run(
        driver, budget, folder, always_asks=order.asks_before_calls
    )
    redactor = Redactor.of_environment(project.config.commands.hide_env)
    frontend = DriverAnswers(driver, redactor)
    if not order.own_tree:
        output.carry_out(equip_from_worker(project.root, output.emit))
    with holding_run(folder, name):
        return run_plan(project, order, output, frontend, shared)


def undo(
    invocation: Invocation,
    *,
    slug: str | None,
    step: str | None,
    lists: bool,
    as_json: bool,
) -> int:
    if lists and slug is not None:
        raise BadInput(
            "`--list` lists the changes of all tickets",
            hint=f"List the steps of the ticket with `cdd status {slug}`.",
        )
    if lists:
        return list_all(invocation, as_json=as_json)
    if slug is None or is_change_name(slug):
        _refuse_step_without_ticket(step)
        return go_through_outside(invocation, "undo", name=slug, as_json=as_json)
    return _work_on_run(
        invocation,
        slug,
        lambda engine: engine.undo(_find_step(engine, step)),
        as_json=as_json,
    )


def redo(invocation: Invocation, *, slug: str | None, as_json: bool) -> int:
    if slug is None or is_change_name(slug):
        return go_through_outside(invocation, "redo", name=slug, as_json=as_json)
    return _work_on_run(invocation, slug, lambda engine: engine.redo(), as_json=as_json)


def diff(
    invocation: Invocation, *, slug: str | None, step: str | None, as_json: bool
) -> int:
    if slug is None or is_change_name(slug):
        _refuse_step_without_ticket(step)
        return go_through_outside(invocation, "diff", name=slug, as_json=as_json)
    return _work_on_run(
        invocation,
        slug,
        lambda engine: engine.diff(_find_step(engine, step)),
        as_json=as_json,
        is_look=True,
    )


def _refuse_step_without_ticket(step: str | None) -> None:
    if step is not None:
        raise BadInput("`--step` needs a ticket", hint="Name the ticket, too.")


def _find_step(engine: Engine, typed: str | None) -> int | None:
    """Return the number of the typed step; None for the last."""
    if typed is None:
        return None
    number = engine.run.find_number(typed)
    if number is None:
        raise NoSuchStep(typed, engine.run.plan)
    return number


def run_plan(
    project: Project,
    order: RunOrder,
    output: Output,
    frontend: Frontend,
    shared: SharedCalls | None = None,
) -> ExitCode:
    """Run a ticket's plan to its end. Raises `CddError`, and `KeyboardInterrupt` after
    an interrupt.
    """
    slug = order.ticket
    if order.own_tree:
        project, slug = in_own_tree(project, order, output)
    if order.variant and order.model:
        config = only_model(project.config, order.model, order.api_base)
        project = replace(project, config=config)
    wiring = Wiring(project, frontend, output.emit, watched=False, shared=shared)
    ticket = project.tickets.find(slug)
    engine = wiring.engine(ticket, start_over=order.starts_over)
    with preparing_model():
        prepare_model(engine)
    lands = order.own_tree and not order.is_driven

    async def whole_run() -> None:
        async with keeping_lease(engine.run.record, output.emit):
            await engine.carry_out(attempts=project.config.max_attempts)
        if text := how_to_hand_back(engine.run.record.folder):
            output.emit(Notice(text, kind=NoticeKind.LEASE))
        if lands and engine.run.summary().status is RunStatus.COMPLETED:
            output.emit(
                Notice(
                    f"Merge it into your branch with `cdd land {slug}`.",
                    kind=NoticeKind.OWN_TREE,
                )
            )

    return _carry_out_recorded(engine, whole_run(), output)


def _work_on_run(
    invocation: Invocation,
    slug: str,
    work: Callable[[Engine], Coroutine[object, object, None]],
    *,
    as_json: bool,
    is_look: bool = False,
) -> ExitCode:
    """Open a ticket's run and work on it. `is_look`: read-only; standard output
    contains only the requested data.
    """
    output = Output(JsonPrinter() if as_json else TextPrinter(to_stderr=is_look))
    project = open_for_reading(invocation)
    enough = EnoughOfSlug.WORDS if is_look else EnoughOfSlug.WHOLE
    ticket = in_its_tree(project.tickets.find(slug, enough))
    if ticket.root != project.root:
        project = in_tree(project, ticket.root)
    frontend = frontend_for(output.printer)
    wiring = Wiring(project, frontend, output.emit, watched=False)
    engine = wiring.engine(ticket, runs_steps=False, is_look=is_look)

    async def work_with_lease() -> None:
        lease: AbstractAsyncContextManager[object] = nullcontext()
        if not is_look:
            lease = keeping_lease(engine.run.record, output.emit)
        async with lease:
            await work(engine)

    _carry_out_recorded(engine, work_with_lease(), output)
    return ExitCode.DONE


def _carry_out_recorded(
    engine: Engine, work: Coroutine[object, object, None], output: Output
) -> ExitCode:
    """Do recorded work, then release the ticket."""

    async def recorded() -> None:
        with engine.recording():
            await work

    with closing(engine):
        output.carry_out(recorded())
        return engine.exit_code
