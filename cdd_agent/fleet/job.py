"""The identity of a run, and its end."""

from __future__ import annotations

from msgspec import Struct

from cdd_agent.errors import ExitCode


class TicketJob(Struct, frozen=True):
    """One run of a ticket, in a separate worktree."""

    slug: str
    variant: str = ""
    """The name of a variant of the ticket's run; empty for the run itself."""
    model: str | None = None
    """The model of a variant, which replaces all models of the settings."""
    base: str | None = None
    """The first commit of the tree; None for that of the user's branch."""

    @property
    def name(self) -> str:
        """The name of the run's record, branch and row on the board."""
        return f"{self.slug}--{self.variant}" if self.variant else self.slug

    @property
    def branch(self) -> str:
        return f"cdd/{self.name}"


class Ending(Struct, frozen=True):
    exit_code: ExitCode
    """The exit code of `cdd exec`."""
    words: str = ""
    """The reason for the user, if no event had it."""
    budget_used_up: bool = False
    """It stopped, with `NOT_APPROVED`, before a call that could exceed the budget of
    all runs.
    """
