"""A project's own rules, and how much of them is used."""

import re
from pathlib import Path

from cdd_agent.project.rules import LONGEST, LONGEST_TOGETHER, project_rules
from tests.support.tables import each_row


def test_without_rules_there_is_nothing_to_say(tmp_path: Path) -> None:
    assert (project_rules(tmp_path).text, project_rules(tmp_path).notes) == ("", ())


def test_all_files_at_the_root_are_read_in_their_order(tmp_path: Path) -> None:
    for name in ("CDD.md", "CLAUDE.md", "AGENTS.md"):
        (tmp_path / name).write_text(f"Rule of {name}\n")
    text = project_rules(tmp_path).text
    assert re.findall(r"Rule of (\w+)", text) == ["AGENTS", "CLAUDE", "CDD"]
    assert text.startswith("## AGENTS.md\n\n")


def test_the_same_rules_are_there_once(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Be brief.\n")
    (tmp_path / "CLAUDE.md").symlink_to("AGENTS.md")
    assert project_rules(tmp_path).text.count("Be brief.") == 1


def test_the_nearest_come_first_up_to_the_top_of_the_repository(tmp_path: Path) -> None:
    root = tmp_path / "repository" / "packages" / "shop"
    root.mkdir(parents=True)
    (tmp_path / "repository" / ".git").mkdir()
    (tmp_path / "AGENTS.md").write_text("outside")
    (tmp_path / "repository" / "AGENTS.md").write_text("far")
    (root / "AGENTS.md").write_text("near")
    text = project_rules(root).text
    assert text.index("near") < text.index("far")
    assert "## ../../AGENTS.md" in text
    assert "outside" not in text


def test_without_a_repository_no_folder_above_is_looked_at(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("outside")
    (tmp_path / "shop").mkdir()
    assert project_rules(tmp_path / "shop").text == ""


def test_long_rules_are_cut_and_that_is_said(tmp_path: Path) -> None:
    for name in ("AGENTS.md", "CLAUDE.md", "CDD.md"):
        (tmp_path / name).write_text(name + "x" * LONGEST)
    rules = project_rules(tmp_path)
    assert len(rules.text) < LONGEST_TOGETHER + 200
    assert [re.findall(r"\w+\.md|[\d,]{6}", note) for note in rules.notes] == [
        ["AGENTS.md", f"{LONGEST:,}"],
        ["CLAUDE.md", f"{LONGEST:,}"],
        ["CDD.md", f"{LONGEST_TOGETHER:,}"],
    ]


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_bytes(b"\0\1")
    (tmp_path / "CLAUDE.md").symlink_to("/etc/hostname")
    (tmp_path / "CDD.md").mkdir()
    rules = project_rules(tmp_path)
    assert rules.text == ""
    assert "AGENTS.md" in rules.notes[0]
    assert "CLAUDE.md" in rules.notes[1]


@each_row(
    ("links", "paths"),
    [
        ({}, {"AGENTS.md"}),
        ({"CLAUDE.md": "AGENTS.md"}, {"AGENTS.md", "CLAUDE.md"}),
        ({"CLAUDE.md": "docs/rules.md"}, {"AGENTS.md", "CLAUDE.md", "docs/rules.md"}),
    ],
)
def test_the_files_that_have_the_rules_are_known(
    tmp_path: Path, links: dict[str, str], paths: set[str]
) -> None:
    (tmp_path / "docs").mkdir()
    for name in ("AGENTS.md", "docs/rules.md"):
        (tmp_path / name).write_text("Be brief.\n")
    for name, target in links.items():
        (tmp_path / name).symlink_to(target)
    assert project_rules(tmp_path).paths == paths


def test_equal_rules_of_folders_above_are_there_once(tmp_path: Path) -> None:
    root = tmp_path / "packages" / "shop"
    root.mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    for folder in (tmp_path, root):
        (folder / "AGENTS.md").write_text("Be brief.\n")
    assert project_rules(root).text == "## AGENTS.md\n\nBe brief."


def test_rules_that_a_prompt_shows_as_a_file_are_only_named(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Be brief.\n")
    (tmp_path / "CLAUDE.md").write_text("Be kind.\n")
    rules = project_rules(tmp_path).pointing_to({"AGENTS.md"})
    assert "Be brief." not in rules.section
    assert "Be kind." in rules.section
