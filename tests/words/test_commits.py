"""A step in `git log`, word for word."""

from cdd_agent.engine.step_commit import step_message
from cdd_agent.tickets.status import Evidence, Verification
from tests.engine.test_step_commit import MODEL


def test_a_steps_message_names_the_work_its_ticket_and_how_it_was_verified() -> None:
    message = step_message(
        "feature-user-auth",
        "User authentication",
        MODEL,
        1,
        Verification.PASSED,
        Evidence("x", 1, new=1),
    )
    assert message.text == (
        "Create the user model\n\n"
        "Step 2 of feature-user-auth: User authentication\n\n"
        "Verified by tests: 1 new test passed.\n\n"
        "Cdd-Step: feature-user-auth/2/1\n"
    )
