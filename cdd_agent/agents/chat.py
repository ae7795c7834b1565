import asyncio
import platform
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.agents.attachments import attach_files, room_for_files
from cdd_agent.agents.compaction import (
    Room,
    can_compact,
    compact,
    describe_older_part,
)
from cdd_agent.agents.prompt_files import load_prompt
from cdd_agent.agents.store import Conversation
from cdd_agent.changes.change_set import ChangeSet
from cdd_agent.changes.shown_edits import list_unwritten
from cdd_agent.dialogue.fitted_prompt import PromptPart, fit
from cdd_agent.dialogue.limits import Limits
from cdd_agent.dialogue.redacted_events import RedactedEvents
from cdd_agent.dialogue.token_budget import Omitted
from cdd_agent.dialogue.turns import Added, Dialogue, ToolCalls
from cdd_agent.engine.outside import CHAT
from cdd_agent.engine.outside_work import OutsideWork
from cdd_agent.errors import CddError
from cdd_agent.events.dialogue_events import PromptMade, ToolFinished
from cdd_agent.events.notices import Notice, NoticeKind, Tone
from cdd_agent.events.shell_events import SessionView
from cdd_agent.events.step_events import ChangesApplied
from cdd_agent.events.stream import Emit, Event
from cdd_agent.files.charsets import Charsets
from cdd_agent.files.read import read_source
from cdd_agent.llm.port import (
    ContextTooLong,
    Message,
    Model,
    ModelError,
    PromptShare,
    Request,
)
from cdd_agent.llm.token_estimates import estimate_prompt
from cdd_agent.process.work_clock import WorkClock
from cdd_agent.project.rules import RULES_FOR_AGENTS, project_rules
from cdd_agent.text.redaction import Redactor
from cdd_agent.tools.base import Tool

_LONGEST_TITLE = 60
_COMPACTING = "The conversation is long. Summarizing its older part …"


class ChatTools(Struct, frozen=True):
    """The tools of chat. Tools that change files append to `written`; the agent reports
    the changes and removes them.
    """

    tools: Sequence[Tool[Any]]
    written: list[ChangeSet]
    clock: WorkClock
    work: OutsideWork


