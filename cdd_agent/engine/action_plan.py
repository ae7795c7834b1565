"""Carrying out an action plan: each action is shown, asked about, done and reported, in
the plan's order.
"""

from datetime import UTC, datetime
from time import monotonic

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.actions.model import (
    Action,
    ActionResult,
    ActionStatus,
    ChatWithUserAction,
    ExecutionReport,
)
from cdd_agent.actions.plan import ActionPlan
from cdd_agent.errors import ExitCode
from cdd_agent.events import (
    ActionFinished,
    ActionOutput,
    ActionProposed,
    ActionsFinished,
    ActionStarted,
    Choice,
    Emit,
)
from cdd_agent.frontend import Frontend
from cdd_agent.process.run import OutputChunk
from cdd_agent.tools.action_runner import ActionRunner

NOT_APPROVED = "Not approved; nothing was done"
STOPPED = "Not run: the run was stopped before it"
INTERRUPTED = "Interrupted: it may be done in part"
_SHOWN_LINES = 20
"""Lines of a file's present content that are shown with a failure; the report has all.
"""


class ActionPlanRun(Struct):
    """One run of an action plan. A failed action does not stop those after it."""

    runner: ActionRunner
    frontend: Frontend
    plan: ActionPlan
    confirm: bool
    """Ask before each action."""
    emit: Emit
    logs: list[ActionResult] = field(default_factory=list)
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    _begin: float = field(default_factory=monotonic)
    _under_way: bool = False
    _failed: int = 0

    async def run(self) -> None:
        """To the plan's end. Raises `NotApproved` where there is nobody to ask."""
        total = len(self.plan.actions)
        for number, action in enumerate(self.plan.actions, 1):
            title, choice = action.title(), Choice.YES
            self.emit(ActionStarted(number, total, title))
            # that is a question by itself
            if self.confirm and not isinstance(action, ChatWithUserAction):
                choice = await self.frontend.approve(
                    ActionProposed(number, total, title, action.details())
                )
                self.confirm = choice is not Choice.ALWAYS
            if choice is Choice.QUIT:
                break
            if choice is Choice.NO:
                self.logs.append(
                    ActionResult(action, ActionStatus.FAILURE, error=NOT_APPROVED)
                )
                self.emit(
                    ActionFinished(
                        number, total, title, ActionStatus.FAILURE, NOT_APPROVED
                    )
                )
                continue
            await self._do(number, total, action)
        not_done = len(self.report().failed)
        self.emit(
            ActionsFinished(
                succeeded=total - not_done,
                failed=self._failed,
                not_run=not_done - self._failed,
                seconds=monotonic() - self._begin,
                cwd=str(self.runner.root),
            )
        )

    async def _do(self, number: int, total: int, action: Action) -> None:
        is_told = False

        def hear(chunk: OutputChunk) -> None:
            nonlocal is_told
            is_told = True
            self.emit(ActionOutput(number, chunk.text))

        self._under_way = True
        result = await replace(self.runner, hear=hear).run(action)
        self._under_way = False
        self.logs.append(result)
        has_failed = result.status is ActionStatus.FAILURE
        self._failed += has_failed
        why = result.error if has_failed else ""
        if is_told:
            why = why.partition("\n")[0]  # the rest was told as it came
        elif result.output:
            text, lines = result.output, result.output.splitlines()
            if has_failed and len(lines) > _SHOWN_LINES:
                more = (
                    f"… ({len(lines) - _SHOWN_LINES:,} more lines of the file as it is)"
                )
                text = "\n".join([*lines[:_SHOWN_LINES], more])
            self.emit(ActionOutput(number, text))
        self.emit(ActionFinished(number, total, action.title(), result.status, why))

    def report(self) -> ExecutionReport:
        """The fate of every action of the plan, also when the run was stopped before
        its end.
        """
        left = self.plan.actions[len(self.logs) :]
        rest = [
            ActionResult(action, ActionStatus.FAILURE, error=STOPPED) for action in left
        ]
        if self._under_way:
            rest[0] = ActionResult(left[0], ActionStatus.FAILURE, error=INTERRUPTED)
        return ExecutionReport.of(
            self.runner.root,
            [*self.logs, *rest],
            self.started_at,
            monotonic() - self._begin,
        )

    @property
    def exit_code(self) -> ExitCode:
        """0 only if nothing failed; 3 if all that was not done is what a person did not
        approve.
        """
        if self._failed or self._under_way:
            return ExitCode.FAILED
        return ExitCode.NOT_APPROVED if self.report().failed else ExitCode.DONE
