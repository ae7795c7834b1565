"""Answers that a program reads: JSON of a given type at the end of a reply, asked for
again when it is wrong.

A person sees the words before it, as they come, and not the JSON. It works with any
model that can write.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.dialogue.turns import Added, Dialogue, Turn
from cdd_agent.events.notices import Notice, Tone
from cdd_agent.llm.port import BadAnswer, Message
from cdd_agent.sanitize import fenced
from cdd_agent.typed_values import WrongValue, parse_json, read
from cdd_agent.value_schemas import schema_of

FENCE = "json"
TRIES = 3
"""Replies that a model gets to be right: the first and two more."""
_MOST_NAMED = 12
_MORE_FAULTS = "Compare the rest with the schema, too: only the first fault is named."

T = TypeVar("T", bound=Struct)

Check = Callable[[T], Sequence[str]]
"""Finds what is wrong with a value beyond its form, a sentence each; in words that a
model can act on.
"""


class Structured(Struct, Generic[T], frozen=True):
    """A model's answer. `problems` are those that it did not get rid of; its form is
    right all the same.
    """

    value: T
    text: str
    """The words before it."""
    problems: tuple[str, ...] = ()


class NoUsableAnswer(BadAnswer):
    """The model was asked again and again, and what it wrote cannot be read."""

    is_transient = False


async def structured(
    dialogue: Dialogue,
    messages: Sequence[Message],
    kind: type[T],
    *,
    check: Check[T] = lambda value: (),
    keep: Callable[[Added], None] = lambda added: None,
    respell: Callable[[Any], Any] = lambda value: value,
    step: int | None = None,
) -> Structured[T]:
    """Ask for a value of `kind`, with tools in between if the dialogue has some. `keep`
    is given what was `Added` to the conversation. `respell` receives the decoded JSON,
    and returns it in the spelling of `kind`.

    The first message is the system's; how to answer is added to it. Raises
    `NoUsableAnswer`, and what `Dialogue.turn` raises.
    """
    asked = spoken = with_form(messages, kind)
    best: Structured[T] | None = None
    problems: tuple[str, ...] = ()

    def keep_it(added: Added) -> None:
        nonlocal spoken
        spoken += added.messages
        keep(added)

    for left in reversed(range(TRIES)):
        turn = await dialogue.turn(spoken, keep=keep_it, step=step, hidden=FENCE)
        value, problems = _read(turn, kind, respell)
        if value is not None:
            problems = tuple(check(value))
            best = Structured(value, turn.text.strip(), problems)
            if not problems:
                break
        if left:
            dialogue.emit(
                Notice(
                    f"The answer is not right yet: {_short(problems)}. Asking again.",
                    Tone.QUIET,
                )
            )
            lines = [f"- {problem}" for problem in problems[:_MOST_NAMED]]
            lines += (
                [f"- and {len(problems) - _MOST_NAMED} more"]
                if len(problems) > _MOST_NAMED
                else []
            )
            complaint = [
                "Your answer cannot be used as it is:",
                "",
                *lines,
                "",
                "Send the whole answer again.",
            ]
            again = (Message("user", "\n".join(complaint)),)
            shortened = (*asked, spoken[-1], *again)
            spoken = (*spoken, *again)
            if not dialogue.leaves_room(spoken):
                spoken = shortened
            keep(Added(again))
    if best is None:
        raise NoUsableAnswer(
            f"{dialogue.model.name} was asked {TRIES} times, and its answer cannot be"
            f" used: {_short(problems)}",
            hint="Try again, or use a model that follows instructions better.",
        )
    return best


def with_form(messages: Sequence[Message], kind: type[Struct]) -> tuple[Message, ...]:
    """A conversation whose system's message says how to answer, too."""
    first, *others = messages
    return (
        replace(first, content=f"{first.content}\n\n{how_to_answer(kind)}"),
        *others,
    )


def how_to_answer(kind: type[Struct]) -> str:
    """The form of the answer as a prompt describes it."""
    schema = json.dumps(schema_of(kind), ensure_ascii=False, separators=(",", ":"))
    return (
        f"# The form of your answer\n\nEnd each answer with one code block of `{FENCE}`"
        " that holds one JSON object of this schema, and nothing after it. People see"
        " only the words before it: do not repeat there what it"
        f" says.\n\n{fenced(schema, FENCE)}"
    )


def _read(
    turn: Turn, kind: type[T], respell: Callable[[Any], Any]
) -> tuple[T | None, tuple[str, ...]]:
    """The value, or what is wrong with it."""
    if turn.problem:
        return None, (f"{turn.problem} Be briefer.",)
    text = turn.text  # small models leave out the code block, or its language
    written = (
        turn.blocks[-1]
        if turn.blocks
        else text[max(text.find("{"), 0) : text.rfind("}") + 1]
    )
    if not turn.blocks and not written.startswith("{"):
        return None, (f"There is no code block of `{FENCE}` in the answer.",)
    try:
        return read(kind, respell(parse_json(written))), ()
    except WrongValue as error:
        return None, (str(error), _MORE_FAULTS)


def _short(problems: Sequence[str]) -> str:
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return f"{problems[0].rstrip('.')}{more}"
