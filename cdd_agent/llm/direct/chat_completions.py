"""OpenAI's chat completions as JSON: a request as they want it, and a reply put together from its pieces.

The other modules of this package know how the bytes travel. What servers write is never trusted to have a shape.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from cdd_agent.llm.direct.protocol import Call, NoReply, ServerFailed
from cdd_agent.llm.direct.stop_reasons import stop_reason_of
from cdd_agent.llm.failures import Failure, status_of
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
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": _sendable(call.arguments)}}
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        content["tool_call_id"] = message.tool_call_id
    return content


def _sendable(arguments: str) -> str:
    """Arguments as a server takes them back: some refuse a conversation in which a model wrote broken JSON."""
    return (
        arguments
        if isinstance(read_json(arguments), dict)
        else json.dumps({"not_json": arguments} if arguments else {})
    )


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
        choices = _list(document.get("choices"))
        if not choices and "choices" not in document and "usage" not in document:
            return  # a piece of another kind, as some servers mix in
        self.empty = False
        for choice in map(_dict, choices[:1]):
            yield from self._choice(choice)

    def end(self) -> Iterator[ModelEvent]:
        if rest := self._characters.end():
            yield TextDelta(rest)
        yield from last_events(Done(self._stop_reason, self._usage, stop_word=self._stop_word), self._calls)

    def _choice(self, choice: dict[str, Any]) -> Iterator[ModelEvent]:
        piece = _dict(choice.get("delta")) or _dict(choice.get("message"))
        if refusal := _string(piece.get("refusal")):
            self._stop_reason = StopReason.REFUSED
            yield TextDelta(_whole_characters(refusal))
        if text := self._characters.take(_text(piece.get("content"))):
            yield TextDelta(text)
        for call in map(_dict, _list(piece.get("tool_calls"))):
            function, index = _dict(call.get("function")), call.get("index")
            arguments = function.get("arguments")
            self._calls.add(
                index if isinstance(index, int) else None,
                _string(call.get("id")),
                _string(function.get("name")),
                json.dumps(arguments) if isinstance(arguments, dict) else _string(arguments),
            )
        if "delta" not in choice and "message" in choice:
            self.finished = True  # a whole answer, whatever it says
        if word := _string(choice.get("finish_reason")):
            reason = stop_reason_of(word)
            self.finished = True
            if reason is not StopReason.STOP:  # what was refused above stays so
                self._stop_reason = reason
                self._stop_word = word if reason is StopReason.UNKNOWN else ""


def failure_in(document: dict[str, Any], status: int | None = None) -> Failure | None:
    """The failure that an answer reports, in any of the forms in which servers do. `status`: the answer's own."""
    error = document.get("error")
    if error is None and (document.get("object") == "error" or document.get("type") == "error" or status):
        error = document
    if not error:
        return None
    facts = error if isinstance(error, dict) else {}
    codes = [facts.get(name) for name in ("code", "status", "type")]
    said = error if isinstance(error, str) else facts.get("message") or facts.get("detail")
    raw = _dict(facts.get("metadata")).get("raw")  # what the provider behind OpenRouter said
    words = " ".join(dict.fromkeys(_as_text(part) for part in (said, raw) if part)) or _as_text(error)
    all_words = "\n".join([words, *map(str, codes)])
    return Failure(status=status or status_of(*codes), words=words, all_words=all_words)


def failure_of(text: str, status: int) -> Failure:
    """The failure that the body of a refusal tells of, JSON or not."""
    document = read_json(text)
    document = document[0] if isinstance(document, list) and document else document
    told = failure_in(document, status) if isinstance(document, dict) else None
    return told or Failure(status=status, words=text, all_words=text)


def _usage(counted: object) -> Usage | None:
    numbers = [_dict(counted).get(name) for name in ("prompt_tokens", "completion_tokens")]
    if not any(isinstance(number, int) for number in numbers):
        return None
    prompt, completion = (number if isinstance(number, int) else 0 for number in numbers)
    return Usage(prompt, completion)


def _text(content: object) -> str:
    """A message's text, which some send as a list of parts; thoughts are no text."""
    if isinstance(content, list):
        return "".join(_string(part.get("text")) for part in map(_dict, content) if part.get("type") == "text")
    return _string(content)


def read_json(text: str) -> Any:
    """The JSON value that a text is, or None."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""
