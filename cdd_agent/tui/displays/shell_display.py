from cdd_agent.events.notices import Answer
from cdd_agent.events.question_events import AcceptingAll, ApprovalChanged
from cdd_agent.events.shell_events import (
    AgentChanged,
    Cleared,
    ModelChosen,
    OwnCommandStarted,
)
from cdd_agent.events.stream import SessionRestored
from cdd_agent.tui.displays.display import Display, show_event
from cdd_agent.tui.restoring import restore
from cdd_agent.tui.transcript.blocks import BlockKind


@show_event.register
def show_answer(event: Answer, display: Display) -> None:
    display.home.transcript.add(BlockKind.MARKDOWN, event.text)


@show_event.register
def show_earlier_session(event: SessionRestored, display: Display) -> None:
    restore(display.home.transcript, event)


@show_event.register
def show_agent(event: AgentChanged, display: Display) -> None:
    home = display.home
    home.bar.agent = event.agent or "chat"
    home.bar.ticket = event.ticket_slug or ""
    home.bar.context = ""
    home.show_approval()
    # A plan that just finished stays visible.
    if event.agent or not home.steps.is_over:
        home.steps.show(())
    home.spec.show(None)
    home.proposal.show(None)
    home.say_what_to_type()


@show_event.register
def show_approval(event: ApprovalChanged | AcceptingAll, display: Display) -> None:
    display.home.show_approval()
    display.show_words(event)


@show_event.register
def show_model(event: ModelChosen, display: Display) -> None:
    home = display.home
    if event.role is None:
        home.bar.model = event.model
        home.bar.context = ""
    display.show_words(event)


@show_event.register
def show_start_of_own_command(event: OwnCommandStarted, display: Display) -> None:
    display.actions.show(event)
    display.home.activity.busy(f"Running {event.command}")


@show_event.register
def clear_transcript(event: Cleared, display: Display) -> None:
    del event
    home = display.home
    home.transcript.clear()
    if home.agent is None:
        home.steps.show(())
