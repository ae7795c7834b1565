"""The user reviews changes in the shell: by file, by hunk, with a reason, in an editor,
or all of a run at once.
"""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.worker import Worker

from cdd_agent.changes.review import Review
from cdd_agent.engine.approval_mode import ACCEPTED_RUN, TITLES
from cdd_agent.errors import BadInput
from cdd_agent.events.question_events import Choice
from cdd_agent.frontend import REST, Decision
from cdd_agent.tui import editor
from cdd_agent.tui.transcript.diff import SIDE_BY_SIDE_WIDTH
from cdd_agent.tui.widgets.question import ReviewQuestion
from tests.support.projects import SLUG, Sandbox, Step, says
from tests.support.reviews import review_of
from tests.tui.person import Person, person_at

OLD = "".join(f"line {number}\n" for number in range(1, 31))
NEW = (
    OLD.replace("line 2\n", "good\n")
    .replace("line 15\n", "fifteen\n")
    .replace("line 28\n", "unwanted\n")
)
TWO_FILES = {"a.txt": (OLD, NEW), "b.txt": (None, "b\n")}


@asynccontextmanager
async def reviewing(
    sandbox: Sandbox, review: Review | None = None, size: tuple[int, int] = (80, 60)
) -> AsyncIterator[tuple[Person, Worker[Decision]]]:
    async with person_at(sandbox, size=size) as person:
        asked = person.app.run_worker(
            person.app.asking.review(review or review_of(1, TWO_FILES)),
            exit_on_error=False,
        )
        await person.until_asked()
        yield person, asked
        asked.cancel()


async def begin_answer(person: Person, line: str) -> None:
    """Read what is asked, and type a line: its first key decides what it is for."""
    await person.rest()
    await person.press(line[0])
    person.write(line[1:])


async def send(person: Person, line: str) -> None:
    """Read what is asked, and answer it by a line."""
    asked = person.app.asking.open
    await begin_answer(person, line)
    await person.press("enter")
    await person.until(lambda: person.app.asking.open is not asked)
    if person.app.query(ReviewQuestion):
        await person.until_asked()


async def press(person: Person, key: str) -> None:
    """The same by one key."""
    asked = person.app.asking.open
    await person.rest()
    await person.press(key)
    await person.until(lambda: person.app.asking.open is not asked)
    if person.app.query(ReviewQuestion):
        await person.until_asked()


def left_out(answer: Decision) -> list[str]:
    return [str(part) for part in answer.review.left_out]


async def test_a_review_shows_the_files_their_diffs_and_counts(
    sandbox: Sandbox,
) -> None:
    async with reviewing(sandbox) as (person, _):
        for text in (
            "Apply these changes of step 1?  2 files +4 −3",
            "create b.txt  +1",
            "change a.txt  +3 −3",
            "+ good",
        ):
            assert text in person.screen
        assert "[h] per hunk" in person.screen


async def test_a_review_goes_hunk_by_hunk_and_then_asks_about_the_rest(
    sandbox: Sandbox,
) -> None:
    async with reviewing(sandbox) as (person, asked):
        await send(person, "h")
        assert "1 of 4: change a.txt, line 2" in person.screen
        assert "fifteen" not in person.screen
        await send(person, "y")
        await send(person, "n keep the number")
        await send(person, "no")
        assert "4 of 4: create b.txt" in person.screen
        await send(person, "yes")
        assert "Apply 2 of 4 parts of step 1?" in person.screen
        assert "left out: a.txt, line 15: keep the number" in person.screen
        assert "fifteen" not in person.screen
        assert not asked.is_finished
        await send(person, "y")
        answer = await asked.wait()
        assert answer.choice is Choice.YES
        assert left_out(answer) == ["a.txt, line 15: keep the number", "a.txt, line 28"]
        assert (
            answer.review.files[0].result == OLD.replace("line 2\n", "good\n").encode()
        )
        assert "Your answer: yes, 2 of 4 parts" in person.told
        assert "fifteen" in person.told  # what was asked about stays


