"""A run goes on in another copy of the project, and comes back."""

from pathlib import Path

import pytest

from tests.projects import SLUG, Sandbox, says
from tests.travel.copies import GOOD, STEPS, Copies, cdd, events, files, git, run


@pytest.fixture
def copies(tmp_path: Path) -> Copies:
    return Copies.made(tmp_path.resolve() / "copies")


def test_a_run_goes_on_elsewhere_where_it_stopped(copies: Copies, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = copies.first, copies.clone("second")
    assert run(first, GOOD[0]) != 0  # the script has ended
    assert cdd(first, "push", SLUG) == 0
    before = files(first.root)

    assert cdd(second, "pull", SLUG) == 0

    assert files(second.root) == before
    assert second.statuses()[0] == "completed"
    capsys.readouterr()
    assert run(second, *GOOD[1:]) == 0, capsys.readouterr()
    assert second.statuses() == ["completed"] * 3
    assert cdd(second, "push", SLUG) == 0
    assert cdd(first, "pull", SLUG) == 0
    assert files(first.root) == files(second.root)
    assert cdd(first, "undo", SLUG, "--step", "1") == 0
    assert not (first.root / "a.txt").exists()
