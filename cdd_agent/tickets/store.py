"""Finds, creates and reads a project's tickets."""

import difflib
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum, auto
from functools import lru_cache
from pathlib import Path, PurePosixPath

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.errors import BadInput
from cdd_agent.files.atomic import create_exclusive, digest
from cdd_agent.files.json_file import from_json
from cdd_agent.files.paths import expect_no_link_out
from cdd_agent.files.regular_files import read_beginning, read_small
from cdd_agent.pattern import Pattern
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.text.completion import find_matches
from cdd_agent.text.sanitize import sanitize_for_display
from cdd_agent.tickets.plan import ImplementationPlan
from cdd_agent.tickets.plan_reader import read_plan
from cdd_agent.tickets.slugs import (
    EnoughOfSlug,
    SeveralTickets,
    comparable,
    shorten,
    to_kebab,
)
from cdd_agent.tickets.spec import TicketSpec, TicketType
from cdd_agent.tickets.templates import spec_template

_SPECS = ("spec.yaml", "spec.yml")
"""New specs get the first name."""
_PLAN = "plan.md"
_STATE = "execution-state.json"
_COPY = "state.json"
"""The copy of the state in the run's record."""
_NAMES = {*_SPECS, _PLAN}
"""A folder with one of these files is a ticket."""
_OLDER_LAYOUT = PurePosixPath("specs/tickets")
_MAX_DEPTH = 3
"""Depth of the search for tickets."""
_MAX_GROUPS = 2_000
"""Most folders to search that are not tickets."""
_TITLE = Pattern(
    r"""^title:[ \t]*(?P<quote>["']?)(?P<title>[^\n]*?)(?P=quote)[ \t\r]*$""",
    re.MULTILINE,
)
# The beginning in every version.
_STATE_BEGINS = Pattern(rb'\s*\{\s*"ticket_slug"\s*:\s*("(?:[^"\\]|\\.)*")')
_MAX_STATE_BEGINNING = 2_000
_MAX_NAME = 255
"""Most bytes in a folder's name."""
_MAX_BYTES = 50_000_000
_MAX_REFERENCE = 4096
_MAX_COMPARED = 100

read_plan_once = lru_cache(maxsize=4)(read_plan)


class StateOrigin(Enum):
    """Whose state is in a ticket's folder, by the state's slug."""

    OWN = auto()
    RENAMED = auto()
    """The ticket's, under its former folder name."""
    COPIED = auto()
    """Another ticket's: the folder is a copy."""
    FOREIGN = auto()
    """No known ticket's, but this one has a run."""


class _BegunStep(Struct, frozen=True):
    title: str | None = None
    started_at: str | None = None


class _BegunSteps(Struct, frozen=True):
    step_executions: dict[str, _BegunStep]


