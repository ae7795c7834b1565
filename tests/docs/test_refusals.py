"""Each refusal has a kind, and the help and the docs explain each kind."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from cdd_agent.changes.model import ReplyFault, ReplyRefused
from cdd_agent.cli.invocation import Invocation
from cdd_agent.cli.main import main
from cdd_agent.cli.refusal_help import print_refusal_help
from cdd_agent.commands.catalogue import CATALOGUE
from cdd_agent.commands.help import agents_help, help_on, help_topics
from cdd_agent.errors import BadInput
from cdd_agent.refusals.kinds import Refusal, RefusalGroup
from cdd_agent.settings.config import declared_settings
from cdd_agent.verification.rules import CHANGE_RULES, CHECK_RULES, RESULT_RULES
from cdd_agent.wording.faces import Face
from tests.support.tables import each_row

PACKAGE = Path(__file__).parents[2] / "cdd_agent"
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "refused.md"
SAY_ALL = (
    *("cli/", "commands/", "llm/model_search.py"),
    *("session/session.py", "tui/themes.py", "errors.py"),
)
"""Modules that may make a `BadInput` about a typed line: its message says all."""
WITHOUT_KIND = ("WrongUsage", "NoSuchStep")
"""Errors about a typed line: their message says all."""
PLAIN = {"CddError", "BadInput", "StepFailed"}


class Code(NamedTuple):
    """What the package says about its errors."""

    without_kind: dict[str, list[str]]
    """By module: errors of a general class that are made without a kind."""
    bases: dict[str, set[str]]
    """The bases of each class."""
    with_kind: set[str]
    """Classes that have a kind, or give their errors one."""
    used: set[str]
    """The names of the kinds that the package uses."""


@cache
def read_code() -> Code:
    code = Code({}, {}, set(), set())
    for path in PACKAGE.rglob("*.py"):
        module = path.relative_to(PACKAGE).as_posix()
        text = path.read_text(encoding="utf-8")
        if module.startswith("demo/project/"):
            continue
        lines = text.splitlines()
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.Call | ast.ClassDef | ast.Attribute):
                continue
            match node:
                case ast.Call(func=ast.Name(id=name), keywords=keywords):
                    given = {keyword.arg for keyword in keywords}
                    if name in PLAIN and "refusal" not in given:
                        line = f"{node.lineno}: {ast.unparse(node)}"
                        code.without_kind.setdefault(module, []).append(line)
                case ast.ClassDef(name=name, bases=bases) if name not in PLAIN:
                    code.bases[name] = {b.id for b in bases if isinstance(b, ast.Name)}
                    body = lines[node.lineno - 1 : node.end_lineno]
                    if any(re.search(r"\brefusal = ", line) for line in body):
                        code.with_kind.add(name)
                case ast.Attribute(value=ast.Name(id="Refusal"), attr=attribute):
                    code.used.add(attribute)
    return code


def test_an_error_of_a_general_class_names_its_kind() -> None:
    wrong = read_code().without_kind.items()
    assert {
        module: lines for module, lines in wrong if not module.startswith(SAY_ALL)
    } == {}


def test_an_error_of_a_special_class_has_the_kind_of_its_class() -> None:
    code = read_code()

    def is_error(name: str) -> bool:
        return name in PLAIN or any(map(is_error, code.bases.get(name, ())))

    def has_kind(name: str) -> bool:
        bases = code.bases.get(name, ())
        return name in code.with_kind or any(map(has_kind, bases))

    errors = {name for name in code.bases if is_error(name)} - PLAIN
    assert {name for name in errors if not has_kind(name)} == set(WITHOUT_KIND)


def test_each_kind_is_used() -> None:
    assert set(Refusal.__members__) - read_code().used == set()


def test_each_fault_of_a_reply_has_a_kind_with_its_message() -> None:
    for fault in ReplyFault:
        refused = ReplyRefused("x", fault=fault)
        assert refused.refusal is fault.refusal
        assert refused.for_user == fault.refusal.text.message


def test_the_page_begins_with_links_to_all_kinds() -> None:
    index = PAGE.read_text("utf-8").partition("\n## ")[0]
    links = re.findall(r"\[([\w-]+)\]\(#([\w-]+)\)", index)
    assert links == [(refusal.id, refusal.id) for refusal in in_groups()]


def in_groups() -> list[Refusal]:
    groups = list(RefusalGroup)
    return sorted(Refusal, key=lambda refusal: groups.index(refusal.text.group))


def test_each_rule_that_can_fail_a_step_has_a_kind_and_no_other() -> None:
    for rule in (*CHANGE_RULES, *CHECK_RULES, *RESULT_RULES):
        can_fail = "failed" in rule.verdict or "stops" in rule.verdict
        assert (rule.refusal is not None) is can_fail, rule.seen


def test_an_id_is_no_other_topic_of_the_help() -> None:
    others = {*CATALOGUE, *agents_help(), "keys"}
    assert others & {refusal.id for refusal in Refusal} == set()
    assert {refusal.id for refusal in Refusal} <= set(help_topics())


@each_row("refusal", list(Refusal))
def test_the_help_and_a_terminal_explain_each_kind(
    refusal: Refusal, capsys: pytest.CaptureFixture[str]
) -> None:
    print_refusal_help(Invocation(), refusal.id)
    printed = " ".join(capsys.readouterr().out.split())
    for text in (refusal.text.reason, Face.TERMINAL.name_commands(refusal.text.remedy)):
        assert text in printed
        assert refusal.text.remedy in help_on(refusal.id)


def test_help_takes_the_id(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "disk"]) == 0
    assert Refusal.DISK.text.remedy in " ".join(capsys.readouterr().out.split())


def test_the_page_has_each_kind_once_and_no_other() -> None:
    headings = re.findall(r"^### (.+)$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert sorted(headings) == sorted(refusal.id for refusal in Refusal)


def spans() -> Iterator[tuple[Refusal, str]]:
    for refusal in Refusal:
        for text in (refusal.text.reason, refusal.text.remedy):
            for span in re.findall(r"`([^`]+)`", text):
                yield refusal, span


def test_each_command_of_a_remedy_exists() -> None:
    wrong = []
    for refusal, span in spans():
        match = re.match(r"(?:cdd |/)([a-z]+)(.*)", span)
        if match is None:
            continue
        command = CATALOGUE.get(match[1])
        flags = (
            {name for word in command.parameters for name in word.names.split()}
            if (command)
            else set()
        )
        missing = set(re.findall(r"--[a-z-]+", match[2])) - flags
        if command is None or missing:
            wrong.append((refusal.id, span))
    assert wrong == []


def test_each_setting_of_a_remedy_exists() -> None:
    names = {setting.name for setting in declared_settings()}
    for refusal, span in spans():
        name = re.match(r"([a-z]+\.[a-z]+|[a-z]+_[a-z_]+)(?:: \w+)?$", span)
        if name and not span.endswith((".md", ".py", ".yaml")):
            assert name[1] in names, refusal.id


@each_row(
    ("hint", "remedy"),
    [
        ("", "See `cdd help disk`."),
        ("Make room", "Make room. See `cdd help disk`."),
        ("Make room.", "Make room. See `cdd help disk`."),
    ],
)
def test_the_remedy_is_one_line_with_the_hint(hint: str, remedy: str) -> None:
    assert BadInput("x", hint=hint, refusal=Refusal.DISK).remedy == remedy
    assert BadInput("x", hint=hint).remedy == hint


def test_each_face_names_its_own_help() -> None:
    text = Refusal.DISK.reference
    assert Face.SHELL.name_commands(text) == "See `/help disk`."
    assert Face.TERMINAL.name_commands(text) == "See `cdd help disk`."
    assert Face.TERMINAL.name_commands("`/help disk`") == "`cdd help disk`"
