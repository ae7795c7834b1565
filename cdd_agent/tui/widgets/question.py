"""A question to the person, answered by one key."""

import asyncio
from collections.abc import Mapping

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.events import Key
from textual.widgets import Static

from cdd_agent.events import Choice
from cdd_agent.harmless import harmless


class Question(Vertical, can_focus=True):
    """Offers answers, each by its first letter; Esc is no. `answer` waits for one; the widget goes away by itself."""

    DEFAULT_CSS = """
    Question {
        height: auto; padding: 0 1; border-left: outer $warning; background: $panel;
        Static { width: 1fr; height: auto; max-height: 8; }
        .keys { text-style: bold; color: $text-warning; }
    }
    """

    def __init__(self, text: str, answers: Mapping[str, Choice]) -> None:
        super().__init__()
        self._text = "\n".join(map(harmless, text.split("\n")))
        self._answers = answers
        self._answer: asyncio.Future[Choice] = asyncio.get_running_loop().create_future()

    def compose(self) -> ComposeResult:
        yield Static(self._text, markup=False)
        keys = "   ".join(f"[{word[0]}] {word}" for word in self._answers)
        yield Static(keys, markup=False, classes="keys")

    def on_mount(self) -> None:
        self.focus()

    async def answer(self) -> Choice:
        """The person's answer. Cancelling takes the question away."""
        try:
            return await self._answer
        finally:
            await self.remove()

    def on_key(self, event: Key) -> None:
        keys = {"escape": Choice.NO} | {word[0]: choice for word, choice in self._answers.items()}
        choice = keys.get(event.key)
        if choice is not None:
            event.stop()
            if not self._answer.done():
                self._answer.set_result(choice)
