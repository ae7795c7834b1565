"""Land a run from its own tree: merge it, check it, then move the user's branch.

A third tree tries all of it first. The user's branch and files move last, in one step
of git, to a commit whose checks have passed. So a conflict or a failed check changes
nothing. The next landing finishes a killed one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
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
    NotWritten,
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
    own: OwnTree
    record: RunRecord
    """The record in the run's own tree."""
    commands: Callable[[Path, Mapping[str, str]], CommandRunner]
    """Makes a command runner for a project's root, with these variables."""
    test_command: str | None
    limit: float
    """Seconds for a check."""
    leave_out: tuple[str, ...]
    """Files that are in no checkpoint."""
    emit: Emit

    async def land(self, *, rebase: bool) -> None:
        """Move the user's branch to a commit with the run's work. On `CddError` the
        branch is unchanged.
        """
        own = self.own
        self._expect_tree()
        with ExitStack() as locks:
            locks.enter_context(locked(own.record.folder, own.ticket.slug, self.emit))
            if own.place.exists():
                inner = locked(self.record.folder, own.ticket.slug, self.emit)
                locks.enter_context(inner)
            remove_leftovers(own.ticket.folder)
            await self._land(rebase=rebase)

    def _expect_tree(self) -> None:
        own = self.own
        if load_own_tree(own.record.folder) is not None:
            return
        slug = own.ticket.slug
        if own.ticket.state_path.exists():
            raise BadInput(
                f"{slug} has nothing to land: it ran in your working tree",
                hint=f"See it with `cdd status {slug}`.",
                refusal=Refusal.NOTHING_TO_MOVE,
            )
        raise BadInput(
            f"{slug} has no worktree",
            hint=f"Run it in one with `cdd exec {slug} --worktree`.",
            refusal=Refusal.NOTHING_TO_MOVE,
        )

    async def _land(self, *, rebase: bool) -> None:
        own, trees = self.own, self.own.trees
        made = load_own_tree(own.record.folder)
        assert made is not None, "`land` has seen it"
        tip = await trees.commit_of(f"refs/heads/{own.branch}")
        result = made.landing if tip in (None, made.landing_of) else None
        if result is not None and await trees.has_landed(result):
            await self._finish(result)
            return
        plan = own.ticket.read_plan()
        state = load_state(own.ticket_in_it, plan)
        if state is None or state.status is not RunStatus.COMPLETED:
            raise BadInput(
                f"{own.ticket.slug} has unfinished steps",
                hint=f"Resume it with `cdd exec {own.ticket.slug} --worktree`.",
                refusal=Refusal.NOTHING_TO_MOVE,
            )
        await self._expect_all_committed(state)
        base = await trees.commit_of("HEAD")
        assert base is not None, "`OwnTree.open` has seen it"
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
        replace(made, landing=result, landing_of=tip).keep(own.record.folder)
        await trees.forward(result)
        await self._finish(result)

    async def _expect_all_committed(self, state: ExecutionState) -> None:
        """Raise `BadInput` for work that no commit in the user's repository
        contains.
        """
        own, trees = self.own, self.own.trees
        uncommitted = await self._uncommitted_work(state)
        if uncommitted:
            raise BadInput(
                f"Not committed in the run's worktree: {named(uncommitted)}",
                hint=f"Commit it in {own.place}, then try again.",
                refusal=Refusal.WORKTREE_UNUSABLE,
            )
        submodules = await trees.unpublished_submodules(own.place, own.branch)
        if submodules:
            folder = quote_path(submodules[0])
            source = quote_path(str(own.place / submodules[0]))
            command = f"git -C {folder} fetch {source} HEAD"
            raise BadInput(
                "Commits of submodules exist only in the run's worktree:"
                f" {named(submodules)}",
                hint=f"Fetch them with `{command}`, then try again.",
                refusal=Refusal.WORKTREE_UNUSABLE,
            )

    async def _finish(self, result: str) -> None:
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

    async def _uncommitted_work(self, state: ExecutionState) -> list[str]:
        """Return the files that landing would lose: changed ones, and new ones of the
        steps. Other new files may come from checks.
        """
        own = self.own
        changed = await own.trees.changed(own.place, untracked=False)
        files = [path for path in changed if self._is_work(path)]
        of_steps = set()
        for step in state.step_executions.values():
            for path in (*step.files.created, *step.files.modified):
                of_steps.add(own.place / own.prefix / path)
        for path in await own.trees.changed(own.place, untracked=True):
            if own.place / path in of_steps:
                files.append(path)
        return files

    def _is_work(self, path: str) -> bool:
        """True if a file in the run's tree is the user's and not cdd's."""
        own = self.own
        place, source = own.place / path, own.trees.top / path
        if place.is_symlink() and place.readlink() == source:
            return False
        folders = (own.ticket_in_it.folder, own.root / ".cdd")
        return not any(place.is_relative_to(folder) for folder in folders)

    async def _check(
        self, commands: CommandRunner, plan: ImplementationPlan, state: ExecutionState
    ) -> None:
        """Check the result with the project's check and those of the steps. Raises
        `StepFailed`.
        """
        known_tests = KnownTests(self.record).so_far(state)
        checks = self._list_checks(commands, plan, state)
        if not checks:
            text = "No check ran on the result: the project has none."
            self.emit(Notice(text, Tone.WARNING))
        for check in checks:
            await self._approve(check, commands)
            run = await run_check(check, commands, self.limit, self.record.folder)
            result = judge_check(check, run, known_tests, Work())
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

    def _list_checks(
        self, commands: CommandRunner, plan: ImplementationPlan, state: ExecutionState
    ) -> list[Check]:
        """Return the checks of the project and of the checked steps, each once."""
        checks = dict[str, Check]()
        for check in project_checks(self.test_command, commands):
            checks[check.shown] = check
        for step in plan.steps:
            outcome = state.step(step.number).outcome
            if step.checks is None or not accepts("checked", outcome):
                continue
            for check in checks_for(step, self.test_command, commands):
                checks.setdefault(check.shown, check)
        return list(checks.values())

    async def _approve(self, check: Check, commands: CommandRunner) -> None:
        if not commands.must_ask(check.command):
            return
        self.emit(CommandProposed(check.shown, check.command.objection))
        try:
            await commands.ask(check.command)
        except CommandRefused as refusal:
            raise NotApproved(
                f"`{check.shown}` was not approved. Nothing was changed"
            ) from refusal

    async def _bring_record(self) -> None:
        """Move the run's record, checkpoints and state to the user's tree. Repeating is
        harmless.
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
        """Rename the tree instead of deleting it if it has uncommitted files."""
        own = self.own
        if (own.place / ".git").exists():
            untracked = await own.trees.changed(own.place, untracked=True)
            uncommitted = [path for path in untracked if self._is_work(path)]
            if uncommitted:
                aside = set_aside(own.place)
                folder = aside.relative_to(own.record.root).as_posix()
                text = f"Uncommitted files were moved to {folder}: {named(uncommitted)}"
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
        raise NotWritten(target, error) from error
