"""The question about settings that need trust, before the session opens."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Static

from cdd_agent.commands.trust_words import (
    ANSWERS,
    SHOW,
    described,
    heading,
    numbered_file,
)
from cdd_agent.frontend import REST
from cdd_agent.session.open_project import TrustAnswer
from cdd_agent.tui.screens.overlay import SCROLLING, Overlay
from cdd_agent.tui.transcript.blocks import BlockKind
from cdd_agent.tui.transcript.widget import Transcript

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from textual.widget import Widget

    from cdd_agent.session.open_project import TrustQuestion
    from cdd_agent.tui.app import Shell


class TrustScreen(Overlay):
    """The result is the value of a `TrustAnswer`. A key before the user can have read
    the question must be repeated.
    """

    DEFAULT_CSS = """
    TrustScreen {
        & #answers {
            height: auto; padding: 0 1; background: $surface; text-wrap: nowrap;
            text-overflow: ellipsis;
        }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("t", "trust", "Trust the settings", show=False),
        Binding("s", "show_file", "Show the settings file", show=False),
        Binding("c,escape", "leave_out", "Continue with defaults", show=False),
        *SCROLLING,
    ]
    KEYS = "↑↓ PgUp PgDn: scroll · Esc: use defaults"
    SCROLLS = "Transcript"

    def __init__(self, question: TrustQuestion, now: Callable[[], float]) -> None:
        super().__init__()
        self._question = question
        self._now = now
        self._seen_at = now()
        self._shows_file = False

    def content(self) -> Iterator[Widget]:
        transcript = Transcript(follows=False)
        transcript.can_focus = False  # every key is the screen's
        yield transcript
        yield Static(id="answers", markup=False)

    def on_mount(self) -> None:
        self.head("Do you trust this project's settings?")
        self._show()

    def seen(self) -> Hashable:
        scroll_position = self.query_one(Transcript).scroll_target_y
        return self._shows_file, self._seen_at, scroll_position

    def action_trust(self) -> None:
        self._answer(TrustAnswer.TRUST)

    def action_leave_out(self) -> None:
        self._answer(TrustAnswer.DEFAULTS)

    def action_show_file(self) -> None:
        self._shows_file = not self._shows_file
        self._show()

    def _answer(self, answer: TrustAnswer) -> None:
        if self._now() - self._seen_at < REST:
            self._seen_at = 0.0
            self.hint("You had no time to read this. Press the key again.")
            return
        self.dismiss(answer.value)

    def _answers(self) -> Content:
        lines = []
        for key, words in ANSWERS.items():
            is_back = self._shows_file and words == SHOW
            shown = "back to the settings" if is_back else words
            lines.append(Content.assemble((key, "bold"), f"  {shown}"))
        return Content("\n").join(lines)

    def _show(self) -> None:
        question, transcript = self._question, self.query_one(Transcript)
        self.query_one("#answers", Static).update(self._answers())
        transcript.clear()
        if self._shows_file:
            transcript.add(BlockKind.OUTPUT, numbered_file(question))
            return
        transcript.add(BlockKind.NOTE, heading(question))
        settings = described(question.settings, question.trusted_before)
        transcript.add(BlockKind.OUTPUT, "\n".join(settings))
        if question.note:
            transcript.add(BlockKind.WARNING, question.note)


async def ask_for_trust(shell: Shell, question: TrustQuestion) -> TrustAnswer:
    answer = asyncio.get_running_loop().create_future()

    def settle(chosen: str | None) -> None:
        answer.set_result(chosen or TrustAnswer.DEFAULTS.value)

    await shell.push_screen(TrustScreen(question, shell.clock.now), settle)
    return TrustAnswer(await answer)
