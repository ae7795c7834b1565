"""Compaction of a conversation before it exceeds the model's window.

Older messages are replaced by a summary from the model and by the user's own lines,
unchanged. If the model gives no usable summary, only the lines remain.

`Room` and `Shares` divide the window so that the next turns do not compact again.
Compaction starts when the messages without the user's latest line exceed their room;
afterwards they use at most three quarters of it.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.agents.attachments import without_files
from cdd_agent.agents.prompt_files import load_prompt
from cdd_agent.dialogue.limits import Limits
from cdd_agent.dialogue.token_budget import largest_request, tokens_for_answers
from cdd_agent.dialogue.turns import Dialogue
from cdd_agent.events.dialogue_events import (
    ConversationShortened,
    ReplyDelta,
    ReplyRestarted,
    ThinkingDelta,
    ThinkingFinished,
)
from cdd_agent.events.stream import Emit, Event
from cdd_agent.llm.port import ContextTooLong, EmptyReply, Message, Model, Request
from cdd_agent.llm.token_estimates import estimate_prompt, estimate_tokens
from cdd_agent.pattern import Pattern

_UNKNOWN_WINDOW = 48_000
"""Assumed tokens of an unknown window; most models have more."""
_LEAST_ROOM = 150
"""Tokens of messages below which compaction is useless."""
_LEAST_SUMMARY = 30
"""Minimum tokens of a requested summary."""
_NOTES = 60
_LONGEST_WORD = 30
_LONGEST_MESSAGE = 6_000
LONGEST_LINE = 1_000
"""Maximum characters of a user's line that is kept whole. A longer one is a pasted
text, of which the beginning and the end are kept.
"""
_MARGIN = 80
"""Tokens of notes around the messages to summarize."""
_TRIES = 2
_SUMMARY = "# The older part of our conversation, in short"
_NO_SUMMARY = "# The older part of our conversation is left out"
_LINES = "# My own lines from that part, word for word"
_NOT_ALL_LINES = "My oldest and longest lines are left out."
_LATER = "(What came after this is left out.)"
_AGAIN = "# Your last summary was refused\n\nIt {why}. Write it again."
_NOTHING = Pattern(r"\W*(?:(?:no|none|nothing|n/a)\b.{0,30})?")
_REFUSAL = Pattern(
    r"\W*(?:(?:i'?m|i am|we are) (?:sorry|unable|not able)|sorry\b|apologies\b"
    r"|i (?:cannot|can'?t|won'?t|do not|don'?t)\b|as an ai\b)",
    re.IGNORECASE,
)
_LONGEST_REFUSAL = 100
_PHRASE = 5
"""Number of words in the phrases that reveal a repeated prompt."""


class Room(Struct, frozen=True):
    """The room of a conversation in the model's window, in estimated tokens."""

    window: int
    full: int
    """The size of a request at which the conversation is compacted. The rest is for the
    reply and the next tool results.
    """
    taken: int
    """The tokens of the instructions and the tools."""

    @classmethod
    def for_model(cls, model: Model, reserved: int) -> "Room":
        window = model.window
        if window is None:
            return cls(_UNKNOWN_WINDOW, _UNKNOWN_WINDOW * 3 // 4, reserved)
        full = min(
            window * 3 // 4, largest_request(window) - tokens_for_answers(window)
        )
        return cls(window, full, reserved)

    def for_messages(
        self, messages: Sequence[Message], latest: Message, *, must: bool
    ) -> int:
        """Return the tokens to divide among the compacted messages; fewer than they
        have now, so that they shrink in any case. `must`: divide nearly all of the
        window.
        """
        others = [message for message in messages if message is not latest]
        most = self.window * 15 // 16 if must else self.full
        free = most - self.taken - _size((latest,))
        return max(min(free, _size(others)), 0)


class Shares(Struct, frozen=True):
    """Maximum tokens of each part after compaction."""

    newest: int
    lines: int
    summary: int

    @classmethod
    def of_room(cls, tokens: int) -> "Shares":
        lines = max(tokens // 4 - _NOTES, 0)
        return cls(newest=tokens * 3 // 8, lines=lines, summary=tokens // 8)


class _Summary(Struct, frozen=True):
    text: str = ""
    problem: str = ""
    """Why the text is unusable, as a clause about the summary."""


def can_compact(
    messages: Sequence[Message], latest: Message, room: Room, *, must: bool = False
) -> bool:
    """True if compaction gains room. `latest` is the user's latest line, which stays.
    `must`: a request was refused as too long.
    """
    tokens = room.for_messages(messages, latest, must=must)
    if tokens < _LEAST_ROOM:
        return False
    older, _ = divide(messages, latest, Shares.of_room(tokens).newest)
    return bool(older)


async def compact(
    root: Path,
    model: Model,
    messages: Sequence[Message],
    latest: Message,
    room: Room,
    emit: Emit,
    *,
    must: bool = False,
) -> tuple[Message, ...]:
    """Return the messages that replace a conversation, and report them. `can_compact`
    must be true.

    Raises `ModelError` if the model cannot be asked, and `BudgetExhausted`. Nothing is
    replaced then.
    """
    shares = Shares.of_room(room.for_messages(messages, latest, must=must))
    older, newest = divide(messages, latest, shares.newest)
    summary = await _request_summary(root, model, older, room, shares, emit)
    lines = choose_lines(older, shares.lines)
    has_all_lines = len(lines) == len(_typed_texts(older))
    if any(is_summary(each) and _NOT_ALL_LINES in each.content for each in older):
        has_all_lines = False
    notes = [f"{_SUMMARY}\n\n{summary.text}" if summary.text else _NO_SUMMARY]
    if lines:
        notes.append(_LINES)
    if not has_all_lines:
        notes.append(_NOT_ALL_LINES)
    compacted = [Message("user", "\n\n".join(notes)), *lines]
    if all(message is not latest for message in newest):
        compacted += [message for message in messages if message is latest]
    emit(
        ConversationShortened(
            len(older), len(lines), has_all_lines, summary.text, summary.problem
        )
    )
    return (*compacted, *newest)


def describe_older_part(messages: Sequence[Message]) -> str:
    """Return the summary and the user's lines that replaced older messages; empty
    without compaction.
    """
    texts: list[str] = []
    for message in messages:
        if is_summary(message):
            texts = [message.content]
        elif texts and message.is_typed:
            texts.append(message.content)
        elif texts:
            break
    return "\n\n".join(texts)


def is_summary(message: Message) -> bool:
    return message.role == "user" and message.content.startswith(
        (_SUMMARY, _NO_SUMMARY)
    )


def divide(
    messages: Sequence[Message], latest: Message, most: int
) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    """Divide a conversation into older and newest messages. The newest ones have at
    most `most` tokens; the user's latest line is never older, and does not count.
    Answers of tools stay with their calls.
    """
    start = len(messages)
    size = 0
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if message is not latest:
            size += _size((message,))
        if size > most:
            break
        if message.role != "tool":
            start = place
    older = tuple(message for message in messages[:start] if message is not latest)
    return older, tuple(messages[start:])


def choose_lines(older: Sequence[Message], most: int) -> tuple[Message, ...]:
    """Return the user's lines in at most `most` tokens, in order.

    Repeated lines are kept once. Short lines have priority over pasted texts of more
    than 1,000 characters, and new lines over old ones. Only pasted texts are shortened.
    """
    texts = _typed_texts(older)
    newest_first = sorted(
        range(len(texts)), key=lambda at: (len(texts[at]) > LONGEST_LINE, -at)
    )
    chosen = {}
    for place in newest_first:
        line = Message("user", shorten(texts[place], LONGEST_LINE), is_typed=True)
        size = _size((line,))
        if size <= most:
            most -= size
            chosen[place] = line
    return tuple(chosen[place] for place in sorted(chosen))


def _typed_texts(messages: Sequence[Message]) -> list[str]:
    """Return the user's lines, each once, at its last position."""
    texts = [without_files(each.content) for each in messages if each.is_typed]
    return list(reversed(dict.fromkeys(reversed(texts))))


def shorten(text: str, most: int) -> str:
    """Shorten a text to `most` characters by a note in its middle. Words stay whole. If
    even the note does not fit, it stays.
    """
    if len(text) <= most:
        return text
    room = max(most - len(_describe_omission(len(text))), 0)
    head = room // 4
    end = _before_word(text, head)
    start = _after_word(text, len(text) - (room - head))
    return f"{text[:end].rstrip()}{_describe_omission(start - end)}{text[start:]}"


def _describe_omission(count: int) -> str:
    return f"\n… ({count:,} characters left out) …\n"


def _before_word(text: str, place: int) -> int:
    """Return the index of the space before `place`; `place` itself in a very long
    word.
    """
    for earlier in range(place, max(place - _LONGEST_WORD, 0), -1):
        if text[earlier].isspace():
            return earlier
    return place


def _after_word(text: str, place: int) -> int:
    """Return the index after the next space; `place` itself in a very long word."""
    for later in range(place, min(place + _LONGEST_WORD, len(text))):
        if text[later - 1].isspace():
            return later
    return place


async def _request_summary(
    root: Path,
    model: Model,
    older: Sequence[Message],
    room: Room,
    shares: Shares,
    emit: Emit,
) -> _Summary:
    def emit_without_text(event: Event) -> None:
        if not isinstance(
            event, ReplyDelta | ThinkingDelta | ThinkingFinished | ReplyRestarted
        ):
            emit(event)

    # The model gets no tools, and calls are not answered.
    dialogue = Dialogue(model, limits=Limits(rounds=0), emit=emit_without_text)
    former_summary = _former_summary(older, shares.summary)
    if shares.summary < _LEAST_SUMMARY:
        return _Summary(former_summary, "has no room in the model's window")
    least = _least_summary(older, shares.summary)
    prompt = load_prompt(root, "compaction")
    limit = f"Write {least // 2} to {shares.summary // 2} words."
    system = Message("system", f"{prompt}\n\n{limit}")
    history = _fit_for_summary(older, room.window, _size((system,)))
    summary = _Summary()
    for _ in range(_TRIES):
        advice = ""
        if summary.problem:
            advice = "\n\n" + _AGAIN.format(why=summary.problem)
        try:
            turn = await dialogue.turn((system, Message("user", history + advice)))
        except EmptyReply:  # asked twice already
            return _Summary(former_summary, "is empty")
        except ContextTooLong:
            return _Summary(former_summary, "does not fit into the model's window")
        text = turn.text.strip()
        problem = _find_problem(text, least, prompt, history)
        if turn.problem:
            problem = f"is not whole. {turn.problem.rstrip('.')}"
        if not problem:
            return _Summary(_cut(text, shares.summary, len(text)))
        summary = _Summary("", problem)
    return replace(summary, text=former_summary)


def _former_summary(older: Sequence[Message], most: int) -> str:
    for message in older:
        if message.role == "user" and message.content.startswith(_SUMMARY):
            text = message.content.removeprefix(_SUMMARY).partition(_LINES)[0].strip()
            text = text.removesuffix(_LATER).strip()
            room = most - estimate_tokens(_LATER)
            if room >= _LEAST_SUMMARY:
                return f"{_cut(text, room, _LONGEST_MESSAGE)}\n\n{_LATER}"
    return ""


def _least_summary(older: Sequence[Message], most: int) -> int:
    """Return the tokens below which a summary cannot be useful."""
    hundredth = _size(older) // 100
    return min(max(hundredth, 15), 100, most // 2)


def _fit_for_summary(older: Sequence[Message], window: int, prompt: int) -> str:
    parts = []
    for message in older:
        lines = [message.content]
        for call in message.tool_calls:
            lines.append(f"(calls {call.name} with {call.arguments})")
        text = shorten("\n".join(filter(None, lines)), _LONGEST_MESSAGE)
        parts.append(f"## {message.role}\n\n{text}")
    most = min(window // 2, largest_request(window) - prompt - _MARGIN)
    whole = "\n\n".join(parts)
    return _cut(whole, most, len(whole))


def _find_problem(text: str, least: int, prompt: str, shown: str) -> str:
    """Return why a text is not a summary of the `shown` messages, as a clause; empty if
    it is one.
    """
    content = "\n".join(
        line
        for line in text.splitlines()
        if not line.startswith("#") and not _NOTHING.fullmatch(line.lower())
    )
    tokens = estimate_tokens(content)
    if tokens < least:
        words = len(content.split())
        return f"is too short: {words} word{'' if words == 1 else 's'}"
    if tokens < _LONGEST_REFUSAL and _REFUSAL.match(content):
        return "is a refusal"
    phrases = _phrases(content)
    if phrases and len(phrases & _phrases(prompt)) > len(phrases) // 2:
        return "repeats the instructions"
    if _plain(content) in _plain(shown):
        return "repeats a part of the conversation"
    return ""


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def _phrases(text: str) -> set[tuple[str, ...]]:
    words = _plain(text).split()
    return {tuple(words[at : at + _PHRASE]) for at in range(len(words) - _PHRASE + 1)}


def _cut(text: str, most: int, length: int) -> str:
    shown = shorten(text, length)
    while length > 0 and (size := estimate_tokens(shown)) > most:
        length = min(length * max(most, 0) // size, length - 1)
        shown = shorten(text, length)
    return shown


def _size(messages: Sequence[Message]) -> int:
    return estimate_prompt(Request(tuple(messages)))
