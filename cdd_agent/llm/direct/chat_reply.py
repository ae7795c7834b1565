"""A reply in the form of chat completions, put together from its pieces: text,
thoughts, calls, and all that is theirs.

What servers write is never trusted to have a shape.
"""

import json
from collections.abc import Iterator
from typing import Any

from msgspec import Struct, field

from cdd_agent.llm.direct.characters import whole_characters
from cdd_agent.llm.direct.json_values import (
    as_amount,
    as_dict,
    as_int,
    as_list,
    as_string,
)
from cdd_agent.llm.direct.reported_failures import read_document
from cdd_agent.llm.direct.stop_reasons import stop_reason_of
from cdd_agent.llm.port import (
    Done,
    ModelEvent,
    ProviderData,
    StopReason,
    TextDelta,
    ToolCall,
    Usage,
)
from cdd_agent.llm.reply_stream import ReplyStream

THOUGHTS = ("reasoning_content", "reasoning", "reasoning_text")
"""Fields that hold thoughts as text: a server uses one of them, some the same text in
two. It wants them back within a loop with tools; later it does not read them, or
refuses them.
"""


class _CallInPieces(Struct):
    id: str
    name: str
    arguments: list[str] = field(default_factory=list)


class ToolCallPieces:
    """Puts calls together from pieces that may arrive interleaved, numbered or not."""

    def __init__(self) -> None:
        self._calls: list[_CallInPieces] = []
        self._at: dict[int, _CallInPieces] = {}
        """The call that a number stands for now: some servers give every call the
        number 0.
        """

    def add(self, index: int | None, id_: str, name: str, arguments: str) -> None:
        """Take a piece; what it leaves out is empty."""
        call = (
            self._at.get(index)
            if index is not None
            else (self._calls[-1] if self._calls else None)
        )
        if call is None or (
            name and id_ != call.id and (id_ or index is None or name != call.name)
        ):
            # a piece that goes on with the call of its number brings no new name
            call = _CallInPieces(id_ or f"call_{len(self._calls) + 1}", name)
            self._calls.append(call)
        call.name = call.name or name
        call.arguments.append(arguments)
        if index is not None:
            self._at[index] = call

    def __len__(self) -> int:
        return len(self._calls)

    def whole(self) -> list[ToolCall]:
        """The calls, in the order in which they began."""
        parts = ((call.id, call.name, "".join(call.arguments)) for call in self._calls)
        return [ToolCall(*map(whole_characters, part)) for part in parts]


class ChatReply:
    """One reply in the making."""

    def __init__(
        self, origin: str = "", *, keeps_text: bool = False, has_tools: bool = True
    ) -> None:
        """`keeps_text`: its provider wants thoughts that are in the text back there."""
        self.finished = False
        self.empty = True
        self._origin, self._keeps_text = origin, keeps_text
        self._stop_reason = StopReason.STOP
        self._stop_word = ""
        self._usage: Usage | None = None
        self._calls = ToolCallPieces()
        self._extra: list[Any] = []
        """Of each call what its provider wants back with it."""
        self._text = ReplyStream(has_tools=has_tools)
        self._thoughts: dict[str, list[str]] = {}
        """By the field that they came in."""
        self._details: list[dict[str, Any]] = []
        self._blocks: list[dict[str, Any]] = []
        """Claude's thoughts with their signatures, where they come beside the text
        (litellm).
        """
        self._parts: list[dict[str, Any]] = []
        """The content, where it comes as a list with thoughts in it."""

    def take(self, text: str) -> Iterator[ModelEvent]:
        yield from self.read(read_document(text))

    def read(self, document: dict[str, Any]) -> Iterator[ModelEvent]:
        """The same of a piece that is no text any more."""
        self._usage = usage_of(document.get("usage")) or self._usage
        choices = as_list(document.get("choices"))
        if not choices and "choices" not in document and "usage" not in document:
            return  # a piece of another kind, as some servers mix in
        self.empty = False
        if not choices:
            return
        choice = as_dict(choices[0])
        piece = as_dict(choice.get("delta")) or as_dict(choice.get("message"))
        yield from self._thought(piece)
        if refusal := as_string(piece.get("refusal")):
            self._stop_reason = StopReason.REFUSED
            yield TextDelta(whole_characters(refusal))
        yield from self._content(piece.get("content"))
        for call in map(as_dict, as_list(piece.get("tool_calls"))):
            self._call(call)
        if "delta" not in choice and "message" in choice:
            self.finished = True  # a whole answer, whatever it says
        if word := as_string(choice.get("finish_reason")):
            reason = stop_reason_of(word)
            self.finished = True
            if reason is not StopReason.STOP:  # what was refused above stays so
                self._stop_reason = reason
                self._stop_word = word if reason is StopReason.UNKNOWN else ""

    def end(self) -> Iterator[ModelEvent]:
        yield from self._text.end()
        leaked = self._text.calls()
        if self._stop_reason is StopReason.STOP:  # otherwise a call may be cut, too
            yield from self._calls.whole() or leaked

    @property
    def done(self) -> Done:
        return Done(self._stop_reason, self._usage, self._data, self._stop_word)

    @property
    def _data(self) -> ProviderData | None:
        """The data that the provider wants back; the same thoughts in two fields are
        sent in one.
        """
        message: dict[str, Any] = {}
        text = "".join(self._text.written)
        if self._keeps_text and "</think>" in text:
            message["content"] = text  # a copy of the thoughts in a field is left out
        elif self._details:
            message["reasoning_details"] = self._details
        elif self._thoughts:
            name, pieces = next(iter(self._thoughts.items()))
            message[name] = "".join(pieces)
        if self._blocks and all(
            block.get("signature") or block.get("data") for block in self._blocks
        ):
            message["thinking_blocks"] = self._blocks  # all of them or none
        if self._parts:
            message["content"] = self._parts
        if not message and not any(self._extra):
            return None
        data = json.dumps(
            {"message": message, "calls": self._extra}, ensure_ascii=False
        )
        return ProviderData(self._origin, whole_characters(data))

    def _content(self, content: object) -> Iterator[ModelEvent]:
        """A piece of the text, which some send as a list of parts, with their thoughts
        among them.
        """
        if not isinstance(content, list):
            yield from self._text.feed(as_string(content))
            return
        for part in map(as_dict, content):
            if part.get("type") == "text":
                yield from self._text.feed(as_string(part.get("text")))
            elif part.get("type") == "thinking":
                thought = "".join(
                    as_string(as_dict(one).get("text"))
                    for one in as_list(part.get("thinking"))
                )
                yield from self._text.think(thought)
        if self._parts or any(
            as_dict(part).get("type") == "thinking" for part in content
        ):
            for part in map(as_dict, content):
                _join_part(self._parts, part)

    def _thought(self, piece: dict[str, Any]) -> Iterator[ModelEvent]:
        told = False
        for name in THOUGHTS:
            if not isinstance(thought := piece.get(name), str):
                continue
            self._thoughts.setdefault(name, []).append(thought)
            if thought and not told:
                told = True
                yield from self._text.think(thought)
        for block in map(as_dict, as_list(piece.get("thinking_blocks"))):
            _join_block(self._blocks, block)
        for detail in map(as_dict, as_list(piece.get("reasoning_details"))):
            _join_detail(self._details, detail)
            text = as_string(detail.get("text")) or as_string(detail.get("summary"))
            if not told:
                yield from self._text.think(text)

    def _call(self, call: dict[str, Any]) -> None:
        function, index = as_dict(call.get("function")), call.get("index")
        arguments = function.get("arguments")
        self._calls.add(
            index if isinstance(index, int) else None,
            as_string(call.get("id")),
            # harmony's marks, left by some servers
            as_string(function.get("name")).partition("<|")[0],
            json.dumps(arguments)
            if isinstance(arguments, dict)
            else as_string(arguments),
        )
        self._extra += [None] * (len(self._calls) - len(self._extra))
        if call.get("extra_content") is not None:
            self._extra[-1] = call["extra_content"]


