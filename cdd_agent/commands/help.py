"""Help on the commands and the agents, as Markdown: from the registry, and from the
agents themselves.
"""

from collections.abc import Mapping

from cdd_agent.agents.executor import ExecutorAgent
from cdd_agent.agents.planner import PlannerAgent
from cdd_agent.agents.socrates import SocratesAgent
from cdd_agent.commands.registry import commands

_IN_CHAT = """\
| typed | does |
|---|---|
| `@src/app.py`, `@docs/`, `@"my notes.md"` | sends the file, or what is in the \
folder, with the line |
| `@shot.png` | shows the picture to a model that sees |
| `!git status` | runs a command of your own, in every agent; chat gets to know what \
it printed |
| anything else | is answered by the model, which can look, and change files as \
`approval` lets it |
"""
KEYS_WITHOUT_SCREEN = (
    "Without a screen a line is typed and sent by Enter. Ctrl+C stops what runs; where"
    " nothing does, it leaves when it is pressed twice, and so does Ctrl+D. A question"
    " is answered by its letter or its word. F1 lists the keys of the shell with a"
    " screen."
)


def commands_help() -> str:
    """The commands, each with its line."""
    rows = "\n".join(
        f"| `{known.synopsis}` | {known.help} |" for known in commands().values()
    )
    return f"| command | does |\n|---|---|\n{rows}"


def agents_help() -> Mapping[str, str]:
    """By agent, what it does with what is typed."""
    return {"chat": _IN_CHAT} | {
        known.name: known.HELP for known in (SocratesAgent, PlannerAgent, ExecutorAgent)
    }
