"""A step's failure, kept while the step is retried.

A failed attempt is restored before the next. If no model can be asked then, that is an
error of the run: the step's failure and files are reinstated.
"""

from typing import Self

from msgspec import Struct

from cdd_agent.engine.ledger_entries import last_restoring
from cdd_agent.engine.run import Run
from cdd_agent.git.diff import Change
from cdd_agent.tickets.state import StepExecution
from cdd_agent.tickets.status import StepStatus


class FailedStep(Struct, frozen=True):
    """A failed step whose files were restored."""

    execution: StepExecution
    restored: tuple[Change, ...] = ()
    """Restored files, from the attempt's content to the current one."""

    @classmethod
    def restore(cls, run: Run, number: int) -> tuple[Self | None, tuple[str, ...]]:
        """Restore a step's attempts. Returns the failure (None if it has not failed),
        and files that stay because they were edited since.
        """
        execution = run.state.step(number)
        attempts = run.remaining_attempts(execution)
        earlier = last_restoring(attempts)
        back = run.restore(number)
        edited = (*back.kept, *back.merged) if back else ()
        if execution.status is not StepStatus.FAILED or not execution.attempts:
            return None, edited
        # a file that already was as before is the user's doing
        paths = back.restored if back else ()
        entry = last_restoring(attempts)
        changes = entry.changes if entry and entry != earlier else ()
        restored = tuple(change for change in changes if change.path in paths)
        return cls(execution, restored), edited

    def after(self, earlier: Self | None) -> Self:
        """Return this failure, or `earlier` if that is of the same attempt and only its
        restoring had files to restore.
        """
        if self.restored or earlier is None:
            return self
        is_same = earlier.execution.attempts == self.execution.attempts
        return earlier if is_same else self

    def reinstate(self, run: Run) -> tuple[str, ...]:
        """Write the failed attempt's files again, except those changed since. Returns
        their paths.
        """
        if not self.restored:
            return ()
        return run.restorer(self.execution).reinstate(self.restored).restored
