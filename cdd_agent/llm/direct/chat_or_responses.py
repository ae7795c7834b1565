"""OpenAI's models at another server's address, such as a company gateway.

Newer models refuse tools in chat completions while they think. The refusal names the
alternatives: Responses, or no thinking. Not every server has Responses.
"""

from collections.abc import Callable

from cdd_agent.llm.direct.chat_completions import ChatCompletions
from cdd_agent.llm.direct.openai_responses import OpenAIResponses
from cdd_agent.llm.direct.protocol import Call
from cdd_agent.llm.direct.reply_reader import ReplyReader
from cdd_agent.llm.direct.wire_protocol import WireProtocol
from cdd_agent.llm.failures import Failure
from cdd_agent.llm.known_models import KnownModel
from cdd_agent.llm.options import ModelOptions
from cdd_agent.llm.port import Request
from cdd_agent.llm.providers import Endpoint

_NOT_OFFERED = (400, 403, 404, 405, 422, 501)
_MOST_REFUSALS = 8
"""After more, this server's Responses API is only an alias of chat completions."""


class ChatOrResponses:
    """Chat completions, until the server asks for Responses."""

    def __init__(
        self,
        name: str,
        endpoint: Endpoint,
        options: ModelOptions,
        facts: Callable[[], KnownModel],
    ) -> None:
        self._chat = ChatCompletions(endpoint, options, facts)
        self._responses = OpenAIResponses(name, endpoint, options)
        self._protocol: WireProtocol = self._chat
        self._refusals = 0
        self._latest: ReplyReader | None = None
        self._has_responses = False

    @property
    def path(self) -> str:
        return self._protocol.path

    def call(self, request: Request) -> Call:
        return self._protocol.call(request)

    def reader(self, request: Request) -> ReplyReader:
        if self._latest is not None and self._latest.is_finished:
            self._has_responses = True
        reader = self._protocol.reader(request)
        if self._protocol is self._responses:
            self._latest = reader
        return reader

    def adapts_to(self, failure: Failure) -> bool:
        if self._chat.thinks_with_tools and self._chat.refuses_thoughts(failure):
            # even while Responses is in use: calls run in parallel, so an older one may
            # have been refused
            self._refusals += 1
            if self._refusals > _MOST_REFUSALS:
                self._return_to_chat()
            else:
                self._protocol = self._responses
            return True
        if self._protocol.adapts_to(failure):
            return True
        is_trial = self._protocol is self._responses and not self._has_responses
        if is_trial and failure.status in _NOT_OFFERED:
            self._return_to_chat()
            return True
        return False

    def _return_to_chat(self) -> None:
        self._protocol = self._chat
        self._chat.thinks_with_tools = False
