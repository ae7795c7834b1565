"""The common part of reading a reply in all wire protocols."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

from cdd_agent.llm.direct.characters import whole_characters
from cdd_agent.llm.direct.reported_failures import read_document
from cdd_agent.llm.direct.stop_reasons import stop_reason_of
from cdd_agent.llm.port import (
    Done,
    ModelEvent,
    ProviderData,
    StopReason,
    ToolCall,
    Usage,
)
from cdd_agent.llm.reply_stream import ReplyStream


class ReplyReader(ABC):
    """Builds one reply from the JSON texts of an answer."""

    def __init__(self, origin: str = "", *, has_tools: bool = True) -> None:
        """`origin` is the model and endpoint that may get the provider data back."""
        self.is_finished = False
        """The server reported why the reply ended."""
        self.is_empty = True
        """Nothing like a reply has arrived."""
        self._origin = origin
        self._stream = ReplyStream(has_tools=has_tools)
        self._stop_reason = StopReason.STOP
        self._stop_word = ""
        self._usage: Usage | None = None

    def read_text(self, text: str) -> Iterator[ModelEvent]:
        """Yield the events of a JSON text. Raises `ServerFailed` and `NoReply`."""
        yield from self.read_object(read_document(text))

    @abstractmethod
    def read_object(self, document: dict[str, Any]) -> Iterator[ModelEvent]:
        """Yield the events of a JSON object. Raises `ServerFailed`."""

    @abstractmethod
    def _calls(self) -> Sequence[ToolCall]: ...

    @abstractmethod
    def _data(self) -> object:
        """Return the JSON value to send back with the message, or None."""

    def end(self) -> Iterator[ModelEvent]:
        """Yield the remaining text and the calls of a finished reply. Raises
        `ServerFailed` for an unreadable call in the text.
        """
        yield from self._stream.end()
        # in a reply that was stopped, a call may be cut
        if self._stop_reason is StopReason.STOP:
            calls_in_text = self._stream.calls()
            yield from self._calls() or calls_in_text

    @property
    def done(self) -> Done:
        value = self._data()
        data = None
        if value is not None:
            text = json.dumps(value, ensure_ascii=False)
            data = ProviderData(self._origin, whole_characters(text))
        return Done(self._stop_reason, self._usage, data, self._stop_word)

    def _stop(self, word: str) -> None:
        """Raises `ServerFailed`."""
        reason = stop_reason_of(word)
        self.is_finished = True
        # a refusal in the text stays one
        if reason is StopReason.STOP:
            return
        self._stop_reason = reason
        self._stop_word = word if reason is StopReason.UNKNOWN else ""
