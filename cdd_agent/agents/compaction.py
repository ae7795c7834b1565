"""Making room: what was said long ago is told in short, by the model itself; what was
said last stays word for word.
"""

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from cdd_agent.agents.prompt_files import load_prompt
from cdd_agent.dialogue.token_budget import for_answers, most_of
from cdd_agent.dialogue.turns import Dialogue
from cdd_agent.events.dialogue_events import (
    ReplyDelta,
    ReplyRestarted,
    ThinkingDelta,
    ThinkingFinished,
)
from cdd_agent.events.stream import Emit, Event
from cdd_agent.llm.port import BadAnswer, Message, Model, Request
from cdd_agent.llm.token_estimates import estimated_prompt, estimated_tokens

_UNKNOWN_WINDOW = 48_000
"""Tokens that a model is taken to take in where nobody knows: most take more, and more
costs more.
"""
_LONGEST_MESSAGE = 6_000
"""Characters of an old message that are looked at for the summary; of a longer one the
beginning and the end.
"""
_MARGIN = 40
"""Tokens of a note that something is left out, and of what stands around messages."""
_SUMMARY = "# The conversation so far, in short"


class Shares(Struct, frozen=True):
    """How much of a conversation a model takes in, in tokens by our own estimate."""

    window: int
    full: int
    """From here on, room is made: the reply and the next answers of tools need some."""
    kept: int
    """The newest part, which stays word for word."""

    @classmethod
    def of(cls, model: Model, taken: int = 0) -> "Shares":
        """`taken` is what is said before every conversation, with the tools. A small
        window has little beside that.
        """
        if (window := model.window) is None:
            return cls(
                _UNKNOWN_WINDOW,
                _UNKNOWN_WINDOW * 3 // 4,
                _UNKNOWN_WINDOW // 4,
            )
        full = min(window * 3 // 4, most_of(window) - for_answers(window))
        kept = min(window // 4, max(full - taken, 0) * 2 // 3)
        return cls(window, full, kept)


def divided(
    messages: Sequence[Message], keep: int
) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    """The older messages, and the newest that come to at most `keep` tokens; tools'
    answers stay with their calls.
    """
    start, size = len(messages), 0
    for place in range(len(messages) - 1, -1, -1):
        size += estimated_prompt(Request((messages[place],)))
        if size > keep:
            break
        if messages[place].role != "tool":
            start = place
    return tuple(messages[:start]), tuple(messages[start:])


def can_be_shorter(messages: Sequence[Message], said: Message, shares: Shares) -> bool:
    """Something is old enough, is not a summary already, and is not what the person has
    just `said`.
    """
    older = [
        message for message in divided(messages, shares.kept)[0] if message is not said
    ]
    return bool(older) and not (
        len(older) == 1 and older[0].content.startswith(_SUMMARY)
    )


async def compact(
    root: Path,
    model: Model,
    messages: Sequence[Message],
    said: Message,
    shares: Shares,
    emit: Emit,
) -> tuple[Message, ...]:
    """Have the older part summed up; what the person has just `said` stays, however
    old. Returns what stands for the conversation from now on. Raises `ModelError` where
    no summary comes, and `BudgetExhausted`.
    """

    def emit_no_summary(event: Event) -> None:
        if not isinstance(
            event, ReplyDelta | ThinkingDelta | ThinkingFinished | ReplyRestarted
        ):
            emit(event)

    older, newest = divided(messages, shares.kept)
    told = load_prompt(root, "compaction")
    most = min(
        shares.window // 2, most_of(shares.window) - estimated_tokens(told) - _MARGIN
    )
    parts: list[str] = []
    for message in older:
        calls = (
            f"(calls {call.name} with {call.arguments})" for call in message.tool_calls
        )
        text = _shortened(
            "\n".join(filter(None, (message.content, *calls))), _LONGEST_MESSAGE
        )
        parts.append(f"## {message.role}\n\n{text}")
    shown = whole = "\n\n".join(parts)
    length = len(whole)
    while (size := estimated_tokens(shown)) > most and length > 0:
        length = min(length * max(most, 0) // size, length - 1)
        shown = _shortened(whole, length)
    asked = Message("system", told), Message("user", shown)
    turn = await Dialogue(model, emit=emit_no_summary).turn(asked)
    if turn.problem or not turn.text.strip():
        raise BadAnswer(f"{model.name} gave no whole summary. {turn.problem}".rstrip())
    summary = Message("user", f"{_SUMMARY}\n\n{turn.text.strip()}")
    return (summary, *(message for message in older if message is said), *newest)


def _shortened(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    return (
        f"{text[: most // 4]}\n… ({len(text) - most:,} characters left out)"
        f" …\n{text[-(most - most // 4) :]}"
    )
