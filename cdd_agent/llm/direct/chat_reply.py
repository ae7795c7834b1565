"""The answer of chat completions: text, thoughts, calls and their data."""

from collections.abc import Iterator, Sequence
from typing import Any

from cdd_agent.llm.direct.call_pieces import CallPieces
from cdd_agent.llm.direct.characters import whole_characters
from cdd_agent.llm.direct.json_values import (
    as_amount,
    as_dict,
    as_int,
    as_list,
    as_string,
    dicts_in,
)
from cdd_agent.llm.direct.protocol import ServerFailed
from cdd_agent.llm.direct.reply_reader import ReplyReader
from cdd_agent.llm.direct.reported_failures import find_failure
from cdd_agent.llm.port import ModelEvent, StopReason, TextDelta, ToolCall, Usage

THOUGHTS = ("reasoning_content", "reasoning", "reasoning_text")
"""Fields of thoughts as text. Some servers send the same text in two of them. During a
tool loop a server needs the thoughts back; later it ignores or refuses them.
"""
_JOINED = ("text", "summary", "data", "thinking")


class ChatReply(ReplyReader):
    def __init__(
        self, origin: str = "", *, keeps_text: bool = False, has_tools: bool = True
    ) -> None:
        """`keeps_text`: the provider needs thoughts inside the text back."""
        super().__init__(origin, has_tools=has_tools)
        self._keeps_text = keeps_text
        self._call_pieces = CallPieces()
        self._thoughts: dict[str, list[str]] = {}
        self._details: list[dict[str, Any]] = []
        """OpenRouter's `reasoning_details`."""
        self._blocks: list[dict[str, Any]] = []
        """Claude's thoughts and signatures, as litellm sends them."""
        self._parts: list[dict[str, Any]] = []
        """The content, if it is a list with thoughts."""

    def _read_usage(self, usage: Usage | None) -> None:
        # a server with zero counts at the end may have counted earlier
        if usage is not None and (usage.cost.tokens or self._usage is None):
            self._usage = usage

    def read_object(self, document: dict[str, Any]) -> Iterator[ModelEvent]:
        # some servers mix in other kinds of pieces
        if not document.keys() & {"choices", "usage"}:
            return
        self.is_empty = False
        self._read_usage(usage_of(document.get("usage")))
        choices = dicts_in(document.get("choices"))
        if not choices:
            return
        choice = choices[0]
        if failure := find_failure(choice):
            raise ServerFailed(failure)
        piece = as_dict(choice.get("delta")) or as_dict(choice.get("message"))
        yield from self._read_thoughts(piece)
        if refusal := as_string(piece.get("refusal")):
            self._stop_reason = StopReason.REFUSED
            yield TextDelta(whole_characters(refusal))
        yield from self._read_content(piece.get("content"))
        for call in dicts_in(piece.get("tool_calls")):
            self._call_pieces.add(call)
        # a whole answer, whatever finish reason it has
        if "delta" not in choice and "message" in choice:
            self.is_finished = True
        if word := as_string(choice.get("finish_reason")):
            self._stop(word)

    def _read_thoughts(self, piece: dict[str, Any]) -> Iterator[ModelEvent]:
        """Yield the thoughts outside the text. Of several fields with thoughts, the
        first counts.
        """
        shown = ""
        for name in THOUGHTS:
            thought = piece.get(name)
            if isinstance(thought, str):
                self._thoughts.setdefault(name, []).append(thought)
                shown = shown or thought
        yield from self._stream.think(shown)
        for block in dicts_in(piece.get("thinking_blocks")):
            _join_block(self._blocks, block)
        for detail in dicts_in(piece.get("reasoning_details")):
            _join_detail(self._details, detail)
            text = as_string(detail.get("text")) or as_string(detail.get("summary"))
            if not shown:
                yield from self._stream.think(text)

    def _read_content(self, content: object) -> Iterator[ModelEvent]:
        if not isinstance(content, list):
            yield from self._stream.feed(as_string(content))
            return
        parts = dicts_in(content)
        for part in parts:
            if part.get("type") == "text":
                yield from self._stream.feed(as_string(part.get("text")))
            elif part.get("type") == "thinking":
                for thought in dicts_in(part.get("thinking")):
                    yield from self._stream.think(as_string(thought.get("text")))
        has_thoughts = any(part.get("type") == "thinking" for part in parts)
        if has_thoughts or self._parts:
            for part in parts:
                _join_part(self._parts, part)

    def _calls(self) -> Sequence[ToolCall]:
        return self._call_pieces.calls()

    def _data(self) -> object:
        message: dict[str, Any] = {}
        text = "".join(self._stream.written)
        # then omit the copy of the thoughts in a field
        if self._keeps_text and "</think>" in text:
            message["content"] = text
        elif self._details:
            message["reasoning_details"] = self._details
        elif self._thoughts:
            name, pieces = next(iter(self._thoughts.items()))
            message[name] = "".join(pieces)
        # all or none
        if self._blocks and all(map(_is_signed, self._blocks)):
            message["thinking_blocks"] = self._blocks
        if self._parts:
            message["content"] = self._parts
        extras = self._call_pieces.extras()
        if not message and not any(extras):
            return None
        return {"message": message, "calls": extras}


