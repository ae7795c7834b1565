import shlex
from importlib.resources import files

from cdd_agent.cli.completion_scripts.declared_words import (
    CommandWords,
    flags_with_values,
    read_commands,
)


def bash_script() -> str:
    commands = read_commands()
    template = files(__package__).joinpath("template.bash").read_text("utf-8")
    flags, values = [], []
    for command in commands:
        names = " ".join(name for flag in command.flags for name in flag.names)
        flags.append(f"    {shlex.quote(command.name)}) echo {shlex.quote(names)} ;;")
        values += _value_cases(command)
    return (
        template.replace("    @FLAGS@", "\n".join(flags))
        .replace("@FLAGS_WITH_VALUES@", " | ".join(flags_with_values(commands)))
        .replace("    @VALUES@", "\n".join(values))
    )


def _value_cases(command: CommandWords) -> list[str]:
    cases = []
    for flag in command.flags:
        if flag.values:
            patterns = [shlex.quote(f"{command.name} {name}") for name in flag.names]
            cases.append((" | ".join(patterns), flag.values))
    last = len(command.places) - 1
    for number, values in enumerate(command.places):
        if values:
            pattern = shlex.quote(f"{command.name} {number}")
            if number == last and command.repeats:
                pattern = f"{shlex.quote(f'{command.name} ')}[0-9]*"
            cases.append((pattern, values))
    return [
        f"    {pattern}) echo {shlex.quote(' '.join(values))} ;;"
        for pattern, values in cases
    ]
