"""A step's text in plan.md in the hands of a person: given to them to edit, compiled,
put back into its lines.
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
from cdd_agent.tickets.plan import Problem
from cdd_agent.tickets.plan_check import only_errors
from cdd_agent.tickets.plan_editor import replace_step_section, step_section
from cdd_agent.tickets.state import match_state
from cdd_agent.tickets.status import StepStatus

_FOLDER = "edits"


class StepEditing(Struct, frozen=True):
    """One step's text, in a file in the ticket's record for as long as it is not in the
    plan: whatever happens to the editor or the shell, it is there when the step is
    edited again.
    """

    desk: PlanDesk
    number: int
    held: Callable[[], TicketLock | None]
    """The ticket's lock, if this process has it already."""

    @property
    def file(self) -> Path:
        """The file that the person edits."""
        return self.desk.record.folder / _FOLDER / f"step-{self.number:02}.md"

    @property
    def _base(self) -> Path:
        """The plan's text that they began with."""
        return self.file.with_suffix(".from.md")

    def begin(self) -> bool:
        """Lay the text out; whether it is one that was edited before, and not taken.

        Raises `BadInput` where the step is over or under way, and where another process
        is at work on the ticket.
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
        """There is a text that was edited, and is not in the plan."""
        edited = read_bytes(self.file)
        return (
            edited is not None
            and bool(edited.strip())
            and edited != read_bytes(self._base)
        )

    def finish(self) -> tuple[Problem, ...] | None:
        """Write what was edited into plan.md; the warnings about the step, or None
        where nothing was changed, or all was deleted.

        Raises `BadInput` for a text with which the plan cannot be carried out, and
        where plan.md was changed meanwhile. The text is kept then.
        """
        base = (read_bytes(self._base) or b"").decode()
        try:
            text = (read_bytes(self.file) or b"").decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise BadInput(
                f"{self.file.name} is not UTF-8 text (byte {error.start})"
            ) from error
        if not text.strip() or text.splitlines() == base.splitlines():
            self.discard()
            return None
        with self._locked() as lock:
            now = self.desk.present()
            if self._section(now) != base:
                hint = (
                    "Your text is kept. Edited again, it takes the place of what is"
                    " there now."
                )
                raise BadInput(
                    f"Step {now.label_of(self.number)} was changed in"
                    f" {self.desk.shown_path} meanwhile",
                    hint=hint,
                )
            after = replace_step_section(now.text, self.number, text)
            warnings = self._compiled(now, after)
            self.desk.put(after, now, lock)
        self.discard()
        return warnings

    def discard(self) -> None:
        """Forget the text."""
        remove(self.file)
        remove(self._base)

    @contextmanager
    def _locked(self) -> Iterator[TicketLock]:
        """Under the ticket's lock: the one that is there, or one for the moment."""
        if (lock := self.held()) is not None:
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
        """The step's text in the plan. Raises `BadInput` where it must not be another
        one.
        """
        label = present.label_of(self.number)
        now = present.state.step(self.number) if present.state else None
        if now is not None and now.status.is_over:
            raise BadInput(
                f"Step {label} is {now.status}: its text says what was carried"
                " out, and so it stays",
                hint=(f"`undo {label}` goes back to before it; then it can be edited."),
            )
        if (
            now is not None
            and now.status is StepStatus.IN_PROGRESS
            and self.held() is not None
        ):
            hint = (
                "Edit it when it is over, or stop it first. A sentence in the prompt"
                " reaches its model now."
            )
            raise BadInput(f"Step {label} is under way", hint=hint)
        return step_section(present.text, self.number)

    def _compiled(self, now: Present, after: str) -> tuple[Problem, ...]:
        """The warnings about the step. Raises `BadInput` with each error that was not
        there before.
        """
        plan = self.desk.ticket.parse_plan(after)
        spec = self.desk.ticket.read_spec()
        assert now.plan is not None
        known = {
            (problem.kind, problem.step, problem.text)
            for problem in self.desk.problems(now.plan, spec, now)
        }
        problems = self.desk.problems(plan, spec, now)
        new = [
            problem
            for problem in problems
            if (problem.kind, problem.step, problem.text) not in known
        ]
        if wrong := only_errors(new):
            raise BadInput(
                "The plan could not be carried out so:\n"
                + "\n".join(f"- {one.text}" for one in wrong)
            )
        if now.state is not None:
            match_state(now.state, plan)
        return tuple(problem for problem in problems if problem.step == self.number)
