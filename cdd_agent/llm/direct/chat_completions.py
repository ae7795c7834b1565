"""Requests of OpenAI's chat completions, in the dialects of providers. `chat_reply.py`
reads the answer.
"""

import math
import re
from collections.abc import Callable
from hashlib import sha256
from typing import Any
from uuid import uuid4

from msgspec.structs import replace

from cdd_agent.llm.direct.cache_marks import mark_messages
from cdd_agent.llm.direct.chat_reply import THOUGHTS, ChatReply
from cdd_agent.llm.direct.dialects import dialect_of, effort_fields
from cdd_agent.llm.direct.json_values import (
    as_dict,
    as_list,
    read_json,
    sendable_arguments,
)
from cdd_agent.llm.direct.protocol import Call
from cdd_agent.llm.direct.refused_fields import RefusedFields
from cdd_agent.llm.failures import Failure
from cdd_agent.llm.known_models import KnownModel
from cdd_agent.llm.options import ModelOptions
from cdd_agent.llm.pictures import data_url, parts_with_pictures
from cdd_agent.llm.port import Message, Picture, Request, ToolDefinition
from cdd_agent.llm.providers import Endpoint
from cdd_agent.pattern import Pattern

_Json = dict[str, Any]

_OPTIONAL = {
    "stream_options": "stream_options|include_usage",
    "reasoning_content": "reasoning_content",
    "reasoning_details": "reasoning_details",
    "reasoning": r"\breasoning\b(?!_)",
    "reasoning_effort": r"reasoning[_.]effort",
    "thinking": r"\bthinking\b",
    "temperature": r"\btemperature\b",
    "prompt_cache_key": "prompt_cache_key",
    "max_tokens": r"\bmax_tokens\b",
    "max_completion_tokens": r"\bmax_completion_tokens\b",
    "extra_content": "extra_content",
    "extra_body": "extra_body",
    "usage": r"\busage\b(?! limits?\b)",
}
_LEARNED: tuple[tuple[Pattern[str], dict[str, Any]], ...] = (
    (
        Pattern(
            r"reasoning_content\W.{0,60}(?:must be passed back|is missing|required)",
            re.IGNORECASE,
        ),
        {"needs_thoughts": True},
    ),
    (
        Pattern(
            "reasoning.details.{0,60}(?:preserved|required|missing)", re.IGNORECASE
        ),
        {"needs_own_calls": True},
    ),
    (Pattern("max_completion_tokens"), {"limit": "max_completion_tokens"}),
)
"""Refusals, and the rules of the dialect that they reveal."""
_TOOLS_OR_THOUGHTS = Pattern(
    r"function tools with reasoning_effort.{0,200}set reasoning_effort to .?none",
    re.IGNORECASE | re.DOTALL,
)
_STAND_IN = {"google": {"thought_signature": "skip_thought_signature_validator"}}
"""The signature for calls of another model."""
_SHORT_ID = Pattern("[A-Za-z0-9]{9}")


def write_tools(request: Request) -> list[_Json]:
    return [
        {"type": "function", "function": write_function(tool)} for tool in request.tools
    ]


def write_function(tool: ToolDefinition) -> _Json:
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.parameters),
    }


def write_message(message: Message) -> _Json:
    """Return a message as JSON, without provider data."""
    written: _Json = {"role": message.role, "content": message.content}
    if message.pictures:
        written["content"] = parts_with_pictures(message, "text", _image_part)
    if message.tool_calls:
        written["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {
                    "name": call.name,
                    "arguments": sendable_arguments(call.arguments),
                },
            }
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        written["tool_call_id"] = message.tool_call_id
    return written


def _image_part(picture: Picture) -> _Json:
    return {"type": "image_url", "image_url": {"url": data_url(picture)}}


