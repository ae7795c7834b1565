"""A step that is run: what the model answers, and what commands, checks and the user
change meanwhile.
"""

import asyncio
import json
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from cdd_agent.events.step_events import AttemptFailed
from cdd_agent.llm.port import ModelError, RateLimited, Request, ToolCall
from cdd_agent.llm.scripted_reply import ScriptedReply
from cdd_agent.tools.base import parse_answer
from tests.engine.histories_actions import (
    Attempt,
    End,
    History,
    Moment,
    Op,
    Touch,
)
from tests.engine.histories_edits import (
    Delete,
    Give,
    ModelEdit,
    Replace,
    edited,
    git_sees,
    reply_text,
)
from tests.engine.histories_model import (
    Outcome,
    Owned,
    Stack,
    Version,
    Who,
)
from tests.engine.histories_outside import (
    Killed,
    PlayedModel,
    PlayedPrograms,
)
from tests.engine.histories_project import (
    LARGEST,
    Projects,
    is_ignored,
)
from tests.engine.histories_scene import Candidates, Fault, Scene
from tests.engine.histories_tree import (
    Conflict,
    Entry,
    merge,
    read_entry,
    read_tree,
    write_entry,
)


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


class StepScene(Scene):
    """The model and the programs, called by the engine."""

    def __init__(self, projects: Projects, history: History) -> None:
        super().__init__(projects, history)
        self.sandbox.real_model = PlayedModel(self.answer)
        self.sandbox.run_program = PlayedPrograms(self.run_program)
        self.running: Running | None = None
        self.task: asyncio.Future[None] | None = None
        """The work of the engine."""
        self.saved_replies: dict[int, list[ModelEdit]] = {}
        """By the life of a step."""
        self.interrupted: dict[int, Interrupted] = {}
        self.staged = set[str]()
        """Files that git's index may have as the user left them."""
        self.texts = 0
        self.attempts = 0

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
            if not parse_answer(answer).get("success"):
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
        return ScriptedReply(reply_text(edits) if edits else "I have done it.")

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
            if owned is Owned.NO:
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

    def change(self, touch: Touch, who: Who) -> list[str]:
        """A change of the user's. Returns the paths."""
        with self.killer.paused():
            changed = self.write(touch, str(who))
        for path in changed:
            self.born[path] = len(self.events)
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
            is_one = owned == [*range(owned[0], len(stack))]
            is_sure = all(gone(stack[place]) is Owned.YES for place in owned)
            if is_one and is_sure and git_sees(first, last):
                required.add(path)
        return required, allowed

    def meet(self) -> Running:
        """Raises `Killed` if the process is over."""
        if self.killer.has_killed:
            raise Killed
        assert self.running is not None
        self.running.has_met_engine = True
        return self.running

    async def stop(self, when: str) -> None:
        self.say(f"  stopped {when}")
        assert self.task is not None
        self.task.cancel()
        await asyncio.sleep(3600)

    def loosen(self, path: str, version: Version) -> None:
        """Nothing tells to whom a change belongs that was made just before a kill."""
        if version.owned is Owned.YES:
            loose = replace(version, owned=Owned.MAYBE)
            self.model.stacks[path] = tuple(
                loose if each is version else each for each in self.model.stack(path)
            )

    def note_left(self, life: int) -> None:
        """Remember how the files of an interrupted attempt were restored."""
        if life in self.interrupted:
            interrupted = self.interrupted[life]
            interrupted.left = {p: self.model.entry(p) for p in interrupted.files}
