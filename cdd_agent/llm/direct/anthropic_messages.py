"""Anthropic's Messages API as JSON: thoughts that come back signed, caches that are
asked for, results in one message.

The rules are those of platform.claude.com/docs (thinking, prompt caching, handling stop
reasons). `anthropic_reply.py` reads the answer.
"""

import re
from typing import Any

from cdd_agent.llm.direct.anthropic_reply import MessageReader
from cdd_agent.llm.direct.cache_marks import MARK, places_to_mark
from cdd_agent.llm.direct.json_values import (
    as_dict,
    as_list,
    as_object,
    read_json,
)
from cdd_agent.llm.direct.protocol import Call
from cdd_agent.llm.failures import Failure
from cdd_agent.llm.known_models import known_model
from cdd_agent.llm.options import NO_OPTIONS, Effort, ModelOptions
from cdd_agent.llm.pictures import in_base64
from cdd_agent.llm.port import (
    Message,
    Request,
)
from cdd_agent.llm.providers import Endpoint

_VERSION = "2023-06-01"
_LONGEST_REPLY = 32_000
"""Tokens, of a model that nobody knows; one that writes less says so, and is believed.
"""
_LEAST_BUDGET = 1_024
_BUDGETS = {
    Effort.LOW: 4_096,
    Effort.MEDIUM: 10_240,
    Effort.HIGH: 24_576,
    Effort.MAX: 48_000,
}
"""Tokens of thoughts, for models that take a budget instead of an effort."""
_OPTIONAL = {
    "thinking": r"\bthinking\b(?! blocks?)",
    "output_config": r"output_config|\beffort\b",
    "temperature": r"\btemperature\b",
    "cache_control": r"cache_control",
}
"""Fields that can be left out where a model refuses them, and how a refusal names them.
"""
_REFUSES_THOUGHTS = re.compile(
    r"signature|thinking`? blocks?|redacted_thinking", re.IGNORECASE
)
_SHORTER = re.compile(r"max_tokens: (?P<sent>\d+) > (?P<most>\d+)")


class AnthropicMessages:
    """Claude, and whoever else speaks this protocol."""

    path = "/messages"

    def __init__(
        self, name: str, endpoint: Endpoint, options: ModelOptions = NO_OPTIONS
    ) -> None:
        self._endpoint, self._options = endpoint, options
        self._origin = endpoint.origin()
        self._known = known_model(name)
        self._longest_reply = (
            options.max_output_tokens or self._known.longest_reply or _LONGEST_REPLY
        )
        self._left_out: set[str] = set()
        """Fields that this model has refused."""
        self._returns_thoughts = True

    def call(self, request: Request) -> Call:
        headers = {"anthropic-version": _VERSION}
        if self._endpoint.key is not None:
            headers["x-api-key"] = self._endpoint.key
        system = "\n\n".join(
            message.content for message in request.messages if message.role == "system"
        )
        body: dict[str, Any] = {
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
        if "cache_control" not in self._left_out:
            _mark(body)
        fields = self._thinking()
        if self._options.temperature is not None and not (
            self._known.refuses_sampling or fields
        ):
            # refused where a model thinks
            fields["temperature"] = self._options.temperature
        body |= {
            name: value for name, value in fields.items() if name not in self._left_out
        }
        return Call({**body, **self._options.body}, headers)

    def reader(self, request: Request) -> MessageReader:
        return MessageReader(self._origin, has_tools=bool(request.tools))

    def adapts_to(self, failure: Failure) -> bool:
        if failure.status != 400:
            return False
        words = failure.all_words
        if (shorter := _SHORTER.search(words)) and int(
            shorter["most"]
        ) < self._longest_reply:
            self._longest_reply = int(shorter["most"])
            return True
        if self._returns_thoughts and _REFUSES_THOUGHTS.search(words):
            self._returns_thoughts = False
            return True
        refused = {
            name for name, wording in _OPTIONAL.items() if re.search(wording, words)
        } - self._left_out
        self._left_out |= refused
        return bool(refused)

    def _thinking(self) -> dict[str, Any]:
        """How much it thinks, and whether its thoughts can be read."""
        effort, known = self._options.effort, self._known
        seen = {"display": "summarized"} if self._options.watched else {}
        if effort is Effort.NONE:
            return {"thinking": {"type": "disabled"}} if known.thinks else {}
        if known.thinks_adaptively:
            return {
                **(
                    {"thinking": {"type": "adaptive", **seen}} if seen or effort else {}
                ),
                **({"output_config": {"effort": effort.value}} if effort else {}),
            }
        if effort is None or not known.thinks:
            return {}
        if known.takes_effort:
            return {
                "output_config": {
                    "effort": "high" if effort is Effort.MAX else effort.value
                }
            }
        budget = min(_BUDGETS[effort], self._longest_reply // 2)
        return (
            {"thinking": {"type": "enabled", "budget_tokens": budget}}
            if budget >= _LEAST_BUDGET
            else {}
        )

    def _messages(self, request: Request) -> list[dict[str, Any]]:
        """Roles take turns: what a person and tools say in a row is one message, with
        the tools' answers first.
        """
        messages: list[dict[str, Any]] = []
        for message in request.messages:
            if message.role == "system":
                continue
            role = "assistant" if message.role == "assistant" else "user"
            blocks = (
                self._assistant(message) if role == "assistant" else _of_a_user(message)
            )
            if messages and messages[-1]["role"] == role:
                messages[-1]["content"] += blocks
            else:
                messages.append({"role": role, "content": blocks})
        for said in messages:
            if said["role"] == "user":
                said["content"].sort(key=lambda block: block["type"] != "tool_result")
        return messages

    def _assistant(self, message: Message) -> list[dict[str, Any]]:
        if self._returns_thoughts and (data := message.data_from(self._origin)):
            return [as_dict(block) for block in as_list(read_json(data))]
        text = (
            [{"type": "text", "text": message.content}]
            if message.content.strip()
            else []
        )
        calls = [
            {
                "type": "tool_use",
                "id": call.id,
                "name": call.name,
                "input": as_object(call.arguments),
            }
            for call in message.tool_calls
        ]
        return [*text, *calls] or [{"type": "text", "text": "…"}]


def _of_a_user(message: Message) -> list[dict[str, Any]]:
    """The words of a person, or a tool's answer. Pictures are first, each after its
    name, as is best for Claude.
    """
    # which must not be empty
    text = message.content if message.content.strip() else "…"
    if message.tool_call_id is not None:
        return [
            {
                "type": "tool_result",
                "tool_use_id": message.tool_call_id,
                "content": text,
            }
        ]
    blocks: list[dict[str, Any]] = []
    for picture in message.pictures:
        source = {
            "type": "base64",
            "media_type": picture.media_type,
            "data": in_base64(picture),
        }
        blocks += [
            {"type": "text", "text": f"{picture.name}:"},
            {"type": "image", "source": source},
        ]
    return [*blocks, {"type": "text", "text": text}]


def _mark(body: dict[str, Any]) -> None:
    """Add the marks for the cache."""
    contents = [message["content"] for message in body["messages"]]
    roles = [message["role"] for message in body["messages"]]
    if "system" in body:
        contents.insert(0, body["system"])
        roles.insert(0, "system")
    for place in places_to_mark(roles):
        blocks = contents[place]
        blocks[-1] = {**blocks[-1], **MARK}
