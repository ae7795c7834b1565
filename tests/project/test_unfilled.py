"""Blanks that `cdd init` leaves for people: no prompt has them while nobody has, and
nothing else is lost.
"""

import re
from pathlib import Path

import pytest

from cdd_agent.commands.agents_file import agents_file
from cdd_agent.project.rules import LONGEST, project_rules
from cdd_agent.project.unfilled import (
    COMMANDS,
    CONVENTIONS,
    DESCRIPTION,
    FOLDER,
    without_unfilled,
)
from cdd_agent.session.open_project import Project
from cdd_agent.settings.config import Config
from cdd_agent.tickets.store import TicketStore
from tests.support.tables import each_row

BESIDE = "- Set up: uv sync"

OWN = "Never touch `schema.sql`."

PLACES = (DESCRIPTION, *COMMANDS.values(), FOLDER, *CONVENTIONS)


@pytest.fixture
def new_page(tmp_path: Path) -> str:
    """AGENTS.md of a project of which nothing is known."""
    text, _ = agents_file(Project(tmp_path, Config(), TicketStore(tmp_path, "tickets")))
    (tmp_path / "AGENTS.md").write_text(text)
    return text


def test_all_that_a_new_page_leaves_open_is_known(new_page: str) -> None:
    assert sorted(re.findall(r"<[^>]{9,}>", new_page)) == sorted(PLACES)


def test_nothing_of_it_is_in_the_rules(new_page: str, tmp_path: Path) -> None:
    rules = project_rules(tmp_path).text
    assert "<" not in rules
    for heading in ("## Commands", "## Where things are", "## Conventions"):
        assert heading in new_page
        assert heading not in rules
    assert "## Tickets\n\n" in rules
    assert "`tickets/`" in rules


def test_what_is_filled_in_stays_with_its_heading(
    new_page: str, tmp_path: Path
) -> None:
    filled = new_page.replace(COMMANDS["build"], "`make`").replace(CONVENTIONS[1], OWN)
    (tmp_path / "AGENTS.md").write_text(filled)
    rules = project_rules(tmp_path).text
    assert "\n\n- Build: `make`\n\n" in rules
    assert f"\n\n- {OWN}\n\n" in rules
    assert "<" not in rules


@each_row("place", PLACES)
def test_a_place_is_known_on_a_line_that_a_formatter_broke_or_a_person_wrote_beside(
    place: str,
) -> None:
    broken = place.replace(" ", "\n  ", 1)
    assert (
        without_unfilled(f"# A\n\nWords.\n\n- {broken}\n- Rule.\n")
        == "# A\n\nWords.\n\n- Rule."
    )
    filled = without_unfilled(f"# A\n\n{BESIDE} {place}\n").strip()
    assert filled == f"# A\n\n{BESIDE}"


@each_row(
    ("written", "kept"),
    [
        ("- `<folder>`: the models", "- the models"),
        ("- `<folder>`: " + FOLDER, ""),
        ("- `src/`: " + FOLDER, ""),
        (f"**Test:** {COMMANDS['test']}", ""),
        (f"- __Test:__ {COMMANDS['test']}", ""),
        ("- Folders are named `<folder>`.", "- Folders are named `<folder>`."),
    ],
)
def test_a_label_goes_with_its_blank(written: str, kept: str) -> None:
    text = f"# A\n\nWords.\n\n{written}\n- Rule.\n"
    assert without_unfilled(text).strip() == (
        f"# A\n\nWords.\n\n{kept}\n- Rule." if kept else "# A\n\nWords.\n\n- Rule."
    )


@each_row(
    "rule",
    [
        "- Branches are called `<ticket>-<what>`.\n",
        "- Use `Vec<T>`, not <T>.\n",
        "<details>\nhow to run the tests\n</details>\n",
        "# Empty on purpose\n\n## Next\n\ntext <br> text\n\n\n\nmore\n",
        "Write to <team@shop.example>: <how to reach us>\n",
    ],
)
def test_other_text_in_angle_brackets_is_a_rule(rule: str) -> None:
    assert without_unfilled(rule) == rule


def test_line_ends_of_windows_change_nothing(new_page: str, tmp_path: Path) -> None:
    rules = project_rules(tmp_path).text
    (tmp_path / "AGENTS.md").write_bytes(new_page.replace("\n", "\r\n").encode())
    assert project_rules(tmp_path).text == rules


@each_row("before", range(LONGEST - 90, LONGEST + 90, 7))
def test_no_part_of_a_blank_is_left_where_a_long_file_is_cut(
    tmp_path: Path, before: int
) -> None:
    text = "x" * before + f"\n\n- {CONVENTIONS[0]}\n\n" + "y" * LONGEST
    (tmp_path / "AGENTS.md").write_text(text)
    assert "<" not in project_rules(tmp_path).text
