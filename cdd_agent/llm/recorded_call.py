"""An entry of a script that was recorded: the request itself, and what came, with its
times.
"""

import re
from collections.abc import Callable, Iterator
from functools import cached_property
from hashlib import sha256

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.llm.port import Done, Message, ModelError, ModelEvent, Request
from cdd_agent.redaction import Redactor

_DIFFERS_ALWAYS = re.compile(r"\b\d+(?:\.\d+)? ?m?s\b|\b0x[0-9a-f]{6,}\b")
"""The parts of a test run's output that are new each time: how long it took, and
addresses of objects.
"""
_LONGEST_QUOTE = 80


class RecordedCall(Struct, frozen=True, dict=True):
    """Is for the same request again, once."""

    request: Request
    """Without secrets, as `as_recorded` makes it."""
    events: tuple[tuple[float, ModelEvent], ...]
    """Each with its seconds since the beginning of the call."""
    seconds: float
    """The same of its end."""
    result: Done | ModelError

    is_for_any = False
    goes_again = False
    is_fallback = False

    @property
    def with_tools(self) -> bool:
        return bool(self.request.tools)

    def at_once(self) -> "RecordedCall":
        return replace(
            self, events=tuple((0.0, event) for _, event in self.events), seconds=0.0
        )

    def fits(self, request: Request) -> bool:
        return self._compared == _compared(request)

    def end(self, request: Request) -> Done | ModelError:
        return self.result

    def timeline(
        self, pace: Callable[[], float]
    ) -> Iterator[tuple[float, ModelEvent | None]]:
        """As it came, each with the seconds to wait before it; the last is the end."""
        now = 0.0
        for at, event in (*self.events, (self.seconds, None)):
            yield max(0.0, at - now), event
            now = at

    def difference_to(self, request: Request) -> str:
        """The first place where a request is not this one."""
        before, now = self._compared, _compared(request)
        for number, ((speaker, old), (role, new)) in enumerate(
            zip(before, now, strict=False), 1
        ):
            lines = zip(old.split("\n"), new.split("\n"), strict=False)
            if place := next(
                ((line, a, b) for line, (a, b) in enumerate(lines, 1) if a != b), None
            ):
                line, a, b = place
                return (
                    f"in message {number} ({role}), line {line}, it was {_quoted(a)}"
                    f" and is {_quoted(b)}"
                )
            if old != new:
                return (
                    f"message {number} ({role}) is"
                    f" {'longer' if len(new) > len(old) else 'shorter'} than it was"
                )
            if role != speaker:
                return f"message {number} is of the {role}, and was of the {speaker}"
        return f"the messages are {len(now)}, and were {len(before)}"

    @cached_property
    def _compared(self) -> list[tuple[str, str]]:
        return _compared(self.request)


def as_recorded(request: Request, redactor: Redactor) -> Request:
    """Without secrets, and with the hash of a picture. A tool's definition is the
    program's own text, without any.
    """

    def brief(message: Message) -> Message:
        pictures = (
            replace(picture, data=sha256(picture.data).digest())
            for picture in message.pictures
        )
        return (
            replace(message, pictures=tuple(pictures)) if message.pictures else message
        )

    return Request(
        tuple(redactor.redacted(brief(message)) for message in request.messages),
        request.tools,
    )


def _compared(request: Request) -> list[tuple[str, str]]:
    """The part of a request that is compared: who says what, without what differs each
    time.
    """
    compared = list[tuple[str, str]]()
    for message in request.messages:
        calls = (f"{call.name} {call.arguments}" for call in message.tool_calls)
        pictures = (
            f"{picture.name} {picture.data.hex()}" for picture in message.pictures
        )
        content = "\n".join([message.content, *calls, *pictures])
        compared.append((message.role, _DIFFERS_ALWAYS.sub("…", content)))
    return compared


def _quoted(line: str) -> str:
    return repr(line if len(line) <= _LONGEST_QUOTE else f"{line[:_LONGEST_QUOTE]}…")
