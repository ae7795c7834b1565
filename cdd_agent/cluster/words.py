"""What a worker and the client say to each other about one ticket. The worker asks, the client answers.

All of it is plain values: no object of either side is made on the other by what comes over the line.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from cdd_agent.errors import BadInput

PIECE = 4_000_000
"""Bytes of a bundle that travel at once: the scheduler holds no more of it at a time."""
_MOST_KNOWN = 200
"""Commits that a worker names as known."""

Commit = Annotated[str, Field(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})$")]
Answer = Mapping[str, Any]
Ask = Callable[[Mapping[str, Any]], Awaitable[Answer]]
"""Takes a question to the client, and brings its answer. Raises `ClientGone`, `ClientFailed`."""


class ClientGone(Exception):
    """The client does not answer, or has given the ticket to somebody else: nobody wants what is done here any more."""


class ClientFailed(BadInput):
    """The client could not do what a worker needs of it, such as write to its disk."""


class _Said(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Order(_Said):
    """What a task is given when it is submitted: enough to ask for the rest."""

    ticket: str
    """By this name the client knows it."""
    project: str
    """The same for all copies of a project; by this the worker finds what it has of it already."""
    version: str
    inbox: str
    """Where the client hears questions."""
    patience: float
    """Seconds without an answer after which either side is taken for dead."""


class Begin(_Said):
    """A worker has the task, and asks for the run."""

    kind: Literal["begin"] = "begin"
    worker: str = Field(max_length=500)
    version: str = Field(max_length=100)
    have: tuple[Commit, ...] = Field(default=(), max_length=_MOST_KNOWN)
    """Commits of the project that are in its cache."""


class Piece(_Said):
    """The next part of the bundle with the run."""

    kind: Literal["piece"] = "piece"
    attempt: int
    offset: int = Field(ge=0)


class Told(_Said):
    """Events of the run, each as a line of JSON."""

    kind: Literal["told"] = "told"
    attempt: int
    events: tuple[str, ...]


class Saved(_Said):
    """A part of a bundle with the run as it is now. When the last part is answered, the client has it on its disk."""

    kind: Literal["saved"] = "saved"
    attempt: int
    tip: Commit
    offset: int = Field(ge=0)
    data: bytes = Field(max_length=PIECE)
    is_last: bool


class Alive(_Said):
    """Nothing new."""

    kind: Literal["alive"] = "alive"
    attempt: int


class Hold(_Said):
    """May a call be made that takes so much at worst? Asked where there is a budget."""

    kind: Literal["hold"] = "hold"
    attempt: int
    tokens: int = Field(ge=0)
    usd: float = Field(ge=0)


class Took(_Said):
    """It is over, and took so much."""

    kind: Literal["took"] = "took"
    attempt: int
    tokens: int = Field(ge=0)
    usd: float = Field(ge=0)
    estimated: bool


AnyQuestion = Begin | Piece | Told | Saved | Alive | Hold | Took
QUESTION: TypeAdapter[AnyQuestion] = TypeAdapter(Annotated[AnyQuestion, Field(discriminator="kind")])


class Begun(_Said):
    """The run is the worker's now: its attempt has this number, and only the latest attempt is listened to."""

    attempt: int
    slug: str
    tip: Commit
    """The commit with the run."""
    size: int
    """Bytes of the bundle."""
    have: tuple[Commit, ...]
    """The commits that the bundle builds on."""
    branch: str
    prefix: str
    """The project's folder in the repository."""
    folder: str
    """The ticket's, from the project's."""
    settings: dict[str, Any]
    tokens: int | None
    usd: float | None
    """The budget of all runs together."""
    author: tuple[str, str]
    """Name and address, for commits."""


class Over(_Said):
    """The end of a task, as its result: how the run ended, or why the ticket has to go elsewhere."""

    attempt: int
    exit_code: int
    words: str = ""
    budget_used_up: bool = False
    not_here: bool = False
    """Nothing is wrong with the ticket: it is this machine that cannot carry it out."""
    worker: str = ""
