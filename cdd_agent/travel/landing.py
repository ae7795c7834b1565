"""Bringing a run's work over from its own tree: merged, checked, and only then counted
as landed.

All of it is tried in a third tree first. The person's branch and files move last, in
one step of git's own, to a commit whose checks have passed; so a conflict or a failed
check changes nothing. Killed later, it is finished by the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.engine.accepted import KnownTests
from cdd_agent.engine.ledger import STORE
from cdd_agent.engine.lock import locked
from cdd_agent.engine.named_files import named
from cdd_agent.engine.record import RunRecord
from cdd_agent.engine.whereabouts import forget_own_tree, load_own_tree
from cdd_agent.errors import BadInput, NotApproved, StepFailed
from cdd_agent.events.notices import Notice, NoticeKind, Tone
from cdd_agent.events.question_events import CommandProposed
from cdd_agent.events.stream import Emit
from cdd_agent.files.atomic import (
    read_bytes,
    remove_leftovers,
    sync_folder,
    write_atomic,
)
from cdd_agent.files.json_file import set_aside
from cdd_agent.git.checkpoint import Checkpoints
from cdd_agent.git.index import quote_path
from cdd_agent.process.policy import CommandRefused, CommandRunner
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.threads import in_thread
from cdd_agent.tickets.outcome_words import tally_in_words
from cdd_agent.tickets.plan import ImplementationPlan
from cdd_agent.tickets.run_outcome import accepts
from cdd_agent.tickets.state import ExecutionState
from cdd_agent.tickets.state_file import load_state
from cdd_agent.tickets.status import RunStatus, Verification
from cdd_agent.tickets.step_tally import NO_STEPS
from cdd_agent.travel.own_tree import OwnTree
from cdd_agent.verification.check import Check
from cdd_agent.verification.check_run import run_check
from cdd_agent.verification.checks import checks_for, project_checks
from cdd_agent.verification.facts import Work
from cdd_agent.verification.rule_words import useful_end
from cdd_agent.verification.verdict import judge_check

_STAYS = ("lock", "holder.json", STORE)


class Landing(Struct, frozen=True):
    """Prepare the landing of a run whose steps are done."""

    own: OwnTree
    record: RunRecord
    """The run's, in its own tree."""
    commands: Callable[[Path, Mapping[str, str]], CommandRunner]
    """Makes a runner of commands for a project's root, with these variables."""
    test_command: str | None
    limit: float
    """Seconds for a check."""
    leave_out: tuple[str, ...]
    """Of checkpoints."""
    emit: Emit

    async def land(self, *, rebase: bool) -> None:
        """Move the user's branch to a commit with the run's work. Raises `CddError` and
        leaves the branch unchanged if that fails.
        """
        own = self.own
        if load_own_tree(own.record.folder) is None:
            if own.ticket.state_path.exists():
                hint = f"See it with `cdd status {own.ticket.slug}`."
                raise BadInput(
                    f"{own.ticket.slug} has nothing to land: it ran in your working"
                    " tree",
                    hint=hint,
                    refusal=Refusal.NOTHING_TO_MOVE,
                )
            hint = f"Run it in one with `cdd exec {own.ticket.slug} --worktree`."
            raise BadInput(
                f"{own.ticket.slug} has no worktree",
                hint=hint,
                refusal=Refusal.NOTHING_TO_MOVE,
            )
        with (
            locked(own.record.folder, own.ticket.slug, self.emit),
            (
                locked(self.record.folder, own.ticket.slug, self.emit)
                if own.place.exists()
                else nullcontext()
            ),
        ):
            remove_leftovers(own.ticket.folder)
            await self._land(rebase=rebase)

    async def _land(self, *, rebase: bool) -> None:
        own, trees = self.own, self.own.trees
        made = load_own_tree(own.record.folder)
        tip = await trees.commit_of(f"refs/heads/{own.branch}")
        landing = (
            made.landing
            if made is not None and tip in (None, made.landing_of)
            else None
        )
        if landing is not None and await trees.has_landed(landing):
            await self._finish(landing)
            return
        plan = own.ticket.read_plan()
        state = load_state(own.ticket_in_it, plan)
        if state is None or state.status is not RunStatus.COMPLETED:
            raise BadInput(
                f"{own.ticket.slug} has unfinished steps",
                hint=f"Resume it with `cdd exec {own.ticket.slug} --worktree`.",
                refusal=Refusal.NOTHING_TO_MOVE,
            )
        if left := [
            path
            for path in await trees.changed(own.place, untracked=False)
            if self._is_work(path)
        ]:
            hint = f"Commit it in {own.place}, then try again."
            message = f"Not committed in the run's worktree: {named(left)}"
            raise BadInput(message, hint=hint, refusal=Refusal.BRANCH_CONFLICT)
        if inner := await trees.unpublished_submodules(own.place, own.branch):
            folder = quote_path(inner[0])
            source = quote_path(str(own.place / inner[0]))
            command = f"git -C {folder} fetch {source} HEAD"
            hint = f"Fetch them with `{command}`, then try again."
            raise BadInput(
                f"Commits of submodules exist only in the run's worktree:"
                f" {named(inner)}",
                hint=hint,
                refusal=Refusal.NOTHING_TO_MOVE,
            )
        base = await trees.commit_of("HEAD")
        assert base is not None, "seen in `OwnTree.of`"
        place = own.record.folder / "landing"
        try:
            await trees.add(place, base)
            message = f"Merge branch '{own.branch}'"
            result = await trees.merged(place, own.branch, message, rebase=rebase)
            await own.equip(place)
            env = await own.expect_own_packages(place, self.emit)
            await self._check(self.commands(place / own.prefix, env), plan, state)
        finally:
            await trees.remove(place)
        if await trees.commit_of("HEAD") != base:
            raise BadInput(
                "Your branch moved during the landing",
                hint="Nothing was changed. Try again.",
                refusal=Refusal.TREE_DIFFERS,
            )
        assert made is not None, "seen by whoever asks for it"
        replace(made, landing=result, landing_of=tip).keep(own.record.folder)
        await trees.forward(result)
        await self._finish(result)

    async def _finish(self, result: str) -> None:
        """Finish after the user's branch has moved."""
        await self._bring_record()
        await self._remove_tree()
        ticket = self.own.ticket
        state = load_state(ticket, ticket.read_plan())
        tally = NO_STEPS if state is None else state.tally
        text = f"Landed {ticket.slug}: your branch is at {result[:12]}."
        if tally.total:
            text += f" The run: {tally_in_words(tally)}."
        tone = Tone.GOOD if tally.is_done else Tone.WARNING
        self.emit(Notice(text, tone, kind=NoticeKind.LANDED))

    def _is_work(self, path: str) -> bool:
        """True if a file in the run's tree belongs to the user and not to cdd."""
        own = self.own
        place, source = own.place / path, own.trees.top / path
        if place.is_symlink() and place.readlink() == source:
            return False
        ours = [
            folder.relative_to(own.place).as_posix()
            for folder in (own.ticket_in_it.folder, own.root / ".cdd")
        ]
        return not any(
            path == folder or path.startswith(f"{folder}/") for folder in ours
        )

    async def _check(
        self, commands: CommandRunner, plan: ImplementationPlan, state: ExecutionState
    ) -> None:
        """Run the project's check and those of the steps on the result. Raises
        `StepFailed`.
        """
        before = KnownTests(self.record).so_far(state)
        checks = dict[str, Check]()
        for check in project_checks(self.test_command, commands):
            checks[check.shown] = check
        for step in plan.steps:
            known = state.step(step.number)
            was_checked = accepts("checked", known.outcome)
            if was_checked and step.checks is not None:
                for check in checks_for(step, self.test_command, commands):
                    checks.setdefault(check.shown, check)
        if not checks:
            self.emit(
                Notice(
                    "No check ran on the result: the project has none.",
                    Tone.WARNING,
                )
            )
        for shown, check in checks.items():
            if commands.must_ask(check.command):
                self.emit(CommandProposed(shown, check.command.objection))
                try:
                    await commands.ask(check.command)
                except CommandRefused as refusal:
                    raise NotApproved(
                        f"`{shown}` was not approved. Nothing was changed"
                    ) from refusal
            run = await run_check(check, commands, self.limit, self.record.folder)
            result = judge_check(check, run, before, Work())
            if result.has_failed:
                output = self.record.redactor.redact(run.output)
                self.emit(Notice(useful_end(output)))
                raise StepFailed(
                    f"{result.reason} (on the result)",
                    hint=(
                        "Nothing was changed. Your branch may have moved on since the"
                        " run began."
                    ),
                    refusal=Refusal.TESTS_FAILED,
                )
            tone = Tone.WARNING
            if result.verification is Verification.PASSED:
                tone = Tone.GOOD
            self.emit(Notice(f"On the result: {result.reason}.", tone))

    async def _bring_record(self) -> None:
        """Move the run's record, checkpoints and state to the user's tree. A repetition
        is harmless.
        """
        own, target = self.own, self.own.record.folder
        if self.record.folder.exists():
            theirs = await Checkpoints.open(
                own.root, self.record.folder / STORE, own.ticket.slug, self.leave_out
            )
            here = await Checkpoints.open(
                own.record.root, target / STORE, own.ticket.slug, self.leave_out
            )
            await theirs.move(here)
            await in_thread(partial(_move, self.record.folder, target), name="record")
        state = read_bytes(own.ticket_in_it.state_path)
        if state is not None:
            write_atomic(own.ticket.state_path, state)

    async def _remove_tree(self) -> None:
        """Keep a renamed copy of the tree if it has uncommitted files."""
        own = self.own
        if (own.place / ".git").exists():
            untracked = await own.trees.changed(own.place, untracked=True)
            if left := [path for path in untracked if self._is_work(path)]:
                aside = set_aside(own.place)
                text = (
                    "Uncommitted files were moved to"
                    f" {aside.relative_to(own.record.root).as_posix()}: {named(left)}"
                )
                self.emit(Notice(text, Tone.WARNING, kind=NoticeKind.LEFT_AS_IS))
        await own.trees.remove(own.place)
        await own.trees.delete_branch(own.branch)
        forget_own_tree(own.record.folder)


def _move(source: Path, target: Path) -> None:
    try:
        for path in sorted(source.iterdir()):
            if path.name not in _STAYS:
                place = target / path.name
                if place.is_dir():
                    set_aside(place)
                path.replace(place)
        sync_folder(target)
    except OSError as error:
        raise BadInput(
            f"{target} could not be written: {error.strerror or error}",
            refusal=Refusal.DISK,
        ) from error
