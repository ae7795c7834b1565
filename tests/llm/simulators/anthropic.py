"""Anthropic's Messages API for the Claude 5 generation."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.llm.simulators.base import (
    Bill,
    Json,
    Said,
    Sent,
    Simulator,
    event,
    expect,
    expect_picture,
    pieces,
    size,
)
from tests.llm.simulators.prompt_cache import PromptCache

_FIELDS = {
    "model",
    "max_tokens",
    "messages",
    "system",
    "tools",
    "stream",
    "thinking",
    "output_config",
    "metadata",
}


@dataclass
class Anthropic(Simulator):
    """`thinks_by_itself`: thinking needs no field, as with Sonnet 5; `may_disable`: not
    with Opus 5.5.
    """

    model: str = "claude-opus-5"
    longest_reply: int = 128_000
    may_disable: bool = True
    thinks: bool = True
    cache: PromptCache = field(default_factory=PromptCache)
    issued: dict[str, Json] = field(default_factory=dict)
    """Thinking blocks that were given, by their signature."""

    def refusal(self, refused: Any) -> Json:
        return {
            "type": "error",
            "error": {"type": "invalid_request_error", "message": refused.message},
        }

    def check(self, sent: Sent) -> None:
        body = sent.body
        expect(sent.path == "/v1/messages", "not found", 404)
        expect(sent.headers.get("x-api-key") == "a-key", "invalid x-api-key", 401)
        expect(
            sent.headers.get("anthropic-version") == "2023-06-01",
            "anthropic-version: header is required",
        )
        expect("max_tokens" in body, "max_tokens: Field required")
        most = self.longest_reply
        expect(
            body["max_tokens"] <= most,
            f"max_tokens: {body['max_tokens']} > {most}, which is the maximum allowed",
        )
        for name in ("temperature", "top_p", "top_k"):
            expect(name not in body, f"`{name}` is not supported for this model")
        extra = sorted(body.keys() - _FIELDS)
        expect(not extra, f"{extra}: Extra inputs are not permitted")
        thinking = body.get("thinking", {})
        expect(
            thinking.get("type") != "enabled",
            "`thinking.type: enabled` is not supported for this model",
        )
        expect(
            self.may_disable or thinking.get("type") != "disabled",
            "`thinking.type: disabled` is not supported",
        )
        self._check_messages(body)
        self.cache.check(prompt_blocks(body))

    def _check_messages(self, body: Json) -> None:
        messages = body["messages"]
        expect(
            messages and messages[0]["role"] == "user",
            "messages: first message must use the `user` role",
        )
        expect(
            messages[-1]["role"] == "user",
            "This model does not support assistant message prefill.",
        )
        open_calls: list[str] = []
        for number, message in enumerate(messages):
            content = message["content"]
            content = (
                [{"type": "text", "text": content}]
                if isinstance(content, str)
                else content
            )
            expect(
                not number or message["role"] != messages[number - 1]["role"],
                "roles must alternate",
            )
            expect(
                content, f"messages.{number}: all messages must have non-empty content"
            )
            for block in content:
                expect(
                    block["type"] != "text" or block["text"].strip(),
                    "text content blocks must be non-empty",
                )
                if block["type"] == "image":
                    expect(message["role"] == "user", "images are for user messages")
                    source = block["source"]
                    expect(
                        source.keys() == {"type", "media_type", "data"}
                        and source["type"] == "base64",
                        "source",
                    )
                    expect_picture(
                        source["media_type"], source["data"], largest=5 * 2**20
                    )
            kinds = [block["type"] for block in content]
            if message["role"] == "assistant":
                self._check_thoughts(number, content)
                open_calls = [
                    block["id"] for block in content if block["type"] == "tool_use"
                ]
                expect(
                    not open_calls or body.get("tools"),
                    "Requests with `tool_use` blocks must define tools",
                )
                inputs = [
                    block["input"] for block in content if block["type"] == "tool_use"
                ]
                expect(
                    all(isinstance(given, dict) for given in inputs),
                    "input: not a dictionary",
                )
                continue
            answered = [
                block["tool_use_id"]
                for block in content
                if block["type"] == "tool_result"
            ]
            expect(
                sorted(answered) == sorted(open_calls),
                f"messages.{number}: `tool_use` ids were found without `tool_result`"
                " blocks immediately after",
            )
            in_order = sorted(kinds, key=lambda kind: kind != "tool_result")
            expect(kinds == in_order, "`tool_result` blocks must come first")
            open_calls = []

    def _check_thoughts(self, number: int, content: list[Json]) -> None:
        """All of the latest turn's, unchanged and in their order; made-up ones have no
        signature.
        """
        for block in content:
            if block["type"] == "thinking":
                bare = {
                    name: value
                    for name, value in block.items()
                    if name != "cache_control"
                }
                is_ours = block.get("signature") in self.issued
                expect(
                    is_ours,
                    f"messages.{number}: Invalid `signature` in `thinking` block",
                )
                expect(
                    self.issued[block["signature"]]["block"] == bare,
                    f"messages.{number}: `thinking` blocks in the latest assistant"
                    " message cannot be modified",
                )
        present = [
            block["signature"] for block in content if block["type"] == "thinking"
        ]
        for signature in present:
            group = self.issued[signature]["group"]
            expect(
                present == group,
                f"messages.{number}: `thinking` blocks must all be there, in their"
                " order",
            )

    def answer(self, sent: Sent, said: Said) -> Iterator[str]:
        body, turn = sent.body, len(self.bills) + 1
        bill = self.bill(body, said)
        self.bills.append(bill)
        usage = {
            "input_tokens": bill.plain,
            "cache_read_input_tokens": bill.cached,
            "cache_creation_input_tokens": bill.written,
            "output_tokens": 1,
        }
        yield event(
            {
                "type": "message_start",
                "message": {"id": f"msg_{turn}", "role": "assistant", "usage": usage},
            }
        )
        yield event({"type": "ping"})
        index = 0
        if self.thinks and said.thinking:
            is_seen = body.get("thinking", {}).get("display") == "summarized"
            text, signature = (
                said.thinking if is_seen else "",
                f"signature-{self.number}-{turn}/+==",
            )
            block = {"type": "thinking", "thinking": text, "signature": signature}
            self.opaque.append(signature)
            self.issued[signature] = {"block": block, "group": [signature]}
            yield _start(index, {"type": "thinking", "thinking": "", "signature": ""})
            for piece in pieces(text):
                yield _delta(index, {"type": "thinking_delta", "thinking": piece})
            yield _delta(index, {"type": "signature_delta", "signature": signature})
            yield event({"type": "content_block_stop", "index": index})
            index += 1
        if said.text:
            yield _start(index, {"type": "text", "text": ""})
            for piece in pieces(said.text):
                yield _delta(index, {"type": "text_delta", "text": piece})
            yield event({"type": "content_block_stop", "index": index})
            index += 1
        for number, (name, arguments) in enumerate(said.calls):
            yield _start(
                index,
                {
                    "type": "tool_use",
                    "id": f"toolu_{turn}_{number}",
                    "name": name,
                    "input": {},
                },
            )
            for piece in pieces(json.dumps(arguments) if arguments else ""):
                yield _delta(index, {"type": "input_json_delta", "partial_json": piece})
            yield event({"type": "content_block_stop", "index": index})
            index += 1
        stop = said.stop or ("tool_use" if said.calls else "end_turn")
        counted = {
            "output_tokens": bill.completion,
            "output_tokens_details": {"thinking_tokens": bill.reasoning},
        }
        yield event(
            {
                "type": "message_delta",
                "delta": {"stop_reason": stop, "stop_sequence": None},
                "usage": counted,
            }
        )
        yield event({"type": "message_stop"})

    def bill(self, body: Json, said: Said) -> Bill:
        plain, cached, written = self.cache.use(prompt_blocks(body))
        thought = len(said.thinking) if self.thinks else 0
        return Bill(
            plain=plain,
            cached=cached,
            written=written,
            completion=thought + len(said.text) + size(said.calls),
            reasoning=thought,
        )


def prompt_blocks(body: Json) -> list[Json]:
    """All that a prompt is made of, in the order in which it is cached."""
    system = body.get("system", [])
    if isinstance(system, str):
        system = [{"type": "text", "text": system}]
    blocks = [*body.get("tools", []), *system]
    for message in body["messages"]:
        content = message["content"]
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        blocks += [{"role": message["role"], **block} for block in content]
    return blocks


def _start(index: int, block: Json) -> str:
    return event(
        {"type": "content_block_start", "index": index, "content_block": block}
    )


def _delta(index: int, delta: Json) -> str:
    return event({"type": "content_block_delta", "index": index, "delta": delta})
