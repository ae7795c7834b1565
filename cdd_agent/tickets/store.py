"""The tickets of a project: finding them, making them, reading their files.

Starting the shell lists the tickets, so importing this module is cheap: the modules that know YAML and Markdown
are imported where a file is read, and those that write where one is made.
"""

from __future__ import annotations

import os
import re
from functools import cached_property, lru_cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.errors import BadInput
from cdd_agent.tickets.slugs import kebab, short

if TYPE_CHECKING:
    from cdd_agent.tickets.plan import ImplementationPlan
    from cdd_agent.tickets.spec import TicketSpec

_SPEC, _PLAN, _STATE = "spec.yaml", "plan.md", "execution-state.json"
_OLDER_LAYOUT = PurePosixPath("specs/tickets")
_TITLE = re.compile(r"""^title:[ \t]*(?P<quote>["']?)(?P<title>[^\n]*?)(?P=quote)[ \t\r]*$""", re.MULTILINE)
_MAX_BYTES = 50_000_000
_NEAR = 100
"""Letters of an unknown slug that are compared with those there are."""


class Ticket(Struct, frozen=True, dict=True):
    """A ticket's folder. Its files are read anew at each call."""

    slug: str
    folder: Path
    root: Path
    """The project, from which messages name the files."""

    @cached_property
    def spec_path(self) -> Path:
        return self.folder / _SPEC

    @cached_property
    def plan_path(self) -> Path:
        return self.folder / _PLAN

    @cached_property
    def state_path(self) -> Path:
        return self.folder / _STATE

    @property
    def record(self) -> Path:
        """The folder of its run's record, which is there once a run was begun."""
        return Path(self.root, ".cdd", "runs", self.slug)

    def shown(self, path: Path) -> str:
        """`path` as messages name it, for `plan.check(source=ticket.shown(ticket.plan_path))`."""
        return path.as_posix().removeprefix(f"{self.root.as_posix()}/")

    def refuse_to_write(self, path: Path) -> None:
        """Raises `BadInput` for a file of the ticket that leads out of the project by a link, or is read-only."""
        if not path.resolve().is_relative_to(self.root.resolve()):
            raise BadInput(f"{self.shown(path)} leads outside the project, so it is not written")
        if path.is_file() and not path.stat().st_mode & 0o222:
            raise BadInput(f"{self.shown(path)} is read-only, so it is not written", hint="Make it writable first.")

    def read_spec(self) -> TicketSpec:
        """Raises `BadInput` for a spec that is not there or cannot be read."""
        from cdd_agent.tickets.spec import TicketSpec

        text = self._read(self.spec_path, hint="Write one, or start with `/new`.")
        return TicketSpec.from_yaml(text, self.shown(self.spec_path), slug=self.slug)

    def read_plan(self) -> ImplementationPlan:
        """The plan as it is written; whether it can be run says its `check`. Raises `BadInput` if there is none."""
        return self._plan_in(self._plan_text())

    def plan_digest(self, of: ImplementationPlan | None = None) -> str | None:
        """The identity of plan.md's text; None where there is none, or it is not that `of` this plan."""
        from cdd_agent.files.atomic import digest

        try:
            text = self._plan_text()
            return digest(text.encode()) if of is None or self._plan_in(text) == of else None
        except BadInput:
            return None

    def _plan_text(self) -> str:
        hint = f"`/plan {self.slug}` in the shell makes one, and so does `cdd plan {self.slug}`."
        text = self._read(self.plan_path, hint=hint)
        if not text.removeprefix("\ufeff").strip():
            raise BadInput(f"{self.shown(self.plan_path)} is empty.", hint=hint)
        return text

    def _plan_in(self, text: str) -> ImplementationPlan:
        plan = _plan_of(text)
        return plan if plan.ticket_slug else replace(plan, ticket_slug=self.slug)

    def in_short(self) -> str:
        """Its title, as far as the first lines of its spec say it, and how far it is: quick enough for each of many
        tickets while somebody types."""
        from cdd_agent.files.walk import read_small

        title = _TITLE.search(read_small(self.spec_path, 2_000))
        is_planned, is_begun = self.plan_path.exists(), self.state_path.exists()
        state = "a run was begun" if is_begun else "planned" if is_planned else "no plan yet"
        return " · ".join(filter(None, (title["title"] if title else "", state)))

    def _read(self, path: Path, *, hint: str) -> str:
        try:
            if path.stat().st_size > _MAX_BYTES:
                raise BadInput(f"{self.shown(path)} is larger than {_MAX_BYTES} bytes.")
            return path.read_bytes().decode("utf-8-sig")
        except FileNotFoundError as error:
            raise BadInput(f"The ticket {self.slug} has no {path.name}.", hint=hint) from error
        except UnicodeDecodeError as error:
            raise BadInput(
                f"{self.shown(path)} is not UTF-8 text (byte {error.start}).", hint="Save it as UTF-8."
            ) from error
        except OSError as error:
            raise BadInput(f"{self.shown(path)} cannot be read: {error.strerror}.") from error


@lru_cache(maxsize=4)
def _plan_of(text: str) -> ImplementationPlan:
    """A plan is a value: one that is looked at again and again is read once."""
    from cdd_agent.tickets.plan import ImplementationPlan

    return ImplementationPlan.from_markdown(text)


