"""The tickets of a project: find them, create them, read their files."""

import difflib
import os
import re
from functools import lru_cache
from pathlib import Path, PurePosixPath

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.errors import BadInput
from cdd_agent.files.atomic import create_exclusive, digest
from cdd_agent.files.regular_files import read_small
from cdd_agent.tickets.plan import ImplementationPlan
from cdd_agent.tickets.plan_reader import read_plan
from cdd_agent.tickets.slugs import shorten, to_kebab
from cdd_agent.tickets.spec import TicketSpec, TicketType
from cdd_agent.tickets.templates import spec_template

_SPEC = "spec.yaml"
_PLAN = "plan.md"
_STATE = "execution-state.json"
_OLDER_LAYOUT = PurePosixPath("specs/tickets")
_TITLE = re.compile(
    r"""^title:[ \t]*(?P<quote>["']?)(?P<title>[^\n]*?)(?P=quote)[ \t\r]*$""",
    re.MULTILINE,
)
_MAX_BYTES = 50_000_000
_MAX_REFERENCE = 4096
_MAX_COMPARED = 100

read_plan_once = lru_cache(maxsize=4)(read_plan)


class Ticket(Struct, frozen=True):
    """The folder of a ticket. Its files are read at each call."""

    slug: str
    folder: Path
    root: Path
    """The project. Messages name files relative to it."""

    @property
    def spec_path(self) -> Path:
        return self.folder / _SPEC

    @property
    def plan_path(self) -> Path:
        return self.folder / _PLAN

    @property
    def state_path(self) -> Path:
        return self.folder / _STATE

    @property
    def record(self) -> Path:
        """The folder of the run's record. It exists once a run was begun."""
        return Path(self.root, ".cdd", "runs", self.slug)

    def shown(self, path: Path) -> str:
        """Return `path` as messages name it."""
        return path.as_posix().removeprefix(f"{self.root.as_posix()}/")

    def refuse_to_write(self, path: Path) -> None:
        """Raise `BadInput` if a file is read-only, or if it is a link out of the
        project.
        """
        if not path.resolve().is_relative_to(self.root.resolve()):
            raise BadInput(
                f"{self.shown(path)} leads outside the project, so it is not written"
            )
        if path.is_file() and not path.stat().st_mode & 0o222:
            raise BadInput(
                f"{self.shown(path)} is read-only, so it is not written",
                hint="Make it writable first.",
            )

    def read_spec(self) -> TicketSpec:
        """Raises `BadInput` if the spec is missing or cannot be read."""
        return self.parse_spec(self.spec_text())

    def spec_text(self) -> str:
        """Return the text of spec.yaml. Raises `BadInput` if it is missing or cannot be
        read.
        """
        return self._read(self.spec_path, hint="Write one, or start with `/new`.")

    def spec_digest(self) -> str | None:
        """Return the digest of spec.yaml; None if it cannot be read."""
        try:
            return digest(self.spec_text().encode())
        except BadInput:
            return None

    def parse_spec(self, text: str) -> TicketSpec:
        """Return the spec that a text for spec.yaml has. Raises `BadInput`."""
        return TicketSpec.from_yaml(text, self.shown(self.spec_path), slug=self.slug)

    def read_plan(self) -> ImplementationPlan:
        """Return the plan, which may have errors. Raises `BadInput` if it is missing or
        cannot be read.
        """
        return self.parse_plan(self._plan_text())

    def parse_plan(self, text: str) -> ImplementationPlan:
        """Return the plan that a text for plan.md has, which may have errors."""
        plan = read_plan_once(text).relative_to(self.root)
        return plan if plan.ticket_slug else replace(plan, ticket_slug=self.slug)

    def plan_digest(self, plan: ImplementationPlan | None = None) -> str | None:
        """Return the digest of plan.md; None if it is missing, or if it is not the file
        of `plan`.
        """
        try:
            text = self._plan_text()
            if plan is not None and self.parse_plan(text) != plan:
                return None
        except BadInput:
            return None
        return digest(text.encode())

    def summary(self) -> str:
        """Return the title and the progress, fast enough to show many tickets while the
        user types.
        """
        progress = "no plan yet"
        if self.state_path.exists():
            progress = "a run was begun"
        elif self.plan_path.exists():
            progress = "planned"
        match = _TITLE.search(read_small(self.spec_path, 2_000))
        title = match["title"] if match else ""
        return f"{title} · {progress}" if title else progress

    def _plan_text(self) -> str:
        hint = (
            f"`/plan {self.slug}` in the shell makes one, and so does"
            f" `cdd plan {self.slug}`."
        )
        text = self._read(self.plan_path, hint=hint)
        if not text.strip():
            raise BadInput(f"{self.shown(self.plan_path)} is empty.", hint=hint)
        return text

    def _read(self, path: Path, *, hint: str) -> str:
        shown = self.shown(path)
        try:
            if path.stat().st_size > _MAX_BYTES:
                raise BadInput(f"{shown} is larger than {_MAX_BYTES} bytes.")
            return path.read_bytes().decode("utf-8-sig")
        except FileNotFoundError as error:
            raise BadInput(
                f"The ticket {self.slug} has no {path.name}.", hint=hint
            ) from error
        except UnicodeDecodeError as error:
            raise BadInput(
                f"{shown} is not UTF-8 text (byte {error.start}).",
                hint="Save it as UTF-8.",
            ) from error
        except OSError as error:
            raise BadInput(f"{shown} cannot be read: {error.strerror}.") from error


