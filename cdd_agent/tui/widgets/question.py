"""A question to the person, answered by one key."""

import asyncio
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Static

from cdd_agent.tui.transcript.harmless import harmless


class Question(Vertical, can_focus=True):
    """Asks for a yes or a no. `answer` waits for it; the widget goes away by itself."""

    DEFAULT_CSS = """
    Question {
        height: auto; padding: 0 1; border-left: outer $warning; background: $panel;
        Static { width: 1fr; height: auto; max-height: 8; }
        .keys { text-style: bold; color: $text-warning; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes"),
        Binding("n,escape", "answer(False)", "No"),
    ]

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = "\n".join(map(harmless, text.split("\n")))
        self._answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def compose(self) -> ComposeResult:
        yield Static(self._text, markup=False)
        yield Static("[y] yes   [n] no", markup=False, classes="keys")

    def on_mount(self) -> None:
        self.focus()

    async def answer(self) -> bool:
        """The person's answer. Cancelling takes the question away."""
        try:
            return await self._answer
        finally:
            await self.remove()

    def action_answer(self, yes: bool) -> None:
        if not self._answer.done():
            self._answer.set_result(yes)
