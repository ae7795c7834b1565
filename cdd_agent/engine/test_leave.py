"""The question whether a step may remove or weaken tests, if its plan does not say
which tests it may remove.

The answer is saved with the attempt, so that no resumed run asks twice. A yes holds for
these tests in all attempts at the step.
"""

from collections.abc import Sequence
from enum import Enum, auto
from pathlib import PurePosixPath

from msgspec import Struct

from cdd_agent.engine.attempt import Attempt
from cdd_agent.events import Choice, Emit, LostTest, TestLossProposed
from cdd_agent.files.json_file import JsonFile
from cdd_agent.frontend import Frontend, NobodyHere
from cdd_agent.tickets.plan import PlanStep
from cdd_agent.verification.permissions import REMOVES_TESTS
from cdd_agent.work_clock import WorkClock

_NAME = "test-leave.json"
_NAMED_IN_HINT = 3


class LeaveAnswer(Enum):
    YES = auto()
    NO = auto()
    NOBODY = auto()
    """There is no user to ask."""


class _Answer(JsonFile, frozen=True):
    step: str
    """The step's title: under the same number, another plan has another step."""
    tests: tuple[str, ...]
    is_allowed: bool


class TestLeave(Struct, frozen=True):
    """The user's answers about the tests of one attempt."""

    step: PlanStep
    attempt: Attempt
    user: Frontend
    clock: WorkClock
    """Stops while the user thinks."""
    emit: Emit

    __test__ = False  # not a test class, whatever its name

    def load_allowed(self) -> frozenset[str]:
        """Return the ids of the tests that the user let this step remove. Raises
        `Damaged`.
        """
        allowed: set[str] = set()
        for file in self.attempt.folder.parent.glob(f"attempt-*/{_NAME}"):
            answer = _Answer.load(file)
            if answer and answer.is_allowed and answer.step == self.step.title:
                allowed.update(answer.tests)
        return frozenset(allowed)

    async def ask(self, lost: Sequence[LostTest]) -> LeaveAnswer:
        """Ask the user, or return the answer from before an interruption. Raises
        `NotApproved` if the user leaves without an answer.
        """
        tests = tuple(item.test for item in lost)
        saved = _Answer.load(self.attempt.folder / _NAME)
        if saved is not None and saved.tests == tests:
            return LeaveAnswer.YES if saved.is_allowed else LeaveAnswer.NO
        proposal = TestLossProposed(self.step.number, self.step.label, tuple(lost))
        try:
            with self.clock.standing_still():
                self.emit(proposal)
                choice = await self.user.approve(proposal)
        except NobodyHere:
            return LeaveAnswer.NOBODY
        is_allowed = choice is Choice.YES
        answer = _Answer(self.step.title, tests, is_allowed)
        answer.save(self.attempt.folder / _NAME)
        return LeaveAnswer.YES if is_allowed else LeaveAnswer.NO


def leave_hint(step: PlanStep, lost: Sequence[LostTest]) -> str:
    """Return what to write into the plan to allow a loss of tests."""
    names = [item.test for item in lost]
    if len(names) > _NAMED_IN_HINT:
        names = [name.partition("::")[0] for name in names]
    names = list(dict.fromkeys(names))
    if len(names) > _NAMED_IN_HINT:
        names = list(dict.fromkeys(f"{PurePosixPath(name).parent}/" for name in names))
    value = ", ".join(f"`{name}`" for name in names)
    return (
        f"To allow it, add `**{REMOVES_TESTS}:** {value}` to step {step.label} in"
        " plan.md"
    )