def _is_signed(block: dict[str, Any]) -> bool:
    return bool(block.get("signature") or block.get("data"))


def _join_detail(details: list[dict[str, Any]], piece: dict[str, Any]) -> None:
    last = details[-1] if details else {}
    same = last.get("type") == piece.get("type") != "reasoning.encrypted"
    if details and same and last.get("index") == piece.get("index"):
        _extend(last, piece)
    else:
        details.append(dict(piece))


def _join_block(blocks: list[dict[str, Any]], piece: dict[str, Any]) -> None:
    """Add a piece to the last thinking block, unless its signature has ended it."""
    last = blocks[-1] if blocks else {}
    same = last.get("type") == piece.get("type") == "thinking"
    if same and not last.get("signature"):
        _extend(last, piece)
    else:
        blocks.append(dict(piece))


def _join_part(parts: list[dict[str, Any]], piece: dict[str, Any]) -> None:
    last = parts[-1] if parts else {}
    if last.get("type") == piece.get("type") == "text":
        _extend(last, piece)
    elif last.get("type") == piece.get("type") == "thinking":
        for thought in dicts_in(piece.get("thinking")):
            _join_part(last["thinking"], thought)
    elif "thinking" in piece:
        parts.append({**piece, "thinking": as_list(piece["thinking"])})
    else:
        parts.append(dict(piece))


def _extend(last: dict[str, Any], piece: dict[str, Any]) -> None:
    for name, value in piece.items():
        is_text = isinstance(last.get(name), str) and isinstance(value, str)
        if name in _JOINED and is_text:
            last[name] += value
        elif value is not None:
            last[name] = value


def usage_of(
    counted: object, prompt_word: str = "prompt", completion_word: str = "completion"
) -> Usage | None:
    """Return the token counts that a provider reports. The words are prefixes of field
    names.
    """
    facts = as_dict(counted)
    prompt_name, completion_name = f"{prompt_word}_tokens", f"{completion_word}_tokens"
    if as_int(facts.get(prompt_name)) is None and (
        as_int(facts.get(completion_name)) is None
    ):
        return None
    prompt = _count(facts, prompt_name)
    completion = _count(facts, completion_name)
    prompt_details = as_dict(facts.get(f"{prompt_name}_details"))
    completion_details = as_dict(facts.get(f"{completion_name}_details"))
    thinking = _count(completion_details, "reasoning_tokens")
    cached = _count(prompt_details, "cached_tokens")
    cached = cached or _count(facts, "prompt_cache_hit_tokens")
    cache_write = _count(prompt_details, "cache_write_tokens")
    cache_write = cache_write or _count(facts, "cache_creation_input_tokens")
    # Thoughts may be in the total alone. xAI counts them separately (docs.x.ai,
    # consumption and rate limits); Gemini's gateways do not count them
    # (mozilla-ai/any-llm issue 1290).
    only_in_total = _count(facts, "total_tokens") - prompt - completion
    is_cache = only_in_total == cached + cache_write
    if only_in_total > 0 and (only_in_total == thinking or not (thinking or is_cache)):
        thinking = only_in_total
        completion += thinking
    return Usage(
        prompt,
        completion,
        usd=as_amount(facts.get("cost")),
        cached_tokens=cached,
        cache_write_tokens=cache_write,
        thinking_tokens=thinking,
    )


def _count(facts: dict[str, Any], name: str) -> int:
    return max(as_int(facts.get(name)) or 0, 0)
