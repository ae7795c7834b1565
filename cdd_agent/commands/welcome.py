"""Finds the rows of the first screen: the user's likely next actions in the project."""

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.agents.store import LastActive
from cdd_agent.commands.initialise import NoPlace, refuse_no_place
from cdd_agent.commands.model_setup import NO_MODEL
from cdd_agent.commands.overview import overviews
from cdd_agent.commands.sessions import find_unfinished_run
from cdd_agent.commands.welcome_rows import Beginning, RowAction, WelcomeRow
from cdd_agent.engine.lock import is_other_at_work
from cdd_agent.engine.whereabouts import in_its_tree
from cdd_agent.errors import CddError
from cdd_agent.session.open_project import Project
from cdd_agent.settings.user_folders import home_folder
from cdd_agent.tickets.state import ExecutionState
from cdd_agent.tickets.state_file import read_state
from cdd_agent.tickets.status import StepStatus
from cdd_agent.tickets.store import Ticket

_WHY_MODEL = "specs, plans and steps need one"
_LONGEST_PATH = 20
_BUSY = "another process works on it"
_AT_WORK = {"socrates": "writing the spec", "planner": "planning"}


class Unfinished(Struct, frozen=True):
    """A ticket that can be continued."""

    slug: str
    progress: str
    line: str
    is_interrupted: bool
    """True if an agent was working on it."""


def find_beginning(
    project: Project, left_open: LastActive | None, model_problem: str
) -> Beginning:
    """Return the rows for the project's tickets. `left_open` is the last active agent.
    Reads the files of each ticket: call it in a thread.
    """
    unfinished, tickets = None, 0
    place = describe_place(project.root)
    try:
        tickets = len(project.tickets.list())
        unfinished = _find_unfinished(project, left_open)
    except CddError as error:
        place = error.message
    if unfinished is not None and _is_busy(project, unfinished.slug):
        unfinished = replace(unfinished, progress=_BUSY, is_interrupted=False)
    rows = tuple(_rows(unfinished, tickets, model_problem))
    return Beginning(rows, _likeliest(rows, unfinished), place)


def _is_busy(project: Project, slug: str) -> bool:
    try:
        ticket = in_its_tree(project.tickets.find_slug(slug))
    except CddError:
        return False
    return is_other_at_work(ticket.record)


def _find_unfinished(
    project: Project, left_open: LastActive | None
) -> Unfinished | None:
    if left_open is not None and left_open.ticket and left_open.agent in _AT_WORK:
        progress = _AT_WORK[left_open.agent]
        line = f"/resume {left_open.ticket}"
        return Unfinished(left_open.ticket, progress, line, is_interrupted=True)
    run = find_unfinished_run(project)
    if run is not None:
        return Unfinished(
            run.slug, describe_run(run), f"/resume {run.slug}", is_interrupted=True
        )
    for ticket in overviews(project):
        view = ticket.view
        if view.is_over or view.error:
            continue
        steps = f", {view.done} of {view.total} steps done" if view.total else ""
        return Unfinished(
            view.slug, f"{view.state}{steps}", ticket.next_line, is_interrupted=False
        )
    return None


def describe_run(ticket: Ticket) -> str:
    """Return a run's progress, such as "step 2 of 4 failed"."""
    try:
        state = read_state(in_its_tree(ticket))
    except CddError:
        return "a run"
    return describe_progress(state) if state is not None else "a run"


def describe_progress(state: ExecutionState) -> str:
    steps = [state.step_executions[number] for number in sorted(state.step_executions)]
    for place, step in enumerate(steps, 1):
        if step.status is StepStatus.FAILED:
            return f"step {place} of {len(steps)} failed"
    for place, step in enumerate(steps, 1):
        if step.status is StepStatus.IN_PROGRESS:
            return f"step {place} of {len(steps)} interrupted"
    done = sum(step.status.is_over for step in steps)
    return f"{done} of {len(steps)} steps done"


def _rows(
    unfinished: Unfinished | None, tickets: int, model_problem: str
) -> Iterator[WelcomeRow]:
    if unfinished is not None:
        yield WelcomeRow(
            RowAction.CONTINUE,
            f"Continue {unfinished.slug}",
            unfinished.progress,
            unfinished.line,
            is_sent=unfinished.is_interrupted,
        )
    if model_problem:
        detail = _WHY_MODEL if model_problem == NO_MODEL else model_problem
        yield WelcomeRow(RowAction.SET_UP_MODEL, "Set up a model", detail)
    yield WelcomeRow(
        RowAction.NEW_TICKET, "New ticket", "say what you want in a sentence"
    )
    if tickets:
        many = "1 ticket" if tickets == 1 else f"{tickets} tickets"
        yield WelcomeRow(RowAction.TICKETS, "Open a ticket", many)
    if model_problem or not tickets:
        yield WelcomeRow(RowAction.DEMO, "Demo", "sample project; ends this session")
    yield WelcomeRow(RowAction.HELP, "Help", "commands and keys")


def _likeliest(rows: tuple[WelcomeRow, ...], unfinished: Unfinished | None) -> int:
    actions = [row.action for row in rows]
    if RowAction.SET_UP_MODEL in actions:
        return actions.index(RowAction.SET_UP_MODEL)
    if unfinished is not None and unfinished.is_interrupted:
        return actions.index(RowAction.CONTINUE)
    return actions.index(RowAction.NEW_TICKET)


def describe_place(root: Path) -> str:
    """Return a remark on a folder that is not a project; empty for a project."""
    if (root / ".cdd").is_dir():
        return ""
    try:
        refuse_no_place(root)
    except NoPlace as problem:
        return f"{problem.message} Start cdd in your project's folder."
    return f"{_short_path(root)} isn't a cdd project yet. Type /init to set it up."


def _short_path(path: Path) -> str:
    home = home_folder()
    shown = str(path)
    if home is not None and path.is_relative_to(home) and path != home:
        shown = f"~/{path.relative_to(home).as_posix()}"
    return shown if len(shown) <= _LONGEST_PATH else f"…/{path.name}"
