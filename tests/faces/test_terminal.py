"""Questions at a terminal without the shell: a line answers, a paste does not."""

import asyncio
import os
from collections.abc import Awaitable, Iterator

import pytest

from cdd_agent.errors import NotApproved
from cdd_agent.events.question_events import Choice, CommandProposed
from cdd_agent.faces.terminal import Terminal

PROPOSAL = CommandProposed("rm -rf build", "`rm` is not on the list")


class Keyboard:
    """A pipe that takes the place of the terminal."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.reading, self.typing = os.pipe()
        self.terminal = Terminal(self.reading, follows=False)
        self.capsys = capsys
        self.shown = ""

    async def answer(self, asked: Awaitable[object], *typed: str) -> object:
        """Type each text in one go, when there is a prompt for it."""
        answer = asyncio.ensure_future(asked)
        for number, text in enumerate(typed, 1):
            while self.shown.count("> ") < number:
                await asyncio.sleep(0.01)
                self.shown += self.capsys.readouterr().err
            os.write(self.typing, text.encode())
        return await answer


@pytest.fixture
def keyboard(capsys: pytest.CaptureFixture[str]) -> Iterator[Keyboard]:
    keyboard = Keyboard(capsys)
    yield keyboard
    os.close(keyboard.reading)
    os.close(keyboard.typing)


async def test_a_line_answers(keyboard: Keyboard) -> None:
    asked = keyboard.terminal.approve(PROPOSAL)
    assert await keyboard.answer(asked, "perhaps\n", "y\n") is Choice.YES


async def test_a_paste_answers_no_question(keyboard: Keyboard) -> None:
    asked = keyboard.terminal.approve(PROPOSAL)
    assert await keyboard.answer(asked, "y\ny\n", "\n", "n\n") is Choice.NO
    assert "Pasted 2 lines" in keyboard.shown


async def test_a_pasted_text_is_the_answer_when_enter_is_pressed(
    keyboard: Keyboard,
) -> None:
    asked = keyboard.terminal.ask("Which text?")
    assert await keyboard.answer(asked, "a\r\n\tb\n", "c\n") == "a\n\tb\nc"


async def test_the_end_of_the_input_is_no_answer(keyboard: Keyboard) -> None:
    asked = asyncio.ensure_future(keyboard.terminal.ask("Which text?"))
    typing, keyboard.typing = keyboard.typing, os.open(os.devnull, os.O_RDONLY)
    os.close(typing)
    with pytest.raises(NotApproved):
        await asked
