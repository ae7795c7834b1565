"""Plays a history with the real engine, and compares the project with the model after
everything that happens.
"""

import asyncio
import os
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from cdd_agent.events.step_events import (
    StepDiff,
    StepsRedone,
    StepsUndone,
)
from cdd_agent.tickets.status import StepStatus
from tests.engine.histories_actions import (
    Action,
    Diff,
    Edit,
    End,
    GitOp,
    Redo,
    Run,
    Skip,
    SwitchCommits,
    Undo,
    UseGit,
)
from tests.engine.histories_edits import edited, named_in_diff
from tests.engine.histories_model import (
    Outcome,
    Owned,
    Undone,
    Who,
)
from tests.engine.histories_outside import (
    Killed,
    install_watch,
)
from tests.engine.histories_project import (
    CLONE,
    IGNORED_CLONE,
    is_ignored,
    was_tracked,
)
from tests.engine.histories_scene import Candidates, Fault, both
from tests.engine.histories_step import Running, StepScene
from tests.engine.histories_tree import (
    read_entry,
    write_entry,
)
from tests.support.listening import told_to

_ENDED = (StepStatus.COMPLETED, StepStatus.FAILED, StepStatus.SKIPPED)


class Play(StepScene):
    """One history, from its project on."""

    async def play(self) -> None:
        install_watch()
        with told_to(self.events.append):
            try:
                for action in (*self.history.actions, Undo(back=99)):
                    await self.act(action)
                self.expect_no_leftovers()
            finally:
                self.killer.disarm()
                self.close()

    async def act(self, action: Action) -> None:
        if action.reopens:
            self.close()
        match action:
            case Edit(touch=touch):
                self.say("the user")
                self.change(touch, Who.USER)
            case UseGit(op=op, pick=pick):
                self.use_git(op, pick)
            case SwitchCommits():
                self.close()
                self.commits = not self.commits and self.variant.has_repositories
                self.sandbox.flags["commit"] = "step" if self.commits else "off"
                self.say(f"commit: {self.sandbox.flags['commit']}")
            case Run():
                self.may_commit = self.commits
                await self.run(action)
                self.may_commit = False
            case Skip():
                await self.skip(action)
            case Undo():
                await self.undo(action)
            case Redo():
                await self.redo(action)
            case Diff(pick=pick):
                await self.diff(pick)
            case _:
                raise NotImplementedError(action)

    async def run(self, action: Run) -> None:
        engine = self.open()
        step = engine.run.next_step
        if step is None:
            self.say("run: no step is left")
            return
        before = self.statuses()
        words = f"run step {step.number}" + (
            " with guidance" if action.guidance else ""
        )
        self.say(words + _killed(action))
        had_life = step.number in self.model.lives
        heads = self.repositories.heads() if self.commits else []
        self.running = Running(
            step.number, self.model.begin(step.number), list(action.attempts)
        )
        count = len(action.attempts)
        work = engine.run_step(step, guidance=action.guidance, attempts=count)
        task = asyncio.ensure_future(work)
        try:
            refused = await self.do(self._until_stopped(task), action)
        finally:
            running, self.running = self.running, None
        if self.killer.has_killed:
            await self.resume_run(running, before, action)
            return
        status = self.statuses()[step.number]
        self.say(f"  ended: {status}{f', {refused.message}' if refused else ''}")
        if running.has_met_engine:
            self.model.undone.clear()
        elif not had_life and status not in _ENDED:
            self.model.lives.pop(step.number)
        self.settle(self.after_run(running, status, before), "after a step")
        self.note_left(running.life)
        self.expect_status(running, status)
        if self.commits:
            self.expect_commit(running, status, heads)

    async def _until_stopped(self, task: "asyncio.Future[None]") -> None:
        self.task = task
        try:
            await task
        except asyncio.CancelledError:
            if not task.cancelled():
                raise

    def after_run(
        self, running: Running, status: StepStatus, before: dict[int, StepStatus]
    ) -> Candidates:
        """What the files may be once a run of a step is over."""
        applied = self.unchanged()
        if running.reply is not None:
            applied = self.applied(running.reply, running, is_certain=False)
            if status is StepStatus.FAILED:
                self.expect_refusable(running)
        if status is StepStatus.COMPLETED:
            if running.reply is not None:
                raise Fault("status", "completed without a check")
            return applied
        restored = self.restored(running.life, running)
        if status is StepStatus.FAILED:
            if running.checked is not None:
                return applied
            if running.script and running.script.end is not End.REPLY:
                return both(both(applied, self.put_back(running)), restored)
            return both(applied, restored)
        if before[running.step] is StepStatus.FAILED and not running.has_met_engine:
            return both(applied, restored)
        return restored

    def put_back(self, running: Running) -> Candidates:
        """After an error of the model an attempt that failed before is there again."""
        found = self.unchanged()
        for path, stack in running.failed.items():
            found[path] = [Outcome(stack[-1].entry, stack)]
        return found

    def expect_status(self, running: Running, status: StepStatus) -> None:
        """A check that passed completes a step that changed something."""
        if running.checked != 0 or self.commits:
            return
        has_changed = bool(self.changed_by(running.step)[0])
        if has_changed and status is not StepStatus.COMPLETED:
            raise Fault("status", f"its check passed, and the step is {status}")

    def expect_commit(
        self, running: Running, status: StepStatus, heads: Sequence[str]
    ) -> None:
        """What was committed is the step's, all of it, and as it is on the disk."""
        required, allowed = self.changed_by(running.step)
        required = {path for path in required if self.is_committable(path)}
        committed = set[str]()
        for place, paths in self.repositories.committed(heads):
            for path in paths:
                full = os.path.relpath(place / path, self.root)
                if (self.root / full).is_dir():
                    continue
                if full not in allowed:
                    raise Fault("another file is committed", full)
                committed.add(full)
            if staged := self.repositories.staged(place, paths):
                raise Fault("the index is not as the commit", ", ".join(staged))
        if status is not StepStatus.COMPLETED or self.open().stopped_by is not None:
            return
        if missing := required - committed:
            raise Fault("not committed", ", ".join(sorted(missing)))

    def is_committable(self, path: str) -> bool:
        """True if a repository of the project has the file, or would take it."""
        if path in self.staged or is_ignored(path) or not self.commits:
            return False
        if self.model.entry(path) is None and not was_tracked(self.variant, path):
            return False
        short = path.removeprefix(self.variant.main)
        is_outside = not path.startswith(self.variant.main)
        return not is_outside and not short.startswith((CLONE, IGNORED_CLONE))

    async def resume_run(
        self, running: Running, before: dict[int, StepStatus], action: Run
    ) -> None:
        """After a kill: the step is restored, or over."""
        running.is_cut = True
        for path, version in running.last_window.items():
            self.loosen(path, version)
        await self.start_again(action)
        engine = self.open()
        await self.do(engine.recover())
        status = self.statuses()[running.step]
        self.say(f"  killed; then: {status}")
        if running.has_met_engine:
            self.model.undone.clear()
        applied = self.unchanged()
        if running.reply is not None:
            applied = self.applied(running.reply, running, is_certain=False)
        restored = self.restored(running.life, running)
        found = restored
        if status is StepStatus.COMPLETED:
            found = applied
        elif status is StepStatus.FAILED or not running.has_met_engine:
            found = both(applied, restored)
        self.remove_discarded(found, running)
        self.settle(found, "after a kill in a step")
        if status is StepStatus.FAILED:
            self.loosen_all(running)
        self.note_left(running.life)

    def loosen_all(self, running: Running) -> None:
        """A restoring may have been entered, and killed before it changed the files."""
        for path, stack in self.model.stacks.items():
            for version in stack:
                if version.life == running.life:
                    self.loosen(path, version)

    def remove_discarded(self, found: Candidates, running: Running) -> None:
        """Expect nothing in `kept/` of files that the model was about to change."""
        for edit in (*(running.reply or ()), *running.calls):
            # it may have replaced a command's content just before the kill
            if edit is not None and edit.path in found:
                found[edit.path] = [
                    replace(outcome, discarded=None) for outcome in found[edit.path]
                ]

    async def start_again(self, action: Action) -> None:
        """A new process after a kill, before which the user may have edited a file."""
        await end_other_tasks()
        if self.engine is not None:
            with suppress(Exception, Killed):
                self.engine.close()
        self.engine = None
        assert self.killer.saved is not None
        self.projects.restore(self.killer.saved)
        self.killer.saved = None
        if action.edit_after_kill is not None:
            touch = action.edit_after_kill
            path = self.pick(touch)
            now = read_entry(self.root / path)
            if now is not None and not now.is_text:
                return
            text = self.text("user")
            self.say(f"  the user, after the kill: {touch.op} of {path}")
            entry = edited(touch.op, now, text)
            write_entry(self.root / path, entry)
            self.loose[path] = text.encode()

    async def skip(self, action: Skip) -> None:
        engine = self.open()
        step = engine.run.next_step
        if step is None:
            self.say("skip: no step is left")
            return
        words = "skip keep" if action.keep else "skip"
        self.say(f"{words} step {step.number}{_killed(action)}")
        life = self.model.begin(step.number)
        work = engine.skip(step, "no", keep=action.keep)
        refused = await self.do(work, action)
        if refused is not None:
            raise Fault("skip refused", refused.message)
        restored = self.restored(life)
        if action.keep:
            restored = self.unchanged()
        if not self.killer.has_killed:
            self.model.undone.clear()
            self.settle(restored, f"after {words}")
            self.expect_named([life], f"after {words}", is_required=not action.keep)
            return
        await self.start_again(action)
        await self.do(self.open().recover())
        status = self.statuses()[step.number]
        self.say(f"  killed; then: {status}")
        if status is StepStatus.SKIPPED:
            self.model.undone.clear()
            self.settle(restored, f"after a kill in {words}")
            return
        is_known = life in self.saved_replies or life in self.interrupted
        if not is_known and not any(
            version.life == life
            for stack in self.model.stacks.values()
            for version in stack
        ):
            self.model.lives.pop(step.number)
        self.settle(both(self.unchanged(), restored), f"after a kill in {words}")

    async def undo(self, action: Undo) -> None:
        engine = self.open()
        ended = [step.step_number for step in engine.run.state.ended_steps()]
        number = ended[-min(action.back, len(ended))] if ended else None
        self.say(f"undo {number or ''}{_killed(action)}")
        before, start = self.statuses(), len(self.events)
        refused = await self.do(engine.undo(number), action)
        if refused is not None:
            raise Fault("undo refused", refused.message)
        was_killed = self.killer.has_killed
        if was_killed:
            start = len(self.events)
            await self.start_again(action)
            await self.do(self.open().recover())
        events = [e for e in self.events[start:] if isinstance(e, StepsUndone)]
        after = self.statuses()
        steps = [
            step
            for step in before
            if before[step] in _ENDED and after[step] not in _ENDED
        ]
        if events:
            steps = [*events[0].steps]
        if not steps:
            if ended and not was_killed:
                raise Fault("undo", "nothing was undone")
            self.say("  nothing was undone")
            self.settle(self.unchanged(), "after an undo of nothing")
            return
        where = "after a kill in an undo" if was_killed else "after an undo"
        self.say(f"  undone: {steps}")
        self.settle_undo(steps, where, is_told=bool(events))

    def settle_undo(self, steps: Sequence[int], where: str, *, is_told: bool) -> None:
        lives = {
            step: self.model.lives.pop(step)
            for step in steps
            if step in self.model.lives
        }
        candidates = self.model.without(lives.values(), strict=True)
        before = {}
        for path, stack in self.model.stacks.items():
            gone = self.model.gone_with(lives.values(), path)
            # nothing tells what an undo found that was killed before an edit
            if path not in self.loose and any(gone(v) != Owned.NO for v in stack):
                before[path] = stack
        foreign = self.model.foreign(lives.values())
        self.settle(candidates, where, is_told=is_told)
        after = {path: self.model.entry(path) for path in before}
        kept = {path: entry for path, entry in after.items() if entry is not None}
        self.model.undone.append(Undone(lives, before, kept))
        if is_told:
            self.expect_named_paths(foreign, where)
        for life in lives.values():
            self.saved_replies.pop(life, None)
            self.interrupted.pop(life, None)

    async def redo(self, action: Redo) -> None:
        engine = self.open()
        self.say(f"redo{_killed(action)}")
        before, start = self.statuses(), len(self.events)
        refused = await self.do(engine.redo(), action)
        if refused is not None:
            raise Fault("redo refused", refused.message)
        was_killed = self.killer.has_killed
        if was_killed:
            start = len(self.events)
            await self.start_again(action)
            await self.do(self.open().recover())
        events = [e for e in self.events[start:] if isinstance(e, StepsRedone)]
        if not events and self.statuses() == before:
            if self.model.undone and not was_killed:
                raise Fault("redo", "nothing was redone")
            self.say("  nothing was redone")
            self.settle(self.unchanged(), "after a redo of nothing")
            return
        if not self.model.undone:
            raise Fault("redo", "something was redone after another step was run")
        undone = self.model.undone.pop()
        self.model.lives |= undone.lives
        self.say(f"  redone: {[*undone.lives]}")
        where = "after a kill in a redo" if was_killed else "after a redo"
        self.settle(self.model.redone(undone), where, is_told=bool(events))

    async def diff(self, pick: int) -> None:
        engine = self.open()
        ended = [step.step_number for step in engine.run.state.ended_steps()]
        if not ended:
            return
        number = ended[pick % len(ended)]
        self.say(f"diff {number}")
        start = len(self.events)
        refused = await self.do(engine.diff(number))
        if refused is not None:
            raise Fault("diff refused", refused.message)
        shown = [e for e in self.events[start:] if isinstance(e, StepDiff)]
        paths = {path for event in shown for path in named_in_diff(event.diff)}
        required, allowed = self.changed_by(number)
        if missing := sorted(required - paths):
            kinds = sorted({self.trait(path) for path in missing})
            raise Fault(f"diff lacks a file: {kinds[0]}", ", ".join(missing))
        if extra := sorted(paths - allowed):
            raise Fault("diff has another file", ", ".join(extra))
        self.settle(self.unchanged(), "after diff")

    def use_git(self, op: GitOp, pick: int) -> None:
        if not self.variant.has_repositories:
            return
        existing = [p for p in self.history.pool if self.model.entry(p) is not None]
        if not existing:
            return
        path = existing[pick % len(existing)]
        folder, name = (self.root / path).parent, Path(path).name
        commands = {
            GitOp.ADD: [["add", name]],
            GitOp.INTEND: [["add", "-N", name]],
            GitOp.COMMIT: [["add", name], ["commit", "-qm", "by the user", name]],
        }
        self.say(f"the user: git {op} {path}")
        self.staged.add(path)
        for words in commands[op]:
            subprocess.run(
                ["git", *words], cwd=folder, capture_output=True, check=False
            )
        self.repositories.note()


async def end_other_tasks() -> None:
    """Wait until nothing is left of what the engine has begun."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def _killed(action: Action) -> str:
    if not action.kill:
        return ""
    death = "power cut" if action.cuts_power else "killed"
    return f", {death} at point {action.kill}"
