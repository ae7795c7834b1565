"""Requests of Ollama's own chat API. The window fits each request, and an overflow is
an error. `ollama_reply.py` reads the answer.

Rules: docs.ollama.com (chat, thinking, tool calling, errors) and its server's code.
"""

from collections.abc import Callable, Mapping
from typing import Any

from cdd_agent.llm.budget import CEILING
from cdd_agent.llm.direct.chat_completions import write_tools
from cdd_agent.llm.direct.dialects import dialect_of
from cdd_agent.llm.direct.json_values import (
    as_dict,
    as_object,
    read_json,
)
from cdd_agent.llm.direct.ollama_reply import OllamaReader
from cdd_agent.llm.direct.protocol import Call
from cdd_agent.llm.failures import Failure
from cdd_agent.llm.known_models import KnownModel
from cdd_agent.llm.options import Effort, ModelOptions
from cdd_agent.llm.pictures import in_base64
from cdd_agent.llm.port import Request, ToolCall
from cdd_agent.llm.providers import Endpoint
from cdd_agent.llm.token_estimates import estimate_prompt
from cdd_agent.pattern import Pattern

_Json = dict[str, Any]

_THINK: Mapping[Effort, tuple[bool | str, ...]] = {
    Effort.NONE: (False,),
    Effort.LOW: ("low", True),
    Effort.MEDIUM: ("medium", True),
    Effort.HIGH: ("high", True),
    Effort.MAX: ("max", "high", True),
}
"""Values of `think` to try in turn, because older servers accept fewer."""
_ALWAYS_THINKS = Pattern("gpt-oss")
_THINK_IS_REFUSED = Pattern(r"\bthink(?:ing)?\b")


class OllamaChat:
    """The protocol of Ollama, for one model.

    Ollama reloads a model to change its window. So the window only grows, in powers of
    two.
    """

    path = "/api/chat"

    def __init__(
        self, endpoint: Endpoint, options: ModelOptions, facts: Callable[[], KnownModel]
    ) -> None:
        """`facts` returns the current facts about the model."""
        self._endpoint, self._options, self._facts = endpoint, options, facts
        self._origin = endpoint.origin("ollama")
        self._window = 0
        self._think: tuple[bool | str, ...] = ()
        effort = options.effort
        if effort is Effort.NONE and _ALWAYS_THINKS.search(endpoint.model):
            effort = Effort.LOW
        if effort is not None:
            self._think = _THINK[effort]

    def call(self, request: Request) -> Call:
        own_fields, options = dict(self._options.body), self._options
        settings: _Json = {"num_ctx": self._window_for(request)}
        if options.temperature is not None:
            settings["temperature"] = options.temperature
        if options.max_output_tokens is not None:
            settings["num_predict"] = options.max_output_tokens
        body: _Json = {
            "model": self._endpoint.model,
            "messages": _messages(request, self._origin),
            "stream": True,
            # fail instead of dropping the request's beginning
            "truncate": False,
            # cut the reply instead of forgetting its beginning
            "shift": False,
            "options": {**settings, **as_dict(own_fields.pop("options", None))},
        }
        if request.tools:
            body["tools"] = write_tools(request)
        if self._think:
            body["think"] = self._think[0]
        return Call({**body, **own_fields}, self._endpoint.bearer)

    def reader(self, request: Request) -> OllamaReader:
        dialect = dialect_of(self._endpoint.provider, self._endpoint.model)
        return OllamaReader(
            self._origin,
            keeps_text=dialect.keeps_text,
            has_tools=bool(request.tools),
        )

    def adapts_to(self, failure: Failure) -> bool:
        """A model that does not think refuses `think`. So does a server for an unknown
        level.
        """
        words = failure.all_words
        is_about_thinking = failure.status == 400 and _THINK_IS_REFUSED.search(words)
        if not self._think or not is_about_thinking:
            return False
        self._think = () if "does not support" in words else self._think[1:]
        return True

    def _window_for(self, request: Request) -> int:
        if self._options.window is not None:
            return self._options.window
        facts = self._facts()
        reply = self._options.max_output_tokens or CEILING
        needed = estimate_prompt(request) + reply
        power_of_two = 1 << (needed - 1).bit_length()
        window = max(power_of_two, facts.window_now or 0, self._window)
        self._window = min(window, facts.window or window)
        return self._window


def _messages(request: Request, origin: str) -> list[_Json]:
    names: dict[str, str] = {}
    messages = []
    for message in request.messages:
        written: _Json = {"role": message.role, "content": message.content}
        if message.pictures:
            written["images"] = [in_base64(picture) for picture in message.pictures]
        data = as_dict(read_json(message.data_from(origin)))
        # thoughts in the text, which the model needs back with every message
        if "content" in data:
            written["content"] = data["content"]
        if message.tool_calls:
            names |= {call.id: call.name for call in message.tool_calls}
            # the thoughts before the calls
            written |= data
            written["tool_calls"] = [
                _written_call(index, call)
                for index, call in enumerate(message.tool_calls)
            ]
        if message.tool_call_id is not None:
            written["tool_call_id"] = message.tool_call_id
            written["tool_name"] = names.get(message.tool_call_id, "")
        messages.append(written)
    return messages


def _written_call(index: int, call: ToolCall) -> _Json:
    arguments = as_object(call.arguments)
    function = {"index": index, "name": call.name, "arguments": arguments}
    return {"id": call.id, "function": function}
