"""The text of `cdd --help`."""

import shutil
from collections.abc import Iterable, Iterator, Mapping
from textwrap import dedent, fill, indent, wrap

from cdd_agent.commands.catalogue import in_groups
from cdd_agent.commands.declaration import Command, Parameter, TerminalFront, Times
from cdd_agent.errors import ExitCode

_WIDEST = 80
_NARROWEST = 40
_DESCRIPTION = (
    "A terminal shell in which a ticket becomes verified code. Without a command, cdd"
    " opens the shell."
)
_START = (
    ("cdd demo", "watch a sample ticket run: no model, no key"),
    ("cdd init", "make this folder a cdd project"),
    ("cdd model", "set up a model, or type /model in the shell"),
    ("cdd new feature login", "create the ticket feature-login"),
    ("cdd socrates feature-login", "work out its spec in the shell"),
    ("cdd plan feature-login", "turn the spec into a plan"),
    ("cdd exec feature-login", "carry out the plan and run its checks"),
    ("cdd", "do all of this in the shell"),
)
EXIT_CODES = (
    (ExitCode.DONE, "done"),
    (ExitCode.FAILED, "a step failed"),
    (ExitCode.BAD_INPUT, "wrong input or settings"),
    (ExitCode.NOT_APPROVED, "an approval is missing, or the budget is spent"),
    (ExitCode.COME_BACK_LATER, "the provider asks to come back later"),
    (ExitCode.INTERRUPTED, "interrupted"),
)
_MORE = (
    "`cdd help COMMAND` shows the arguments of a command, with examples. For a ticket,"
    " type its slug. Commands that only show something also take its beginning, or"
    " words of it that no other ticket has."
)


def overview(commands: Mapping[str, Command], options: Iterable[Parameter]) -> str:
    width = help_width()
    parts = [
        "usage: cdd [OPTIONS] [COMMAND ...]",
        fill(_DESCRIPTION, width, break_on_hyphens=False),
        _section("Start here", _START, width),
    ]
    for group, members in in_groups(commands):
        rows = [(command.name, command.summary) for command in members]
        parts.append(_section(group, rows, width))
    parts.append(_section("Options", map(_describe, options), width))
    parts.append(_section("Exit codes", _code_rows(EXIT_CODES), width))
    parts.append(fill(_MORE, width, break_on_hyphens=False))
    return "\n\n".join(parts) + "\n"


def help_width() -> int:
    columns = shutil.get_terminal_size().columns
    return max(_NARROWEST, min(columns, _WIDEST))


def command_notes(front: TerminalFront) -> str:
    width = help_width()
    examples = dedent(front.examples).strip()
    parts = ["examples:\n" + indent(examples, "  ")]
    if front.notes:
        # Multi-line notes, such as a sample file, keep their lines.
        is_prose = "\n" not in front.notes
        notes = front.notes
        if is_prose:
            notes = fill(notes, width, break_on_hyphens=False)
        parts.append(notes)
    if front.exit_codes:
        parts.append(_section("exit codes", _code_rows(front.exit_codes), width))
    return "\n\n".join(parts)


def _code_rows(codes: Iterable[tuple[int, str]]) -> list[tuple[str, str]]:
    return [(str(int(code)), meaning) for code, meaning in codes]


def _describe(option: Parameter) -> tuple[str, str]:
    value = option.metavar
    if option.times is Times.OPTIONAL:
        value = f"[{value}]"
    names = ", ".join(option.names.split())
    return f"{names} {value}".rstrip(), option.note


def _section(title: str, rows: Iterable[tuple[str, str]], width: int) -> str:
    entries = list(rows)
    column = max(len(name) for name, _ in entries) + 4
    lines = [f"{title}:"]
    for name, text in entries:
        lines += _row(name, text, column, width)
    return "\n".join(lines)


def _row(name: str, text: str, column: int, width: int) -> Iterator[str]:
    first, *continued = wrap(text, width - column, break_on_hyphens=False)
    yield f"  {name}".ljust(column) + first
    for line in continued:
        yield " " * column + line
