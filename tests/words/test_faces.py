"""Each face names commands as its user types them."""

import ast
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import pytest

import cdd_agent
from cdd_agent.commands.catalogue import CATALOGUE, terminal_commands
from cdd_agent.commands.registry import commands
from cdd_agent.wording.describe import describe
from cdd_agent.wording.faces import Face
from tests.support.every_event import EXAMPLES
from tests.support.tables import each_row

PACKAGE = Path(cdd_agent.__file__).parent
NAMES = "|".join(sorted(CATALOGUE, key=len, reverse=True))
NAMED = re.compile(rf"(?<![\w./`~-])(?:/(?:{NAMES})|cdd (?:{NAMES}))\b(?![\w./(-])")
"""A command that is named outside a code span."""
SPAN = re.compile(r"`(cdd |/)([a-z]+)((?: [^`\n]*)?)`")


@each_row(
    ("written", "in_shell", "in_terminal"),
    [
        ("`cdd exec x`", "`/exec x`", "`cdd exec x`"),
        ("`/exec x`", "`/exec x`", "`cdd exec x`"),
        ("`/plan x` in the shell.", "`/plan x`.", "`/plan x` in the shell."),
        ("`cdd init` in a terminal.", "`cdd init` in a terminal.", "`cdd init`."),
        ("type `retry` in the shell.", "type `retry`.", "type `retry` in the shell."),
        ("`/socrates x` asks", "`/socrates x` asks", "`cdd socrates x` asks"),
        ("`cdd undo x --step 2`", "`/undo x 2`", "`cdd undo x --step 2`"),
        ("`/undo x 2`", "`/undo x 2`", "`cdd undo x --step 2`"),
        ("`cdd exec x --worktree`", "`/exec x --worktree`", "`cdd exec x --worktree`"),
        ("`cdd exec x --jobs 2`", "`!cdd exec x --jobs 2`", "`cdd exec x --jobs 2`"),
        ("`cdd pull x`", "`!cdd pull x`", "`cdd pull x`"),
        ("`cdd doctor`", "`!cdd doctor`", "`cdd doctor`"),
        ("`/context +a.py`", "`/context +a.py`", "`/context +a.py` in the shell"),
        ("`/conversation`", "`/conversation`", "`/conversation` in the shell"),
        ("`/model`", "`/model`", "`cdd model`"),
        ("`git status` cdd exec", "`git status` cdd exec", "`git status` cdd exec"),
        ("`/etc/exec` `cdd`", "`/etc/exec` `cdd`", "`/etc/exec` `cdd`"),
    ],
)
def test_a_command_has_the_name_of_the_face(
    written: str, in_shell: str, in_terminal: str
) -> None:
    assert Face.SHELL.name_commands(written) == in_shell
    assert Face.TERMINAL.name_commands(written) == in_terminal


class _Texts(ast.NodeVisitor):
    """The texts of a module that are not docstrings, with their lines. Values in
    f-strings count as SLUG.
    """

    def __init__(self) -> None:
        self.texts: list[tuple[int, str]] = []

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.visit(node.value)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self.texts.append((node.lineno, node.value))

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        parts = []
        for part in node.values:
            is_text = isinstance(part, ast.Constant)
            parts.append(str(part.value) if is_text else "SLUG")  # type: ignore[attr-defined]
            if not is_text:
                self.visit(part)
        self.texts.append((node.lineno, "".join(parts)))


@cache
def _texts() -> Mapping[str, Sequence[tuple[int, str]]]:
    """Return the texts of each module of the package."""
    texts = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        visitor = _Texts()
        visitor.visit(ast.parse(path.read_text(encoding="utf-8")))
        texts[path.relative_to(PACKAGE).as_posix()] = visitor.texts
    return texts


in_one_worker = pytest.mark.xdist_group("texts of the package")
"""The texts are read once."""


_COMMAND_LINES = {
    "cli/overview_help.py": "the text of `cdd --help`",
    "cli/parser.py": "messages about what was typed after cdd",
    "commands/declarations/tickets.py": "examples, and notes for a terminal",
    "commands/declarations/work.py": "the same",
    "commands/declarations/changes.py": "the same",
    "commands/declarations/context.py": "the same",
    "commands/declarations/setup.py": "the same",
    "commands/declarations/shell.py": "the same",
}
"""Modules whose texts are for one face alone."""


@in_one_worker
def test_a_sentence_names_a_command_in_a_code_span() -> None:
    """The face finds it there. A text that is a line to type has no sentence."""
    wrong = []
    for module, texts in _texts().items():
        if module in _COMMAND_LINES:
            continue
        # The shell's screens need no mark at its own commands.
        own = "/" if module.startswith(("tui/", "commands/welcome")) else None
        for line, text in texts:
            is_sentence = re.search(r"[a-z]\S* .*[.:;,?]( |$)", text) is not None
            outside = re.sub(r"`[^`]*`", "", text)
            for found in NAMED.finditer(outside) if is_sentence else ():
                if found[0][0] != own:
                    wrong.append(f"{module}:{line}: {found[0]} in {text[:80]!r}")
    assert wrong == [], "\n".join(wrong)


def test_every_command_that_an_event_names_exists_in_the_face() -> None:
    for event in EXAMPLES:
        for text, _ in describe(event, Face.SHELL):
            for mark, name, _ in SPAN.findall(text):
                named = (mark, name in commands())
                assert named == ("/", True) or "in a terminal" in text, text
        for text, _ in describe(event, Face.TERMINAL):
            for mark, name, _ in SPAN.findall(text):
                named = (mark, name in terminal_commands())
                assert named == ("cdd ", True) or "in the shell" in text, text


def test_the_shell_describes_events_as_the_shell() -> None:
    wrong = []
    for path in (PACKAGE / "tui").rglob("*.py"):
        calls = re.findall(r"\bdescribe\(([^)]*)\)", path.read_text(encoding="utf-8"))
        wrong += [f"{path.name}: {call}" for call in calls if "Face.SHELL" not in call]
    assert wrong == []


def _flags(name: str) -> set[str]:
    """Return the flags of a command in the terminal and in the shell."""
    flags = {"-C", "--trust", "--debug", "--help"}
    for parameter in CATALOGUE[name].parameters:
        flags.update(parameter.names.split())
    return flags


@in_one_worker
def test_every_command_in_a_message_can_be_typed() -> None:
    wrong = []
    for module, texts in _texts().items():
        for line, text in texts:
            for mark, name, rest in SPAN.findall(text):
                place = f"{module}:{line}: {mark}{name}{rest}"
                if name not in CATALOGUE:
                    wrong.append(f"{place}: no such command")
                    continue
                typed = re.findall(r" (--?[A-Za-z][a-z-]*)", rest)
                unknown = set(typed) - _flags(name)
                if unknown:
                    wrong.append(f"{place}: no flag {', '.join(unknown)}")
    assert wrong == [], "\n".join(wrong)
