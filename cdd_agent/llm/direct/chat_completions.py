"""OpenAI's chat completions as JSON, in the dialects that providers have made of them:
how a request is written.

`chat_reply.py` reads the answer.
"""

import math
import re
from collections.abc import Callable, Iterator
from hashlib import sha256
from itertools import pairwise
from typing import Any
from uuid import uuid4

from msgspec.structs import replace

from cdd_agent.llm.direct.cache_marks import mark_messages
from cdd_agent.llm.direct.chat_reply import THOUGHTS, ChatReply
from cdd_agent.llm.direct.dialects import UNSIGNED, dialect_of, effort_fields
from cdd_agent.llm.direct.json_values import (
    as_dict,
    as_list,
    read_json,
    sendable_arguments,
)
from cdd_agent.llm.direct.protocol import Call
from cdd_agent.llm.failures import Failure
from cdd_agent.llm.known_models import KnownModel
from cdd_agent.llm.options import ModelOptions
from cdd_agent.llm.pictures import data_url
from cdd_agent.llm.port import Message, Request
from cdd_agent.llm.providers import Endpoint


def tools_of(request: Request) -> list[dict[str, Any]]:
    """The tools of a request, as JSON."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": dict(tool.parameters),
            },
        }
        for tool in request.tools
    ]


def message_of(message: Message) -> dict[str, Any]:
    """A message as JSON, without what its provider wants back."""
    content: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.pictures:
        parts: list[dict[str, Any]] = []
        # each after its name, before the words: there models see them best
        for picture in message.pictures:
            parts.append({"type": "text", "text": f"{picture.name}:"})
            parts.append({"type": "image_url", "image_url": {"url": data_url(picture)}})
        content["content"] = [*parts, {"type": "text", "text": message.content}]
    if message.tool_calls:
        content["tool_calls"] = [
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
        content["tool_call_id"] = message.tool_call_id
    return content


class ChatCompletions:
    """The protocol that most servers speak, in the dialect of the endpoint's
    provider.
    """

    path = "/chat/completions"

    def __init__(
        self, endpoint: Endpoint, options: ModelOptions, facts: Callable[[], KnownModel]
    ) -> None:
        """`facts`: what is known of the model by now."""
        self._endpoint, self._options, self._facts = endpoint, options, facts
        self._origin = endpoint.origin()
        self._dialect = dialect_of(endpoint.provider, endpoint.model)
        self._left_out: set[str] = set()
        """Fields that the server has refused."""
        self.thinks_with_tools = True
        """False: a request with tools asks the model not to think."""
        self._cache_key = uuid4().hex
        if not self._dialect.asks_for_usage:
            self._left_out.add("stream_options")

    def call(self, request: Request) -> Call:
        messages = [self._message(message) for message in request.messages]
        if self._dialect.needs_own_calls:
            messages = list(_others_calls_in_words(messages))
        if self._dialect.short_ids:
            _shorten_ids(messages)
        if self._dialect.answers_end_rounds:
            messages = list(_with_a_word_between(messages))
        if self._endpoint.provider == "openrouter" and self._endpoint.model.startswith(
            "anthropic/"
        ):
            mark_messages(messages)
        body: dict[str, Any] = {
            "model": self._endpoint.model,
            "messages": messages,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if request.tools:
            body["tools"] = tools_of(request)
        fields = {
            name: value
            for name, value in {**body, **self._settings()}.items()
            if name not in self._left_out
        }
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
        """Servers name the field that they do not know, or that they miss."""
        if failure.status not in (400, 422):
            return False
        words = failure.all_words
        if not self._dialect.needs_thoughts and _MISSES_THOUGHTS.search(words):
            self._dialect = replace(self._dialect, needs_thoughts=True)
            return True
        if not self._dialect.needs_own_calls and _MISSES_DETAILS.search(words):
            self._dialect = replace(self._dialect, needs_own_calls=True)
            return True
        if (
            "max_completion_tokens" in words
            and self._dialect.limit == "max_tokens"
            and self._options.max_output_tokens
        ):
            self._dialect = replace(self._dialect, limit="max_completion_tokens")
            return True
        refused = {
            name for name, wording in _OPTIONAL.items() if re.search(wording, words)
        } - self._left_out
        self._left_out |= refused
        return bool(refused)

    def refuses_thoughts(self, failure: Failure) -> bool:
        """True if the server takes tools only from a model that does not think."""
        is_refusal = failure.status in (400, 422)
        return is_refusal and bool(_TOOLS_OR_THOUGHTS.search(failure.all_words))

    def _settings(self) -> dict[str, Any]:
        """The settings of a person, and what the provider knows besides, in its own
        words.
        """
        options, known, fields = self._options, self._facts(), dict[str, Any]()
        if options.effort is not None:
            fields |= effort_fields(
                self._endpoint.provider, self._endpoint.model, known, options.effort
            )
        is_fixed = known.refuses_sampling or (
            self._dialect.fixes_sampling and known.thinks
        )
        if options.temperature is not None and not is_fixed:
            fields["temperature"] = options.temperature
        if options.max_output_tokens is not None:
            fields[self._dialect.limit] = min(
                options.max_output_tokens, known.longest_reply or math.inf
            )
        if self._dialect.routes_by_key and not self._endpoint.is_chosen:
            fields["prompt_cache_key"] = self._cache_key
        if self._dialect.states_cost:
            fields["usage"] = {"include": True}
        if self._dialect.signs_calls and options.watched:
            fields["extra_body"] = {
                "google": {"thinking_config": {"include_thoughts": True}}
            }
        return fields

    def _message(self, message: Message) -> dict[str, Any]:
        """With what the provider wants back: with calls all of it, of other messages
        only what it keeps a list of.
        """
        content = message_of(message)
        if message.role != "assistant":
            return content
        data = as_dict(read_json(message.data_from(self._origin)))
        calls = content.get("tool_calls", [])
        for name, value in as_dict(data.get("message")).items():
            is_taken = name not in THOUGHTS or (calls and self._dialect.takes_thoughts)
            if is_taken and name not in self._left_out:
                content[name] = value
        for call, extra in zip(calls, as_list(data.get("calls")), strict=False):
            if extra is not None and "extra_content" not in self._left_out:
                call["extra_content"] = extra
        if calls and self._dialect.needs_thoughts:
            content.setdefault("reasoning_content", "")
        if calls and self._dialect.signs_calls:
            calls[0].setdefault("extra_content", dict(UNSIGNED))
        return content


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
    "usage": r"(?i)\busage\b(?! limits?\b)",
}
"""Fields that can be left out where a server refuses them, and how a refusal names
them.
"""
_MISSES_THOUGHTS = re.compile(
    r"reasoning_content\W.{0,60}(?:must be passed back|is missing|required)",
    re.IGNORECASE,
)
_MISSES_DETAILS = re.compile(
    "reasoning.details.{0,60}(?:preserved|required|missing)", re.IGNORECASE
)
_TOOLS_OR_THOUGHTS = re.compile(
    r"function tools with reasoning_effort.{0,200}set reasoning_effort to .?none",
    re.IGNORECASE | re.DOTALL,
)


def _others_calls_in_words(messages: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Calls that nothing of the provider's goes with, and their answers, as if they had
    been said.
    """
    names: dict[str, str] = {}
    for message in messages:
        if message.get("tool_calls") and "reasoning_details" not in message:
            names |= {
                call["id"]: call["function"]["name"] for call in message["tool_calls"]
            }
            calls = (
                f"{call['function']['name']} {call['function']['arguments']}"
                for call in message["tool_calls"]
            )
            words = "\n".join(
                filter(None, (message["content"], "I used these tools:", *calls))
            )
            yield {"role": "assistant", "content": words}
        elif message.get("tool_call_id") in names:
            yield {
                "role": "user",
                "content": (
                    f"Answer of {names[message['tool_call_id']]}:\n{message['content']}"
                ),
            }
        else:
            yield message


def _shorten_ids(messages: list[dict[str, Any]]) -> None:
    """Ids as Mistral has them: its own stay, others become new ones, the same in call
    and answer.
    """

    def short(id_: str) -> str:
        return (
            id_
            if re.fullmatch("[A-Za-z0-9]{9}", id_)
            else sha256(id_.encode(errors="replace")).hexdigest()[:9]
        )

    for message in messages:
        for call in message.get("tool_calls", []):
            call["id"] = short(call["id"])
        if "tool_call_id" in message:
            message["tool_call_id"] = short(message["tool_call_id"])


def _with_a_word_between(messages: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Where a person speaks after a tool, the assistant says a word first: Mistral
    refuses it otherwise.
    """
    for before, message in pairwise([{"role": ""}, *messages]):
        if before["role"] == "tool" and message["role"] == "user":
            yield {"role": "assistant", "content": "…"}
        yield message
