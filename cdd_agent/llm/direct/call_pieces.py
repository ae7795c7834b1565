"""Tool calls of chat completions, which arrive in pieces."""

import json
from typing import Any

from msgspec import Struct, field

from cdd_agent.llm.direct.characters import call_of
from cdd_agent.llm.direct.json_values import as_dict, as_string
from cdd_agent.llm.port import ToolCall


class _CallInPieces(Struct):
    id: str
    name: str
    arguments: list[str] = field(default_factory=list)
    extra: Any = None
    """Data to send back with the call."""


class CallPieces:
    """Joins the pieces of calls, which may be interleaved, with or without numbers."""

    def __init__(self) -> None:
        self._calls: list[_CallInPieces] = []
        self._call_of_index: dict[int, _CallInPieces] = {}
        """The last call by number. Some servers number every call 0."""

    def add(self, piece: dict[str, Any]) -> None:
        function = as_dict(piece.get("function"))
        arguments = function.get("arguments")
        if isinstance(arguments, dict):
            arguments = json.dumps(arguments)
        # some servers leave harmony's marks after the name
        name = as_string(function.get("name")).partition("<|")[0]
        call = self._call_for(piece, name)
        call.arguments.append(as_string(arguments))
        if piece.get("extra_content") is not None:
            call.extra = piece["extra_content"]

    def _call_for(self, piece: dict[str, Any], name: str) -> _CallInPieces:
        index = piece.get("index")
        if not isinstance(index, int):
            index = None
        id_ = as_string(piece.get("id"))
        call = self._current_call(index)
        if call is None or _begins_another(call, index, id_, name):
            call = _CallInPieces(id_ or f"call_{len(self._calls) + 1}", name)
            self._calls.append(call)
        call.name = call.name or name
        if index is not None:
            self._call_of_index[index] = call
        return call

    def _current_call(self, index: int | None) -> _CallInPieces | None:
        if index is not None:
            return self._call_of_index.get(index)
        return self._calls[-1] if self._calls else None

    def calls(self) -> list[ToolCall]:
        calls = []
        for call in self._calls:
            calls.append(call_of(call.id, call.name, "".join(call.arguments)))
        return calls

    def extras(self) -> list[Any]:
        return [call.extra for call in self._calls]


def _begins_another(
    call: _CallInPieces, index: int | None, id_: str, name: str
) -> bool:
    """True if a piece begins another call. A continuing piece has no name, or repeats
    name and id.
    """
    if not name or id_ == call.id:
        return False
    return bool(id_) or index is None or name != call.name
