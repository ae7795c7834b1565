"""Reads, compiles and writes a ticket's plan.md, for the Planner and for edits of
steps.

plan.md is written under the ticket's lock, so never during a run, and the replaced text
is saved.
"""

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.engine.lock import TicketLock
from cdd_agent.engine.log import RunLog
from cdd_agent.engine.record import RunRecord
from cdd_agent.engine.strength_summary import StrengthSettings, load_summary
from cdd_agent.errors import BadInput
from cdd_agent.events.strength_events import CriterionStrength
from cdd_agent.files.atomic import read_bytes, write_atomic
from cdd_agent.files.json_file import stamp
from cdd_agent.process.policy import CommandRunner
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.tickets.plan import ImplementationPlan, Problem
from cdd_agent.tickets.plan_changes import (
    ChangeRefused,
    FixedSteps,
    merge_plans,
    steps_by_label,
)
from cdd_agent.tickets.plan_check import check_plan
from cdd_agent.tickets.plan_editor import edit_plan
from cdd_agent.tickets.plan_writer import write_plan
from cdd_agent.tickets.served_criteria import find_standings
from cdd_agent.tickets.spec import TicketSpec
from cdd_agent.tickets.spec_file import SpecFile
from cdd_agent.tickets.state import ExecutionState, new_state
from cdd_agent.tickets.state_file import load_state
from cdd_agent.tickets.store import Ticket
from cdd_agent.verification.checks import check_problems

KEPT = "plans"


class Present(Struct, frozen=True):
    text: str = ""
    plan: ImplementationPlan | None = None
    """None if plan.md is missing or empty."""
    state: ExecutionState | None = None
    fixed: FixedSteps = field(default_factory=FixedSteps)

    def state_in(self, plan: ImplementationPlan) -> ExecutionState | None:
        """Return the progress in another version of the plan. Steps are matched by
        label, because versions number their steps differently.
        """
        if self.plan is None or self.state is None:
            return None
        numbers = {step.label: step.number for step in self.plan.steps}
        entries = {}
        for step in plan.steps:
            if step.label in numbers:
                entry = self.state.step(numbers[step.label])
                entries[step.number] = replace(entry, step_number=step.number)
        return replace(self.state, step_executions=entries, former_steps={})

    def served_by_completed(self, criteria: Sequence[str]) -> frozenset[int]:
        """Return the numbers, from 1, of the criteria that a completed step served."""
        if self.plan is None:
            return frozenset()
        completed = {step.number for step in self.fixed.completed_steps(self.plan)}
        served = set()
        for standing in find_standings(self.plan, self.state, criteria):
            if standing.was_for_all or not completed.isdisjoint(standing.steps):
                served.add(standing.place)
        return frozenset(served)

    def label_of(self, number: int) -> str:
        return self.plan.label_of(number) if self.plan else str(number)


