"""Shared by the tests of dialogues: a turn, listened to until its end."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.dialogue.limits import Used
from cdd_agent.dialogue.structured import Structured, ask_structured
from cdd_agent.dialogue.turns import Added, Dialogue, Turn
from cdd_agent.events.dialogue_events import ReplyDelta
from cdd_agent.events.stream import Event
from cdd_agent.llm.port import Message

ASKED = (Message("system", "Be brief."), Message("user", "What is there?"))


@dataclass
class Heard:
    """All that came of a turn."""

    events: list[Event] = field(default_factory=list)
    added: list[Message] = field(default_factory=list)
    used: list[Used] = field(default_factory=list)
    end: object = None

    def keep(self, added: Added) -> None:
        self.added += added.messages
        self.used.append(added.used)

    @property
    def seen(self) -> str:
        return "".join(
            event.text for event in self.events if isinstance(event, ReplyDelta)
        )

    def of(self, kind: type) -> list[Event]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def turn(self) -> Turn:
        assert isinstance(self.end, Turn)
        return self.end

    @property
    def structured(self) -> Structured:
        assert isinstance(self.end, Structured)
        return self.end


async def heard(
    dialogue: Dialogue, messages: Sequence[Message] = ASKED, **how: Any
) -> Heard:
    """A turn of it."""
    result = Heard()
    result.end = await replace(dialogue, emit=result.events.append).turn(
        messages, keep=result.keep, **how
    )
    return result


async def answered(
    dialogue: Dialogue,
    kind: type[Struct],
    messages: Sequence[Message] = ASKED,
    **how: Any,
) -> Heard:
    """An answer that is asked of it in a form."""
    result = Heard()
    talk = replace(dialogue, emit=result.events.append)
    result.end = await ask_structured(talk, messages, kind, keep=result.keep, **how)
    return result


async def after_rounds(
    dialogue: Dialogue, rounds: int, messages: Sequence[Message] = ASKED
) -> tuple[Message, ...]:
    """The words so far of a turn that is stopped after so many rounds."""
    spoken = tuple(messages)

    def keep(added: Added) -> None:
        nonlocal spoken, rounds
        spoken, rounds = (*spoken, *added.messages), rounds - 1
        if not rounds:
            raise asyncio.CancelledError

    with suppress(asyncio.CancelledError):
        await dialogue.turn(messages, keep=keep)
    return spoken
