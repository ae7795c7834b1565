"""OpenAI's Responses API as JSON, without storage there: all that a model put out goes
back as it came.

The rules are those of developers.openai.com/api/docs (reasoning, conversation state,
prompt caching) and of the types of OpenAI's own client. `response_reader.py` reads the
answer.
"""

import re
from hashlib import sha256
from itertools import takewhile
from typing import Any
from uuid import uuid4

from cdd_agent.llm.direct.dialects import openai_effort
from cdd_agent.llm.direct.json_values import (
    as_dict,
    as_list,
    read_json,
    sendable_arguments,
)
from cdd_agent.llm.direct.protocol import Call
from cdd_agent.llm.direct.response_reader import ResponseReader
from cdd_agent.llm.failures import Failure
from cdd_agent.llm.known_models import known_model
from cdd_agent.llm.options import NO_OPTIONS, Effort, ModelOptions
from cdd_agent.llm.pictures import data_url
from cdd_agent.llm.port import Message, Request
from cdd_agent.llm.providers import Endpoint

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
"""Fields, and parts of them, that can be left out where a server refuses them, and how
a refusal names them.
"""
_REFUSES_ITEMS = re.compile(
    r"encrypted.content(?! is not supported)|without its required|not persisted|unknown"
    r" parameter: 'input\[",
    re.IGNORECASE,
)


class OpenAIResponses:
    """OpenAI's models, and whoever else speaks this protocol."""

    path = "/responses"

    def __init__(
        self, name: str, endpoint: Endpoint, options: ModelOptions = NO_OPTIONS
    ) -> None:
        self._endpoint, self._options = endpoint, options
        self._origin = endpoint.origin("responses")
        self._known = known_model(name)
        self._left_out: set[str] = set()
        """Fields, and parts of them, that this server or model has refused."""
        self._returns_items = True
        self._cache_key = uuid4().hex

    def call(self, request: Request) -> Call:
        system = [
            message.content
            for message in takewhile(
                lambda message: message.role == "system", request.messages
            )
        ]
        spoken = request.messages[len(system) :]
        body: dict[str, Any] = {
            "model": self._endpoint.model,
            "input": [item for message in spoken for item in self._items(message)],
            "store": False,
            "stream": True,
            "prompt_cache_key": self._cache_key,
            **self._settings(),
        }
        if system:
            body["instructions"] = "\n\n".join(system)
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": dict(tool.parameters),
                    # the default here would want every parameter to be required
                    "strict": False,
                }
                for tool in request.tools
            ]
        fields = {
            name: value for name, value in body.items() if name not in self._left_out
        }
        return Call({**fields, **self._options.body}, self._endpoint.bearer)

    def reader(self, request: Request) -> ResponseReader:
        return ResponseReader(self._origin, has_tools=bool(request.tools))

    def adapts_to(self, failure: Failure) -> bool:
        if failure.status not in (400, 404, 422):
            return False
        words = failure.all_words
        if self._returns_items and _REFUSES_ITEMS.search(words):
            self._returns_items = False
            return True
        named = {
            name
            for name, wording in _OPTIONAL.items()
            if re.search(wording, words, re.IGNORECASE | re.MULTILINE)
        }
        refused = named - self._left_out
        self._left_out |= refused
        return bool(refused)

    def _settings(self) -> dict[str, Any]:
        """The settings of a person, as far as the model takes them."""
        options, may_think = self._options, self._known.thinks is not False
        fields: dict[str, Any] = {}
        if may_think:
            fields["include"] = ["reasoning.encrypted_content"]
            effort, reasoning = options.effort, dict[str, str]()
            if effort is not None and "reasoning.effort" not in self._left_out:
                reasoning["effort"] = openai_effort(effort, self._known)
            if (
                options.watched
                and effort is not Effort.NONE
                and "reasoning.summary" not in self._left_out
            ):
                reasoning["summary"] = "auto"
            if reasoning:
                fields["reasoning"] = reasoning
        if options.temperature is not None and not (
            self._known.thinks or self._known.refuses_sampling
        ):
            fields["temperature"] = options.temperature
        if options.max_output_tokens is not None:
            fields["max_output_tokens"] = options.max_output_tokens
        return fields

    def _items(self, message: Message) -> list[dict[str, Any]]:
        if message.role == "tool":
            answered = _call_id(message.tool_call_id or "")
            return [
                {
                    "type": "function_call_output",
                    "call_id": answered,
                    "output": message.content,
                }
            ]
        if message.role != "assistant":
            parts: list[dict[str, Any]] = []
            for picture in message.pictures:
                parts.append({"type": "input_text", "text": f"{picture.name}:"})
                parts.append(
                    {
                        "type": "input_image",
                        "image_url": data_url(picture),
                        "detail": "auto",
                    }
                )
            content = (
                [*parts, {"type": "input_text", "text": message.content}]
                if parts
                else message.content
            )
            return [{"role": message.role, "content": content}]
        if as_they_came := self._as_they_came(message):
            return as_they_came
        calls = [  # without ids of items: those are their provider's
            {
                "type": "function_call",
                "call_id": _call_id(call.id),
                "name": call.name,
                "arguments": sendable_arguments(call.arguments),
            }
            for call in message.tool_calls
        ]
        says = message.content or not calls
        return [
            *([{"role": "assistant", "content": message.content}] if says else []),
            *calls,
        ]

    def _as_they_came(self, message: Message) -> list[dict[str, Any]]:
        """The items of a message, all or none: a call without the reasoning before it
        is refused, and so is an item whose call nobody answers.
        """
        data = message.data_from(self._origin) if self._returns_items else ""
        items = [as_dict(item) for item in as_list(read_json(data))]
        made = [
            item.get("call_id") for item in items if item.get("type") == "function_call"
        ]
        return items if made == [call.id for call in message.tool_calls] else []


def _call_id(id_: str) -> str:
    """An id as OpenAI takes it: some that other models' calls have are longer."""
    return (
        id_
        if len(id_) <= _LONGEST_CALL_ID
        else sha256(id_.encode(errors="replace")).hexdigest()
    )
