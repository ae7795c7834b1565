"""Write the generated parts of the reference pages (`make reference`).

A generated part is between the lines `<!-- generated: NAME -->` and `<!-- end -->`. A
test compares all of them with the program's current state.
"""

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache
from inspect import cleandoc
from pathlib import Path
from typing import Any, get_args

import yaml
from msgspec import Struct

from cdd_agent.cli.overview_help import EXIT_CODES
from cdd_agent.commands.catalogue import CATALOGUE, in_groups
from cdd_agent.commands.declaration import Command, Front, Parameter, ValueKind
from cdd_agent.engine.ledger_file import EntryKind
from cdd_agent.events.action_events import ActionEvent
from cdd_agent.events.base_event import event_name
from cdd_agent.events.dialogue_events import DialogueEvent
from cdd_agent.events.driven_events import DrivenEvent
from cdd_agent.events.notices import NoticeKind, Words
from cdd_agent.events.outside_events import OutsideEvent
from cdd_agent.events.question_events import QuestionEvent
from cdd_agent.events.run_events import RunEvent
from cdd_agent.events.step_events import StepEvent
from cdd_agent.events.step_summary import StepSummary
from cdd_agent.events.strength_events import StrengthEvent
from cdd_agent.events.ticket_events import TicketEvent
from cdd_agent.events.verify_events import VerifyEvent
from cdd_agent.fleet.board_lines import AnyBoardLine, RunStatusLine
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
from tools.event_schema import in_json_terms
from tools.source_notes import class_notes

DOCS = Path(__file__).parents[1] / "docs"
_PART = re.compile(
    r"(?P<begin><!-- generated: (?P<name>[\w-]+) -->\n).*?(?P<end><!-- end -->)",
    re.DOTALL,
)
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
    parts = [f"#### {command.name}", f"{_uses(command)}: {_purpose(command)}"]
    particular = [each for each in command.parameters if not is_shared(each)]
    for title, fronts in _lists_of_parameters(command):
        lines = [_parameter_line(each) for each in particular if each.only in fronts]
        if lines:
            parts += [*([f"{title}:"] if title else []), "\n".join(lines)]
    shared = [each for each in command.parameters if is_shared(each) and each.is_flag]
    phrases = []
    for title, fronts in _lists_of_parameters(command):
        flags = ", ".join(_in_code(each.name for each in shared if each.only in fronts))
        if flags:
            phrases.append(f"{title.lower()} {flags}".lstrip())
    if phrases:
        parts.append(f"Also {', and '.join(phrases)}.")
    exit_codes = command.terminal.exit_codes if command.terminal else ()
    if exit_codes:
        codes = "; ".join(f"{code:d}: {meaning}" for code, meaning in exit_codes)
        parts.append(f"Exit code {codes}.")
    return "\n\n".join(parts)


def _lists_of_parameters(
    command: Command,
) -> Iterable[tuple[str, Sequence[Front | None]]]:
    """Return the title of each list of parameters, with their fronts."""
    if command.slash is None or command.terminal is None:
        return [("", (None, *Front))]
    return [
        ("", (None,)),
        ("In the shell", (Front.SHELL,)),
        ("In a terminal", (Front.TERMINAL,)),
    ]


def _has_front(command: Command, front: Front) -> bool:
    declared = command.slash if front is Front.SHELL else command.terminal
    return declared is not None


def _uses(command: Command) -> str:
    """Return what is typed in each place, without flags."""
    typed = {}
    for front, sign in ((Front.TERMINAL, "cdd "), (Front.SHELL, "/")):
        if _has_front(command, front):
            parameters = command.parameters_in(front)
            arguments = [each.in_usage for each in parameters if not each.is_flag]
            typed[sign] = " ".join([command.name, *arguments])
    if command.terminal is not None and command.terminal.usage is not None:
        usage = command.terminal.usage.removesuffix(" [OPTIONS]")
        typed["cdd "] = usage.removeprefix("cdd ")
    if len(set(typed.values())) == 1 and len(typed) > 1:
        return f"`cdd {typed['/']}` or `/{command.name}`"
    return ", ".join(f"`{sign}{text}`" for sign, text in typed.items())


def _purpose(command: Command) -> str:
    text = command.slash.help if command.slash else f"{command.summary}."
    front = command.terminal
    if front is None:
        return text
    if front.opens_shell:
        return f"{text} In a terminal, it opens the shell."
    if "\n" in front.notes:
        return text
    return f"{text} {_LINK.sub(_link_to_page, front.notes)}".rstrip()


_LINK = re.compile(r"See docs/(?P<folder>[\w-]+)/(?P<page>[\w-]+)\.md\.")


def _link_to_page(match: re.Match[str]) -> str:
    folder = "" if match["folder"] == "reference" else f"../{match['folder']}/"
    return f"See [{match['page']}]({folder}{match['page']}.md)."


def _parameter_line(parameter: Parameter) -> str:
    return f"- {_names(parameter)}: {_LINK.sub(_link_to_page, parameter.note + '.')}"


def _names(parameter: Parameter) -> str:
    names = ", ".join(_in_code(parameter.names.split()))
    if not parameter.is_flag:
        return f"`{parameter.value_name}`"
    if parameter.choices:
        return f"{names} `{'` or `'.join(parameter.choices)}`"
    if parameter.kind is not ValueKind.SWITCH:
        return f"{names} `{parameter.value_name}`"
    return names


def _meaning(parameter: Parameter) -> tuple[str, str]:
    return _names(parameter), parameter.note


