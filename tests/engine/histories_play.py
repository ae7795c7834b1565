"""Plays a history with the real engine, and compares the project with the model after
everything that happens.
"""

import asyncio
import json
import os
import re
import shutil
import subprocess
from collections.abc import Awaitable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from cdd_agent.engine.engine import Engine
from cdd_agent.errors import CddError
from cdd_agent.events.notices import Notice
from cdd_agent.events.step_events import (
    AttemptFailed,
    ChangesPutBack,
    StepDiff,
    StepsRedone,
    StepsUndone,
)
from cdd_agent.events.stream import Event
from cdd_agent.llm.port import ModelError, RateLimited, Request, ToolCall
from cdd_agent.llm.scripted_reply import ScriptedReply
from cdd_agent.tickets.status import StepStatus
from tests.engine.histories_actions import (
    Action,
    Attempt,
    Diff,
    Edit,
    End,
    GitOp,
    History,
    Moment,
    Op,
    Redo,
    Run,
    Skip,
    SwitchCommits,
    Touch,
    Undo,
    UseGit,
)
from tests.engine.histories_model import (
    Model,
    Outcome,
    Owned,
    Stack,
    Undone,
    Version,
    Who,
)
from tests.engine.histories_outside import (
    Killed,
    Killer,
    PlayedModel,
    PlayedPrograms,
    Repositories,
    install_watch,
)
from tests.engine.histories_project import (
    CLONE,
    IGNORED_CLONE,
    LARGEST,
    SUBMODULE,
    VARIANTS,
    Projects,
    is_ignored,
)
from tests.engine.histories_tree import (
    UNFINISHED,
    Conflict,
    Entry,
    Tree,
    merge,
    read_entry,
    read_tree,
    write_entry,
)
from tests.support.listening import told_to
from tests.support.projects import Sandbox, Step

Candidates = dict[str, list[Outcome]]
_ENDED = (StepStatus.COMPLETED, StepStatus.FAILED, StepStatus.SKIPPED)
_DIFF_LINE = re.compile(r'^diff --git (?P<one>"(?:[^"\\]|\\.)*"|a/.*) (?P<two>"?b/.*)$')


class Fault(AssertionError):
    """The engine, or this model of it, is wrong."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind = kind


# --- Edits of the model ---------------------------------------------------------------


@dataclass(frozen=True)
class Give:
    """A whole file."""

    path: str
    text: str
    is_new: bool

    def result(self, now: Entry | None) -> Entry | None:
        """Raises `Conflict` where it does not fit."""
        if self.is_new and now is not None:
            raise Conflict
        return Entry(self.text.encode(), now.mode if now else 0o644)


@dataclass(frozen=True)
class Replace:
    """One line of a file."""

    path: str
    find: str
    new: str

    def result(self, now: Entry | None) -> Entry | None:
        """Raises `Conflict` where it does not fit."""
        find = self.find.encode()
        if now is None or now.mode is None or now.data.count(find) != 1:
            raise Conflict
        return Entry(now.data.replace(find, self.new.encode()), now.mode)


@dataclass(frozen=True)
class Delete:
    path: str

    def result(self, now: Entry | None) -> Entry | None:
        """A file that is gone already needs no more."""
        del now
        return None


ModelEdit = Give | Replace | Delete


def _reply_text(edits: Sequence[ModelEdit]) -> str:
    parts = ["Here it is."]
    for edit in edits:
        match edit:
            case Give(path, text, is_new=True):
                lines = "".join(f"+{line}\n" for line in text.splitlines())
                parts.append(_patch(f"*** Add File: {path}\n{lines}"))
            case Give(path, text):
                parts.append(f"```text:{path}\n{text}```")
            case Replace(path, find, new):
                parts.append(
                    f"{path}\n<<<<<<< SEARCH\n{find}\n=======\n{new}\n>>>>>>> REPLACE"
                )
            case Delete(path):
                parts.append(_patch(f"*** Delete File: {path}\n"))
    return "\n\n".join(parts)


def _patch(body: str) -> str:
    return f"*** Begin Patch\n{body}*** End Patch"


# --- A step that is run ---------------------------------------------------------------


@dataclass
class Running:
    """The run of a step, as far as it is."""

    step: int
    life: int
    scripts: list[Attempt]
    script: Attempt | None = None
    attempt: int = 0
    """Counts the attempts of the history."""
    has_met_engine: bool = False
    """A model or a program was called."""
    calls: list[ModelEdit | None] = field(default_factory=list)
    """The calls of the last round; None: a command, or one that only reads."""
    settled: int = 0
    """How many of these have been compared."""
    disturbed: set[str] = field(default_factory=set)
    """Files that the user or a command has changed since the attempt began."""
    reply: list[ModelEdit] | None = None
    """The reply that is to be applied."""
    goes_on: bool = False
    """The attempt was interrupted before."""
    checked: int | None = None
    """The exit code of the check."""
    last_window: dict[str, Version] = field(default_factory=dict)
    """What the last command or check changed."""
    is_cut: bool = False
    """The last command or check was stopped or killed."""
    failed: dict[str, Stack] = field(default_factory=dict)
    """Files of an attempt that had failed before, as they were before they were
    restored for this run.
    """


@dataclass
class Interrupted:
    """An attempt that was restored, and whose tool calls may be made again."""

    files: dict[str, list[Version]]
    """The attempt's versions of files, the newest last."""
    uncertain: frozenset[str]
    """Files that a command was changing when it was stopped or killed."""
    calls: list[ModelEdit | None]
    """The calls of the last round."""
    left: dict[str, Entry | None] = field(default_factory=dict)
    """The files as they were restored."""


