"""Displays of specs and plans, in a panel if one fits."""

from msgspec.structs import replace

from cdd_agent.events.ticket_events import PlanOpened, PlanProposed, SpecShown
from cdd_agent.tui.displays.display import Display, show_event
from cdd_agent.tui.transcript.actions import text_block
from cdd_agent.tui.transcript.blocks import BlockKind
from cdd_agent.wording.proposal_words import (
    change_lines,
    proposal_heading,
    reopened_lines,
)
from cdd_agent.wording.spec_words import spec_in_full


@show_event.register
def show_spec(event: SpecShown, display: Display) -> None:
    """Show the spec in the panel if it fits, otherwise as a line of progress."""
    home = display.home
    if home.agent is not None and home.agent.ticket_slug == event.ticket_slug:
        home.spec.show(event)
    if event.in_full:
        home.transcript.add(BlockKind.MARKDOWN, spec_in_full(event))
    elif not home.has_room_for_panel:
        display.show_words(event)


@show_event.register
def show_plan(event: PlanOpened, display: Display) -> None:
    """Show the active agent's plan in the list of steps if the list is empty. Otherwise
    show the plan in the transcript.
    """
    home = display.home
    agent = home.agent
    if agent is None or agent.ticket_slug != event.ticket_slug or home.steps.has_steps:
        display.show_words(event)
        return
    home.steps.show(event.steps, event.former_cost)
    home.say_what_to_type()
    heading = f"{event.ticket_slug}: {event.title}"
    home.transcript.add(BlockKind.HEADING, heading)


@show_event.register
def show_proposal(event: PlanProposed, display: Display) -> None:
    """Show a proposed plan from its first line, with its steps in the panel. A changed
    plan is folded below its changes.
    """
    if not event.in_full:
        display.show_words(event)
        return
    home = display.home
    home.steps.show(())
    home.proposal.show(replace(event, in_full=False))
    transcript = home.transcript
    transcript.settle()
    first_row = transcript.next_row
    if event.changes is None:
        transcript.add(BlockKind.MARKDOWN, event.text)
    else:
        transcript.add(BlockKind.HEADING, proposal_heading(event))
        transcript.add(BlockKind.NOTE, "\n".join(change_lines(event)))
        for line in reopened_lines(event.changes):
            transcript.add(BlockKind.WARNING, line)
        transcript.add_foldable(text_block(event.text, "the whole plan"))
    transcript.show_from(first_row)
