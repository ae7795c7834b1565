"""A ticket's plan.md in the hands of whoever plans: what stands there, what of it is
fixed, how another is written.

A plan is written under the ticket's lock, so never under a run that is at work, and
what it replaces is kept.
"""

from pathlib import Path

from msgspec import Struct, field

from cdd_agent.engine.lock import TicketLock
from cdd_agent.engine.log import RunLog
from cdd_agent.engine.record import RunRecord
from cdd_agent.errors import BadInput
from cdd_agent.files.atomic import read_bytes, write_atomic
from cdd_agent.files.json_file import stamp
from cdd_agent.process.policy import CommandRunner
from cdd_agent.tickets.plan import ImplementationPlan, Problem
from cdd_agent.tickets.plan_changes import ChangeRefused, FixedSteps, merge_plans
from cdd_agent.tickets.plan_check import check_plan
from cdd_agent.tickets.plan_editor import edit_plan
from cdd_agent.tickets.plan_writer import write_plan
from cdd_agent.tickets.spec import TicketSpec
from cdd_agent.tickets.spec_file import SpecFile
from cdd_agent.tickets.state import ExecutionState, load_state, new_state
from cdd_agent.tickets.store import Ticket
from cdd_agent.verification.checks import check_problems

KEPT = "plans"
"""Where in the ticket's record the plans are kept that others took the place of."""


class Present(Struct, frozen=True):
    """plan.md as it is, and how far it was carried out."""

    text: str = ""
    plan: ImplementationPlan | None = None
    """None: there is no plan.md, or an empty one."""
    state: ExecutionState | None = None
    fixed: FixedSteps = field(default_factory=FixedSteps)

    def label_of(self, number: int) -> str:
        """Return what users call a step."""
        return self.plan.label_of(number) if self.plan else str(number)


class PlanDesk(Struct, frozen=True):
    """Where a ticket's plan is read, compiled and written."""

    root: Path
    ticket: Ticket
    record: RunRecord
    commands: CommandRunner
    test_command: str | None = None

    @property
    def shown_path(self) -> str:
        return self.ticket.shown(self.ticket.plan_path)

    @property
    def log(self) -> RunLog:
        """The log of its plannings, apart from that of the runs, which tell what they
        cost themselves.
        """
        return RunLog(self.record.folder / "planning.jsonl")

    def complete_spec(self) -> TicketSpec:
        """Raises `BadInput`, with each thing that is missing, for a spec that no plan
        can be made of yet, and for one that is too large to be told to a model.
        """
        spec = SpecFile(self.ticket).read().spec
        if missing := spec.missing():
            lines = "\n".join(f"- {lack}" for lack in missing)
            raise BadInput(
                f"{self.ticket.shown(self.ticket.spec_path)} is not complete, and a"
                f" plan needs that. Missing:\n{lines}",
                hint=(
                    f"`/socrates {self.ticket.slug}` asks for what is missing, or write"
                    " it in by hand."
                ),
            )
        return spec

    def present(self) -> Present:
        """Raises `BadInput` for a plan or a state that cannot be read."""
        data = read_bytes(self.ticket.plan_path)
        if data is None or not data.removeprefix(b"\xef\xbb\xbf").strip():
            return Present()
        plan = self.ticket.read_plan()
        state = load_state(self.ticket.state_path, self.ticket.slug, plan)
        known = frozenset(step.number for step in plan.steps)
        if state is not None:
            known |= frozenset(state.all_steps)
        fixed = (
            FixedSteps(state.finished_numbers, known, bool(state.begun_numbers))
            if state
            else FixedSteps(used_numbers=known)
        )
        return Present(data.decode("utf-8"), plan, state, fixed)

    def problems(
        self, plan: ImplementationPlan, spec: TicketSpec, present: Present
    ) -> list[Problem]:
        """The findings of compiling it, with the checks that `commands` would refuse
        when they are to run.
        """
        begun = present.state.begun_numbers if present.state else frozenset[int]()
        found = list(check_plan(plan, spec, self.root, begun))
        for step in plan.steps:
            for error in check_problems(step, self.test_command, self.commands):
                text = f"step {step.label}: its check would be refused: {error.message}"
                found.append(Problem("refused_check", step.number, step.line, text))
        return sorted(found, key=lambda problem: problem.line)

    def save(
        self, wanted: ImplementationPlan, base: Present, lock: TicketLock, *, anew: bool
    ) -> None:
        """Write `wanted`, which was made of `base`; with `anew` in its place, else as a
        change of it. Whoever calls it holds the ticket's lock.

        What a person edited since then stays. Raises `BadInput` where both changed the
        same, for a plan that cannot be run, where done steps would be different, and
        when the ticket is not held any more.
        """
        self.ticket.refuse_to_write(self.ticket.plan_path)
        lock.check()
        now = self.present()
        if now.text == text_with(wanted, base, anew=anew):
            return  # whoever wrote it was killed before it was told
        if anew or now.plan is None or base.plan is None:
            if now.text != base.text:
                raise BadInput(
                    f"{self.shown_path} was written meanwhile by somebody else, and is"
                    " left as it is",
                    hint="Look at it; to plan on from it, leave and begin again.",
                )
        else:
            try:
                wanted = merge_plans(base.plan, wanted, now.plan)
            except ChangeRefused as refusal:
                raise BadInput(
                    f"{self.shown_path} was edited meanwhile, and is left as it is:"
                    f" {refusal}",
                    hint=(
                        "Your edit and the proposal cannot both be kept; `discard` the"
                        " proposal, and ask again."
                    ),
                ) from refusal
        new = {step.number: step for step in wanted.steps}
        done = [
            step
            for step in (now.plan.steps if now.plan else ())
            if step.number in now.fixed.completed
        ]
        if touched := [step.label for step in done if new.get(step.number) != step]:
            raise BadInput(
                f"Step {', '.join(touched)} was carried out meanwhile, and the proposal"
                " changes it",
                hint="`discard` the proposal, and ask again.",
            )
        text = text_with(wanted, now, anew=anew)
        self.ticket.parse_plan(text).check(f"the new {self.ticket.plan_path.name}")
        self.put(text, now, lock)

    def put(self, text: str, now: Present, lock: TicketLock) -> None:
        """Write plan.md, and keep what it was. Raises `BadInput` where it cannot be
        written.
        """
        self.ticket.refuse_to_write(self.ticket.plan_path)
        lock.check()
        if now.text == text:
            return
        if now.text:
            write_atomic(
                self.record.folder / KEPT / f"plan-{stamp()}.md", now.text.encode()
            )
        write_atomic(self.ticket.plan_path, text.encode())


def text_with(wanted: ImplementationPlan, present: Present, *, anew: bool) -> str:
    """The next text of plan.md: changed where it has to be, or where nothing of it was
    carried out, made anew.

    Raises `BadInput` where something that a person wrote would be lost.
    """
    if present.plan is None or (anew and not present.fixed.completed):
        return write_plan(wanted)
    return edit_plan(present.text, wanted)


def state_of(present: Present, slug: str) -> ExecutionState:
    """How far the present plan is."""
    assert present.plan is not None
    return present.state or new_state(slug, present.plan)
