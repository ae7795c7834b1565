"""Carrying out an action plan: each action is shown, asked about, done and reported, in the plan's order."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import monotonic

from cdd_agent.actions.model import (
    Action,
    ActionResult,
    ActionStatus,
    ExecutionReport,
)
from cdd_agent.actions.plan import ActionPlan
from cdd_agent.actions.run import ActionRunner
from cdd_agent.errors import ExitCode
from cdd_agent.events import (
    ActionFinished,
    ActionOutput,
    ActionProposed,
    ActionsFinished,
    ActionStarted,
    Choice,
    Event,
)
from cdd_agent.execution.frontend import Frontend
from cdd_agent.workspace.process import OutputChunk

NOT_APPROVED = "Not approved; nothing was done"
STOPPED = "Not run: the run was stopped before it"


@dataclass
class ActionPlanRun:
    """One run of an action plan. A failed action does not stop those after it."""

    runner: ActionRunner
    frontend: Frontend
    confirm: bool
    """Ask before each action."""
    logs: list[ActionResult] = field(default_factory=list)
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    _begin: float = field(default_factory=monotonic)

    async def run(self, plan: ActionPlan) -> AsyncGenerator[Event, None]:
        """Yield what happens. Raises `NotApproved` where there is nobody to ask."""
        total = len(plan.actions)
        for number, action in enumerate(plan.actions, 1):
            yield ActionStarted(number, total, action.title())
            choice = await self._choice(number, total, action)
            if choice is Choice.QUIT:
                left = plan.actions[number - 1 :]
                self.logs += [ActionResult(action, ActionStatus.FAILURE, error=STOPPED) for action in left]
                break
            if choice is Choice.NO:
                self.logs.append(ActionResult(action, ActionStatus.FAILURE, error=NOT_APPROVED))
            else:
                async with aclosing(self._done(number, action)) as events:
                    async for event in events:
                        yield event
            result = self.logs[-1]
            yield ActionFinished(number, total, action.title(), result.status, result.error)
        failed = len(self.report().failed)
        yield ActionsFinished(total - failed, failed, monotonic() - self._begin, str(self.runner.root))

    async def _choice(self, number: int, total: int, action: Action) -> Choice:
        if not self.confirm:
            return Choice.YES
        choice = await self.frontend.approve(ActionProposed(number, total, action.title(), action.details()))
        self.confirm = choice is not Choice.ALWAYS
        return choice

    async def _done(self, number: int, action: Action) -> AsyncGenerator[Event, None]:
        told = False
        async with aclosing(self.runner.run(action)) as items:
            async for item in items:
                if isinstance(item, OutputChunk):
                    told = True
                    yield ActionOutput(number, item.text)
                    continue
                self.logs.append(item)
                if item.output and not told:
                    yield ActionOutput(number, item.output)

    def report(self) -> ExecutionReport:
        """What became of the actions so far."""
        return ExecutionReport.of(self.runner.root, self.logs, self.started_at, monotonic() - self._begin)

    @property
    def exit_code(self) -> ExitCode:
        """0 only if nothing failed; 3 if all that was not done is what a person did not approve."""
        errors = {log.error for log in self.report().failed}
        if not errors:
            return ExitCode.DONE
        return ExitCode.NOT_APPROVED if errors <= {NOT_APPROVED, STOPPED} else ExitCode.FAILED
