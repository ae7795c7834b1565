"""Finding a file among many by a few letters."""

import asyncio
from pathlib import Path

import pytest

from cdd_agent.files.index import FileIndex
from tests.support.tables import each_row


def made(root: Path, *paths: str) -> FileIndex:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).touch()
    return FileIndex(root)


PATHS = (
    "README.md",
    "agents/planner.py",
    "agents/planning.py",
    "docs/planning.md",
    "src/tui/prompt.py",
    "src/tui/widgets/prompt_area.py",
    "src/Upper/Case.TXT",
    "tests/test_prompt.py",
    "ſtraße/x.py",
)


@each_row(
    ("typed", "found"),
    [
        (
            "prompt",
            [
                "src/tui/prompt.py",
                "src/tui/widgets/prompt_area.py",
                "tests/test_prompt.py",
            ],
        ),
        ("PROMPT_", ["src/tui/widgets/prompt_area.py"]),
        ("case.t", ["src/Upper/Case.TXT"]),
        ("planning", ["docs/planning.md", "agents/planning.py"]),
        # letters of the name, before those of the path
        ("tpmt", ["tests/test_prompt.py"]),
        ("tuiarea", ["src/tui/widgets/prompt_area.py"]),
        ("tui/pr", ["src/tui/prompt.py"]),
        ("agts/plnr", ["agents/planner.py"]),
        ("widgets", ["src/tui/widgets/"]),
        ("strass", ["ſtraße/"]),
        ("zzz", []),
        ("[", []),
        ("^", []),
        ("a\nb", []),
    ],
)
def test_names_are_found_by_beginning_part_and_letters(
    tmp_path: Path, typed: str, found: list[str]
) -> None:
    index = made(tmp_path, *PATHS)
    index.build()
    assert index.find(typed, 10, 60) == found


def test_the_nearest_to_the_top_come_first_and_no_more_than_are_wanted(
    tmp_path: Path,
) -> None:
    index = made(
        tmp_path, "a/b/c/note.md", "a/b/note.md", "a/note.md", "note.md", "notes.md"
    )
    index.build()
    assert index.find("note", 4, 60) == [
        "note.md",
        "notes.md",
        "a/note.md",
        "a/b/note.md",
    ]


def test_paths_of_all_parts_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cdd_agent.files.index._BATCH", 2)
    index = made(tmp_path, *(f"file-{number}.py" for number in range(7)))
    index.build()
    assert len(index) == 7
    assert len(index.find("file", 50, 60)) == 7


def test_of_a_project_that_is_too_large_the_first_paths_are_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cdd_agent.files.index._MAX_PATHS", 3)
    index = made(tmp_path, *(f"file-{number}.py" for number in range(7)))
    index.build()
    assert len(index) == 3


def test_without_time_nothing_is_found_rather_than_waited_for(tmp_path: Path) -> None:
    index = made(tmp_path, "note.md")
    index.build()
    assert index.find("note", 10, -1) == []


async def test_it_is_built_aside_and_tells_when_it_is_there(tmp_path: Path) -> None:
    index, built = made(tmp_path, "note.md"), asyncio.Event()
    index.freshen(built.set)
    assert index.find("note", 10, 60) == []
    await asyncio.wait_for(built.wait(), 20)
    assert index.find("note", 10, 60) == ["note.md"]

    (tmp_path / "note-2.md").touch()
    index.freshen(pytest.fail)  # it is fresh
    await asyncio.sleep(0)
    assert index.find("note-2", 10, 60) == []


async def test_an_old_one_is_searched_until_the_new_one_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, built = made(tmp_path, "note.md"), asyncio.Event()
    index.build()
    (tmp_path / "note-2.md").touch()
    monkeypatch.setattr("cdd_agent.files.index._FRESH", 0.0)
    index.freshen(built.set)
    assert index.find("note", 10, 60) == ["note.md"]
    await asyncio.wait_for(built.wait(), 20)
    assert index.find("note", 10, 60) == ["note.md", "note-2.md"]
