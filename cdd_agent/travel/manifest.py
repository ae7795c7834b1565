"""The content of the commit in which a run travels.

run.json                     the `Manifest`
lease.json                   the holder, see `lease.py`; absent after a push
ticket/                      spec.yaml (or .yml)  plan.md  execution-state.json
record/                      events.jsonl  report.json  state.json …
                             step-01/ledger.jsonl  versions/…
                             step-01/attempt-1/reply.md …
checkpoints/step-01/…        the files of each, see `git/checkpoint.py`
project/                     the project's current files
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from cdd_agent.engine.old_records import OLD_FILES
from cdd_agent.files.json_file import JsonFile, Moment
from cdd_agent.git.checkpoint import FORM, Checkpoint
from cdd_agent.pattern import Pattern
from cdd_agent.version import VERSION

MANIFEST = "run.json"
LEASE = "lease.json"
LARGEST_MANIFEST = 20_000_000
LARGEST_LEASE = 10_000
VERSION_OF_FORM = 2
EMPTY_TREE = {
    40: "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    64: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
"""Git's ids of an empty tree, by the length of an id. No commit can contain it."""
EMPTY_TREES = frozenset(EMPTY_TREE.values())
TICKET_TEXTS = ("spec.yaml", "spec.yml", "plan.md")
TICKET_FILES = (*TICKET_TEXTS, "execution-state.json")
RECORD_FILES = (
    "events.jsonl",
    "report.json",
    "report.md",
    "state.json",
    "baseline.json",
    "baseline.txt",
    "going-back.json",
)
LEDGER = Pattern(r"step-[0-9]{2,}/(ledger|attempt-[0-9]+/beside)\.jsonl")
_ATTEMPT = Pattern(r"step-[0-9]{2,}/attempt-[0-9]+")
_ATTEMPT_FILE = Pattern(
    r"(guidance|request|reply|reply-partial)\.md|(meanwhile|shown|dialogue|command|tests"
    r"|failure)\.json|output(-[0-9]+)?\.txt|changes\.diff"
)
_VERSION_FILE = Pattern(r"versions/[0-9a-f]{40}")
PROJECT = "travel/project"
"""The checkpoint of the files that are sent."""


class Manifest(JsonFile, frozen=True, kw_only=True):
    """The table of contents of the commit."""

    version: int = VERSION_OF_FORM
    made_by: Annotated[str, Meta(max_length=100)] = VERSION
    slug: Annotated[str, Meta(max_length=200)]
    host: Annotated[str, Meta(max_length=255)]
    pushed: Moment
    head: Annotated[str, Meta(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})\Z")] | None = None
    """The project's commit."""
    checkpoints: dict[str, str]
    """The ids of the trees, by name."""
    project: str
    """The id of the tree."""
    notes: tuple[Checkpoint, ...] = ()
    """The checkpoints, without those in the format of version 0.1."""
    left_out: tuple[str, ...] = ()
    """Files of the project and the record that were not sent."""
    stayed: tuple[str, ...] = ()
    """Files whose contents before or after a step were not sent."""

    @property
    def project_checkpoint(self) -> Checkpoint:
        if self.version == 1:
            return Checkpoint(PROJECT, self.project)
        return Checkpoint(PROJECT, self.project, FORM, unseen=self.left_out)

    @property
    def references(self) -> dict[str, str]:
        """The trees that need a reference, by name. Git always has the empty tree."""
        return {
            name: tree
            for name, tree in self.checkpoints.items()
            if tree not in EMPTY_TREES
        }

    def list_checkpoints(self) -> dict[str, Checkpoint]:
        """Return all checkpoints by name. Raises `ValueError` for an invalid id."""
        checkpoints = dict[str, Checkpoint]()
        for name, tree in self.checkpoints.items():
            checkpoints[name] = Checkpoint(name, tree)
        for one in self.notes:
            checkpoints[one.name] = one
        return checkpoints


def is_attempt_file(name: str) -> bool:
    """True for the name of an attempt's file that is sent."""
    folder, _, file = name.rpartition("/")
    return bool(_ATTEMPT.fullmatch(folder) and _ATTEMPT_FILE.fullmatch(file))


def is_step_file(name: str) -> bool:
    """True for the name of a step's file that may arrive, also from version 0.1."""
    if LEDGER.fullmatch(name) or is_attempt_file(name):
        return True
    folder, _, file = name.rpartition("/")
    return bool(_ATTEMPT.fullmatch(folder) and OLD_FILES.fullmatch(file))


def is_run_file(path: str) -> bool:
    """True for a path in the commit that may arrive, outside the trees."""
    if path in (MANIFEST, LEASE):
        return True
    top, _, name = path.partition("/")
    if top == "ticket":
        return name in TICKET_FILES
    if top != "record":
        return False
    if name in RECORD_FILES or _VERSION_FILE.fullmatch(name):
        return True
    return is_step_file(name)
