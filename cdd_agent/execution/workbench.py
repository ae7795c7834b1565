"""A step's files while it is carried out: each change is judged, asked about, journalled and written, in this order.

A reply in words makes its changes at once, at its end. A model with tools makes them call by call, and runs commands in
between: what a command makes of a file that the step has written is the step's doing, too. Either way it is one
transaction: the journal (`record.py`) knows what all of it replaced.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence, Set
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import ValidationError

from cdd_agent.actions.acting_tools import CreateFileTool, EditFileTool, ExecuteCommandTool
from cdd_agent.actions.changes import ChangeSet, FileChange, changed_meanwhile
from cdd_agent.actions.edits import Edit, ReplyRefused, edit_of
from cdd_agent.actions.judging import Terms, change_set
from cdd_agent.actions.model import Action, ActionResult, ActionStatus, CreateFileAction, EditAction
from cdd_agent.actions.places import Protected
from cdd_agent.actions.read_only_tools import ReadArguments, ReadFileTool, read_only_tools
from cdd_agent.actions.tools import Answer, Tool
from cdd_agent.errors import CddError, NotApproved
from cdd_agent.events import ChangesProposed, CheckpointStarted, Choice, Event, Notice, Tone
from cdd_agent.execution.asked import Asked
from cdd_agent.execution.frontend import ChangesApproved, Frontend
from cdd_agent.execution.history import History
from cdd_agent.execution.record import Attempt, Made, Shown, is_file_or_free, made_at
from cdd_agent.llm.port import Message, ToolCall
from cdd_agent.tickets.plan import PlanStep
from cdd_agent.workspace.commands import CommandRunner
from cdd_agent.workspace.files import digest, put_file, read_bytes, remove
from cdd_agent.workspace.paths import PathRefused, confine
from cdd_agent.workspace.process import CommandResult, OutputChunk
from cdd_agent.workspace.reading import read_source


@dataclass
class Workbench:
    """The files of one attempt."""

    root: Path
    step: PlanStep
    attempt: Attempt
    history: History
    frontend: Frontend
    commands: CommandRunner
    protected: Protected
    stopped: CddError | None = None
    """Why the step cannot go on, whatever the model would do next: a person said no, or the disk did."""
    told: list[Event] = field(default_factory=list)
    """What people should hear of what it does."""
    _seen: dict[str, str | None] = field(default_factory=dict)
    """What the model knows of files, as `Terms` have it."""
    _made: dict[PurePosixPath, FileChange] = field(default_factory=dict)
    """What became of each file since the attempt began."""
    _with_tools: bool = False
    """Calls change the files one after the other: what they will write is not known when the checkpoint is taken."""
    _call: int = 0
    """How many calls of tools are over."""
    is_begun: bool = False
    """Its checkpoint is taken."""

    def __post_init__(self) -> None:
        if (shown := self.attempt.shown) is not None:
            self.show(shown)

    @property
    def changes(self) -> ChangeSet:
        """What the attempt made of the project's files so far."""
        return ChangeSet(tuple(made for made in self._made.values() if made.before != made.after))

    def news(self) -> list[Event]:
        """What people should hear; told once."""
        news, self.told = self.told, []
        return news

    def tools(self) -> tuple[Tool[Any], ...]:
        """For a model that calls them: to look around freely, and to change files and run commands by the rules."""
        self._with_tools = True
        acting = (CreateFileTool(self), EditFileTool(self), ExecuteCommandTool(_Commands(self)))
        return (*read_only_tools(self.root), *acting)

    async def change(self, edits: Sequence[Edit], *, is_approved: bool = False) -> AsyncGenerator[Event, None]:
        """Do all of these edits, or none. A notice says what did not have to be done. Who is asked sees what would be
        different.

        Raises `ReplyRefused` with reasons for the model, `NotApproved`, `GitUnusable` when no checkpoint can be taken,
        or `BadInput` when the disk refuses.
        """
        changes = await asyncio.to_thread(change_set, self.root, edits, self._terms(), self.protected)
        for note in changes.notes:
            yield Notice(f"{note}.")
        if not changes.changes:
            return
        for change in changes.changes:
            made = self._made.get(change.path)
            if made is not None and made.after != change.before:
                raise changed_meanwhile(change.path)
        if not is_approved:
            proposed = ChangesProposed(self.step.number, changes.created, changes.modified, changes.deleted)
            yield proposed
            is_looked_at = not isinstance(self.frontend, ChangesApproved)
            asked = replace(proposed, diff=await asyncio.to_thread(changes.diff)) if is_looked_at else proposed
            with self.commands.clock.standing_still():
                choice = await self.frontend.approve(asked)
            if choice is not Choice.YES:
                raise NotApproved(f"The changes of step {self.step.number} were not approved; nothing was written")
        async for event in self.begin(changes.touched):
            yield event
        with self.attempt.journalled(changes):
            changes.apply(self.root)  # the answer may have taken hours: each file is looked at once more
        for change in changes.changes:
            self._take_over(change)

    async def begin(self, touched: Sequence[str] = ()) -> AsyncGenerator[Event, None]:
        """See that there is a checkpoint from before the attempt, in which all is that will be written."""
        if not self.is_begun:
            yield CheckpointStarted(self.step.number)
            await self.history.before(self.attempt, self._declared() if self._with_tools else tuple(touched))
            self.is_begun = True
            if unseen := self.history.unseen():
                text = f"In no checkpoint, because it could not be read: {', '.join(unseen)}"
                yield Notice(text, Tone.WARNING)
        if missed := await self.history.also(self.attempt, touched):
            raise ReplyRefused(
                f"{', '.join(missed)} is ignored by git: there would be no way back from a change of it.",
                hint="Leave it alone; only where the plan names it for this step can it be changed.",
            )

    async def do_again(self, messages: Sequence[Message]) -> None:
        """Write what the calls of a dialogue wrote before it was put back, and what commands made of that. What else
        commands did was not put back.

        Raises `ReplyRefused` where the files are no longer what they were then, and what `change` raises.
        """
        self._with_tools = bool(messages)
        for call, answer in _answered(messages):
            self.next_call()
            if made := self.attempt.made_by_command(self._call - 1):
                self._write_as_command(made)
            if "success" in answer and (edit := _edit_of(call)) is not None:
                async for _ in self.change([edit], is_approved=True):
                    pass  # it was told when it was done first
            self._learn(call, answer)
        self.attempt.forget_commands(self._call)

    def start_anew(self) -> None:
        """A dialogue cannot go on: what it wrote is put back, and nothing counts of what was said."""
        self.attempt.put_back()
        self.attempt.drop_dialogue()
        self.attempt.forget_commands(0)
        self._made.clear()
        self._seen.clear()
        self._call = 0
        self._with_tools = self.is_begun = False

    def next_call(self) -> None:
        """A tool's call is over."""
        self._call += 1

    def show(self, shown: Shown) -> None:
        """The model is shown this."""
        self._seen |= shown.files

    async def run(self, action: Action) -> AsyncGenerator[OutputChunk | ActionResult, None]:
        """Do an action that changes a file: for the tools."""
        edit = edit_of(action)
        assert edit is not None, "commands have a runner of their own"
        notes: list[str] = []
        try:
            async for event in self.change([edit]):
                self.told.append(event)
                notes += [event.text] if isinstance(event, Notice) else []
        except ReplyRefused as refusal:
            why = "\n".join(filter(None, (refusal.message, refusal.hint)))
            content = await asyncio.to_thread(self._present, edit.path) if refusal.unseen else ""
            yield ActionResult(action, ActionStatus.FAILURE, content, why)
            return
        except CddError as error:
            self.stopped = error
            raise
        yield ActionResult(action, ActionStatus.SUCCESS, "\n".join(notes))

    async def run_command(
        self, command: str, cwd: str | None, env: Mapping[str, str] | None
    ) -> AsyncGenerator[OutputChunk | CommandResult, None]:
        """Run a command by the project's settings, and take over what it makes of the step's files."""
        try:
            async for event in self.begin():
                self.told.append(event)
        except CddError as error:
            self.stopped = error
            raise
        others: Set[PurePosixPath] | None = None

        def starts() -> None:
            nonlocal others
            others = self.attempt.changed_since()

        try:
            async with aclosing(self.commands.run(command, cwd=cwd, env=env, starts=starts)) as items:
                async for item in items:
                    yield item
        except BaseException:  # it was stopped, and is ended by now; that it was counts more than what fails here
            with suppress(CddError):
                await self._take_over_from_command(others)
            raise
        await self._take_over_from_command(others)

    def heard(self, call: ToolCall, answer: str) -> None:
        """The model gets this answer to its call."""
        self._learn(call, _as_answer(answer))

    def _learn(self, call: ToolCall, answer: Answer) -> None:
        """What the model has read whole it may replace."""
        if call.name == ReadFileTool.name and "output" in answer:
            arguments = ReadArguments.model_validate_json(call.arguments)
            if arguments == _whole(arguments.path):
                self._remember(arguments.path, str(answer["output"]))
        elif "content" in answer and (edit := _edit_of(call)) is not None:
            self._remember(edit.path, str(answer["content"]))

    def _remember(self, named: str, text: str) -> None:
        path = _plain(self.root, named)
        content = read_bytes(self.root / path) if path is not None and (self.root / path).is_file() else None
        if path is not None and content is not None and content.decode("utf-8-sig", errors="replace") == text:
            self._seen[path] = digest(content)

    def _declared(self) -> tuple[str, ...]:
        """The files that the plan names for the step: they can be changed also where git ignores them."""
        paths = (_plain(self.root, file.path) for file in self.step.files_affected)
        return tuple(path for path in paths if path is not None)

    def _terms(self) -> Terms:
        """What the model knows, and what the step and its guidance ask for."""
        asked = Asked.by(self.step, self.attempt.guidance)
        return Terms(self._seen, frozenset(asked.notes), asked.to_shorten)

    def _take_over(self, change: FileChange) -> None:
        first, path = self._made.get(change.path), str(change.path)
        self._made[change.path] = replace(change, before=first.before if first else change.before)
        shown = self.attempt.shown
        if first is None and shown is not None and path not in shown.files:  # what has to be there to go on some day
            known = {**shown.files, path: None if change.before is None else digest(change.before)}
            self.attempt.save_shown(shown.model_copy(update={"files": known}))
        self._seen[path] = None if change.after is None else digest(change.after)

    async def _take_over_from_command(self, others: Set[PurePosixPath] | None) -> None:
        """What became of the step's files, but for those that `others` had changed before; None: it did not start. The
        model has not seen what: its knowledge of these files is out of date."""
        if others is None:
            return
        try:
            left = ((path, self.root / path) for path in sorted(self.attempt.changed_since() - others))
            made = {path: made_at(place) for path, place in left if is_file_or_free(place)}
            if made:
                self.attempt.journal_command(self._call, made)
            self._note_made(made)
            await self.history.saw(self.attempt)
        except CddError as error:
            self.stopped = error
            raise

    def _write_as_command(self, made: Mapping[PurePosixPath, Made | None]) -> None:
        """What a command made of the files as they are now, once more."""
        for path in made:
            if path not in self._made or path in self.attempt.changed_since():
                raise changed_meanwhile(path)
        self.attempt.journal_made(made)
        for path, file in made.items():
            if file is None:
                remove(self.root / path)
            else:
                put_file(self.root / path, (file.content,), file.permissions)
        self._note_made(made)

    def _note_made(self, made: Mapping[PurePosixPath, Made | None]) -> None:
        for path, file in made.items():
            self._made[path] = replace(self._made[path], after=file.content if file else None)

    def _present(self, path: str) -> str:
        """What is in a file, as the tool that reads it says it."""
        try:
            return read_source(self.root, path).as_text()
        except CddError as error:
            return error.message


