import shlex
from importlib.resources import files

from cdd_agent.cli.completion_scripts.declared_words import (
    CommandWords,
    FlagWords,
    read_commands,
)


def zsh_script() -> str:
    start, *commands = read_commands()
    template = files(__package__).joinpath("template.zsh").read_text("utf-8")
    names = [f"    {shlex.quote(f'{each.name}:{each.summary}')}" for each in commands]
    cases = []
    for command in commands:
        specs = [*_flag_specs(command), *_place_specs(command)]
        cases.append(f"        {command.name})")
        cases.append(_call_arguments(specs, indent=" " * 10))
        cases.append("          ;;")
    return (
        template.replace("    @COMMANDS@", "\n".join(names))
        .replace("    @FLAGS@", _lines(_flag_specs(start), indent=" " * 4))
        .replace("        @CASES@", "\n".join(cases))
    )


def _call_arguments(specs: list[str], indent: str) -> str:
    if not specs:
        return f"{indent}_arguments"
    return f"{indent}_arguments \\\n{_lines(specs, f'{indent}  ')}"


def _lines(specs: list[str], indent: str) -> str:
    return " \\\n".join(f"{indent}{shlex.quote(spec)}" for spec in specs)


def _flag_specs(command: CommandWords) -> list[str]:
    return [_flag_spec(flag, name) for flag in command.flags for name in flag.names]


def _flag_spec(flag: FlagWords, name: str) -> str:
    others = f"({' '.join(flag.names)})" if len(flag.names) > 1 else ""
    equals = "=" if name.startswith("--") and not flag.is_switch else ""
    spec = f"{others}{name}{equals}[{_escape(flag.note)}]"
    if flag.is_switch:
        return spec
    return f"{spec}:{_escape(flag.value_name)}:{_action(flag.values)}"


def _place_specs(command: CommandWords) -> list[str]:
    specs = []
    last = len(command.places) - 1
    for number, values in enumerate(command.places):
        # Two colons: it is optional. After a star, they would hide the flags.
        place = f"{number + 1}::"
        if number == last and command.repeats:
            place = "*:"
        specs.append(f"{place}argument:{_action(values)}")
    return specs


def _action(values: tuple[str, ...]) -> str:
    # The blank in front of a function keeps zsh from adding arguments.
    return f" _cdd_offer {' '.join(values)}" if values else " "


def _escape(text: str) -> str:
    for mark in "\\:[]":
        text = text.replace(mark, f"\\{mark}")
    return text
