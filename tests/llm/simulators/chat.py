"""Providers of chat completions, each with the rules that its own documentation and its
refusals tell.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.llm.simulators.base import (
    Bill,
    Json,
    PrefixCache,
    Said,
    Sent,
    Simulator,
    event,
    expect,
    expect_data_url,
    pieces,
    size,
)
from tests.llm.simulators.prompt_cache import PromptCache

_MESSAGE_FIELDS = {"role", "content", "tool_calls", "tool_call_id", "name"}
_BODY_FIELDS = {
    "model",
    "messages",
    "tools",
    "stream",
    "stream_options",
    "temperature",
    "max_tokens",
}


@dataclass
class Chat(Simulator):
    """Rules that all check: roles, and calls with their answers. Caching is by itself,
    by messages.
    """

    cache: PrefixCache = field(default_factory=PrefixCache)
    body_fields: frozenset[str] = frozenset(_BODY_FIELDS)
    message_fields: frozenset[str] = frozenset(_MESSAGE_FIELDS)
    status_of_extra: int = 400
    sees: bool = True
    """It takes pictures."""
    issued: dict[str, Any] = field(default_factory=dict)
    """Data that belong to a message with calls, by the id of its first call."""

    def check(self, sent: Sent) -> None:
        body = sent.body
        expect(sent.path == "/v1/chat/completions", "not found", 404)
        expect(
            sent.headers.get("authorization") == "Bearer a-key",
            "Incorrect API key provided",
            401,
        )
        extra = sorted(body.keys() - self.body_fields)
        expect(
            not extra,
            f"Unknown name {extra}: Cannot find field. (extra_forbidden)",
            self.status_of_extra,
        )
        open_calls: list[str] = []
        for message in body["messages"]:
            extra = sorted(message.keys() - self.message_fields)
            expect(
                not extra, f"messages: {extra} extra_forbidden", self.status_of_extra
            )
            self.check_content(message)
            if message["role"] == "tool":
                expect(
                    message["tool_call_id"] in open_calls,
                    "tool_call_id does not belong to a call",
                )
                open_calls.remove(message["tool_call_id"])
                continue
            expect(
                not open_calls,
                "An assistant message with 'tool_calls' must be followed by tool"
                " messages",
            )
            open_calls = [call["id"] for call in message.get("tool_calls", [])]
        expect(
            not open_calls,
            "An assistant message with 'tool_calls' must be followed by tool messages",
        )
        expect(
            body["messages"][-1]["role"] in ("user", "tool"),
            "the last message must be of user or tool",
        )
        self.check_dialect(body)

    def check_content(self, message: Json) -> None:
        parts = message["content"] if isinstance(message["content"], list) else []
        for number, part in enumerate(parts):
            if part["type"] == "image_url":
                expect(
                    message["role"] == "user",
                    "Image URLs are only allowed for messages with role 'user'",
                )
                expect(
                    self.sees,
                    "Failed to deserialize the JSON body into the target type:"
                    f" messages: content[{number}]: unknown variant `image_url`,"
                    " expected `text`",
                )
                expect_data_url(part["image_url"]["url"])

    def check_dialect(self, body: Json) -> None:
        """Raises `Refused` for what this provider alone refuses."""

    def call_id(self, turn: int, number: int) -> str:
        return f"call_{self.number}_{turn}_{number}"

    def delta_of_thoughts(self, piece: str, turn: int) -> Json:
        return {"reasoning_content": piece}

    def deltas(self, said: Said, turn: int) -> Iterator[Json]:
        for piece in pieces(said.thinking):
            yield self.delta_of_thoughts(piece, turn)
        for piece in pieces(said.text):
            yield {"content": piece}
        for number, (name, arguments) in enumerate(said.calls):
            call = {
                "index": number,
                "id": self.call_id(turn, number),
                "type": "function",
            }
            yield {
                "tool_calls": [
                    {
                        **call,
                        "function": {"name": name, "arguments": ""},
                        **self.extra(turn, number),
                    }
                ]
            }
            for piece in pieces(json.dumps(arguments)):
                yield {
                    "tool_calls": [{"index": number, "function": {"arguments": piece}}]
                }

    def extra(self, turn: int, number: int) -> Json:
        return {}

    def usage(self, bill: Bill) -> Json:
        return {
            "prompt_tokens": bill.prompt,
            "completion_tokens": bill.completion,
            "prompt_tokens_details": {
                "cached_tokens": bill.cached,
                "cache_write_tokens": bill.written,
            },
            "completion_tokens_details": {"reasoning_tokens": bill.reasoning},
        }

    def answer(self, sent: Sent, said: Said) -> Iterator[str]:
        turn = len(self.bills) + 1
        bill = self.bill(sent.body, said)
        self.bills.append(bill)
        # litellm's OpenRouter requires these
        head = {"id": f"chat-{turn}", "created": 1_795_767_000, "model": "m"}
        yield ": keep-alive\n\n"
        yield event({**head, "choices": []})
        for delta in self.deltas(said, turn):
            choice = {"index": 0, "delta": delta, "finish_reason": None}
            yield event({**head, "choices": [choice]})
        stop = said.stop or ("tool_calls" if said.calls else "stop")
        choice = {"index": 0, "delta": {}, "finish_reason": stop}
        yield event({**head, "choices": [choice]})
        if (
            sent.body.get("stream_options", {}).get("include_usage")
            or "stream_options" not in self.body_fields
        ):
            yield event({**head, "choices": [], "usage": self.usage(bill)})
        yield "data: [DONE]\n\n"
        if said.calls:
            self.issued[self.call_id(turn, 0)] = said

    def bill(self, body: Json, said: Said) -> Bill:
        """A prefix that was sent before is read from the cache."""
        blocks = [
            json.dumps(body.get("tools", [])),
            *(json.dumps(message) for message in body["messages"]),
        ]
        read = self.cache.longest(blocks, range(1, len(blocks) + 1))
        self.cache.remember(blocks, range(1, len(blocks) + 1))
        sizes = [len(block) for block in blocks]
        thought = len(said.thinking)
        return Bill(
            sum(sizes[read:]),
            sum(sizes[:read]),
            0,
            thought + len(said.text) + size(said.calls),
            thought,
        )


def _with_calls(body: Json) -> Iterator[tuple[int, Json]]:
    for number, message in enumerate(body["messages"]):
        if message["role"] == "assistant" and message.get("tool_calls"):
            yield number, message


def _this_turn(body: Json) -> int:
    """Where the current turn begins: after the last words of a person."""
    return max(
        (n for n, message in enumerate(body["messages"]) if message["role"] == "user"),
        default=0,
    )


@dataclass
class DeepSeek(Chat):
    """Thoughts of messages with calls have to come back, word for word, in all later
    requests. It takes no pictures.
    """

    sees: bool = False

    message_fields: frozenset[str] = frozenset(_MESSAGE_FIELDS | {"reasoning_content"})
    body_fields: frozenset[str] = frozenset(
        _BODY_FIELDS | {"thinking", "reasoning_effort"}
    )

    def check_dialect(self, body: Json) -> None:
        for _, message in _with_calls(body):
            expect(
                "reasoning_content" in message,
                "The reasoning_content in the thinking mode must be passed back to the"
                " API.",
            )
            known = self.issued.get(message["tool_calls"][0]["id"])
            expect(
                known is None or known.thinking == message["reasoning_content"],
                "reasoning_content was changed",
            )

    def usage(self, bill: Bill) -> Json:
        return {
            "prompt_tokens": bill.prompt,
            "completion_tokens": bill.completion,
            "prompt_cache_hit_tokens": bill.cached,
            "prompt_cache_miss_tokens": bill.plain,
            "completion_tokens_details": {"reasoning_tokens": bill.reasoning},
        }


@dataclass
class Kimi(DeepSeek):
    """The same in other words; its sampling is fixed. It sees."""

    sees: bool = True

    body_fields: frozenset[str] = frozenset(
        _BODY_FIELDS - {"temperature"} | {"reasoning_effort", "thinking"}
    )

    def check_dialect(self, body: Json) -> None:
        for number, message in _with_calls(body):
            expect(
                "reasoning_content" in message,
                "thinking is enabled but reasoning_content is missing in assistant"
                f" tool call message at index {number}",
            )


@dataclass
class Mistral(Chat):
    """Knows no field but its own; ids of nine characters; after a tool the assistant
    speaks.
    """

    status_of_extra: int = 422
    body_fields: frozenset[str] = frozenset(
        _BODY_FIELDS - {"stream_options"} | {"reasoning_effort"}
    )

    def check_dialect(self, body: Json) -> None:
        for before, message in zip(
            body["messages"], body["messages"][1:], strict=False
        ):
            expect(
                (before["role"], message["role"]) != ("tool", "user"),
                "Unexpected role 'user' after role 'tool' (3230)",
            )
        for _, message in _with_calls(body):
            for call in message["tool_calls"]:
                expect(
                    re.fullmatch("[a-zA-Z0-9]{9}", call["id"]),
                    "Tool call id has to be a-z, A-Z, 0-9 (3280)",
                )
            is_own = message["tool_calls"][0]["id"] in self.issued
            expect(
                not is_own or isinstance(message["content"], list),
                "the thinking of a message with calls is gone",
            )

    def call_id(self, turn: int, number: int) -> str:
        return f"a{self.number % 10_000:04}{turn:02}{number:02}"

    def deltas(self, said: Said, turn: int) -> Iterator[Json]:
        for delta in super().deltas(said, turn):
            match delta:
                case {"reasoning_content": text}:
                    yield {
                        "content": [
                            {
                                "type": "thinking",
                                "thinking": [{"type": "text", "text": text}],
                            }
                        ]
                    }
                case {"content": text} if said.thinking:
                    yield {"content": [{"type": "text", "text": text}]}
                case _:
                    yield delta

    def usage(self, bill: Bill) -> Json:
        return {
            "prompt_tokens": bill.prompt,
            "completion_tokens": bill.completion,
            "prompt_tokens_details": {"cached_tokens": bill.cached},
        }


@dataclass
class Gemini(Chat):
    """By Google's compatible endpoint: the first call of each message of this turn has
    its signature.

    Thoughts are shown to those who ask.
    """

    body_fields: frozenset[str] = frozenset(
        _BODY_FIELDS | {"reasoning_effort", "extra_body"}
    )
    shows_thoughts: bool = False

    def refusal(self, refused: Any) -> Json:
        body = {
            "code": refused.status,
            "message": refused.message,
            "status": "INVALID_ARGUMENT",
        }
        # a list with one object, as Google sends it
        return [{"error": body}]  # type: ignore[return-value]

    def check_dialect(self, body: Json) -> None:
        config = body.get("extra_body", {}).get("google", {}).get("thinking_config", {})
        self.shows_thoughts = config.get("include_thoughts") is True
        for number, message in _with_calls(body):
            if number < _this_turn(body):
                continue
            first = message["tool_calls"][0]
            signature = (
                first.get("extra_content", {})
                .get("google", {})
                .get("thought_signature")
            )
            expect(
                signature,
                "Function call is missing a thought_signature in functionCall parts.",
            )
            known = signature in (*self.opaque, "skip_thought_signature_validator")
            expect(known, "Corrupted thought signature.")

    def deltas(self, said: Said, turn: int) -> Iterator[Json]:
        whole = (
            f"<thought>\n{said.thinking}\n</thought>\n{said.text}"
            if self.shows_thoughts and said.thinking
            else said.text
        )
        yield from Chat.deltas(self, Said(whole, "", said.calls), turn)

    def extra(self, turn: int, number: int) -> Json:
        if number:
            return {}
        self.opaque.append(f"gemini-signature-{self.number}-{turn}")
        return {"extra_content": {"google": {"thought_signature": self.opaque[-1]}}}


@dataclass
class OpenRouter(Chat):
    """With Gemini behind it: details of thoughts come back whole; it tells what a call
    cost.
    """

    message_fields: frozenset[str] = frozenset(
        _MESSAGE_FIELDS | {"reasoning_details", "reasoning"}
    )
    body_fields: frozenset[str] = frozenset(_BODY_FIELDS | {"reasoning", "usage"})
    dollars: list[float] = field(default_factory=list)

    def check_dialect(self, body: Json) -> None:
        for _, message in _with_calls(body):
            details = message.get("reasoning_details")
            expect(
                details,
                "Gemini models require OpenRouter reasoning details to be preserved in"
                " each request.",
            )
            expect(
                details[-1].get("data") in self.opaque, "Corrupted reasoning details"
            )
            text = "".join(detail.get("text", "") for detail in details)
            known = self.issued.get(message["tool_calls"][0]["id"])
            expect(
                known is None or known.thinking == text, "Corrupted reasoning details"
            )

    def deltas(self, said: Said, turn: int) -> Iterator[Json]:
        for piece in pieces(said.thinking):
            detail = {
                "type": "reasoning.text",
                "text": piece,
                "format": "google-gemini-v1",
                "index": 0,
            }
            yield {"reasoning": piece, "reasoning_details": [detail]}
        self.opaque.append(f"encrypted-{self.number}-{turn}")
        hidden = {
            "type": "reasoning.encrypted",
            "data": self.opaque[-1],
            "format": "google-gemini-v1",
            "index": 1,
        }
        yield {"reasoning_details": [hidden]}
        yield from Chat.deltas(self, Said(said.text, "", said.calls), turn)

    def usage(self, bill: Bill) -> Json:
        self.dollars.append(
            round((bill.plain + bill.cached / 10 + 5 * bill.completion) / 1e6, 9)
        )
        return {**super().usage(bill), "cost": self.dollars[-1]}


@dataclass
class ClaudeBehindOpenRouter(OpenRouter):
    """Claude caches what is marked, and nothing else. A string and a list are different
    bytes.

    OpenRouter asks the same host again for the same conversation, which it knows by its
    first two messages (openrouter.ai/docs, provider sticky routing). Another host has
    another cache.
    """

    caches: dict[str, PromptCache] = field(default_factory=dict)
    """The caches of the hosts, by the beginnings of their conversations."""
    listed: list[Json] = field(default_factory=list)
    """The models of its list."""

    def get(self, path: str) -> Json | None:
        return {"data": self.listed} if path == "/v1/models" else None

    def check_dialect(self, body: Json) -> None:
        PromptCache().check(_claude_blocks(body))

    def bill(self, body: Json, said: Said) -> Bill:
        cache = self.caches.setdefault(json.dumps(body["messages"][:2]), PromptCache())
        thought = len(said.thinking)
        done = thought + len(said.text) + size(said.calls)
        return Bill(*cache.use(_claude_blocks(body)), done, thought)


def _claude_blocks(body: Json) -> list[Json]:
    """All that a prompt is made of, in the order in which it is cached."""
    blocks: list[Json] = list(body.get("tools", []))
    for message in body["messages"]:
        bare = {name: value for name, value in message.items() if name != "content"}
        if isinstance(message["content"], list):
            blocks += [{**bare, **part} for part in message["content"]]
        else:
            blocks.append(message)
    return blocks


@dataclass
class MiniMax(Chat):
    """M2 and later: thoughts are in the text, and have to stay there word for word. The
    request must have them once.
    """

    mirrors: bool = False
    """The stream has the thoughts in a field, too."""
    has_first_tag: bool = True
    """False: the chat template has it, and the text begins with the thoughts."""
    given: list[str] = field(default_factory=list)
    """The text of each reply."""

    def check_dialect(self, body: Json) -> None:
        replies = [
            message["content"]
            for message in body["messages"]
            if message["role"] == "assistant"
        ]
        for said, sent in zip(reversed(self.given), reversed(replies), strict=False):
            expect(said == sent, "thoughts of a message are gone")

    def deltas(self, said: Said, turn: int) -> Iterator[Json]:
        text = said.text
        if said.thinking:
            text = f"<think>\n{said.thinking}\n</think>\n{said.text}"
        if not self.has_first_tag:
            text = text.removeprefix("<think>\n")
        self.given.append(text)
        if self.mirrors:
            for piece in pieces(said.thinking):
                yield {"reasoning_content": piece}
        yield from Chat.deltas(self, Said(text, "", said.calls), turn)


@dataclass
class MiniMaxBehindOpenRouter(OpenRouter):
    """Its thoughts are details, as those of others."""

    def check_dialect(self, body: Json) -> None:
        for _, message in _with_calls(body):
            known = self.issued.get(message["tool_calls"][0]["id"])
            details = message.get("reasoning_details", [])
            text = "".join(detail.get("text", "") for detail in details)
            expect(
                known is None or known.thinking == text,
                "thoughts of a message with calls are gone",
            )


@dataclass
class Vllm(Chat):
    """A server of one's own, by the name that vLLM has for thoughts since 2026."""

    message_fields: frozenset[str] = frozenset(_MESSAGE_FIELDS | {"reasoning"})
    body_fields: frozenset[str] = frozenset(_BODY_FIELDS | {"chat_template_kwargs"})

    def delta_of_thoughts(self, piece: str, turn: int) -> Json:
        return {"reasoning": piece}


@dataclass
class OpenAIChat(Chat):
    """GPT-5: no `max_tokens`, no sampling, no thoughts."""

    body_fields: frozenset[str] = frozenset(
        _BODY_FIELDS - {"temperature", "max_tokens"}
        | {"reasoning_effort", "prompt_cache_key", "max_completion_tokens"}
    )

    def delta_of_thoughts(self, piece: str, turn: int) -> Json:
        return {}


@dataclass
class OpenAIChatWithoutThoughts(OpenAIChat):
    """GPT-5.6: with tools it must be told not to think, as it does so by itself."""

    def check_dialect(self, body: Json) -> None:
        expect(
            not body.get("tools") or body.get("reasoning_effort") == "none",
            "Function tools with reasoning_effort are not supported for gpt-5.6 in"
            " /v1/chat/completions. To use function tools, use /v1/responses or set"
            " reasoning_effort to 'none'.",
        )
