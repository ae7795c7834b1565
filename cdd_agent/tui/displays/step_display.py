from cdd_agent.events.outside_events import OutsideDiff
from cdd_agent.events.run_events import BaselineStarted
from cdd_agent.events.step_events import (
    AttemptFailed,
    ChangesApplied,
    CheckpointStarted,
    CommandOutput,
    StepDiff,
    StepsRedone,
    StepStarted,
    StepsUndone,
    TestsFinished,
    TestsStarted,
)
from cdd_agent.events.step_summary import StepFinished
from cdd_agent.tui.displays.display import Display, show_event
from cdd_agent.tui.transcript.actions import show_diff


@show_event.register
def show_start_of_step(event: StepStarted, display: Display) -> None:
    home = display.home
    home.steps.begin(event)
    activity = f"Step {event.label}: {event.title}"
    if event.side_tree:
        activity = display.side.in_words()
    home.activity.busy(activity)
    display.actions.show(event)
    display.show_words(event)


@show_event.register
def show_failed_attempt(event: AttemptFailed, display: Display) -> None:
    display.actions.show(event)
    display.show_words(event)


@show_event.register
def show_end_of_step(event: StepFinished, display: Display) -> None:
    display.home.steps.finish(event)
    display.home.say_what_to_type()
    display.show_words(event)


@show_event.register
def show_undo(event: StepsUndone, display: Display) -> None:
    home = display.home
    if home.agent is None:
        # The finished plan is unfinished again.
        home.steps.show(())
    else:
        home.show_steps()
        home.say_what_to_type()
    display.show_words(event)


@show_event.register
def show_redo(event: StepsRedone, display: Display) -> None:
    home = display.home
    if home.agent is not None:
        home.show_steps()
        home.say_what_to_type()
    display.show_words(event)


@show_event.register
def show_action(
    event: ChangesApplied | CommandOutput | TestsFinished, display: Display
) -> None:
    display.actions.show(event)


@show_event.register
def show_start_of_check(event: TestsStarted, display: Display) -> None:
    display.actions.show(event)
    display.home.activity.busy(f"Running {event.command}")


@show_event.register
def show_start_of_baseline(event: BaselineStarted, display: Display) -> None:
    display.home.activity.busy(f"Running {event.command} before any change")


@show_event.register
def show_start_of_checkpoint(event: CheckpointStarted, display: Display) -> None:
    del event
    display.home.activity.busy("Taking a checkpoint")


@show_event.register
def show_step_diff(event: StepDiff, display: Display) -> None:
    if event.diff:
        display.actions.show(event)
    else:
        display.show_words(event)


@show_event.register
def show_outside_diff(event: OutsideDiff, display: Display) -> None:
    if event.diff:
        show_diff(display.home.transcript, event.diff)
    else:
        display.show_words(event)
