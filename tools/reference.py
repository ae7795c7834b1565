"""Write the generated parts of the reference pages (`make reference`).

A generated part is between the lines `<!-- generated: NAME -->` and `<!-- end -->`. A
test compares all of them with the program's current state.
"""

import ast
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from inspect import cleandoc, getmodule, getsource
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import get_args

import yaml

from cdd_agent.cli.overview_help import EXIT_CODES
from cdd_agent.commands.catalogue import CATALOGUE, in_groups
from cdd_agent.commands.declaration import Command, Front, Parameter, ValueKind
from cdd_agent.engine import ledger_file
from cdd_agent.events import notices, shell_events, stream
from cdd_agent.events.base_event import event_name
from cdd_agent.events.stream import Event
from cdd_agent.fleet.board_lines import AnyBoardLine
from cdd_agent.llm.providers import PROVIDERS
from cdd_agent.process.policy import ALWAYS_ALLOWED
from cdd_agent.refusals.page import explain_all
from cdd_agent.settings.config import DeclaredSetting, declared_settings
from cdd_agent.settings.descriptions import SettingGroup
from cdd_agent.settings.reading import FROM_ENVIRONMENT
from cdd_agent.trust.rules import SETTINGS, NeedsTrust
from cdd_agent.verification.rules import (
    CHANGE_RULES,
    CHECK_RULES,
    RESULT_RULES,
    CheckRule,
    StepRule,
)

DOCS = Path(__file__).parents[1] / "docs"
_PART = re.compile(
    r"(?P<begin><!-- generated: (?P<name>[\w-]+) -->\n).*?(?P<end><!-- end -->)",
    re.DOTALL,
)
COMMON_FLAGS = ("--json", "--yes", "--model", "--record", "--api-base")
"""Flags with one meaning in all commands."""
_REFUSALS_PAGE = "../how-to/refused.md"


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    titles = list(head)
    lines = [f"| {' | '.join(titles)} |", f"|{'---|' * len(titles)}"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines)


# --- Commands -------------------------------------------------------------------------


def commands() -> str:
    """Return a section for each command, with its arguments and flags."""
    parts = []
    for group, members in in_groups(CATALOGUE):
        parts.append(f"### {group}")
        parts += [_command(command) for command in members]
    return "\n\n".join(parts)


def _command(command: Command) -> str:
    uses = []
    if command.terminal is not None:
        uses.append(f"`cdd {command.name}`")
    if command.slash is not None:
        uses.append(f"`{command.synopsis}`")
    text = command.slash.help if command.slash else f"{command.summary}."
    parts = [f"#### {command.name}", f"{', '.join(uses)}: {text}"]
    front = command.terminal
    if front is not None and front.notes and "\n" not in front.notes:
        parts.append(front.notes)
    rows = []
    for parameter in command.parameters:
        if parameter.name not in COMMON_FLAGS:
            where = _where(command, parameter)
            rows.append((_names(parameter), f"{parameter.note}{where}"))
    if rows:
        parts.append(table(("argument or flag", "meaning"), dict.fromkeys(rows)))
    common = [
        f"`{parameter.name}`"
        for parameter in command.parameters_in(Front.TERMINAL)
        if parameter.name in COMMON_FLAGS and front is not None
    ]
    if common:
        parts.append(f"In a terminal also {', '.join(common)}.")
    if front is not None and front.exit_codes:
        codes = [f"{int(code)}: {meaning}" for code, meaning in front.exit_codes]
        parts.append(f"Exit code {'; '.join(codes)}.")
    return "\n\n".join(parts)


def _where(command: Command, parameter: Parameter) -> str:
    is_flag_of_both = command.terminal is not None and command.slash is not None
    if not is_flag_of_both or parameter.only is None or not parameter.is_flag:
        return ""
    return " (in the shell)" if parameter.only is Front.SHELL else " (in a terminal)"


def _names(parameter: Parameter) -> str:
    names = ", ".join(f"`{name}`" for name in parameter.names.split())
    if not parameter.is_flag:
        # a bar would end the cell of the table
        return f"`{parameter.value_name}`".replace("|", "` or `")
    if parameter.choices:
        return f"{names} `{'` or `'.join(parameter.choices)}`"
    if parameter.kind is not ValueKind.SWITCH:
        return f"{names} `{parameter.value_name}`"
    return names


def common_flags() -> str:
    parameters = CATALOGUE["exec"].parameters_in(Front.TERMINAL)
    rows = [
        (_names(parameter), parameter.note)
        for parameter in parameters
        if parameter.name in COMMON_FLAGS
    ]
    return table(("flag", "meaning"), rows)


def exit_codes() -> str:
    rows = [(str(int(code)), meaning) for code, meaning in EXIT_CODES]
    return table(("code", "meaning"), rows)


def allowed_programs() -> str:
    return ", ".join(f"`{name}`" for name in sorted(ALWAYS_ALLOWED)) + "."


# --- Settings -------------------------------------------------------------------------


def settings() -> str:
    """Return a table of settings for each group."""
    declared = list(declared_settings())
    parts = []
    for group in SettingGroup:
        rows = [
            _setting(setting)
            for setting in declared
            if setting.description is not None and setting.description.group is group
        ]
        parts += [f"### {group}", table(("setting", "default", "meaning"), rows)]
    return "\n\n".join(parts)


