"""What a person takes of a step's changes is the step's change: judged, journalled,
checked, undone and resumed.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cdd_agent.changes.change_set import ChangeSet, FileChange
from cdd_agent.changes.file_diff import LeftOut
from cdd_agent.changes.review import Review
from cdd_agent.errors import NotApproved
from cdd_agent.events.dialogue_events import ToolFinished
from cdd_agent.events.question_events import (
    AcceptingAll,
    ChangesReviewed,
    Choice,
    PersonAnswered,
)
from cdd_agent.events.step_events import AttemptFailed, TestsStarted
from cdd_agent.events.stream import Event
from cdd_agent.frontend import Decision, Nobody
from cdd_agent.llm.port import ConnectionFailed
from tests.crash.story import git
from tests.engine.tool_steps import answers, calls, create, execute, read, replace
from tests.support.listening import collect, stop_at
from tests.support.projects import Sandbox, Step, check, run_all, says
from tests.support.tables import each_row

Answer = Callable[[Review], Decision]

OLD = "".join(f"line {number}\n" for number in range(1, 31))
NEW = OLD.replace("line 2\n", "good\n").replace("line 28\n", "unwanted\n")
ONLY_GOOD = OLD.replace("line 2\n", "good\n")
EDIT = "a.txt\n<<<<<<< SEARCH\nline 2\n=======\ngood\n>>>>>>> REPLACE\n"
EDIT += "<<<<<<< SEARCH\nline 28\n=======\nunwanted\n>>>>>>> REPLACE\n"
GONE = [ConnectionFailed("gone")] * 9


def yes(review: Review) -> Decision:
    return Decision(Choice.YES, review)


def everything(review: Review) -> Decision:
    return Decision(Choice.ALWAYS, review)


def refuse(reason: str = "") -> Answer:
    return lambda review: Decision(Choice.NO, review, reason)


def without(*hunks: int, reason: str = "not that") -> Answer:
    return lambda review: Decision(
        Choice.YES, review.with_file(0, review.files[0].leave(hunks, reason))
    )


def edit(content: str, place: int = 0) -> Answer:
    return lambda review: Decision(
        Choice.YES, review.with_file(place, review.files[place].edit(content.encode()))
    )


class Person(Nobody):
    """Answers what is asked, in this order, and keeps what it was."""

    def __init__(self, *answers: Answer) -> None:
        self.asked: list[Review] = []
        self._answers = list(answers)

    async def review(self, review: Review) -> Decision:
        self.asked.append(review)
        return self._answers.pop(0)(review)


@pytest.fixture
def asking(sandbox: Sandbox) -> Sandbox:
    sandbox.flags = {"approval": "ask"}
    git(sandbox.root, "init", "--quiet")
    (sandbox.root / "a.txt").write_text(OLD)
    return sandbox.write(Step("a.txt", check("a.txt")))


def reviewed(events: list[Event]) -> list[ChangesReviewed]:
    return [event for event in events if isinstance(event, ChangesReviewed)]


async def test_only_the_parts_that_are_taken_are_written_and_the_check_decides(
    asking: Sandbox,
) -> None:
    asking.frontend = Person(without(1))
    events = await run_all(asking.replies(EDIT))
    assert asking.statuses() == ["completed"]
    assert asking.text("a.txt") == ONLY_GOOD
    left_out = (LeftOut("a.txt", "line 28", "not that"),)
    assert reviewed(events) == [ChangesReviewed(1, Choice.YES, left_out=left_out)]

    engine = asking.engine()
    engine.save_report()
    logged = [entry.event for entry in engine.run.record.log.entries()]
    report = (engine.run.record.folder / "report.md").read_text()
    await collect(engine.undo())
    assert asking.text("a.txt") == OLD
    await collect(engine.redo())
    engine.close()
    assert asking.text("a.txt") == ONLY_GOOD
    assert reviewed(logged) == reviewed(events)
    assert "line 28: not that" in report


async def test_where_the_part_is_not_enough_the_model_hears_what_was_left_out_and_why(
    asking: Sandbox,
) -> None:
    asking.frontend = Person(without(0, reason="never touch line 2"), yes)
    events = await run_all(asking.replies(EDIT, EDIT), attempts=2)
    assert [event.attempt for event in events if isinstance(event, AttemptFailed)] == [
        1
    ]
    for told in ("line 2", "never touch line 2", "+good"):
        assert told in asking.prompt(1)
    assert "+unwanted" not in asking.prompt(1)
    assert asking.text("a.txt") == NEW


async def test_a_refusal_with_a_reason_asks_the_model_again_whatever_attempts_it_has(
    asking: Sandbox,
) -> None:
    asking.frontend = Person(refuse("use other words"), refuse("and shorter"), yes)
    events = await run_all(asking.replies(EDIT, EDIT, EDIT), attempts=1)
    assert asking.statuses() == ["completed"]
    assert "use other words" in asking.prompt(1)
    assert "and shorter" in asking.prompt(2)
    assert [
        event.will_retry for event in events if isinstance(event, AttemptFailed)
    ] == [True, True]
    assert [event.reason for event in reviewed(events)] == [
        "use other words",
        "and shorter",
        "",
    ]


async def test_a_refusal_without_one_stops_and_asks_again_about_the_same_reply(
    asking: Sandbox,
) -> None:
    asking.frontend = Person(refuse(), yes)
    engine = asking.replies(EDIT).engine()
    await collect(engine.run_all())
    assert isinstance(engine.stopped_by, NotApproved)
    engine.close()
    assert (asking.statuses(), asking.text("a.txt")) == (["pending"], OLD)
    await run_all(asking)
    assert asking.statuses() == ["completed"]
    assert len(asking.model.requests) == 1


async def test_what_the_person_edits_is_written_journalled_and_undone(
    asking: Sandbox,
) -> None:
    asking.frontend = Person(edit("good, by me\r\nno end"))
    events = await run_all(asking.replies(EDIT))
    assert asking.statuses() == ["completed"]
    assert (asking.root / "a.txt").read_bytes() == b"good, by me\r\nno end"
    assert reviewed(events) == [ChangesReviewed(1, Choice.YES, edited=("a.txt",))]
    assert asking.state()["step_executions"]["1"]["files_modified"] == ["a.txt"]
    engine = asking.engine()
    await collect(engine.undo())
    engine.close()
    assert asking.text("a.txt") == OLD


async def test_a_change_that_is_edited_away_is_a_refusal(asking: Sandbox) -> None:
    asking.frontend = Person(edit(OLD), yes)
    await run_all(asking.replies(EDIT, EDIT))
    assert "back to what it was" in asking.prompt(1)
    assert asking.text("a.txt") == NEW


async def test_what_cannot_be_written_is_asked_about_again_with_the_reason(
    asking: Sandbox,
) -> None:
    (asking.root / "b.py").write_text("x = 1\n")
    asking.write(Step("a.txt", check("a.txt"), also=("b.py",)))
    person = asking.frontend = Person(
        edit("def f(:\n", place=1), edit("x = 3\n", place=1)
    )
    block = "b.py\n<<<<<<< SEARCH\nx = 1\n=======\nx = 2\n>>>>>>> REPLACE\n"
    await run_all(asking.replies(EDIT + block))
    assert "b.py" in person.asked[1].problem
    assert (asking.text("b.py"), asking.text("a.txt")) == ("x = 3\n", NEW)


@each_row("answer", [yes, without(1), edit("good, by me\n"), refuse("no such words")])
async def test_nobody_is_asked_twice_about_the_same_reply(
    asking: Sandbox, answer: Answer
) -> None:
    """Stopped while the check runs, or while the next reply is waited for, it goes on
    with what was answered.
    """
    asking.frontend = Person(answer)
    engine = asking.replies(EDIT, *GONE).engine()
    refused = answer(_review(OLD, NEW)).choice is Choice.NO
    await stop_at(
        engine.run_all(),
        lambda event: isinstance(event, AttemptFailed if refused else TestsStarted),
    )
    engine.close()
    assert asking.text("a.txt") == OLD
    asking.frontend = Person(yes) if refused else Nobody()
    events = await run_all(asking.replies(*([EDIT] if refused else [])))
    assert asking.statuses() == ["completed"]
    if refused:
        assert asking.text("a.txt") == NEW
        assert "no such words" in asking.prompt(0)
    else:
        result = answer(_review(OLD, NEW)).review.files[0].result
        assert (asking.root / "a.txt").read_bytes() == result
        assert (
            len([event for event in events if isinstance(event, PersonAnswered)]) == 0
        )


def _review(before: str, after: str) -> Review:
    return Review.from_changes(
        1,
        ChangeSet(
            (FileChange(PurePosixPath("a.txt"), before.encode(), after.encode()),)
        ),
    )


async def test_an_answer_about_a_file_that_has_changed_since_is_none(
    asking: Sandbox,
) -> None:
    asking.frontend = Person(without(1))
    engine = asking.replies(EDIT).engine()
    await stop_at(engine.run_all(), lambda event: isinstance(event, TestsStarted))
    engine.close()
    (asking.root / "a.txt").write_text(f"{OLD}mine\n")
    asking.frontend = person = Person(yes)
    await run_all(asking.replies(EDIT))
    assert len(person.asked) == 1
    assert asking.text("a.txt") == f"{NEW}mine\n"


async def test_everything_of_a_run_is_accepted_once_and_for_this_run_only(
    asking: Sandbox,
) -> None:
    asking.write(
        Step("a.txt", check("a.txt")),
        Step("b.txt", check("b.txt")),
        Step("c.txt", check("c.txt")),
    )
    asking.frontend = person = Person(everything)
    engine = asking.replies(EDIT, says("b.txt", "good")).engine()
    first, second, _ = engine.run.plan.steps
    events = [
        *await collect(engine.run_step(first)),
        *await collect(engine.run_step(second)),
    ]
    engine.close()
    assert [event.is_on for event in events if isinstance(event, AcceptingAll)] == [
        True
    ]
    assert len(person.asked) == 1

    asking.frontend = person = Person(everything)
    events = await run_all(asking.replies(says("c.txt", "good")))
    assert len(person.asked) == 1
    assert [event.is_on for event in events if isinstance(event, AcceptingAll)] == [
        True,
        False,
    ]


async def test_who_stops_a_step_is_asked_again_from_then_on(asking: Sandbox) -> None:
    asking.write(Step("a.txt", check("a.txt")), Step("b.txt", check("b.txt")))
    asking.frontend = person = Person(everything, yes)
    engine = asking.replies(EDIT, says("b.txt", "good")).engine()
    first, second = engine.run.plan.steps
    await collect(engine.run_step(first))
    events = await stop_at(
        engine.run_step(second), lambda event: isinstance(event, TestsStarted)
    )
    assert [event.is_on for event in events if isinstance(event, AcceptingAll)] == [
        False
    ]
    await collect(engine.run_step(second))
    engine.close()
    assert len(person.asked) == 2


async def test_a_reason_is_kept_and_told_without_secrets(
    asking: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "d3ploy-4cc3ss-t0k3n-9f8e7d"
    monkeypatch.setenv("DEPLOY_TOKEN", secret)
    asking.frontend = Person(
        without(1, reason=f"not {secret}"), refuse(f"nor {secret}"), yes
    )
    asking.write(Step("a.txt", check("a.txt", "unwanted")))
    await run_all(asking.replies(EDIT, EDIT, EDIT), attempts=2)
    assert asking.statuses() == ["completed"]
    assert not any(secret in asking.prompt(number) for number in range(3))
    files = [path for path in (asking.root / ".cdd/runs").rglob("*") if path.is_file()]
    assert [path for path in files if secret.encode() in path.read_bytes()] == []


# --------------------------------------------------------------------------- with tools


async def test_a_call_hears_what_was_left_out_and_the_dialogue_goes_on(
    asking: Sandbox,
) -> None:
    asking.frontend = Person(without(1), refuse("no new file"), yes)
    asking.replies(
        calls(read("a.txt")),
        calls(replace("a.txt", "", NEW)),
        calls(create("b.txt", "b\n")),
        calls(replace("a.txt", "line 3\n", "three\n")),
        "Done.",
    )
    events = await run_all(asking)
    assert asking.statuses() == ["completed"]
    assert asking.text("a.txt") == ONLY_GOOD.replace("line 3\n", "three\n")
    assert not (asking.root / "b.txt").exists()
    told = str(answers(asking, 2)[0])
    assert "not that" in told
    assert "+unwanted" in told
    assert "no new file" in str(answers(asking, 3)[0])
    written = [
        file
        for event in events
        if isinstance(event, ToolFinished)
        for file in event.files
    ]
    assert [(file.path, file.added, file.removed) for file in written] == [
        ("a.txt", 1, 1),
        ("a.txt", 1, 1),
    ]


async def test_a_file_that_the_person_edited_is_not_replaced_by_who_has_not_read_it(
    asking: Sandbox,
) -> None:
    asking.frontend = Person(edit("good, by me\n"), yes)
    asking.replies(
        calls(create("b.txt", "b\n")),
        calls(replace("b.txt", "", "blind\n")),
        calls(read("b.txt")),
        calls(replace("b.txt", "", "good, seen\n")),
        "Done.",
    )
    asking.write(Step("b.txt", check("b.txt")))
    events = await run_all(asking)
    assert [
        bool(event.problem) for event in events if isinstance(event, ToolFinished)
    ] == [False, True, False, False]
    assert asking.text("b.txt") == "good, seen\n"


async def test_answers_about_calls_hold_when_the_step_goes_on(asking: Sandbox) -> None:
    asking.frontend = Person(without(1), edit("b, by me\n"), refuse("no c"))
    asking.replies(
        calls(read("a.txt")),
        calls(replace("a.txt", "", NEW), create("b.txt", "b\n")),
        calls(create("c.txt", "c\n"), execute("cat a.txt")),
        *GONE,
    )
    await run_all(asking)
    assert (asking.text("a.txt"), (asking.root / "b.txt").exists()) == (OLD, False)
    asking.frontend = Nobody()
    asking.flags = {"approval": "edits"}  # what was answered still holds
    await run_all(asking.replies(calls(replace("b.txt", "by me", "by us")), "Done."))
    assert asking.statuses() == ["completed"]
    assert (asking.text("a.txt"), asking.text("b.txt")) == (ONLY_GOOD, "b, by us\n")
    assert not (asking.root / "c.txt").exists()


# ----------------------------------------------------------------------------- any part

PLACES = (2, 12, 22, 31)
HABITS = {
    "lf": (b"\n", b""),
    "crlf": (b"\r\n", b""),
    "no end": (b"\n", b"last"),
    "latin": (b"\n", b"caf\xe9"),
}


@pytest.mark.parametrize("habit", HABITS)
@settings(
    max_examples=6,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    left_out=st.sets(st.integers(0, 3)),
    others=st.sets(st.sampled_from(["new.txt", "old.txt"])),
)
def test_any_parts_are_what_is_there_and_an_undo_takes_them_back(
    tmp_path_factory: pytest.TempPathFactory,
    habit: str,
    left_out: set[int],
    others: set[str],
) -> None:
    """Of one file that changes in four places, one that comes and one that goes."""
    end, last = HABITS[habit]
    lines = [b"line %d" % number + end for number in range(1, 32)]
    before = b"".join(lines) + last
    root = tmp_path_factory.mktemp("project")
    sandbox = Sandbox(root, flags={"approval": "ask"}).in_process()
    sandbox.write(Step("a.txt", "none", also=("new.txt", "old.txt (deleted)")))
    (root / "a.txt").write_bytes(before)
    (root / "old.txt").write_bytes(before)
    blocks = "".join(
        f"a.txt\n<<<<<<< SEARCH\nline {place}\n=======\nnew {place}\n>>>>>>> REPLACE\n"
        for place in PLACES
    )
    gone = "*** Begin Patch\n*** Delete File: old.txt\n*** End Patch\n"
    sandbox.replies(f"{blocks}\n{says('new.txt', 'new')}\n{gone}", *GONE)

    def answer(review: Review) -> Decision:
        for place, file in enumerate(review.files):
            parts = (
                left_out
                if file.path == "a.txt"
                else {0}
                if file.path in others
                else set()
            )
            review = review.with_file(place, file.leave(parts))
        return Decision(Choice.YES, review)

    sandbox.frontend = Person(answer)
    asyncio.run(run_all(sandbox))
    for number, place in enumerate(PLACES):
        if number not in left_out:
            lines[place - 1] = b"new %d" % place + end
    after = b"".join(lines) + last
    is_empty = len(left_out) == 4 and len(others) == 2
    assert _content(root / "a.txt") == after
    assert _content(root / "new.txt") == (None if "new.txt" in others else b"new\n")
    assert _content(root / "old.txt") == (before if "old.txt" in others else None)
    if not is_empty:
        assert sandbox.statuses() == ["completed"]
        engine = sandbox.engine()
        asyncio.run(engine.undo())
        engine.close()
    assert _content(root / "a.txt") == _content(root / "old.txt") == before
    assert _content(root / "new.txt") is None


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None
