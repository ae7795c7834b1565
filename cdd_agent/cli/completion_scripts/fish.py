from importlib.resources import files

from cdd_agent.cli.completion_scripts.declared_words import (
    CommandWords,
    FlagWords,
    Source,
    flags_with_values,
    read_commands,
)

_SOURCES: dict[str, str] = {
    Source.TICKETS: "(__cdd_tickets)",
    Source.FOLDERS: "(__fish_complete_directories)",
}


def fish_script() -> str:
    commands = read_commands()
    template = files(__package__).joinpath("template.fish").read_text("utf-8")
    lines = []
    for command in commands[1:]:
        note = _quote(command.summary)
        lines.append(f"complete -c cdd -n {_at('')} -a {command.name} -d {note}")
    for command in commands:
        lines += [_flag_line(command, flag) for flag in command.flags]
        if command.name:
            lines += _place_lines(command)
    taking = " ".join(flags_with_values(commands))
    return template.replace("@FLAGS_WITH_VALUES@", taking) + "\n".join(lines) + "\n"


def _flag_line(command: CommandWords, flag: FlagWords) -> str:
    parts = [f"complete -c cdd -n {_at(command.name)}"]
    for name in flag.names:
        letter = not name.startswith("--")
        parts.append(f"-s {name[1:]}" if letter else f"-l {name[2:]}")
    if not flag.is_switch:
        parts.append(_offer(flag.values, is_flag=True))
    parts.append(f"-d {_quote(flag.note)}")
    return " ".join(parts)


def _place_lines(command: CommandWords) -> list[str]:
    lines = []
    last = len(command.places) - 1
    for number, values in enumerate(command.places):
        if values:
            place = f"{number}+" if number == last and command.repeats else str(number)
            condition = _at(command.name, place)
            offer = _offer(values, is_flag=False)
            lines.append(f"complete -c cdd -n {condition} {offer}")
    return lines


def _at(command: str, place: str = "") -> str:
    """Return the condition that the line has this command, and this argument is
    next.
    """
    return _quote(f'__cdd_at "{command}" {place}'.rstrip())


def _offer(values: tuple[str, ...], *, is_flag: bool) -> str:
    options = []
    if is_flag:
        options.append("-r" if Source.FILES in values else "-x")
    if Source.FILES in values:
        options.append("-F")
    words = [_SOURCES.get(value, value) for value in values if value != Source.FILES]
    if words:
        options.append(f"-a {_quote(' '.join(words))}")
    return " ".join(options)


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
