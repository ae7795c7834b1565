"""The built-in slash commands. `cdd init`, `new`, `list` and `status` are the same functions without a screen."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from pathlib import Path

from cdd_agent.agents.executor import ExecutorAgent
from cdd_agent.agents.last_active import LastActive, last_active
from cdd_agent.commands.registry import command, commands
from cdd_agent.config import PROJECT_FILE
from cdd_agent.errors import BadInput, CddError
from cdd_agent.events import (
    TICKET_STATES,
    Answer,
    Cleared,
    Event,
    ExitRequested,
    Notice,
    PlanOpened,
    TicketsListed,
    TicketView,
    Tone,
)
from cdd_agent.session import Project, Session
from cdd_agent.tickets.state import load_state, new_state
from cdd_agent.tickets.status import RunStatus
from cdd_agent.tickets.store import Ticket
from cdd_agent.workspace.files import ignore_runs, write_atomic

_CONFIG = """\
# Settings of this project; commit this file. Every key is shown with its default.
# Keys come from the environment: OPENAI_API_KEY, ANTHROPIC_API_KEY, ...

# model: anthropic/claude-sonnet-4-5   # any litellm model string
# api_base: null                       # a server of your own, e.g. http://127.0.0.1:11434/v1
# model_adapter: auto                  # auto: directly where the server speaks chat completions | direct | litellm
# tool_calls: auto                     # auto: to models that are known to call tools | on | off
# context_window: null                 # tokens that the model takes in; null: what is known of it
# tickets_dir: tickets
# test_command: null                   # null: found by what the project holds
# test_timeout: 300                    # seconds
# max_attempts: 3                      # model attempts a step without a screen, the first included
# approval: edits                      # ask: before files are written | edits | auto
# commit: off                          # step: one git commit for each completed step, of its files alone
# budget:                              # of a run: it stops before the call that could pass it
#   usd: null                          # dollars, where the model's price is known
#   tokens: null
# record: null                         # a file that keeps what the model is asked and answers
# commands:
#   mode: safe                         # safe: refuse what is not on the list | ask | unsafe: a real shell
#   allow: []                          # programs beside ls, cat, python, pytest, ruff, make, ...
#   timeout: 60                        # seconds
#   hide_env: []                       # variables that no command sees, beside those that look like secrets
#   pass_env: []                       # variables that commands see although they look like secrets
# web:
#   private: false                     # true: pages of this machine and its network may be read
"""

_HOW_TO_PLAN = """\
There is no plan yet. Write `{path}` like this, one section a step, then `/exec {slug}`:

````markdown
# Implementation Plan: What it is about

**Ticket:** `{slug}`

## Implementation Steps

### Step 1: Create the model

**Description:** What is to be done, in as many words as it needs.
**Dependencies:** None
**Verify:** `pytest tests/test_model.py`

**Files Affected:**
- `src/model.py` (new)
````
"""


_IN_CHAT = """\
While no agent is active, all other lines are chat:

| typed | does |
|---|---|
| `@src/app.py`, `@docs/`, `@"my notes.md"` | sends the file, or what is in the folder, with the line |
| `!git status` | runs a command of your own, in every agent; chat gets to know what it printed |
| anything else | is answered by the model, which can look, and change files as `approval` lets it |
"""


@command("exec", "SLUG [--start-over]")
async def execute(session: Session, slug: str, flag: str = "") -> AsyncGenerator[Event, None]:
    """Carry out a ticket's plan, step by step; with `--start-over` from its first step, whatever was done."""
    if flag not in ("", "--start-over"):
        raise BadInput(f"There is no {flag!r} of /exec", hint="Usage: /exec SLUG [--start-over]")
    ticket = session.project.tickets.find(slug)
    async with aclosing(session.engage("executor", ticket, start_over=bool(flag))) as events:
        async for event in events:
            yield event


@command("socrates", "SLUG [--start-over]")
async def socrates(session: Session, slug: str, flag: str = "") -> AsyncGenerator[Event, None]:
    """Work out a ticket's spec in a dialogue; with `--start-over` without what was said before."""
    if flag not in ("", "--start-over"):
        raise BadInput(f"There is no {flag!r} of /socrates", hint="Usage: /socrates SLUG [--start-over]")
    ticket = session.project.tickets.find(slug)
    async with aclosing(session.engage("socrates", ticket, start_over=bool(flag))) as events:
        async for event in events:
            yield event


