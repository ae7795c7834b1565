"""A reply of the Responses API, put together from its events or read as a whole.

What servers write is never trusted to have a shape.
"""

import json
from collections.abc import Iterator
from typing import Any

from cdd_agent.llm.direct.characters import (
    call_of,
    whole_characters,
)
from cdd_agent.llm.direct.json_values import as_dict, as_int, as_list, as_string
from cdd_agent.llm.direct.protocol import ServerFailed
from cdd_agent.llm.direct.reported_failures import failure_in, read_document
from cdd_agent.llm.direct.stop_reasons import stop_reason_of
from cdd_agent.llm.failures import Failure
from cdd_agent.llm.port import (
    Done,
    ModelEvent,
    ProviderData,
    StopReason,
    Usage,
)
from cdd_agent.llm.reply_stream import ReplyStream

_PLAIN = frozenset({"message", "function_call"})
"""Items that can be said again in other words, unless they have a phase."""
_OPEN = frozenset({"in_progress", "queued"})
"""States of a response that is still being made."""


class ResponseReader:
    """One response in the making."""

    def __init__(self, origin: str, *, has_tools: bool = True) -> None:
        self.finished = False
        self.empty = True
        self._origin = origin
        self._items: dict[int, dict[str, Any]] = {}
        """Those that are done, by their places in the output."""
        self._shown: set[int] = set()
        """The places of items of which something came in pieces."""
        self._text = ReplyStream(has_tools=has_tools)
        self._text_of: int | None = None
        """The item that the text so far ends with."""
        self._thoughts_of: tuple[int, int] | None = None
        """The item and its part that the thoughts so far end with."""
        self._is_refusal = False
        self._stop_reason = StopReason.UNKNOWN
        self._stop_word = ""
        self._usage: Usage | None = None

    def take(self, text: str) -> Iterator[ModelEvent]:
        document = read_document(text)
        kind = as_string(document.get("type"))
        is_whole = document.get("object") == "response"
        response = document if is_whole else as_dict(document.get("response"))
        if failure := failure_in(response):
            raise ServerFailed(failure)
        if not (is_whole or kind.startswith("response.")):
            return  # a piece of another kind, as some servers mix in
        self.empty = False
        index, piece = (
            as_int(document.get("output_index")),
            as_string(document.get("delta")),
        )
        place = len(self._items) if index is None else index
        match kind.removeprefix("response."):
            case "output_text.delta":
                yield from self._say(place, piece)
            case "refusal.delta":
                self._is_refusal = True
                yield from self._say(place, piece)
            case "reasoning_summary_text.delta":
                yield from self._think(
                    place, as_int(document.get("summary_index")) or 0, piece
                )
            case "reasoning_text.delta":
                yield from self._think(
                    place, as_int(document.get("content_index")) or 0, piece
                )
            case "output_item.done":
                yield from self._item(place, as_dict(document.get("item")))
            case "completed" | "incomplete" | "failed" | "cancelled" as state:
                yield from self._finish(
                    as_string(response.get("status")) or state, response
                )
            case _ if is_whole:
                yield from self._finish(as_string(response.get("status")), response)
            case _:
                pass  # a beginning, a part that is done, or what will come next year

    def end(self) -> Iterator[ModelEvent]:
        yield from self._text.end()
        made = (item for item in self._output if item.get("type") == "function_call")
        calls = [
            call_of(item.get("call_id"), item.get("name"), item.get("arguments"))
            for item in made
        ]
        if self._stop_reason is StopReason.STOP:
            yield from calls or self._text.calls()

    @property
    def done(self) -> Done:
        return Done(self._stop_reason, self._usage, self._data, self._stop_word)

    @property
    def _output(self) -> list[dict[str, Any]]:
        return [item for _, item in sorted(self._items.items())]

    @property
    def _data(self) -> ProviderData | None:
        """The items, as they are wanted back: reasoning with what came after it, or
        nothing of either.
        """
        items = self._output
        while items and items[-1].get("type") == "reasoning":
            items.pop()
        thoughts = [item for item in items if item.get("type") == "reasoning"]
        if not all(
            item.get("encrypted_content") or item.get("content") for item in thoughts
        ):
            return None  # it was not stored, and nobody could read it
        if all(
            as_string(item.get("type")) in _PLAIN and not item.get("phase")
            for item in items
        ):
            return None
        return ProviderData(
            self._origin, whole_characters(json.dumps(items, ensure_ascii=False))
        )

    def _say(self, place: int, piece: str) -> Iterator[ModelEvent]:
        """A piece of the text; what is said in another item begins a paragraph."""
        self._shown.add(place)
        if piece and self._text_of not in (None, place):
            yield from self._text.feed("\n\n")
        self._text_of = place if piece else self._text_of
        yield from self._text.feed(piece)

    def _think(self, place: int, part: int, piece: str) -> Iterator[ModelEvent]:
        self._shown.add(place)
        if not piece:
            return
        if self._thoughts_of not in (None, (place, part)):
            piece = f"\n\n{piece}"
        self._thoughts_of = (place, part)
        yield from self._text.think(piece)

    def _item(self, place: int, item: dict[str, Any]) -> Iterator[ModelEvent]:
        """An item that is done; where nothing of it came in pieces, now all of it
        does.
        """
        if item.get("type") == "function_call" and not as_string(item.get("call_id")):
            item = {**item, "call_id": f"call_{place + 1}"}
        self._items[place] = item
        parts = [
            as_dict(part)
            for name in ("summary", "content")
            for part in as_list(item.get(name))
        ]
        self._is_refusal |= any(part.get("type") == "refusal" for part in parts)
        if place in self._shown:
            return
        for number, part in enumerate(parts):
            if item.get("type") == "message":
                yield from self._say(
                    place, as_string(part.get("text")) or as_string(part.get("refusal"))
                )
            elif item.get("type") == "reasoning":
                yield from self._think(place, number, as_string(part.get("text")))

    def _finish(self, state: str, response: dict[str, Any]) -> Iterator[ModelEvent]:
        if state in _OPEN:
            return
        for place, item in enumerate(map(as_dict, as_list(response.get("output")))):
            if place not in self._items:
                yield from self._item(place, item)
        self._usage = _usage(response.get("usage"))
        if state == "failed":
            raise ServerFailed(Failure(words="the response failed"))
        self.finished = True
        if state == "completed" and not any(
            item.get("status") == "incomplete" for item in self._items.values()
        ):
            self._stop_reason = (
                StopReason.REFUSED if self._is_refusal else StopReason.STOP
            )
            return
        state = "incomplete" if state == "completed" else state
        word = (
            as_string(as_dict(response.get("incomplete_details")).get("reason"))
            or state
        )
        if (reason := stop_reason_of(word)) in (StopReason.LENGTH, StopReason.REFUSED):
            self._stop_reason = reason
        else:
            self._stop_word = word


def _usage(counted: object) -> Usage | None:
    facts = as_dict(counted)
    prompt, completion = (
        as_int(facts.get(f"{name}_tokens")) for name in ("input", "output")
    )
    if prompt is None and completion is None:
        return None
    of_prompt, of_completion = (
        as_dict(facts.get(f"{name}_tokens_details")) for name in ("input", "output")
    )
    return Usage(
        prompt or 0,
        completion or 0,
        cached_tokens=as_int(of_prompt.get("cached_tokens")) or 0,
        cache_write_tokens=as_int(of_prompt.get("cache_write_tokens")) or 0,
        thinking_tokens=as_int(of_completion.get("reasoning_tokens")) or 0,
    )