class Ticket(Struct, frozen=True):
    """A ticket's folder. Files are read at each call."""

    slug: str
    """Name of the folder in NFC."""
    folder: Path
    root: Path
    """The project. Messages show paths relative to it."""
    tickets_dir: PurePosixPath = PurePosixPath("tickets")
    """From the settings: where to find other tickets."""
    namesakes: tuple[Path, ...] = ()
    """Other ticket folders of this name."""

    @property
    def spec_path(self) -> Path:
        """Existing or not: spec.yml only if there is no spec.yaml."""
        names = self._spec_names()
        return self.folder / (names[0] if names else _SPECS[0])

    @property
    def plan_path(self) -> Path:
        return self.folder / _PLAN

    @property
    def state_path(self) -> Path:
        return self.folder / _STATE

    @property
    def record(self) -> Path:
        """The folder of the run's record, once a run has begun. A renamed ticket has
        the former name until its next run.
        """
        run_folder = Path(self.root, ".cdd", "runs", self.slug)
        named = self._slug_in_state()
        if named is None or named == self.slug:
            return run_folder
        if self.state_origin(named) in (StateOrigin.OWN, StateOrigin.RENAMED):
            recorded = run_folder.with_name(named)
            if recorded.exists():
                return recorded
        return run_folder

    @property
    def former_slug(self) -> str:
        """The state's slug if the folder was renamed since; else empty."""
        named = self._slug_in_state()
        if named is None or self.state_origin(named) is not StateOrigin.RENAMED:
            return ""
        return named

    def state_origin(self, named: str) -> StateOrigin:
        """Return whose state it is, given its slug."""
        slug = unicodedata.normalize("NFC", named)
        if slug == self.slug:
            return StateOrigin.OWN
        if not (_can_be_folder(slug) and _can_be_folder(named)):
            return StateOrigin.FOREIGN
        for other in TicketStore(self.root, self.tickets_dir).list():
            if other.slug == slug and other.folder != self.folder:
                named_there = other._slug_in_state() or slug
                # The folder of that name may be another renamed ticket's.
                if unicodedata.normalize("NFC", named_there) == slug:
                    return StateOrigin.COPIED
        runs = Path(self.root, ".cdd", "runs")
        if (runs / named).exists():
            return StateOrigin.RENAMED
        if slug_in(runs / self.slug / _COPY) == self.slug:
            return StateOrigin.FOREIGN
        is_copied = self._has_run_of_another_ticket()
        return StateOrigin.COPIED if is_copied else StateOrigin.RENAMED

    def _has_run_of_another_ticket(self) -> bool:
        """True if a ticket whose state has its name began a step of this state: of two
        copies, that one has the run.
        """
        begun = _begun_steps(self.state_path)
        for other in TicketStore(self.root, self.tickets_dir).list():
            has_own_name = other._slug_in_state() == other.slug
            if other.folder == self.folder or not has_own_name:
                continue
            if not begun.isdisjoint(_begun_steps(other.state_path)):
                return True
        return False

    def at(self, root: Path) -> "Ticket":
        """Return the ticket in another tree of the project."""
        folder = root / self.folder.relative_to(self.root)
        return replace(self, root=root, folder=folder, namesakes=())

    def expect_unique(self) -> None:
        """Raise `BadInput` if another folder has this name, which identifies runs."""
        if self.namesakes:
            places = [self.shown(place) for place in (self.folder, *self.namesakes)]
            raise BadInput(
                f"{self.slug} is the name of {len(places)} tickets:"
                f" {', '.join(places)}.",
                hint="Rename all but one: a run is known by the name of its ticket.",
                refusal=Refusal.TICKET_UNUSABLE,
            )

    def find_spec(self) -> Path:
        """Return `spec_path`. Raises `BadInput` for two specs, or a name in wrong
        case.
        """
        exact = self._spec_names()
        if len(exact) > 1:
            raise BadInput(
                f"{self.shown(self.folder)} has both {' and '.join(exact)}.",
                hint="Keep one of them.",
                refusal=Refusal.TICKET_UNUSABLE,
            )
        if exact:
            return self.folder / exact[0]
        for name in sorted(_entries(self.folder)[0]):
            if name.casefold() in _SPECS:
                raise BadInput(
                    f"{self.shown(self.folder)} has no {_SPECS[0]}. Did you mean"
                    f" {name}?",
                    hint=f"Rename it to {name.casefold()}.",
                    refusal=Refusal.TICKET_UNUSABLE,
                )
        return self.folder / _SPECS[0]

    def shown(self, path: Path) -> str:
        """Return the path as messages show it."""
        return path.as_posix().removeprefix(f"{self.root.as_posix()}/")

    def refuse_to_write(self, path: Path) -> None:
        """Raise `BadInput` if the file is read-only or links out of the project."""
        if not path.resolve().is_relative_to(self.root.resolve()):
            raise BadInput(
                f"{self.shown(path)} leads outside the project, so it is not written",
                refusal=Refusal.OUTSIDE_PROJECT,
            )
        if path.is_file() and not path.stat().st_mode & 0o222:
            raise BadInput(
                f"{self.shown(path)} is read-only, so it is not written",
                hint="Make it writable first.",
                refusal=Refusal.DISK,
            )

    def read_spec(self) -> TicketSpec:
        """Raises `BadInput` if the spec is missing or unreadable."""
        return self.parse_spec(self.spec_text())

    def spec_text(self) -> str:
        """Raises `BadInput` if the spec is missing or unreadable."""
        path = self.find_spec()
        hint = (
            f"Write {self.shown(path)}, or type `/socrates {self.slug}` in the shell."
        )
        if not self.plan_path.exists():
            # A ticket has one of them, so the folder was renamed or moved.
            hint = (
                "It has no plan.md either. If you renamed its folder, use the new name:"
                " `cdd list` shows it."
            )
        return self._read(path, hint, Refusal.SPEC_UNUSABLE)

    def spec_digest(self) -> str | None:
        """Return the digest of spec.yaml; None if unreadable."""
        try:
            return digest(self.spec_text().encode())
        except BadInput:
            return None

    def parse_spec(self, text: str) -> TicketSpec:
        """Raises `BadInput`."""
        return TicketSpec.from_yaml(text, self.shown(self.spec_path), slug=self.slug)

    def read_plan(self) -> ImplementationPlan:
        """The plan may have errors. Raises `BadInput` if it is missing or
        unreadable.
        """
        return self.parse_plan(self._plan_text())

    def parse_plan(self, text: str) -> ImplementationPlan:
        plan = read_plan_once(text).relative_to(self.root)
        return plan if plan.ticket_slug else replace(plan, ticket_slug=self.slug)

    def plan_digest(self, plan: ImplementationPlan | None = None) -> str | None:
        """None if plan.md is missing, or is not the file of `plan`."""
        try:
            text = self._plan_text()
            if plan is not None and self.parse_plan(text) != plan:
                return None
        except BadInput:
            return None
        return digest(text.encode())

    def summary(self) -> str:
        """Return title and progress, fast enough to list tickets while the user
        types.
        """
        progress = "no plan yet"
        if self.state_path.exists():
            progress = "a run has begun"
        elif self.plan_path.exists():
            progress = "planned"
        match = _TITLE.search(read_small(self.spec_path, 2_000))
        title = match["title"] if match else ""
        return f"{title} · {progress}" if title else progress

    def _spec_names(self) -> list[str]:
        # `os.path` returns False for unreadable paths. Strings join faster than paths,
        # which counts in long lists.
        folder = str(self.folder)
        return [name for name in _SPECS if os.path.lexists(f"{folder}/{name}")]

    def _slug_in_state(self) -> str | None:
        return slug_in(f"{self.folder}/{_STATE}")

    def _plan_text(self) -> str:
        hint = f"Make a plan: `/plan {self.slug}`."
        text = self._read(self.plan_path, hint, Refusal.NOTHING_TO_PLAN)
        if not text.strip():
            raise BadInput(
                f"{self.shown(self.plan_path)} is empty.",
                hint=hint,
                refusal=Refusal.NOTHING_TO_PLAN,
            )
        return text

    def _read(self, path: Path, hint: str, refusal_if_missing: Refusal) -> str:
        shown = self.shown(path)
        try:
            if path.stat().st_size > _MAX_BYTES:
                raise BadInput(
                    f"{shown} is larger than {_MAX_BYTES} bytes.",
                    refusal=Refusal.UNREADABLE_FILE,
                )
            return path.read_bytes().decode("utf-8-sig")
        except FileNotFoundError as error:
            raise BadInput(
                f"The ticket {self.slug} has no {path.name}.",
                hint=hint,
                refusal=refusal_if_missing,
            ) from error
        except UnicodeDecodeError as error:
            raise BadInput(
                f"{shown} is not UTF-8 text (byte {error.start}).",
                hint="Save it as UTF-8.",
                refusal=Refusal.WRONG_ENCODING,
            ) from error
        except OSError as error:
            raise BadInput(
                f"{shown} cannot be read: {error.strerror}.", refusal=Refusal.DISK
            ) from error


