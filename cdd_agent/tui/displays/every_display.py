from cdd_agent.events.dialogue_events import ReplyFinished
from cdd_agent.events.stream import Event

# Each of these modules registers displays.
from cdd_agent.tui.displays import (  # noqa: F401
    dialogue_display,
    shell_display,
    step_display,
    ticket_display,
)
from cdd_agent.tui.displays.display import Display, show_event


def show_on_home(event: Event, display: Display) -> None:
    """Show an event. Of a step in a separate tree, show only progress and cost."""
    if display.side.holds_back(event):
        _show_side_step(event, display)
    else:
        show_event(event, display)


def _show_side_step(event: Event, display: Display) -> None:
    home = display.home
    home.activity.busy(display.side.in_words())
    if not isinstance(event, ReplyFinished):
        return
    if event.usage is not None and event.step is not None:
        display.show_cost()
        home.steps.spend(event.step, event.usage.cost)
