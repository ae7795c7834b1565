"""The answer of Ollama's own chat API.

Rules: docs.ollama.com (chat, thinking, tool calling, errors).
"""

from collections.abc import Iterator, Sequence
from typing import Any

from cdd_agent.llm.direct.characters import call_of
from cdd_agent.llm.direct.json_values import as_dict, as_int, as_string, dicts_in
from cdd_agent.llm.direct.reply_reader import ReplyReader
from cdd_agent.llm.port import ModelEvent, ToolCall, Usage


class OllamaReader(ReplyReader):
    def __init__(
        self, origin: str, *, keeps_text: bool = False, has_tools: bool = True
    ) -> None:
        """`keeps_text`: the model needs thoughts inside the text back."""
        super().__init__(origin, has_tools=has_tools)
        self._keeps_text = keeps_text
        self._thoughts: list[str] = []
        self._made_calls: list[ToolCall] = []

    def read_object(self, document: dict[str, Any]) -> Iterator[ModelEvent]:
        # another kind of piece
        if not document.keys() & {"message", "done"}:
            return
        self.is_empty = False
        message = as_dict(document.get("message"))
        thought = as_string(message.get("thinking"))
        self._thoughts.append(thought)
        yield from self._stream.think(thought)
        yield from self._stream.feed(as_string(message.get("content")))
        for call in dicts_in(message.get("tool_calls")):
            self._add_call(call)
        if document.get("done") is True:
            self._stop(as_string(document.get("done_reason")))
            self._count(document)

    def _add_call(self, call: dict[str, Any]) -> None:
        function = as_dict(call.get("function"))
        id_ = as_string(call.get("id")) or f"call_{len(self._made_calls) + 1}"
        arguments = function.get("arguments") or {}
        self._made_calls.append(call_of(id_, function.get("name"), arguments))

    def _count(self, document: dict[str, Any]) -> None:
        prompt = as_int(document.get("prompt_eval_count")) or 0
        completion = as_int(document.get("eval_count")) or 0
        # it omits the count of a prompt that it has cached
        if prompt > 0:
            cached = as_int(document.get("prompt_eval_cached_count")) or 0
            self._usage = Usage(prompt, max(completion, 0), cached_tokens=cached)

    def _calls(self) -> Sequence[ToolCall]:
        return self._made_calls

    def _data(self) -> object:
        text = "".join(self._stream.written)
        if self._keeps_text and "</think>" in text:
            return {"content": text}
        thoughts = "".join(self._thoughts)
        return {"thinking": thoughts} if thoughts else None
