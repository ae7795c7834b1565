"""Events of the shell: the user's wishes, sessions, models, own commands."""

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
    """For `theme`, the theme; for `help`, the agent."""


class PersonSaid(BaseEvent, frozen=True):
    """The user sent a line to an agent. Only in logs."""

    text: str


class SessionView(Struct, frozen=True):
    """A session that can be reopened: a chat, or work on a ticket."""

    key: str
    """The name for `/resume`: a ticket's slug, or `chat-` and the start time."""
    agent: str
    """`chat`, or the last agent of the ticket."""
    touched: str
    """The time of the last entry, in ISO 8601."""
    progress: str = ""
    last: str = ""
    """The last line, shortened."""


class SessionsListed(BaseEvent, frozen=True):
    """The sessions that can be reopened, the latest first."""

    sessions: tuple[SessionView, ...]


class AgentChanged(BaseEvent, frozen=True):
    """Lines without a command now go to this agent. None: to chat."""

    agent: str | None
    ticket_slug: str | None = None


class ModelsFound(BaseEvent, frozen=True):
    """Models of servers on this computer. The user chooses one by its number, from
    1.
    """

    models: tuple[OfferedModel, ...]
    without_models: tuple[str, ...] = ()
    """Running servers without models."""
    more: int = 0
    """The number of models that are not in `models`."""


class ModelChosen(BaseEvent, frozen=True):
    """Another model is used from now on."""

    model: str
    api_base: str | None
    saved_in: str | None = None
    """The file with the choice, if it is saved for later sessions."""
    role: str | None = None
    """The role that uses the model. None: all roles without an own model."""


class OwnCommandStarted(BaseEvent, frozen=True):
    """The user runs a shell command."""

    command: str


class OwnCommandFinished(BaseEvent, frozen=True):
    """The user's shell command ended or was stopped."""

    command: str
    result: str
    """The result in short; empty after success."""


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