@command("resume")
async def resume(session: Session) -> AsyncGenerator[Event, None]:
    """Bring back what was active last: the conversation of chat, and the agent at work on its ticket."""
    told = session.chat.resume()
    for event in told:
        yield event
    last = last_active(session.project.root)
    left = _left_last(session)
    if last is not None and last.agent is not None:
        agent, ticket = last.agent, _still_there(session, last)
        if agent == "executor" and (ticket is None or _view(ticket).state == "done"):
            ticket = left
    else:
        agent, ticket = "executor", None if told and last is not None else left
    if ticket is not None:
        async with aclosing(session.engage(agent, ticket)) as events:
            async for event in events:
                yield event
    elif left is not None:
        yield Notice(f"`/exec {left.slug}` goes on with the run that was left.")
    elif not told:
        yield Notice("No run was left before its end, and there is no earlier conversation to go back to.")


def _left_last(session: Session) -> Ticket | None:
    """That of the run that was left last, before all of its steps were over."""
    left = [ticket for ticket in session.project.tickets.list() if _view(ticket).state in ("in progress", "failed")]
    return max(left, key=lambda ticket: ticket.state_path.stat().st_mtime, default=None)


def _still_there(session: Session, last: LastActive) -> Ticket | None:
    tickets = (ticket for ticket in session.project.tickets.list() if ticket.slug == last.ticket_slug)
    return next(tickets, None) if session.can_engage(last.agent or "") else None


@command("undo", "[SLUG] [STEP]")
async def undo(session: Session, *which: str) -> AsyncGenerator[Event, None]:
    """Go back to before a ticket's last step, or the one named; your own later edits stay."""
    async with aclosing(_tell(session, "undo", which)) as events:
        async for event in events:
            yield event


@command("redo", "[SLUG]")
async def redo(session: Session, *which: str) -> AsyncGenerator[Event, None]:
    """Undo the last undo."""
    async with aclosing(_tell(session, "redo", which)) as events:
        async for event in events:
            yield event


@command("diff", "[SLUG] [STEP]")
async def diff(session: Session, *which: str) -> AsyncGenerator[Event, None]:
    """Show what a ticket's last step, or the one named, changed."""
    async with aclosing(_tell(session, "diff", which)) as events:
        async for event in events:
            yield event


@command("status", "[SLUG]")
async def status(session: Session, slug: str | None = None) -> AsyncGenerator[Event, None]:
    """Show how far a ticket is: the active one, the one named, or all of them."""
    if slug is None and session.agent is None:
        async with aclosing(list_tickets(session)) as events:
            async for event in events:
                yield event
        return
    if session.agent is not None and slug in (None, session.agent.ticket_slug):
        for event in session.agent.view():
            yield event
    else:
        yield _opened(session.project.tickets.find(slug or ""))


@command("list", "[STATE]")
async def list_tickets(session: Session, state: str | None = None) -> AsyncGenerator[Event, None]:
    """List the project's tickets and how far each is; with a state, those in it."""
    wanted = state.lower().replace("-", " ") if state else None
    if wanted is not None and wanted not in TICKET_STATES:
        allowed = ", ".join(known.replace(" ", "-") for known in TICKET_STATES)
        raise BadInput(f"There is no state {state!r}", hint=f"Allowed: {allowed}.")
    views = [_view(ticket) for ticket in session.project.tickets.list()]
    yield TicketsListed(tuple(view for view in views if wanted in (None, view.state)), wanted)


@command("plan", "SLUG")
async def show_plan(session: Session, slug: str) -> AsyncGenerator[Event, None]:
    """Show a ticket's plan; without one, say how to write it."""
    ticket = session.project.tickets.find(slug)
    if ticket.plan_path.exists():
        yield Answer(ticket.read_plan().to_markdown())
    else:
        yield Answer(_HOW_TO_PLAN.format(path=ticket.shown(ticket.plan_path), slug=ticket.slug))


@command("new", "TYPE NAME")
async def new(session: Session, kind: str, name: str) -> AsyncGenerator[Event, None]:
    """Make a ticket: feature, bug, enhancement, spike or refactor."""
    ticket = session.project.tickets.create(kind, name)
    yield Notice(
        f"Made {ticket.shown(ticket.spec_path)}: fill it in, then write plan.md beside it.",
        Tone.GOOD,
    )


@command("init")
async def init(session: Session) -> AsyncGenerator[Event, None]:
    """Make this folder a cdd project: settings and a folder for tickets."""
    for line in initialise(session.project):
        yield Notice(line, Tone.GOOD)


@command("context", "[PATH...]")
async def context(session: Session, *paths: str) -> AsyncGenerator[Event, None]:
    """Show the project context that a model would get, with the files and folders named."""
    from cdd_agent.workspace.context import project_context

    found = await asyncio.to_thread(project_context, session.project.root, paths)
    yield Answer(found.as_text())


