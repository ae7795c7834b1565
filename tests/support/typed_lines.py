"""Questions of tests about lines that a user types."""

from cdd_agent.commands.registry import read_command


def command_hint(line: str) -> str:
    """Return the effect of Enter on a command; empty for other lines."""
    command = read_command(line)
    return "" if command is None else command.hint


def can_run_now(line: str) -> bool:
    """True if the line may run while something else runs."""
    command = read_command(line)
    return command is not None and command.runs_beside
