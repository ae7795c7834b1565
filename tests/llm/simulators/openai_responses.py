"""OpenAI's Responses API without storage, for GPT-5.6."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from tests.llm.simulators.base import (
    Bill,
    Json,
    PrefixCache,
    Refused,
    Said,
    Sent,
    Simulator,
    event,
    expect,
    expect_data_url,
    pieces,
    size,
)

_FIELDS = {
    *(
        "model",
        "input",
        "instructions",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "stream",
        "store",
        "include",
    ),
    *(
        "reasoning",
        "text",
        "max_output_tokens",
        "prompt_cache_key",
        "metadata",
        "truncation",
        "service_tier",
    ),
}
_ITEM_FIELDS = {
    "message": {"type", "id", "role", "content", "status", "phase"},
    "reasoning": {"type", "id", "summary", "content", "encrypted_content", "status"},
    "function_call": {"type", "id", "call_id", "name", "arguments", "status"},
    "function_call_output": {"type", "id", "call_id", "output", "status"},
}
_EFFORTS = ("none", "low", "medium", "high", "xhigh")
_SHORTEST_CACHED = 1_024
_STOPPED = ("max_output_tokens", "content_filter")


@dataclass
class OpenAIResponses(Simulator):
    """It thinks, and hides its thoughts unless a summary is asked for; nothing is
    stored.
    """

    is_verified: bool = True
    """Others may not stream, nor see summaries."""
    cache: dict[str, PrefixCache] = field(default_factory=dict)
    """By the key: what was asked with another one is on another machine."""
    issued: dict[str, Json] = field(default_factory=dict)
    """Items that were given, by their ids."""
    reasoning_of: dict[str, str] = field(default_factory=dict)
    """Of items that came of thoughts: the id of those."""

    def refusal(self, refused: Refused) -> Json:
        return {
            "error": {
                "message": refused.message,
                "type": "invalid_request_error",
                "code": None,
                **refused.body,
            }
        }

    def check(self, sent: Sent) -> None:
        body = sent.body
        expect(sent.path == "/v1/responses", "not found", 404)
        expect(
            sent.headers.get("authorization") == "Bearer a-key",
            "Incorrect API key provided",
            401,
        )
        for name in ("temperature", "top_p"):
            if name in body:
                raise Refused(
                    f"Unsupported parameter: '{name}' is not supported with this"
                    " model.",
                    param=name,
                )
        for name in sorted(body.keys() - _FIELDS):
            raise Refused(
                f"Unknown parameter: '{name}'.", param=name, code="unknown_parameter"
            )
        expect(
            isinstance(body.get("input"), str) or body.get("input"),
            "Missing required parameter: 'input'.",
        )
        reasoning = body.get("reasoning", {})
        if reasoning.get("effort", "low") not in _EFFORTS:
            raise Refused(
                f"Unsupported value: '{reasoning['effort']}' is not supported.",
                param="reasoning.effort",
            )
        if not self.is_verified and body.get("stream"):
            raise Refused(
                "Your organization must be verified to stream this model.",
                param="stream",
            )
        if not self.is_verified and "summary" in reasoning:
            words = (
                "Your organization must be verified to generate reasoning summaries."
            )
            raise Refused(words, param="reasoning.summary", code="unsupported_value")
        for number, tool in enumerate(body.get("tools", [])):
            self._check_tool(f"tools[{number}]", tool)
        self._check_input(
            [{"role": "user", "content": body["input"]}]
            if isinstance(body["input"], str)
            else body["input"]
        )

    def _check_tool(self, at: str, tool: Json) -> None:
        expect(
            tool.get("type") == "function" and "name" in tool,
            f"Missing required parameter: '{at}.name'.",
        )
        if tool.get("strict", True):
            schema = tool["parameters"]
            is_strict = schema.get("additionalProperties") is False
            is_strict = is_strict and sorted(schema.get("required", [])) == sorted(
                schema.get("properties", {})
            )
            expect(
                is_strict,
                f"Invalid schema for function '{tool['name']}': 'required' must include"
                " every key",
            )

    def _check_input(self, items: list[Json]) -> None:
        open_calls: list[str] = []
        for number, item in enumerate(items):
            kind = item.get("type", "message")
            expect(
                kind in _ITEM_FIELDS,
                f"Invalid value: '{kind}'. Supported values are:"
                f" {sorted(_ITEM_FIELDS)}",
            )
            for name in sorted(item.keys() - _ITEM_FIELDS[kind]):
                raise Refused(
                    f"Unknown parameter: 'input[{number}].{name}'.",
                    param=f"input[{number}].{name}",
                )
            if kind == "message":
                expect(
                    item["role"] in ("user", "assistant", "system", "developer"),
                    f"Invalid role {item['role']}",
                )
                self._check_content(item)
            if item.get("id") is not None:
                self._check_own(number, item, items)
            if kind == "function_call":
                expect(
                    len(item["call_id"]) <= 64,
                    f"Invalid 'input[{number}].call_id': string too long.",
                )
                expect(
                    item["call_id"] not in open_calls,
                    f"Duplicate call {item['call_id']}",
                )
                open_calls.append(item["call_id"])
            if kind == "function_call_output":
                words = (
                    "No tool call found for function call output with call_id"
                    f" {item['call_id']}."
                )
                expect(item["call_id"] in open_calls, words)
                open_calls.remove(item["call_id"])
        expect(
            not open_calls,
            f"No tool output found for function call {', '.join(open_calls)}.",
        )
        self._check_pairs(items)

    def _check_content(self, item: Json) -> None:
        for part in item["content"] if isinstance(item["content"], list) else []:
            kinds = (
                ("input_text", "input_image")
                if item["role"] == "user"
                else ("output_text", "refusal")
            )
            expect(
                part["type"] in kinds,
                f"Invalid value: '{part['type']}'. Supported values are: {kinds}",
            )
            if part["type"] == "input_image":
                expect_data_url(part["image_url"])

    def _check_own(self, number: int, item: Json, items: list[Json]) -> None:
        """An item with an id is one that was given here; nothing was kept of it but
        what only this model can read.
        """
        id_ = item["id"]
        expect(
            id_ in self.issued,
            f"Invalid 'input[{number}].id': '{id_}' is not an id of this API.",
        )
        if item["type"] == "reasoning":
            words = (
                f"Item with id '{id_}' not found. Items are not persisted when `store`"
                " is set to false."
            )
            expect(item.get("encrypted_content"), words, 404)
            if item != self.issued[id_]:
                words = f"The encrypted content for item {id_} could not be verified."
                raise Refused(words, code="invalid_encrypted_content")
            return
        needed = self.reasoning_of.get(id_)
        before = [one.get("id") for one in items[:number]]
        words = (
            f"Item '{id_}' of type '{item['type']}' was provided without its required"
            f" 'reasoning' item: '{needed}'."
        )
        expect(needed is None or needed in before, words)

    def _check_pairs(self, items: list[Json]) -> None:
        for item, after in pairwise([*items, {}]):
            if item.get("type") == "reasoning":
                is_followed = self.reasoning_of.get(after.get("id", "")) == item["id"]
                words = (
                    f"Item '{item['id']}' of type 'reasoning' was provided without its"
                    " required following item."
                )
                expect(is_followed, words)

    def answer(self, sent: Sent, said: Said) -> Iterator[str]:
        body = sent.body
        bill = self._bill(body, said)
        self.bills.append(bill)
        output = self._output(body, said)
        head = {
            "id": f"resp_{self.number}_{len(self.bills)}",
            "object": "response",
            "model": body["model"],
            "error": None,
        }
        stopped = said.stop if said.stop in _STOPPED else None
        state = {
            "status": "incomplete" if stopped else "completed",
            "incomplete_details": {"reason": stopped} if stopped else None,
            "usage": _usage(bill),
        }
        if not body.get("stream"):
            yield json.dumps({**head, **state, "output": output})
            return
        yield event(
            {
                "type": "response.created",
                "response": {**head, "status": "in_progress", "output": []},
            }
        )
        yield event(
            {
                "type": "response.in_progress",
                "response": {**head, "status": "in_progress", "output": []},
            }
        )
        for place, item in enumerate(output):
            yield from _item(place, item)
        # Thoughts are whole only where they are done.
        whole = {**head, **state, "output": [_half(item) for item in output]}
        yield event({"type": f"response.{state['status']}", "response": whole})

    def _output(self, body: Json, said: Said) -> list[Json]:
        """Thoughts, then what came of them; each with an id."""
        turn = f"{self.number}_{len(self.bills)}"
        thinks = said.thinking and body.get("reasoning", {}).get("effort") != "none"
        output: list[Json] = []
        if thinks:
            is_seen = "summary" in body.get("reasoning", {})
            summary = (
                [{"type": "summary_text", "text": said.thinking}] if is_seen else []
            )
            thought: Json = {
                "type": "reasoning",
                "id": f"rs_{turn}",
                "summary": summary,
            }
            if "reasoning.encrypted_content" in body.get("include", []):
                self.opaque.append(f"gAAAA-{turn}-{said.thinking[::-1]}==")
                thought["encrypted_content"] = self.opaque[-1]
            output.append(thought)
        if said.text:
            part = {
                "type": "output_text",
                "text": said.text,
                "annotations": [],
                "logprobs": [],
            }
            phase = "commentary" if said.calls else "final_answer"
            message = {
                "type": "message",
                "id": f"msg_{turn}",
                "role": "assistant",
                "status": "completed",
            }
            output.append({**message, "content": [part], "phase": phase})
        for number, (name, arguments) in enumerate(said.calls):
            ids = {"id": f"fc_{turn}_{number}", "call_id": f"call_{turn}_{number}"}
            call = {"type": "function_call", **ids, "name": name, "status": "completed"}
            output.append({**call, "arguments": json.dumps(arguments)})
        for item in output:
            self.issued[item["id"]] = item
            if thinks and item["type"] != "reasoning":
                self.reasoning_of[item["id"]] = f"rs_{turn}"
        return output

    def _bill(self, body: Json, said: Said) -> Bill:
        """From 1,024 tokens on a prompt is written to the cache at a price of its own,
        up to its end.
        """
        items = body["input"] if isinstance(body["input"], list) else [body["input"]]
        blocks = [
            json.dumps(part)
            for part in (body.get("tools", []), body.get("instructions", ""), *items)
        ]
        sizes = [len(block) for block in blocks]
        ends = [
            end
            for end in range(1, len(blocks) + 1)
            if sum(sizes[:end]) >= _SHORTEST_CACHED
        ]
        cache = self.cache.setdefault(body.get("prompt_cache_key", ""), PrefixCache())
        read = cache.longest(blocks, ends)
        cache.remember(blocks, ends)
        rest, thought = sum(sizes[read:]), len(said.thinking)
        return Bill(
            plain=0 if ends else rest,
            cached=sum(sizes[:read]),
            written=rest if ends else 0,
            completion=thought + len(said.text) + size(said.calls),
            reasoning=thought,
        )


def _usage(bill: Bill) -> Json:
    return {
        "input_tokens": bill.prompt,
        "input_tokens_details": {
            "cached_tokens": bill.cached,
            "cache_write_tokens": bill.written,
        },
        "output_tokens": bill.completion,
        "output_tokens_details": {"reasoning_tokens": bill.reasoning},
        "total_tokens": bill.prompt + bill.completion,
    }


def _half(item: Json) -> Json:
    return (
        {**item, "encrypted_content": item["encrypted_content"][:8]}
        if "encrypted_content" in item
        else item
    )


def _item(place: int, item: Json) -> Iterator[str]:
    """The events of one item, from its beginning to its end."""
    at: dict[str, Any] = {"output_index": place, "item_id": item["id"]}
    empty: Json = {
        "summary": [],
        "content": [],
        "arguments": "",
        "status": "in_progress",
    }
    began = {
        **_half(item),
        **{name: value for name, value in empty.items() if name in item},
    }
    yield event(
        {"type": "response.output_item.added", "output_index": place, "item": began}
    )
    for number, part in enumerate(item.get("summary", [])):
        where = {**at, "summary_index": number}
        yield event(
            {
                "type": "response.reasoning_summary_part.added",
                **where,
                "part": {**part, "text": ""},
            }
        )
        for piece in pieces(part["text"]):
            yield event(
                {
                    "type": "response.reasoning_summary_text.delta",
                    **where,
                    "delta": piece,
                }
            )
        yield event(
            {
                "type": "response.reasoning_summary_text.done",
                **where,
                "text": part["text"],
            }
        )
    for number, part in enumerate(item.get("content", [])):
        where = {**at, "content_index": number}
        yield event(
            {
                "type": "response.content_part.added",
                **where,
                "part": {**part, "text": ""},
            }
        )
        for piece in pieces(part["text"]):
            yield event(
                {
                    "type": "response.output_text.delta",
                    **where,
                    "delta": piece,
                    "obfuscation": "x" * 5,
                }
            )
        yield event(
            {"type": "response.output_text.done", **where, "text": part["text"]}
        )
        yield event({"type": "response.content_part.done", **where, "part": part})
    for piece in pieces(item.get("arguments", "")):
        yield event(
            {"type": "response.function_call_arguments.delta", **at, "delta": piece}
        )
    if "arguments" in item:
        yield event(
            {
                "type": "response.function_call_arguments.done",
                **at,
                "arguments": item["arguments"],
            }
        )
    yield event(
        {"type": "response.output_item.done", "output_index": place, "item": item}
    )
