"""Requests of OpenAI's Responses API. Nothing is stored there, so all output of the
model goes back unchanged. `response_reader.py` reads the answer.

Rules: developers.openai.com/api/docs (reasoning, conversation state, prompt caching)
and the types of OpenAI's own client.
"""

import re
from hashlib import sha256
from typing import Any
from uuid import uuid4

from cdd_agent.llm.direct.chat_completions import write_function
from cdd_agent.llm.direct.dialects import openai_effort
from cdd_agent.llm.direct.json_values import (
    as_dict,
    as_list,
    read_json,
    sendable_arguments,
)
from cdd_agent.llm.direct.protocol import Call
from cdd_agent.llm.direct.refused_fields import RefusedFields
from cdd_agent.llm.direct.response_reader import ResponseReader
from cdd_agent.llm.failures import Failure
from cdd_agent.llm.known_models import known_model
from cdd_agent.llm.options import NO_OPTIONS, Effort, ModelOptions
from cdd_agent.llm.pictures import data_url, parts_with_pictures
from cdd_agent.llm.port import Message, Picture, Request
from cdd_agent.llm.providers import Endpoint
from cdd_agent.pattern import Pattern

_Json = dict[str, Any]

_LONGEST_CALL_ID = 64
_OPTIONAL = {
    "include": r"^include\b|'include\b|encrypted content is not supported",
    "reasoning": r"^reasoning$|(?:parameter|argument):? '?reasoning\b(?![._])",
    "reasoning.summary": r"reasoning[._ ]summar",
    "reasoning.effort": r"reasoning[._ ]effort",
    "temperature": r"\btemperature\b",
    "max_output_tokens": r"\bmax_output_tokens\b",
    "prompt_cache_key": r"\bprompt_cache_key\b",
    "stream": r"^stream$|verified to stream\b",
}
_REFUSES_ITEMS = Pattern(
    r"encrypted.content(?! is not supported)|without its required|not persisted|unknown"
    r" parameter: 'input\[",
    re.IGNORECASE,
)


class OpenAIResponses:
    """The protocol of OpenAI's newer models, for one model."""

    path = "/responses"

    def __init__(
        self, name: str, endpoint: Endpoint, options: ModelOptions = NO_OPTIONS
    ) -> None:
        self._endpoint, self._options = endpoint, options
        self._origin = endpoint.origin("responses")
        self._facts = known_model(name)
        self._refused = RefusedFields(_OPTIONAL)
        self._returns_items = True
        self._cache_key = uuid4().hex

    def call(self, request: Request) -> Call:
        instructions = []
        items: list[_Json] = []
        for message in request.messages:
            if message.role == "system" and not items:
                instructions.append(message.content)
            else:
                items += self._items(message)
        body: _Json = {
            "model": self._endpoint.model,
            "input": items,
            "store": False,
            "stream": True,
            "prompt_cache_key": self._cache_key,
            **self._settings(),
        }
        if instructions:
            body["instructions"] = "\n\n".join(instructions)
        if request.tools:
            body["tools"] = [
                # strict, the default, requires every parameter
                {"type": "function", **write_function(tool), "strict": False}
                for tool in request.tools
            ]
        fields = self._refused.remove_from(body)
        return Call({**fields, **self._options.body}, self._endpoint.bearer)

    def reader(self, request: Request) -> ResponseReader:
        return ResponseReader(self._origin, has_tools=bool(request.tools))

    def adapts_to(self, failure: Failure) -> bool:
        if failure.status not in (400, 404, 422):
            return False
        if self._returns_items and _REFUSES_ITEMS.search(failure.all_words):
            self._returns_items = False
            return True
        return self._refused.learn(failure.all_words)

    def _settings(self) -> _Json:
        options, facts = self._options, self._facts
        fields: _Json = {}
        if facts.thinks is not False:
            fields["include"] = ["reasoning.encrypted_content"]
            reasoning = self._reasoning()
            if reasoning:
                fields["reasoning"] = reasoning
        takes_temperature = not (facts.thinks or facts.refuses_sampling)
        if options.temperature is not None and takes_temperature:
            fields["temperature"] = options.temperature
        if options.max_output_tokens is not None:
            fields["max_output_tokens"] = options.max_output_tokens
        return fields

    def _reasoning(self) -> _Json:
        effort = self._options.effort
        reasoning = {}
        if effort is not None and "reasoning.effort" not in self._refused:
            reasoning["effort"] = openai_effort(effort, self._facts)
        is_seen = self._options.watched and effort is not Effort.NONE
        if is_seen and "reasoning.summary" not in self._refused:
            reasoning["summary"] = "auto"
        return reasoning

    def _items(self, message: Message) -> list[_Json]:
        if message.role == "tool":
            return [
                {
                    "type": "function_call_output",
                    "call_id": _call_id(message.tool_call_id or ""),
                    "output": message.content,
                }
            ]
        if message.role == "assistant":
            return self._original_items(message) or _assistant_items(message)
        if message.pictures:
            parts = parts_with_pictures(message, "input_text", _image_part)
            return [{"role": message.role, "content": parts}]
        return [{"role": message.role, "content": message.content}]

    def _original_items(self, message: Message) -> list[_Json]:
        """Return the original items of a message, all or none. The API refuses a call
        without its reasoning or without an answer.
        """
        data = message.data_from(self._origin) if self._returns_items else ""
        items = [as_dict(item) for item in as_list(read_json(data))]
        calls = []
        for item in items:
            if item.get("type") == "function_call":
                calls.append(item.get("call_id"))
        return items if calls == [call.id for call in message.tool_calls] else []


def _assistant_items(message: Message) -> list[_Json]:
    items: list[_Json] = []
    if message.content or not message.tool_calls:
        items.append({"role": "assistant", "content": message.content})
    for call in message.tool_calls:
        items.append(
            {
                "type": "function_call",
                "call_id": _call_id(call.id),
                "name": call.name,
                "arguments": sendable_arguments(call.arguments),
            }
        )
    return items


def _image_part(picture: Picture) -> _Json:
    return {"type": "input_image", "image_url": data_url(picture), "detail": "auto"}


def _call_id(call_id: str) -> str:
    if len(call_id) <= _LONGEST_CALL_ID:
        return call_id
    return sha256(call_id.encode(errors="replace")).hexdigest()