async def test_arrows_take_parts_and_leave_them_out_and_go_back(
    sandbox: Sandbox,
) -> None:
    async with reviewing(sandbox) as (person, asked):
        await send(person, "h")
        await press(person, "left")
        await press(person, "ctrl+up")
        assert "1 of 4" in person.screen
        for key in ("right", "left", "right", "left"):
            await press(person, key)
        await send(person, "y")
        assert left_out(await asked.wait()) == ["a.txt, line 15", "b.txt"]


async def test_a_review_goes_file_by_file(sandbox: Sandbox) -> None:
    async with reviewing(sandbox) as (person, asked):
        await send(person, "f")
        assert "1 of 2: change a.txt  +3 −3" in person.screen
        await send(person, "n: leave it alone")
        await send(person, "y")
        await send(person, "y")
        assert left_out(await asked.wait()) == ["a.txt: leave it alone"]


async def test_escape_leads_back_to_all_of_it_and_only_from_there_is_a_no(
    sandbox: Sandbox,
) -> None:
    async with reviewing(sandbox) as (person, asked):
        await send(person, "h")
        await press(person, "left")
        await press(person, "escape")
        assert "3 of 4 parts" in person.screen
        await person.press("escape", "escape")
        assert not asked.is_finished
        await press(person, "escape")
        assert (await asked.wait()).choice is Choice.NO


async def test_keys_in_a_row_answer_no_question_that_has_not_been_seen(
    sandbox: Sandbox,
) -> None:
    """Between two questions there is no moment in which a key is nobody's, and stops
    the step.
    """
    async with reviewing(sandbox) as (person, asked):
        await send(person, "h")
        await person.rest()
        await person.press("escape", "escape", "escape", "y", "enter", "escape")
        await person.until_asked()
        assert not asked.is_finished
        assert "Apply these changes of step 1?" in person.screen
        assert "↩ y" in person.screen


async def test_a_review_that_leaves_everything_out_offers_no_yes(
    sandbox: Sandbox,
) -> None:
    async with reviewing(sandbox, review_of(1, {"a.txt": (OLD, NEW)})) as (
        person,
        asked,
    ):
        await send(person, "h")
        for _ in range(3):
            await press(person, "left")
        assert "[y]" not in person.screen
        assert "[a]" not in person.screen
        await send(person, "n")
        answer = await asked.wait()
        assert (answer.choice, answer.reason) == (Choice.NO, "")


async def test_a_no_with_a_reason_is_shown_before_enter_and_sent_by_it(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox, size=(80, 60)) as person:
        for line in ("n use tabs", "no, use tabs", "No: use tabs"):
            asked = person.app.run_worker(
                person.app.asking.review(review_of(1, TWO_FILES)), exit_on_error=False
            )
            await person.until_asked()
            await begin_answer(person, line)
            await person.until(lambda: "no: use tabs …   Enter" in person.screen)
            await person.rest(60)
            assert not asked.is_finished
            await person.press("enter")
            answer = await asked.wait()
            assert (answer.choice, answer.reason) == (Choice.NO, "use tabs")
        assert person.told.count("Your answer: no: use tabs") == 3


async def test_a_sentence_begun_before_the_question_is_no_reason(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox) as person:
        await person.type("no tabs, ", gap=0.1)
        asked = person.app.run_worker(
            person.app.asking.review(review_of(1, TWO_FILES)), exit_on_error=False
        )
        await person.until_asked()
        await person.rest(60)
        await person.type("please\n", gap=0.1)
        await person.rest(60)
        assert not asked.is_finished
        assert "↩ no tabs, please" in person.screen
        asked.cancel()


async def test_arrows_move_in_the_draft_while_there_is_one(sandbox: Sandbox) -> None:
    async with reviewing(sandbox) as (person, asked):
        await send(person, "h")
        await press(person, "right")
        await person.type("a draft")
        for key in ("right", "left", "ctrl+up"):
            await person.rest()
            await person.press(key)
            await person.rest()
            assert "2 of 4" in person.screen
            assert person.prompt.text == "a draft"
            assert not asked.is_finished


