"""A gateway to GPT-5.6 that passes on both of OpenAI's protocols."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.llm.simulators.base import Json, Refused, Said, Sent, Simulator
from tests.llm.simulators.chat import OpenAIChatWithoutThoughts
from tests.llm.simulators.openai_responses import OpenAIResponses


@dataclass
class Gateway(Simulator):
    """Each protocol refuses what it refuses at OpenAI."""

    responses: OpenAIResponses = field(default_factory=lambda: OpenAIResponses([]))
    chat: OpenAIChatWithoutThoughts = field(
        default_factory=lambda: OpenAIChatWithoutThoughts([])
    )

    def check(self, sent: Sent) -> None:
        self._asked(sent).check(sent)

    def answer(self, sent: Sent, said: Said) -> Iterator[str]:
        asked = self._asked(sent)
        yield from asked.answer(sent, said)
        self.bills.append(asked.bills[-1])
        self.opaque += asked.opaque

    def refusal(self, refused: Refused) -> Json:
        return self.responses.refusal(refused)

    def _asked(self, sent: Sent) -> OpenAIResponses | OpenAIChatWithoutThoughts:
        return self.responses if sent.path == "/v1/responses" else self.chat
