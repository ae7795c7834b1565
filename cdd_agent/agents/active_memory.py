"""The agent that was active last, in this session or an earlier one."""

from functools import cached_property
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.agents.store import LastActive
from cdd_agent.engine.whereabouts import in_its_tree
from cdd_agent.errors import CddError
from cdd_agent.tickets.run_outcome import judge_run
from cdd_agent.tickets.state_file import load_state
from cdd_agent.tickets.status import RunStatus
from cdd_agent.tickets.store import Ticket, TicketStore

AGENT_NAMES = {
    "executor": "the Executor",
    "planner": "the Planner",
    "socrates": "Socrates",
}


class ActiveMemory(Struct, dict=True):
    root: Path
    current: LastActive | None = None
    """The last agent of this session; None if it used none."""

    @cached_property
    def _earlier(self) -> LastActive | None:
        return LastActive.of_project(self.root)

    @property
    def latest(self) -> LastActive | None:
        """The last agent of this session, otherwise of an earlier one."""
        return self.current or self._earlier

    @property
    def is_in_chat(self) -> bool:
        return self.current is not None and self.current.agent is None

    def remember(self, agent: str | None, ticket: str | None) -> None:
        last = LastActive(agent=agent, ticket=ticket)
        if last != self.current:
            self.current = last
            last.remember(self.root)

    def find_unfinished(self, tickets: TicketStore) -> LastActive | None:
        """Return the saved agent if its work is not finished. Reads files."""
        last = LastActive.of_project(self.root)
        if last is None or last.ticket is None or last.agent not in AGENT_NAMES:
            return None
        try:
            ticket = tickets.find_once_called(last.ticket)
            if ticket is None:
                return None
            last = replace(last, ticket=ticket.slug)
            if last.agent != "executor":
                return last
            status = read_run_status(in_its_tree(ticket))
        except CddError:
            return None
        is_unfinished = status is not None and status is not RunStatus.COMPLETED
        return last if is_unfinished else None


def read_run_status(ticket: Ticket) -> RunStatus | None:
    """Return the status of a run; None if it has not started. Raises `CddError`."""
    plan = ticket.read_plan()
    state = load_state(ticket, plan)
    if state is None:
        return None
    return judge_run(plan, state, ticket.read_spec().acceptance_criteria).status