class TicketStore:
    """Tickets in `tickets_dir`, and those of the older layout in `specs/tickets`."""

    def __init__(
        self, root: Path, tickets_dir: PurePosixPath | str = "tickets"
    ) -> None:
        self.root = root
        self.tickets_dir = PurePosixPath(tickets_dir)

    @property
    def folders(self) -> tuple[str, ...]:
        """Ticket folders, relative to the project."""
        return (self.tickets_dir.as_posix(), _OLDER_LAYOUT.as_posix())

    def list(self) -> list[Ticket]:
        """Return all tickets, by slug. Tickets in `tickets_dir` win over the older
        layout.
        """
        tickets: dict[str, Ticket] = {}
        for place in self.folders:
            folders_by_slug: dict[str, list[Path]] = {}
            for folder in self._ticket_folders(place):
                slug = unicodedata.normalize("NFC", folder.name)
                folders_by_slug.setdefault(slug, []).append(folder)
            for slug, folders in folders_by_slug.items():
                if slug not in tickets:
                    tickets[slug] = self._first_of(slug, folders)
        return [tickets[slug] for slug in sorted(tickets)]

    def _first_of(self, slug: str, folders: Sequence[Path]) -> Ticket:
        first, *others = sorted(folders)
        # A link to the same folder is no other ticket.
        real = [one for one in others if not one.samefile(first)]
        return Ticket(slug, first, self.root, self.tickets_dir, tuple(real))

    def find(self, reference: str, enough: EnoughOfSlug = EnoughOfSlug.WHOLE) -> Ticket:
        """Return the ticket that a typed reference means: by slug, path in the project,
        or `enough` of a slug, if only one ticket has that.

        The whole slug wins over a path, a path over a beginning, and that over another
        part. Case and letter composition are ignored. Raises `BadInput`.
        """
        reference = _check_reference(reference.strip())
        tickets = {ticket.slug: ticket for ticket in self.list()}
        ticket = tickets.get(unicodedata.normalize("NFC", reference))
        ticket = ticket or self._at_path(reference)
        if ticket is None:
            ticket = self._like(reference, tickets, enough)
        return self._expect_usable(ticket)

    def find_slug(self, slug: str) -> Ticket:
        """Return the ticket of a recorded slug, never a similar one. Raises
        `BadInput`.
        """
        for ticket in self.list():
            if ticket.slug == slug:
                return self._expect_usable(ticket)
        raise self._no_ticket(slug)

    def _expect_usable(self, ticket: Ticket) -> Ticket:
        ticket.expect_unique()
        places = (ticket.folder, ticket.spec_path, ticket.plan_path, ticket.state_path)
        expect_no_link_out(self.root, (*self._groups_above(ticket), *places))
        return ticket

    def _groups_above(self, ticket: Ticket) -> Iterator[Path]:
        """Yield the folders between the root and the ticket."""
        for folder in ticket.folder.parents:
            if folder == self.root:
                return
            yield folder

    def find_once_called(self, slug: str) -> Ticket | None:
        """Return the ticket that has or had this slug."""
        tickets = self.list()
        for ticket in tickets:
            if ticket.slug == slug:
                return ticket
        for ticket in tickets:
            if ticket.former_slug == slug:
                return ticket
        return None

    def _like(
        self, reference: str, tickets: dict[str, Ticket], enough: EnoughOfSlug
    ) -> Ticket:
        """Return the only ticket whose slug is spelled alike or has `enough` of the
        reference. Raises `BadInput`.
        """
        typed = comparable(reference)
        spelled = [slug for slug in tickets if comparable(slug) == typed]
        matches = spelled or _find_parts(typed, tickets, enough)
        if len(matches) == 1:
            return tickets[matches[0]]
        if matches:
            raise SeveralTickets(reference, matches)
        raise self._no_ticket(reference)

    def _no_ticket(self, reference: str) -> BadInput:
        tickets = self.list()
        hint = _suggestion(reference, [ticket.slug for ticket in tickets])
        for ticket in tickets:
            if comparable(ticket.former_slug) == comparable(reference):
                hint = f"It was renamed to {ticket.slug}."
        return BadInput(
            f"There is no ticket {shorten(reference)}.",
            hint=hint,
            refusal=Refusal.TICKET_UNUSABLE,
        )

    def new_ticket(self, slug: str) -> Ticket:
        """The folder need not exist."""
        return self._ticket(self.root / self.tickets_dir / slug)

    def _ticket(self, folder: Path) -> Ticket:
        return self._first_of(unicodedata.normalize("NFC", folder.name), [folder])

    def _ticket_folders(self, place: str) -> Iterator[Path]:
        """Yield a layout's ticket folders, also in groups, but not inside tickets."""
        top = self.root / place
        depth = _MAX_DEPTH
        # If the root itself has the tickets, only its top level is searched.
        if PurePosixPath(place) == PurePosixPath():
            depth = 1
        try:
            names = [path.name for path in top.iterdir()]
        except FileNotFoundError:
            return
        except OSError as error:
            raise BadInput(
                f"{top} cannot be listed: {error.strerror}.", refusal=Refusal.DISK
            ) from error
        groups = [(top, names, 1)]
        looked_into = 0
        while groups:
            folder, names, level = groups.pop()
            for name in names:
                below = folder / name
                if _is_ticket(below):
                    yield below
                    continue
                if name.startswith(".") or looked_into >= _MAX_GROUPS:
                    continue
                looked_into += 1
                files, folders = _entries(below)
                if any(file.casefold() in _NAMES for file in files):
                    # Reading it raises an error that names the file.
                    yield below
                elif level < depth:
                    groups.append((below, folders, level + 1))

    def create(self, ticket_type: str, name: str, slug: str = "") -> Ticket:
        """Create a ticket from its type's template, titled by the name. The folder is
        named by `slug`, else by the name. Raises `BadInput` if it exists or the name is
        unusable.
        """
        kind = ticket_type.strip().lower()
        if kind not in set(TicketType):
            raise BadInput(
                f"There is no ticket type {shorten(ticket_type)}.",
                hint=(
                    f"Allowed: {', '.join(TicketType)}, and `documentation guide NAME`"
                    " for a page."
                ),
                refusal=Refusal.TICKET_UNUSABLE,
            )
        words = to_kebab(slug or name).removeprefix(f"{kind}-")
        if words == kind:
            raise BadInput(
                f"{shorten(slug or name)} is only a type.",
                hint=f"Add what it is about, such as {kind}-user-auth.",
                refusal=Refusal.TICKET_UNUSABLE,
            )
        ticket = self.new_ticket(f"{kind}-{words}")
        for existing in self.list():
            if comparable(existing.slug) == comparable(ticket.slug):
                raise _already_exists(existing)
        text = spec_template(self.root, TicketType(kind), _title_of(name, words))
        try:
            create_exclusive(ticket.spec_path, text.encode())
        except FileExistsError as error:
            raise _already_exists(ticket) from error
        return ticket

    def owns(self, path: Path) -> bool:
        """True for a spec, plan or state. Only the user and the engine may write
        these.
        """
        name = path.name.casefold()
        if name == _STATE:
            return True
        return name in _NAMES and any(
            path.parent == ticket.folder.resolve() for ticket in self.list()
        )

    def _at_path(self, reference: str) -> Ticket | None:
        """Return the ticket whose folder or file is at the path. Raises `BadInput` for
        a path outside the project.
        """
        path = Path(os.path.normpath(self.root / reference))
        # `os.path` also handles paths too long for `Path.resolve`.
        real_root = Path(os.path.realpath(self.root))
        is_inside = path.is_relative_to(
            os.path.normpath(self.root)
        ) or path.is_relative_to(real_root)
        if not is_inside or not Path(os.path.realpath(path)).is_relative_to(real_root):
            raise BadInput(
                f"{shorten(reference)} is outside the project.",
                hint="Name the ticket's slug, or its folder here.",
                refusal=Refusal.OUTSIDE_PROJECT,
            )
        is_file = path.name.casefold() in {*_NAMES, _STATE}
        folder = path.parent if is_file else path
        if os.path.realpath(folder) == str(real_root):
            return None
        tickets = self.list()
        for ticket in tickets:
            for place in (ticket.folder, *ticket.namesakes):
                if os.path.realpath(place) == os.path.realpath(folder):
                    return ticket
        if not _is_ticket(folder):
            return None
        for ticket in tickets:
            # Slugs identify runs.
            if ticket.slug == unicodedata.normalize("NFC", folder.name):
                shown = ticket.shown(ticket.folder)
                raise BadInput(
                    f"{shorten(reference)} has the same slug as {shown}.",
                    hint="Rename one.",
                    refusal=Refusal.TICKET_UNUSABLE,
                )
        return self._ticket(folder)


