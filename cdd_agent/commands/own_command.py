"""`!command`: a command of the person's own, run by a real shell in the project's folder.

It is theirs, so no list is asked. What it printed is told to the general agent, within a bound.
"""

import signal
from collections.abc import AsyncGenerator
from contextlib import aclosing

from cdd_agent.dialogue.presentable import Presentable
from cdd_agent.events import CommandOutput, Event, Notice, OwnCommandFinished, OwnCommandStarted
from cdd_agent.process.run import CommandResult, HeadTailBuffer, run_command, shell_argv
from cdd_agent.redaction import Redactor
from cdd_agent.sanitize import fenced, without_escapes
from cdd_agent.session import Session

_LONGEST = 7 * 24 * 3600.0
"""Seconds: the person ends what takes too long."""
_TOLD = 20_000
"""Characters of the output that the model gets to see: the beginning, and more of the end."""
_PIECE = 1_000


async def run_own_command(session: Session, text: str) -> AsyncGenerator[Event, None]:
    """Run it to its end; whoever stops listening ends it."""
    command = text.strip()
    if not command:
        yield Notice("A line that begins with `!` runs a command of your own, such as `!git status`.")
        return
    settings = session.project.config.commands
    presentable = Presentable(Redactor.of_environment(settings.hide_env))
    kept, result = HeadTailBuffer(_TOLD), "It was ended by the person."
    yield OwnCommandStarted(command)
    items = run_command(
        shell_argv(command),
        cwd=session.project.root,
        limit=_LONGEST,
        hide=settings.hide_env,
        passed=settings.pass_env,
    )
    try:
        async with aclosing(items):
            async for item in items:
                if isinstance(item, CommandResult):
                    result = _in_words(item)
                    continue
                for place in range(0, len(item.text), _PIECE):
                    kept.add(item.text[place : place + _PIECE])
                for event in presentable.of(CommandOutput(None, item.text)):
                    yield event
        for event in presentable.of(OwnCommandFinished(command, result)):
            yield event
    finally:
        session.chat.hear(_told(command, kept.text(), result))
    for event in session.chat.news():
        yield event


def _in_words(result: CommandResult) -> str:
    """Empty for a success."""
    if not result.started:
        return result.stderr
    if result.return_code < 0:
        return f"Ended by {_signal(-result.return_code)}"
    return f"Exit code {result.return_code}" if result.return_code else ""


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _told(command: str, output: str, result: str) -> str:
    output = "\n".join(map(without_escapes, output.split("\n"))).replace("\0", "\ufffd")
    printed = f"It printed:\n\n{fenced(output)}" if output.strip() else "It printed nothing."
    ran = f"I ran a command of my own in the project:\n\n{fenced(command, 'sh')}"
    return f"{ran}\n\n{result or 'Exit code 0'}\n\n{printed}"
