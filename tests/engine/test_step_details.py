"""What is known of a step, test by test; read from nothing but what is the step's
own.
"""

from pathlib import Path

import pytest

from cdd_agent.engine.step_details import SeenTest, StepDetails, step_details
from cdd_agent.text.redaction import Redactor
from cdd_agent.tickets.status import StepStatus
from cdd_agent.verification.outcomes import Result
from tests.engine.calculator import ADD, FIXED, SUB, calculator, gives
from tests.support.projects import SLUG, Copied, Sandbox, Step, run_all

PASSED, FAILED = Result.PASSED, Result.FAILED
MULTIPLIES = f"{FIXED}\n\ndef mul(a, b):\n    return a * b\n"
TEST_MUL, MUL = (
    "from calc import mul\n\n\ndef test_mul():\n    assert mul(2, 3) == 6\n",
    "tests/test_mul.py::test_mul",
)


def details(sandbox: Sandbox, number: int) -> StepDetails:
    return step_details(sandbox.project.tickets.find(SLUG), number, Redactor())


async def carried_out(sandbox: Sandbox) -> None:
    calculator(
        sandbox,
        Step("calc.py", description="Fix sub."),
        Step("calc.py", also=("tests/test_mul.py",)),
    )
    broken = FIXED.replace("a + b", "a * b")
    sandbox.replies(
        *(gives(calc_dot_py=text) for text in (broken, FIXED)),
        gives(calc_dot_py=MULTIPLIES, tests__test_mul_dot_py=TEST_MUL),
    )
    await run_all(sandbox, attempts=2)


@pytest.fixture
async def two_done(copied: Copied) -> Sandbox:
    """The first step fixes a test, at its second attempt; the second one brings a test
    of its own.
    """
    return await copied(carried_out)


async def test_each_attempts_tests_are_told_beside_what_they_were_before_the_step(
    two_done: Sandbox,
) -> None:
    first, second = details(two_done, 1), details(two_done, 2)
    assert [attempt.tests for attempt in first.attempts] == [
        (SeenTest(ADD, FAILED, PASSED), SeenTest(SUB, PASSED, FAILED)),
        (SeenTest(SUB, PASSED, FAILED), SeenTest(ADD, PASSED, PASSED)),
    ]
    (only,) = second.attempts
    assert set(only.tests) == {
        SeenTest(MUL, PASSED, None),
        SeenTest(ADD, PASSED, PASSED),
        SeenTest(SUB, PASSED, PASSED),
    }
    assert only.tests[0].name == MUL


async def test_it_is_read_without_the_log_and_the_other_steps(
    two_done: Sandbox,
) -> None:
    before = details(two_done, 2)
    record = two_done.root / ".cdd" / "runs" / SLUG
    for path in (
        record / "events.jsonl",
        record / "baseline.json",
        *(record / "step-01").rglob("*.json"),
    ):
        path.write_text("not to be read")
    assert details(two_done, 2) == before
    assert before.view.cost.tokens
    assert before.view.status is StepStatus.COMPLETED


async def test_of_an_older_record_it_is_found_out_from_the_steps_before(
    two_done: Sandbox,
) -> None:
    before = [details(two_done, number) for number in (1, 2)]
    for path in Path(two_done.root).rglob("before.json"):
        path.unlink()
    assert [details(two_done, number) for number in (1, 2)] == before