class ChatAgent:
    """Answers, reads, changes files and runs commands, within the project's settings
    and with the user's approval.
    """

    def __init__(
        self,
        root: Path,
        model: Callable[[], Model],
        tools: Callable[[], ChatTools],
        redactor: Redactor,
        emit: Emit,
        tool_calls: ToolCalls = "auto",
    ) -> None:
        """`model` and `tools` are called for each line. `model` raises `BadInput` if
        none is configured.
        """
        self._root, self._model, self._tools = root, model, tools
        self._redactor = redactor
        self._tool_calls = tool_calls
        self._conversation = Conversation(root, redactor, emit)
        self._emit, self._redacted = emit, RedactedEvents(redactor, emit)
        self._left_out = Omitted()

    async def say(self, line: str) -> None:
        """Send a line to the model, and return after its last reply. Raises `CddError`.

        If the model cannot be asked, the line is not added to the conversation.
        """
        model = self._model()
        sent = await asyncio.to_thread(
            attach_files, self._root, line.strip(), room_for_files(model)
        )
        for notice in sent.notices:
            self._emit(notice)
        message = self._redactor.redacted(
            Message("user", sent.text, pictures=sent.pictures, is_typed=True)
        )
        turn = _ChatTurn(message, (message,), Limits())
        work = self._tools().work
        work.what, work.conversation = CHAT + _shortened(line), self._conversation.name
        try:
            while not turn.is_over:
                await self._rounds(model, turn)
        except CddError:
            turn.new = ()
            raise
        finally:
            self._redacted.forget()
            await self._tools().work.finish()
            self._tell_changes(self._tools(), turn)
            if turn.written:
                # The interrupted round is dropped, but the model must know these
                # changes.
                what = (
                    "(I stopped you. You had written these files:"
                    f" {', '.join(turn.written)}.)"
                )
                turn.new += (Message("user", what),)
            if turn.new:
                self._conversation.add(turn.new)

    def add_context(self, text: str) -> None:
        self._conversation.add((Message("user", text),))

    def begin_conversation(self) -> None:
        self._conversation.begin_conversation()

    def resume(self, key: str = "", *, in_short: bool = False) -> bool:
        return self._conversation.resume(key, in_short=in_short)

    def earlier(self) -> tuple[SessionView, ...]:
        return self._conversation.earlier()

    @property
    def conversations(self) -> frozenset[str]:
        return self._conversation.names

    def describe(self) -> str:
        return describe_older_part(self._conversation.messages)

    async def _rounds(self, model: Model, turn: "_ChatTurn") -> None:
        """Ask the model until its last reply, or until the conversation needs
        compaction.
        """
        tools = self._tools()

        def emit(event: Event) -> None:
            if isinstance(event, ToolFinished):
                event = replace(
                    event,
                    files=tuple(
                        file
                        for changes in tools.written
                        for file in changes.files(Charsets(self._root))
                    ),
                )
            self._redacted.emit(event)
            if isinstance(event, ToolFinished):
                self._tell_changes(tools, turn)

        dialogue = Dialogue(
            model,
            tools.tools,
            self._tool_calls,
            turn.limits,
            tools.clock.now,
            emit=emit,
        )
        prompt = self._prompt(dialogue, turn)
        estimate = estimate_prompt(Request((*self._conversation.messages, *turn.new)))
        shares = (*prompt.shares, PromptShare("the conversation", estimate))
        for notice in self._left_out.new_notices(prompt.left_out):
            emit(notice)
        emit(PromptMade(None, shares, prompt.left_out, model.window))
        if self._needs_room(prompt, turn):
            await self._make_shorter(prompt, turn)

        def keep(added: Added) -> None:
            self._conversation.add((*turn.new, *added.messages))
            turn.new, turn.written = (), ()
            turn.limits = replace(turn.limits, rounds=max(turn.limits.rounds - 1, 1))
            is_in_the_middle = added.messages[-1].role != "assistant"
            if is_in_the_middle and self._needs_room(prompt, turn):
                raise _NeedsRoom

        try:
            ended = await prompt.dialogue.turn(
                (prompt.system, *self._conversation.messages, *turn.new), keep=keep
            )
        except _NeedsRoom:
            return
        except ContextTooLong:
            if not self._can_be_shorter(prompt, turn, must=True):
                raise
            await self._make_shorter(prompt, turn, must=True)
            turn.may_be_shorter = False
            return
        turn.is_over = True
        if ended.problem:
            emit(Notice(ended.problem, Tone.WARNING, kind=NoticeKind.REPLY_UNUSABLE))
        paths = await asyncio.to_thread(list_unwritten, ended.text, self._root)
        if unwritten := [path for path in paths if path not in turn.all_written]:
            text = (
                f"Nothing was written to {', '.join(unwritten)}: the reply only shows"
                " the changes. To write them, ask for that."
            )
            emit(Notice(text, kind=NoticeKind.NOT_DONE))

    def _tell_changes(self, tools: ChatTools, turn: "_ChatTurn") -> None:
        while tools.written:
            changes = tools.written.pop(0)
            turn.written += changes.touched
            turn.all_written.update(changes.touched)
            self._redacted.emit(
                ChangesApplied(
                    None,
                    changes.created,
                    changes.modified,
                    (),
                    changes.deleted,
                    changes.files(Charsets(self._root)),
                    changes.renamed,
                )
            )

    async def _make_shorter(
        self, prompt: "_ChatPrompt", turn: "_ChatTurn", *, must: bool = False
    ) -> None:
        """Compact the conversation. If the model cannot be asked, change nothing, or
        raise the `ModelError` if compaction `must` happen.
        """
        emit = prompt.dialogue.emit
        emit(Notice(_COMPACTING, Tone.QUIET))
        model, messages = prompt.dialogue.model, self._conversation.messages
        try:
            shorter = await compact(
                self._root, model, messages, turn.said, prompt.room, emit, must=must
            )
        except ModelError as error:
            turn.may_be_shorter = False
            if must:
                raise
            text = f"The conversation could not be summarized: {error.message}"
            emit(Notice(text, Tone.WARNING, kind=NoticeKind.NOT_DONE))
            return
        self._conversation.replace(shorter)

    def _can_be_shorter(
        self, prompt: "_ChatPrompt", turn: "_ChatTurn", *, must: bool = False
    ) -> bool:
        return turn.may_be_shorter and can_compact(
            self._conversation.messages, turn.said, prompt.room, must=must
        )

    def _needs_room(self, prompt: "_ChatPrompt", turn: "_ChatTurn") -> bool:
        messages = (prompt.system, *self._conversation.messages, *turn.new)
        is_full = prompt.dialogue.size(messages) > prompt.room.full
        return is_full and self._can_be_shorter(prompt, turn)

    def _prompt(self, dialogue: Dialogue, turn: "_ChatTurn") -> "_ChatPrompt":
        """Build the instructions and choose the tools. A quarter of the window is for
        the conversation.
        """
        parts = (
            PromptPart(load_prompt(self._root, "chat")),
            PromptPart(project_rules(self._root).section, RULES_FOR_AGENTS, rank=1),
            PromptPart(
                f"# Where you are\n\n- Project: {self._root}\n- System:"
                f" {platform.system()} {platform.machine()}"
            ),
            PromptPart(
                "The project's folder"
                f" holds:\n\n{read_source(self._root, '.').as_text()}",
                "the files at the top of the project",
                rank=2,
            ),
        )
        conversation = max(
            (dialogue.model.window or 0) // 4, estimate_prompt(Request((turn.said,)))
        )
        fitted = fit(dialogue, parts, tools=1, reserved=conversation)
        system = self._redactor.redacted(fitted.messages[0])
        room = Room.for_model(dialogue.model, fitted.dialogue.size((system,)))
        return _ChatPrompt(
            fitted.dialogue, system, room, fitted.left_out, fitted.shares
        )


def _shortened(line: str) -> str:
    text = " ".join(line.split())
    return text if len(text) <= _LONGEST_TITLE else f"{text[: _LONGEST_TITLE - 2]} …"


class _NeedsRoom(Exception):
    """A conversation became too long during a turn, and can be compacted."""


class _ChatPrompt(Struct, frozen=True):
    dialogue: Dialogue
    system: Message
    room: Room
    left_out: tuple[str, ...]
    shares: tuple[PromptShare, ...]


class _ChatTurn(Struct):
    said: Message
    new: tuple[Message, ...]
    """Messages that are added to the conversation after the model's answer or a
    stop.
    """
    limits: Limits
    written: tuple[str, ...] = ()
    """Files that were changed in this round."""
    all_written: set[str] = field(default_factory=set)
    """Files that were changed in this turn."""
    may_be_shorter: bool = True
    """False after compaction failed or did not help."""
    is_over: bool = False
