"""The names of commands in messages.

A message names a command in a code span, such as `cdd exec SLUG` or `/exec SLUG`. The
shell shows `/exec SLUG`, a terminal shows `cdd exec SLUG`. The words "in the shell" and
"in a terminal" after the name keep the name of the other face.
"""

import re
from enum import Enum

from cdd_agent.commands.catalogue import CATALOGUE, terminal_commands
from cdd_agent.commands.declaration import Command, ValueKind
from cdd_agent.pattern import Pattern

_IN_SHELL = " in the shell"
_IN_TERMINAL = " in a terminal"
_HELP = "help"
"""Both faces have it, although it is no command of the terminal."""
_SPAN = Pattern(
    r"`(?P<mark>cdd |/)(?P<name>[a-z]+)(?P<rest>(?: [^`\n]*)?)`"
    rf"(?P<where>{_IN_SHELL}|{_IN_TERMINAL})?"
)


class Face(Enum):
    """The program that shows a message."""

    SHELL = "shell"
    TERMINAL = "terminal"

    def name_commands(self, text: str) -> str:
        if "`" not in text:
            return text
        if self is Face.TERMINAL:
            return _SPAN.sub(_in_terminal, text)
        return _SPAN.sub(_in_shell, text).replace(f"`{_IN_SHELL}", "`")


def _in_shell(span: re.Match[str]) -> str:
    name, words = span["name"], span["rest"].split()
    if span["mark"] == "/":
        return span[0].removesuffix(_IN_SHELL)
    if name == _HELP and not span["where"]:
        return f"`/{name}{span['rest']}`"
    if span["where"] or name not in terminal_commands():
        return span[0]
    command = CATALOGUE[name]
    if command.slash is None:
        return f"`!cdd {name}{span['rest']}`"
    if "--step" in words and _takes_step(command):
        words.remove("--step")
    flags = {word.partition("=")[0] for word in words if word.startswith("-")}
    if not flags <= command.flags.keys():
        return f"`!cdd {name}{span['rest']}`"
    return f"`{' '.join([f'/{name}', *words])}`"


def _in_terminal(span: re.Match[str]) -> str:
    name, words = span["name"], span["rest"].split()
    if span["mark"] != "/":
        return span[0].removesuffix(_IN_TERMINAL)
    if span["where"] or name not in CATALOGUE:
        return span[0]
    if name == _HELP:
        return f"`cdd {name}{span['rest']}`"
    is_pin = any(word[0] in "+-" and not word.startswith("--") for word in words)
    if name not in terminal_commands() or is_pin:
        return f"{span[0]}{_IN_SHELL}"
    if _takes_step(CATALOGUE[name]) and len(words) > 1:
        words.insert(1, "--step")
    return f"`{' '.join([f'cdd {name}', *words])}`"


def _takes_step(command: Command) -> bool:
    """True if the slash command takes a step's number, which is `--step` in a
    terminal.
    """
    return any(each.kind is ValueKind.STEP for each in command.arguments)
