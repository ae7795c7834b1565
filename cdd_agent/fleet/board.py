"""The board: where each of several runs is, what it took, what it waits for. A value,
made from the runs' events.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.errors import ExitCode
from cdd_agent.fleet.place import Ending, TicketJob
from cdd_agent.tickets.status import NO_COST, Cost, StepStatus


class RunState(StrEnum):
    """Where one of the runs is."""

    WAITING = "waiting"
    """Its turn has not come."""
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    REFUSED = "refused"
    """It could not be begun, or not be gone on with."""
    NEEDS_YOU = "needs you"
    """It stopped at something that nobody approved."""
    NO_BUDGET = "no budget"
    LATER = "later"
    """The provider asks to come back."""
    STOPPED = "stopped"

    @property
    def is_over(self) -> bool:
        return self not in (RunState.WAITING, RunState.RUNNING)


_BY_CODE = {
    ExitCode.DONE: RunState.DONE,
    ExitCode.FAILED: RunState.FAILED,
    ExitCode.BAD_INPUT: RunState.REFUSED,
    ExitCode.NOT_APPROVED: RunState.NEEDS_YOU,
    ExitCode.COME_BACK_LATER: RunState.LATER,
    ExitCode.INTERRUPTED: RunState.STOPPED,
}
_WORST_FIRST = (
    (RunState.FAILED, ExitCode.FAILED),
    (RunState.REFUSED, ExitCode.BAD_INPUT),
    (RunState.NEEDS_YOU, ExitCode.NOT_APPROVED),
    (RunState.NO_BUDGET, ExitCode.NOT_APPROVED),
    (RunState.LATER, ExitCode.COME_BACK_LATER),
    (RunState.STOPPED, ExitCode.INTERRUPTED),
    (RunState.WAITING, ExitCode.INTERRUPTED),
)


class Row(Struct, frozen=True):
    """One run."""

    job: TicketJob
    state: RunState = RunState.WAITING
    done: int = 0
    total: int = 0
    """Steps; 0 while that is not known."""
    steps: Mapping[int, str] = field(default_factory=dict)
    """The titles of those that are under way, or failed."""
    labels: Mapping[int, str] = field(default_factory=dict)
    """What users call the steps."""
    wait: str = ""
    """What keeps it waiting."""
    attempts: int = 0
    """Of all steps."""
    tests: tuple[int, int] | None = None
    """How many passed and failed in the last check that told."""
    why: str = ""
    """The reason why it stopped."""
    question: str = ""
    """What it waits for a person to approve."""
    costs: Mapping[int, Cost] = field(default_factory=dict)
    """By step; 0 has those of steps that are no longer in the plan."""
    unsaved: Mapping[int, Cost] = field(default_factory=dict)
    """Of calls in steps that are under way, by step."""
    tries: Mapping[int, int] = field(default_factory=dict)
    """Attempts by step."""
    earlier: float = 0.0
    """Seconds that it took before it was begun here."""
    worked: float = 0.0
    """Seconds of its steps so far, waiting for a person left out."""
    began: float | None = None
    """As a Unix time."""
    ended: float | None = None

    @property
    def cost(self) -> Cost:
        return sum((*self.costs.values(), *self.unsaved.values()), NO_COST)

    def label_of(self, number: int) -> str:
        return self.labels.get(number, str(number))

    def seconds(self, now: float) -> float:
        if self.began is None:
            return self.earlier
        return self.earlier + (self.ended or now) - self.began

    def told(self, event: Mapping[str, Any]) -> Row:
        """The row after this event of the run, as `cdd exec --json` prints it."""
        match event:
            case {"event": "plan_opened", "steps": [*steps]}:
                over = [step for step in steps if StepStatus(step["status"]).is_over]
                seen = [step["evidence"] for step in steps if step["evidence"]]
                worked = sum(step["seconds"] or 0.0 for step in steps)
                tests = [
                    (each["passed"], each["failed"])
                    for each in seen
                    if each["passed"] is not None
                ]
                return replace(
                    self,
                    done=len(over),
                    total=len(steps),
                    tests=tests[-1] if tests else self.tests,
                    costs={0: _cost(event["former_cost"])}
                    | {step["number"]: _cost(step["cost"]) for step in steps},
                    tries={step["number"]: step["attempts"] for step in steps},
                    labels={step["number"]: step["label"] for step in steps},
                    earlier=worked,
                    worked=worked,
                    unsaved={},
                )
            case {
                "event": "step_started",
                "step": int(step),
                "title": title,
                "attempt": int(attempt),
            }:
                tries = {**self.tries, step: attempt}
                return replace(
                    self,
                    steps={**self.steps, step: title},
                    wait="",
                    tries=tries,
                    question="",
                    why="",
                )
            case {"event": "reply_delayed", "seconds": seconds, "reason": reason}:
                return replace(self, wait=f"{reason} Asking again in {seconds:.0f} s")
            case {"event": "reply_finished", "step": step, "usage": {} as usage}:
                tokens = usage["prompt_tokens"] + usage["completion_tokens"]
                cost = Cost(tokens, usage["usd"], usage["estimated"])
                return replace(
                    self,
                    wait="",
                    unsaved={
                        **self.unsaved,
                        step: self.unsaved.get(step, NO_COST) + cost,
                    },
                )
            case {
                "event": (
                    "reply_started"
                    | "reply_delta"
                    | "reply_restarted"
                    | "reply_finished"
                )
            }:
                return replace(self, wait="") if self.wait else self
            case {
                "event": "changes_proposed",
                "step": int(),
                "created": created,
                "modified": modified,
            }:
                return replace(
                    self,
                    question=(
                        "changes of"
                        f" {', '.join([*created, *modified, *event['deleted']])}"
                    ),
                )
            case {"event": "command_proposed", "command": command}:
                return replace(self, question=f"`{command}`")
            case {
                "event": "tests_finished",
                "passed": int(passed),
                "failed": int(failed),
            }:
                return replace(self, tests=(passed, failed))
            case {
                "event": "step_finished",
                "step": int(step),
                "done": done,
                "total": total,
            }:
                now = replace(
                    self,
                    done=done,
                    total=total,
                    wait="",
                    costs={**self.costs, step: _cost(event["cost"])},
                    unsaved={
                        number: cost
                        for number, cost in self.unsaved.items()
                        if number != step
                    },
                    why=event["error"] or "",
                )
                left = {
                    number: title
                    for number, title in self.steps.items()
                    if number != step
                }
                return (
                    replace(now, steps=left, question="")
                    if StepStatus(event["status"]).is_over
                    else now
                )
            case {"event": "run_finished", "seconds": seconds}:
                edited = [
                    f"criterion {criterion['place']} is {criterion['edit']}"
                    for criterion in event.get("edited_criteria", ())
                ]
                why = "; ".join(edited) or self.why
                return replace(self, worked=seconds or 0.0, why=why)
            case {"event": "notice", "tone": "warning" | "error", "text": text}:
                return replace(self, why=text)
            case _:
                return self

    def over(self, ending: Ending, now: float) -> Row:
        """The row when the run has ended, for now."""
        state = (
            RunState.NO_BUDGET if ending.budget_used_up else _BY_CODE[ending.exit_code]
        )
        why = "" if state is RunState.DONE else ending.words or self.why
        question = self.question if state is RunState.NEEDS_YOU else ""
        return replace(
            self, state=state, ended=now, wait="", why=why, question=question
        )


class Board(Struct, frozen=True):
    """All runs, in the order in which they were asked for."""

    rows: Mapping[str, Row]

    def with_row(self, row: Row) -> Board:
        return Board({**self.rows, row.job.name: row})

    @property
    def cost(self) -> Cost:
        return sum((row.cost for row in self.rows.values()), NO_COST)

    def count(self, *states: RunState) -> int:
        return sum(row.state in states for row in self.rows.values())

    @property
    def exit_code(self) -> ExitCode:
        """0 where all is done; else that of the worst, as they stand in
        `_WORST_FIRST`.
        """
        found = {row.state for row in self.rows.values()}
        return next(
            (code for state, code in _WORST_FIRST if state in found), ExitCode.DONE
        )


def _cost(fields: Mapping[str, Any]) -> Cost:
    return Cost(fields["tokens"], fields["usd"], fields["estimated"])
