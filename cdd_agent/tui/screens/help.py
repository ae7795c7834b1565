from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType

from cdd_agent.commands.help import agents_help, command_help, commands_help
from cdd_agent.commands.registry import commands
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.refusals.page import explain
from cdd_agent.tui.key_help import all_of_the_shell, on_screens
from cdd_agent.tui.keys import AT_A_QUESTION, KeyHelp, keys_of
from cdd_agent.tui.screens.overlay import SCROLLING, Overlay
from cdd_agent.tui.transcript.blocks import BlockKind
from cdd_agent.tui.transcript.widget import Transcript

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping

    from textual.widget import Widget

_SITUATIONS: Mapping[str, str] = {
    "chat": "In chat",
    "socrates": "With Socrates: a ticket's spec",
    "planner": "With the Planner: a ticket's plan",
    "executor": "With the Executor: a ticket's run",
}
QUESTION = "question"


class HelpScreen(Overlay):
    """Help from the commands, the agents and the bindings. It begins with `situation`:
    an agent, a command, the id of a refusal, or `QUESTION`. Otherwise it begins with
    keys.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        *SCROLLING,
        Binding("f1,q,question_mark", "close", "Close", show=False),
    ]
    KEYS = "↑↓ PgUp PgDn Home End: scroll · Esc: close"
    SCROLLS = "Transcript"

    def __init__(self, situation: str = "chat") -> None:
        super().__init__()
        self._situation = situation

    def content(self) -> Iterator[Widget]:
        transcript = Transcript(follows=False)
        transcript.can_focus = False  # every key is the screen's
        yield transcript

    def on_mount(self) -> None:
        self.head("Help")
        transcript = self.query_one(Transcript)
        for title, text in sections(self._situation):
            transcript.add(BlockKind.HEADING, title)
            transcript.add(BlockKind.MARKDOWN, text)

    def seen(self) -> Hashable:
        return self.query_one(Transcript).scroll_target_y


def sections(situation: str) -> Iterator[tuple[str, str]]:
    """Yield headings with Markdown, those for the situation first."""
    agents = agents_help()
    if situation == QUESTION:
        yield "A question is open", _table(AT_A_QUESTION)
    elif situation in agents:
        yield _SITUATIONS[situation], agents[situation]
    if situation in commands():
        yield f"/{situation}", command_help(commands()[situation])
    refusal = Refusal.find(situation)
    if refusal is not None:
        yield f"Why: {refusal.id}", explain(refusal)
    yield "Keys", _table(all_of_the_shell())
    yield "Commands", commands_help()
    for name, text in agents.items():
        if name != situation:
            yield _SITUATIONS[name], text
    if situation != QUESTION:
        yield "At a question", _table(AT_A_QUESTION)
    on_help = tuple(keys_of(HelpScreen.BINDINGS))
    for title, keys in {**on_screens(), "Help": on_help}.items():
        yield f"Keys: {title}", _table(keys)


def _table(keys: Iterable[KeyHelp]) -> str:
    rows = "\n".join(f"| {key.names} | {key.words} |" for key in keys)
    return f"| key | action |\n|---|---|\n{rows}"
