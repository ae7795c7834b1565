"""The message of a completed step's commit."""

import textwrap

from cdd_agent.git.commit_message import CommitMessage
from cdd_agent.tickets.plan import PlanStep
from cdd_agent.tickets.status import Verification

_WIDTH = 72
_VERIFIED = {
    Verification.PASSED: "Verified: its check passed.",
    Verification.BASELINE: (
        "Verified: only tests that failed before the first step still fail."
    ),
    Verification.NONE: "Not verified: there was nothing to run.",
}


def step_message(
    ticket_slug: str,
    ticket_title: str,
    step: PlanStep,
    attempt: int,
    verification: Verification,
    *,
    folder: int = 0,
) -> CommitMessage:
    """The step's title, which ticket it is of, and how far it can be trusted.

    The trailer names the attempt too: a step that is undone and done again has another
    one. `folder` is the number by which the run's record knows the step, if it is
    another one: after a renumbering two steps have had the same number.
    """
    origin = textwrap.fill(
        f"Step {step.label} of {ticket_slug}: {ticket_title}",
        _WIDTH,
        break_long_words=False,
    )
    trailer = f"Cdd-Step: {ticket_slug}/{folder or step.number}/{attempt}"
    return CommitMessage(step.title, f"{origin}\n\n{_VERIFIED[verification]}", trailer)