def _find_parts(
    typed: str, slugs: Iterable[str], enough: EnoughOfSlug
) -> Sequence[str]:
    """Return the slugs that begin with a text, or else contain it."""
    if enough is EnoughOfSlug.WHOLE:
        return ()
    matching = find_matches(typed, slugs)
    if matching.starting or enough is EnoughOfSlug.PART:
        return matching.certain
    return [slug for slug in matching.containing if _has_words(typed, slug)]


def _has_words(words: str, slug: str) -> bool:
    return f"-{words}-" in f"-{comparable(slug)}-"


def _check_reference(reference: str) -> str:
    if not reference:
        raise BadInput(
            "Which ticket?",
            hint="Type its slug or the path of its folder.",
            refusal=Refusal.TICKET_UNUSABLE,
        )
    if len(reference) > _MAX_REFERENCE or re.search("[\0\ud800-\udfff]", reference):
        raise BadInput(
            f"{shorten(reference)} cannot be the name of a ticket.",
            refusal=Refusal.TICKET_UNUSABLE,
        )
    return reference


def _suggestion(reference: str, slugs: list[str]) -> str:
    if not slugs:
        return "There are no tickets yet. Create one: `cdd new feature NAME`."
    word = reference.lower()[:_MAX_COMPARED]
    similar = find_matches(word, slugs).best
    similar = similar or difflib.get_close_matches(word, slugs, n=3, cutoff=0.5)
    if not similar:
        return "List the tickets: `cdd list`."
    return f"Did you mean {', '.join(similar[:3])}?"


