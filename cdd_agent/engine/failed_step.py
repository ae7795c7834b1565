"""A step's failure as the user sees it, while the step is retried.

The files of a failed attempt are restored before the next attempt. If no model can be
asked then, the run has an error and the step does not: its failure and its files are
reinstated.
"""

from typing import Self

from msgspec import Struct

from cdd_agent.engine.ledger_entries import last_restoring
from cdd_agent.engine.ledger_file import Entry
from cdd_agent.engine.run import Run
from cdd_agent.tickets.state import StepExecution
from cdd_agent.tickets.status import StepStatus


class FailedStep(Struct, frozen=True):
    """A failed step, whose files were restored."""

    execution: StepExecution
    restoring: Entry | None
    """The ledger's entry of that; None if nothing was restored."""

    @classmethod
    def restore(cls, run: Run, number: int) -> tuple[Self | None, tuple[str, ...]]:
        """Restore what a step's attempts changed. Returns its failure, None if the step
        has not failed, and the files that stay because they were edited since.
        """
        execution = run.state.step(number)
        attempts = run.remaining_attempts(execution)
        earlier = last_restoring(attempts)
        kept = run.restore(number)
        if execution.status is not StepStatus.FAILED or not execution.attempts:
            return None, kept
        restoring = last_restoring(attempts)
        return cls(execution, None if restoring == earlier else restoring), kept

    def after(self, earlier: Self | None) -> Self:
        """Return the same failure, with the entry of its earlier restoring if this one
        had nothing left to restore.
        """
        if self.restoring is not None or earlier is None:
            return self
        is_same = earlier.execution.attempts == self.execution.attempts
        return earlier if is_same else self

    def reinstate(self, run: Run) -> tuple[str, ...]:
        """Write the files again as the failed attempt left them, except those that
        have changed since. Returns the files that were written.
        """
        if self.restoring is None:
            return ()
        return run.restorer(self.execution).reinstate(self.restoring).restored
