"""The messages between a worker and the client about one ticket. The worker asks, the
client answers. Messages are plain values, so that neither side can create objects of
the other.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any

from msgspec import Meta, Struct, convert, to_builtins

from cdd_agent.errors import BadInput
from cdd_agent.refusals.kinds import Refusal

PIECE = 4_000_000
"""Bytes of a bundle per message, so the scheduler never holds more."""
_MOST_COMMITS = 200

Commit = Annotated[str, Meta(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})\Z")]
Count = Annotated[int, Meta(ge=0)]
Answer = Mapping[str, Any]
Ask = Callable[[Mapping[str, Any]], Awaitable[Answer]]
"""Sends a question to the client and returns its answer. Raises `ClientGone`,
`ClientFailed`.
"""


class ClientGone(Exception):
    """The client does not answer, or another worker has the ticket: this work is no
    longer needed.
    """


class ClientFailed(BadInput):
    """The client failed, for example could not write to its disk."""

    refusal = Refusal.WORKER_UNUSABLE


class _Message(Struct, frozen=True, forbid_unknown_fields=True):
    def to_values(self) -> dict[str, Any]:
        values: dict[str, Any] = to_builtins(self, builtin_types=(bytes,))
        return values


class WorkerOrder(_Message, frozen=True):
    """The arguments of a task. The worker asks for everything else."""

    ticket: str
    """The client's name of the run."""
    project: str
    """The same id for all copies of a project: the key of the cache."""
    version: str
    inbox: str
    """The queue on which the client receives questions."""
    patience: float
    """Seconds without an answer after which either side considers the other dead."""


class ProviderWait(Struct, frozen=True):
    """The time for which a provider wants no calls."""

    seconds: Annotated[float, Meta(ge=0, le=10_000_000)]
    """From now on, so that the machines' clocks need not agree."""
    reason: Annotated[str, Meta(max_length=10_000)]


class _Question(_Message, frozen=True, tag_field="kind", tag=str.lower):
    """A worker's message. `kind` is the class name."""


class Begin(_Question, frozen=True):
    """A worker has the task, and asks for the run."""

    worker: Annotated[str, Meta(max_length=500)]
    have: Annotated[tuple[Commit, ...], Meta(max_length=_MOST_COMMITS)] = ()
    """Commits of the project in the worker's cache."""


class Piece(_Question, frozen=True):
    """The worker asks for the next part of the run's bundle."""

    attempt: int
    offset: Count


class Printed(_Question, frozen=True):
    """The lines that the run's process printed after the last such message."""

    attempt: int
    lines: tuple[str, ...] = ()
    waits: dict[str, ProviderWait] = {}
    """By provider."""


class Saved(_Question, frozen=True):
    """A part of a bundle with the current run. The answer to the last part means that
    the run is on the client's disk.
    """

    attempt: int
    tip: Commit
    offset: Count
    data: Annotated[bytes, Meta(max_length=PIECE)]
    is_last: bool


AnyQuestion = Begin | Piece | Printed | Saved


class Begun(_Message, frozen=True):
    """The answer to `Begin`: this worker has the run. The client answers only the
    latest attempt.
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
    """The ticket's folder, relative to the project."""
    settings: dict[str, Any]
    author: tuple[str, str]
    """Name and address for commits."""


class Reaction(_Message, frozen=True):
    """The answer to `Printed`."""

    input: tuple[str, ...] = ()
    """Lines for the standard input of the run's process."""
    is_stopping: bool = False
    """The run must stop; its last state is still wanted."""
    waits: dict[str, ProviderWait] = {}
    """The waits that all workers know."""


class WorkerEnd(_Message, frozen=True):
    """The result of a task: how the run ended, or why this worker cannot run it."""

    attempt: int
    exit_code: int
    reason: str = ""
    is_unfit: bool = False
    """This worker cannot run the ticket, but another one may."""
    worker: str = ""


def decode_message(values: object, kind: Any) -> Any:
    """Raises `ValueError` if the message is of another kind."""
    return convert(values, kind, builtin_types=(bytes,))