def _is_ticket(folder: Path) -> bool:
    # `os.path` returns False for unreadable paths, however long.
    return any(os.path.isfile(folder / name) for name in (*_SPECS, _PLAN))  # noqa: PTH113


def slug_in(state: Path | str) -> str | None:
    """Return the slug in a state; None if unreadable or missing."""
    try:
        text = read_beginning(str(state), _MAX_STATE_BEGINNING)
        match = _STATE_BEGINS.match(text)
        if match is not None:
            return from_json(match[1], str)
        # Another tool may order keys differently.
        content = from_json(Path(state).read_bytes(), dict[str, object])
    except (OSError, ValueError):
        return None
    named = content.get("ticket_slug")
    return named if isinstance(named, str) else None


def _begun_steps(state: Path) -> set[tuple[str | None, str]]:
    try:
        steps = from_json(state.read_bytes(), _BegunSteps).step_executions.values()
    except (OSError, ValueError):
        return set()
    return {(step.title, step.started_at) for step in steps if step.started_at}


def _can_be_folder(name: str) -> bool:
    """True for a possible name of a ticket's folder."""
    if not name or name.startswith(".") or re.search(r"[/\\\0\ud800-\udfff]", name):
        return False
    return len(name.encode()) <= _MAX_NAME


def _entries(folder: Path) -> tuple[list[str], list[str]]:
    """Return names of files and folders, without links; none if unreadable."""
    files = []
    folders = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.name)
                elif entry.is_file(follow_symlinks=False):
                    files.append(entry.name)
    except OSError:
        return [], []
    return files, folders


def _title_of(name: str, slug: str) -> str:
    """Return the title of a new ticket. A name typed as a slug becomes words."""
    title = sanitize_for_display(" ".join(name.split()))
    if re.fullmatch(r"[\w-]+", title) and to_kebab(title).endswith(slug):
        return slug.replace("-", " ").capitalize()
    return title


def _already_exists(ticket: Ticket) -> BadInput:
    return BadInput(
        f"The ticket {ticket.slug} already exists.",
        hint=f"It is in {ticket.shown(ticket.folder)}.",
        refusal=Refusal.TICKET_UNUSABLE,
    )
