"""Runs on this machine: each `cdd exec SLUG --worktree` in its own process, so that a
crash of one harms no other.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from cdd_agent.errors import ExitCode
from cdd_agent.fleet.place import Ending, Tell, TicketJob
from cdd_agent.llm.budget import Limit
from cdd_agent.llm.shared import Shared
from cdd_agent.process.child import Children


class ThisMachine(Struct, frozen=True):
    """Carries out runs in trees of their own in this project."""

    root: Path
    folder: Path
    """Shared by the runs: their budget, and how long a provider asks to wait."""
    children: Children
    flags: Sequence[str] = ()
    """Of `cdd exec`, for all runs."""

    async def carry_out(self, job: TicketJob, left: Limit, tell: Tell) -> Ending:
        del left  # the processes see to it together

        def hear(line: bytes) -> None:
            try:
                event = json.loads(line)
            except ValueError:  # nothing of ours
                return
            tell(event)

        arguments = [
            "-C",
            str(self.root),
            "exec",
            "--worktree",
            "--json",
            "--beside",
            str(self.folder),
            *self.flags,
        ]
        arguments += ["--jobs", "1"]  # of its steps: the machine has others to do
        given = (
            ("--variant", job.variant),
            ("--base", job.base),
            ("--model", job.model),
        )
        arguments += [word for name, value in given if value for word in (name, value)]
        shared = Shared(self.folder, job.name)
        try:
            code, words = await self.children.run(
                [*arguments, "--", job.slug], self.root, hear
            )
        finally:
            is_refused = shared.settle()
        if code < 0:
            return Ending(
                ExitCode.FAILED,
                "Its process was killed; the same command goes on with it.",
            )
        known = ExitCode(code) if code in set(ExitCode) else ExitCode.FAILED
        return Ending(
            known,
            _in_short(words),
            budget_used_up=is_refused and known is ExitCode.NOT_APPROVED,
        )


def _in_short(words: str) -> str:
    """What a process said on standard error: the reason without the program's name, or
    the end of a traceback.
    """
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    ours = [
        number
        for number, line in enumerate(lines)
        if line.startswith("cdd: ") and not line.endswith(" ...")
    ]
    if ours:
        return " ".join(lines[ours[-1] :]).removeprefix("cdd: ")
    return lines[-1] if lines and lines[0].startswith("Traceback") else ""
