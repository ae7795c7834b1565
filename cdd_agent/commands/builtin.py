"""The built-in slash commands."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Literal

from cdd_agent.approval_mode import MODES
from cdd_agent.commands import sessions
from cdd_agent.commands.approval_command import choose_approval
from cdd_agent.commands.code_context import (
    describe_last_prompt,
    find_code,
    is_words,
    record_choices,
)
from cdd_agent.commands.criteria import criteria_of_ticket
from cdd_agent.commands.help import commands_help, help_on, help_topics
from cdd_agent.commands.initialise import initialise_and_say_next
from cdd_agent.commands.listing import STATES, TYPES
from cdd_agent.commands.model_choice import choose
from cdd_agent.commands.registry import (
    command,
    commands,
    emit_as_found,
    project_command,
)
from cdd_agent.commands.ticket_commands import (
    DOCUMENTATION,
    create_ticket,
    describe_created,
    list_tickets,
    new,
    status_events,
    status_of_ticket,
)
from cdd_agent.commands.trust_command import trust_events
from cdd_agent.completion import find_matches
from cdd_agent.dialogue.code_search import search_in_thread
from cdd_agent.engine.logged_run import LoggedRun
from cdd_agent.engine.outside import CHANGE_NAME
from cdd_agent.engine.record import RunRecord
from cdd_agent.engine.related_code import MOST
from cdd_agent.engine.whereabouts import in_its_tree
from cdd_agent.errors import BadInput
from cdd_agent.events.notices import Answer, Notice, NoticeKind
from cdd_agent.events.shell_events import Cleared, ExitRequested, ScreenAsked
from cdd_agent.events.stream import Event
from cdd_agent.files.mention_reader import mentioned_name
from cdd_agent.fleet.local_runs import board_here
from cdd_agent.fleet.table import in_lines
from cdd_agent.open_project import Project
from cdd_agent.project.context import project_context
from cdd_agent.redaction import Redactor
from cdd_agent.session import Session
from cdd_agent.session_lines import NO_AGENT
from cdd_agent.settings.config import PROJECT_FILE
from cdd_agent.tickets.plan import STEP_LABEL

_MORE_HELP = (
    "All other lines go to the active agent. `/help COMMAND` explains a command, `/help"
    " chat`, `/help socrates`, `/help planner` and `/help executor` an agent, `/help"
    " keys` the keys."
)


@command("exec")
async def execute(
    session: Session, slug: str, *, start_over: bool = False, worktree: bool = False
) -> None:
    """Open the Executor on a ticket. It carries out the plan, one step for each Enter,
    and runs the step's check before the next one.
    """
    ticket = session.project.tickets.find(slug, by_part=True)
    await session.engage("executor", ticket, start_over=start_over, worktree=worktree)


@command("land")
async def land(session: Session, slug: str, *, rebase: bool = False) -> None:
    """Merge a run's worktree into your branch. The result is checked in a separate
    tree first; if there is a conflict or a check fails, nothing changes.
    """
    ticket = session.project.tickets.find(slug, by_part=True)
    await session.land(ticket, rebase=rebase)


@command("verify")
async def verify(
    session: Session, slug: str | None = None, *, strength: bool = False
) -> None:
    """Run the checks of a ticket's completed steps again, on a copy of your files, and
    show which of them fail now.
    """
    ticket = session.find_ticket(slug)
    if ticket is None:
        raise BadInput(f"Which ticket? Usage: {commands()['verify'].synopsis}")
    await session.verify(ticket, strength=strength)


@command("socrates")
async def socrates(session: Session, slug: str, *, start_over: bool = False) -> None:
    """Open Socrates on a ticket. It asks questions until the spec is complete; you
    approve before the spec is written.
    """
    ticket = session.project.tickets.find(slug, by_part=True)
    await session.engage("socrates", ticket, start_over=start_over)


@command("resume")
async def resume(session: Session, which: str = "") -> None:
    """Reopen the last session with its transcript. `/resume list` lists the earlier
    sessions; `/resume NAME` reopens one of them.
    """
    await sessions.resume(session, which)


@command("undo")
async def undo(
    session: Session,
    *which: str,
    list: bool = False,  # noqa: A002
    yes: bool = False,
) -> None:
    """Undo the newest change of this session: a step, a chat turn, `cdd run` or `cdd
    apply`. It is named first, and cdd asks. With a ticket, undo its last step, or STEP
    and all later steps without a question. Edits that you made since are kept.
    """
    if list:
        await session.undoing.list()
    elif not which:
        await session.undoing.undo(is_confirmed=yes)
    elif CHANGE_NAME.fullmatch(which[0]):
        await session.undoing.undo_named(which[0])
    elif len(which) == 1 and not STEP_LABEL.fullmatch(which[0]):
        ticket = session.project.tickets.find(which[0], by_part=True)
        await session.undoing.undo(slug=ticket.slug, is_confirmed=yes)
    else:
        await _tell(session, "undo", which)


@command("redo")
async def redo(session: Session, *which: str) -> None:
    """Undo the last undo of this session, until something is changed again. With a
    ticket, undo its last undo.
    """
    if not which:
        await session.undoing.redo()
    elif CHANGE_NAME.fullmatch(which[0]):
        await session.undoing.redo_named(which[0])
    else:
        await _tell(session, "redo", which)


@command("diff", any_time=True)
async def diff(session: Session, *which: str) -> None:
    """Show the newest change of this session: a step, a chat turn, `cdd run` or `cdd
    apply`. With a ticket, show its last step, or step STEP.
    """
    if which and CHANGE_NAME.fullmatch(which[0]):
        await session.undoing.diff_named(which[0])
    elif which:
        await _tell(session, "diff", which)
    else:
        await session.undoing.diff()


@command("status", any_time=True)
async def status(session: Session, slug: str | None = None) -> None:
    """Show the steps of a ticket and their results. Without a ticket, show the active
    one, or list all of them.
    """
    ticket = None if slug is None else session.find_ticket(slug)
    agent = session.agent
    if agent is not None and (ticket is None or ticket.slug == agent.ticket_slug):
        for event in agent.view():
            session.emit(event)
    elif ticket is None:
        await emit_as_found(session, status_events(session.project))
    else:
        await emit_as_found(session, status_of_ticket(ticket))


@command("criteria", any_time=True)
async def criteria(session: Session, slug: str | None = None) -> None:
    """Show which steps, tests and files serve each acceptance criterion of a ticket,
    and which criteria the tests confirm.
    """
    ticket = session.find_ticket(slug)
    if ticket is None:
        raise BadInput(f"Which ticket? Usage: {commands()['criteria'].synopsis}")
    await emit_as_found(session, criteria_of_ticket(session.project, ticket))


def _types_and_states() -> tuple[tuple[str, ...], ...]:
    return TYPES, STATES


project_command("list", _types_and_states, any_time=True)(list_tickets)


@command("plan")
async def plan(session: Session, slug: str) -> None:
    """Open the Planner on a ticket. It proposes a plan, or changes the existing one;
    nothing is written before you approve.
    """
    ticket = session.project.tickets.find(slug, by_part=True)
    await session.engage("planner", ticket)


async def create(session: Session, kind: str, *words: str, slug: str = "") -> None:
    if kind.lower() != DOCUMENTATION:
        ticket = await asyncio.to_thread(
            create_ticket, session.project, kind, words, slug
        )
        session.note_created(ticket)
        session.emit(describe_created(ticket))
        return
    await emit_as_found(session, new(session.project, kind, *words, slug=slug))


create.__doc__ = new.__doc__
command("new", lambda: ((*_types_and_states()[0], DOCUMENTATION),))(create)


project_command("trust", any_time=True)(trust_events)


@project_command("init")
def init(project: Project, *, templates: bool = False) -> Iterator[Event]:
    """Create what a cdd project needs and does not have yet: a settings file, a folder
    for tickets, and AGENTS.md. Existing files stay unchanged.
    """
    return initialise_and_say_next(project, templates=templates)


@command("context", any_time=True)
async def context(session: Session, *typed: str) -> None:
    """Show the parts of the last prompt. With a path, show that file; with words, show
    the code that they are about. `+FILE` pins a file to the prompts of the open ticket,
    `-FILE` leaves it out.
    """
    root = session.project.root
    typed = tuple(mentioned_name(root, word) for word in typed)
    signed = [word for word in typed if word[:1] in ("+", "-") and len(word) > 1]
    if signed:
        if len(signed) < len(typed):
            raise BadInput(
                "Pin or leave out files in a line of their own",
                hint="Type `/context +FILE` first, then the other words.",
            )
        session.emit(
            Notice(
                await asyncio.to_thread(record_choices, session, signed),
                kind=NoticeKind.SENT,
            )
        )
    elif words := " ".join(word for word in typed if is_words(root, word)):
        paths = [word for word in typed if not is_words(root, word)]
        look = partial(find_code, root, session.open_code(), words, MOST, paths)
        session.emit(
            Answer(
                (
                    await search_in_thread(
                        look, session.emit, "Reading the project's code …"
                    )
                ).as_text()
            )
        )
    elif not typed and (told := await asyncio.to_thread(describe_last_prompt, session)):
        session.emit(Answer(told))
    else:
        found = await asyncio.to_thread(project_context, root, typed)
        session.emit(Answer(found.as_text()))


@command("cost", any_time=True)
async def cost(session: Session, slug: str | None = None) -> None:
    """Show the tokens and the money that this session and a ticket's run have spent.
    Without a ticket, show the last one.
    """
    if ticket := session.find_ticket(slug):
        record = RunRecord.of_ticket(in_its_tree(ticket), Redactor())
        effort = LoggedRun.read(record.log).effort
        calls = f"{effort.model_calls} model call{'s' * (effort.model_calls != 1)}"
        budget = session.project.config.budget
        limits = [f"{budget.tokens:,} tokens"] if budget.tokens else []
        limits += [f"${budget.usd:.2f}"] if budget.usd else []
        of = f"; its budget is {' and '.join(limits)}" if limits else ""
        parts = (
            f"{ticket.slug}: {effort.cost.in_full()}, in {calls}{of}",
            effort.cost.effect_of_cache(),
        )
        session.emit(Notice("; ".join(filter(None, parts)), kind=NoticeKind.COST))
    spent, running = session.tally.spent, session.tally.running_calls
    calls = (
        f"{running} model call{'s are' if running > 1 else ' is'} under way, and not"
        " counted yet"
        if running
        else ""
    )
    so_far = spent.in_full() if spent.tokens or not running else ""
    words = (
        "This session:"
        f" {'; '.join(filter(None, (so_far, spent.effect_of_cache(), calls)))}"
    )
    session.emit(Notice(words, kind=NoticeKind.COST))


@command("model", any_time=True)
async def choose_model(session: Session, *words: str, save: bool = False) -> None:
    """Show the model and the models on this computer, or switch to another model for
    this session. ROLE is planner, executor, chat or socrates.
    """
    await choose(session, words, save=save)


@command("approval", lambda: (MODES,), any_time=True)
async def change_approval(
    session: Session, mode: str = "", *, save: bool = False
) -> None:
    """Show or choose what happens without asking you: `ask` before edits, `edits`
    without asking, `auto` for edits and commands; `--save` keeps it for the project.
    """
    await choose_approval(session, mode, save=save)


@command("help", lambda: (help_topics(),), any_time=True)
async def show_help(session: Session, topic: str = "") -> None:
    """Show all commands. With a TOPIC, explain a command, an agent (chat, socrates,
    planner, executor) or the keys.
    """
    name = topic.lower().removeprefix("/")
    if not topic:
        text = f"{commands_help()}\n\n{_MORE_HELP}"
        session.emit(ScreenAsked("help", text))
    elif name in help_topics():
        session.emit(ScreenAsked("help", help_on(name), name))
    else:
        near = find_matches(name, help_topics()).best[:3]
        hint = "`/help` lists the commands."
        if near:
            hint = f"Did you mean {' or '.join(f'`/help {one}`' for one in near)}?"
        raise BadInput(f"There is no help on {topic!r}", hint=hint)


@command("tickets", any_time=True)
async def show_tickets(session: Session) -> None:
    """Browse the tickets with their states, costs and next commands. Type to filter."""
    session.emit(
        ScreenAsked(
            "tickets",
            "This needs the full-screen shell. `/list` lists the tickets.",
        )
    )


@command("board", any_time=True)
async def show_board(session: Session) -> None:
    """Show the runs of this project on this machine: progress, time, cost, and what
    each one waits for. Worktrees that wait for `/land` are listed too.
    """
    project = session.project
    board = await asyncio.to_thread(
        lambda: board_here(project.root, project.tickets.list())
    )
    session.emit(ScreenAsked("board", in_lines(board)))


@command("settings", any_time=True)
async def show_settings(session: Session) -> None:
    """Show all settings, where each value comes from, and change them."""
    where = (
        "This needs the full-screen shell. Edit the settings in"
        f" {PROJECT_FILE.as_posix()}."
    )
    session.emit(ScreenAsked("settings", where))


@command("theme", lambda: (("dark", "light", "contrast", "auto"),), any_time=True)
async def choose_theme(session: Session, name: str = "") -> None:
    """Choose the colours: dark, light or contrast; auto follows the background of the
    terminal.
    """
    session.emit(ScreenAsked("theme", "This needs the full-screen shell.", name))


@command("conversation", any_time=True)
async def show_conversation(session: Session) -> None:
    """Show the summary that the model gets in place of the older part of the chat, and
    the lines of yours that it keeps.
    """
    text = session.chat.describe()
    if text:
        session.emit(Answer(text))
    else:
        session.emit(Notice("The model receives the whole conversation."))


@command("clear")
async def clear(session: Session) -> None:
    """Empty the transcript and start a new conversation. `/resume` brings the old one
    back.
    """
    session.chat.begin_anew()
    session.emit(Cleared())


@command("chat")
async def close_agent(session: Session) -> None:
    """Return to chat. The agent's work is saved."""
    if session.agent is None:
        session.emit(Notice(NO_AGENT))
        return
    await session.carry_out(session.meaning("close"))


@command("exit", any_time=True)
async def leave(session: Session) -> None:
    """Leave cdd; all work is saved, and `/resume` continues it."""
    session.emit(ExitRequested())


async def _tell(
    session: Session, word: Literal["undo", "redo", "diff"], which: Sequence[str]
) -> None:
    """Pass a word to the Executor of the named ticket, or of the active one, perhaps
    with the number of a step.

    Raises `BadInput` for other arguments: a mistyped number must not mean the last
    step.
    """
    usage = f"Usage: {commands()[word].synopsis}"
    named, steps = which[:1], which[1:]
    if named and STEP_LABEL.fullmatch(named[0]):
        named, steps = (), which
    wrong = next((text for text in steps if not STEP_LABEL.fullmatch(text)), None)
    if wrong is not None:
        raise BadInput(
            f"{wrong!r} is not the number of a step; nothing was done", hint=usage
        )
    ticket = session.find_ticket(named[0] if named else None)
    if ticket is None:
        raise BadInput(f"Which ticket? {usage}")
    line = " ".join([word, *steps])
    if word == "undo":
        session.scope.add_change(f"{ticket.slug} {steps[0]}")
    await session.tell(ticket, line, is_look=word == "diff")
