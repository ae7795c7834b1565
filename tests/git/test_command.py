"""How git is started: with its whole answer or so much of it, and with nobody else's
repository in mind.
"""

from pathlib import Path

import pytest

from cdd_agent.git.command import Git, GitUnusable
from tests.git.repositories import git

LINE = "a line of it\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    git(tmp_path, "init", "--quiet")
    (tmp_path / "large.txt").write_text(LINE * 50_000)
    git(tmp_path, "add", "--all")
    return tmp_path


async def test_the_whole_answer_is_there_however_long(project: Path) -> None:
    answer = await Git(project)("show", ":large.txt")
    assert (answer.stdout, answer.cut) == (LINE * 50_000, False)


async def test_of_more_than_is_wanted_the_beginning_is(project: Path) -> None:
    answer = await Git(project)("show", ":large.txt", most=20)
    assert (answer.stdout, answer.cut) == ((LINE * 2)[:20], True)
    answer = await Git(project)("rev-parse", "--is-inside-work-tree", most=5)
    assert (answer.stdout, answer.cut) == ("true\n", False)


async def test_another_exit_code_than_expected_is_an_error_in_gits_words(
    project: Path,
) -> None:
    with pytest.raises(GitUnusable, match="'none'"):
        await Git(project)("show", ":none")
    assert (await Git(project)("show", ":none", codes=(0, 128))).return_code == 128
    assert (await Git(project).run("show", ":none")).return_code == 128


async def test_what_takes_too_long_is_an_error(project: Path) -> None:
    with pytest.raises(GitUnusable, match="wait"):
        await Git(project, config=("alias.wait=!sleep 60",), seconds=0.1)("wait")


async def test_the_repository_of_a_git_that_started_us_is_not_meant(
    project: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = tmp_path_factory.mktemp("other")
    git(other, "init", "--quiet")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    answer = await Git(project)("rev-parse", "--show-toplevel")
    assert Path(answer.stdout.strip()).samefile(project)
