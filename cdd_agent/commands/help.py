"""Help on commands, agents and keys, as Markdown."""

from collections.abc import Mapping

from cdd_agent.agents.executor import ExecutorAgent
from cdd_agent.agents.planner import PlannerAgent
from cdd_agent.agents.socrates import SocratesAgent
from cdd_agent.commands.catalogue import in_groups
from cdd_agent.commands.declaration import Command, Parameter
from cdd_agent.commands.registry import commands
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.refusals.page import explain

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
    parts = []
    for group, members in in_groups(commands()):
        rows = [f"| `{each.synopsis}` | {each.summary} |" for each in members]
        head = f"**{group}**\n\n| command | does |\n|---|---|"
        parts.append("\n".join([head, *rows]))
    return "\n\n".join(parts)


def agents_help() -> Mapping[str, str]:
    agents = (SocratesAgent, PlannerAgent, ExecutorAgent)
    return {"chat": _IN_CHAT} | {agent.name: agent.HELP for agent in agents}


def help_topics() -> tuple[str, ...]:
    refusals = (refusal.id for refusal in Refusal)
    return tuple(dict.fromkeys([*agents_help(), _KEYS, *commands(), *refusals]))


def help_on(topic: str) -> str:
    """Return the help on a topic. An agent and a command may have the same name."""
    parts = []
    if topic == _KEYS:
        parts.append(KEYS_WITHOUT_SCREEN)
    if topic in commands():
        parts.append(command_help(commands()[topic]))
    if topic in agents_help():
        parts.append(agents_help()[topic])
    refusal = Refusal.find(topic)
    if refusal is not None:
        parts.append(explain(refusal))
    return "\n\n".join(parts)


def command_help(command: Command) -> str:
    front = command.slash
    assert front is not None
    lines = [f"Usage: `{command.synopsis}`", "", front.help, ""]
    parameters = [*command.arguments, *command.flags.values()]
    if parameters:
        lines += ["| argument | meaning |", "|---|---|"]
        lines += [
            f"| `{_parameter_usage(each)}` | {each.note} |" for each in parameters
        ]
        lines.append("")
    lines.append(f"Example: `{front.example}`")
    if command.terminal is not None:
        text = f"`cdd help {command.name}` in a terminal explains the command there."
        lines += ["", text]
    return "\n".join(lines)


def _parameter_usage(parameter: Parameter) -> str:
    if not parameter.is_flag:
        # A bar would end the cell of the table.
        return parameter.value_name.replace("|", "` or `")
    if parameter.is_switch:
        return parameter.name
    return f"{parameter.name} {parameter.value_name}"
