"""Makes the adapters that move, land and verify a ticket's run."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cdd_agent.engine.ledger import no_part
from cdd_agent.engine.record import RunRecord
from cdd_agent.engine.renamed_ticket import follow_rename
from cdd_agent.engine.strength_summary import StrengthSettings
from cdd_agent.engine.whereabouts import (
    CAME_BACK,
    expect_arrived,
    in_its_tree,
    load_whereabouts,
)
from cdd_agent.errors import BadInput, CddError
from cdd_agent.events.stream import Emit
from cdd_agent.events.verify_events import VerifyFinished
from cdd_agent.frontend import Frontend
from cdd_agent.git.checkpoint import Checkpoints
from cdd_agent.process.policy import CommandRunner
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.session.open_project import Project
from cdd_agent.settings.config import Config
from cdd_agent.settings.models import of_role
from cdd_agent.tickets.spec import SpecEmpty
from cdd_agent.tickets.state import new_state
from cdd_agent.tickets.state_file import load_state
from cdd_agent.tickets.store import Ticket
from cdd_agent.travel.came_back import put_what_came_back
from cdd_agent.travel.landing import Landing
from cdd_agent.travel.own_tree import OwnTree
from cdd_agent.travel.renewal import lease_kept
from cdd_agent.travel.transfer import Travel
from cdd_agent.wiring.projects import list_own_paths, make_permit, make_redactor

if TYPE_CHECKING:
    from cdd_agent.engine.engine import Engine
    from cdd_agent.engine.verify import Subject


def open_travel(project: Project, ticket: Ticket, emit: Emit) -> Travel:
    """Raises `BadInput` for a renamed ticket whose run was on another machine."""
    config = of_role(project.config, "executor")
    redactor = make_redactor(config)
    for notice in follow_rename(ticket, redactor, Checkpoints.open):
        emit(notice)
    if former := ticket.former_slug:
        raise BadInput(
            f"{ticket.slug} was renamed from {former}, and other copies know its run"
            " by that name",
            hint=f"Rename its folder back to {former} to push or pull it.",
            refusal=Refusal.RUN_ELSEWHERE,
        )
    return Travel.open(
        project.root, ticket, redactor, emit, list_own_paths(project, config)
    )


async def open_own_tree(project: Project, ticket: Ticket, name: str = "") -> OwnTree:
    """Open the separate tree of a run, which may not exist yet. `name` selects another
    run of the ticket. Work from another machine is put into the tree. Raises
    `BadInput`.
    """
    config = of_role(project.config, "executor")
    redactor = make_redactor(config)
    if name and name != ticket.slug:
        record = RunRecord.of(project.root, name, redactor)
    else:
        record = RunRecord.of_ticket(ticket, redactor)
    own_tree = await OwnTree.open(record, ticket)
    if (record.folder / CAME_BACK).exists():
        await put_what_came_back(
            own_tree,
            no_part(
                own_tree.root,
                (*list_own_paths(project, config), ticket.shown(ticket.folder)),
            ),
        )
    return own_tree


def keeping_lease(record: RunRecord, emit: Emit) -> AbstractAsyncContextManager[None]:
    if load_whereabouts(record.folder) is None:  # the run never travelled
        return nullcontext()
    return lease_kept(record, emit)


def open_landing(
    project: Project, own_tree: OwnTree, frontend: Frontend, emit: Emit
) -> Landing:
    config = of_role(project.config, "executor")
    record = RunRecord.of(own_tree.root, own_tree.ticket.slug, own_tree.record.redactor)
    folder = own_tree.ticket.shown(own_tree.ticket.folder)
    own_paths = (*list_own_paths(project, config), folder)

    def open_commands_in(root: Path, env: Mapping[str, str]) -> CommandRunner:
        return CommandRunner(
            root,
            config.commands,
            make_permit(frontend),
            env=env,
            noted_in=record.folder,
            trusted_checks=project.trust.checks,
        )

    return Landing(
        own=own_tree,
        record=record,
        commands=open_commands_in,
        test_command=config.test_command,
        limit=config.test_timeout,
        leave_out=no_part(own_tree.root, own_paths),
        emit=emit,
    )


async def verify_ticket(
    project: Project,
    ticket: Ticket,
    commands: CommandRunner,
    emit: Emit,
) -> VerifyFinished:
    """Run the checks of a ticket's completed steps again. Raises `CddError`."""
    # late: the engine; a shell that runs no plan stays small
    from cdd_agent.engine.verify import Verifier  # noqa: PLC0415

    config = of_role(project.config, "executor")
    subject = _completed_work(ticket, config)
    commands = replace(commands, root=subject.record.root)
    verifier = Verifier(
        commands=commands,
        test_command=config.test_command,
        limit=config.test_timeout,
        emit=emit,
    )
    return await verifier.verify(subject)


async def measure_ticket(
    project: Project,
    ticket: Ticket,
    commands: CommandRunner,
    emit: Emit,
) -> None:
    """Count the small faults that the checks of a ticket's completed steps notice.
    Raises `CddError`.
    """
    # late: the engine; a shell that runs no plan stays small
    from cdd_agent.engine.strength import StrengthMeter  # noqa: PLC0415

    config = of_role(project.config, "executor")
    subject = _completed_work(ticket, config)
    meter = StrengthMeter(
        commands=replace(commands, root=subject.record.root),
        settings=StrengthSettings.from_config(config),
        limit=config.test_timeout,
        emit=emit,
        most_faults=config.strength_faults,
        most_seconds=config.strength_seconds,
    )
    await meter.measure(subject)


def _completed_work(ticket: Ticket, config: Config) -> Subject:
    """Raises `BadInput`."""
    # late: the engine; a shell that runs no plan stays small
    from cdd_agent.engine import verify  # noqa: PLC0415

    criteria = _criteria(ticket)
    if ticket.record.exists():
        ticket = in_its_tree(ticket)
    record = RunRecord.of_ticket(ticket, make_redactor(config))
    expect_arrived(record.folder)
    plan = ticket.read_plan()
    plan.check(ticket.shown(ticket.plan_path))
    state = load_state(ticket, plan) or new_state(ticket.slug, plan)
    return verify.Subject(plan, state, record, criteria)


def _criteria(ticket: Ticket) -> tuple[str, ...]:
    try:
        return ticket.read_spec().acceptance_criteria
    except SpecEmpty:
        return ()


def prepare_model(engine: Engine) -> None:
    """Make the model if a step remains. If that fails, close the engine and raise
    `BadInput`.
    """
    try:
        if engine.run.next_step is not None:
            engine.runner.model().warm_up()
    except CddError:
        engine.close()
        raise
