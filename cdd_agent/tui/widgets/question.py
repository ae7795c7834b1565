"""A question to the person, answered by one key."""

import asyncio
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widgets import Static


class Question(Static, can_focus=True):
    """Asks for a yes or a no. `answer` waits for it; the widget goes away by itself."""

    DEFAULT_CSS = """
    Question { height: auto; max-height: 10; padding: 0 1; border-left: thick $warning; background: $panel; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes"),
        Binding("n,escape", "answer(False)", "No"),
    ]

    def __init__(self, text: str) -> None:
        super().__init__(f"{text}\n[y] yes   [n] no", markup=False)
        self._answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

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