def _join_detail(details: list[dict[str, Any]], piece: dict[str, Any]) -> None:
    """Add a piece of a detail to the one that it goes on with: of the same kind, and
    the same number if it has one.
    """
    last = details[-1] if details else None
    same = last is not None and all(
        last.get(name) == piece.get(name) for name in ("type", "index")
    )
    if last is None or not same or piece.get("type") == "reasoning.encrypted":
        details.append(dict(piece))
        return
    for name, value in piece.items():
        joins = (
            name in ("text", "summary", "data")
            and isinstance(last.get(name), str)
            and isinstance(value, str)
        )
        if joins:
            last[name] += value
        elif value is not None:
            last[name] = value


def _join_block(blocks: list[dict[str, Any]], piece: dict[str, Any]) -> None:
    """The same of a thinking block, which its signature ends."""
    last = blocks[-1] if blocks else {}
    if piece.get("type") == last.get("type") == "thinking" and not last.get(
        "signature"
    ):
        last["thinking"] = as_string(last.get("thinking")) + as_string(
            piece.get("thinking")
        )
        last["signature"] = as_string(piece.get("signature"))
    else:
        blocks.append(dict(piece))


def _join_part(parts: list[dict[str, Any]], piece: dict[str, Any]) -> None:
    """The same of the parts of a content."""
    last = parts[-1] if parts else {}
    if last.get("type") == piece.get("type") == "text":
        last["text"] = as_string(last.get("text")) + as_string(piece.get("text"))
    elif last.get("type") == piece.get("type") == "thinking":
        for thought in map(as_dict, as_list(piece.get("thinking"))):
            _join_part(last["thinking"], thought)
    else:
        parts.append(
            {**piece, "thinking": as_list(piece.get("thinking"))}
            if "thinking" in piece
            else dict(piece)
        )


def usage_of(counted: object) -> Usage | None:
    """The tokens of a call, as a provider, or litellm in its place, counted them."""
    facts = as_dict(counted)
    if all(
        _count(facts, name) is None for name in ("prompt_tokens", "completion_tokens")
    ):
        return None
    of_prompt, of_completion = (
        as_dict(facts.get(f"{name}_tokens_details"))
        for name in ("prompt", "completion")
    )
    prompt = _count(facts, "prompt_tokens") or 0
    completion = _count(facts, "completion_tokens") or 0
    thinking = _count(of_completion, "reasoning_tokens") or 0
    # xAI: "counted separately from completion_tokens, but [...] in the total_tokens"
    # (docs.x.ai, key information, consumption and rate limits)
    if _count(facts, "total_tokens") == prompt + completion + thinking:
        completion += thinking
    return Usage(
        prompt,
        completion,
        usd=as_amount(facts.get("cost")),
        cached_tokens=_count(of_prompt, "cached_tokens")
        or _count(facts, "prompt_cache_hit_tokens")
        or 0,
        cache_write_tokens=_count(of_prompt, "cache_write_tokens")
        or _count(facts, "cache_creation_input_tokens")
        or 0,
        thinking_tokens=thinking,
    )


def _count(facts: dict[str, Any], name: str) -> int | None:
    number = as_int(facts.get(name))
    return None if number is None else max(number, 0)
