"""The model's tools in a step: read-only ones, and ones that change files in a
transaction.

After an interruption, answered calls of the saved dialogue repeat their changes without
the model. An incomplete round continues at its first unanswered call.
"""

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.actions.model import (
    Action,
    ActionResult,
    ActionStatus,
    CreateFileAction,
    EditAction,
)
from cdd_agent.changes.file_diff import FileDiff
from cdd_agent.changes.model import Edit, ReplyFault, ReplyRefused, convert_action
from cdd_agent.context.finder import CodeFinder
from cdd_agent.dialogue.call_events import shown_call
from cdd_agent.engine.ledger import States
from cdd_agent.engine.ledger_entries import commands_to_redo, last_started_call
from cdd_agent.engine.transaction import StepTransaction
from cdd_agent.errors import CddError
from cdd_agent.events.dialogue_events import ToolFinished
from cdd_agent.events.stream import Event
from cdd_agent.files.charsets import Charsets
from cdd_agent.files.read import read_source
from cdd_agent.git.ignored_files import IgnoredStates, changed, read_ignored
from cdd_agent.llm.port import Message, ToolCall
from cdd_agent.pattern import Pattern
from cdd_agent.process.policy import CommandRunner
from cdd_agent.process.run import CommandResult
from cdd_agent.tickets.plan import PlanStep
from cdd_agent.tools.acting import CreateFileTool, EditFileTool, ExecuteCommandTool
from cdd_agent.tools.base import Answer, Tool, parse_answer
from cdd_agent.tools.read_only import (
    READ_ONLY_TOOLS,
    GitDiffTool,
    GitLogTool,
    GitStatusTool,
    GlobFilesTool,
    GrepFilesTool,
    ListFilesTool,
    ReadArguments,
    ReadFileTool,
    read_only_tools,
)
from cdd_agent.values.typed_values import WrongValue, read_json

_LONGEST_REFUSAL = 300
"""Characters to repeat of a refused call and its reason."""
_INTERRUPTED = (
    "This command was interrupted after its start, because the run was stopped. It may"
    " have done a part of its work, and what it made of this step's files is undone."
    " Run it again if you need it."
)
_HISTORY = Pattern(
    r"\b(?:git|commit|branch|histor|revert|regress)|[^\W\d_a-z]", re.IGNORECASE
)
"""A step with one of these words may need the project's history. So may one with
non-English letters, whose words are unknown here.
"""
_GREP_LINE = Pattern(r"(?P<path>[^:]+):(?P<line>\d{1,7}):(?P<text>.*)")
"""A line of `grep_files` output."""


