"""`!command`: the user's shell command, run in the project's folder.

No allow list applies, because the user typed it. The chat model sees a part of the
output.
"""

import signal

from cdd_agent.dialogue.redacted_events import RedactedEvents
from cdd_agent.events.notices import Notice
from cdd_agent.events.shell_events import OwnCommandFinished, OwnCommandStarted
from cdd_agent.events.step_events import CommandOutput
from cdd_agent.process.run import (
    CommandResult,
    HeadTailBuffer,
    OutputChunk,
    run_command,
    shell_argv,
)
from cdd_agent.session.session import Session
from cdd_agent.text.redaction import Redactor
from cdd_agent.text.sanitize import fenced, remove_escapes

_TIMEOUT = 7 * 24 * 3600.0
"""In seconds. The user stops a command that takes too long."""
_MAX_MODEL_OUTPUT = 20_000
"""Characters of the output for the model: the beginning, and more of the end."""
_PIECE = 1_000


async def run_own_command(session: Session, text: str) -> None:
    """Run a command to its end, or until this task is cancelled."""
    command = text.strip()
    if not command:
        session.emit(Notice("Type a shell command after `!`, such as `!git status`."))
        return
    settings = session.project.config.commands
    redacted = RedactedEvents(Redactor.of_environment(settings.hide_env), session.emit)
    buffer, outcome = HeadTailBuffer(_MAX_MODEL_OUTPUT), "The user stopped it."

    def on_output(chunk: OutputChunk) -> None:
        for place in range(0, len(chunk.text), _PIECE):
            buffer.add(chunk.text[place : place + _PIECE])
        redacted.emit(CommandOutput(None, chunk.text))

    session.emit(OwnCommandStarted(command))
    try:
        result = await run_command(
            shell_argv(command),
            cwd=session.project.root,
            limit=_TIMEOUT,
            hide=settings.hide_env,
            passed=settings.pass_env,
            on_output=on_output,
        )
        outcome = _in_words(result)
        redacted.emit(OwnCommandFinished(command, outcome))
    finally:
        output = "\n".join(map(remove_escapes, buffer.text().split("\n"))).replace(
            "\0", "\ufffd"
        )
        printed = (
            f"It printed:\n\n{fenced(output)}"
            if output.strip()
            else "It printed nothing."
        )
        ran = f"I ran a command of my own in the project:\n\n{fenced(command, 'sh')}"
        session.chat.add_context(f"{ran}\n\n{outcome or 'Exit code 0'}\n\n{printed}")


def _in_words(result: CommandResult) -> str:
    """Return how a command ended; empty after success."""
    if not result.started:
        return result.stderr
    if result.return_code < 0:
        names = {signal_kind.value: signal_kind.name for signal_kind in signal.Signals}
        return (
            "Ended by"
            f" {names.get(-result.return_code, f'signal {-result.return_code}')}"
        )
    return f"Exit code {result.return_code}" if result.return_code else ""
