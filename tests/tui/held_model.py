"""A model whose replies wait for the test."""

import asyncio

from cdd_agent.llm.port import Done, OnEvent, Request, TextDelta
from cdd_agent.llm.scripted import ScriptedModel
from cdd_agent.llm.scripted_reply import ScriptedReply


class HeldModel(ScriptedModel):
    """Sends the beginning of each reply, and the rest once the test releases it."""

    def __init__(self, *script: str | ScriptedReply, beginning: str = "") -> None:
        """`beginning` is the text to send at once; the first word if it is empty."""
        super().__init__(script)
        self._beginning = beginning
        self._released = asyncio.Event()

    def release(self) -> None:
        self._released.set()

    def hold(self) -> None:
        self._released.clear()

    async def reply(self, request: Request, on_event: OnEvent) -> Done:
        entry = self.next_reply(request)
        sent = ""
        for _, event in entry.timeline(lambda: 0.0):
            if event is None:
                continue
            on_event(event)
            if isinstance(event, TextDelta):
                sent += event.text
            if sent and self._beginning in sent:
                await self._released.wait()
        end = entry.end(request)
        assert isinstance(end, Done)
        return end
