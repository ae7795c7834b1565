"""What the commands and the agents understand, as Markdown: from the registry, and from the agents themselves."""

from collections.abc import Mapping

from cdd_agent.commands.registry import commands

_IN_CHAT = """\
| typed | does |
|---|---|
| `@src/app.py`, `@docs/`, `@"my notes.md"` | sends the file, or what is in the folder, with the line |
| `@shot.png` | shows the picture to a model that sees |
| `!git status` | runs a command of your own, in every agent; chat gets to know what it printed |
| anything else | is answered by the model, which can look, and change files as `approval` lets it |
"""


KEYS = """\
| key | does |
|---|---|
| Enter | what the line below the prompt says |
| Ctrl+J, Shift+Enter, Alt+Enter | a new line |
| Tab | completes commands, tickets, models, `@files` |
| ↑ ↓, Ctrl+R | earlier lines; a search in them |
| Ctrl+G | opens your editor (`$VISUAL` or `$EDITOR`) with what you have typed |
| Ctrl+O | shows what was pasted; Ctrl+\\_ undoes, Ctrl+Y redoes |
| Escape, Ctrl+C | stop what runs; Ctrl+C copies what is selected, or empties the prompt |
| Ctrl+D, Ctrl+C twice | leave; what was typed is behind ↑ the next time |
| Ctrl+Z | suspends the shell; `fg` comes back |
| F1, Ctrl+P | help; commands, tickets, themes and keys by a few letters |
| F4, F5 | the tickets; the settings |
| F2, F3, F7 | the plan: go to it, fold it; what serves each acceptance criterion; the run as a timeline |
| PgUp, PgDn, the wheel | scroll; End (in an empty prompt) or a click on "↓ 12 new lines" leads back |
| Ctrl+↑, Ctrl+↓ | choose the block above or below; then Enter, → and ← open and fold it, Ctrl+C copies all of it |
| Ctrl+T | opens and folds the last thoughts |
| Ctrl+F | finds a text: Enter goes on, ↑ or Shift+Enter back, Escape closes |
| F6 | diffs side by side, where the transcript has 140 columns, or in one column |
| Ctrl+click on `path:line`, or on a link | opens the file in `$VISUAL` or `$EDITOR` at that line; opens the link |

All that you type goes to the prompt, whatever was clicked or chosen.
"""


def commands_help() -> str:
    """The commands, each with its line."""
    rows = "\n".join(f"| `{known.synopsis}` | {known.help} |" for known in commands().values())
    return f"| command | does |\n|---|---|\n{rows}"


def agents_help() -> Mapping[str, str]:
    """By agent, what it does with what is typed."""
    from cdd_agent.agents.executor import ExecutorAgent
    from cdd_agent.agents.planner import PlannerAgent
    from cdd_agent.agents.socrates import SocratesAgent

    return {"chat": _IN_CHAT} | {known.name: known.HELP for known in (SocratesAgent, PlannerAgent, ExecutorAgent)}
