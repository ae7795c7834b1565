"""A model that plays a cassette: a recorded run again, without a network."""

import asyncio
import re
from pathlib import Path
from typing import Self

from cdd_agent.llm.cassette import RecordedCall, read_calls, redacted
from cdd_agent.llm.known_models import FREE, Price
from cdd_agent.llm.pictures import has_pictures
from cdd_agent.llm.port import Done, Hear, Message, Request
from cdd_agent.llm.scripted import NoReplyLeft
from cdd_agent.redaction import Redactor

_DIFFERS_ALWAYS = re.compile(r"\b\d+(?:\.\d+)? ?m?s\b|\b0x[0-9a-f]{6,}\b")
"""What a test run prints differently each time: how long it took, and addresses of objects."""
_LONGEST_QUOTE = 80


class ReplayedModel:
    """Plays a cassette: a request gets what the same request got when it was recorded.

    One that was made more than once gets its answers in that order. One that was not recorded is a `NoReplyLeft` that
    says what differs.
    """

    def __init__(
        self, calls: list[RecordedCall], redactor: Redactor, *, name: str = "replay", in_time: bool = False
    ) -> None:
        """`in_time`: pieces come as far apart as they did."""
        self.name = name
        self._left, self._all = list(calls), calls
        self._redactor, self._in_time = redactor, in_time

    @property
    def calls_tools(self) -> bool:
        """It was offered some when it was recorded."""
        return any(call.request.tools for call in self._all)

    @property
    def sees(self) -> bool:
        """It was sent some when it was recorded."""
        return any(map(has_pictures, (call.request for call in self._all)))

    @property
    def window(self) -> None:
        """Not known: what was recorded is what is asked."""

    @classmethod
    def from_file(cls, path: Path, redactor: Redactor, *, in_time: bool = False) -> Self:
        """Raises `BadInput` for a file that is no cassette."""
        return cls(read_calls(path), redactor, in_time=in_time)

    @property
    def price(self) -> Price:
        return FREE

    def warm_up(self) -> None:
        """Nothing is slow here."""

    async def reply(self, request: Request, hear: Hear) -> Done:
        call, now = self._take(redacted(request, self._redactor)), 0.0
        for at, event in (*call.events, (call.seconds, None)):
            if self._in_time:
                await asyncio.sleep(max(0.0, at - now))
            now = at
            if event is not None:
                hear(event)
        if isinstance(call.end, Done):
            return call.end
        raise call.end

    def _take(self, request: Request) -> RecordedCall:
        wanted = _compared(request)
        found = next((call for call in self._left if _compared(call.request) == wanted), None)
        if found is None:
            raise self._unknown(request)
        self._left = [call for call in self._left if call is not found]
        return found

    def _unknown(self, request: Request) -> NoReplyLeft:
        wanted = _compared(request)
        if count := sum(_compared(call.request) == wanted for call in self._all):
            why = f"it was recorded {count} time{'s' * (count > 1)}, and is made once more"
        elif not self._left:
            why = "all that was recorded has been played"
        else:
            why = _difference(self._left[0].request, request)
        return NoReplyLeft(
            f"The record has no answer to this request: {why}.",
            hint="Record the run again; the files, the plan and the settings must be as they were.",
        )


def _compared(request: Request) -> list[tuple[str, str]]:
    """What makes two requests the same: who says what, without what differs each time."""
    return [(message.role, _DIFFERS_ALWAYS.sub("…", _content(message))) for message in request.messages]


def _content(message: Message) -> str:
    calls = (f"{call.name} {call.arguments}" for call in message.tool_calls)
    pictures = (f"{picture.name} {picture.data.hex()}" for picture in message.pictures)
    return "\n".join([message.content, *calls, *pictures])


def _difference(recorded: Request, made: Request) -> str:
    """The first place where a request is not the one that would have been next."""
    before, now = _compared(recorded), _compared(made)
    for number, ((speaker, old), (role, new)) in enumerate(zip(before, now, strict=False), 1):
        lines = zip(old.split("\n"), new.split("\n"), strict=False)
        if place := next(((line, a, b) for line, (a, b) in enumerate(lines, 1) if a != b), None):
            line, a, b = place
            return f"in message {number} ({role}), line {line}, it was {_quoted(a)} and is {_quoted(b)}"
        if old != new:
            return f"message {number} ({role}) is {'longer' if len(new) > len(old) else 'shorter'} than it was"
        if role != speaker:
            return f"message {number} is of the {role}, and was of the {speaker}"
    return f"the messages are {len(now)}, and were {len(before)}"


def _quoted(line: str) -> str:
    return repr(line if len(line) <= _LONGEST_QUOTE else f"{line[:_LONGEST_QUOTE]}…")
