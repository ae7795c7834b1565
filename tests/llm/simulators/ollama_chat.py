"""Ollama's own API: it makes as large a window as it is told to, and reads types as
strictly as Go does.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.llm.simulators.base import Bill, Json, Said, Sent, Simulator, expect, pieces

_CHARACTERS = 4
"""Of a token."""
_LEVELS = ("low", "medium", "high", "max")


@dataclass
class OllamaChat(Simulator):
    """`/api/chat`, `/api/show` and `/api/ps`. What a request does not say is as the
    server has it; fields that it does not know are ignored, and what is longer than the
    window loses its beginning unless `truncate` is false.

    That results name their tools and thoughts of calls come back is no rule of the
    server's, but of its templates.
    """

    model: str = "qwen3:8b"
    own_window: int = 40_960
    """The model's own, which nothing goes beyond."""
    default_window: int = 4_096
    parameters: str = ""
    """The model's, as its maker has set them."""
    thinks: bool = True
    knows_truncate: bool = True
    """As since 0.12.6."""
    levels: tuple[str, ...] = _LEVELS
    """Words for how much to think; older servers know fewer."""
    is_remote: bool = False
    """It runs in Ollama's cloud."""
    memory: int = 10**9
    """The largest window that fits in."""
    has_ids: bool = True
    window: int = 0
    """That of the loaded model."""
    loads: list[int] = field(default_factory=list)
    """The window of each loading."""
    read: str = ""
    """The text that the model got to read the last time."""
    issued: dict[str, Said] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return super().url.removesuffix("/v1")

    def handle(self, sent: Sent) -> tuple[int, str, bytes]:
        if sent.path == "/api/show":
            return 200, "application/json", json.dumps(self._shown()).encode()
        status, kind, data = super().handle(sent)
        return status, "application/x-ndjson" if status == 200 else kind, data

    def refusal(self, refused: Any) -> Json:
        return {"error": refused.message}

    def get(self, path: str) -> Json | None:
        """Only what is loaded is told."""
        if path == "/api/version":
            return {"version": "0.13.5"}
        if path == "/v1/models":
            return {"object": "list", "data": [{"id": self.model, "object": "model"}]}
        if path != "/api/ps":
            return None
        loaded = {
            "name": self.model,
            "model": self.model,
            "context_length": self.window,
        }
        return {"models": [loaded] if self.window else []}

    def _shown(self) -> Json:
        return {
            **({"remote_host": "https://ollama.com:443"} if self.is_remote else {}),
            "parameters": self.parameters,
            "model_info": {
                "general.architecture": "qwen3",
                "qwen3.context_length": self.own_window,
            },
            "capabilities": [
                "completion",
                "tools",
                *(["thinking"] if self.thinks else []),
            ],
        }

    def check(self, sent: Sent) -> None:
        body = sent.body
        expect(sent.path == "/api/chat", "404 page not found", 404)
        expect(body["model"] == self.model, f"model '{body['model']}' not found", 404)
        for message in body["messages"]:
            self._check_message(message)
        think = body.get("think")
        if isinstance(think, str):
            words = ", ".join(f'"{level}"' for level in self.levels)
            expect(
                think in self.levels,
                f'invalid think value: "{think}" (must be {words}, true, or false)',
            )
        expect(self.thinks or not think, f'"{self.model}" does not support thinking')
        options = body.get("options", {})
        expect(
            isinstance(options.get("num_ctx", 0), int),
            'option "num_ctx" must be of type integer',
        )
        self._load(options)
        whole = len(_prompt(body)) // _CHARACTERS
        if self.knows_truncate and body.get("truncate") is False:
            words = (
                f"request ({whole} tokens) exceeds the available context size"
                f" ({self.window} tokens), try increasing it"
            )
            error = {
                "error": {
                    "code": 400,
                    "message": words,
                    "type": "exceed_context_size_error",
                }
            }
            expect(whole < self.window, json.dumps(error))

    def _check_message(self, message: Json) -> None:
        expect(
            isinstance(message["content"], str),
            "json: cannot unmarshal array into Message.content of type string",
        )
        calls = message.get("tool_calls", [])
        for call in calls:
            is_object = isinstance(call["function"]["arguments"], dict)
            expect(
                is_object,
                "json: cannot unmarshal string into Go struct field arguments of type"
                " orderedmap.Map",
            )
        if message["role"] == "tool":
            expect(message.get("tool_name"), "nobody knows which tool this is from")
        if calls and (
            known := self.issued.get(json.dumps(calls[0]["function"]["arguments"]))
        ):
            expect(
                message.get("thinking", "") == known.thinking,
                "the thoughts of a message with calls are gone",
            )

    def _load(self, options: Json) -> None:
        """Another window than the loaded model has, and it is loaded anew."""
        asked = options.get("num_ctx", self.window or self.default_window)
        if (window := min(asked, self.own_window)) == self.window:
            return
        expect(
            window <= self.memory,
            "model requires more system memory (16.3 GiB) than is available (7.9 GiB)",
            500,
        )
        self.window = window
        self.loads.append(window)

    def answer(self, sent: Sent, said: Said) -> Iterator[str]:
        turn = len(self.bills) + 1
        self.read = _prompt(sent.body)
        if len(self.read) > self.window * _CHARACTERS:
            self.read = self.read[-(self.window // 2 + 2) * _CHARACTERS :]
        thinking = "" if sent.body.get("think") is False else said.thinking
        written = len(thinking) + len(said.text) + len(json.dumps(said.calls))
        bill = Bill(len(self.read) // _CHARACTERS, completion=written // _CHARACTERS)
        self.bills.append(bill)
        for piece in pieces(thinking):
            yield self._line({"content": "", "thinking": piece})
        for piece in pieces(said.text):
            yield self._line({"content": piece})
        for number, (name, arguments) in enumerate(said.calls):
            made: Json = {
                "function": {"index": number, "name": name, "arguments": arguments}
            }
            yield self._line(
                {"content": "", "tool_calls": [made | self._id(turn, number)]}
            )
        last = {
            "done": True,
            "done_reason": said.stop or "stop",
            "total_duration": 9_000,
            "load_duration": 1_000,
        }
        counted = {"prompt_eval_count": bill.prompt, "eval_count": bill.completion}
        yield self._line({"content": ""}, {**last, **counted})
        if said.calls:
            self.issued[json.dumps(said.calls[0][1])] = said

    def _id(self, turn: int, number: int) -> Json:
        return {"id": f"call_{self.number}{turn}{number}"} if self.has_ids else {}

    def _line(self, message: Json, more: Json | None = None) -> str:
        said = {
            "model": self.model,
            "message": {"role": "assistant", **message},
            "done": False,
        }
        return f"{json.dumps({**said, **(more or {})})}\n"


def _prompt(body: Json) -> str:
    """All that the model is to read."""
    said = [json.dumps(message, ensure_ascii=False) for message in body["messages"]]
    return "".join([json.dumps(body["tools"]) if body.get("tools") else "", *said])
