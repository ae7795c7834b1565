"""A gateway to GPT-5.6 that passes on both of OpenAI's protocols."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tests.llm.simulators.base import Json, Refused, Said, Sent, Simulator, expect
from tests.llm.simulators.chat import OpenAIChatWithoutThoughts
from tests.llm.simulators.openai_responses import OpenAIResponses


@dataclass
class Gateway(Simulator):
    """Each protocol refuses what it refuses at OpenAI."""

    responses: OpenAIResponses = field(default_factory=lambda: OpenAIResponses([]))
    chat: OpenAIChatWithoutThoughts = field(
        default_factory=lambda: OpenAIChatWithoutThoughts([])
    )

    has_model: Callable[[int], bool] = lambda number: True
    """False for the call of Responses with this number: they refuse the model."""

    def check(self, sent: Sent) -> None:
        asked = self._asked(sent)
        asked.sent.append(sent)
        if asked is self.responses:
            has_model = self.has_model(len(asked.sent))
            expect(has_model, "The model gpt-5.6 is not available by this API.")
        asked.check(sent)

    def answer(self, sent: Sent, said: Said) -> Iterator[str]:
        asked = self._asked(sent)
        yield from asked.answer(sent, said)
        self.bills.append(asked.bills[-1])
        self.opaque += asked.opaque

    def refusal(self, refused: Refused) -> Json:
        return self.responses.refusal(refused)

    def _asked(self, sent: Sent) -> OpenAIResponses | OpenAIChatWithoutThoughts:
        return self.responses if sent.path == "/v1/responses" else self.chat
