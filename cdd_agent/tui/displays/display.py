"""The registry of displays: a function for each type of event that needs more than
text.
"""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING, Protocol

from cdd_agent.engine.side_events import SideSteps
from cdd_agent.events.notices import Tone
from cdd_agent.events.stream import Event
from cdd_agent.events.ticket_events import PlanOpened, TicketsListed
from cdd_agent.tui.transcript.actions import ActionBlocks
from cdd_agent.tui.transcript.blocks import BLOCKS
from cdd_agent.wording.describe import describe
from cdd_agent.wording.faces import Face

if TYPE_CHECKING:
    from cdd_agent.agents.base import Agent
    from cdd_agent.cost import Cost
    from cdd_agent.session.session import Session
    from cdd_agent.tui.transcript.widget import Transcript
    from cdd_agent.tui.widgets.bars import ActivityBar
    from cdd_agent.tui.widgets.proposal import ProposalPanel
    from cdd_agent.tui.widgets.spec import SpecPanel
    from cdd_agent.tui.widgets.status_line import StatusLine
    from cdd_agent.tui.widgets.steps import StepList


class HomeScreen(Protocol):
    session: Session | None

    @property
    def transcript(self) -> Transcript: ...
    @property
    def steps(self) -> StepList: ...
    @property
    def spec(self) -> SpecPanel: ...
    @property
    def proposal(self) -> ProposalPanel: ...
    @property
    def bar(self) -> StatusLine: ...
    @property
    def activity(self) -> ActivityBar: ...
    @property
    def agent(self) -> Agent | None: ...
    @property
    def has_room_for_panel(self) -> bool: ...

    def say_what_to_type(self) -> None:
        """Update the prompt's placeholder and the hint below the prompt."""
        ...

    def show_approval(self) -> None: ...

    def show_steps(self) -> None: ...


class Display:
    def __init__(self, home: HomeScreen) -> None:
        self.home = home
        self.actions = ActionBlocks(home.transcript)
        self.side = SideSteps()
        self.window: int | None = None
        """The context window of the current model, in tokens."""
        self.delay = 0.0
        """Remaining seconds of the current wait for the model. A longer delay is a new
        wait.
        """

    def show_words(self, event: Event) -> None:
        transcript = self.home.transcript
        transcript.settle()
        prefix = self.side.prefix(event)
        for text, tone in lines_of(event):
            transcript.add(BLOCKS[tone], prefix + text)

    def show_cost(self) -> None:
        session = self.home.session
        if session is not None:
            self.home.bar.cost = session.tally.spent

    def share_of_window(self, cost: Cost) -> str:
        if not self.window:
            return ""
        return f"{cost.about}{100 * cost.tokens // self.window}%"


@singledispatch
def show_event(event: Event, display: Display) -> None:
    """Show an event as text. Modules of this package register other displays by type;
    `every_display.py` imports them.
    """
    display.show_words(event)


def lines_of(event: Event) -> list[tuple[str, Tone]]:
    """Return an event's lines for the transcript. A list of several lines is one
    block.
    """
    lines = describe(event, Face.SHELL)
    if isinstance(event, TicketsListed | PlanOpened):
        return [("\n".join(text for text, _ in lines), Tone.PLAIN)]
    return lines