async def test_a_draft_waits_until_the_whole_review_is_over(sandbox: Sandbox) -> None:
    async with person_at(sandbox, size=(80, 60)) as person:
        await person.type("also add tests")
        asked = person.app.run_worker(
            person.app.asking.review(review_of(1, TWO_FILES)), exit_on_error=False
        )
        await person.until_asked()
        await person.press("tab")
        await send(person, "f")
        await send(person, "y")
        assert person.prompt.text == ""
        await send(person, "y")
        await send(person, "y")
        await asked.wait()
        assert person.prompt.text == "also add tests"


async def test_nothing_is_agreed_to_before_its_end_was_in_sight(
    sandbox: Sandbox,
) -> None:
    review = review_of(
        1, {"a.txt": (None, "".join(f"line {number}\n" for number in range(5_000)))}
    )
    async with reviewing(sandbox, review, size=(80, 24)) as (person, asked):
        await person.rest()
        await person.type("y\n", gap=0)
        await person.rest()
        assert not asked.is_finished
        assert "scroll to the end first" in person.screen
        await person.press("end")
        # of a file's difference 3,000 lines are shown, and that is said
        assert "more lines" in person.screen
        await send(person, "y")
        assert (await asked.wait()).choice is Choice.YES


@pytest.mark.parametrize("size", [(40, 10), (20, 8)], ids=str)
async def test_the_prompt_and_how_to_answer_are_in_sight_in_a_small_window(
    sandbox: Sandbox, size: tuple[int, int]
) -> None:
    async with reviewing(sandbox, size=size) as (person, asked):
        assert "[y] yes" in person.screen
        assert "❯" in person.screen
        await person.press("end")
        await send(person, "y")
        assert (await asked.wait()).choice is Choice.YES


async def test_f6_lays_out_the_question_and_says_where_there_is_no_room(
    sandbox: Sandbox,
) -> None:
    async with reviewing(sandbox, size=(80, 40)) as (person, _):
        await person.press("f6")
        assert str(SIDE_BY_SIDE_WIDTH) in str(
            [n.message for n in person.app._notifications]
        )
        # without a plan, and in a narrow window, there is nothing to hide
        assert "F2" not in str([n.message for n in person.app._notifications])
        assert person.app.home.transcript.diff_layout.is_side_by_side
        await person.pilot.resize_terminal(SIDE_BY_SIDE_WIDTH + 10, 40)
        await person.until(
            lambda: any(
                "2 - line 2" in row and "2 + good" in row
                for row in person.screen.split("\n")
            )
        )
        wide = person.screen
        await person.press("f6")
        assert person.screen != wide


# --------------------------------------------------------------------------- the editor


@pytest.fixture
def edits(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[str, str]]:
    """What the user changes in the editor: by the name of a file, a text and what it
    becomes. No editor can be opened where there is no terminal.
    """
    edits: dict[str, tuple[str, str]] = {}

    async def edit(app: object, argv: list[str], *arguments: Path | str) -> None:
        assert argv == [sys.executable]
        if not edits:
            raise BadInput("the editor failed")
        for path in map(Path, arguments):
            if path.name in edits:
                path.write_text(path.read_text().replace(*edits[path.name]))

    monkeypatch.setenv("VISUAL", sys.executable)
    monkeypatch.setattr(editor, "open_in_editor", edit)
    return edits


async def test_an_edited_result_is_asked_about_again_and_taken(
    sandbox: Sandbox, edits: dict[str, tuple[str, str]]
) -> None:
    edits |= {"a.txt": ("good", "better"), "b.txt": ("b", "b, by me")}
    async with reviewing(sandbox) as (person, asked):
        await send(person, "e")
        assert "change a.txt (edited)" in person.screen
        assert "+ better" in person.screen
        assert not asked.is_finished
        await send(person, "y")
        answer = await asked.wait()
        assert answer.review.edited == ("a.txt", "b.txt")
        assert answer.review.files[0].result == NEW.replace("good", "better").encode()
        assert "Your answer: yes, edited" in person.told


