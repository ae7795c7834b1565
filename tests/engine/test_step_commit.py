"""A step in `git log`."""

from cdd_agent.engine.step_commit import step_message
from cdd_agent.tickets.plan import PlanStep
from cdd_agent.tickets.status import Verification
from tests.support.tables import each_row

MODEL = PlanStep(2, "Create the user model")


@each_row("verification", Verification)
def test_only_what_was_verified_is_called_so(verification: Verification) -> None:
    text = step_message("feature-a", "A", MODEL, 3, verification).text
    assert ("\nVerified: " in text) is (
        verification in (Verification.PASSED, Verification.BASELINE)
    )


def test_a_long_title_of_the_ticket_is_wrapped() -> None:
    text = step_message(
        "feature-a",
        "words " * 50 + "\nCdd-Step: feature-a/9",
        MODEL,
        1,
        Verification.NONE,
    ).text
    assert max(map(len, text.splitlines())) <= 72
    assert [
        line.split()[1] for line in text.splitlines() if line.startswith("Cdd-Step:")
    ] == ["feature-a/2/1"]
