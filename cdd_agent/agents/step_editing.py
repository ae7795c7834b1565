"""Edits the text of one step of plan.md in a separate file, and compiles it before it
is written back.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

from cdd_agent.agents.plan_desk import PlanDesk, Present
from cdd_agent.engine.lock import TicketLock
from cdd_agent.errors import BadInput
from cdd_agent.files.atomic import read_bytes, remove, write_atomic
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.tickets.plan import Problem
from cdd_agent.tickets.plan_check import only_errors
from cdd_agent.tickets.plan_editor import replace_step_section, step_section
from cdd_agent.tickets.state import match_state
from cdd_agent.tickets.status import StepStatus

_FOLDER = "edits"


class StepEditing(Struct, frozen=True):
    """One step's text in a file of the ticket's record. The file stays until its text
    is in the plan, so it survives the editor and the shell.
    """

    desk: PlanDesk
    number: int
    held: Callable[[], TicketLock | None]
    """Returns the ticket's lock if this process holds it."""

    @property
    def file(self) -> Path:
        return self.desk.record.folder / _FOLDER / f"step-{self.number:02}.md"

    @property
    def _base(self) -> Path:
        return self.file.with_suffix(".from.md")

    def begin(self) -> bool:
        """Write the text to the file. True if an earlier edit is in the file, and not
        in the plan.

        Raises `BadInput` if the step is over or in progress, and if another process
        works on the ticket.
        """
        with self._locked():
            section = self._section(self.desk.present())
        is_kept = self.is_kept
        write_atomic(self._base, section.encode())
        if not is_kept:
            write_atomic(self.file, section.encode())
        return is_kept

    @property
    def is_kept(self) -> bool:
        edited = read_bytes(self.file)
        return (
            edited is not None
            and bool(edited.strip())
            and edited != read_bytes(self._base)
        )

    def finish(self) -> tuple[Problem, ...] | None:
        """Write the edited text to plan.md. Return the warnings about the step; None if
        the text is unchanged or empty.

        Raises `BadInput` if the plan could not run with the text, and if the step has
        changed in plan.md. The edit is kept then.
        """
        base = (read_bytes(self._base) or b"").decode()
        try:
            text = (read_bytes(self.file) or b"").decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise BadInput(
                f"{self.file.name} is not UTF-8 text (at byte {error.start})",
                refusal=Refusal.WRONG_ENCODING,
            ) from error
        if not text.strip() or text.splitlines() == base.splitlines():
            self.discard()
            return None
        with self._locked() as lock:
            present = self.desk.present()
            if self._section(present) != base:
                hint = (
                    "Your text is saved. Edit the step again to replace the"
                    " current version."
                )
                raise BadInput(
                    f"Step {present.label_of(self.number)} has changed in"
                    f" {self.desk.shown_path} since you began to edit it",
                    hint=hint,
                    refusal=Refusal.PLAN_CHANGED,
                )
            new_text = replace_step_section(present.text, self.number, text)
            warnings = self._compiled(present, new_text)
            self.desk.put(new_text, present, lock)
        self.discard()
        return warnings

    def discard(self) -> None:
        remove(self.file)
        remove(self._base)

    @contextmanager
    def _locked(self) -> Iterator[TicketLock]:
        """Hold the ticket's lock: this process's lock, or a new one for this block."""
        lock = self.held()
        if lock is not None:
            lock.check()
            yield lock
            return
        record = self.desk.record
        record.prepare()
        lock = TicketLock.take(
            record.folder, record.slug, datetime.now(UTC).isoformat()
        )
        try:
            yield lock
        finally:
            lock.release()

    def _section(self, present: Present) -> str:
        """Return the step's text. Raises `BadInput` if the step must not change."""
        label = present.label_of(self.number)
        state = present.state.step(self.number) if present.state else None
        if state is not None and state.status.is_over:
            raise BadInput(
                f"Step {label} is {state.status}, so its text cannot change",
                hint=f"Undo the step first (`undo {label}`), then edit it.",
                refusal=Refusal.PLAN_NOT_EDITABLE,
            )
        is_in_progress = state is not None and state.status is StepStatus.IN_PROGRESS
        if is_in_progress and self.held() is not None:
            hint = (
                "Edit it when it has finished, or press Esc to stop it. To reach"
                " its model now, type a sentence in the prompt."
            )
            raise BadInput(
                f"Step {label} is running", hint=hint, refusal=Refusal.PLAN_NOT_EDITABLE
            )
        return step_section(present.text, self.number)

    def _compiled(self, present: Present, new_text: str) -> tuple[Problem, ...]:
        """Compile the new plan. Raises `BadInput` for errors that the plan did not have
        before.
        """
        plan = self.desk.ticket.parse_plan(new_text)
        spec = self.desk.ticket.read_spec()
        assert present.plan is not None
        known_problems = set(map(_key, self.desk.problems(present.plan, spec, present)))
        problems = self.desk.problems(plan, spec, present)
        new = [problem for problem in problems if _key(problem) not in known_problems]
        errors = only_errors(new)
        if errors:
            lines = "\n".join(f"- {error.text}" for error in errors)
            raise BadInput(
                f"With this text the plan could not run:\n{lines}",
                refusal=Refusal.PLAN_INVALID,
            )
        if present.state is not None:
            match_state(present.state, plan)
        return tuple(problem for problem in problems if problem.step == self.number)


def _key(problem: Problem) -> tuple[str, int | None, str]:
    return problem.kind, problem.step, problem.text