class TicketStore:
    """The tickets under `tickets_dir`, and those of the older layout under `specs/tickets`."""

    def __init__(self, root: Path, tickets_dir: PurePosixPath | str = "tickets") -> None:
        self.root = root
        self.tickets_dir = PurePosixPath(tickets_dir)

    @property
    def places(self) -> tuple[str, ...]:
        """The folders of tickets, relative to the project."""
        return (self.tickets_dir.as_posix(), _OLDER_LAYOUT.as_posix())

    def list(self) -> list[Ticket]:
        """Every ticket, by slug. Where both layouts have a slug, the one under `tickets_dir` counts."""
        tickets: dict[str, Ticket] = {}
        for place in (self.root / self.tickets_dir, self.root / _OLDER_LAYOUT):
            try:
                with os.scandir(place) as entries:
                    for entry in entries:
                        if entry.is_dir() and _is_ticket(entry.path):
                            folder = Path(entry.path)
                            tickets.setdefault(folder.name, Ticket(folder.name, folder, self.root))
            except FileNotFoundError:
                continue
            except OSError as error:
                raise BadInput(f"{place} cannot be listed: {error.strerror}.") from error
        return [tickets[slug] for slug in sorted(tickets)]

    def find(self, reference: str) -> Ticket:
        """The ticket of a slug, a unique prefix of one, or a path inside the project. Raises `BadInput`."""
        reference = reference.strip()
        if not reference:
            raise BadInput("Which ticket?", hint="Name its slug, the start of it, or its folder.")
        if len(reference) > 4096 or re.search("[\0\ud800-\udfff]", reference):
            raise BadInput(f"{short(reference)} cannot be the name of a ticket.")
        tickets = {ticket.slug: ticket for ticket in self.list()}
        if reference in tickets:
            return tickets[reference]
        if ticket := self._at(reference):
            return ticket
        found = [slug for slug in tickets if slug.startswith(reference.lower())]
        if len(found) == 1:
            return tickets[found[0]]
        if found:
            raise BadInput(f"{short(reference)} could be any of: {', '.join(found)}.", hint="Name one in full.")
        import difflib

        word, slugs = reference.lower()[:_NEAR], sorted(tickets)
        near = [slug for slug in slugs if word in slug] or difflib.get_close_matches(word, slugs, n=3, cutoff=0.5)
        hint = "`cdd list` shows the tickets." if tickets else "There are no tickets yet: make one with `cdd new`."
        hint = f"Did you mean {', '.join(near[:3])}?" if near else hint
        raise BadInput(f"There is no ticket {short(reference)}.", hint=hint)

    def create(self, ticket_type: str, name: str) -> Ticket:
        """A new ticket with the template of its type. Raises `BadInput` rather than touch one that is there."""
        from cdd_agent.files.atomic import create_exclusive
        from cdd_agent.tickets.spec import TicketType
        from cdd_agent.tickets.templates import spec_template

        kind = ticket_type.strip().lower()
        if kind not in set(TicketType):
            raise BadInput(
                f"There is no ticket type {short(ticket_type)}.",
                hint=f"Allowed: {', '.join(TicketType)}; and `documentation guide NAME` makes a page.",
            )
        words = kebab(name).removeprefix(f"{kind}-")  # the type is said once
        if words == kind:
            raise BadInput(f"{short(name)} says only the type.", hint=f"Say what it is about, as {kind}-user-auth.")
        slug = f"{kind}-{words}"
        for known in self.list():
            if known.slug == slug:
                raise _there_already(known)
        ticket = Ticket(slug, self.root / self.tickets_dir / slug, self.root)
        try:
            create_exclusive(ticket.spec_path, spec_template(self.root, TicketType(kind)).encode())
        except FileExistsError as error:
            raise _there_already(ticket) from error
        return ticket

    def _at(self, reference: str) -> Ticket | None:
        """The ticket whose folder, or a file in it, is at the path; None if this is no path to a ticket."""
        path = Path(os.path.normpath(self.root / reference))
        real_root = Path(os.path.realpath(self.root))
        inside = path.is_relative_to(os.path.normpath(self.root)) or path.is_relative_to(real_root)
        if not inside or not Path(os.path.realpath(path)).is_relative_to(real_root):
            raise BadInput(
                f"{short(reference)} is outside the project.", hint="Name the ticket's slug, or its folder here."
            )
        folder = path.parent if path.name in {_SPEC, _PLAN, _STATE} else path
        if os.path.realpath(folder) == str(real_root) or not _is_ticket(folder):
            return None
        for known in self.list():  # a run is known by its slug
            if known.slug == folder.name and not known.folder.samefile(folder):
                raise BadInput(
                    f"{short(reference)} has the same slug as {known.shown(known.folder)}.", hint="Rename one."
                )
        return Ticket(folder.name, folder, self.root)

    def owns(self, place: Path) -> bool:
        """Whether a resolved place is a file by which a ticket is known or run: people's and the engine's alone."""
        if place.name.casefold() not in {_SPEC, _PLAN, _STATE}:
            return False
        folders = {ticket.folder.resolve() for ticket in self.list()}
        return place.name.casefold() == _STATE or place.parent in folders


def _is_ticket(folder: Path | str) -> bool:
    # os.path answers False for every path it cannot look at, however odd or long.
    return any(os.path.isfile(f"{folder}/{name}") for name in (_SPEC, _PLAN))  # noqa: PTH113


def _there_already(ticket: Ticket) -> BadInput:
    return BadInput(f"The ticket {ticket.slug} is there already.", hint=f"It is in {ticket.shown(ticket.folder)}.")
