"""Restoring a step needs what the step itself has kept, and nothing else: no
checkpoint, no repository, no git.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

from cdd_agent.events.step_events import TestsStarted
from cdd_agent.events.stream import Event
from tests.support.listening import collect, told_to
from tests.support.projects import Sandbox, Step, check, says

WRONG = says("vendor/a.txt", "wrong")


def git_init(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for words in (
        "init -q",
        "add .",
        "-c user.name=A -c user.email=a@localhost commit -q --allow-empty -m start",
    ):
        subprocess.run(["git", *words.split()], cwd=folder, check=True)


async def killed_while_checked(sandbox: Sandbox, folder: Path) -> Sandbox:
    """The project as a kill leaves it when the check begins: a copy, as it is on the
    disk.
    """

    def copy(event: Event) -> None:
        if isinstance(event, TestsStarted):
            shutil.copytree(sandbox.root, folder, symlinks=True)

    engine = sandbox.replies(WRONG).engine()
    with told_to(copy):
        await engine.run_all()
    engine.close()
    return sandbox.at(folder)


@pytest.fixture
def original(sandbox: Sandbox) -> Sandbox:
    (sandbox.root / "vendor").mkdir()
    (sandbox.root / "vendor/a.txt").write_text("mine\n")
    return sandbox.write(Step("vendor/a.txt", check("vendor/a.txt")))


async def test_a_step_is_restored_though_its_repository_was_removed(
    original: Sandbox, tmp_path_factory: pytest.TempPathFactory
) -> None:
    git_init(original.root)
    left = await killed_while_checked(
        original, tmp_path_factory.mktemp("killed") / "project"
    )
    assert left.text("vendor/a.txt") == "wrong\n"
    shutil.rmtree(left.root / ".git")

    engine = left.engine()
    await collect(engine.recover())
    engine.close()

    assert left.text("vendor/a.txt") == "mine\n"
    assert left.statuses() == ["pending"]


async def test_a_step_is_restored_where_no_git_can_be_started(
    original: Sandbox,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    left = await killed_while_checked(
        original, tmp_path_factory.mktemp("killed") / "project"
    )
    monkeypatch.setenv("PATH", str(left.root / "nothing"))

    engine = left.engine()
    await collect(engine.recover())
    engine.close()

    assert left.text("vendor/a.txt") == "mine\n"
    assert left.statuses() == ["pending"]


async def test_a_file_in_a_repository_within_the_project_is_restored(
    original: Sandbox,
) -> None:
    git_init(original.root / "vendor")
    git_init(original.root)
    engine = original.replies(WRONG).engine()
    await collect(engine.run_all())
    assert original.text("vendor/a.txt") == "wrong\n"
    await collect(engine.skip(engine.run.plan.steps[0], "no", keep=False))
    engine.close()
    assert original.text("vendor/a.txt") == "mine\n"
