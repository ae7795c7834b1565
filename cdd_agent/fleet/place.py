"""The port through which tickets are carried out somewhere: on this machine, or on
others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from msgspec import Struct

from cdd_agent.errors import ExitCode
from cdd_agent.llm.budget import Limit


class TicketJob(Struct, frozen=True):
    """A ticket's run that is to be carried out to its end, in a tree of its own."""

    slug: str
    variant: str = ""
    """Of several runs of one ticket beside each other, which one; empty: the ticket's
    own run.
    """
    model: str | None = None
    """Asked instead of the one that the settings name."""
    base: str | None = None
    """The commit that its tree begins at; None: where the person's branch is when it
    begins.
    """

    @property
    def name(self) -> str:
        """By this its record, its branch and its row on the board are known."""
        return f"{self.slug}--{self.variant}" if self.variant else self.slug

    @property
    def branch(self) -> str:
        return f"cdd/{self.name}"


class Ending(Struct, frozen=True):
    """The end of a job: the exit code as that of `cdd exec`, and words for people that
    no event had.
    """

    exit_code: ExitCode
    words: str = ""
    budget_used_up: bool = False
    """It stopped, with `NOT_APPROVED`, before a call that could pass the budget of all
    runs.
    """


Tell = Callable[[Mapping[str, Any]], None]
"""Is told a run's events, in order and as they happen, each as `cdd exec --json` prints
it. It returns at once.
"""


class Place(Protocol):
    """Somewhere that carries out tickets' runs; several at once."""

    async def carry_out(self, job: TicketJob, left: Limit, tell: Tell) -> Ending:
        """Begin the run, or go on with it, and see it to its end; its work is then on
        the job's branch in the person's repository, and its record beside it. `left` is
        what is left of the budget of all runs, as this one begins.

        A run that fails, or cannot be begun, is an `Ending`, too. To cancel it stops
        the run cleanly: the step is put back, what was paid for is kept, and it can be
        carried out again, here or elsewhere.
        """
        ...
