"""Cassettes: the calls of a run, written as a script with times, which `scripted.py`
plays.
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path

from msgspec import to_builtins

from cdd_agent.files.atomic import append_line
from cdd_agent.llm.port import (
    Done,
    Hear,
    Model,
    ModelError,
    ModelEvent,
    RateLimited,
    Request,
    TextDelta,
    ThoughtDelta,
)
from cdd_agent.llm.recorded_call import as_recorded
from cdd_agent.llm.script_file import EVENTS
from cdd_agent.llm.scripted_reply import ERRORS
from cdd_agent.llm.wrapper import ModelWrapper
from cdd_agent.redaction import Redactor

_NAMES = {kind: name for name, kind in EVENTS.items()}


class Recorded(ModelWrapper):
    """Adds each call that came to its end, or failed, to a cassette; one that nobody
    waited for says nothing.

    Secrets are redacted, also those that come in pieces. Raises `BadInput` when the
    disk refuses.
    """

    def __init__(self, model: Model, path: Path, redactor: Redactor) -> None:
        super().__init__(model)
        self._path, self._redactor = path, redactor

    async def reply(self, request: Request, hear: Hear) -> Done:
        began, events = time.monotonic(), list[tuple[float, ModelEvent | Done]]()

        def note(event: ModelEvent | Done) -> None:
            events.append((round(time.monotonic() - began, 3), event))

        def tell(event: ModelEvent) -> None:
            note(event)
            hear(event)

        try:
            done = await self.inner.reply(request, tell)
        except ModelError as error:
            self._keep(request, events, error)
            raise
        note(done)
        self._keep(request, events)
        return done

    def _keep(
        self,
        request: Request,
        events: list[tuple[float, ModelEvent | Done]],
        error: ModelError | None = None,
    ) -> None:
        line = {
            "model": self.name,
            "request": to_builtins(as_recorded(request, self._redactor)),
            "events": [
                [at, _NAMES[type(event)], to_builtins(event)]
                for at, event in self._redacted(events)
            ],
            "error": None,
        }
        if error is not None:
            kinds = (
                name
                for kind in type(error).__mro__
                for name, known in ERRORS.items()
                if known is kind
            )
            redact = self._redactor.redact
            told = {
                "kind": next(kinds, "bad_answer"),
                "message": redact(error.message),
                "hint": redact(error.hint),
            }
            waits = (
                {"retry_after": error.retry_after}
                if isinstance(error, RateLimited)
                else {}
            )
            line["error"] = told | waits
        data = json.dumps(line, ensure_ascii=False) + "\n"
        append_line(self._path, data.encode("utf-8", errors="replace"))

    def _redacted(
        self, events: list[tuple[float, ModelEvent | Done]]
    ) -> Iterator[tuple[float, ModelEvent | Done]]:
        """The same without secrets, which can lie across two pieces."""
        stream, at = self._redactor.stream(), 0.0
        kind: type[TextDelta | ThoughtDelta] = TextDelta
        for at, event in events:
            if type(event) is not kind and (rest := stream.end()):
                yield at, kind(rest)
            if isinstance(event, TextDelta | ThoughtDelta):
                kind = type(event)
                if text := stream.feed(event.text):
                    yield at, kind(text)
            else:
                yield at, self._redactor.redacted(event)
        if rest := stream.end():
            yield at, kind(rest)