class ChatCompletions:
    """The most common protocol, for one model of one provider."""

    path = "/chat/completions"

    def __init__(
        self, endpoint: Endpoint, options: ModelOptions, facts: Callable[[], KnownModel]
    ) -> None:
        """`facts` returns the current facts about the model."""
        self._endpoint, self._options, self._facts = endpoint, options, facts
        self._origin = endpoint.origin()
        self._dialect = dialect_of(endpoint.provider, endpoint.model)
        self.thinks_with_tools = True
        """False: a request with tools asks the model not to think."""
        self._cache_key = uuid4().hex
        self._refused = RefusedFields(_OPTIONAL)
        if not self._dialect.asks_for_usage:
            self._refused.add("stream_options")

    def call(self, request: Request) -> Call:
        body: _Json = {
            "model": self._endpoint.model,
            "messages": self._messages(request),
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if request.tools:
            body["tools"] = write_tools(request)
        fields = self._refused.remove_from({**body, **self._settings()})
        if request.tools and not self.thinks_with_tools:
            fields["reasoning_effort"] = "none"
        return Call({**fields, **self._options.body}, self._endpoint.bearer)

    def reader(self, request: Request) -> ChatReply:
        return ChatReply(
            self._origin,
            keeps_text=self._dialect.keeps_text,
            has_tools=bool(request.tools),
        )

    def adapts_to(self, failure: Failure) -> bool:
        """Servers name the field that they refuse or miss."""
        if failure.status not in (400, 422):
            return False
        return self._learns(failure.all_words) or self._refused.learn(failure.all_words)

    def refuses_thoughts(self, failure: Failure) -> bool:
        """True if the server accepts tools only from a model that does not think."""
        is_refusal = failure.status in (400, 422)
        return is_refusal and bool(_TOOLS_OR_THOUGHTS.search(failure.all_words))

    def _learns(self, refusal: str) -> bool:
        for pattern, change in _LEARNED:
            is_unused = "limit" in change and not self._options.max_output_tokens
            if is_unused or not pattern.search(refusal):
                continue
            learned = replace(self._dialect, **change)
            if learned != self._dialect:
                self._dialect = learned
                return True
        return False

    def _settings(self) -> _Json:
        options, facts, dialect = self._options, self._facts(), self._dialect
        fields: _Json = {}
        if options.effort is not None:
            provider, model = self._endpoint.provider, self._endpoint.model
            fields |= effort_fields(provider, model, facts, options.effort)
        may_choose = not (dialect.fixes_sampling and facts.thinks)
        if options.temperature is not None and may_choose:
            fields["temperature"] = options.temperature
        if options.max_output_tokens is not None:
            longest = facts.longest_reply or math.inf
            fields[dialect.limit] = min(options.max_output_tokens, longest)
        if dialect.routes_by_key and not self._endpoint.is_chosen:
            fields["prompt_cache_key"] = self._cache_key
        if dialect.states_cost:
            fields["usage"] = {"include": True}
        if dialect.signs_calls and options.watched:
            config = {"thinking_config": {"include_thoughts": True}}
            fields["extra_body"] = {"google": config}
        return fields

    def _messages(self, request: Request) -> list[_Json]:
        messages = [self._message(message) for message in request.messages]
        if self._dialect.needs_own_calls:
            messages = _calls_as_text(messages)
        if self._dialect.short_ids:
            _shorten_ids(messages)
        if self._dialect.answers_end_rounds:
            messages = _end_rounds(messages)
        is_claude = self._endpoint.model.startswith("anthropic/")
        if is_claude and self._endpoint.provider == "openrouter":
            mark_messages(messages)
        return messages

    def _message(self, message: Message) -> _Json:
        written = write_message(message)
        if message.role != "assistant":
            return written
        self._add_provider_data(written, message)
        calls = written.get("tool_calls", [])
        if calls and self._dialect.needs_thoughts:
            written.setdefault("reasoning_content", "")
        if calls and self._dialect.signs_calls:
            calls[0].setdefault("extra_content", dict(_STAND_IN))
        return written

    def _add_provider_data(self, written: _Json, message: Message) -> None:
        """Add the provider's data. Thoughts as text accompany only tool calls."""
        calls = written.get("tool_calls", [])
        data = as_dict(read_json(message.data_from(self._origin)))
        for name, value in as_dict(data.get("message")).items():
            is_taken = name not in THOUGHTS or (calls and self._dialect.takes_thoughts)
            if is_taken and name not in self._refused:
                written[name] = value
        if "extra_content" in self._refused:
            return
        for call, extra in zip(calls, as_list(data.get("calls")), strict=False):
            if extra is not None:
                call["extra_content"] = extra


def _calls_as_text(messages: list[_Json]) -> list[_Json]:
    names: dict[str, str] = {}
    changed = []
    for message in messages:
        calls = message.get("tool_calls", [])
        if calls and "reasoning_details" not in message:
            lines = [message["content"], "I used these tools:"]
            for call in calls:
                function = call["function"]
                names[call["id"]] = function["name"]
                lines.append(f"{function['name']} {function['arguments']}")
            words = "\n".join(filter(None, lines))
            changed.append({"role": "assistant", "content": words})
        elif message.get("tool_call_id") in names:
            name = names[message["tool_call_id"]]
            words = f"Answer of {name}:\n{message['content']}"
            changed.append({"role": "user", "content": words})
        else:
            changed.append(message)
    return changed


def _shorten_ids(messages: list[_Json]) -> None:
    """Replace the ids of calls and answers by ids that Mistral accepts. Its own
    stay.
    """
    for message in messages:
        for call in message.get("tool_calls", []):
            call["id"] = _short_id(call["id"])
        if "tool_call_id" in message:
            message["tool_call_id"] = _short_id(message["tool_call_id"])


def _short_id(call_id: str) -> str:
    if _SHORT_ID.fullmatch(call_id):
        return call_id
    return sha256(call_id.encode(errors="replace")).hexdigest()[:9]


def _end_rounds(messages: list[_Json]) -> list[_Json]:
    changed: list[_Json] = []
    for message in messages:
        if message["role"] == "user" and changed and changed[-1]["role"] == "tool":
            changed.append({"role": "assistant", "content": "…"})
        changed.append(message)
    return changed