async def test_an_editor_that_fails_changes_nothing_and_the_question_stays(
    sandbox: Sandbox, edits: dict[str, tuple[str, str]]
) -> None:
    assert not edits
    async with reviewing(sandbox) as (person, asked):
        await send(person, "e")
        assert "the editor failed" in str(
            [n.message for n in person.app._notifications]
        )
        await send(person, "y")
        assert (await asked.wait()).review.is_untouched


async def test_the_editor_of_one_part_has_the_file_without_the_parts_left_out(
    sandbox: Sandbox, edits: dict[str, tuple[str, str]]
) -> None:
    edits |= {"a.txt": ("line 15", "fifteen, by me"), "b.txt": ("b", "x")}
    async with reviewing(sandbox) as (person, asked):
        await send(person, "h")
        await press(person, "right")
        await press(person, "left")
        await send(person, "e")
        await send(person, "y")
        answer = await asked.wait()
        assert answer.review.edited == ("a.txt",)
        assert (
            answer.review.files[0].result
            == NEW.replace("fifteen", "fifteen, by me").encode()
        )


# -------------------------------------------------------------------------- a whole run


@pytest.fixture
def asking(sandbox: Sandbox) -> Sandbox:
    sandbox.flags = {"approval": "ask"}
    (sandbox.root / "a.txt").write_text(OLD)
    steps = [Step(name) for name in ("a.txt", "b.txt", "c.txt")]
    block = "a.txt\n<<<<<<< SEARCH\nline 2\n=======\ngood\n>>>>>>> REPLACE\n"
    block += "<<<<<<< SEARCH\nline 28\n=======\nunwanted\n>>>>>>> REPLACE\n"
    return sandbox.write(*steps).replies(
        block, says("b.txt", "good"), says("c.txt", "good")
    )


async def test_a_step_writes_only_the_parts_that_were_taken(asking: Sandbox) -> None:
    async with person_at(asking, f"/exec {SLUG}", size=(100, 40)) as person:
        await person.begin("")
        await person.until_asked()
        await send(person, "h")
        await press(person, "right")
        await send(person, "n not wanted")
        await send(person, "y")
        await person.until(lambda: not person.is_waiting)
        assert asking.statuses() == ["completed", "pending", "pending"]
        assert asking.text("a.txt") == OLD.replace("line 2\n", "good\n")
        assert "you left out: a.txt, line 28: not wanted" in person.told


async def test_a_reason_brings_the_next_attempt_at_once(asking: Sandbox) -> None:
    asking.replies(says("a.txt", "good, but long"), says("a.txt", "good"))
    (asking.root / "a.txt").unlink()
    async with person_at(asking, f"/exec {SLUG}", size=(100, 40)) as person:
        await person.begin("")
        await person.until_asked()
        await send(person, "n shorter")
        await person.until_asked()
        assert "shorter" in asking.prompt()
        await send(person, "y")
        await person.until(lambda: not person.is_waiting)
        assert asking.text("a.txt") == "good\n"


async def test_the_frame_says_that_all_changes_are_accepted_as_long_as_they_are(
    asking: Sandbox,
) -> None:
    async with person_at(asking, f"/exec {SLUG}", size=(100, 40)) as person:
        await person.begin("")
        await person.until_asked()
        await person.rest(REST / 2)
        await person.type("a", gap=0)  # too soon to be meant
        await person.rest(60)
        assert person.mode == TITLES["ask"]
        await person.press("backspace")
        await send(person, "a")
        await person.until(lambda: not person.is_waiting)
        assert person.mode == ACCEPTED_RUN
        await person.say("ask")
        assert person.mode == TITLES["ask"]
        await person.begin("")
        await person.until_asked()
        await send(person, "a")
        await person.until(lambda: not person.is_waiting)
        await person.say("all")
        assert asking.statuses() == ["completed"] * 3
        assert person.mode == TITLES["ask"]