class TicketStore:
    """The tickets in `tickets_dir`, and those of the older layout in
    `specs/tickets`.
    """

    def __init__(
        self, root: Path, tickets_dir: PurePosixPath | str = "tickets"
    ) -> None:
        self.root = root
        self.tickets_dir = PurePosixPath(tickets_dir)

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders of tickets, relative to the project."""
        return (self.tickets_dir.as_posix(), _OLDER_LAYOUT.as_posix())

    def list(self) -> list[Ticket]:
        """Return every ticket, by slug. If both layouts have a slug, the ticket in
        `tickets_dir` counts.
        """
        tickets: dict[str, Ticket] = {}
        for place in self.folders:
            folder = self.root / place
            try:
                names = [path.name for path in folder.iterdir()]
            except FileNotFoundError:
                continue
            except OSError as error:
                raise BadInput(
                    f"{folder} cannot be listed: {error.strerror}."
                ) from error
            for name in names:
                if _is_ticket(folder / name):
                    tickets.setdefault(name, Ticket(name, folder / name, self.root))
        return [tickets[slug] for slug in sorted(tickets)]

    def find(self, reference: str) -> Ticket:
        """Return the ticket of a slug, a unique prefix of a slug, or a path in the
        project. Raises `BadInput`.
        """
        reference = _check_reference(reference.strip())
        tickets = {ticket.slug: ticket for ticket in self.list()}
        ticket = tickets.get(reference) or self._at_path(reference)
        if ticket is not None:
            return ticket
        matches = [slug for slug in tickets if slug.startswith(reference.lower())]
        if len(matches) == 1:
            return tickets[matches[0]]
        if matches:
            raise BadInput(
                f"{shorten(reference)} could be any of: {', '.join(matches)}.",
                hint="Name one in full.",
            )
        raise BadInput(
            f"There is no ticket {shorten(reference)}.",
            hint=_suggestion(reference, sorted(tickets)),
        )

    def create(self, ticket_type: str, name: str) -> Ticket:
        """Create a ticket with the template of its type. Raises `BadInput` if it exists
        or has no usable name.
        """
        kind = ticket_type.strip().lower()
        if kind not in set(TicketType):
            raise BadInput(
                f"There is no ticket type {shorten(ticket_type)}.",
                hint=(
                    f"Allowed: {', '.join(TicketType)}; and `documentation guide NAME`"
                    " makes a page."
                ),
            )
        words = to_kebab(name).removeprefix(f"{kind}-")
        if words == kind:
            raise BadInput(
                f"{shorten(name)} says only the type.",
                hint=f"Say what it is about, as {kind}-user-auth.",
            )
        slug = f"{kind}-{words}"
        for existing in self.list():
            if existing.slug == slug:
                raise _already_exists(existing)
        ticket = Ticket(slug, self.root / self.tickets_dir / slug, self.root)
        try:
            create_exclusive(
                ticket.spec_path, spec_template(self.root, TicketType(kind)).encode()
            )
        except FileExistsError as error:
            raise _already_exists(ticket) from error
        return ticket

    def owns(self, path: Path) -> bool:
        """True if a resolved path is a spec, plan or state. Only the user and the
        engine may write these.
        """
        name = path.name.casefold()
        if name == _STATE:
            return True
        return name in {_SPEC, _PLAN} and any(
            path.parent == ticket.folder.resolve() for ticket in self.list()
        )

    def _at_path(self, reference: str) -> Ticket | None:
        """Return the ticket whose folder or file is at a path. Raises `BadInput` for a
        path out of the project.
        """
        path = Path(os.path.normpath(self.root / reference))
        # `os.path` also resolves paths that are too long for `Path.resolve`.
        real_root = Path(os.path.realpath(self.root))
        is_inside = path.is_relative_to(
            os.path.normpath(self.root)
        ) or path.is_relative_to(real_root)
        if not is_inside or not Path(os.path.realpath(path)).is_relative_to(real_root):
            raise BadInput(
                f"{shorten(reference)} is outside the project.",
                hint="Name the ticket's slug, or its folder here.",
            )
        folder = path.parent if path.name in {_SPEC, _PLAN, _STATE} else path
        if os.path.realpath(folder) == str(real_root) or not _is_ticket(folder):
            return None
        for ticket in self.list():
            # Runs are identified by their slug.
            if ticket.slug == folder.name and not ticket.folder.samefile(folder):
                shown = ticket.shown(ticket.folder)
                raise BadInput(
                    f"{shorten(reference)} has the same slug as {shown}.",
                    hint="Rename one.",
                )
        return Ticket(folder.name, folder, self.root)


def _check_reference(reference: str) -> str:
    if not reference:
        raise BadInput(
            "Which ticket?", hint="Name its slug, the start of it, or its folder."
        )
    if len(reference) > _MAX_REFERENCE or re.search("[\0\ud800-\udfff]", reference):
        raise BadInput(f"{shorten(reference)} cannot be the name of a ticket.")
    return reference


def _suggestion(reference: str, slugs: list[str]) -> str:
    if not slugs:
        return "There are no tickets yet: make one with `cdd new`."
    word = reference.lower()[:_MAX_COMPARED]
    similar = [slug for slug in slugs if word in slug] or difflib.get_close_matches(
        word, slugs, n=3, cutoff=0.5
    )
    return (
        f"Did you mean {', '.join(similar[:3])}?"
        if similar
        else "`cdd list` shows the tickets."
    )


def _is_ticket(folder: Path) -> bool:
    # `os.path` returns False for every path that it cannot read, however odd or long.
    return any(os.path.isfile(folder / name) for name in (_SPEC, _PLAN))  # noqa: PTH113


def _already_exists(ticket: Ticket) -> BadInput:
    return BadInput(
        f"The ticket {ticket.slug} is there already.",
        hint=f"It is in {ticket.shown(ticket.folder)}.",
    )
