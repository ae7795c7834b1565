"""Finds tickets about similar subjects, by shared rare words."""

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from cdd_agent.errors import CddError
from cdd_agent.pattern import Pattern
from cdd_agent.tickets.store import Ticket

_MAX_TICKETS = 300
_MAX_SPEC_BYTES = 100_000
_WORD = Pattern(r"\w{3,}")


class Related(Struct, frozen=True):
    """The title is empty if the spec is unreadable."""

    slug: str
    title: str


def related_tickets(
    ticket: Ticket, others: Iterable[Ticket], limit: int = 5
) -> list[Related]:
    """Return the most similar of the latest tickets, best first."""
    latest = sorted(others, key=_modified_at, reverse=True)[:_MAX_TICKETS]
    words = {}
    for other in latest:
        if other.slug != ticket.slug:
            related = _describe(other)
            words[related] = _words(related)
    frequency = Counter(
        word for words_of_ticket in words.values() for word in words_of_ticket
    )
    own_words = _words(_describe(ticket))
    similarity = {}
    for related, words_of_ticket in words.items():
        shared = words_of_ticket & own_words
        if shared:
            similarity[related] = sum(1 / frequency[word] for word in shared)
    return sorted(similarity, key=lambda related: (-similarity[related], related.slug))[
        :limit
    ]


def _modified_at(ticket: Ticket) -> float:
    try:
        return ticket.folder.stat().st_mtime
    except OSError:
        return 0.0


def _describe(ticket: Ticket) -> Related:
    title = ""
    try:
        if ticket.spec_path.stat().st_size <= _MAX_SPEC_BYTES:
            spec = ticket.read_spec()
            title = spec.title if spec.has_title else ""
    except (CddError, OSError):
        pass
    return Related(ticket.slug, title)


def _words(ticket: Related) -> frozenset[str]:
    # The first word of a slug is the type, which many share.
    name = ticket.slug.partition("-")[2].replace("-", " ")
    return frozenset(
        word.casefold() for word in _WORD.findall(f"{name} {ticket.title}")
    )
