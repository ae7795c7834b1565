"""The shell asks whether a step may remove tests that its plan does not name."""

import pytest

from cdd_agent.tui.widgets.question import Question
from tests.engine.calculator import FIXED, SUB, TEST_SUB, TESTS, calculator, gives
from tests.support.projects import SLUG, Sandbox, Step
from tests.support.tables import each_row
from tests.tui.person import Person, person_at

REMOVES = gives(calc_dot_py=FIXED, tests__test_calc_dot_py=TESTS.replace(TEST_SUB, ""))


@pytest.fixture
def removing(sandbox: Sandbox) -> Sandbox:
    step = Step("calc.py", also=("`tests/test_calc.py`",))
    return calculator(sandbox, step).replies(REMOVES)


async def until_asked(person: Person) -> None:
    await person.begin("")
    await person.until_asked()


async def test_the_tests_are_listed_and_a_yes_completes_the_step(
    removing: Sandbox,
) -> None:
    async with person_at(removing, f"/exec {SLUG}") as person:
        await until_asked(person)
        assert SUB in person.screen
        assert "[y] yes   [n] no" in person.screen
        assert "always" not in person.screen
        await person.answer("y")
        await person.until(lambda: not person.is_waiting)
        assert not person.app.query(Question)
    assert removing.statuses() == ["completed"]


@each_row(
    ("key", "status"), [("n", "failed"), ("escape", "failed"), ("ctrl+c", "pending")]
)
async def test_a_no_and_escape_fail_the_step_and_ctrl_c_leaves_it_pending(
    removing: Sandbox, key: str, status: str
) -> None:
    removing.flags["max_attempts"] = 1
    async with person_at(removing, f"/exec {SLUG}") as person:
        await until_asked(person)
        await person.answer(key)
        await person.until(lambda: not person.is_waiting)
        assert not person.app.query(Question)
        assert removing.statuses() == [status]


async def test_leaving_at_the_question_loses_nothing(removing: Sandbox) -> None:
    async with person_at(removing, f"/exec {SLUG}") as person:
        await until_asked(person)
        await person.press("ctrl+d")
        await person.until(lambda: not person.app.is_running)
    assert removing.statuses() == ["pending"]
    assert removing.text("tests/test_calc.py") == TESTS

    async with person_at(removing.replies(), f"/exec {SLUG}") as person:
        await until_asked(person)
        await person.answer("y")
        await person.until(lambda: not person.is_waiting)
    assert removing.statuses() == ["completed"]


async def test_what_was_typed_before_the_question_is_no_answer(
    removing: Sandbox,
) -> None:
    async with person_at(removing, f"/exec {SLUG}") as person:
        await until_asked(person)
        await person.type("yes please, but")
        assert person.is_waiting
        assert person.prompt.text == "yes please, but"
        assert person.app.query(Question)
