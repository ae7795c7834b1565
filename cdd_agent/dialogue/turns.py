"""A model with tools at hand: it is asked, uses what it wants, is asked again, until it
has nothing more to call.

Native tool calls are used where the model is known to make them, else the same tools in
words (`text_tools.py`). Its cost is bounded by rounds and time; at the bound the model
is asked for its last word.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import groupby, islice, takewhile
from typing import Any, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.dialogue import text_tools
from cdd_agent.dialogue.thinking import Thinking
from cdd_agent.dialogue.token_budget import TokenBudget, most_of
from cdd_agent.events.dialogue_events import (
    ModelReplaced,
    ReplyDelayed,
    ReplyDelta,
    ReplyFinished,
    ReplyRestarted,
    ReplyStarted,
    ToolFinished,
    ToolStarted,
)
from cdd_agent.events.notices import Notice, NoticeKind, Tone
from cdd_agent.events.stream import Emit, ignore_event
from cdd_agent.llm import port
from cdd_agent.llm.pictures import as_seen_by, names_of
from cdd_agent.llm.port import (
    ContextTooLong,
    Done,
    Message,
    Model,
    ModelEvent,
    Picture,
    PicturesRefused,
    Replaced,
    Request,
    RequestRejected,
    StartedAgain,
    StopReason,
    TextDelta,
    ToolCall,
    ToolDefinition,
    Waiting,
    WasThought,
)
from cdd_agent.llm.reply_stream import ReplyStream, text_of
from cdd_agent.llm.token_estimates import estimated_prompt, estimated_tokens
from cdd_agent.tools.base import Answer, Tool

ToolCalls = Literal["auto", "on", "off"]

LONGEST_ANSWER = 40_000
"""Characters of a tool's answer that a model gets to see; of a longer one the beginning
and the end.
"""
MOST_IN_A_ROUND = 100_000
"""Characters of all answers of a round: a later one is cut to what is left, and then no
more calls are made.
"""
_SHORTEST_ANSWER = 1_000
"""Characters that it gets to see however little room is left: what a tool did has to be
known.
"""
_SAME_CALLS = 3
"""The very same call, so many times with nothing done in between, is not made again."""
_LONGEST_SHOWN = 60
"""Characters of an argument in the line that people see."""
_LONGEST_OUTPUT = 8_000
"""Characters of an answer that people are shown."""
_MOST_SHOWN = 8
"""Arguments in it."""
_NO_MORE = "You cannot use tools any more: {}. Finish now, with what you know."
_TOO_LATE = "The time of this turn is over; this call was not made."
_TOO_MUCH = (
    "The answers of this round are as long as they may be together; this call was not"
    " made. Make it again alone."
)
_NEVER_DONE = "The model went on calling tools when it could not any more: {}."
_FULL = "the window of the model is full"
_IF_NO_TOOLS = "If the server takes no tools: `tool_calls: off` in .cdd/config.yaml."
_STOPPED = {
    StopReason.LENGTH: "The reply was cut by the model's length limit.",
    StopReason.REFUSED: (
        "The provider's content filter stopped the reply, or the model declined to"
        " answer."
    ),
    StopReason.UNKNOWN: (
        "The reply ended for a reason that is not known to mean that it is whole."
    ),
}


class Limits(Struct, frozen=True):
    """Of one turn."""

    rounds: int = 25
    """In which tools are used; after the last of them the model has one more, for its
    last word.
    """
    seconds: float = 900.0
    """No round is begun after that, and no call is made."""


class Used(Struct, frozen=True):
    """How much of a turn's limits is used."""

    rounds: int = 0
    seconds: float = 0.0


_NOTHING = Used()


class Added(Struct, frozen=True):
    """The messages of a round: the model's and, if it called tools, the answers.

    To be kept by whoever holds the conversation. A round that was stopped in the middle
    adds nothing.
    """

    messages: tuple[Message, ...]
    used: Used = _NOTHING
    """By the turn so far."""
    is_reply: bool = False
    """True if the message is the model's last one, and whole."""


Keep = Callable[[Added], None]


def _drop(added: Added) -> None:
    del added


