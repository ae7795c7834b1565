"""The messages between a worker and the client about one ticket. The worker asks, the
client answers. Messages are plain values: they create no objects of the other side.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any

from msgspec import Meta, Struct, convert, to_builtins

from cdd_agent.errors import BadInput
from cdd_agent.refusals.kinds import Refusal

PIECE = 4_000_000
"""Bytes of a bundle that travel at once: the scheduler holds no more of it at a time.
"""
_MOST_KNOWN = 200
"""Commits that a worker names as known."""

Commit = Annotated[str, Meta(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})\Z")]
Count = Annotated[int, Meta(ge=0)]
Dollars = Annotated[float, Meta(ge=0)]
Answer = Mapping[str, Any]
Ask = Callable[[Mapping[str, Any]], Awaitable[Answer]]
"""Takes a question to the client, and brings its answer. Raises `ClientGone`,
`ClientFailed`.
"""


class ClientGone(Exception):
    """The client does not answer, or has given the ticket to another worker: the work
    here is no longer needed.
    """


class ClientFailed(BadInput):
    """The client could not do what a worker needs of it, such as write to its disk."""

    refusal = Refusal.WORKER_UNUSABLE


class _Said(Struct, frozen=True, forbid_unknown_fields=True):
    def told(self) -> dict[str, Any]:
        """As plain values, as it goes over the line."""
        values: dict[str, Any] = to_builtins(self, builtin_types=(bytes,))
        return values


class Order(_Said, frozen=True):
    """The arguments of a task: enough to ask for the rest."""

    ticket: str
    """By this name the client knows it."""
    project: str
    """The same for all copies of a project; by this the worker finds what it has of it
    already.
    """
    version: str
    inbox: str
    """The queue on which the client receives questions."""
    patience: float
    """Seconds without an answer after which either side considers the other dead."""


class _Question(_Said, frozen=True, tag_field="kind", tag=str.lower):
    """Its `kind` is its name."""


class Begin(_Question, frozen=True):
    """A worker has the task, and asks for the run."""

    worker: Annotated[str, Meta(max_length=500)]
    have: Annotated[tuple[Commit, ...], Meta(max_length=_MOST_KNOWN)] = ()
    """Commits of the project that are in its cache."""


class Piece(_Question, frozen=True):
    """The next part of the bundle with the run."""

    attempt: int
    offset: Count


class Told(_Question, frozen=True):
    """Events of the run, each as a line of JSON."""

    attempt: int
    events: tuple[str, ...]


class Saved(_Question, frozen=True):
    """A part of a bundle with the current run. When the last part is answered, the
    client has it on its disk.
    """

    attempt: int
    tip: Commit
    offset: Count
    data: Annotated[bytes, Meta(max_length=PIECE)]
    is_last: bool


class Alive(_Question, frozen=True):
    """Nothing new."""

    attempt: int


class Hold(_Question, frozen=True):
    """Ask for room for a call with this worst cost, if there is a budget."""

    attempt: int
    tokens: Count
    usd: Dollars


class Took(_Question, frozen=True):
    """It is over, and took so much."""

    attempt: int
    tokens: Count
    usd: Dollars
    estimated: bool


AnyQuestion = Begin | Piece | Told | Saved | Alive | Hold | Took


def heard(values: object, kind: Any) -> Any:
    """Decode a received message. Raises `ValueError` if it has another kind."""
    return convert(values, kind, builtin_types=(bytes,))


class Begun(_Said, frozen=True):
    """The run is the worker's now: its attempt has this number, and only the latest
    attempt is listened to.
    """

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


class Over(_Said, frozen=True):
    """The end of a task, as its result: how the run ended, or why the ticket has to go
    elsewhere.
    """

    attempt: int
    exit_code: int
    words: str = ""
    budget_used_up: bool = False
    not_here: bool = False
    """Nothing is wrong with the ticket: it is this machine that cannot carry it out."""
    worker: str = ""
