"""Asks whether a step may remove or weaken tests that its plan does not name.

The answer is saved with the attempt, so that a resumed run does not ask again. A yes
holds for these tests in all attempts at the step.
"""

from collections.abc import Sequence
from pathlib import PurePosixPath

from msgspec import Struct

from cdd_agent.engine.attempt import Attempt
from cdd_agent.events.question_events import Choice, LostTest, TestLossProposed
from cdd_agent.events.stream import Emit
from cdd_agent.files.json_file import JsonFile
from cdd_agent.frontend import Frontend, NobodyHere
from cdd_agent.process.work_clock import WorkClock
from cdd_agent.tickets.plan import PlanStep
from cdd_agent.verification.permissions import REMOVES_TESTS

_NAME = "test-leave.json"
_NAMED_IN_HINT = 3


class _Answer(JsonFile, frozen=True):
    step: str
    """The step's title: in another plan, the number means another step."""
    tests: tuple[str, ...]
    is_allowed: bool


class TestLeave(Struct):
    """The user's answers about an attempt's tests."""

    step: PlanStep
    attempt: Attempt
    user: Frontend
    clock: WorkClock
    """Stops while the user thinks."""
    emit: Emit
    hint: str = ""
    """A remark for the user about permission that was not given."""

    __test__ = False  # not a test class, despite its name

    async def allow(self, lost: Sequence[LostTest]) -> frozenset[str]:
        """Return the ids of all tests if the user allows their loss, now or earlier,
        else none. Raises `NotApproved` if the user leaves without an answer.
        """
        tests = frozenset(item.test for item in lost)
        if tests <= self._load_allowed():
            return tests
        file = self.attempt.folder / _NAME
        answer = _Answer.load(file)
        if answer is None or tests != frozenset(answer.tests):
            try:
                is_allowed = await self._ask(lost)
            except NobodyHere:
                self.hint = _field_to_add(self.step, lost)
                return frozenset()
            answer = _Answer(self.step.title, tuple(sorted(tests)), is_allowed)
            answer.save(file)
        if answer.is_allowed:
            return tests
        self.hint = "You did not allow this"
        return frozenset()

    def _load_allowed(self) -> frozenset[str]:
        allowed: set[str] = set()
        for file in self.attempt.folder.parent.glob(f"attempt-*/{_NAME}"):
            answer = _Answer.load(file)
            if answer and answer.is_allowed and answer.step == self.step.title:
                allowed.update(answer.tests)
        return frozenset(allowed)

    async def _ask(self, lost: Sequence[LostTest]) -> bool:
        proposal = TestLossProposed(self.step.number, self.step.label, tuple(lost))
        with self.clock.standing_still():
            self.emit(proposal)
            return await self.user.approve(proposal) is Choice.YES


def _field_to_add(step: PlanStep, lost: Sequence[LostTest]) -> str:
    """Return a hint with the field that allows the loss, naming ids, files or folders,
    whichever are few.
    """
    names = [item.test for item in lost]
    # a comma separates entries
    if len(names) > _NAMED_IN_HINT or any("," in name for name in names):
        names = list(dict.fromkeys(name.partition("::")[0] for name in names))
    if len(names) > _NAMED_IN_HINT:
        folders = [str(PurePosixPath(name).parent) for name in names]
        names = list(dict.fromkeys(f"{folder}/" for folder in folders))
    field = f"**{REMOVES_TESTS}:** {', '.join(names)}"
    return f"To allow it, add `{field}` to step {step.label} in plan.md"
