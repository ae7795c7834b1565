"""The reference of all commands, as Markdown."""

from cdd_agent.commands.catalogue import CATALOGUE, in_groups
from cdd_agent.commands.declaration import Command, Front, Parameter, ValueKind


def render_reference() -> str:
    """Return a section for each command, with its arguments and flags in a table."""
    parts = []
    for group, members in in_groups(CATALOGUE):
        parts.append(f"## {group}")
        parts += [_render_command(command) for command in members]
    return "\n\n".join(parts) + "\n"


def _render_command(command: Command) -> str:
    lines = [f"### {command.name}", "", f"{command.summary}."]
    if command.slash is not None:
        lines += ["", f"In the shell: `{command.synopsis}`. {command.slash.help}"]
    if command.terminal is not None:
        usage = f"cdd {command.name}"
        if command.terminal.notes and "\n" not in command.terminal.notes:
            lines += ["", f"In a terminal: `{usage}`. {command.terminal.notes}"]
        else:
            lines += ["", f"In a terminal: `{usage}`."]
    if command.parameters:
        lines += ["", "| argument or flag | meaning | where |", "|---|---|---|"]
        for parameter in command.parameters:
            where = _describe_fronts(command, parameter)
            lines.append(f"| {_render_names(parameter)} | {parameter.note} | {where} |")
    if command.terminal is not None and command.terminal.exit_codes:
        lines += ["", "| exit code | meaning |", "|---|---|"]
        codes = command.terminal.exit_codes
        lines += [f"| {int(code)} | {meaning} |" for code, meaning in codes]
    return "\n".join(lines)


def _describe_fronts(command: Command, parameter: Parameter) -> str:
    if parameter.only is Front.SHELL or command.terminal is None:
        return "shell"
    if parameter.only is Front.TERMINAL or command.slash is None:
        return "terminal"
    return "both"


def _render_names(parameter: Parameter) -> str:
    names = ", ".join(f"`{name}`" for name in parameter.names.split())
    if not parameter.is_flag:
        # a bar would end the cell of the table
        names = f"`{parameter.value_name}`".replace("|", "` or `")
    elif parameter.choices:
        names += f" `{'` or `'.join(parameter.choices)}`"
    elif parameter.kind is not ValueKind.SWITCH:
        names += f" `{parameter.value_name}`"
    return names
