"""The answer of Anthropic's Messages API.

Rules: platform.claude.com/docs (streaming, handling stop reasons).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from cdd_agent.llm.direct.characters import call_of
from cdd_agent.llm.direct.json_values import (
    as_dict,
    as_int,
    as_object,
    as_string,
    dicts_in,
)
from cdd_agent.llm.direct.reply_reader import ReplyReader
from cdd_agent.llm.port import ModelEvent, ToolCall, Usage

_THOUGHTS = ("thinking", "redacted_thinking")


class _ContentBlock(Struct):
    """A block of the answer: its start, and the pieces of each of its texts."""

    start: dict[str, Any]
    pieces: dict[str, list[str]] = field(default_factory=dict)

    @property
    def type(self) -> str:
        return as_string(self.start.get("type"))

    def add(self, name: str, piece: str) -> None:
        self.pieces.setdefault(name, []).append(piece)

    def text(self, name: str) -> str:
        return as_string(self.start.get(name)) + "".join(self.pieces.get(name, ()))

    @property
    def call(self) -> ToolCall:
        arguments = "".join(self.pieces.get("input", ()))
        if not arguments:
            arguments = json.dumps(as_dict(self.start.get("input")))
        return call_of(self.start.get("id"), self.start.get("name"), arguments)

    @property
    def complete(self) -> dict[str, Any]:
        """The block in the form to send back."""
        block = dict(self.start)
        if self.type == "tool_use":
            block["input"] = as_object(self.call.arguments)
            return block
        for name in self.pieces:
            block[name] = self.text(name)
        return block


_DELTAS: Mapping[str, tuple[str, str]] = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
    "input_json_delta": ("partial_json", "input"),
}
"""Field of the text and field of the block, for each kind of piece."""


class MessageReader(ReplyReader):
    def __init__(self, origin: str, *, has_tools: bool = True) -> None:
        super().__init__(origin, has_tools=has_tools)
        self._blocks: dict[int, _ContentBlock] = {}
        self._counts: dict[str, Any] = {}

    def read_object(self, document: dict[str, Any]) -> Iterator[ModelEvent]:
        index = as_int(document.get("index")) or 0
        match document.get("type"):
            # some servers send a whole message despite the request for a stream
            case "message":
                self.is_empty = False
                self._count(document)
                for place, block in enumerate(dicts_in(document.get("content"))):
                    yield from self._begin_block(place, block)
                self._stop_at(document)
            case "message_start":
                self.is_empty = False
                self._count(as_dict(document.get("message")))
            case "content_block_start":
                block = as_dict(document.get("content_block"))
                yield from self._begin_block(index, block)
            case "content_block_delta":
                yield from self._add(index, as_dict(document.get("delta")))
            case "message_delta":
                self._count(document)
                self._stop_at(as_dict(document.get("delta")))
            # a ping, the end of a block or message, or a future kind
            case _:
                pass

    def _begin_block(self, index: int, start: dict[str, Any]) -> Iterator[ModelEvent]:
        self.is_empty = False
        block = _ContentBlock(start)
        self._blocks[index] = block
        yield from self._show(block.type, as_string(start.get(block.type)))

    def _add(self, index: int, delta: dict[str, Any]) -> Iterator[ModelEvent]:
        names = _DELTAS.get(as_string(delta.get("type")))
        if names is None:
            return
        source, target = names
        self.is_empty = False
        piece = as_string(delta.get(source))
        if index not in self._blocks:
            self._blocks[index] = _ContentBlock(_start_of_block(target))
        self._blocks[index].add(target, piece)
        yield from self._show(target, piece)

    def _show(self, kind: str, piece: str) -> Iterator[ModelEvent]:
        if kind == "text":
            yield from self._stream.feed(piece)
        elif kind == "thinking":
            yield from self._stream.think(piece)

    def _stop_at(self, end: dict[str, Any]) -> None:
        if word := as_string(end.get("stop_reason")):
            self._stop(word)

    def _count(self, counted: dict[str, Any]) -> None:
        """Update the counts. They replace earlier ones unless they are zero."""
        for name, number in as_dict(counted.get("usage")).items():
            if number or name not in self._counts:
                self._counts[name] = number
        self._usage = _usage(self._counts)

    def _calls(self) -> Sequence[ToolCall]:
        return [block.call for block in self._output if block.type == "tool_use"]

    def _data(self) -> object:
        """Return all blocks except empty texts, if they include thoughts."""
        if not any(block.type in _THOUGHTS for block in self._output):
            return None
        blocks = []
        for block in self._output:
            if block.type != "text" or block.text("text").strip():
                blocks.append(block.complete)
        return blocks

    @property
    def _output(self) -> list[_ContentBlock]:
        return [block for _, block in sorted(self._blocks.items())]


def _start_of_block(target: str) -> dict[str, Any]:
    return {"type": target} if target in ("text", "thinking") else {}


def _usage(counts: dict[str, Any]) -> Usage | None:
    prompt = as_int(counts.get("input_tokens"))
    completion = as_int(counts.get("output_tokens"))
    if prompt is None and completion is None:
        return None
    cached = as_int(counts.get("cache_read_input_tokens")) or 0
    cache_write = as_int(counts.get("cache_creation_input_tokens")) or 0
    details = as_dict(counts.get("output_tokens_details"))
    return Usage(
        (prompt or 0) + cached + cache_write,
        completion or 0,
        cached_tokens=cached,
        cache_write_tokens=cache_write,
        thinking_tokens=as_int(details.get("thinking_tokens")) or 0,
    )
