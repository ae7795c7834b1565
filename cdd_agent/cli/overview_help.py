"""The text of `cdd --help`: how to begin, then the commands in their groups."""

import shutil
from collections.abc import Iterable, Iterator
from textwrap import dedent, fill, indent, wrap

from cdd_agent.commands.catalogue import CATALOGUE, in_groups
from cdd_agent.commands.terminal import Argument
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
    ("cdd socrates login", "work out its spec in the shell"),
    ("cdd plan login", "turn the spec into a plan"),
    ("cdd exec login", "carry out the plan and run its checks"),
    ("cdd", "do all of this in the shell"),
)
_EXIT_CODES = (
    (ExitCode.DONE, "done"),
    (ExitCode.FAILED, "a step failed"),
    (ExitCode.BAD_INPUT, "wrong input or settings"),
    (ExitCode.NOT_APPROVED, "an approval is missing, or the budget is spent"),
    (ExitCode.COME_BACK_LATER, "the provider asks to come back later"),
    (ExitCode.INTERRUPTED, "interrupted"),
)
_MORE = (
    "`cdd help COMMAND` shows the arguments of a command, with examples. For a ticket,"
    " type its slug, its beginning, or words of it that no other ticket has."
)


def overview(names: Iterable[str], options: Iterable[Argument]) -> str:
    """Return the help on all commands, as wide as the terminal."""
    width = help_width()
    parts = [
        "usage: cdd [OPTIONS] [COMMAND ...]",
        fill(_DESCRIPTION, width),
        _section("Start here", _START, width),
    ]
    for group, members in in_groups(names):
        rows = [(name, CATALOGUE[name].summary) for name in members]
        parts.append(_section(group, rows, width))
    parts.append(_section("Options", map(_describe, options), width))
    codes = [(str(int(code)), meaning) for code, meaning in _EXIT_CODES]
    parts.append(_section("Exit codes", codes, width))
    parts.append(fill(_MORE, width))
    return "\n\n".join(parts) + "\n"


def help_width() -> int:
    """Return the number of columns for help."""
    columns = shutil.get_terminal_size().columns
    return max(_NARROWEST, min(columns, _WIDEST))


def examples_and_notes(text: str) -> str:
    """Lay out the examples of a command, and the notes below them."""
    width = help_width()
    examples, *notes = dedent(text).strip().split("\n\n")
    parts = ["examples:\n" + indent(examples, "  ")]
    for note in notes:
        lines = note.split("\n")
        is_prose = not any(line.startswith((" ", "-")) for line in lines)
        parts.append(fill(note, width) if is_prose else note)
    return "\n\n".join(parts)


def _describe(option: Argument) -> tuple[str, str]:
    value = option.options.get("metavar", "")
    if value and option.options.get("nargs") == "?":
        value = f"[{value}]"
    names = ", ".join(option.names)
    return f"{names} {value}".rstrip(), option.options["help"]


def _section(title: str, rows: Iterable[tuple[str, str]], width: int) -> str:
    known = list(rows)
    column = max(len(name) for name, _ in known) + 4
    lines = [f"{title}:"]
    for name, text in known:
        lines += _row(name, text, column, width)
    return "\n".join(lines)


def _row(name: str, text: str, column: int, width: int) -> Iterator[str]:
    first, *others = wrap(text, width - column)
    yield f"  {name}".ljust(column) + first
    for line in others:
        yield " " * column + line
