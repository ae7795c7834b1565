"""Ollama behind its chat completions: what is longer than its window loses its
beginning, without a word.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.llm.simulators.base import Bill, Json, Said, Sent, expect
from tests.llm.simulators.chat import Chat

_CHARACTERS = 4


@dataclass
class Ollama(Chat):
    """`/v1` takes no `num_ctx` and ignores what it does not know. A token is four
    characters here.
    """

    model: str = "qwen3:8b"
    window: int = 4096
    drops_messages: bool = False
    """The oldest messages go first, until the rest fits, as with models that have no
    half of a window to keep.
    """
    tells: bool = True
    """It has `/api/ps`."""
    read: str = ""
    """The text that the model got to read the last time."""

    def check(self, sent: Sent) -> None:
        expect(sent.path == "/v1/chat/completions", "404 page not found", 404)
        expect(
            sent.body["model"] == self.model,
            f"model '{sent.body['model']}' not found",
            404,
        )
        expect(
            all(
                isinstance(message["content"], str) for message in sent.body["messages"]
            ),
            "invalid message format",
        )

    def get(self, path: str) -> Json | None:
        """Only what is loaded, as after the first request, is told."""
        if path != "/api/ps" or not self.tells:
            return None
        loaded = {
            "name": self.model,
            "model": self.model,
            "context_length": self.window,
        }
        return {"models": [loaded] if self.bills else []}

    def bill(self, body: Json, said: Said) -> Bill:
        texts = [message["content"] for message in body["messages"]]
        if self.drops_messages:
            while len(texts) > 2 and sum(map(len, texts)) > self.window * _CHARACTERS:
                del texts[1]
        self.read = "".join(texts)
        if len(self.read) > self.window * _CHARACTERS:
            self.read = self.read[-(self.window // 2 + 2) * _CHARACTERS :]
        completion = len(said.text + json.dumps(said.calls)) // _CHARACTERS
        return Bill(len(self.read) // _CHARACTERS, completion=completion)

    def usage(self, bill: Bill) -> Json:
        return {
            "prompt_tokens": bill.prompt,
            "completion_tokens": bill.completion,
            "total_tokens": bill.prompt + bill.completion,
        }

    def deltas(self, said: Said, turn: int) -> Iterator[Any]:
        for delta in super().deltas(said, turn):
            match delta:
                case {"reasoning_content": text}:
                    yield {"reasoning": text, "content": ""}
                case _:
                    yield delta
