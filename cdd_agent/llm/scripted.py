"""A model that plays a script: for the demo, for tests, for bug reports that others can
replay, for a recorded run.
"""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Self

from cdd_agent.llm.pictures import has_pictures
from cdd_agent.llm.port import (
    FREE,
    BadAnswer,
    Done,
    Hear,
    ModelError,
    Price,
    Request,
)
from cdd_agent.llm.recorded_call import RecordedCall, as_recorded
from cdd_agent.llm.script_file import read_script
from cdd_agent.llm.scripted_reply import ScriptedReply
from cdd_agent.redaction import Redactor


class NoReplyLeft(BadAnswer):
    """A script has nothing to say to a request; asking again would not change that."""

    is_transient = False


class ScriptedModel:
    """Plays a script, and keeps what it was asked.

    Entries are for a certain request (`when`, or one that was recorded), and go first
    where it is made, or for any. So a run that is resumed in a new process, with the
    same script, still gets the reply that belongs to its step. Each is played once, in
    order; only one with `when` is played again, if no other fits: a step may be asked
    for once more. One with an empty `when` answers what no other fits.
    """

    def __init__(
        self,
        script: Iterable[str | ModelError | ScriptedReply | RecordedCall],
        *,
        pace: float = 0.0,
        name: str = "scripted",
        window: int | None = None,
        sees: bool | None = True,
        redactor: Redactor | None = None,
    ) -> None:
        """`redactor`: takes out of a request what it took out when it was recorded."""
        self.name = name
        self.window = window
        self.sees = sees
        self.pace = pace
        """Characters a second of what was written; 0: as fast as they are read."""
        self.requests: list[Request] = []
        self._redactor = redactor
        self._script = list[ScriptedReply | RecordedCall]()
        for line in script:
            match line:
                case str():
                    self._script.append(ScriptedReply(line))
                case ModelError():
                    self._script.append(ScriptedReply(error=line))
                case _:
                    self._script.append(line)
        self._left = list(self._script)

    @classmethod
    def from_file(
        cls, path: Path, redactor: Redactor | None = None, *, in_time: bool = True
    ) -> Self:
        """The script in a file, written or recorded. `in_time`: what comes keeps its
        pace. Raises `BadInput`.
        """
        pace, script = read_script(path)
        if not in_time:
            pace, script = (
                0.0,
                [
                    line.at_once() if isinstance(line, RecordedCall) else line
                    for line in script
                ],
            )
        recorded = [line for line in script if isinstance(line, RecordedCall)]
        sees = (
            any(has_pictures(call.request) for call in recorded) if recorded else True
        )
        name = "replay" if recorded else "scripted"
        return cls(
            script, pace=pace, name=name, sees=sees, redactor=redactor or Redactor()
        )

    @property
    def calls_tools(self) -> bool:
        """Some reply of the script does, or was offered some when it was recorded."""
        return any(entry.with_tools for entry in self._script)

    def next_reply(self, request: Request) -> ScriptedReply | RecordedCall:
        """Take the entry for `request` out of the script.

        An entry with `when` is played again if no other fits. One with an empty `when`
        is played only if no other fits, not even again.
        """
        self.requests.append(request)
        asked = as_recorded(request, self._redactor) if self._redactor else request
        unused = [entry for entry in self._left if entry.fits(asked)]
        again = [
            entry for entry in self._script if entry.goes_again and entry.fits(asked)
        ]
        fitting = [entry for entry in unused if not entry.is_fallback]
        fitting = fitting or [entry for entry in again if not entry.is_fallback]
        fitting = fitting or again
        if not fitting:
            raise self._no_reply(asked)
        chosen = next((entry for entry in fitting if not entry.is_for_any), fitting[0])
        self._left = [entry for entry in self._left if entry is not chosen]
        return chosen

    def _no_reply(self, request: Request) -> NoReplyLeft:
        recorded = [entry for entry in self._script if isinstance(entry, RecordedCall)]
        if not recorded:
            return NoReplyLeft(
                f"The script has no reply left for request {len(self.requests)}.",
                hint="Add a reply to the script, or a `when` that fits the request.",
            )
        left = [entry for entry in self._left if isinstance(entry, RecordedCall)]
        if count := sum(entry.fits(request) for entry in recorded):
            why = (
                f"it was recorded {count} time{'s' * (count > 1)}, and is made once"
                " more"
            )
        elif not left:
            why = "all that was recorded has been played"
        else:
            why = left[0].difference_to(request)
        return NoReplyLeft(
            f"The record has no answer to this request: {why}.",
            hint=(
                "Record the run again; the files, the plan and the settings must be as"
                " they were."
            ),
        )

    @property
    def price(self) -> Price:
        return FREE

    def warm_up(self) -> None:
        """Nothing is slow here."""

    async def check(self, *, connect: bool) -> None:
        """A script needs no key and no server."""

    async def reply(self, request: Request, hear: Hear) -> Done:
        entry, was_heard = self.next_reply(request), False
        try:
            for seconds, event in entry.timeline(lambda: self.pace):
                await asyncio.sleep(seconds)
                if event is not None:
                    hear(event)
            was_heard = True
        finally:
            if not was_heard:  # nobody waited for its end: it can be asked for again
                self._left.insert(0, entry)
        end = entry.end(request)
        if isinstance(end, ModelError):
            raise end
        return end
