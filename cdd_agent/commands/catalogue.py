"""The declarations of all commands: group, summary, and arguments in the shell."""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple


class Group(StrEnum):
    """The use of commands, in the order of lists."""

    TICKETS = "Tickets"
    WORK = "Work"
    CHANGES = "Changes"
    CONTEXT = "Context and model"
    SETUP = "Set up"
    SHELL = "Shell"


class Entry(NamedTuple):
    """One command, after `cdd`, in the shell, or both."""

    group: Group
    summary: str
    """An imperative line for lists. It fits beside the name at 60 columns."""
    usage: str | None = None
    """Arguments of the slash command; None if the shell has no such command.

    Optional ones are in brackets; the last one ends with dots if it may be repeated. A
    flag, as `[--save]`, may be typed anywhere; one with a value is `[--slug=SLUG]`.
    `SLUG` stands for a ticket, `MODEL` for a model, `STEP` for the number of a step.
    """
    example: str = ""
    """A line for the shell."""
    flags: Mapping[str, str] = MappingProxyType({})
    """The effect of each flag of the slash command."""


_START_OVER = "start again from the beginning; the earlier record is kept"

CATALOGUE: dict[str, Entry] = {
    "new": Entry(
        Group.TICKETS,
        "Create a ticket or a documentation page",
        "TYPE [KIND] NAME [--slug=SLUG]",
        "/new feature user-auth",
        {"--slug": "name the ticket's folder yourself"},
    ),
    "list": Entry(
        Group.TICKETS,
        "List the tickets and their states",
        "[TYPE] [STATE]",
        "/list bug failed",
    ),
    "tickets": Entry(Group.TICKETS, "Browse all tickets on a screen", "", "/tickets"),
    "status": Entry(
        Group.TICKETS,
        "Show a ticket's progress",
        "[SLUG]",
        "/status feature-user-auth",
    ),
    "criteria": Entry(
        Group.TICKETS,
        "Show the steps and tests per criterion",
        "[SLUG]",
        "/criteria feature-user-auth",
    ),
    "socrates": Entry(
        Group.WORK,
        "Work out a ticket's spec in a dialogue",
        "SLUG [--start-over]",
        "/socrates feature-user-auth",
        {"--start-over": _START_OVER},
    ),
    "plan": Entry(
        Group.WORK,
        "Turn a ticket's spec into a plan",
        "SLUG",
        "/plan feature-user-auth",
    ),
    "exec": Entry(
        Group.WORK,
        "Carry out a ticket's plan, step by step",
        "SLUG [--start-over] [--worktree]",
        "/exec feature-user-auth",
        {
            "--start-over": _START_OVER,
            "--worktree": "work in a separate git worktree; bring it over with /land",
        },
    ),
    "resume": Entry(
        Group.WORK,
        "Continue where you left off",
        "[SESSION]",
        "/resume list",
    ),
    "verify": Entry(
        Group.WORK,
        "Run the checks of completed steps again",
        "[SLUG] [--strength]",
        "/verify feature-user-auth",
        {"--strength": "count how many small faults in the code the tests notice"},
    ),
    "land": Entry(
        Group.WORK,
        "Merge a run's worktree into your branch",
        "SLUG [--rebase]",
        "/land feature-user-auth",
        {"--rebase": "put the run's commits on top of your branch, without a merge"},
    ),
    "board": Entry(Group.WORK, "Show this project's runs and worktrees", "", "/board"),
    "compare": Entry(Group.WORK, "Compare models on the same tickets"),
    "push": Entry(Group.WORK, "Send a run to a git remote"),
    "pull": Entry(Group.WORK, "Fetch a run from a git remote"),
    "diff": Entry(
        Group.CHANGES,
        "Show the newest change, or a step",
        "[SLUG] [STEP]",
        "/diff feature-user-auth 2",
    ),
    "undo": Entry(
        Group.CHANGES,
        "Undo the newest change, or a step",
        "[SLUG] [STEP] [--list] [--yes]",
        "/undo feature-user-auth 2",
        {
            "--list": "list the last changes with their names, and undo nothing",
            "--yes": "undo the newest change without a question",
        },
    ),
    "redo": Entry(
        Group.CHANGES, "Undo the last undo", "[SLUG]", "/redo feature-user-auth"
    ),
    "apply": Entry(Group.CHANGES, "Apply a saved reply of a model"),
    "run": Entry(Group.CHANGES, "Carry out a YAML list of actions"),
    "context": Entry(
        Group.CONTEXT,
        "Show the model's context",
        "[PATH|WORDS|+FILE|-FILE...]",
        "/context +src/app.py",
    ),
    "model": Entry(
        Group.CONTEXT,
        "Show, choose or set up the model",
        "[ROLE] [MODEL] [API_BASE] [--save]",
        "/model anthropic/claude-sonnet-5-5 --save",
        {"--save": "keep the model for this project, in .cdd/config.yaml"},
    ),
    "approval": Entry(
        Group.CONTEXT,
        "Choose what cdd asks you about",
        "[MODE] [--save]",
        "/approval edits",
        {"--save": "keep the mode for this project, in .cdd/config.yaml"},
    ),
    "cost": Entry(
        Group.CONTEXT,
        "Show the tokens and the money spent",
        "[SLUG]",
        "/cost",
    ),
    "conversation": Entry(
        Group.CONTEXT,
        "Show the chat as the model sees it",
        "",
        "/conversation",
    ),
    "demo": Entry(Group.SETUP, "Watch a sample ticket run"),
    "init": Entry(
        Group.SETUP,
        "Make this folder a cdd project",
        "[--templates]",
        "/init",
        {"--templates": "copy the ticket templates to .cdd/templates for you to edit"},
    ),
    "doctor": Entry(Group.SETUP, "Show what is set up and what is missing"),
    "trust": Entry(
        Group.SETUP,
        "Review settings that need your trust",
        "[--give] [--revoke]",
        "/trust --give",
        {
            "--give": "trust these settings as they are now",
            "--revoke": "forget your answers for this project",
        },
    ),
    "help": Entry(
        Group.SHELL,
        "Explain commands, agents and keys",
        "[TOPIC]",
        "/help exec",
    ),
    "settings": Entry(Group.SHELL, "Show and change the settings", "", "/settings"),
    "theme": Entry(Group.SHELL, "Choose the colours", "[NAME]", "/theme light"),
    "clear": Entry(Group.SHELL, "Clear the screen and start a new chat", "", "/clear"),
    "chat": Entry(Group.SHELL, "Save the work and return to chat", "", "/chat"),
    "exit": Entry(Group.SHELL, "Save all work and quit cdd", "", "/exit"),
    "serve": Entry(Group.SHELL, "Open the shell in a browser"),
}


def in_groups(names: Iterable[str]) -> Iterator[tuple[Group, list[str]]]:
    """Yield each group that has some of the commands, with those commands in the order
    of the catalogue.
    """
    wanted = set(names)
    for group in Group:
        members = [
            name
            for name, entry in CATALOGUE.items()
            if name in wanted and entry.group is group
        ]
        if members:
            yield group, members
