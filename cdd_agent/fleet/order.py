"""The order for a run: everything that one run of a ticket needs. Also the port to the
place that carries it out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, Protocol

from msgspec import Struct

from cdd_agent.fleet.job import Ending, TicketJob


class RunOrder(Struct, frozen=True):
    """One run of a ticket, as given to `cdd exec`. None means the project's setting."""

    project: Path
    ticket: str
    """The slug, or what the user typed for it."""
    own_tree: bool = False
    variant: str = ""
    """The name of a variant of the ticket's run; empty for the run itself."""
    base: str | None = None
    """The first commit of the tree; None for that of the user's branch."""
    model: str | None = None
    api_base: str | None = None
    record: str | None = None
    max_attempts: int | None = None
    require: Literal["verified", "checked", "off"] | None = None
    jobs: int | None = None
    """Maximum number of steps that run at once."""
    approves_all: bool = False
    starts_over: bool = False
    trusts_all: bool = False
    """Settings that need the user's trust take effect in this run."""
    as_json: bool = False
    is_driven: bool = False
    """Another program answers the run's questions on its standard input."""
    asks_before_calls: bool = False
    """That program allows each model call, also without a budget."""

    @property
    def job(self) -> TicketJob:
        # the model is part of a variant's name only
        model = self.model if self.variant else None
        return TicketJob(self.ticket, self.variant, model, self.base)

    @property
    def settings(self) -> dict[str, Any]:
        """The project settings that the order overrides."""
        settings: dict[str, Any] = {
            "model": self.model,
            "api_base": self.api_base,
            "max_attempts": self.max_attempts,
            "jobs": self.jobs,
            "require": self.require,
            "record": self.record,
        }
        if self.variant:
            # these replace the models of all roles, which settings alone do not
            settings["model"] = settings["api_base"] = None
        if self.approves_all:
            settings["approval"] = "auto"
        return settings

    @property
    def arguments(self) -> list[str]:
        flags = {
            "--worktree": self.own_tree,
            "--yes": self.approves_all,
            "--start-over": self.starts_over,
            "--trust": self.trusts_all,
            "--json": self.as_json,
            "--driven": self.is_driven,
            "--ask-before-calls": self.asks_before_calls,
        }
        options = {
            "--variant": self.variant or None,
            "--base": self.base,
            "--model": self.model,
            "--api-base": self.api_base,
            "--record": self.record,
            "--max-attempts": self.max_attempts,
            "--require": self.require,
            "--jobs": self.jobs,
        }
        arguments = ["exec", f"--project={self.project}"]
        arguments += [name for name, is_set in flags.items() if is_set]
        for name, value in options.items():
            if value is not None:
                arguments.append(f"{name}={value}")
        return [*arguments, "--", self.ticket]


OnRunEvent = Callable[[Mapping[str, Any]], None]
"""Receives a run's events as they happen, in the form that `cdd exec --json` prints.
Returns at once.
"""


class Place(Protocol):
    """Carries out runs of tickets in parallel, on this machine or on others."""

    async def carry_out(self, order: RunOrder, on_event: OnRunEvent) -> Ending:
        """Begin or resume the run, and return how it ended. Its work is then on the
        job's branch in the user's repository, with its record next to it.

        A run that fails or cannot begin also gives an `Ending`, or raises `CddError`.
        Cancelling stops the run cleanly: the step is restored, paid replies are kept,
        and the run can be resumed anywhere.
        """
        ...
