"""The answer of Ollama's own chat API: one reply, from the lines of a stream or as a
whole.

The rules are those of docs.ollama.com (chat, thinking, tool calling, errors).
"""

import json
from collections.abc import Iterator

from msgspec.structs import replace

from cdd_agent.llm.direct.characters import (
    call_of,
    whole_characters,
)
from cdd_agent.llm.direct.json_values import (
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
    ToolCall,
    Usage,
)
from cdd_agent.llm.reply_stream import ReplyStream


class OllamaReader:
    """One reply in the making, from the lines of a stream or as a whole."""

    def __init__(self, origin: str, *, has_tools: bool = True) -> None:
        self.finished = False
        self.empty = True
        self._origin = origin
        self._text = ReplyStream(has_tools=has_tools)
        self._thoughts: list[str] = []
        self._calls: list[ToolCall] = []
        self._done = Done(StopReason.UNKNOWN)

    def take(self, text: str) -> Iterator[ModelEvent]:
        document = read_document(text)
        if not document.keys() & {"message", "done"}:
            return  # a piece of another kind
        self.empty = False
        message = as_dict(document.get("message"))
        self._thoughts.append(as_string(message.get("thinking")))
        yield from self._text.think(self._thoughts[-1])
        yield from self._text.feed(as_string(message.get("content")))
        for call in map(as_dict, as_list(message.get("tool_calls"))):
            made = as_dict(call.get("function"))
            id_ = as_string(call.get("id")) or f"call_{len(self._calls) + 1}"
            self._calls.append(
                call_of(id_, made.get("name"), made.get("arguments") or {})
            )
        if document.get("done") is True:
            word = as_string(document.get("done_reason"))
            reason = stop_reason_of(word)
            prompt, completion = (
                as_int(document.get("prompt_eval_count")) or 0,
                as_int(document.get("eval_count")) or 0,
            )
            # it does not count what it read before
            usage = Usage(prompt, max(completion, 0)) if prompt > 0 else None
            self._done = Done(
                reason, usage, stop_word=word if reason is StopReason.UNKNOWN else ""
            )
            self.finished = True

    def end(self) -> Iterator[ModelEvent]:
        yield from self._text.end()
        if self._done.stop_reason is StopReason.STOP:
            yield from self._calls or self._text.calls()

    @property
    def done(self) -> Done:
        data = None
        if thoughts := whole_characters("".join(self._thoughts)):
            data = ProviderData(
                self._origin, json.dumps({"thinking": thoughts}, ensure_ascii=False)
            )
        return replace(self._done, provider_data=data)