class StepTools(Struct):
    transaction: StepTransaction
    commands: CommandRunner
    code: CodeFinder | None = None
    stopped: CddError | None = None
    """The error that ends the step, whatever the model does next: a refusal by the user
    or the disk.
    """
    _calls: int = 0
    """Number of finished calls."""
    _cut_call: int | None = None
    """Number of the call whose command was interrupted."""
    _written: tuple[FileDiff, ...] = ()
    """Changes of the current call."""

    def offered(self, steps: Sequence[PlanStep]) -> tuple[Tool[Any], ...]:
        """Return the tools that one of the plan's `steps` can use, because each costs
        tokens in every round. All steps have the same, because providers cache a
        request's beginning.
        """
        self.transaction.call_by_call = True
        root = self.transaction.root
        # the prompt has the tree, and `read_file` lists the rest
        unneeded = {ListFilesTool.name, GlobFilesTool.name}
        if not self._need_history(steps):
            unneeded |= {GitStatusTool.name, GitLogTool.name, GitDiffTool.name}
        code = None if all(map(_names_all_files, steps)) else self.code
        looking = [
            tool for tool in read_only_tools(root, code) if tool.name not in unneeded
        ]
        commands = ExecuteCommandTool(
            self, self.commands.settings, self.commands.allowed, self.commands.root
        )
        return (*looking, CreateFileTool(self), EditFileTool(self), commands)

    def _need_history(self, steps: Sequence[PlanStep]) -> bool:
        texts = [self.transaction.attempt.guidance]
        for step in steps:
            texts += [step.title, step.description]
        return _HISTORY.search("\n".join(texts)) is not None

    def next_call(self) -> None:
        self._calls += 1

    def emit(self, event: Event) -> None:
        """A call's end carries its changes."""
        if isinstance(event, ToolFinished):
            event, self._written = replace(event, files=self._written), ()
        self.transaction.emit(event)

    async def reapply(self, messages: Sequence[Message]) -> None:
        """Repeat a saved dialogue's changes: those of calls, and those of commands in
        the step's files. Other effects of commands were not restored.

        Raises `ReplyRefused` if files have changed since, and as
        `StepTransaction.change`.
        """
        transaction = self.transaction
        transaction.call_by_call = bool(messages)
        attempt = transaction.attempt
        commands = commands_to_redo(attempt)
        for call, text in _pair_answers(messages):
            answer, number = parse_answer(text), self._calls
            self.next_call()
            if number in commands:
                await transaction.redo_command(commands[number])
            edit = _edit_of(call) if "success" in answer else None
            if edit is not None:
                await transaction.change([edit], call=number, again=True)
            else:
                await asyncio.to_thread(self._remember, call, answer)
        # unanswered calls are repeated under their numbers
        all_calls = sum(len(message.tool_calls) for message in messages)
        attempt.answers.set_calls_aside(all_calls)
        self._cut_call = last_started_call(attempt)
        transaction.ledger.drop_calls(attempt, self._calls)

    def discard_dialogue(self) -> None:
        """Restore the dialogue's files, and forget the dialogue."""
        self.transaction.discard_work()
        self.transaction.attempt.drop_dialogue()
        self.transaction.ledger.drop_dialogue(self.transaction.attempt)
        self.transaction.attempt.answers.set_calls_aside(0)
        self._calls = 0
        self._cut_call = None

    async def run(self, action: Action) -> ActionResult:
        """Carry out a tool's action that changes a file."""
        edit = convert_action(action)
        assert edit is not None, "commands have a runner of their own"
        try:
            changes, remark = await self.transaction.change([edit], call=self._calls)
        except ReplyRefused as refusal:
            why = "\n".join(filter(None, (refusal.message, refusal.hint)))
            content = ""
            if refusal.unseen:
                content = await self._read_file(edit.path)
            return ActionResult(action, ActionStatus.FAILURE, content, why)
        except CddError as error:
            self.stopped = error
            raise
        self._written = await asyncio.to_thread(
            changes.files, Charsets(self.transaction.root)
        )
        remarks = [f"{note}." for note in changes.notes]
        if remark:
            remarks.append(remark)
        return ActionResult(action, ActionStatus.SUCCESS, "\n".join(remarks))

    async def _read_file(self, path: str) -> str:
        """Return a file as the tool shows it, or why it is unreadable."""
        try:
            source = await asyncio.to_thread(read_source, self.transaction.root, path)
        except CddError as error:
            return error.message
        return source.as_text() if source.cut else source.text

    async def execute(
        self, command: str, cwd: str | None = None, env: Mapping[str, str] | None = None
    ) -> CommandResult:
        """Run a command by the project's settings, and enter its changes. An
        interrupted command is not repeated: the model decides.
        """
        if self._cut_call == self._calls:
            return CommandResult(
                "", _INTERRUPTED, return_code=126, started=False, refused=True
            )
        try:
            await self.transaction.begin()
        except CddError as error:
            self.stopped = error
            raise
        states: States | None = None
        ignored = await read_ignored(self.transaction.root)

        def start() -> None:
            nonlocal states
            states = self.transaction.start_command(command, self._calls)

        try:
            result = await self.commands.run(command, cwd=cwd, env=env, starts=start)
        except BaseException:
            # the reason of the stop has priority over errors here
            with suppress(CddError):
                await self._take_over(states, command, ignored)
            raise
        await self._take_over(states, command, ignored)
        return result

    async def receive_answer(self, call: ToolCall, answer: str) -> None:
        """Handle a call's answer as the model receives it. The model may replace a file
        that it has read completely.

        Raises `CddError` if the step cannot continue.
        """
        parsed = parse_answer(answer)
        # the answer may contain a file, which is read to compare
        if "output" in parsed or "content" in parsed:
            await asyncio.to_thread(self._remember, call, parsed)
        else:
            # let a stop take effect before the round is saved
            await asyncio.sleep(0)
        self.next_call()
        if self.stopped is not None:
            raise self.stopped

    def _remember(self, call: ToolCall, answer: Answer) -> None:
        if call.name == ReadFileTool.name and "output" in answer:
            asked = read_json(ReadArguments, call.arguments)
            is_whole = asked == ReadArguments(
                path=asked.path, start_line=1, end_line=None
            )
            self.transaction.remember(
                asked.path, str(answer["output"]), asked.start_line, is_whole=is_whole
            )
        elif call.name == GrepFilesTool.name and "output" in answer:
            for line in str(answer["output"]).splitlines():
                match = _GREP_LINE.fullmatch(line)
                if match is None or match["path"] not in self.transaction.in_part:
                    continue
                self.transaction.remember(
                    match["path"], match["text"], int(match["line"])
                )
        elif "content" in answer:
            edit = _edit_of(call)
            if edit is not None:
                content = str(answer["content"])
                self.transaction.remember(edit.path, content, is_whole=True)

    async def _take_over(
        self, states: States | None, command: str, ignored: IgnoredStates
    ) -> None:
        """Enter a command's changes. `states` are the step's files before, None if it
        did not start; `ignored` are ignored files before.
        """
        if states is None:
            return
        ignored_after = await read_ignored(self.transaction.root)
        try:
            await self.transaction.take_over_from_command(
                states, command, self._calls, changed(ignored, ignored_after)
            )
        except CddError as error:
            self.stopped = error
            raise


