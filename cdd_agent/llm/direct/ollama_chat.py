"""Ollama's own chat API as JSON: a window as large as the request needs, and no cut
without a word.

The rules are those of docs.ollama.com (chat, thinking, tool calling, errors) and of the
code of its server. `ollama_reply.py` reads the answer.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from cdd_agent.llm.budget import CEILING
from cdd_agent.llm.direct.chat_completions import write_tools
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
from cdd_agent.llm.port import (
    Request,
)
from cdd_agent.llm.providers import Endpoint
from cdd_agent.llm.token_estimates import estimated_prompt

_THINK: Mapping[Effort, tuple[bool | str, ...]] = {
    Effort.NONE: (False,),
    Effort.LOW: ("low", True),
    Effort.MEDIUM: ("medium", True),
    Effort.HIGH: ("high", True),
    Effort.MAX: ("max", "high", True),
}
"""How much to think, in the words to try one after the other: older servers know fewer
of them.
"""
_CANNOT_BUT_THINK = re.compile("gpt-oss")
_THINK_IS_REFUSED = re.compile(r"\bthink(?:ing)?\b")


class OllamaChat:
    """Ollama, here or elsewhere.

    A window that it has to change makes it load the model anew: so it only grows, in
    powers of two.
    """

    path = "/api/chat"

    def __init__(
        self, endpoint: Endpoint, options: ModelOptions, facts: Callable[[], KnownModel]
    ) -> None:
        self._endpoint, self._options, self._facts = endpoint, options, facts
        self._origin = endpoint.origin("ollama")
        self._window = 0
        """The one that was asked for last."""
        self._think: tuple[bool | str, ...] = ()
        if options.effort is not None:
            always = options.effort is Effort.NONE and _CANNOT_BUT_THINK.search(
                endpoint.model
            )
            self._think = _THINK[Effort.LOW if always else options.effort]

    def call(self, request: Request) -> Call:
        own, options = dict(self._options.body), self._options
        settings: dict[str, Any] = {"num_ctx": self._window_for(request)}
        if options.temperature is not None:
            settings["temperature"] = options.temperature
        if options.max_output_tokens is not None:
            settings["num_predict"] = options.max_output_tokens
        body: dict[str, Any] = {
            "model": self._endpoint.model,
            "messages": list(_messages(request, self._origin)),
            "stream": True,
            "truncate": False,  # rather an error than a request without its beginning
            # and rather a reply that is cut than one that forgets how it began
            "shift": False,
            "options": {**settings, **as_dict(own.pop("options", None))},
        }
        if request.tools:
            body["tools"] = write_tools(request)
        if self._think:
            body["think"] = self._think[0]
        return Call({**body, **own}, self._endpoint.bearer)

    def reader(self, request: Request) -> OllamaReader:
        return OllamaReader(self._origin, has_tools=bool(request.tools))

    def adapts_to(self, failure: Failure) -> bool:
        """A model that does not think says so, and a server that does not know a level
        of it, too.
        """
        is_refused = (
            failure.status == 400
            and bool(self._think)
            and _THINK_IS_REFUSED.search(failure.all_words)
        )
        if is_refused:
            self._think = (
                () if "does not support" in failure.all_words else self._think[1:]
            )
        return bool(is_refused)

    def _window_for(self, request: Request) -> int:
        """Room for the request and its reply, and never less than before or than is
        there anyway.
        """
        if self._options.window is not None:
            return self._options.window
        known = self._facts()
        needed = estimated_prompt(request) + (
            self._options.max_output_tokens or CEILING
        )
        window = max(
            1 << (needed - 1).bit_length(), known.window_now or 0, self._window
        )
        self._window = min(window, known.window or window)
        return self._window


def _messages(request: Request, origin: str) -> Iterator[dict[str, Any]]:
    names: dict[str, str] = {}
    for message in request.messages:
        content: dict[str, Any] = {"role": message.role, "content": message.content}
        if message.pictures:
            content["images"] = [in_base64(picture) for picture in message.pictures]
        if message.tool_calls:
            names |= {call.id: call.name for call in message.tool_calls}
            # the thoughts that led to them
            content |= as_dict(read_json(message.data_from(origin)))
            content["tool_calls"] = [
                {
                    "id": call.id,
                    "function": {
                        "index": index,
                        "name": call.name,
                        "arguments": as_object(call.arguments),
                    },
                }
                for index, call in enumerate(message.tool_calls)
            ]
        if message.tool_call_id is not None:
            content["tool_call_id"] = message.tool_call_id
            content["tool_name"] = names.get(message.tool_call_id, "")
        yield content
