"""Record a model's calls in a file that a scripted model can play."""

import time
from copy import copy
from pathlib import Path

from cdd_agent.llm.port import (
    Done,
    Model,
    ModelError,
    ModelEvent,
    OnEvent,
    Request,
    TextDelta,
    ThoughtDelta,
)
from cdd_agent.llm.request_comparison import as_recorded
from cdd_agent.llm.script_file import append_call
from cdd_agent.llm.scripted_reply import ScriptedReply, TimedEvent
from cdd_agent.llm.wrapper import ModelWrapper
from cdd_agent.text.redaction import Redactor


class RecordingModel(ModelWrapper):
    """Records each call that ended or failed, but none that was stopped. Secrets are
    redacted, even across pieces. Raises `BadInput` if the disk refuses.
    """

    def __init__(self, model: Model, path: Path, redactor: Redactor) -> None:
        super().__init__(model)
        self._path, self._redactor = path, redactor

    async def reply(self, request: Request, on_event: OnEvent) -> Done:
        began = time.monotonic()
        events: list[TimedEvent] = []

        def record(event: ModelEvent) -> None:
            events.append(TimedEvent(_seconds_since(began), event))
            on_event(event)

        done: Done | None = None
        failure: ModelError | None = None
        try:
            done = await self.inner.reply(request, record)
        except ModelError as error:
            failure = copy(error)
            failure.message = self._redactor.redact(error.message)
            failure.hint = self._redactor.redact(error.hint)
            raise
        finally:
            if done is not None or failure is not None:
                recorded = ScriptedReply(
                    request=as_recorded(request, self._redactor),
                    events=tuple(self._redact(events)),
                    seconds=_seconds_since(began),
                    done=self._redactor.redacted(done),
                    error=failure,
                )
                append_call(self._path, self.name, recorded)
        return done

    def _redact(self, events: list[TimedEvent]) -> list[TimedEvent]:
        redacted: list[TimedEvent] = []
        stream = self._redactor.stream()
        kind: type[TextDelta | ThoughtDelta] = TextDelta
        seconds = 0.0

        def add(text: str) -> None:
            if text:
                redacted.append(TimedEvent(seconds, kind(text)))

        for timed in events:
            event, seconds = timed.event, timed.seconds
            if type(event) is not kind:
                add(stream.end())
            if isinstance(event, TextDelta | ThoughtDelta):
                kind = type(event)
                add(stream.feed(event.text))
            else:
                redacted.append(TimedEvent(seconds, self._redactor.redacted(event)))
        add(stream.end())
        return redacted


def _seconds_since(began: float) -> float:
    return round(time.monotonic() - began, 3)