class Turn(Struct, frozen=True):
    """The model has had its say."""

    text: str
    """Its last words, without what is meant for the program."""
    blocks: tuple[str, ...] = ()
    """The code blocks of its last message that the caller wanted to be kept back from
    the screen.
    """
    problem: str = ""
    """Why its last message is not whole, as a sentence."""


async def _nobody(call: ToolCall, answer: str) -> None:
    del call, answer


class Dialogue(Struct, frozen=True):
    """A model and its tools. It keeps nothing: the conversation is the caller's."""

    model: Model
    tools: Sequence[Tool[Any]] = ()
    tool_calls: ToolCalls = "auto"
    limits: Limits = field(default_factory=Limits)
    clock: Callable[[], float] = time.monotonic
    """Seconds, for the limit."""
    told: Callable[[ToolCall, str], Awaitable[None]] = _nobody
    """Is told of each answer of a tool, as the model gets to see it, before the next
    call is made. What it raises ends the turn.
    """
    emit: Emit = ignore_event

    @property
    def is_native(self) -> bool:
        """The model calls tools by itself."""
        return self.tool_calls == "on" or (
            self.tool_calls == "auto" and self.model.calls_tools
        )

    async def turn(
        self,
        messages: Sequence[Message],
        *,
        keep: Keep = _drop,
        keep_part: Keep = _drop,
        step: int | None = None,
        hidden: str | None = None,
        used: Used = _NOTHING,
        meanwhile: Callable[[], tuple[str, ...]] = tuple,
    ) -> Turn:
        """Ask the model for its say on a conversation, whose first message is the
        system's.

        `keep` is given what each round `Added`; what it raises ends the turn.
        `keep_part` is given the message of the model as soon as it is whole, and then
        what the unfinished round has so far, after each call that acts. A conversation
        that ends with such a part of native calls is continued there.

        `hidden` is the info string of code blocks that the caller reads instead of a
        person. `meanwhile` gives what a person has said since it was asked last: the
        model gets to hear it with the answers to its calls.

        Raises `ContextTooLong` before a call is made with more than the model takes in,
        other `ModelError`s, or `BudgetExhausted`; what was `Added` before that stays
        true, and the turn can be taken up again from there, with what it had `used`.
        """
        unanswered = [
            *takewhile(lambda message: message.role == "user", reversed(messages))
        ]
        new = tuple(
            picture for message in reversed(unanswered) for picture in message.pictures
        )
        notice = await asyncio.to_thread(self._about_pictures, new) if new else None
        self.refuse_too_long(messages)
        if notice is not None:
            self.emit(notice)
        talk = self
        now = _Progress(
            tuple(messages),
            used,
            self.clock() - used.seconds,
            step,
            keep,
            keep_part,
            meanwhile,
            self._why_over(used),
        )
        if self.is_native and (open_calls := _find_open_calls(now.spoken)):
            await self._use_tools(now, open_calls)
        while True:
            round_ = _Round(talk, step, hidden)
            try:
                await round_.listen(now.spoken)
            except RequestRejected as error:
                may_be_for_tools = (
                    talk.is_native
                    and self.tools
                    and not isinstance(error, PicturesRefused)
                )
                is_sure = (
                    self.tool_calls == "on"
                    or isinstance(error, ContextTooLong)
                    or now.spoken != tuple(messages)
                )
                if may_be_for_tools and not is_sure:
                    # some servers know none, although their models would
                    talk = replace(self, tool_calls="off")
                    continue
                if may_be_for_tools and _IF_NO_TOOLS not in error.hint:
                    error.hint = f"{error.hint} {_IF_NO_TOOLS}".strip()
                raise
            if round_.calls and not now.why:
                if talk.is_native:
                    keep_part(Added((round_.message,), now.used))
                round_.report()
                await talk._use_tools(now, round_.calls, round_.message)
                continue
            problem = round_.problem or (
                _NEVER_DONE.format(now.why) if round_.calls else ""
            )
            last = Added((round_.last_message,), now.used, is_reply=not problem)
            if last.is_reply:
                keep_part(last)
            round_.report()
            keep(last)
            blocks = round_.stream.blocks_of(hidden) if hidden else ()
            return Turn(round_.shown, blocks, problem)

    async def _use_tools(
        self,
        now: "_Progress",
        calls: Sequence[ToolCall],
        message: Message | None = None,
    ) -> None:
        """Make the calls of a round, and add the round to the conversation. `message`
        is the model's; None if the conversation has it already.
        """
        before = now.spoken
        begun = () if message is None else (message,)
        answers = await self._answer_calls(now, calls, begun)
        now.used = Used(now.used.rounds + 1, self.clock() - now.began)
        now.why = self._why_over(now.used)
        said = (Message("user", text) for text in now.meanwhile())
        no_more = _NO_MORE.format(now.why) if now.why else ""
        answered = _as_messages(answers, self.is_native, no_more)
        added = (*begun, *answered, *said)
        now.spoken = before + added
        now.keep(Added(added, now.used))
        left = self._left(now.spoken)
        if (
            not now.why
            and left is not None
            and left < min(_SHORTEST_ANSWER // 3, (self.model.window or 0) // 16)
        ):
            now.why = _FULL
            now.spoken += (Message("user", _NO_MORE.format(now.why)),)
            now.keep(Added(now.spoken[-1:], now.used))
        self.refuse_too_long(now.spoken)

    async def _answer_calls(
        self, now: "_Progress", calls: Sequence[ToolCall], begun: tuple[Message, ...]
    ) -> list[tuple[ToolCall, str]]:
        """Make calls one after the other, and return them with their answers."""
        answers: list[tuple[ToolCall, str]] = []
        spoken = now.spoken + begun
        earlier = takewhile(_is_answer, reversed(spoken))
        room = MOST_IN_A_ROUND - sum(len(each.content) for each in earlier)
        left = self._left(spoken)
        for call in calls:
            started, at = self._started(call, now.step), self.clock()
            self.emit(started)
            is_late = bool(answers) and at - now.began > self.limits.seconds
            objection = _TOO_LATE if is_late else _TOO_MUCH if room <= 0 else ""
            if objection:
                answer: Answer = {"error": objection}
            else:
                answer = await self._answer(call, now.calls)
            tool = self._tool(call)
            sent = answer if tool is None else tool.answer_for_model(answer)
            text = _cut(json.dumps(sent, ensure_ascii=False, default=str), room, left)
            answers.append((call, text))
            room -= len(text)
            left = None if left is None else left - estimated_tokens(text)
            self.emit(_finished(started, answer, self.clock() - at))
            await self.told(call, text)
            if self.is_native and tool is not None and tool.acts:
                part = (*begun, *_as_messages(answers, True, ""))
                used = Used(now.used.rounds, self.clock() - now.began)
                now.keep_part(Added(part, used))
        return answers

    def _about_pictures(self, pictures: tuple[Picture, ...]) -> Notice:
        """For people, whether pictures go to the model. Asks a server of one's own,
        perhaps.
        """
        if self.model.sees is False:
            text = (
                f"{self.model.name} cannot see pictures: the text goes on without"
                f" {names_of(pictures)}."
            )
            return Notice(
                f"{text} If it can, set `pictures: true`.",
                Tone.WARNING,
                kind=NoticeKind.NOT_SENT,
            )
        sizes = (f"{one.name} ({one.width:,} × {one.height:,})" for one in pictures)
        return Notice(
            f"Sent as a picture: {', '.join(sizes)}.", Tone.QUIET, kind=NoticeKind.SENT
        )

    def refuse_too_long(self, messages: Sequence[Message]) -> None:
        """Raises `ContextTooLong` for a conversation that the model cannot take in."""
        window = self.model.window
        if window is not None and (size := self.size(messages)) > window:
            raise ContextTooLong(
                f"The request has about {size:,} tokens, more than the window of"
                f" {self.model.name} holds: {window:,}; it was not sent",
                hint=(
                    "Say or mention less, or use a model with a larger window. If this"
                    " one has a larger one, set `context_window` in .cdd/config.yaml."
                ),
            )

    def fitting(
        self, messages: tuple[Message, ...], *, instead: tuple[Message, ...]
    ) -> tuple[Message, ...]:
        """These messages; where they leave no room for a reply, those `instead`."""
        window = self.model.window
        return (
            messages
            if window is None or self.size(messages) <= most_of(window)
            else instead
        )

    def with_tools_that_fit(self, room: TokenBudget, beside: int) -> "Dialogue":
        """The same with as many of its tools, the first before the others, as there is
        room for, and for `beside`, in tokens, which is what they may answer.
        """
        fitting: list[Tool[Any]] = []
        for tool in self.tools:
            if self.is_native:
                weight = estimated_prompt(Request((), definitions((tool,))))
            else:
                told = (
                    tool.get_ai_prompt_instructions()
                    if fitting
                    else text_tools.instructions((tool,))
                )
                weight = estimated_tokens(told) + 1
            if not room.takes(weight, beside=beside):
                break
            fitting.append(tool)
        names = [f"the tool {tool.name}" for tool in self.tools if tool not in fitting]
        for name in names if fitting else names and ["the tools"]:
            room.leave_out(name)
        return replace(self, tools=tuple(fitting))

    def _left(self, spoken: Sequence[Message]) -> int | None:
        """Tokens that may still be said to the model in this turn; None: nobody knows
        its window.
        """
        return (
            None
            if self.model.window is None
            else most_of(self.model.window) - self.size(spoken)
        )

    def size(self, messages: Sequence[Message]) -> int:
        """Tokens that the next round would send, by an estimate."""
        return estimated_prompt(self.request(messages))

    def _why_over(self, used: Used) -> str:
        """Why no more tools can be used, as a clause; empty where they can."""
        if used.rounds >= self.limits.rounds:
            return f"the {self.limits.rounds} rounds of this turn are used"
        if used.seconds > self.limits.seconds:
            return f"the {self.limits.seconds:.0f} seconds of this turn are over"
        return ""

    def request(self, messages: Sequence[Message]) -> Request:
        """The next round's."""
        if not self.tools or self.is_native:
            return as_seen_by(
                self.model, Request(tuple(_joined(messages)), definitions(self.tools))
            )
        first, *others = text_tools.in_words(messages)
        told = replace(
            first, content=f"{first.content}\n\n{text_tools.instructions(self.tools)}"
        )
        return as_seen_by(self.model, Request(tuple(_joined((told, *others)))))

    def _started(self, call: ToolCall, step: int | None) -> ToolStarted:
        tool, arguments = self._tool(call), _arguments(call)
        if tool is None or arguments is None:
            return ToolStarted(step, shown_call(call))
        target = arguments.get(tool.main_argument) or ""
        target = (
            "; ".join(map(str, target)) if isinstance(target, list) else str(target)
        )
        first, last = (
            line if isinstance(line, int) else None
            for line in map(arguments.get, ("start_line", "end_line"))
        )
        return ToolStarted(step, shown_call(call), tool.name, target, first, last)

    def _tool(self, call: ToolCall) -> Tool[Any] | None:
        return next((tool for tool in self.tools if tool.name == call.name), None)

    async def _answer(self, call: ToolCall, calls: "_Calls") -> Answer:
        tool = self._tool(call)
        if tool is None:
            names = ", ".join(tool.name for tool in self.tools)
            what = (
                f"There is no tool {call.name!r}"
                if call.name
                else "That is not a call as described"
            )
            return {"error": f"{what}. The tools are {names}."}
        if calls.again(call, tool):
            return {
                "error": (
                    f"This very call was made {_SAME_CALLS} times already. Its answer"
                    " is above; go on from it."
                )
            }
        try:
            arguments = json.loads(call.arguments or "{}")
        except (ValueError, RecursionError) as error:
            return {
                "error": f"The arguments of {call.name} are not valid JSON: {error}."
            }
        if not isinstance(arguments, dict):
            return {"error": f"The arguments of {call.name} are not a JSON object."}
        return await tool.execute(**arguments)


class _Calls:
    """The calls of a turn, as far as their answers still hold."""

    def __init__(self) -> None:
        self._times: dict[tuple[str, str], int] = {}

    def again(self, call: ToolCall, tool: Tool[Any]) -> bool:
        """Count a call; whether it has been made too often."""
        key = (call.name, call.arguments)
        times = self._times.get(key, 0) + 1
        if tool.acts:
            self._times.clear()
        self._times[key] = times
        return times > _SAME_CALLS


class _Progress(Struct):
    """How far a turn is."""

    spoken: tuple[Message, ...]
    used: Used
    began: float
    step: int | None
    keep: Keep
    keep_part: Keep
    meanwhile: Callable[[], tuple[str, ...]]
    why: str
    """Why the next round is the last one; empty if it is not."""
    calls: _Calls = field(default_factory=_Calls)


class _Round:
    """One call of the model."""

    def __init__(
        self, dialogue: Dialogue, step: int | None, hidden: str | None
    ) -> None:
        self._dialogue, self._step = dialogue, step
        in_use = text_tools.FENCE if dialogue.tools and not dialogue.is_native else None
        self._hidden = frozenset(info for info in (hidden, in_use) if info)
        self._native_calls: list[ToolCall] = []
        self._clear()
        self.end = Done()
        """How it ended, when it is over."""
        self._rest = ""
        """Text that comes to light at the end of the reply."""
        self._thinking = Thinking(step, dialogue.clock)

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """None of a reply that is not whole: it may have been about to say something
        else.
        """
        if self.end.stop_reason is not StopReason.STOP:
            return ()
        if self._dialogue.is_native:
            return tuple(self._native_calls)
        blocks = self.stream.blocks_of(text_tools.FENCE)
        return tuple(
            text_tools.call_of(block, number)
            for number, block in enumerate(blocks, start=1)
        )

    @property
    def message(self) -> Message:
        calls = tuple(self._native_calls) if self._dialogue.is_native else ()
        return Message(
            "assistant", self.said, calls, provider_data=self.end.provider_data
        )

    @property
    def last_message(self) -> Message:
        """The same where no call was made. What belongs to calls that nobody answered
        must not be sent back.
        """
        is_whole = self.end.stop_reason is StopReason.STOP and not self._native_calls
        return Message(
            "assistant",
            self.said or "…",
            provider_data=self.end.provider_data if is_whole else None,
        )

    @property
    def problem(self) -> str:
        """Why the reply is not whole, as a sentence; empty where it is."""
        problem = _STOPPED.get(self.end.stop_reason, "")
        return (
            f"{problem[:-1]}: `{self.end.stop_word}`."
            if self.end.stop_word
            else problem
        )

    @property
    def said(self) -> str:
        return "".join(self.stream.written)

    @property
    def shown(self) -> str:
        """The same without the blocks for the program."""
        return "".join(self._shown)

    def _clear(self) -> None:
        """Begin with an empty text."""
        self.stream = ReplyStream(has_marks=False, hidden_blocks=self._hidden)
        self._shown: list[str] = []

    async def listen(self, messages: tuple[Message, ...]) -> None:
        emit, model, step = self._dialogue.emit, self._dialogue.model, self._step
        request = self._dialogue.request(messages)
        emit(ReplyStarted(step, model.name, prompt_tokens=estimated_prompt(request)))
        self.end = await model.reply(request, self._hear)
        self._rest = text_of(self.stream.end())

    def report(self) -> None:
        """Report that the model's reply is over. What must not be lost is saved
        before.
        """
        emit, step = self._dialogue.emit, self._step
        self._show(self._rest)
        for told in self._thinking.finished(self.end.usage):
            emit(told)
        emit(ReplyFinished(step, self.end.usage))

    def _hear(self, event: ModelEvent) -> None:
        emit, step = self._dialogue.emit, self._step
        if not isinstance(event, port.ThoughtDelta):
            self._thinking.pause()
        match event:
            case TextDelta(text=text):
                self._show(text_of(self.stream.feed(text)))
            case port.ThoughtDelta(text=text):
                emit(self._thinking.hear(text))
            case ToolCall():
                self._native_calls.append(event)
            case Waiting(seconds=seconds, reason=reason):
                emit(ReplyDelayed(step, seconds, reason))
            case Replaced(model=name, instead_of=before, reason=reason):
                emit(ModelReplaced(step, name, before, reason))
            case StartedAgain():
                self._clear()
                self._native_calls.clear()
                for told in self._thinking.finished():
                    emit(told)
                self._thinking = Thinking(step, self._dialogue.clock)
                emit(ReplyRestarted(step))
            case WasThought():
                self._clear()
                emit(ReplyRestarted(step, was_thought=True))

    def _show(self, text: str) -> None:
        if text:
            self._shown.append(text)
            self._dialogue.emit(ReplyDelta(self._step, text))


def finished_rounds(messages: Sequence[Message]) -> int:
    """Return the number of rounds of native calls that have all their answers."""
    begun = sum(bool(message.tool_calls) for message in messages)
    return begun - bool(_find_open_calls(messages))


def _find_open_calls(messages: Sequence[Message]) -> tuple[ToolCall, ...]:
    """Return the calls at the end of a conversation that have no answers yet."""
    answers = sum(1 for _ in takewhile(_is_answer, reversed(messages)))
    if answers == len(messages):
        return ()
    return messages[-answers - 1].tool_calls[answers:]


def _is_answer(message: Message) -> bool:
    return message.role == "tool"


def _joined(messages: Sequence[Message]) -> Iterator[Message]:
    """Two messages of a person in a row are one: some models take no others."""
    for role, group in groupby(messages, key=lambda message: message.role):
        if role == "user":
            said = list(group)
            pictures = tuple(
                picture for message in said for picture in message.pictures
            )
            yield Message(
                "user",
                "\n\n".join(message.content for message in said),
                pictures=pictures,
            )
        else:
            yield from group


def definitions(tools: Sequence[Tool[Any]]) -> tuple[ToolDefinition, ...]:
    """The tools as a request offers them."""
    return tuple(
        ToolDefinition(tool.name, tool.description, tool.parameters_schema)
        for tool in tools
    )


def _arguments(call: ToolCall) -> dict[str, Any] | None:
    """The arguments of a call; None where they are no JSON object."""
    try:
        arguments = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        return None
    return arguments if isinstance(arguments, dict) else None


def _finished(started: ToolStarted, answer: Answer, seconds: float) -> ToolFinished:
    said = "\n".join(
        str(answer[name]) for name in ("stdout", "stderr") if answer.get(name)
    )
    output = (
        said[-_LONGEST_OUTPUT:]
        if said
        else str(answer.get("output") or "")[:_LONGEST_OUTPUT]
    )
    code = answer.get("return_code")  # of a command that did run
    return ToolFinished(
        started.step,
        started.call,
        f"exit code {code}" if code else str(answer.get("error") or ""),
        started.tool,
        started.target,
        started.first_line,
        started.last_line,
        seconds,
        code if isinstance(code, int) else None,
        output,
    )


def shown_call(call: ToolCall) -> str:
    """A call in a line, for people: `read_file(path=src/app.py)`."""
    arguments = _arguments(call)
    if arguments is None:
        return f"{_shown(call.name)}(…)"
    shown = [
        f"{_shown(name)}={_shown(value)}"
        for name, value in islice(arguments.items(), _MOST_SHOWN)
    ]
    if len(arguments) > _MOST_SHOWN:
        shown.append("…")
    return f"{_shown(call.name)}({', '.join(shown)})"


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    line, count = " ".join(text.split()), text.count("\n")
    if count > 1:  # the content of a file, as a rule
        return f"… {count + (not text.endswith(chr(10)))} lines"
    return line if len(line) <= _LONGEST_SHOWN else f"{line[:_LONGEST_SHOWN]}…"


def _as_messages(
    answers: Sequence[tuple[ToolCall, str]], is_native: bool, also: str
) -> tuple[Message, ...]:
    """The answers, and what is `also` to be said, as the next messages."""
    if is_native:
        told = (Message("user", also),) if also else ()
        return (
            *(
                Message("tool", answer, tool_call_id=call.id)
                for call, answer in answers
            ),
            *told,
        )
    return (
        Message(
            "user",
            "\n\n".join(filter(None, (text_tools.answer_message(answers), also))),
        ),
    )


def _cut(answer: str, room: int, left: int | None) -> str:
    """As much of an answer as there is `room` for, in characters; of the tokens `left`
    in the window it may have half. One that is cut is no JSON any more.
    """
    longest, why = min(LONGEST_ANSWER, room), "ask for less"
    if room < LONGEST_ANSWER:
        why = (
            f"all answers of a round have {MOST_IN_A_ROUND:,} together; ask for less at"
            " once"
        )
    if left is not None:
        longest = min(longest, len(answer) * left // (2 * estimated_tokens(answer)))
    longest = max(longest, _SHORTEST_ANSWER)
    if len(answer) <= longest:
        return answer
    half = longest // 2
    return (
        f"{answer[:half]}\n… {len(answer) - 2 * half:,} characters left out; {why}"
        f" …\n{answer[-half:]}"
    )
