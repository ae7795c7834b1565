"""Requests of Anthropic's Messages API. `anthropic_reply.py` reads the answer.

Rules: platform.claude.com/docs (thinking, prompt caching, handling stop reasons).
"""

import re
from typing import Any

from msgspec.structs import replace

from cdd_agent.llm.direct.anthropic_reply import MessageReader
from cdd_agent.llm.direct.cache_marks import MARK, places_to_mark
from cdd_agent.llm.direct.json_values import (
    as_dict,
    as_list,
    as_object,
    read_json,
)
from cdd_agent.llm.direct.protocol import Call
from cdd_agent.llm.direct.refused_fields import RefusedFields
from cdd_agent.llm.failures import Failure
from cdd_agent.llm.known_models import known_model
from cdd_agent.llm.options import NO_OPTIONS, Effort, ModelOptions
from cdd_agent.llm.pictures import in_base64, parts_with_pictures
from cdd_agent.llm.port import Message, Picture, Request
from cdd_agent.llm.providers import Endpoint
from cdd_agent.pattern import Pattern

_Json = dict[str, Any]

_VERSION = "2023-06-01"
_LONGEST_REPLY = 32_000
"""Tokens, for a model in no table. A model with a lower limit names it in its
refusal.
"""
_LEAST_BUDGET = 1_024
_BUDGETS = {
    Effort.LOW: 4_096,
    Effort.MEDIUM: 10_240,
    Effort.HIGH: 24_576,
    Effort.MAX: 48_000,
}
"""Tokens of thoughts, for models with a budget instead of an effort."""
_OPTIONAL = {
    "thinking": r"\bthinking\b(?! blocks?)",
    "output_config": r"output_config|\beffort\b",
    "temperature": r"\btemperature\b",
    "cache_control": "cache_control",
}
_REFUSES_THOUGHTS = Pattern(
    r"signature|thinking`? blocks?|redacted_thinking", re.IGNORECASE
)
_SHORTER = Pattern(r"max_tokens: \d+ > (?P<most>\d+)")
_BLANK = "…"
"""Replaces an empty text, which Anthropic refuses."""


def key_headers(key: str | None) -> dict[str, str]:
    headers = {"anthropic-version": _VERSION}
    if key is not None:
        headers["x-api-key"] = key
    return headers


class AnthropicMessages:
    """The protocol of Claude, for one model."""

    path = "/messages"

    def __init__(
        self, name: str, endpoint: Endpoint, options: ModelOptions = NO_OPTIONS
    ) -> None:
        self._endpoint, self._options = endpoint, options
        self._origin = endpoint.origin()
        self._facts = known_model(name)
        self._longest_reply = (
            options.max_output_tokens or self._facts.longest_reply or _LONGEST_REPLY
        )
        self._refused = RefusedFields(_OPTIONAL)
        self._returns_thoughts = True

    def call(self, request: Request) -> Call:
        headers = key_headers(self._endpoint.key)
        system = "\n\n".join(
            message.content for message in request.messages if message.role == "system"
        )
        body: _Json = {
            "model": self._endpoint.model,
            "max_tokens": self._longest_reply,
            "stream": True,
            "messages": self._messages(request),
        }
        if system:
            body["system"] = [{"type": "text", "text": system}]
        if request.tools:
            body["tools"] = [
                {
                    "name": tool.name,
                    "description": tool.description,
                    "input_schema": dict(tool.parameters),
                }
                for tool in request.tools
            ]
        if "cache_control" not in self._refused:
            _mark(body)
        body |= self._refused.remove_from(self._settings())
        return Call({**body, **self._options.body}, headers)

    def reader(self, request: Request) -> MessageReader:
        return MessageReader(self._origin, has_tools=bool(request.tools))

    def adapts_to(self, failure: Failure) -> bool:
        if failure.status != 400:
            return False
        words = failure.all_words
        shorter = _SHORTER.search(words)
        if shorter and int(shorter["most"]) < self._longest_reply:
            self._longest_reply = int(shorter["most"])
            return True
        if self._returns_thoughts and _REFUSES_THOUGHTS.search(words):
            self._returns_thoughts = False
            return True
        return self._refused.learn(words)

    def _settings(self) -> _Json:
        fields = self._thinking()
        takes_temperature = not (self._facts.refuses_sampling or fields)
        if self._options.temperature is not None and takes_temperature:
            fields["temperature"] = self._options.temperature
        return fields

    def _thinking(self) -> _Json:
        effort, facts = self._options.effort, self._facts
        if effort is Effort.NONE:
            return {"thinking": {"type": "disabled"}} if facts.thinks else {}
        if facts.thinks_adaptively:
            return self._adaptive_thinking()
        if effort is None or not facts.thinks:
            return {}
        if facts.takes_effort:
            word = "high" if effort is Effort.MAX else effort.value
            return {"output_config": {"effort": word}}
        budget = min(_BUDGETS[effort], self._longest_reply // 2)
        if budget < _LEAST_BUDGET:
            return {}
        return {"thinking": {"type": "enabled", "budget_tokens": budget}}

    def _adaptive_thinking(self) -> _Json:
        effort = self._options.effort
        fields: _Json = {}
        if effort or self._options.watched:
            fields["thinking"] = {"type": "adaptive"}
        if self._options.watched:
            fields["thinking"]["display"] = "summarized"
        if effort:
            fields["output_config"] = {"effort": effort.value}
        return fields

    def _messages(self, request: Request) -> list[_Json]:
        messages: list[_Json] = []
        for message in request.messages:
            if message.role == "system":
                continue
            if message.role == "assistant":
                role, blocks = "assistant", self._assistant_blocks(message)
            else:
                role, blocks = "user", _user_blocks(message)
            if messages and messages[-1]["role"] == role:
                messages[-1]["content"] += blocks
            else:
                messages.append({"role": role, "content": blocks})
        for turn in messages:
            if turn["role"] == "user":
                turn["content"].sort(key=lambda block: block["type"] != "tool_result")
        return messages

    def _assistant_blocks(self, message: Message) -> list[_Json]:
        if self._returns_thoughts:
            data = read_json(message.data_from(self._origin))
            original = [as_dict(block) for block in as_list(data)]
            calls = []
            for block in original:
                if block.get("type") == "tool_use":
                    calls.append(block.get("id"))
            if original and calls == [call.id for call in message.tool_calls]:
                return original
        blocks: list[_Json] = []
        if message.content.strip():
            blocks.append({"type": "text", "text": message.content})
        for call in message.tool_calls:
            blocks.append(
                {
                    "type": "tool_use",
                    "id": call.id,
                    "name": call.name,
                    "input": as_object(call.arguments),
                }
            )
        return blocks or [{"type": "text", "text": _BLANK}]


def _user_blocks(message: Message) -> list[_Json]:
    if not message.content.strip():
        message = replace(message, content=_BLANK)
    if message.tool_call_id is None:
        return parts_with_pictures(message, "text", _image_block)
    answered, text = message.tool_call_id, message.content
    return [{"type": "tool_result", "tool_use_id": answered, "content": text}]


def _image_block(picture: Picture) -> _Json:
    source = {
        "type": "base64",
        "media_type": picture.media_type,
        "data": in_base64(picture),
    }
    return {"type": "image", "source": source}


def _mark(body: _Json) -> None:
    contents = [message["content"] for message in body["messages"]]
    roles = [message["role"] for message in body["messages"]]
    if "system" in body:
        contents.insert(0, body["system"])
        roles.insert(0, "system")
    for place in places_to_mark(roles):
        blocks = contents[place]
        blocks[-1] = {**blocks[-1], **MARK}
