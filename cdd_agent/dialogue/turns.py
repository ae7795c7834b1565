"""A turn of a model: it calls tools until it has no more calls.

Models without native tool calls get the tools as text (`text_tools.py`). Rounds and
time limit the cost; at the limit the model gives its last reply.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from itertools import groupby, takewhile
from typing import Any, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.dialogue import text_tools
from cdd_agent.dialogue.call_events import finished_event, started_event
from cdd_agent.dialogue.calls import (
    SHORTEST_ANSWER,
    AnswerRoom,
    Tools,
    answer_messages,
    find_open_calls,
)
from cdd_agent.dialogue.limits import Limits, Used
from cdd_agent.dialogue.model_round import ModelRound
from cdd_agent.dialogue.token_budget import TokenBudget, largest_request
from cdd_agent.events.notices import Notice, NoticeKind, Tone
from cdd_agent.events.stream import Emit, ignore_event
from cdd_agent.llm.pictures import as_seen_by, names_of
from cdd_agent.llm.port import (
    ContextTooLong,
    Message,
    Model,
    Picture,
    PicturesRefused,
    Request,
    RequestRejected,
    ToolCall,
    ToolDefinition,
)
from cdd_agent.llm.token_estimates import estimate_prompt, estimate_tokens
from cdd_agent.tools.base import Answer, Tool, format_answer

ToolCalls = Literal["auto", "on", "off"]

_NO_MORE = "You cannot use tools any more: {}. Finish now, with what you know."
_TOO_LATE = "The time of this turn is over; this call was not made."
_TOO_MUCH = (
    "The answers of this round have reached their limit together; this call was not"
    " made. Repeat it alone."
)
_NEVER_DONE = "The model called tools again although {}."
_FULL = "the window of the model is full"
_IF_NO_TOOLS = (
    "If the server does not support tools, set `tool_calls: off` in .cdd/config.yaml."
)
_NOTHING_USED = Used()


class Added(Struct, frozen=True):
    """The messages of a completed round: the model's message and the answers to its
    calls. An interrupted round adds nothing.
    """

    messages: tuple[Message, ...]
    used: Used = _NOTHING_USED
    """The part of the limits that the turn has used so far."""
    is_reply: bool = False
    """True for the complete last reply of the turn."""


Keep = Callable[[Added], None]


class Turn(Struct, frozen=True):
    text: str
    """Without the hidden blocks."""
    blocks: tuple[str, ...] = ()
    problem: str = ""
    """Why the reply is incomplete, as a sentence."""


async def _ignore_answer(call: ToolCall, answer: str) -> None:
    del call, answer


class Dialogue(Struct, frozen=True):
    """A model and its tools. The caller stores the conversation."""

    model: Model
    tools: Sequence[Tool[Any]] = ()
    tool_calls: ToolCalls = "auto"
    limits: Limits = field(default_factory=Limits)
    clock: Callable[[], float] = time.monotonic
    on_answer: Callable[[ToolCall, str], Awaitable[None]] = _ignore_answer
    """Receives each answer as the model sees it, before the next call. Errors end the
    turn.
    """
    emit: Emit = ignore_event

    @property
    def is_native(self) -> bool:
        if self.tool_calls == "auto":
            return self.model.calls_tools
        return self.tool_calls == "on"

    async def turn(
        self,
        messages: Sequence[Message],
        *,
        keep: Keep = lambda added: None,
        keep_part: Keep = lambda added: None,
        step: int | None = None,
        hidden: str | None = None,
        used: Used = _NOTHING_USED,
        take_guidance: Callable[[], tuple[str, ...]] = tuple,
    ) -> Turn:
        """Let the model take its turn. The first message is the system message.

        `keep` receives what each round has `Added`. `keep_part` receives the model's
        message as soon as it is complete, and the unfinished round after each call that
        acts. Errors from both end the turn. A conversation that ends with an unfinished
        round of native calls continues with its remaining calls.

        `hidden` is the info string of code blocks for the caller. `take_guidance`
        returns what the user wrote since the last call; the model receives it with the
        answers. `used` is what an interrupted turn has already used.

        Raises `ContextTooLong` before a request that exceeds the window, other
        `ModelError`s, and `BudgetExhausted`. Earlier `Added` messages stay valid.
        """
        await self._check_request(messages)
        running = _RunningTurn(
            dialogue=self,
            messages=tuple(messages),
            used=used,
            step=step,
            hidden=hidden,
            keep=keep,
            keep_part=keep_part,
            take_guidance=take_guidance,
            began=self.clock() - used.seconds,
            tools=Tools(self.tools),
            no_tools_because=self.limits.describe_exhausted(used),
        )
        return await running.run()

    async def _check_request(self, messages: Sequence[Message]) -> None:
        unanswered = takewhile(lambda each: each.role == "user", reversed(messages))
        pictures: list[Picture] = []
        for message in unanswered:
            pictures[:0] = message.pictures
        notice = None
        if pictures:
            # This may ask a local server.
            notice = await asyncio.to_thread(_picture_notice, self.model, pictures)
        self.refuse_too_long(messages)
        if notice is not None:
            self.emit(notice)

    def refuse_too_long(self, messages: Sequence[Message]) -> None:
        """Raise `ContextTooLong` if a conversation exceeds the window."""
        window = self.model.window
        if window is None:
            return
        size = self.size(messages)
        if size <= window:
            return
        raise ContextTooLong(
            f"The request was not sent. It has about {size:,} tokens, and the"
            f" window of {self.model.name} has {window:,}",
            hint="Shorten your message, mention fewer files, or use a model with"
            " a larger window. If the window is larger than that, set"
            " `context_window` in .cdd/config.yaml.",
        )

    def remaining_tokens(self, messages: Sequence[Message]) -> int | None:
        """Return the tokens that may be added to a conversation. Below 0, there is too
        little room for a reply. None: the window is unknown.
        """
        window = self.model.window
        return None if window is None else largest_request(window) - self.size(messages)

    def size(self, messages: Sequence[Message]) -> int:
        return estimate_prompt(self.request(messages))

    def request(self, messages: Sequence[Message]) -> Request:
        offered = definitions(self.tools)
        if self.tools and not self.is_native:
            offered = ()
            instructions = text_tools.instructions(self.tools)
            messages = extend_system(text_tools.in_words(messages), instructions)
        request = Request(tuple(_join_user_messages(messages)), offered)
        return as_seen_by(self.model, request)

    def with_tools_that_fit(self, budget: TokenBudget, reserved: int) -> "Dialogue":
        """Return the dialogue with as many tools as fit, in their order. `reserved` is
        the number of tokens for their answers.
        """
        fitting: list[Tool[Any]] = []
        for tool in self.tools:
            size = self._size_of_tool(tool, is_first=not fitting)
            if not budget.take(size, reserved=reserved):
                break
            fitting.append(tool)
        omitted = [f"the tool {tool.name}" for tool in self.tools[len(fitting) :]]
        if omitted and not fitting:
            omitted = ["the tools"]
        for name in omitted:
            budget.omit(name)
        return replace(self, tools=tuple(fitting))

    def _size_of_tool(self, tool: Tool[Any], *, is_first: bool) -> int:
        if self.is_native:
            return estimate_prompt(Request((), definitions((tool,))))
        text = tool.get_ai_prompt_instructions()
        if is_first:
            text = text_tools.instructions((tool,))
        return estimate_tokens(text) + 1


class _RunningTurn(Struct):
    dialogue: Dialogue
    messages: tuple[Message, ...]
    used: Used
    step: int | None
    hidden: str | None
    keep: Keep
    keep_part: Keep
    take_guidance: Callable[[], tuple[str, ...]]
    began: float
    tools: Tools
    no_tools_because: str
    """Why the next round is the last one, as a clause; empty if it is not."""
    has_added: bool = False
    """True after the first round: the server accepts requests with tools."""

    async def run(self) -> Turn:
        open_calls = find_open_calls(self.messages)
        if self.dialogue.is_native and open_calls:
            await self._answer_round(open_calls)
        while True:
            reply = await self._ask()
            if self.no_tools_because or not reply.calls:
                return self._finish(reply)
            if self.dialogue.is_native:
                self.keep_part(Added((reply.message,), self.used))
            reply.finish()
            await self._answer_round(reply.calls, reply.message)

    async def _ask(self) -> ModelRound:
        """Ask the model. If the server seems to reject tools, ask again with the tools
        as text.
        """
        dialogue = self.dialogue
        hidden_blocks = {self.hidden} if self.hidden else set()
        if dialogue.tools and not dialogue.is_native:
            hidden_blocks.add(text_tools.FENCE)
        reply = ModelRound(
            dialogue.emit,
            dialogue.clock,
            self.step,
            is_native=dialogue.is_native,
            hidden_blocks=hidden_blocks,
        )
        try:
            await reply.run(dialogue.model, dialogue.request(self.messages))
            return reply
        except RequestRejected as error:
            has_native_tools = dialogue.is_native and dialogue.tools
            if not has_native_tools or isinstance(error, PicturesRefused):
                raise

            is_too_long = isinstance(error, ContextTooLong)
            if self.has_added or is_too_long or dialogue.tool_calls == "on":
                if _IF_NO_TOOLS not in error.hint:
                    error.hint = f"{error.hint} {_IF_NO_TOOLS}".strip()
                raise
        # Some servers reject native tools although the model supports them.
        self.dialogue = replace(dialogue, tool_calls="off")
        return await self._ask()

    def _finish(self, reply: ModelRound) -> Turn:
        problem = reply.problem
        if reply.calls and not problem:
            problem = _NEVER_DONE.format(self.no_tools_because)
        last = Added((reply.last_message,), self.used, is_reply=not problem)
        if last.is_reply:
            self.keep_part(last)
        reply.finish()
        self.keep(last)
        blocks = reply.blocks_of(self.hidden) if self.hidden else ()
        return Turn(reply.shown_text, blocks, problem)

    async def _answer_round(
        self, calls: Sequence[ToolCall], message: Message | None = None
    ) -> None:
        """Make the calls of a round, and add the round to the conversation. `message`
        is the model's message; None if the conversation already contains it.
        """
        dialogue = self.dialogue
        begun = () if message is None else (message,)
        answers = await self._make_calls(calls, begun)
        self.used = Used(self.used.rounds + 1, dialogue.clock() - self.began)
        self.no_tools_because = dialogue.limits.describe_exhausted(self.used)
        guidance = [Message("user", text) for text in self.take_guidance()]
        note = ""
        if self.no_tools_because:
            note = _NO_MORE.format(self.no_tools_because)
        answered = answer_messages(answers, is_native=dialogue.is_native, note=note)
        self._add((*begun, *answered, *guidance))
        if not self.no_tools_because and self._is_window_full():
            self.no_tools_because = _FULL
            self._add((Message("user", _NO_MORE.format(_FULL)),))
        dialogue.refuse_too_long(self.messages)

    async def _make_calls(
        self, calls: Sequence[ToolCall], begun: tuple[Message, ...]
    ) -> list[tuple[ToolCall, str]]:
        dialogue = self.dialogue
        answers: list[tuple[ToolCall, str]] = []
        messages = self.messages + begun
        room = AnswerRoom.after(messages, dialogue.remaining_tokens(messages))
        for call in calls:
            tool = self.tools.get(call)
            started = started_event(call, tool, self.step)
            started_at = dialogue.clock()
            dialogue.emit(started)
            if answers and started_at - self.began > dialogue.limits.seconds:
                answer: Answer = {"error": _TOO_LATE}
            elif room.characters <= 0:
                answer = {"error": _TOO_MUCH}
            else:
                answer = await self.tools.answer(call)
            unsent = tool.unsent if tool else ()
            text = room.add(format_answer(answer, unsent))
            answers.append((call, text))
            seconds = dialogue.clock() - started_at
            dialogue.emit(finished_event(started, answer, seconds))
            await dialogue.on_answer(call, text)
            if dialogue.is_native and tool is not None and tool.acts:
                part = (*begun, *answer_messages(answers, is_native=True))
                seconds = dialogue.clock() - self.began
                self.keep_part(Added(part, Used(self.used.rounds, seconds)))
        return answers

    def _add(self, messages: tuple[Message, ...]) -> None:
        self.messages += messages
        self.has_added = True
        self.keep(Added(messages, self.used))

    def _is_window_full(self) -> bool:
        window = self.dialogue.model.window
        remaining = self.dialogue.remaining_tokens(self.messages)
        if window is None or remaining is None:
            return False
        return remaining < min(SHORTEST_ANSWER // 3, window // 16)


def definitions(tools: Sequence[Tool[Any]]) -> tuple[ToolDefinition, ...]:
    return tuple(
        ToolDefinition(tool.name, tool.description, tool.parameters_schema)
        for tool in tools
    )


def extend_system(messages: Iterable[Message], paragraph: str) -> tuple[Message, ...]:
    system, *rest = messages
    content = f"{system.content}\n\n{paragraph}"
    return (replace(system, content=content), *rest)


def _join_user_messages(messages: Sequence[Message]) -> Iterator[Message]:
    for role, group in groupby(messages, key=lambda message: message.role):
        if role != "user":
            yield from group
            continue
        texts: list[str] = []
        pictures: list[Picture] = []
        for message in group:
            texts.append(message.content)
            pictures += message.pictures
        yield Message("user", "\n\n".join(texts), pictures=tuple(pictures))


def _picture_notice(model: Model, pictures: Sequence[Picture]) -> Notice:
    if model.sees is False:
        return Notice(
            f"{model.name} cannot see pictures, so the text is sent without"
            f" {names_of(tuple(pictures))}. If it can, set `pictures: true`.",
            Tone.WARNING,
            kind=NoticeKind.NOT_SENT,
        )
    sizes = [f"{one.name} ({one.width:,} × {one.height:,})" for one in pictures]
    return Notice(
        f"Sent as a picture: {', '.join(sizes)}.", Tone.QUIET, kind=NoticeKind.SENT
    )
