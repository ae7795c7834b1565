"""A question to the person, answered by one key."""

import asyncio
from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.events import Key
from textual.widgets import Static

from cdd_agent.events import Choice
from cdd_agent.tui.transcript.harmless import harmless
from cdd_agent.wording import CHOICES


class Question(Vertical, can_focus=True):
    """Offers choices, each by its first letter; Esc is no. `answer` waits for one; the widget goes away by itself."""

    DEFAULT_CSS = """
    Question {
        height: auto; padding: 0 1; border-left: outer $warning; background: $panel;
        Static { width: 1fr; height: auto; max-height: 8; }
        .keys { text-style: bold; color: $text-warning; }
    }
    """

    def __init__(self, text: str, choices: Sequence[Choice] = (Choice.YES, Choice.NO)) -> None:
        super().__init__()
        self._text = "\n".join(map(harmless, text.split("\n")))
        self._keys = {CHOICES[choice][0]: choice for choice in choices}
        self._answer: asyncio.Future[Choice] = asyncio.get_running_loop().create_future()

    def compose(self) -> ComposeResult:
        yield Static(self._text, markup=False)
        keys = "   ".join(f"[{key}] {CHOICES[choice]}" for key, choice in self._keys.items())
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
        choice = Choice.NO if event.key == "escape" else self._keys.get(event.key)
        if choice is not None:
            event.stop()
            if not self._answer.done():
                self._answer.set_result(choice)
