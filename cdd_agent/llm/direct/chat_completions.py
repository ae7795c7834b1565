"""OpenAI's chat completions as JSON: a request as they want it, and a reply put together from its pieces.

The other modules of this package know how the bytes travel. What servers write is never trusted to have a shape.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from cdd_agent.llm.direct.json_values import as_dict, as_list, as_string, read_json, sendable_arguments
from cdd_agent.llm.direct.protocol import Call, NoReply, ServerFailed
from cdd_agent.llm.direct.reported_failures import failure_in
from cdd_agent.llm.direct.stop_reasons import stop_reason_of
from cdd_agent.llm.failures import Failure
from cdd_agent.llm.options import NO_OPTIONS, ModelOptions
from cdd_agent.llm.port import Done, Message, ModelEvent, Request, StopReason, TextDelta, ToolCall, Usage
from cdd_agent.llm.providers import Endpoint


def messages_of(request: Request) -> list[dict[str, Any]]:
    """The messages of a request, as JSON."""
    return [_message(message) for message in request.messages]


def tools_of(request: Request) -> list[dict[str, Any]]:
    """The tools of a request, as JSON."""
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)},
        }
        for tool in request.tools
    ]


def _message(message: Message) -> dict[str, Any]:
    content: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        content["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": sendable_arguments(call.arguments)},
            }
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        content["tool_call_id"] = message.tool_call_id
    return content


class Characters:
    """Text in pieces, as whole characters: JSON may hold half of one, and some servers cut between the halves."""

    def __init__(self) -> None:
        self._half = ""

    def take(self, piece: str) -> str:
        """What is whole of the text by now."""
        text, self._half = self._half + piece, ""
        if "\ud800" <= text[-1:] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return _whole_characters(text)

    def end(self) -> str:
        """What is left, when no more will come."""
        return _whole_characters(self._half)


def _whole_characters(text: str) -> str:
    """Two halves that belong together are one character; one alone is shown as `\ufffd`."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


@dataclass
class _CallInPieces:
    id: str
    name: str
    arguments: list[str] = field(default_factory=list)


class ToolCallPieces:
    """Puts calls together from pieces that may arrive interleaved, numbered or not."""

    def __init__(self) -> None:
        self._calls: list[_CallInPieces] = []
        self._at: dict[int, _CallInPieces] = {}
        """The call that a number stands for now: some servers give every call the number 0."""

    def add(self, index: int | None, id_: str, name: str, arguments: str) -> None:
        """Take a piece; what it leaves out is empty."""
        call = self._at.get(index) if index is not None else (self._calls[-1] if self._calls else None)
        if call is None or self._begins_another(call, index, id_, name):
            call = _CallInPieces(id_ or f"call_{len(self._calls) + 1}", name)
            self._calls.append(call)
        call.name = call.name or name
        call.arguments.append(arguments)
        if index is not None:
            self._at[index] = call

    def _begins_another(self, call: _CallInPieces, index: int | None, id_: str, name: str) -> bool:
        """Whether a piece that has the number of `call` is not its continuation: that one brings no new name."""
        if not name or id_ == call.id:
            return False
        return bool(id_) or index is None or name != call.name

    def whole(self) -> list[ToolCall]:
        """The calls, in the order in which they began."""
        parts = ((call.id, call.name, "".join(call.arguments)) for call in self._calls)
        return [ToolCall(*map(_whole_characters, part)) for part in parts]


def last_events(done: Done, calls: ToolCallPieces) -> Iterator[ModelEvent]:
    """How a reply ends: its calls, then `Done`. Of a reply that is not whole no call is given: it may be cut, too."""
    if done.stop_reason is StopReason.STOP:
        yield from calls.whole()
    yield done


class ChatCompletions:
    """The protocol that most servers speak."""

    path = "/chat/completions"

    def __init__(self, endpoint: Endpoint, options: ModelOptions = NO_OPTIONS) -> None:
        self._endpoint, self._options = endpoint, options
        self._asks_for_usage = True

    def call(self, request: Request) -> Call:
        body: dict[str, Any] = {"model": self._endpoint.model, "messages": messages_of(request), "stream": True}
        if self._asks_for_usage:
            body["stream_options"] = {"include_usage": True}
        if request.tools:
            body["tools"] = tools_of(request)
        key = self._endpoint.key
        headers = {"Authorization": f"Bearer {key}"} if key is not None else {}
        return Call({**body, **self._options.body}, headers)

    def reader(self) -> "Reply":
        return Reply()

    def adapts_to(self, failure: Failure) -> bool:
        """Some servers do not know `stream_options`, by which they are asked for the usage."""
        was_asked = self._asks_for_usage and failure.status in (400, 422)
        if was_asked and re.search("stream_options|include_usage", failure.all_words):
            self._asks_for_usage = False
            return True
        return False


class Reply:
    """One reply in the making."""

    def __init__(self) -> None:
        self.finished = False
        self.empty = True
        self._stop_reason = StopReason.STOP
        self._stop_word = ""
        self._usage: Usage | None = None
        self._calls = ToolCallPieces()
        self._characters = Characters()

    def take(self, text: str) -> Iterator[ModelEvent]:
        document = read_json(text)
        if not isinstance(document, dict):
            raise NoReply("not a JSON object")
        if failure := failure_in(document):
            raise ServerFailed(failure)
        self._usage = _usage(document.get("usage")) or self._usage
        choices = as_list(document.get("choices"))
        if not choices and "choices" not in document and "usage" not in document:
            return  # a piece of another kind, as some servers mix in
        self.empty = False
        for choice in map(as_dict, choices[:1]):
            yield from self._choice(choice)

    def end(self) -> Iterator[ModelEvent]:
        if rest := self._characters.end():
            yield TextDelta(rest)
        yield from last_events(Done(self._stop_reason, self._usage, stop_word=self._stop_word), self._calls)

    def _choice(self, choice: dict[str, Any]) -> Iterator[ModelEvent]:
        piece = as_dict(choice.get("delta")) or as_dict(choice.get("message"))
        if refusal := as_string(piece.get("refusal")):
            self._stop_reason = StopReason.REFUSED
            yield TextDelta(_whole_characters(refusal))
        if text := self._characters.take(_text(piece.get("content"))):
            yield TextDelta(text)
        for call in map(as_dict, as_list(piece.get("tool_calls"))):
            function, index = as_dict(call.get("function")), call.get("index")
            arguments = function.get("arguments")
            self._calls.add(
                index if isinstance(index, int) else None,
                as_string(call.get("id")),
                as_string(function.get("name")),
                json.dumps(arguments) if isinstance(arguments, dict) else as_string(arguments),
            )
        if "delta" not in choice and "message" in choice:
            self.finished = True  # a whole answer, whatever it says
        if word := as_string(choice.get("finish_reason")):
            reason = stop_reason_of(word)
            self.finished = True
            if reason is not StopReason.STOP:  # what was refused above stays so
                self._stop_reason = reason
                self._stop_word = word if reason is StopReason.UNKNOWN else ""


def _usage(counted: object) -> Usage | None:
    numbers = [as_dict(counted).get(name) for name in ("prompt_tokens", "completion_tokens")]
    if not any(isinstance(number, int) for number in numbers):
        return None
    prompt, completion = (number if isinstance(number, int) else 0 for number in numbers)
    return Usage(prompt, completion)


def _text(content: object) -> str:
    """A message's text, which some send as a list of parts; thoughts are no text."""
    if isinstance(content, list):
        return "".join(as_string(part.get("text")) for part in map(as_dict, content) if part.get("type") == "text")
    return as_string(content)