def _names_all_files(step: PlanStep) -> bool:
    """True if the step need not search: it names single files."""
    files = step.files_affected
    return bool(files) and not any(file.is_pattern or file.is_folder for file in files)


def refused_calls(messages: Sequence[Message]) -> tuple[str, ...]:
    """Return calls that should have changed something but did not, with answers."""
    texts: dict[str, None] = {}
    for call, answer in _pair_answers(messages):
        if call.name not in READ_ONLY_TOOLS and _is_refusal(answer):
            text = f"{shown_call(call)}: {parse_answer(answer).get('error', answer)}"
            texts[" ".join(text.split())[:_LONGEST_REFUSAL]] = None
    return tuple(texts)


def has_acted(messages: Sequence[Message]) -> bool:
    """True if a call did something, such as running a command."""
    return any(
        call.name not in READ_ONLY_TOOLS and not _is_refusal(answer)
        for call, answer in _pair_answers(messages)
    )


def _is_refusal(answer: str) -> bool:
    return "error" in parse_answer(answer) or answer.startswith('{"error"')


def _edit_of(call: ToolCall) -> Edit | None:
    """Return a saved call's edit; None for other calls. Raises `ReplyRefused` for a
    damaged call.
    """
    kinds: dict[str, type[Action]] = {
        CreateFileTool.name: CreateFileAction,
        EditFileTool.name: EditAction,
    }
    kind = kinds.get(call.name)
    if kind is None:
        return None
    try:
        return convert_action(read_json(kind, call.arguments))
    except WrongValue as error:
        raise ReplyRefused(
            f"The saved call of {call.name} is damaged.",
            fault=ReplyFault.RECORD_DAMAGED,
        ) from error


def _pair_answers(messages: Sequence[Message]) -> Iterator[tuple[ToolCall, str]]:
    """Pair calls with answers by order: some models repeat ids."""
    for place, message in enumerate(messages):
        for call, answer in zip(
            message.tool_calls, messages[place + 1 :], strict=False
        ):
            yield call, answer.content
