"""The answer of OpenAI's Responses API: the events of a response, or a whole one."""

from collections.abc import Iterator, Sequence
from typing import Any

from cdd_agent.llm.direct.characters import call_of
from cdd_agent.llm.direct.chat_reply import usage_of
from cdd_agent.llm.direct.json_values import as_dict, as_int, as_string, dicts_in
from cdd_agent.llm.direct.protocol import ServerFailed
from cdd_agent.llm.direct.reply_reader import ReplyReader
from cdd_agent.llm.direct.reported_failures import find_failure
from cdd_agent.llm.direct.stop_reasons import stop_reason_of
from cdd_agent.llm.failures import Failure
from cdd_agent.llm.port import ModelEvent, StopReason, ToolCall

_PLAIN = ("message", "function_call")
"""Items that need not go back unchanged, unless they have a phase."""
_OPEN = ("in_progress", "queued")


class ResponseReader(ReplyReader):
    def __init__(self, origin: str, *, has_tools: bool = True) -> None:
        super().__init__(origin, has_tools=has_tools)
        self._stop_reason = StopReason.UNKNOWN
        self._items: dict[int, dict[str, Any]] = {}
        """The complete items, by index in the output."""
        self._shown_places: set[int] = set()
        """Indexes of items with pieces that have arrived."""
        self._place_of_text: int | None = None
        """The item of the last text."""
        self._place_of_thoughts: tuple[int, int] | None = None
        """The item and part of the last thoughts."""
        self._is_refusal = False

    def read_object(self, document: dict[str, Any]) -> Iterator[ModelEvent]:
        if document.get("object") == "response":
            self._expect_no_failure(document)
            yield from self._finish(as_string(document.get("status")), document)
            return
        response = as_dict(document.get("response"))
        self._expect_no_failure(response)
        kind = as_string(document.get("type"))
        # some servers mix in other kinds of pieces
        if kind.startswith("response."):
            self.is_empty = False
            yield from self._read_event(
                kind.removeprefix("response."), document, response
            )

    def _expect_no_failure(self, response: dict[str, Any]) -> None:
        if failure := find_failure(response):
            raise ServerFailed(failure)

    def _read_event(
        self, kind: str, event: dict[str, Any], response: dict[str, Any]
    ) -> Iterator[ModelEvent]:
        place = as_int(event.get("output_index"))
        if place is None:
            place = len(self._items)
        piece = as_string(event.get("delta"))
        match kind:
            case "output_text.delta":
                yield from self._show_text(place, piece)
            case "refusal.delta":
                self._is_refusal = True
                yield from self._show_text(place, piece)
            case "reasoning_summary_text.delta":
                part = as_int(event.get("summary_index")) or 0
                yield from self._show_thought(place, part, piece)
            case "reasoning_text.delta":
                part = as_int(event.get("content_index")) or 0
                yield from self._show_thought(place, part, piece)
            case "output_item.done":
                yield from self._add_item(place, as_dict(event.get("item")))
            case "completed" | "incomplete" | "failed" | "cancelled":
                state = as_string(response.get("status")) or kind
                yield from self._finish(state, response)
            # a beginning, the end of a part, or a future kind
            case _:
                pass

    def _show_text(self, place: int, piece: str) -> Iterator[ModelEvent]:
        """Yield a piece of the text. Another item's text begins a new paragraph."""
        self._shown_places.add(place)
        if not piece:
            return
        if self._place_of_text not in (None, place):
            yield from self._stream.feed("\n\n")
        self._place_of_text = place
        yield from self._stream.feed(piece)

    def _show_thought(self, place: int, part: int, piece: str) -> Iterator[ModelEvent]:
        """Yield a piece of the thoughts. Another part begins a new paragraph."""
        self._shown_places.add(place)
        if not piece:
            return
        if self._place_of_thoughts not in (None, (place, part)):
            piece = f"\n\n{piece}"
        self._place_of_thoughts = (place, part)
        yield from self._stream.think(piece)

    def _add_item(self, place: int, item: dict[str, Any]) -> Iterator[ModelEvent]:
        """Store a complete item. Yield all of it if no piece of it has arrived."""
        kind = item.get("type")
        if kind == "function_call" and not as_string(item.get("call_id")):
            item = {**item, "call_id": f"call_{place + 1}"}
        self._items[place] = item
        parts = [*dicts_in(item.get("summary")), *dicts_in(item.get("content"))]
        for part in parts:
            if part.get("type") == "refusal":
                self._is_refusal = True
        if place in self._shown_places:
            return
        for number, part in enumerate(parts):
            text = as_string(part.get("text"))
            if kind == "message":
                text = text or as_string(part.get("refusal"))
                yield from self._show_text(place, text)
            elif kind == "reasoning":
                yield from self._show_thought(place, number, text)

    def _finish(self, state: str, response: dict[str, Any]) -> Iterator[ModelEvent]:
        self.is_empty = False
        if state in _OPEN:
            return
        for place, item in enumerate(dicts_in(response.get("output"))):
            if place not in self._items:
                yield from self._add_item(place, item)
        self._usage = usage_of(response.get("usage"), "input", "output")
        if state == "failed":
            raise ServerFailed(Failure(words="the response failed"))
        self.is_finished = True
        if state != "completed":
            self._stop_early(state, response)
        elif any(item.get("status") == "incomplete" for item in self._items.values()):
            self._stop_early("incomplete", response)
        elif self._is_refusal:
            self._stop_reason = StopReason.REFUSED
        else:
            self._stop_reason = StopReason.STOP

    def _stop_early(self, state: str, response: dict[str, Any]) -> None:
        details = as_dict(response.get("incomplete_details"))
        word = as_string(details.get("reason")) or state
        reason = stop_reason_of(word)
        if reason in (StopReason.LENGTH, StopReason.REFUSED):
            self._stop_reason = reason
        else:
            self._stop_word = word

    def _calls(self) -> Sequence[ToolCall]:
        calls = []
        for item in self._output:
            if item.get("type") == "function_call":
                calls.append(
                    call_of(
                        item.get("call_id"), item.get("name"), item.get("arguments")
                    )
                )
        return calls

    def _data(self) -> object:
        """Return all items, or None if they are not needed or cannot be sent back."""
        items = self._output
        # reasoning without a following item is refused
        while items and items[-1].get("type") == "reasoning":
            items.pop()
        needs_items = False
        for item in items:
            kind = item.get("type")
            has_content = item.get("encrypted_content") or item.get("content")
            # it was not stored, and no one could read it
            if kind == "reasoning" and not has_content:
                return None
            if kind not in _PLAIN or item.get("phase"):
                needs_items = True
        return items if needs_items else None

    @property
    def _output(self) -> list[dict[str, Any]]:
        return [item for _, item in sorted(self._items.items())]
