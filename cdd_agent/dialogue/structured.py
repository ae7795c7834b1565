"""Answers in JSON, at the end of a reply. They need no provider feature, so any model
can give them.

The user sees the text in front of the JSON as it arrives. If an answer is wrong, cdd
asks again.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from msgspec import Struct

from cdd_agent.dialogue.turns import Added, Dialogue, Turn, extend_system
from cdd_agent.events.notices import Notice, Tone
from cdd_agent.llm.port import BadAnswer, Message
from cdd_agent.text.sanitize import fenced
from cdd_agent.values.typed_values import WrongValue, parse_json, read
from cdd_agent.values.value_schemas import schema_of

FENCE = "json"
TRIES = 3
_MOST_NAMED = 12
_MORE_FAULTS = "Compare the rest with the schema, too: only the first fault is named."

T = TypeVar("T", bound=Struct)

Check = Callable[[T], Sequence[str]]
"""Returns the faults of a value that its type cannot express, as sentences for the
model.
"""


class Structured(Struct, Generic[T], frozen=True):
    value: T
    text: str
    """The text in front of the JSON."""
    problems: tuple[str, ...] = ()
    """Faults that remain after the last try."""


class NoUsableAnswer(BadAnswer):
    """The model gave no readable answer in any of its tries."""

    is_transient = False


async def ask_structured(
    dialogue: Dialogue,
    messages: Sequence[Message],
    kind: type[T],
    *,
    check: Check[T] = lambda value: (),
    keep: Callable[[Added], None] = lambda added: None,
    respell: Callable[[Any], Any] = lambda value: value,
    step: int | None = None,
) -> Structured[T]:
    """Ask for a value of `kind`. The model may use the dialogue's tools first.

    The form of the answer is added to the first message, the system message. `keep`
    receives what is `Added` to the conversation. `respell` corrects the decoded JSON to
    the spelling of `kind`.

    Raises `NoUsableAnswer`, and the errors of `Dialogue.turn`.
    """
    asked = conversation = add_form(messages, kind)
    best: Structured[T] | None = None
    problems: tuple[str, ...] = ()

    def keep_all(added: Added) -> None:
        nonlocal conversation
        conversation += added.messages
        keep(added)

    for number in range(1, TRIES + 1):
        turn = await dialogue.turn(conversation, keep=keep_all, step=step, hidden=FENCE)
        value, problems = _read_answer(turn, kind, respell)
        if value is not None:
            problems = tuple(check(value))
            best = Structured(value, turn.text.strip(), problems)
        if not problems or number == TRIES:
            break
        text = (
            f"The model's answer has a problem: {_summarize(problems)}. Asking again."
        )
        dialogue.emit(Notice(text, Tone.QUIET))
        complaint = Message("user", _complaint(problems))
        shortened = (*asked, conversation[-1], complaint)
        conversation = (*conversation, complaint)
        remaining = dialogue.remaining_tokens(conversation)
        if remaining is not None and remaining < 0:
            conversation = shortened
        keep(Added((complaint,)))
    if best is None:
        raise NoUsableAnswer(
            f"{dialogue.model.name} gave no usable answer in {TRIES} tries:"
            f" {_summarize(problems)}",
            hint="Try again, or use a model that follows instructions better.",
        )
    return best


def add_form(messages: Sequence[Message], kind: type[Struct]) -> tuple[Message, ...]:
    return extend_system(messages, describe_form(kind))


def describe_form(kind: type[Struct]) -> str:
    schema = json.dumps(schema_of(kind), ensure_ascii=False, separators=(",", ":"))
    return (
        f"# The form of your answer\n\nEnd each answer with one code block of `{FENCE}`"
        " that holds one JSON object of this schema, and nothing after it. People see"
        " only the words before it: do not repeat there what it"
        f" says.\n\n{fenced(schema, FENCE)}"
    )


def _read_answer(
    turn: Turn, kind: type[T], respell: Callable[[Any], Any]
) -> tuple[T | None, tuple[str, ...]]:
    if turn.problem:
        return None, (f"{turn.problem} Be briefer.",)
    written = _find_json(turn)
    if written is None:
        return None, (f"There is no code block of `{FENCE}` in the answer.",)
    try:
        return read(kind, respell(parse_json(written))), ()
    except WrongValue as error:
        return None, (str(error), _MORE_FAULTS)


def _find_json(turn: Turn) -> str | None:
    """Return the last block. Small models omit the code fence or its language."""
    if turn.blocks:
        return turn.blocks[-1]
    start, end = turn.text.find("{"), turn.text.rfind("}")
    if start < 0 or end < start:
        return None
    return turn.text[start : end + 1]


def _complaint(problems: Sequence[str]) -> str:
    lines = ["Your answer cannot be used as it is:", ""]
    for problem in problems[:_MOST_NAMED]:
        lines.append(f"- {problem}")
    if len(problems) > _MOST_NAMED:
        lines.append(f"- and {len(problems) - _MOST_NAMED} more")
    return "\n".join([*lines, "", "Send the whole answer again."])


def _summarize(problems: Sequence[str]) -> str:
    summary = problems[0].rstrip(".")
    if len(problems) > 1:
        summary += f" (and {len(problems) - 1} more)"
    return summary
