"""A step's failure as the user sees it, while the step is retried.

The files of a failed attempt are restored before the next attempt. If no model can be
asked then, the run has an error and the step does not: its failure and its files are
reinstated.
"""

from typing import Self

from msgspec import Struct

from cdd_agent.engine.ledger_entries import last_restoring
from cdd_agent.engine.run import Run
from cdd_agent.git.diff import Change
from cdd_agent.tickets.state import StepExecution
from cdd_agent.tickets.status import StepStatus


class FailedStep(Struct, frozen=True):
    """A failed step, whose files were restored."""

    execution: StepExecution
    restored: tuple[Change, ...] = ()
    """The files that were restored, from how the attempt left them to how they are."""

    @classmethod
    def restore(cls, run: Run, number: int) -> tuple[Self | None, tuple[str, ...]]:
        """Restore what a step's attempts changed. Returns its failure, None if the step
        has not failed, and the files that stay because they were edited since.
        """
        execution = run.state.step(number)
        attempts = run.remaining_attempts(execution)
        earlier = last_restoring(attempts)
        back = run.restore(number)
        edited = (*back.kept, *back.merged) if back else ()
        if execution.status is not StepStatus.FAILED or not execution.attempts:
            return None, edited
        # a file that was as before already is the user's doing
        paths = back.restored if back else ()
        entry = last_restoring(attempts)
        changes = entry.changes if entry and entry != earlier else ()
        restored = tuple(change for change in changes if change.path in paths)
        return cls(execution, restored), edited

    def after(self, earlier: Self | None) -> Self:
        """Return the same failure, with the files of its earlier restoring if this one
        had nothing left to restore.
        """
        if self.restored or earlier is None:
            return self
        is_same = earlier.execution.attempts == self.execution.attempts
        return earlier if is_same else self

    def reinstate(self, run: Run) -> tuple[str, ...]:
        """Write the files again as the failed attempt left them, except those that
        have changed since. Returns the files that were written.
        """
        if not self.restored:
            return ()
        return run.restorer(self.execution).reinstate(self.restored).restored
