"""Help on commands, agents and keys, as Markdown."""

from collections.abc import Mapping

from cdd_agent.agents.executor import ExecutorAgent
from cdd_agent.agents.planner import PlannerAgent
from cdd_agent.agents.socrates import SocratesAgent
from cdd_agent.commands.catalogue import CATALOGUE, in_groups
from cdd_agent.commands.registry import SlashCommand, commands
from cdd_agent.commands.terminal_commands import TERMINAL_COMMANDS

_IN_CHAT = """\
| typed | does |
|---|---|
| `@src/app.py`, `@docs/`, `@"my notes.md"` | sends the file, or the contents of the \
folder, with the line |
| `@shot.png` | shows the picture to a model that accepts pictures |
| `!git status` | runs a shell command of yours, in every agent; in chat the model \
sees the output |
| anything else | goes to the model, which can read files, and change them as \
`approval` allows |
"""
_KEYS = "keys"
KEYS_WITHOUT_SCREEN = (
    "Type a line and press Enter to send it. Ctrl+C stops what runs; if nothing runs,"
    " press it twice to quit, or press Ctrl+D. Answer a question with its letter or"
    " its word. F1 lists the keys of the full-screen shell."
)


def commands_help() -> str:
    """Return all commands, each with its summary, in groups."""
    known = commands()
    parts = []
    for group, names in in_groups(known):
        rows = [
            f"| `{known[name].synopsis}` | {known[name].summary} |" for name in names
        ]
        head = f"**{group}**\n\n| command | does |\n|---|---|"
        parts.append("\n".join([head, *rows]))
    return "\n\n".join(parts)


def agents_help() -> Mapping[str, str]:
    """Return what each agent does with typed lines, by its name."""
    return {"chat": _IN_CHAT} | {
        known.name: known.HELP for known in (SocratesAgent, PlannerAgent, ExecutorAgent)
    }


def help_topics() -> tuple[str, ...]:
    """Return all topics that `/help` knows."""
    return tuple(dict.fromkeys([*agents_help(), _KEYS, *commands()]))


def help_on(topic: str) -> str:
    """Return the help on a topic. A name can be that of an agent and of a command."""
    parts = []
    if topic == _KEYS:
        parts.append(KEYS_WITHOUT_SCREEN)
    if topic in commands():
        parts.append(command_help(commands()[topic]))
    if topic in agents_help():
        parts.append(agents_help()[topic])
    return "\n\n".join(parts)


def command_help(known: SlashCommand) -> str:
    """Return the usage, the flags and an example of a command."""
    entry = CATALOGUE[known.name]
    lines = [f"Usage: `{known.synopsis}`", "", known.help, ""]
    if entry.flags:
        lines += ["| flag | effect |", "|---|---|"]
        lines += [f"| `{flag}` | {effect} |" for flag, effect in entry.flags.items()]
        lines.append("")
    lines.append(f"Example: `{entry.example}`")
    if known.name in TERMINAL_COMMANDS:
        lines += [
            "",
            f"In a terminal: `cdd {known.name}`, see `cdd help {known.name}`.",
        ]
    return "\n".join(lines)
