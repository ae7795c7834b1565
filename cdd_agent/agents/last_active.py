"""Who was active last, for `/resume` in a later session: an agent on a ticket, or chat."""

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cdd_agent.errors import CddError
from cdd_agent.files.atomic import ignore_runs, read_bytes, write_atomic


@dataclass(frozen=True)
class LastActive:
    """`agent` and `ticket_slug` are None for chat."""

    agent: str | None = None
    ticket_slug: str | None = None


def remember(root: Path, last: LastActive) -> None:
    """Only in a project, and only where its folder can be written: a convenience, as history is."""
    if not (root / ".cdd").is_dir():
        return
    with suppress(CddError):
        ignore_runs(root)
        write_atomic(_file(root), json.dumps({"agent": last.agent, "ticket": last.ticket_slug}).encode())


def last_active(root: Path) -> LastActive | None:
    """None where that is not known."""
    try:
        fields = json.loads(read_bytes(_file(root)) or b"null")
        agent, slug = fields["agent"], fields["ticket"]
    except (CddError, ValueError, KeyError, TypeError, RecursionError):
        return None
    if isinstance(agent, str) and isinstance(slug, str):
        return LastActive(agent, slug)
    return LastActive() if agent is None else None


def _file(root: Path) -> Path:
    return root / ".cdd" / "runs" / "last-active.json"
