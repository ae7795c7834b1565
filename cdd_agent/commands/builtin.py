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
from cdd_agent.commands.criteria import criteria_events
from cdd_agent.commands.help import KEYS_WITHOUT_SCREEN, agents_help, commands_help
from cdd_agent.commands.initialise import initialise
from cdd_agent.commands.listing import STATES, TYPES
from cdd_agent.commands.model_choice import choose
from cdd_agent.commands.registry import (
    command,
    commands,
    project_command,
    tell_as_found,
)
from cdd_agent.commands.ticket_commands import (
    DOCUMENTATION,
    list_tickets,
    new,
    status_events,
)
from cdd_agent.commands.trust_command import trust_events
from cdd_agent.dialogue.code_search import search_in_thread
from cdd_agent.engine.logged_run import LoggedRun
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
from cdd_agent.settings.config import PROJECT_FILE
from cdd_agent.tickets.plan import STEP_LABEL


@command("exec", "SLUG [--start-over] [--worktree]")
async def execute(
    session: Session, slug: str, *, start_over: bool = False, worktree: bool = False
) -> None:
    """Carry out a ticket's plan, step by step; `--start-over` from the first,
    `--worktree` in a tree of its own.
    """
    ticket = session.project.tickets.find(slug)
    await session.engage("executor", ticket, start_over=start_over, worktree=worktree)


@command("land", "SLUG [--rebase]")
async def land(session: Session, slug: str, *, rebase: bool = False) -> None:
    """Bring a run over from its own tree: merge (or `--rebase`), check, and only then
    count it landed.
    """
    await session.land(session.project.tickets.find(slug), rebase=rebase)


@command("verify", "[SLUG] [--strength]")
async def verify(
    session: Session, slug: str | None = None, *, strength: bool = False
) -> None:
    """Run the checks of a ticket's completed steps again, on a copy of your files, and
    show what no longer holds; with `--strength` how many small faults in the steps'
    lines they notice.
    """
    known = slug or session.last_ticket
    if known is None:
        raise BadInput(f"Which ticket? Usage: {commands()['verify'].synopsis}")
    await session.verify(session.project.tickets.find(known), strength=strength)


@command("socrates", "SLUG [--start-over]")
async def socrates(session: Session, slug: str, *, start_over: bool = False) -> None:
    """Work out a ticket's spec in a dialogue; with `--start-over` without what was said
    before.
    """
    await session.engage(
        "socrates", session.project.tickets.find(slug), start_over=start_over
    )


@command("resume", "[SESSION]")
async def resume(session: Session, which: str = "") -> None:
    """Go on where you were last, with what was on the screen; `list` shows the earlier
    sessions, its name takes one.
    """
    await sessions.resume(session, which)


@command("undo", "[SLUG] [STEP] [--list]")
async def undo(session: Session, *which: str, list: bool = False) -> None:  # noqa: A002
    """Go back to before a ticket's last step, or the one named; without a ticket, undo
    the last change of chat, `cdd run` or `cdd apply`. Your own later edits stay.
    """
    if list:
        await session.open_outside().carry_out("list")
        return
    await _tell(session, "undo", which)


@command("redo", "[SLUG]")
async def redo(session: Session, *which: str) -> None:
    """Undo the last undo, of a ticket or of a change outside of tickets."""
    await _tell(session, "redo", which)


@command("diff", "[SLUG] [STEP]", any_time=True)
async def diff(session: Session, *which: str) -> None:
    """Show what a ticket's last step, or the one named, changed; without a ticket, the
    last change of chat, `cdd run` or `cdd apply`.
    """
    await _tell(session, "diff", which)


@command("status", "[SLUG]", any_time=True)
async def status(session: Session, slug: str | None = None) -> None:
    """Show how far a ticket is: the active one, the one named, or all of them."""
    if session.agent is not None and slug in (None, session.agent.ticket_slug):
        for event in session.agent.view():
            session.emit(event)
    else:
        await tell_as_found(session, status_events(session.project, slug))


@command("criteria", "[SLUG]", any_time=True)
async def criteria(session: Session, slug: str | None = None) -> None:
    """Show which steps, tests and files serve each acceptance criterion of a ticket,
    and which are seen to be met.
    """
    known = slug or session.last_ticket
    if known is None:
        raise BadInput(f"Which ticket? Usage: {commands()['criteria'].synopsis}")
    await tell_as_found(session, criteria_events(session.project, known))


def _types_and_states() -> tuple[tuple[str, ...], ...]:
    return TYPES, STATES


project_command("list", "[TYPE] [STATE]", _types_and_states, any_time=True)(
    list_tickets
)


@command("plan", "SLUG")
async def plan(session: Session, slug: str) -> None:
    """Turn a ticket's spec into a plan, or change the plan that is there; nothing is
    written before you approve.
    """
    await session.engage("planner", session.project.tickets.find(slug))


project_command(
    "new",
    "TYPE [KIND] NAME [--slug=SLUG]",
    lambda: ((*_types_and_states()[0], DOCUMENTATION),),
)(new)


project_command("trust", "[--give] [--revoke]", any_time=True)(trust_events)


@project_command("init", "[--templates]")
def init(project: Project, *, templates: bool = False) -> Iterator[Event]:
    """Make this a cdd project: settings, a folder for tickets, AGENTS.md; with
    `--templates`, yours to change.
    """
    return initialise(project, templates=templates)


