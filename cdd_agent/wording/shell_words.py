"""Words of notices, and of the events of the shell."""

from datetime import datetime

from cdd_agent.events.notices import Answer, Notice, Tone
from cdd_agent.events.shell_events import (
    AgentChanged,
    Cleared,
    ExitRequested,
    ModelChosen,
    ModelsFound,
    OwnCommandFinished,
    OwnCommandStarted,
    PersonSaid,
    ScreenAsked,
    SessionsListed,
    SessionView,
)
from cdd_agent.events.stream import SessionRestored
from cdd_agent.llm.offered_model import list_in_words
from cdd_agent.wording.registry import Lines, words_of


def session_in_short(session: SessionView) -> str:
    """Return the time, name, agent and progress of a session."""
    when = datetime.fromisoformat(session.touched).astimezone()
    parts = (f"{when:%Y-%m-%d %H:%M}", session.key, session.agent, session.progress)
    return "  ".join(filter(None, parts))


@words_of.register
def describe_notice(event: Notice) -> Lines:
    return [(event.text, event.tone)]


@words_of.register
def describe_answer(event: Answer) -> Lines:
    return [(event.text, Tone.PLAIN)]


@words_of.register
def describe_screen_asked(event: ScreenAsked) -> Lines:
    return [(event.instead, Tone.PLAIN)]


@words_of.register
def describe_models_found(event: ModelsFound) -> Lines:
    lines = [
        (f"{name} is running on this computer but has no model yet.", Tone.PLAIN)
        for name in event.without_models
    ]
    if not event.models:
        return lines
    lines.append((list_in_words(event.models, event.more), Tone.PLAIN))
    hint = "Type `/model 1 --save` to use the first one for this project."
    lines.append((hint, Tone.PLAIN))
    return lines


@words_of.register
def describe_model_chosen(event: ModelChosen) -> Lines:
    role = f"{event.role} " if event.role else ""
    where = f" at {event.api_base}" if event.api_base else ""
    how_long = "for this session (add --save to keep it for the project)"
    if event.saved_in:
        how_long = f"saved in {event.saved_in}"
    text = f"The {role}model is now {event.model}{where}, {how_long}."
    return [(text, Tone.GOOD)]


@words_of.register
def describe_sessions(event: SessionsListed) -> Lines:
    if not event.sessions:
        return [("There are no earlier sessions.", Tone.PLAIN)]
    lines = []
    for session in event.sessions:
        line = f"{session_in_short(session)}  {session.last}".rstrip()
        lines.append((line, Tone.PLAIN))
    hint = "Type `/resume NAME` to continue one, or `/resume` for the last one."
    lines.append((hint, Tone.PLAIN))
    return lines


@words_of.register
def describe_own_command_finished(event: OwnCommandFinished) -> Lines:
    if not event.result:
        return []
    return [(event.result, Tone.WARNING)]


@words_of.register
def leave_out_display(
    event: (
        AgentChanged
        | Cleared
        | ExitRequested
        | OwnCommandStarted
        | PersonSaid
        | SessionRestored
    ),
) -> Lines:
    del event
    return []