@dataclass(frozen=True)
class _Commands:
    """What a tool needs to run commands."""

    bench: Workbench

    def run(
        self, command: str, *, cwd: str | None = None, env: Mapping[str, str] | None = None
    ) -> AsyncGenerator[OutputChunk | CommandResult, None]:
        return self.bench.run_command(command, cwd, env)


def _edit_of(call: ToolCall) -> Edit | None:
    """What a call that was made once did to a file. Raises `ReplyRefused` for one that nobody can have made."""
    kinds: dict[str, type[Action]] = {CreateFileTool.name: CreateFileAction, EditFileTool.name: EditAction}
    kind = kinds.get(call.name)
    try:
        return edit_of(kind.model_validate_json(call.arguments)) if kind else None
    except ValidationError as error:
        raise ReplyRefused(f"The saved call of {call.name} is damaged.") from error


def _answered(messages: Sequence[Message]) -> Iterator[tuple[ToolCall, Answer]]:
    """The calls of a dialogue with their answers, which follow each round in its order: ids are used again by some."""
    for place, message in enumerate(messages):
        for call, answer in zip(message.tool_calls, messages[place + 1 :], strict=False):
            yield call, _as_answer(answer.content)


def _as_answer(text: str) -> Answer:
    """What a tool answered; of one that was cut, which no change of a file is, nothing."""
    try:
        answer = json.loads(text)
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}


def _whole(path: str) -> ReadArguments:
    return ReadArguments(path=path, start_line=1, end_line=None)


def _plain(root: Path, path: str) -> str | None:
    """A path as the project knows it; None for one that leads out of it."""
    try:
        return str(confine(root, path))
    except PathRefused:
        return None