@command("context", "[PATH|WORDS|+FILE|-FILE...]", any_time=True)
async def context(session: Session, *typed: str) -> None:
    """Show the last prompt's parts; files named; the code that words are about; `+FILE`
    pins, `-FILE` leaves out.
    """
    root = session.project.root
    typed = tuple(mentioned_name(root, word) for word in typed)
    signed = [word for word in typed if word[:1] in ("+", "-") and len(word) > 1]
    if signed:
        if len(signed) < len(typed):
            raise BadInput(
                "Files to pin or leave out are not named together with others",
                hint="One after the other.",
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


@command("cost", "[SLUG]", any_time=True)
async def cost(session: Session, slug: str | None = None) -> None:
    """Show the tokens and the money that a ticket's run has taken, the last one or the
    one named, and this session.
    """
    if known := slug or session.last_ticket:
        ticket = session.project.tickets.find(known)
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


@command("model", "[ROLE] [MODEL] [API_BASE] [--save]", any_time=True)
async def choose_model(session: Session, *words: str, save: bool = False) -> None:
    """Show the model and those on this computer, or ask another from now on; `--save`
    sets it for the project.
    """
    await choose(session, words, save=save)


@command("approval", "[MODE] [--save]", lambda: (MODES,), any_time=True)
async def change_approval(
    session: Session, mode: str = "", *, save: bool = False
) -> None:
    """Show or choose what happens without asking you: `ask` before edits, `edits`
    without asking, `auto` for edits and commands; `--save` keeps it for the project.
    """
    await choose_approval(session, mode, save=save)


@command(
    "help",
    "[TOPIC]",
    lambda: (("chat", "socrates", "planner", "executor", "keys"),),
    any_time=True,
)
async def show_help(session: Session, topic: str = "") -> None:
    """Show the commands; of an agent (chat, socrates, planner, executor) what it
    understands; or the keys.
    """
    words = agents_help()
    if not topic:
        which = ", ".join(f"`/help {name}`" for name in words)
        others = (
            "All other lines go to the agent that is active. What they understand:"
            f" {which}. Keys: `/help keys`."
        )
        session.emit(ScreenAsked("help", f"{commands_help()}\n\n{others}"))
    elif topic.lower() == "keys":
        session.emit(ScreenAsked("help", KEYS_WITHOUT_SCREEN, "keys"))
    elif (text := words.get(topic.lower())) is not None:
        session.emit(ScreenAsked("help", text, topic.lower()))
    else:
        raise BadInput(
            f"There is no help on {topic!r}",
            hint=f"There is some on {', '.join(words)} and keys.",
        )


@command("tickets", any_time=True)
async def show_tickets(session: Session) -> None:
    """Show all tickets on a screen of their own: their states, money, what is next for
    each.
    """
    session.emit(
        ScreenAsked(
            "tickets",
            "Only the shell with a screen has such a list; `/list` shows the tickets.",
        )
    )


@command("board", any_time=True)
async def show_board(session: Session) -> None:
    """Show the runs of this project on this machine: how far each is, what it took, and
    what it waits for.
    """
    project = session.project
    board = await asyncio.to_thread(
        lambda: board_here(project.root, project.tickets.list())
    )
    session.emit(ScreenAsked("board", in_lines(board)))


@command("settings", any_time=True)
async def show_settings(session: Session) -> None:
    """Show all settings and where each comes from, on a screen where they can be
    changed.
    """
    where = (
        "Only the shell with a screen shows them; they are in"
        f" {PROJECT_FILE.as_posix()}."
    )
    session.emit(ScreenAsked("settings", where))


@command(
    "theme", "[NAME]", lambda: (("dark", "light", "contrast", "auto"),), any_time=True
)
async def choose_theme(session: Session, name: str = "") -> None:
    """Choose the shell's colours: dark, light, contrast; auto: as the terminal's
    background is.
    """
    session.emit(ScreenAsked("theme", "Only the shell with a screen has themes.", name))


@command("conversation", any_time=True)
async def show_conversation(session: Session) -> None:
    """Show the summary and your lines that the model gets in place of the older part of
    the chat.
    """
    text = session.chat.describe()
    if text:
        session.emit(Answer(text))
    else:
        session.emit(Notice("The model gets all of the conversation."))


@command("clear")
async def clear(session: Session) -> None:
    """Empty the transcript, and begin a new conversation; `/resume` goes back to the
    old one.
    """
    session.chat.begin_anew()
    session.emit(Cleared())


@command("exit")
async def leave(session: Session) -> None:
    """Leave the active agent; where none is active, the shell."""
    if session.agent is None:
        session.emit(ExitRequested())
        return
    await session.say("exit")
    session.emit(Notice("`/exit` once more leaves the shell."))


async def _tell(
    session: Session, word: Literal["undo", "redo", "diff"], which: Sequence[str]
) -> None:
    """A word for the Executor of the ticket that is named, or else of the active one,
    perhaps with a step's number. Without either it is about the last ticket or the
    changes outside of tickets, whichever is newer.

    What is neither is refused: without it, a mistyped number would mean the last step.
    """
    usage = f"Usage: {commands()[word].synopsis}"
    named, steps = which[:1], which[1:]
    if named and STEP_LABEL.fullmatch(named[0]):
        named, steps = (), which
    if not which and await asyncio.to_thread(session.is_outside_meant):
        await session.open_outside().carry_out(word)
        return
    slug = named[0] if named else session.last_ticket
    if slug is None:
        raise BadInput(f"Which ticket? {usage}")
    wrong = next((text for text in steps if not STEP_LABEL.fullmatch(text)), None)
    if wrong is not None:
        raise BadInput(
            f"{wrong!r} is not a step's number; nothing was done", hint=usage
        )
    await session.tell(
        session.project.tickets.find(slug),
        " ".join([word, *steps]),
        is_look=word == "diff",
    )