class PlanDesk(Struct, frozen=True):
    root: Path
    ticket: Ticket
    record: RunRecord
    commands: CommandRunner
    test_command: str | None = None
    strength: StrengthSettings = field(default_factory=StrengthSettings)

    @property
    def shown_path(self) -> str:
        return self.ticket.shown(self.ticket.plan_path)

    @property
    def log(self) -> RunLog:
        """The log of plannings, separate from the log of runs."""
        return RunLog(self.record.folder / "planning.jsonl")

    def complete_spec(self) -> TicketSpec:
        """Return the spec. Raises `BadInput` if it is incomplete, or too large for a
        prompt.
        """
        spec = SpecFile(self.ticket).read().spec
        missing = spec.missing()
        if missing:
            lines = "\n".join(f"- {lack}" for lack in missing)
            raise BadInput(
                f"{self.ticket.shown(self.ticket.spec_path)} is not complete, so"
                f" it cannot be planned yet. Missing:\n{lines}",
                hint=f"Let Socrates ask: `/socrates {self.ticket.slug}`. Or fill it in"
                " by hand.",
                refusal=Refusal.SPEC_UNUSABLE,
            )
        return spec

    def present(self) -> Present:
        """Return the current plan. Raises `BadInput` if the plan or the state cannot be
        read.
        """
        data = read_bytes(self.ticket.plan_path)
        if data is None or not data.removeprefix(b"\xef\xbb\xbf").strip():
            return Present()
        text = data.decode("utf-8")
        plan = self.ticket.read_plan()
        state = load_state(self.ticket, plan)
        fixed = FixedSteps().with_steps_of(plan)
        if state is None:
            return Present(text, plan, None, fixed)
        completed = set()
        for step in plan.steps:
            if step.number in state.finished_numbers:
                completed.add(step.label)
        former_ids = [step.step_id for step in state.all_steps.values()]
        fixed = FixedSteps(
            frozenset(completed),
            fixed.used_numbers.union(state.all_steps),
            fixed.used_ids.union(filter(None, former_ids)),
            bool(state.begun_numbers),
        )
        return Present(text, plan, state, fixed)

    def weak_criteria(
        self, spec: TicketSpec, present: Present
    ) -> list[CriterionStrength]:
        """Return the criteria with weak tests, measured with the current files. Raises
        `BadInput` if the results cannot be read.
        """
        if present.plan is None or present.state is None:
            return []
        summary = load_summary(present.plan, present.state, self.record, self.strength)
        if summary is None:
            return []
        criteria = summary.summarise_criteria(spec.acceptance_criteria)
        return [one for one in criteria if one.strength and one.strength.is_weak]

    def problems(
        self, plan: ImplementationPlan, spec: TicketSpec, present: Present
    ) -> list[Problem]:
        return self.compile(plan, spec, present.state_in(plan))

    def compile(
        self,
        plan: ImplementationPlan,
        spec: TicketSpec,
        state: ExecutionState | None,
    ) -> list[Problem]:
        """Return the problems of a plan by line, including checks that `commands` would
        refuse to run.
        """
        problems = list(check_plan(plan, spec, self.root, state))
        for step in plan.steps:
            for error in check_problems(step, self.test_command, self.commands):
                text = f"step {step.label}: {error.message}"
                problems.append(Problem("refused_check", step.number, step.line, text))
        return sorted(problems, key=lambda problem: problem.line)

    def save(
        self,
        wanted: ImplementationPlan,
        base: Present,
        lock: TicketLock,
        *,
        is_new: bool,
    ) -> None:
        """Write `wanted`, as a new plan or as a change of `base`. The caller holds the
        ticket's lock.

        The user's edits since `base` are merged. Raises `BadInput` if they conflict, if
        a completed step would change, if the plan has errors, or if the lock is lost.
        """
        self.ticket.refuse_to_write(self.ticket.plan_path)
        lock.check()
        present = self.present()
        if present.text == text_with(wanted, base, is_new=is_new):
            # A process that was killed has already written it.
            return
        if is_new or present.plan is None or base.plan is None:
            if present.text != base.text:
                raise BadInput(
                    f"{self.shown_path} has changed since the plan was proposed."
                    " It was not overwritten",
                    hint="Review it. To plan from the changed file, leave the Planner"
                    " and start it again.",
                    refusal=Refusal.PLAN_CHANGED,
                )
        else:
            wanted = self._merge(base.plan, wanted, present.plan)
        self._refuse_changed_steps(wanted, present)
        text = text_with(wanted, present, is_new=is_new)
        self.ticket.parse_plan(text).check(f"the new {self.ticket.plan_path.name}")
        self.put(text, present, lock)

    def _merge(
        self,
        base: ImplementationPlan,
        wanted: ImplementationPlan,
        current: ImplementationPlan,
    ) -> ImplementationPlan:
        try:
            return merge_plans(base, wanted, current)
        except ChangeRefused as refusal:
            raise BadInput(
                f"{self.shown_path} has changed since the plan was proposed. It"
                f" was not overwritten: {refusal}",
                hint="The proposal conflicts with your edit. Type `discard` to"
                " drop the proposal, then ask again.",
                refusal=Refusal.PLAN_CHANGED,
            ) from refusal

    def _refuse_changed_steps(
        self, wanted: ImplementationPlan, present: Present
    ) -> None:
        if present.plan is None:
            return
        current_steps = steps_by_label(present.plan)
        proposed_steps = steps_by_label(wanted)
        changed = []
        for step in present.fixed.completed_steps(present.plan):
            if current_steps[step.label] != proposed_steps.get(step.label):
                changed.append(step.label)
        if changed:
            raise BadInput(
                f"The proposal changes step {', '.join(changed)}, which has been"
                " completed since",
                hint="Type `discard` to drop the proposal, then ask again.",
                refusal=Refusal.PLAN_CHANGED,
            )

    def put(self, text: str, present: Present, lock: TicketLock) -> None:
        """Save the current text, and write plan.md. Raises `BadInput` on failure."""
        self.ticket.refuse_to_write(self.ticket.plan_path)
        lock.check()
        if present.text == text:
            return
        if present.text:
            write_atomic(
                self.record.folder / KEPT / f"plan-{stamp()}.md", present.text.encode()
            )
        write_atomic(self.ticket.plan_path, text.encode())
        # The user saw the new checks. Old ones may have come with a clone.
        new = _checks_of(self.ticket.parse_plan(text)) - _checks_of(present.plan)
        self.commands.trusted_checks.add(sorted(new))


def _checks_of(plan: ImplementationPlan | None) -> set[str]:
    if plan is None:
        return set()
    return {check for step in plan.steps for check in step.checks or ()}


def text_with(wanted: ImplementationPlan, present: Present, *, is_new: bool) -> str:
    """Return the text of plan.md with the wanted plan. The current text is changed,
    unless `is_new` and no step is completed.

    Raises `BadInput` if text of the user would be lost.
    """
    if present.plan is None or (is_new and not present.fixed.completed):
        return write_plan(wanted)
    return edit_plan(present.text, wanted)


def state_of(present: Present, slug: str) -> ExecutionState:
    assert present.plan is not None
    return present.state or new_state(slug, present.plan)
