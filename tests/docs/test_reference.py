"""The generated parts of the pages are what the program says now."""

import re
from typing import get_args

from cdd_agent.commands.catalogue import CATALOGUE
from cdd_agent.engine.ledger_file import EntryKind
from cdd_agent.events.notices import NoticeKind
from cdd_agent.events.shell_events import ShellEvent
from cdd_agent.events.stream import SessionRestored
from cdd_agent.settings.config import declared_settings
from tests.docs.pages import DOCS
from tools import reference
from tools.event_schema import EVENT_TYPES, line_schema
from tools.source_notes import class_notes


def test_each_generated_part_is_current() -> None:
    stale = []
    for path in DOCS.rglob("*.md"):
        text = path.read_text("utf-8")
        if reference.render_page(text) != text:
            stale.append(path.name)
    assert stale == [], "make reference writes them"


def test_each_generated_part_is_on_one_page() -> None:
    names = []
    for path in DOCS.rglob("*.md"):
        names += reference.part_names(path.read_text("utf-8"))
    assert sorted(names) == sorted(reference.PARTS)


def test_each_row_of_a_generated_table_has_its_cells() -> None:
    wrong = []
    for name, render in reference.PARTS.items():
        columns = 0
        for line in render().splitlines():
            is_row = line.startswith("|")
            cells = len(re.findall(r"(?<!\\)\|", line)) if is_row else 0
            if is_row and columns and cells != columns:
                wrong.append((name, line))
            columns = cells
    assert wrong == []


def test_the_commands_have_each_argument_flag_and_exit_code() -> None:
    shared = reference.shared_parameters()
    sections = f"\n{reference.commands()}".split("\n#### ")
    assert [part.partition("\n")[0] for part in sections[1:]] == list(CATALOGUE)
    for section, command in zip(sections[1:], CATALOGUE.values(), strict=True):
        for parameter in command.parameters:
            name = parameter.name if parameter.is_flag else parameter.value_name
            assert name in section
            place = shared if reference.is_shared(parameter) else section
            assert re.sub(r" See docs/.*", "", parameter.note) in place
        codes = command.terminal.exit_codes if command.terminal else ()
        assert all(f"{int(code)}: {meaning}" in section for code, meaning in codes)


def test_a_flag_with_another_meaning_is_not_shared() -> None:
    flags = {each.name: each for each in CATALOGUE["plan"].parameters}
    assert reference.is_shared(flags["--model"])
    # `cdd plan --yes` writes a plan with errors
    assert not reference.is_shared(flags["--yes"])


def test_a_pointer_to_a_page_is_a_link() -> None:
    assert "See docs/" not in reference.commands()
    assert (
        "See [several-tickets](../how-to/several-tickets.md)." in reference.commands()
    )


def test_the_settings_are_all_there() -> None:
    settings = reference.settings()
    for setting in declared_settings():
        assert setting.is_section or f"| `{setting.name}` |" in settings


def test_each_event_is_in_one_group() -> None:
    grouped = [
        event
        for unions in reference.EVENT_GROUPS.values()
        for union in unions
        for event in get_args(union)
    ]
    assert len(grouped) == len(set(grouped))
    shell_only = {*get_args(ShellEvent), SessionRestored}
    assert {*grouped} | shell_only == {*EVENT_TYPES}


def test_each_event_has_a_sentence_of_its_own() -> None:
    for event in EVENT_TYPES:
        assert (event.__doc__ or "").rstrip().endswith("."), event


def test_the_kinds_that_stop_a_run_are_listed() -> None:
    kinds = re.findall(r"^- `(\w+)`", reference.stop_kinds(), re.MULTILINE)
    assert {*kinds} >= {NoticeKind.NOT_APPROVED, NoticeKind.NO_BUDGET}
    assert {*kinds} <= {*NoticeKind}


def test_the_schema_explains_each_kind_of_notice() -> None:
    text = line_schema()["$defs"]["NoticeKind"]["description"]
    assert re.findall(r"^- `(\w+)`: .+\.$", text, re.MULTILINE) == list(NoticeKind)


def test_the_schema_has_the_notes_of_fields() -> None:
    definitions = line_schema()["$defs"]
    finished = definitions["RunFinished"]["properties"]
    assert "without waiting for the user" in finished["seconds"]["description"]
    # a note of a base class
    assert (
        "such as `1b`"
        in definitions["StepStarted"]["properties"]["label"]["description"]
    )


def test_notes_are_read_from_the_source() -> None:
    assert class_notes(EntryKind)["STARTED"] == "A command or a check starts."
    assert set(class_notes(NoticeKind)) == set(NoticeKind.__members__)
    assert class_notes(dict) == {}
