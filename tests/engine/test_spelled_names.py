"""Whole runs about names that are spelled in several ways: declared, in the reply and
on the disk; and renames to another spelling, forth and back.
"""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from cdd_agent.events.step_events import ChangesApplied
from cdd_agent.tickets.status import StepStatus
from tests.changes.applying import tree
from tests.changes.test_spelled_names import (
    CHANGING_RENAMES,
    DELETIONS,
    EDITS,
    FORMS,
    NEW,
    OLD,
    RENAMES,
    SPELLINGS,
    in_form,
)
from tests.engine.tool_steps import calls, execute, finished, leave_out, run
from tests.support.insensitive_disk import DISKS
from tests.support.listening import collect
from tests.support.projects import Sandbox, Step
from tests.support.tables import each_row

NAME = "docs/größe.txt"


@pytest.fixture
def project(sandbox: Sandbox) -> Sandbox:
    """Commands and checkpoints are in this process."""
    return sandbox.in_process()


def put(sandbox: Sandbox, name: str, text: str = OLD) -> None:
    place = Path(str(sandbox.root)) / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)


def files(sandbox: Sandbox) -> dict[str, str]:
    """The files of the project, without those of the ticket."""
    found = tree(Path(str(sandbox.root)))
    return {name: text for name, text in found.items() if not _is_ours(name)}


def _is_ours(name: str) -> bool:
    return name.startswith(("tickets/", ".git/"))


async def go_back_and_forth(sandbox: Sandbox) -> tuple[dict[str, str], dict[str, str]]:
    """The files after an undo, and after its redo."""
    engine = sandbox.engine()
    await collect(engine.undo())
    undone = files(sandbox)
    await collect(engine.redo())
    engine.close()
    return undone, files(sandbox)


@each_row("there", [*FORMS, None])
@each_row("declared", FORMS)
@each_row("text", FORMS)
@each_row("form", ["whole, named in the info", "search and replace"])
async def test_a_step_changes_the_one_file_however_plan_and_reply_spell_it(
    project: Sandbox, form: str, text: str, declared: str, there: str | None
) -> None:
    on_disk = in_form(text if there is None else there, NAME)
    if there is not None:
        put(project, on_disk)
    elif form == "search and replace":
        return
    project.write(Step(in_form(declared, NAME), "python -c pass"))
    reply = EDITS[form](in_form(text, NAME))
    events = await run(project.replies(reply))
    assert finished(events).status is StepStatus.COMPLETED, finished(events).error
    assert files(project) == {on_disk: NEW}
    applied = [event for event in events if isinstance(event, ChangesApplied)]
    assert [event.undeclared for event in applied] == [()]
    before = {} if there is None else {on_disk: OLD}
    assert await go_back_and_forth(project) == (before, {on_disk: NEW})


@each_row("declared", FORMS)
@each_row("text", FORMS)
async def test_a_step_may_delete_the_file_however_plan_and_reply_spell_it(
    project: Sandbox, text: str, declared: str
) -> None:
    put(project, in_form("NFD", NAME))
    step = Step(f"{in_form(declared, NAME)}", "python -c pass", also=("a.txt",))
    reply = DELETIONS["a patch"](in_form(text, NAME))
    events = await run(project.write(step).replies(reply))
    assert finished(events).status is StepStatus.COMPLETED, finished(events).error
    assert files(project) == {}


RUNS = {
    "moved by a diff of git": (RENAMES["a diff of git"], OLD),
    "changed by a patch": (CHANGING_RENAMES["a patch"], NEW),
    "new, then deleted": (CHANGING_RENAMES["new, then deleted"], NEW),
}


@each_row("disk", DISKS.values(), ids=DISKS)
@each_row("names", [SPELLINGS["another case"], SPELLINGS["composed"]])
@each_row(("form", "text"), RUNS.values(), ids=RUNS)
async def test_a_rename_is_made_undone_and_redone(
    project: Sandbox,
    form: Callable[[str, str], str],
    text: str,
    names: tuple[str, str],
    disk: type[Path],
) -> None:
    old, new = names
    put(project, old)
    project.root = disk(project.root)
    project.write(Step(old, "python -c pass", also=(new,)))
    assert isinstance(project.project.root, disk)
    events = await run(project.replies(form(old, new)))
    assert finished(events).status is StepStatus.COMPLETED, finished(events).error
    assert files(project) == {new: text}
    assert await go_back_and_forth(project) == ({old: OLD}, {new: text})


@each_row("disk", DISKS.values(), ids=DISKS)
async def test_a_failed_rename_is_tried_again_and_can_be_skipped(
    project: Sandbox, disk: type[Path]
) -> None:
    old, new = SPELLINGS["another case"]
    put(project, old)
    project.root = disk(project.root)
    bad = CHANGING_RENAMES["a patch"](old, new).replace("+2", "+bad")
    good = CHANGING_RENAMES["a patch"](old, new)
    code = f"raise SystemExit('2' not in open('{new}').read())"
    project.write(Step(old, f'python -c "{code}"', also=(new,)))
    await run(project.replies(bad, bad), attempts=2)
    assert project.statuses() == ["failed"]
    await leave_out(project)
    assert files(project) == {old: OLD}
    project.write(Step(old, f'python -c "{code}"', also=(new,)))
    engine = project.replies(bad, good).engine(start_over=True)
    await collect(engine.run_all(attempts=2))
    engine.close()
    assert project.statuses() == ["completed"]
    assert files(project) == {new: NEW}


@each_row("disk", DISKS.values(), ids=DISKS)
async def test_a_command_that_renames_is_the_steps_work(
    project: Sandbox, disk: type[Path]
) -> None:
    old, new = SPELLINGS["another case"]
    put(project, old)
    project.root = disk(project.root)
    project.flags = {"tool_calls": "on"}
    move = f"python -c \"import os; os.rename('{old}', '{new}')\""
    project.write(Step(old, "python -c pass", also=(new,)))
    events = await run(project.replies(calls(execute(move)), "Done."))
    assert finished(events).status is StepStatus.COMPLETED, finished(events).error
    assert files(project) == {new: OLD}
    assert await go_back_and_forth(project) == ({old: OLD}, {new: OLD})


@each_row("names", SPELLINGS.values(), ids=SPELLINGS)
async def test_a_rename_is_a_commit(sandbox: Sandbox, names: tuple[str, str]) -> None:
    old, new = names
    sandbox.flags = {"commit": "step"}
    sandbox.write(Step(old, "python -c pass", also=(new,)))
    put(sandbox, old)
    for words in (
        ["init", "-q"],
        ["config", "user.name", "A"],
        ["config", "user.email", "a@localhost"],
        ["config", "core.quotepath", "false"],
        ["add", "."],
        ["commit", "-qm", "start"],
    ):
        git(sandbox, *words)
    events = await run(sandbox.replies(RENAMES["a patch"](old, new)))
    assert finished(events).status is StepStatus.COMPLETED, finished(events).error
    shown = git(sandbox, "show", "--format=", "--name-status", "-M", "HEAD")
    assert shown == f"R100\t{old}\t{new}\n"
    assert git(sandbox, "status", "--short", "--untracked-files=no") == ""


def git(sandbox: Sandbox, *words: str) -> str:
    command = ["git", *words]
    return subprocess.run(
        command, cwd=sandbox.root, check=True, capture_output=True, text=True
    ).stdout
