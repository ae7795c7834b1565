"""Runs an action plan: shows, approves, carries out and reports each action in
order.
"""

from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

from msgspec import Struct, field

from cdd_agent.actions.model import (
    Action,
    ActionResult,
    ActionStatus,
    ChatWithUserAction,
    ExecutionReport,
)
from cdd_agent.actions.plan import ActionPlan
from cdd_agent.errors import ExitCode
from cdd_agent.events.action_events import (
    ActionFinished,
    ActionOutput,
    ActionsFinished,
    ActionStarted,
)
from cdd_agent.events.question_events import ActionProposed, Choice
from cdd_agent.events.stream import Emit
from cdd_agent.frontend import Frontend
from cdd_agent.process.run import OutputChunk
from cdd_agent.tools.action_runner import ActionRunner

NOT_APPROVED = "Not approved; nothing was done"
STOPPED = "Not run: the run was stopped earlier"
INTERRUPTED = "Interrupted, perhaps after a part of its work"
_SHOWN_LINES = 20
"""Lines of a file shown with a failure; the report has all."""


class ActionPlanRun(Struct):
    """A failed action does not stop the next ones."""

    plan: ActionPlan
    root: Path
    frontend: Frontend
    confirm: bool
    """Ask before each action."""
    emit: Emit
    logs: list[ActionResult] = field(default_factory=list)
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    _begin: float = field(default_factory=monotonic)
    _is_under_way: bool = False
    _has_shown_output: bool = False
    """True if the current command's output was shown live."""
    _failed: int = 0

    async def run(self, runner: ActionRunner) -> None:
        """Carry out the plan. `runner` must send its output to `show_output`.

        Raises `NotApproved` if a question cannot be answered.
        """
        total = len(self.plan.actions)
        for number, action in enumerate(self.plan.actions, 1):
            self.emit(ActionStarted(number, total, action.title()))
            choice = await self._ask(number, action)
            if choice is Choice.QUIT:
                break
            if choice is Choice.NO:
                result = ActionResult(action, ActionStatus.FAILURE, error=NOT_APPROVED)
                self._finish(result, NOT_APPROVED)
            else:
                await self._carry_out(number, action, runner)
        not_done = self.report().failures
        self.emit(
            ActionsFinished(
                succeeded=total - not_done,
                failed=self._failed,
                not_run=not_done - self._failed,
                seconds=monotonic() - self._begin,
                cwd=str(self.root),
            )
        )

    def show_output(self, chunk: OutputChunk) -> None:
        self._has_shown_output = True
        self.emit(ActionOutput(len(self.logs) + 1, chunk.text))

    async def _ask(self, number: int, action: Action) -> Choice:
        # a chat is itself a question
        if not self.confirm or isinstance(action, ChatWithUserAction):
            return Choice.YES
        total = len(self.plan.actions)
        choice = await self.frontend.approve(
            ActionProposed(number, total, action.title(), action.details())
        )
        self.confirm = choice is not Choice.ALWAYS
        return choice

    async def _carry_out(
        self, number: int, action: Action, runner: ActionRunner
    ) -> None:
        self._has_shown_output = False
        self._is_under_way = True
        result = await runner.run(action)
        self._is_under_way = False
        reason = ""
        if result.status is ActionStatus.FAILURE:
            self._failed += 1
            reason = result.error
        if self._has_shown_output:
            # the other lines are standard error
            reason = reason.partition("\n")[0]
        elif result.output:
            self.emit(ActionOutput(number, _shorten_failed_output(result)))
        self._finish(result, reason)

    def _finish(self, result: ActionResult, reason: str) -> None:
        self.logs.append(result)
        number, total = len(self.logs), len(self.plan.actions)
        title = result.action.title()
        self.emit(ActionFinished(number, total, title, result.status, reason))

    def report(self) -> ExecutionReport:
        """Return one result for each action, even if the run was stopped early."""
        logs = list(self.logs)
        reason = INTERRUPTED if self._is_under_way else STOPPED
        for action in self.plan.actions[len(logs) :]:
            logs.append(ActionResult(action, ActionStatus.FAILURE, error=reason))
            reason = STOPPED
        return ExecutionReport.from_logs(
            self.root, logs, self.started_at, monotonic() - self._begin
        )

    @property
    def exit_code(self) -> ExitCode:
        """0 only if nothing failed; 3 if the user did not approve the remaining
        actions.
        """
        if self._failed or self._is_under_way:
            return ExitCode.FAILED
        return ExitCode.NOT_APPROVED if self.report().failures else ExitCode.DONE


def _shorten_failed_output(result: ActionResult) -> str:
    lines = result.output.splitlines()
    if result.status is not ActionStatus.FAILURE or len(lines) <= _SHOWN_LINES:
        return result.output
    more = f"… ({len(lines) - _SHOWN_LINES:,} more lines of the file)"
    return "\n".join([*lines[:_SHOWN_LINES], more])