@cache
def _meanings() -> Counter[tuple[str, str]]:
    """Return the number of commands with each argument or flag of the same meaning."""
    meanings: Counter[tuple[str, str]] = Counter()
    for command in CATALOGUE.values():
        meanings.update({_meaning(parameter) for parameter in command.parameters})
    return meanings


def is_shared(parameter: Parameter) -> bool:
    """True if several commands have the parameter, with the same meaning."""
    return _meanings()[_meaning(parameter)] > 1


def shared_parameters() -> str:
    """Return the arguments and flags of several commands."""
    rows = {
        _meaning(parameter): None
        for command in CATALOGUE.values()
        for parameter in command.parameters
        if is_shared(parameter)
    }
    return table(("argument or flag", "meaning"), rows)


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
    choices = [f"`{key}`: {words}" for key, words in description.choices.items()]
    if set(description.choices) == {"true", "false"}:
        # the words about `true` say what the setting is
        text = choices[0]
    elif choices:
        text = f"{text}. {'; '.join(choices)}"
    if description.unset:
        text += f". `null`: {description.unset}"
    return f"`{setting.name}`", f"`{_default(setting)}`", text.replace("|", "\\|")


def _default(setting: DeclaredSetting) -> str:
    value = setting.default
    if isinstance(value, str):
        # `off` without quotes is read as this word, too
        return value
    if setting.name == "models":
        value = {}
    if isinstance(value, tuple):
        value = list(value)
    shown = yaml.safe_dump(value, default_flow_style=True, width=1000).strip()
    return shown.removesuffix("...").strip()


def variables() -> str:
    return ", ".join(f"`CDD_{name.upper()}`" for name in FROM_ENVIRONMENT) + "."


def trusted_settings() -> str:
    return "\n".join(
        f"- `{name}`: {rule.why}"
        for name, rule in SETTINGS.items()
        if isinstance(rule, NeedsTrust)
    )


# --- Events ---------------------------------------------------------------------------

IN_MOST_EVENTS = ("step", "label")
"""Fields that most events about a step have. The page describes them once."""
SHARED_FIELDS: Mapping[type[Struct], str] = {
    StepSummary: "the summary",
    RunStatusLine: "a run",
}
"""Types whose fields the page describes once, with their names there."""
EVENT_GROUPS: Mapping[str, Iterable[Any]] = {
    "Sentences": (Words,),
    "Tickets and plans": (TicketEvent,),
    "A run": (RunEvent,),
    "A step": (StepEvent,),
    "The model": (DialogueEvent,),
    "Questions and answers": (QuestionEvent, DrivenEvent),
    "Changes outside of tickets": (OutsideEvent, ActionEvent),
    "Verifying again": (VerifyEvent, StrengthEvent),
    "Several runs": (AnyBoardLine,),
}
"""The events of `--json` output and of a run's log by group. Only the shell's logs have
others.
"""


def events() -> str:
    """Return a list of events for each group, with their fields."""
    parts = []
    for title, unions in EVENT_GROUPS.items():
        lines = [_event_line(each) for union in unions for each in get_args(union)]
        parts += [f"### {title}", "\n".join(lines)]
    return "\n\n".join(parts)


def _event_line(event: type[Struct]) -> str:
    fields = _event_fields(event)
    with_fields = f" ({fields})" if fields else ""
    return f"- `{event_name(event.__name__)}`{with_fields}: {_first_sentence(event)}"


def _event_fields(event: type[Struct]) -> str:
    words: list[str] = []
    described: set[str] = {*IN_MOST_EVENTS}
    for shared, name in SHARED_FIELDS.items():
        if issubclass(event, shared):
            words.append(name)
            described.update(shared.__struct_encode_fields__)
    fields = [one for one in event.__struct_encode_fields__ if one not in described]
    return ", ".join([*words, *_in_code(fields)])


def _in_code(names: Iterable[str]) -> Iterator[str]:
    return (f"`{name}`" for name in names)


def summary_fields() -> str:
    """Return the fields of the summary of a step."""
    return ", ".join(_in_code(StepSummary.__struct_encode_fields__)) + "."


def run_fields() -> str:
    """Return the fields of a run in the lines about several runs."""
    return ", ".join(_in_code(RunStatusLine.__struct_encode_fields__)) + "."


def _first_sentence(documented: type) -> str:
    text = " ".join(cleandoc(documented.__doc__ or "").split())
    return in_json_terms(re.split(r"(?<=\.)\s", text)[0])


def stop_kinds() -> str:
    """Return a list of the kinds of notices that say why a run stopped."""
    notes = _kinds_with_notes(NoticeKind)
    return "\n".join(
        f"- `{kind}`: {note.removeprefix(_STOPPED)}"
        for kind, note in notes
        if note.startswith(_STOPPED)
    )


def ledger_kinds() -> str:
    rows = [(f"`{kind}`", note) for kind, note in _kinds_with_notes(EntryKind)]
    return table(("kind", "meaning"), rows)


_STOPPED = "The run stopped because "


def _kinds_with_notes(kinds: type[StrEnum]) -> Iterator[tuple[str, str]]:
    notes = class_notes(kinds)
    for kind in kinds:
        yield kind.value, notes[kind.name]


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
        rows.append((f"`{name}/`", keys, provider.address))
    return table(("prefix", "key", "address"), rows)


PARTS: Mapping[str, Callable[[], str]] = {
    "commands": commands,
    "shared-parameters": shared_parameters,
    "exit-codes": exit_codes,
    "allowed-programs": allowed_programs,
    "settings": settings,
    "variables": variables,
    "trusted-settings": trusted_settings,
    "events": events,
    "summary-fields": summary_fields,
    "run-fields": run_fields,
    "stop-kinds": stop_kinds,
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
