"""The answer of Anthropic's Messages API: one message, from events or as a whole.

The rules are those of platform.claude.com/docs (streaming, handling stop reasons).
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct, field

from cdd_agent.llm.direct.characters import whole_characters
from cdd_agent.llm.direct.json_values import (
    as_dict,
    as_int,
    as_list,
    as_object,
    as_string,
)
from cdd_agent.llm.direct.reported_failures import read_document
from cdd_agent.llm.direct.stop_reasons import stop_reason_of
from cdd_agent.llm.port import (
    Done,
    ModelEvent,
    ProviderData,
    StopReason,
    ToolCall,
    Usage,
)
from cdd_agent.llm.reply_stream import ReplyStream

_THOUGHTS = frozenset({"thinking", "redacted_thinking"})


class _ContentBlock(Struct):
    """A block of the answer in the making, as it began, and what was added to each of
    its texts.
    """

    began: dict[str, Any]
    added: dict[str, list[str]] = field(default_factory=dict)

    def add(self, name: str, piece: str) -> None:
        self.added.setdefault(name, []).append(piece)

    def text(self, name: str) -> str:
        return as_string(self.began.get(name)) + "".join(self.added.get(name, ()))

    @property
    def call(self) -> ToolCall:
        written = "".join(self.added.get("input", ())) or json.dumps(
            as_dict(self.began.get("input"))
        )
        parts = (
            as_string(self.began.get("id")),
            as_string(self.began.get("name")),
            written,
        )
        return ToolCall(*map(whole_characters, parts))

    @property
    def whole(self) -> dict[str, Any]:
        """The block as the provider wants it back."""
        if self.began.get("type") == "tool_use":
            return {**self.began, "input": as_object(self.call.arguments)}
        return {**self.began, **{name: self.text(name) for name in self.added}}


_DELTAS: Mapping[str, tuple[str, str]] = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
    "input_json_delta": ("partial_json", "input"),
}
"""By the kind of a piece: the field that holds it, and the field of the block that it
belongs to.
"""


class MessageReader:
    """One message in the making, from events or as a whole."""

    def __init__(self, origin: str, *, has_tools: bool = True) -> None:
        self.finished = False
        self.empty = True
        self._origin = origin
        self._blocks: dict[int, _ContentBlock] = {}
        self._text = ReplyStream(has_tools=has_tools)
        self._done = Done()
        self._counted: dict[str, Any] = {}

    def take(self, text: str) -> Iterator[ModelEvent]:
        document = read_document(text)
        place = as_int(document.get("index")) or 0
        match document.get("type"):
            case "message":
                # a whole answer, as some servers send though a stream was asked for
                self.empty = False
                self._counted |= as_dict(document.get("usage"))
                for index, block in enumerate(as_list(document.get("content"))):
                    yield from self._begin(index, as_dict(block))
                self._stop(document)
            case "message_start":
                self.empty = False
                self._counted |= as_dict(as_dict(document.get("message")).get("usage"))
            case "content_block_start":
                yield from self._begin(place, as_dict(document.get("content_block")))
            case "content_block_delta":
                yield from self._add(place, as_dict(document.get("delta")))
            case "message_delta":
                self._counted |= {
                    name: n
                    for name, n in as_dict(document.get("usage")).items()
                    if n is not None
                }
                self._stop(as_dict(document.get("delta")))
            case _:
                # a ping, the end of a block or of the message, or what will come next
                # year
                pass

    def end(self) -> Iterator[ModelEvent]:
        yield from self._text.end()
        calls = [
            block.call
            for block in self._blocks_in_order
            if block.began.get("type") == "tool_use"
        ]
        if self._done.stop_reason is StopReason.STOP:
            yield from calls or self._text.calls()

    @property
    def done(self) -> Done:
        blocks, data = self._blocks_in_order, None
        if any(as_string(block.began.get("type")) in _THOUGHTS for block in blocks):
            whole = [
                block.whole
                for block in blocks
                if block.began.get("type") != "text" or block.text("text").strip()
            ]
            data = ProviderData(
                self._origin, whole_characters(json.dumps(whole, ensure_ascii=False))
            )
        return Done(self._done.stop_reason, self._usage, data, self._done.stop_word)

    @property
    def _blocks_in_order(self) -> list[_ContentBlock]:
        return [block for _, block in sorted(self._blocks.items())]

    def _begin(self, index: int, block: dict[str, Any]) -> Iterator[ModelEvent]:
        self.empty = False
        self._blocks[index] = _ContentBlock(block)
        if block.get("type") in ("text", "thinking"):
            yield from self._shown(
                as_string(block["type"]), as_string(block.get(as_string(block["type"])))
            )

    def _add(self, index: int, delta: dict[str, Any]) -> Iterator[ModelEvent]:
        kind = as_string(delta.get("type"))
        if kind not in _DELTAS:
            return
        source, target = _DELTAS[kind]
        piece = as_string(delta.get(source))
        began = {"type": target} if target in ("text", "thinking") else {}
        self._blocks.setdefault(index, _ContentBlock(began)).add(target, piece)
        self.empty = False
        yield from self._shown(target, piece)

    def _stop(self, said: dict[str, Any]) -> None:
        if word := as_string(said.get("stop_reason")):
            reason = stop_reason_of(word)
            self._done = Done(
                reason, stop_word=word if reason is StopReason.UNKNOWN else ""
            )
            self.finished = True

    @property
    def _usage(self) -> Usage | None:
        counted = {name: as_int(number) for name, number in self._counted.items()}
        if counted.get("input_tokens") is None and counted.get("output_tokens") is None:
            return None
        read, written = (
            counted.get(f"cache_{name}_input_tokens") or 0
            for name in ("read", "creation")
        )
        thought = as_int(
            as_dict(self._counted.get("output_tokens_details")).get("thinking_tokens")
        )
        return Usage(
            (counted.get("input_tokens") or 0) + read + written,
            counted.get("output_tokens") or 0,
            cached_tokens=read,
            cache_write_tokens=written,
            thinking_tokens=thought or 0,
        )

    def _shown(self, kind: str, piece: str) -> Iterator[ModelEvent]:
        if kind == "text":
            yield from self._text.feed(piece)
        elif kind == "thinking":
            yield from self._text.think(piece)
