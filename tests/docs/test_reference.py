"""The generated parts of the pages are what the program says now."""

import re

from cdd_agent.commands.catalogue import CATALOGUE
from cdd_agent.events.notices import NoticeKind
from cdd_agent.settings.config import declared_settings
from tests.docs.pages import DOCS
from tools import reference


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
    sections = f"\n{reference.commands()}".split("\n#### ")
    assert [part.partition("\n")[0] for part in sections[1:]] == list(CATALOGUE)
    for section, command in zip(sections[1:], CATALOGUE.values(), strict=True):
        for parameter in command.parameters:
            is_common = parameter.name in reference.COMMON_FLAGS
            assert (parameter.name if is_common else parameter.note) in section
        codes = command.terminal.exit_codes if command.terminal else ()
        assert all(f"{int(code)}: {meaning}" in section for code, meaning in codes)


def test_the_settings_and_kinds_are_all_there() -> None:
    settings, kinds = reference.settings(), reference.notice_kinds()
    for setting in declared_settings():
        assert setting.is_section or f"| `{setting.name}` |" in settings
    assert [kind for kind in NoticeKind if f"| `{kind}` |" not in kinds] == []
