"""Events of the shell: what the user wants, sessions, models, own commands."""

from msgspec import Struct

from cdd_agent.events.base_event import BaseEvent
from cdd_agent.llm.offered_model import OfferedModel


class Cleared(BaseEvent, frozen=True):
    """The user wants an empty transcript."""


class ExitRequested(BaseEvent, frozen=True):
    """The user wants to leave the program."""


class ScreenAsked(BaseEvent, frozen=True):
    """The user wants to see `help`, `tickets`, `board`, `settings`, `model` or
    `theme`.
    """

    screen: str
    instead: str
    choice: str = ""
    """For `theme`, the theme to use; for `help`, the agent that it is about."""


class PersonSaid(BaseEvent, frozen=True):
    """The user typed a line for an agent. Only logs get this event."""

    text: str


class SessionView(Struct, frozen=True):
    """A session that can be resumed: a conversation in chat, or work on a ticket."""

    key: str
    """The name that `/resume` takes: a ticket's slug, or `chat-` and the start time."""
    agent: str
    """`chat`, or the agent that worked on the ticket last."""
    touched: str
    """The time of the last entry, in ISO 8601."""
    progress: str = ""
    last: str = ""
    """The last line, shortened."""


class SessionsListed(BaseEvent, frozen=True):
    """Earlier sessions that can be resumed, the latest first."""

    sessions: tuple[SessionView, ...]


class AgentChanged(BaseEvent, frozen=True):
    """Plain text goes to this agent from now on. None: to chat."""

    agent: str | None
    ticket_slug: str | None = None


class ModelsFound(BaseEvent, frozen=True):
    """Models that servers on this computer offer. The user chooses one by its number,
    from 1.
    """

    models: tuple[OfferedModel, ...]
    without_models: tuple[str, ...] = ()
    """Servers that run and offer no model."""
    more: int = 0
    """The number of further models that are not in `models`."""


class ModelChosen(BaseEvent, frozen=True):
    """Another model is asked from now on."""

    model: str
    api_base: str | None
    saved_in: str | None = None
    """The file in which the model was set, for later sessions."""
    role: str | None = None
    """The role that uses it. None: all roles without a separate model."""


class OwnCommandStarted(BaseEvent, frozen=True):
    """The user runs a shell command."""

    command: str


class OwnCommandFinished(BaseEvent, frozen=True):
    """The user's shell command ended or was stopped."""

    command: str
    result: str
    """The result in a few words; empty if it succeeded."""


ShellEvent = (
    Cleared
    | ExitRequested
    | ScreenAsked
    | PersonSaid
    | SessionsListed
    | AgentChanged
    | ModelsFound
    | ModelChosen
    | OwnCommandStarted
    | OwnCommandFinished
)