@command("cost", "[SLUG]")
async def cost(session: Session, slug: str | None = None) -> AsyncGenerator[Event, None]:
    """Show the tokens and the money that a ticket's run has taken, the last one or the one named, and this session."""
    from cdd_agent.execution.effort import effort_of
    from cdd_agent.execution.record import RunRecord
    from cdd_agent.workspace.redaction import Redactor

    if known := slug or session.last_ticket:
        ticket = session.project.tickets.find(known)
        record = RunRecord.of(session.project.root, ticket.slug, Redactor())
        effort = effort_of(record.log.entries())
        calls = f"{effort.model_calls} model call{'s' * (effort.model_calls != 1)}"
        budget = session.project.config.budget
        limits = [f"{budget.tokens:,} tokens"] if budget.tokens else []
        limits += [f"${budget.usd:.2f}"] if budget.usd else []
        of = f"; its budget is {' and '.join(limits)}" if limits else ""
        yield Notice(f"{ticket.slug}: {effort.spent.in_words()}, in {calls}{of}")
    yield Notice(f"This session: {session.tally.spent.in_words()}")


@command("help")
async def show_help(session: Session) -> AsyncGenerator[Event, None]:
    """Show the commands, and the words that the agents understand."""
    from cdd_agent.agents.socrates import SocratesAgent

    del session
    rows = "\n".join(f"| `{known.synopsis}` | {known.help} |" for known in commands().values())
    words = f"In the Executor:\n\n{ExecutorAgent.HELP}\n\nWith Socrates:\n\n{SocratesAgent.HELP}"
    yield Answer(f"| command | does |\n|---|---|\n{rows}\n\n{_IN_CHAT}\n\n{words}")


@command("clear")
async def clear(session: Session) -> AsyncGenerator[Event, None]:
    """Empty the transcript, and begin a new conversation; `/resume` goes back to the old one."""
    session.chat.begin_anew()
    yield Cleared()


@command("exit")
async def leave(session: Session) -> AsyncGenerator[Event, None]:
    """Leave the active agent, or the shell."""
    if session.agent is None:
        yield ExitRequested()
    for event in session.leave():
        yield event


def _tell(session: Session, word: str, which: Sequence[str]) -> AsyncGenerator[Event, None]:
    """A word for the Executor of the ticket that is named, or else of the last one; perhaps with a step's number."""
    slug = next((name for name in which if not name.isdecimal()), session.last_ticket)
    if slug is None:
        raise BadInput(f"Which ticket? Usage: {commands()[word].synopsis}")
    line = " ".join([word, *(number for number in which if number.isdecimal())])
    return session.tell(session.project.tickets.find(slug), line)


def initialise(project: Project) -> list[str]:
    """Make what is missing of a project's own files, and say what was done. Refuses `/` and the home folder."""
    root = project.root
    if root in (Path(root.anchor), Path.home()):
        raise BadInput(f"{root} is no place for a project", hint="Change to the project's folder first.")
    made = [file] if (file := ignore_runs(root)) else []
    for path, text in ((root / PROJECT_FILE, _CONFIG), (root / project.config.tickets_dir / ".gitkeep", "")):
        if not path.exists():
            write_atomic(path, text.encode())
            made.append(path)
    if not made:
        return [f"{root} is a cdd project already; nothing was changed."]
    return [f"Made {_shown(project, path)}" for path in made]


def _view(ticket: Ticket) -> TicketView:
    """One ticket for the list. A file that cannot be read makes that ticket's line say so, not the list fail."""
    try:
        if not ticket.plan_path.exists():
            return TicketView(ticket.slug, "spec" if ticket.spec_path.exists() else "empty")
        plan = ticket.read_plan()
        plan.check(ticket.shown(ticket.plan_path))
        state = load_state(ticket.state_path, ticket.slug, plan)
    except CddError as error:
        return TicketView(ticket.slug, "unreadable", error=error.message.partition("\n")[0])
    total = len(plan.steps)
    if state is None:
        return TicketView(ticket.slug, "planned", 0, total)
    words = {RunStatus.COMPLETED: "done", RunStatus.FAILED: "failed", RunStatus.IN_PROGRESS: "in progress"}
    return TicketView(ticket.slug, words[state.status], state.done, total)


def _opened(ticket: Ticket) -> PlanOpened:
    plan = ticket.read_plan()
    plan.check(ticket.shown(ticket.plan_path))
    state = load_state(ticket.state_path, ticket.slug, plan) or new_state(ticket.slug, plan)
    return PlanOpened.of(ticket.read_spec().title, plan, state)


def _shown(project: Project, path: Path) -> str:
    return path.relative_to(project.root).as_posix() if path.is_relative_to(project.root) else str(path)
