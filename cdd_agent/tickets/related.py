"""Tickets that may be about the same thing as another one, by the words that they share and few others have."""

import re
from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from cdd_agent.errors import CddError
from cdd_agent.tickets.store import Ticket

_LOOKED_AT = 300
"""Tickets whose specs are read, the latest first."""
_LARGEST = 100_000
"""Bytes of a spec that is read only for its title."""
_WORD = re.compile(r"\w{3,}")


class Related(Struct, frozen=True):
    """A ticket, and its title if its spec can be read."""

    slug: str
    title: str


def related_tickets(ticket: Ticket, others: Iterable[Ticket], most: int = 5) -> list[Related]:
    """Those that are likest, the likest first. Others' files that cannot be read have only their slug to go by."""

    def written(other: Ticket) -> float:
        try:
            return other.folder.stat().st_mtime
        except OSError:  # it went meanwhile
            return 0.0

    latest = sorted(others, key=written, reverse=True)[:_LOOKED_AT]
    known = [Related(other.slug, _title(other)) for other in latest if other.slug != ticket.slug]
    own = _words(Related(ticket.slug, _title(ticket)))
    words = {other: _words(other) for other in known}
    common = Counter(word for some in words.values() for word in some)
    likeness = {other: sum(1 / common[word] for word in some & own) for other, some in words.items()}
    likest = sorted((other for other in known if likeness[other]), key=lambda other: (-likeness[other], other.slug))
    return likest[:most]


def _title(ticket: Ticket) -> str:
    try:
        if ticket.spec_path.stat().st_size > _LARGEST:
            return ""
        spec = ticket.read_spec()
    except (CddError, OSError):
        return ""
    return spec.title if spec.has_title else ""


def _words(ticket: Related) -> frozenset[str]:
    name = ticket.slug.partition("-")[2]  # many have the same type
    return frozenset(word.casefold() for word in _WORD.findall(f"{name.replace('-', ' ')} {ticket.title}"))
