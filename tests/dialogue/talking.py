"""What the tests of dialogues share: a turn, listened to until its end."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field

from cdd_agent.dialogue.structured import Structured
from cdd_agent.dialogue.turns import Added, Turn
from cdd_agent.events import Event, ReplyDelta
from cdd_agent.llm.port import Message

ASKED = (Message("system", "Be brief."), Message("user", "What is there?"))


@dataclass
class Heard:
    """All that came of a turn."""

    events: list[Event] = field(default_factory=list)
    added: list[Message] = field(default_factory=list)
    end: object = None

    @property
    def seen(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, ReplyDelta))

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


async def heard(items: AsyncGenerator[object, None]) -> Heard:
    result = Heard()
    async with aclosing(items):
        async for item in items:
            assert result.end is None, "something came after the end"
            match item:
                case Added(messages=messages):
                    result.added += messages
                case Turn() | Structured():
                    result.end = item
                case _:
                    result.events.append(item)
    return result