class Play:
    """One history, from its project on."""

    def __init__(self, projects: Projects, history: History) -> None:
        self.history = history
        self.variant = VARIANTS[history.variant]
        self.projects = projects
        self.root = projects.copy(self.variant)
        self.sandbox = Sandbox(
            self.root,
            real_model=PlayedModel(self.answer),
            run_program=PlayedPrograms(self.run_program),
        )
        self.sandbox.write(*self._steps())
        self.model = Model.of_tree(read_tree(self.root))
        self.outside = self._read_outside()
        self.repositories = Repositories(projects.place, self.variant)
        self.repositories.note()
        self.killer = Killer(str(projects.place), projects.save)
        self.engine: Engine | None = None
        self.running: Running | None = None
        self.events: list[Event] = []
        self.lines: list[str] = []
        """What happened, for people."""
        self.names: dict[str, int] = {}
        """By path, the number of the last event that names it as kept."""
        self.born: dict[str, int] = {}
        """By path, how many events there were when its last version came."""
        self.saved_replies: dict[int, list[ModelEdit]] = {}
        self.interrupted: dict[int, Interrupted] = {}
        self.loose: dict[str, bytes] = {}
        """Files that the user edited after a kill, with the text that must stay."""
        self.texts = 0
        self.attempts = 0
        self.commits = False
        self.staged = set[str]()
        """Files that git's index may have as the user left them."""
        self.may_commit = False
        """The engine is at work on a step, with `commit: step`."""

    def _steps(self) -> Iterator[Step]:
        for number, paths in enumerate(self.history.declared, 1):
            also = tuple(f"`{path}`" for path in paths[1:])
            yield Step(paths[0], f"make check-{number}", also=also)

    # The story

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

    def expect_no_leftovers(self) -> None:
        """A write that a kill interrupted leaves no file for good."""
        for place in sorted(self.root.rglob(f"{UNFINISHED}*")):
            # the next checkpoint tidies that
            if "checkpoints.git" not in place.parts:
                raise Fault("leftovers of a write", str(place))

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

    def open(self) -> Engine:
        if self.engine is None:
            self.engine = self.sandbox.engine()
        return self.engine

    def close(self) -> None:
        if self.engine is not None:
            self.engine.close()
            self.engine = None

    def say(self, text: str) -> None:
        self.lines.append(text)

    async def do(
        self, work: Awaitable[object], action: Action | None = None
    ) -> CddError | None:
        """Let the engine work, perhaps until it is killed; returns why it refuses."""
        try:
            if action is not None and action.kill:
                self.killer.arm(action.kill, cuts_power=action.cuts_power)
            await work
        except CddError as error:
            if not self.killer.has_killed:
                return error
        except Killed:
            pass
        except Exception:
            if not self.killer.has_killed:
                raise
        finally:
            self.killer.disarm()
        return None

    # Run

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
                return both(applied, self.put_back(running))
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
        has_changed = any(
            version.life == running.life and version.owned is Owned.YES
            for stack in self.model.stacks.values()
            for version in stack
        )
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
        self.start_again(action)
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
        self.settle(found, "after a kill in a step")
        self.note_left(running.life)

    def note_left(self, life: int) -> None:
        """Remember how the files of an interrupted attempt were restored."""
        if life in self.interrupted:
            interrupted = self.interrupted[life]
            interrupted.left = {p: self.model.entry(p) for p in interrupted.files}

    def loosen(self, path: str, version: Version) -> None:
        """Nothing tells to whom a change belongs that was made just before a kill."""
        if version.owned is Owned.YES:
            loose = replace(version, owned=Owned.MAYBE)
            self.model.stacks[path] = tuple(
                loose if each is version else each for each in self.model.stack(path)
            )

    def start_again(self, action: Action) -> None:
        """A new process after a kill, before which the user may have edited a file."""
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

    # The model and the programs, called by the engine

    async def answer(self, request: Request) -> ScriptedReply:
        running = self.meet()
        index = sum(bool(message.tool_calls) for message in request.messages)
        if index == 0:
            self.begin_attempt(running)
        elif running.script is None:
            candidates = self.after_calls(running, request, self.go_on(running))
            self.settle(candidates, "when the model goes on")
        else:
            candidates = self.after_calls(running, request, self.unchanged())
            self.settle(candidates, "after a tool call")
        script = running.script
        assert script is not None
        reply = self.compose(running, script, index)
        for touch in script.at(Moment.ANSWERING) if index == 0 else ():
            self.say("  the user, while the model answers")
            running.disturbed |= {*self.change(touch, Who.USER)}
        if script.stop_at is Moment.ANSWERING:
            await self.stop("while the model answers")
        if running.reply is not None:
            self.saved_replies[running.life] = running.reply
        return reply

    def begin_attempt(self, running: Running) -> None:
        """The model is asked from the beginning: earlier attempts are restored."""
        self.expect_refusable(running)
        candidates, stacks = self.restored(running.life), dict(self.model.stacks)
        self.settle(candidates, "when the model is asked")
        running.failed = {
            path: stack
            for path, stack in stacks.items()
            if self.model.entry(path) != stack[-1].entry
        }
        self.attempts += 1
        running.attempt, running.checked = self.attempts, None
        running.goes_on = False
        running.script = self.next_script(running)
        running.calls, running.settled, running.disturbed = [], 0, set()
        self.saved_replies.pop(running.life, None)
        self.interrupted.pop(running.life, None)
        self.say(f"  attempt {running.attempt}")

    def expect_refusable(self, running: Running) -> None:
        """A reply is refused only if there can be a reason for it."""
        is_certain = self.is_certain(running)
        reply, running.reply = running.reply, None
        if reply and is_certain:
            failed = [e.error for e in self.events if isinstance(e, AttemptFailed)]
            raise Fault("a good reply is refused", failed[-1] if failed else "")

    def next_script(self, running: Running) -> Attempt:
        if len(running.scripts) > 1 or running.script is None:
            return running.scripts.pop(0)
        return running.script

    def go_on(self, running: Running) -> Candidates:
        """The attempt goes on after an interruption: what its calls changed is there
        again, though the model does not make them again.
        """
        running.script = self.next_script(running)
        self.attempts += 1
        running.attempt, running.goes_on = self.attempts, True
        running.reply = self.saved_replies.get(running.life)
        self.say(f"  attempt {running.attempt}, which goes on")
        candidates = self.unchanged()
        earlier = self.interrupted.pop(running.life, None)
        if earlier is None:
            return candidates
        running.calls = [*earlier.calls]
        in_reply = {edit.path for edit in running.reply or ()}
        for path, versions in earlier.files.items():
            is_certain = path not in earlier.uncertain
            is_certain = is_certain and self.model.entry(path) == earlier.left[path]
            if is_certain and path not in in_reply:
                candidates[path] = []
            for version in versions[-1:] if is_certain else versions:
                again = replace(version, attempt=running.attempt)
                candidates[path] += self.made_again(path, again, earlier.left[path])
        return candidates

    def made_again(
        self, path: str, version: Version, left: Entry | None
    ) -> list[Outcome]:
        """A file with a version that was restored, and is made once more."""
        try:
            entry = merge(self.model.entry(path), left, version.entry)
        except Conflict:
            return []
        stack = self.model.stack(path)
        if entry != stack[-1].entry:
            stack = (*stack, replace(version, entry=entry))
        return [Outcome(entry, stack)]

    def after_calls(
        self, running: Running, request: Request, candidates: Candidates
    ) -> Candidates:
        """What the calls of the last round have done, as their answers say."""
        answers = [message for message in request.messages if message.role == "tool"]
        calls, running.calls = running.calls, []
        settled, running.settled = running.settled, 0
        for place, call in enumerate(calls[: len(answers)]):
            answer = answers[place - len(calls)].content
            if call is None or place < settled:
                continue
            if not json.loads(answer).get("success"):
                self.say(f"    refused: {answer[:300]}")
                continue
            candidates = self.applied(
                [call],
                running,
                who=Who.TOOL,
                is_certain=not running.goes_on,
                base=candidates,
                group=f"call {place}",
            )
        return candidates

    def before_command(
        self, running: Running, call: int, candidates: Candidates
    ) -> Candidates:
        """What the calls before a command in its round have done."""
        for place in range(running.settled, min(call, len(running.calls))):
            edit = running.calls[place]
            if edit is not None:
                candidates = self.applied(
                    [edit],
                    running,
                    who=Who.TOOL,
                    is_certain=False,
                    base=candidates,
                    group=f"call {place}",
                )
        running.settled = call
        return candidates

    def compose(self, running: Running, script: Attempt, index: int) -> ScriptedReply:
        """Make the reply, or the next call."""
        if script.end is End.NO_ANSWER:
            self.say("    no answer")
            return ScriptedReply(error=ModelError("no"))
        if script.end is End.LATER:
            self.say("    come back later")
            return ScriptedReply(error=RateLimited("later", retry_after=1e9))
        if index < len(script.rounds):
            calls = [
                self.compose_call(running, touch, f"{index}-{place}")
                for place, touch in enumerate(script.rounds[index])
            ]
            return ScriptedReply("", tool_calls=tuple(calls))
        edits: list[ModelEdit] = []
        for touch in script.at(Moment.REPLY):
            edit = self.compose_edit(touch, by_tool=False)
            if edit and all(edit.path != other.path for other in edits):
                edits.append(edit)
        running.reply = edits
        shown = ", ".join(f"{type(edit).__name__} {edit.path}" for edit in edits)
        self.say(f"    reply: {shown or 'done'}")
        return ScriptedReply(_reply_text(edits) if edits else "I have done it.")

    def compose_call(self, running: Running, touch: Touch, number: str) -> ToolCall:
        edit = None
        if touch.moment is Moment.TOOL:
            edit = self.compose_edit(touch, by_tool=True)
            if any(call and edit and call.path == edit.path for call in running.calls):
                edit = None
        running.calls.append(edit)
        match edit:
            case Give(path, text):
                name, arguments = "create_file", {"file_path": path, "content": text}
            case Replace(path, find, new):
                name = "edit_file"
                arguments = {"file_path": path, "find": find, "replace": new}
            case None if touch.moment is Moment.TOOL:
                name, arguments = "read_file", {"path": self.pick(touch)}
            case _:
                name = "execute_command"
                arguments = {"command": f"make act-{number}"}
        self.say(f"    call: {name} {next(iter(arguments.values()))}")
        return ToolCall(f"call-{number}", name, json.dumps(arguments))

    def compose_edit(self, touch: Touch, *, by_tool: bool) -> ModelEdit | None:
        """An edit that fits the file as it is now, if there is one."""
        path = self.pick(touch)
        now, text = self.model.entry(path), self.text("tool" if by_tool else "reply")
        if now is None:
            return Give(path, "".join(f"{text} {word}\n" for word in "abc"), True)
        if not now.is_text or b"\n" not in now.data or len(now.data) > LARGEST:
            return None
        if touch.op is Op.DELETE:
            return None if by_tool else Delete(path)
        is_plain = now.data.isascii() and b"\r" not in now.data
        is_declared = self.declares(path)
        if touch.op is Op.WHOLE and is_plain and is_declared and not by_tool:
            return Give(path, f"{text} 1\n{text} 2\n", False)
        lines = now.data.splitlines()
        line = lines[1 if touch.op is Op.TOP else -2] if len(lines) > 2 else lines[0]
        if not line.strip() or now.data.count(line) != 1:
            return None
        try:
            return Replace(path, line.decode(), text)
        except UnicodeDecodeError:
            return None

    def is_certain(self, running: Running) -> bool:
        """True if nothing gives the engine a reason to refuse the reply."""
        return not running.goes_on and all(
            self.declares(edit.path)
            and not is_ignored(edit.path)
            and edit.path not in running.disturbed
            for edit in running.reply or ()
        )

    async def run_program(self, name: str) -> int:
        running = self.meet()
        if name.startswith("check-"):
            return await self.check(running)
        candidates = self.unchanged()
        if running.script is None:
            candidates = self.go_on(running)
        index, place = map(int, name.removeprefix("act-").split("-"))
        candidates = self.before_command(running, place, candidates)
        self.settle(candidates, "when a command starts")
        script = running.script
        assert script is not None
        # a command of an earlier script does nothing
        touches = (
            script.rounds[index][place : place + 1]
            if index < len(script.rounds)
            else []
        )
        running.is_cut = script.stop_at is Moment.COMMAND
        self.work(running, [*touches, *script.at(Moment.IN_COMMAND)], Who.COMMAND)
        if script.stop_at is Moment.COMMAND:
            await self.stop("during a command")
        return 0

    async def check(self, running: Running) -> int:
        candidates = self.unchanged()
        if running.script is None:
            # a saved reply is used, and the model is not asked
            candidates = self.go_on(running)
        if running.reply is not None:
            is_certain = self.is_certain(running)
            candidates = self.applied(
                running.reply, running, is_certain=is_certain, base=candidates
            )
            running.reply = None
        self.settle(candidates, "when the check starts")
        script = running.script
        assert script is not None
        touches = script.at(Moment.CHECK, Moment.IN_CHECK)
        running.is_cut = script.stop_at is Moment.CHECK
        self.say(f"    check: {'passes' if script.passes else 'fails'}")
        self.work(running, touches, Who.CHECK)
        if script.stop_at is Moment.CHECK:
            await self.stop("during the check")
        running.checked = 0 if script.passes else 1
        return running.checked

    def meet(self) -> Running:
        """Raises `Killed` if the process is over."""
        if self.killer.has_killed:
            raise Killed
        assert self.running is not None
        self.running.has_met_engine = True
        return self.running

    async def stop(self, when: str) -> None:
        self.say(f"  stopped {when}")
        self.task.cancel()
        await asyncio.sleep(3600)

    # Skip, undo, redo, diff

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
        self.start_again(action)
        await self.do(self.open().recover())
        status = self.statuses()[step.number]
        self.say(f"  killed; then: {status}")
        if status is StepStatus.SKIPPED:
            self.model.undone.clear()
            self.settle(restored, f"after a kill in {words}")
            return
        if not any(
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
            self.start_again(action)
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
        before = {
            path: stack
            for path, stack in self.model.stacks.items()
            if any(
                self.model.gone_with(lives.values(), path)(v) != Owned.NO for v in stack
            )
        }
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
            self.start_again(action)
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

    def changed_by(self, step: int) -> tuple[set[str], set[str]]:
        """The paths that the diff of a step must have, and those that it may have."""
        required, allowed = set[str](), set[str]()
        life = self.model.lives.get(step)
        for path, stack in self.model.stacks.items():
            gone = self.model.gone_with([] if life is None else [life], path)
            owned = [
                place
                for place, version in enumerate(stack)
                if gone(version) != Owned.NO
            ]
            if not owned:
                continue
            allowed.add(path)
            first, last = stack[owned[0] - 1].entry, stack[owned[-1]].entry
            is_one = owned == [*range(owned[0], owned[-1] + 1)]
            is_sure = all(gone(stack[place]) is Owned.YES for place in owned)
            if is_one and is_sure and _git_sees(first, last):
                required.add(path)
        return required, allowed

    # Files

    def pick(self, touch: Touch) -> str:
        """The path of a change."""
        declared = [path for path in self.history.pool if self.declares(path)]
        others = [path for path in self.history.pool if path not in declared]
        if touch.moment is Moment.USER and self.running is None:
            paths: Sequence[str] = self.history.pool
        else:
            paths = declared if touch.is_declared else others
        paths = paths or self.history.pool
        return paths[touch.pick % len(paths)]

    def declares(self, path: str) -> bool:
        if self.running is None:
            return False
        return path in self.history.declared[self.running.step - 1]

    def text(self, who: str) -> str:
        self.texts += 1
        return f"{who}-{self.texts:03}"

    def work(self, running: Running, touches: Iterable[Touch], who: Who) -> None:
        """What a command or a check, and the user meanwhile, change."""
        before = {path: self.model.entry(path) for path in self.history.pool}
        try:
            for touch in touches:
                is_user = touch.moment in (Moment.IN_COMMAND, Moment.IN_CHECK)
                self.say("      the user meanwhile" if is_user else f"      the {who}")
                writing = self.killer.writing_at_once
                with self.killer.paused() if is_user else writing():
                    changed = self.write(touch, "user" if is_user else str(who))
                for path in changed:
                    before.setdefault(path, self.model.entry(path))
        finally:
            # also what was done before a kill
            self.record_window(running, before, who)
        self.repositories.note()

    def record_window(
        self, running: Running, before: dict[str, Entry | None], who: Who
    ) -> None:
        running.last_window = {}
        for path, old in before.items():
            entry = read_entry(self.root / path)
            if entry == old:
                continue
            owned = self.owner_in_window(running, path)
            version = Version(entry, who, running.life, running.attempt, owned)
            self.born[path] = len(self.events)
            running.last_window[path] = version
            running.disturbed.add(path)
            self.model.push(path, version)

    def owner_in_window(self, running: Running, path: str) -> Owned:
        wrote = [
            version.attempt
            for version in self.model.stack(path)
            if version.life == running.life and version.who in (Who.REPLY, Who.TOOL)
        ]
        if not self.declares(path) and not wrote:
            link, docs = f"{self.variant.main}link-folder", f"{self.variant.main}docs/"
            is_behind_link = self.declares(link) and path.startswith(docs)
            return Owned.MAYBE if is_behind_link else Owned.NO
        # a plan that names a link to a folder means the files in it
        if self.is_uncoverable(path) or path.endswith("link-folder"):
            return Owned.MAYBE
        if self.declares(path) or running.attempt in wrote:
            return Owned.YES
        return Owned.MAYBE

    def is_uncoverable(self, path: str) -> bool:
        if not is_ignored(path):
            return False
        entries = [version.entry for version in self.model.stack(path)]
        entries.append(read_entry(self.root / path))
        return any(entry and len(entry.data) > LARGEST for entry in entries)

    def change(self, touch: Touch, who: Who) -> list[str]:
        """A change of the user's. Returns the paths."""
        with self.killer.paused():
            changed = self.write(touch, str(who))
        for path in changed:
            self.model.push(path, Version(read_entry(self.root / path), who))
        return changed

    def write(self, touch: Touch, name: str) -> list[str]:
        """Carry a change out. Returns the paths that it changed."""
        path = self.pick(touch)
        now, text = read_entry(self.root / path), self.text(name)
        if touch.op in (Op.RENAME, Op.GIT_MV) and now is not None:
            target = f"{path}.moved-{self.texts}"
            self.say(f"        {touch.op} of {path} to {target}")
            self.staged |= {path, target}
            if touch.op is Op.RENAME or not self._git_mv(path, target):
                (self.root / path).rename(self.root / target)
            return [path, target]
        folder = (self.root / path).parent
        if touch.op is Op.DELETE_FOLDER and self._is_small(folder):
            shown = folder.relative_to(self.root)
            self.say(f"        {touch.op} {shown}")
            paths = [f"{shown}/{name}" for name in read_tree(folder)]
            shutil.rmtree(folder)
            return paths
        self.say(f"        {touch.op} of {path}")
        write_entry(self.root / path, edited(touch.op, now, text))
        return [path]

    def _is_small(self, folder: Path) -> bool:
        """True for a folder within one repository."""
        if not folder.is_dir() or self.root.is_relative_to(folder):
            return False
        return not any(folder.rglob(".git")) and folder.name != "two"

    def _git_mv(self, path: str, target: str) -> bool:
        folder = (self.root / path).parent
        names = [Path(path).name, Path(target).name]
        done = subprocess.run(
            ["git", "mv", *names], cwd=folder, capture_output=True, check=False
        )
        return done.returncode == 0

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

    # Candidates

    def unchanged(self) -> Candidates:
        return self.model.unchanged()

    def restored(self, life: int, running: Running | None = None) -> Candidates:
        """Without what is left of the step. What its last attempt, if it is `running`,
        changed is remembered.
        """
        candidates = self.model.without([life], strict=False)
        if running is None:
            return candidates
        files = dict[str, list[Version]]()
        uncertain = {*running.last_window} if running.is_cut else set[str]()
        for path, stack in self.model.stacks.items():
            if stack[-1].life != life or stack[-1].owned is Owned.NO:
                continue
            files[path] = [v for v in stack if v.life == life and v.owned != Owned.NO]
            if stack[-1].owned is Owned.MAYBE:
                uncertain.add(path)
        if running.has_met_engine:
            self.interrupted[life] = Interrupted(
                files, frozenset(uncertain), [*running.calls]
            )
        return candidates

    def applied(
        self,
        edits: Sequence[ModelEdit],
        running: Running,
        *,
        who: Who = Who.REPLY,
        is_certain: bool = True,
        base: Candidates | None = None,
        group: str = "reply",
    ) -> Candidates:
        """With edits, all or none of which were made. `group` names them."""
        candidates = base if base is not None else self.unchanged()
        given: Candidates = {}
        for edit in edits:
            path = edit.path
            outcomes = candidates.get(path) or [Outcome(None, self.model.stack(path))]
            given[path] = []
            for outcome in outcomes:
                with suppress(Conflict):
                    entry = edit.result(outcome.entry)
                    owned = Owned.MAYBE if self.is_uncoverable(path) else Owned.YES
                    version = Version(entry, who, running.life, running.attempt, owned)
                    stack = (*outcome.stack, version)
                    given[path].append(
                        replace(outcome, entry=entry, stack=stack, tag=f"{group}: yes")
                    )
        fits = all(given.values())
        for path, outcomes in given.items():
            refused = candidates.get(path) or [Outcome(None, self.model.stack(path))]
            refused = [replace(outcome, tag=f"{group}: no") for outcome in refused]
            if not fits:
                candidates[path] = refused
            elif is_certain:
                candidates[path] = outcomes
            else:
                candidates[path] = [*outcomes, *refused]
        return candidates

    # Comparing

    def settle(
        self, candidates: Candidates, where: str, *, is_told: bool = True
    ) -> None:
        """Compare the disk with what it may be, and go on from what it is."""
        if self.killer.has_killed:
            raise Killed
        disk = read_tree(self.root)
        self.note_names()
        found = dict[str, list[Outcome]]()
        for path in sorted(disk.keys() | candidates.keys() | self.loose.keys()):
            found[path] = self.matching(path, disk.get(path), candidates, where)
        common = common_tags(found.values())
        if common is None:
            raise Fault(f"{where}: a reply is applied in part", "")
        for path, outcomes in found.items():
            fitting = [o for o in outcomes if not o.tag or o.tag in common]
            chosen = self.choose(path, fitting, where, is_told=is_told)
            stack = chosen.stack
            if stack[-1].entry != disk.get(path):
                stack = (*stack, Version(disk.get(path), Who.USER))
            self.model.set_stack(path, stack)
        self.loose.clear()
        if self._read_outside() != self.outside:
            raise Fault(f"{where}: files outside the project", "")
        differences = self.repositories.differences()
        if differences and not self.may_commit:
            kind = "index" if differences[0].endswith("index") else "refs"
            raise Fault(f"{where}: git's {kind} differs", ", ".join(differences))
        self.repositories.note()

    def matching(
        self, path: str, entry: Entry | None, candidates: Candidates, where: str
    ) -> list[Outcome]:
        if path in self.loose:
            must_hold = self.loose[path]
            if must_hold not in (entry.data if entry else b"") and not self.is_kept(
                must_hold
            ):
                raise Fault(f"{where}: the user's edit is lost", path)
            # nothing tells whether the step was restored before the edit or after it
            stack = tuple(
                replace(version, owned=Owned.MAYBE)
                if version.owned is Owned.YES
                else version
                for version in self.model.stack(path)
            )
            return [Outcome(entry, (*stack, Version(entry, Who.USER)))]
        outcomes = candidates.get(path) or [Outcome(None, (Version(None),))]
        fitting = [outcome for outcome in outcomes if outcome.entry == entry]
        if not fitting:
            allowed = " or ".join(_shown(outcome.entry) for outcome in outcomes)
            stack = " | ".join(
                f"{v.who} {v.owned} {_shown(v.entry)}" for v in self.model.stack(path)
            )
            raise Fault(
                f"{where}: {self.trait(path)}",
                f"{path} is {_shown(entry)}, and not {allowed}\n    versions: {stack}",
            )
        return fitting

    def choose(
        self, path: str, outcomes: list[Outcome], where: str, *, is_told: bool
    ) -> Outcome:
        fitting = [o for o in outcomes if not o.must_be_named]
        if not fitting:
            fitting = outcomes
            if is_told and not self.is_named(path):
                raise Fault(f"{where}: not named: {self.trait(path)}", path)
        for outcome in fitting:
            discarded = outcome.discarded
            entry = discarded.entry if discarded else None
            if not (discarded and discarded.who.is_program and entry and entry.data):
                return outcome
            if outcome.entry is not None and outcome.entry.data == entry.data:
                return outcome
            if entry.mode is None or self.is_kept(entry.data):
                return outcome
        raise Fault(f"{where}: not in kept/: {self.trait(path)}", path)

    def is_kept(self, text: bytes) -> bool:
        """True if a file below `kept/` has the text."""
        folder = self.root / ".cdd/runs" / self.sandbox.slug / "kept"
        files = [place for place in folder.rglob("*") if place.is_file()]
        return any(text in place.read_bytes() for place in files)

    def note_names(self) -> None:
        """Remember which paths the events so far have named."""
        for number, event in enumerate(self.events):
            if isinstance(event, StepsUndone):
                paths = {*event.kept, *event.edited, *event.others}
            elif isinstance(event, ChangesPutBack | StepsRedone):
                paths = {*event.kept}
            elif isinstance(event, Notice):
                known = self.model.stacks.keys()
                paths = {path for path in known if path in event.text}
            else:
                continue
            for path in paths:
                self.names[path] = max(number, self.names.get(path, -1))

    def is_named(self, path: str) -> bool:
        return self.names.get(path, -1) >= self.born.get(path, 0)

    def expect_named(
        self, lives: Iterable[int], where: str, *, is_required: bool
    ) -> None:
        if is_required:
            self.expect_named_paths(self.model.foreign(lives), where)

    def expect_named_paths(self, paths: Iterable[str], where: str) -> None:
        for path in paths:
            if not self.is_named(path) and self.can_be_seen(path):
                kind = f"{where}: not named, of a command: {self.trait(path)}"
                raise Fault(kind, path)

    def can_be_seen(self, path: str) -> bool:
        """False for an ignored file whose change nobody can see without reading all
        that git ignores: in an ignored folder or another repository, by a check, or of
        permissions alone.
        """
        if not is_ignored(path):
            return True
        old, new = self.model.stack(path)[-2:]
        is_alone = not is_ignored(f"{Path(path).parent}/file")
        is_in_main = self.trait(path) == "ignored file" and self.variant.repositories
        has_main = self.variant.repositories[:1] == (self.variant.root,)
        is_other = old.entry is None or new.entry is None
        is_other = is_other or old.entry.data != new.entry.data
        is_command = new.who is Who.COMMAND
        return bool(is_alone and is_in_main and has_main and is_other and is_command)

    def statuses(self) -> dict[int, StepStatus]:
        engine = self.open()
        steps = engine.run.plan.steps
        return {
            step.number: engine.run.state.step(step.number).status for step in steps
        }

    def trait(self, path: str) -> str:
        """The kind of place that a path is in."""
        short = path.removeprefix(self.variant.main)
        for folder, name in (
            (SUBMODULE, "submodule"),
            (CLONE, "clone"),
            (IGNORED_CLONE, "ignored clone"),
        ):
            if short.startswith(folder):
                return f"{name}, ignored" if short.endswith(".tmp") else name
        if is_ignored(path):
            return "large ignored file" if self.is_uncoverable(path) else "ignored file"
        return "own file"

    def _read_outside(self) -> Tree:
        if self.variant.root == ".":
            return {}
        prefix = f"{self.variant.root}/"
        tree = read_tree(self.projects.place)
        return {path: e for path, e in tree.items() if not path.startswith(prefix)}


def common_tags(found: Iterable[list[Outcome]]) -> set[str] | None:
    """The tags that all paths of a group have; None where a group has none."""
    groups: dict[str, list[set[str]]] = {}
    for outcomes in found:
        tags = {outcome.tag for outcome in outcomes if outcome.tag}
        if tags:
            group = next(iter(tags)).partition(":")[0]
            groups.setdefault(group, []).append(tags)
    common = [set.intersection(*sets) for sets in groups.values()]
    return set().union(*common) if all(common) else None


def both(one: Candidates, other: Candidates) -> Candidates:
    return {
        path: [*one.get(path, []), *other.get(path, [])]
        for path in one.keys() | other.keys()
    }


def edited(op: Op, now: Entry | None, text: str) -> Entry | None:
    """An entry after a change by a program or the user."""
    line = f"{text} changed".encode()
    if op in (Op.DELETE, Op.DELETE_FOLDER):
        return None
    if op is Op.LINK:
        return Entry(f"to-{text}".encode(), None)
    if op is Op.BINARY:
        return Entry(b"\0" + line, now.mode or 0o644 if now else 0o644)
    if now is None or not now.is_text:
        return Entry(line + b"\n", now.mode or 0o644 if now else 0o644)
    if op is Op.CHMOD:
        modes = (0o755, 0o644, 0o600, 0o640)
        return Entry(now.data, modes[(modes.index(now.mode or 0o644) + 1) % 4])
    if op is Op.FORMAT:
        lines = [each.rstrip(b"\r") + b" ;" for each in now.data.split(b"\n")[:-1]]
        return Entry(b"".join(each + b"\n" for each in lines), now.mode)
    lines = now.data.splitlines(keepends=True)
    if op is Op.WHOLE or not lines:
        return Entry(line + b"\n" + line + b" too\n", now.mode)
    place = min(1, len(lines) - 1) if op is Op.TOP else max(0, len(lines) - 2)
    end = b"\r\n" if lines[place].endswith(b"\r\n") else b"\n"
    lines[place] = line + end
    return Entry(b"".join(lines), now.mode)


def named_in_diff(text: str) -> set[str]:
    """The paths that a diff names."""
    found = set[str]()
    for line in text.splitlines():
        if not line.startswith("diff --git "):
            continue
        rest = line.removeprefix("diff --git ")
        if rest.startswith('"'):
            first = rest[1:].partition('" ')[0]
            found.add(_unquoted(first).removeprefix("a/"))
        else:
            found.add(rest[: len(rest) // 2].removeprefix("a/"))
    return found


def _unquoted(text: str) -> str:
    data = text.encode().decode("unicode_escape").encode("latin-1")
    return os.fsdecode(data)


def _git_sees(one: Entry | None, other: Entry | None) -> bool:
    """True if git tells the two apart: of permissions it knows one bit."""
    if one is None or other is None or None in (one.mode, other.mode):
        return one != other
    assert one.mode is not None
    assert other.mode is not None
    return one.data != other.data or (one.mode ^ other.mode) & 0o100 != 0


def _shown(entry: Entry | None) -> str:
    if entry is None:
        return "absent"
    if entry.mode is None:
        return f"a link to {os.fsdecode(entry.data)}"
    data = entry.data
    shown = repr(data if len(data) < 200 else data[:90] + b" ... " + data[-90:])
    return f"{entry.mode:o} {shown}"


def _killed(action: Action) -> str:
    if not action.kill:
        return ""
    death = "power cut" if action.cuts_power else "killed"
    return f", {death} at point {action.kill}"
