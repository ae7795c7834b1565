"""Random histories of runs: whatever replies, commands, checks, the user and kills did,
`undo` makes every file what it was before, but for what must be kept.

`python -m tests.engine.histories 0 500 --shrink` plays more of them.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from cdd_agent.engine.engine import Engine
from tests.engine import histories_actions
from tests.engine.histories import play, shrink
from tests.engine.histories_actions import (
    Attempt,
    History,
    Moment,
    Op,
    Run,
    Touch,
    Undo,
    history_of,
)
from tests.engine.histories_model import (
    Owned,
    Stack,
    Version,
    Who,
    outcomes_without,
)
from tests.engine.histories_project import Projects
from tests.engine.histories_tree import Entry
from tests.support.examples import IS_THOROUGH, long_rows

GROUPS = 20
HISTORIES, LONGEST = (2_000, histories_actions.LONGEST) if IS_THOROUGH else (20, 2)
LIFE = 1


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Projects]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        patch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
        yield Projects(tmp_path_factory.mktemp("histories").resolve())


@pytest.mark.story
@pytest.mark.parametrize("group", [*range(8), *long_rows(*range(8, GROUPS))])
def test_undo_makes_every_file_what_it_was(projects: Projects, group: int) -> None:
    for seed in range(group, HISTORIES, GROUPS):
        failure = play(projects, history_of(seed, LONGEST))
        assert failure is None, f"\n{failure}"


# --- The histories themselves ---------------------------------------------------------


def one_step(*touches: Touch, passes: bool = True) -> History:
    attempt = Attempt(touches, with_tools=False, passes=passes)
    files = ("app.txt", "notes.txt")
    actions = (Run(attempts=(attempt,)), Undo())
    return History(0, "plain", (files[:1],), files, actions)


def touch(moment: Moment, *, is_declared: bool = True) -> Touch:
    return Touch(moment, Op.TOP, 0, is_declared)


@pytest.mark.story
def test_an_undo_that_restores_nothing_is_noticed(
    projects: Projects, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def undo_nothing(engine: Engine, number: int | None = None) -> None:
        del engine, number

    monkeypatch.setattr(Engine, "undo", undo_nothing)
    failure = play(projects, one_step(touch(Moment.REPLY)))
    assert failure is not None
    assert failure.kind == "undo"


@pytest.mark.story
def test_a_file_that_changes_with_an_undo_is_noticed(
    projects: Projects, monkeypatch: pytest.MonkeyPatch
) -> None:
    undo = Engine.undo

    async def undo_too_much(engine: Engine, number: int | None = None) -> None:
        await undo(engine, number)
        Path(engine.run.record.root, "data.bin").unlink()

    monkeypatch.setattr(Engine, "undo", undo_too_much)
    failure = play(projects, one_step(touch(Moment.REPLY)))
    assert failure is not None
    assert failure.kind == "after an undo: own file"


@pytest.mark.story
def test_shrinking_leaves_what_a_fault_needs(
    projects: Projects, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def undo_nothing(engine: Engine, number: int | None = None) -> None:
        del engine, number

    monkeypatch.setattr(Engine, "undo", undo_nothing)
    history = one_step(touch(Moment.REPLY), touch(Moment.CHECK))
    history = History(1, "plain", history.declared, history.pool, history.actions * 2)
    failure = play(projects, history)
    assert failure is not None
    shrunk = shrink(projects, failure).history
    assert len(shrunk.actions) == 1
    (action,) = shrunk.actions
    assert isinstance(action, Run)


def test_a_seed_stands_for_one_history() -> None:
    assert history_of(7) == history_of(7)
    assert history_of(7) != history_of(8)


# --- The model ------------------------------------------------------------------------


def text(*lines: str) -> Entry:
    return Entry("".join(f"{line}\n" for line in lines).encode(), 0o644)


START = text("a", "b", "c", "d", "e", "f", "g")
BY_STEP = text("A", "b", "c", "d", "e", "f", "g")
BY_BOTH = text("A", "b", "c", "d", "e", "f", "G")
BY_USER = text("a", "b", "c", "d", "e", "f", "G")
OVER_STEP = text("X", "b", "c", "d", "e", "f", "g")


def of_step(entry: Entry | None, owned: Owned = Owned.YES) -> Version:
    return Version(entry, Who.REPLY, LIFE, 1, owned)


def by_user(entry: Entry | None) -> Version:
    return Version(entry, Who.USER)


RULES: list[tuple[str, Stack, list[tuple[Entry | None, bool]]]] = [
    ("the step's version is discarded", (of_step(BY_STEP),), [(START, False)]),
    ("so are several", (of_step(BY_STEP), of_step(None)), [(START, False)]),
    ("the user's alone stays", (by_user(BY_USER),), [(BY_USER, False)]),
    (
        "a command's may not be the step's",
        (of_step(BY_STEP, Owned.NO),),
        [(BY_STEP, False)],
    ),
    (
        "a later edit is merged",
        (of_step(BY_STEP), by_user(BY_BOTH)),
        [(BY_USER, False)],
    ),
    (
        "a conflict is kept and named",
        (of_step(BY_STEP), by_user(OVER_STEP)),
        [(OVER_STEP, True)],
    ),
    (
        "a file that the user deleted stays deleted, and is named",
        (of_step(BY_STEP), by_user(None)),
        [(None, True)],
    ),
    (
        "an earlier edit is what an undo leads back to",
        (by_user(BY_USER), of_step(BY_BOTH)),
        [(BY_USER, False)],
    ),
    (
        "what nobody knows may be either",
        (of_step(BY_STEP, Owned.MAYBE),),
        [(START, False), (BY_STEP, False)],
    ),
]


def test_the_model_keeps_the_rules() -> None:
    wrong = []
    for rule, versions, expected in RULES:
        stack = (Version(START), *versions)
        found = outcomes_without(stack, lambda version: version.owned, strict=True)
        shown = [(outcome.entry, outcome.must_be_named) for outcome in found]
        if sorted(shown, key=str) != sorted(expected, key=str):
            wrong.append(f"{rule}: {shown}")
    assert not wrong, "\n".join(wrong)