def _setting(setting: DeclaredSetting) -> tuple[str, str, str]:
    description = setting.description
    assert description is not None
    text = description.purpose
    if description.choices:
        choices = [f"`{key}`: {words}" for key, words in description.choices.items()]
        text = f"{text}. {'; '.join(choices)}"
    if description.unset:
        text += f". `null`: {description.unset}"
    return f"`{setting.name}`", f"`{_default(setting)}`", text.replace("|", "\\|")


def _default(setting: DeclaredSetting) -> str:
    value = setting.default
    if setting.name == "models":
        value = {}
    if isinstance(value, tuple):
        value = list(value)
    shown = yaml.safe_dump(value, default_flow_style=True, width=1000).strip()
    return shown.removesuffix("...").strip()


def variables() -> str:
    return ", ".join(f"`CDD_{name.upper()}`" for name in FROM_ENVIRONMENT) + "."


def trusted_settings() -> str:
    rows = [
        (f"`{name}`", rule.why)
        for name, rule in SETTINGS.items()
        if isinstance(rule, NeedsTrust)
    ]
    return table(("setting", "reason"), rows)


# --- Events ---------------------------------------------------------------------------


def events() -> str:
    """Return a table of events for each module that declares some."""
    modules: dict[str, tuple[ModuleType, list[type]]] = {}
    for kind in (*get_args(Event), *get_args(AnyBoardLine)):
        module = getmodule(kind)
        if module is stream:
            module = shell_events
        assert module is not None
        modules.setdefault(module.__name__, (module, []))[1].append(kind)
    parts = []
    for module, kinds in modules.values():
        title = _first_sentence(module).partition(":")[0]
        rows = [(f"`{event_name(each.__name__)}`", _note(each)) for each in kinds]
        parts += [f"### {title}", table(("event", "meaning"), rows)]
    return "\n\n".join(parts)


def _first_sentence(documented: ModuleType | type) -> str:
    text = " ".join(cleandoc(documented.__doc__ or "").split("\n\n")[0].split())
    return re.split(r"\.(?:\s|$)", text)[0]


def _note(documented: type) -> str:
    return " ".join(cleandoc(documented.__doc__ or "").split("\n\n")[0].split())


def notice_kinds() -> str:
    return _members(notices, "NoticeKind", "kind")


def ledger_kinds() -> str:
    return _members(ledger_file, "EntryKind", "kind")


def _members(module: ModuleType, enum: str, title: str) -> str:
    """Return a table of an enum's members with their notes."""
    rows = [(f"`{value}`", note) for value, note in _noted_members(module, enum)]
    return table((title, "meaning"), rows)


def _noted_members(module: ModuleType, enum: str) -> Iterator[tuple[str, str]]:
    tree = ast.parse(getsource(module))
    (body,) = (
        node.body
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name == enum
    )
    for member, note in pairwise(body):
        if not isinstance(member, ast.Assign) or not isinstance(note, ast.Expr):
            continue
        yield _constant(member.value), " ".join(_constant(note.value).split())


def _constant(node: ast.expr) -> str:
    assert isinstance(node, ast.Constant)
    return str(node.value)


# --- Verification, models, refusals ---------------------------------------------------


def verification_rules() -> str:
    rows = []
    rules: Sequence[StepRule | CheckRule]
    rules = (*CHANGE_RULES, *CHECK_RULES, *RESULT_RULES)
    for rule in rules:
        refusal = rule.refusal
        link = ""
        if refusal is not None:
            link = f"[{refusal.id}]({_REFUSALS_PAGE}#{refusal.id})"
        rows.append((rule.seen, rule.verdict, link))
    return table(("if", "the step is", "refusal"), rows)


def providers() -> str:
    rows = []
    for name, provider in PROVIDERS.items():
        keys = ", ".join(f"`{variable}`" for variable in provider.keys)
        rows.append((f"`{name}/`", keys, provider.address, provider.speaks.value))
    return table(("prefix", "key", "address", "protocol"), rows)


PARTS: Mapping[str, Callable[[], str]] = {
    "commands": commands,
    "common-flags": common_flags,
    "exit-codes": exit_codes,
    "allowed-programs": allowed_programs,
    "settings": settings,
    "variables": variables,
    "trusted-settings": trusted_settings,
    "events": events,
    "notice-kinds": notice_kinds,
    "ledger-kinds": ledger_kinds,
    "rules": verification_rules,
    "providers": providers,
    "refusals": lambda: explain_all().rstrip("\n"),
}
"""The generated parts by name."""


def render_page(text: str) -> str:
    """Return a page with its generated parts up to date."""

    def replace(match: re.Match[str]) -> str:
        return f"{match['begin']}\n{PARTS[match['name']]()}\n\n{match['end']}"

    return _PART.sub(replace, text)


def part_names(text: str) -> list[str]:
    """Return the names of the generated parts of a page."""
    return [match["name"] for match in _PART.finditer(text)]


def main() -> None:
    for page in sorted(DOCS.rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        rendered = render_page(text)
        if rendered != text:
            page.write_text(rendered, encoding="utf-8")
            sys.stdout.write(f"{page.relative_to(DOCS.parent)}\n")


if __name__ == "__main__":
    main()
