"""Converts the arguments of `cdd exec` and `cdd compare` to orders for runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.cli.invocation import Invocation
from cdd_agent.errors import BadInput
from cdd_agent.fleet.job import TicketJob
from cdd_agent.fleet.order import RunOrder
from cdd_agent.tickets.slugs import is_folder_name
from cdd_agent.tickets.store import Ticket, TicketStore


class ExecOptions(Struct, frozen=True, kw_only=True):
    slugs: list[str]
    selection: Literal["planned"] | None
    jobs: int | None
    cluster: str | None
    stop_on_failure: bool
    yes: bool
    as_json: bool
    max_attempts: int | None
    require: Literal["verified", "checked", "off"] | None
    start_over: bool
    worktree: bool
    base: str | None
    variant: str
    driven: bool
    ask_before_calls: bool


class ManyOrders(Struct, frozen=True):
    """Orders for several runs, with common options."""

    each: RunOrder
    """The order for each run, without its ticket."""
    at_once: int | None = None
    stops_on_failure: bool = False
    cluster: str | None = None
    is_comparison: bool = False
    """True if failed runs are not tried again."""
    as_json: bool = False

    def order_for(self, job: TicketJob) -> RunOrder:
        order = replace(self.each, ticket=job.slug, variant=job.variant)
        if not job.variant:
            return order
        return replace(order, model=job.model, base=job.base)


def read_order(invocation: Invocation, options: ExecOptions) -> RunOrder:
    """Return the order for one ticket. Raises `BadInput`."""
    if options.ask_before_calls and not options.driven:
        raise BadInput("`--ask-before-calls` needs `--driven`")
    if options.variant and not is_folder_name(options.variant):
        raise BadInput(f"{options.variant!r} cannot be part of a branch's name")
    return RunOrder(
        project=invocation.project,
        ticket=options.slugs[0],
        own_tree=options.worktree,
        variant=options.variant,
        base=options.base,
        model=invocation.model,
        api_base=invocation.api_base,
        record=invocation.record,
        max_attempts=options.max_attempts,
        require=options.require,
        jobs=options.jobs,
        approves_all=options.yes,
        starts_over=options.start_over,
        trusts_all=invocation.trust,
        as_json=options.as_json or options.driven,
        is_driven=options.driven,
        asks_before_calls=options.ask_before_calls,
    )


def read_many_orders(invocation: Invocation, options: ExecOptions) -> ManyOrders:
    each = RunOrder(
        project=invocation.project,
        ticket="",
        base=options.base,
        model=invocation.model,
        api_base=invocation.api_base,
        record=invocation.record,
        max_attempts=options.max_attempts,
        require=options.require,
        approves_all=options.yes,
    )
    return ManyOrders(
        each=as_child(each),
        at_once=options.jobs,
        stops_on_failure=options.stop_on_failure,
        cluster=options.cluster,
        as_json=options.as_json,
    )


def find_tickets(store: TicketStore, typed: Sequence[str]) -> list[Ticket]:
    """Return the tickets, each once. Raises `BadInput`."""
    tickets = dict[str, Ticket]()
    for name in typed:
        ticket = store.find(name)
        tickets[ticket.slug] = ticket
    return list(tickets.values())


def as_child(order: RunOrder) -> RunOrder:
    """Return the order for a child process, whose questions this process answers. Its
    steps run one at a time, because other runs share the machine.
    """
    return replace(order, own_tree=True, jobs=1, as_json=True, is_driven=True)
