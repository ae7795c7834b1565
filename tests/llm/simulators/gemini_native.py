"""Gemini's own API (`streamGenerateContent`), as litellm speaks it.

The rules are those of ai.google.dev/gemini-api/docs/thought-signatures.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from tests.llm.simulators.base import (
    Bill,
    Json,
    Said,
    Sent,
    Simulator,
    event,
    expect,
    pieces,
    size,
)


@dataclass
class GeminiNative(Simulator):
    """Signs the first call of each step, and wants its signature back in the turn."""

    signatures: list[str] = field(default_factory=list)

    def check(self, sent: Sent) -> None:
        expect(":streamGenerateContent" in sent.path, "not found", 404)
        contents = sent.body["contents"]
        for content in contents[_start_of_turn(contents) :]:
            self._check_signature(content)
        for before, after in pairwise(contents):
            calls = _values(before, "functionCall")
            if not calls:
                continue
            answers = _values(after, "functionResponse")
            expect(
                len(calls) == len(answers),
                "Please ensure that the number of function response parts is equal to"
                " the number of function call parts of the function call turn.",
            )
            for call, answer in zip(calls, answers, strict=True):
                expect(
                    call["name"] == answer["name"],
                    "A function response has another name than its call.",
                )

    def _check_signature(self, content: Json) -> None:
        parts = [part for part in content["parts"] if _value(part, "functionCall")]
        expect(
            not parts or _value(parts[0], "thoughtSignature") in self.signatures,
            "Function call is missing a thought_signature in functionCall parts.",
        )

    def answer(self, sent: Sent, said: Said) -> Iterator[str]:
        bill = Bill(
            size(sent.body["contents"]), completion=size([said.text, said.thinking])
        )
        self.bills.append(bill)
        for piece in pieces(said.thinking):
            yield _event([{"text": piece, "thought": True}])
        for piece in pieces(said.text):
            yield _event([{"text": piece}])
        for number, (name, arguments) in enumerate(said.calls):
            part: Json = {"functionCall": {"name": name, "args": arguments}}
            if number == 0:
                part["thoughtSignature"] = self._sign()
            yield _event([part])
        yield event(
            {
                "candidates": [
                    {"content": {"parts": [], "role": "model"}, "finishReason": "STOP"}
                ],
                "usageMetadata": {
                    "promptTokenCount": bill.prompt,
                    "candidatesTokenCount": bill.completion,
                    "totalTokenCount": bill.prompt + bill.completion,
                },
            }
        )

    def _sign(self) -> str:
        signature = f"c2lnbmF0dXJl{self.number}{len(self.signatures)}" * 20
        self.signatures.append(signature)
        self.opaque.append(signature)
        return signature


def _start_of_turn(contents: list[Json]) -> int:
    """Return the place of the last message that a person wrote."""
    for place in range(len(contents) - 1, -1, -1):
        content = contents[place]
        if content.get("role") == "user" and not _values(content, "functionResponse"):
            return place
    return 0


def _values(content: Json, name: str) -> list[Json]:
    values = [_value(part, name) for part in content.get("parts", [])]
    return [value for value in values if value]


def _value(part: Json, name: str) -> Any:
    """Return a field, whose name may also be written with underscores."""
    return part.get(name) or part.get(re.sub("[A-Z]", r"_\g<0>", name).lower())


def _event(parts: list[Json]) -> str:
    return event({"candidates": [{"content": {"parts": parts, "role": "model"}}]})
