import json
from pathlib import Path

import pytest

from cdd_agent.tui.history import PromptHistory


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / ".cdd").mkdir()
    return tmp_path


def file_of(project: Path) -> Path:
    return project / ".cdd" / "runs" / "history.jsonl"


def walked(history: PromptHistory) -> list[str]:
    """All lines, the latest first."""
    lines = []
    while (line := history.previous("")) is not None:
        lines.append(line)
    return lines


def filled(project: Path, *lines: str) -> PromptHistory:
    history = PromptHistory(project)
    for line in lines:
        history.add(line)
    return history


def test_up_walks_back_and_down_comes_back_to_what_was_being_typed(
    project: Path,
) -> None:
    history = filled(project, "one", "two")
    assert [
        history.previous("dra"),
        history.previous("two"),
        history.previous("one"),
    ] == ["two", "one", None]
    assert [history.next("one"), history.next("two"), history.next("dra")] == [
        "two",
        "dra",
        None,
    ]


def test_edits_of_an_earlier_line_are_there_when_the_walk_returns(
    project: Path,
) -> None:
    history = filled(project, "one", "two")
    assert [history.previous("dra"), history.previous("two, edited")] == ["two", "one"]
    assert [history.next("one"), history.next("two, edited"), history.next("dra")] == [
        "two, edited",
        "dra",
        None,
    ]


def test_drafts_on_the_way_to_an_earlier_line_are_kept(project: Path) -> None:
    history = filled(project, "one", "two")
    history.previous("dra")
    history.previous("two, edited")
    history.add("one")
    assert walked(PromptHistory(project)) == ["one", "two, edited", "dra", "two", "one"]


def test_empty_lines_and_repetitions_are_not_kept(project: Path) -> None:
    assert walked(filled(project, "one", "", "  ", "one", "two", "one")) == [
        "one",
        "two",
        "one",
    ]


def test_a_new_line_starts_the_walk_at_the_end_again(project: Path) -> None:
    history = filled(project, "one", "two")
    history.previous("")
    history.previous("")
    history.add("three")
    assert history.previous("") == "three"


def test_any_text_survives_the_session(project: Path) -> None:
    lines = ["a\nb", "a\u2028b\x85c", "日本語", "\ud800 half a pair", 'quote " and \\']
    filled(project, "before", *lines)
    assert walked(PromptHistory(project)) == [*reversed(lines), "before"]


def test_damaged_lines_are_ignored(project: Path) -> None:
    file = file_of(project)
    file.parent.mkdir()
    file.write_bytes(
        b'"good"\n{not json\n42\n\xff\xfe\n'
        + b"[" * 100_000
        + b'\n\n"also good"\n"torn of'
    )
    assert walked(PromptHistory(project)) == ["also good", "good"]


def test_a_line_after_a_torn_one_is_whole(project: Path) -> None:
    file = file_of(project)
    file.parent.mkdir()
    file.write_text('"torn of')
    filled(project, "next", "last")
    assert walked(PromptHistory(project)) == ["last", "next"]


def test_only_the_latest_lines_are_read_again(project: Path) -> None:
    file = file_of(project)
    file.parent.mkdir()
    file.write_text("".join(f"{json.dumps(str(number))}\n" for number in range(2000)))
    lines = walked(PromptHistory(project))
    assert lines[0] == "1999"
    assert 400 < len(lines) <= 500


def test_outside_a_project_nothing_is_written(tmp_path: Path) -> None:
    history = filled(tmp_path, "one")
    assert list(tmp_path.iterdir()) == []
    assert history.previous("") == "one"


def test_git_does_not_see_the_history(project: Path) -> None:
    filled(project, "one")
    assert "runs/" in (project / ".cdd" / ".gitignore").read_text()


@pytest.mark.parametrize("in_the_way", [".cdd/runs", ".cdd/runs/history.jsonl/x"])
def test_a_place_that_cannot_be_written_costs_only_the_memory(
    project: Path, in_the_way: str
) -> None:
    path = project / in_the_way
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    assert walked(filled(project, "one")) == ["one"]
    assert walked(PromptHistory(project)) == []
