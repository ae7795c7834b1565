"""Words of the events of an action plan."""

from cdd_agent.events.action_events import (
    ActionFinished,
    ActionOutput,
    ActionsFinished,
    ActionStarted,
)
from cdd_agent.events.notices import Tone
from cdd_agent.wording.registry import Lines, words_of


@words_of.register
def describe_action_started(event: ActionStarted) -> Lines:
    return [(f"[{event.number}/{event.total}] {event.title}", Tone.HEADING)]


@words_of.register
def describe_action_finished(event: ActionFinished) -> Lines:
    if event.status == "FAILURE":
        return [(event.error, Tone.ERROR)]
    return [("done", Tone.GOOD)]


@words_of.register
def describe_actions_finished(event: ActionsFinished) -> Lines:
    total = event.succeeded + event.failed + event.not_run
    parts = [f"{event.succeeded} of {total} actions succeeded"]
    if event.failed:
        parts.append(f"{event.failed} failed")
    if event.not_run:
        parts.append(f"{event.not_run} not run")
    parts += [f"in {event.seconds:.1f} s", f"in {event.cwd}"]
    tone = Tone.WARNING if event.failed or event.not_run else Tone.GOOD
    return [(", ".join(parts), tone)]


@words_of.register
def leave_out_output(event: ActionOutput) -> Lines:
    del event
    return []
