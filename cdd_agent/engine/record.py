"""The record of a ticket's runs, in `.cdd/runs/<slug>/`.

    events.jsonl  report.json  report.md      the log and the report
    strength.jsonl                            results of faults, see `saved_faults.py`
    baseline.json  baseline.txt               the result of the project's check before
                                              the run
    state.json                                a copy of the ticket's state file
    going-back.json                           the undo or redo under way
    choices.json                              files that the user pinned or left out
    lock  holder.json                         the lock, and the process that has it
    running-xxxx                              a running command, ended after a kill
    check-xxxxxxxx/                           the reports of a running check, here or in
                                              a folder below
    checkpoints.git/                          notes of checkpoints; outside a repository
                                              also their contents
    versions/                                 contents of files before and after changes
                                              of steps
    contents/                                 contents of ignored files; not sent
    kept/                                     contents that were discarded by going back
    side/                                     the trees of steps that run side by side,
                                              see `side_tree.py`
    step-02/ledger.jsonl                      the changes of the step's attempts, see
                                              `ledger_file.py`
    step-02/attempt-1/
      guidance.md  request.md  shown.json     guidance of the user, the prompt, and
                                              digests of what it shows
      context.json                            the code found for the step
      reply.md  reply-partial.md              the reply; one that stopped early
      dialogue.json                           all messages of a step with tools
      meanwhile.json                          what the user said while the model worked
      output.txt  output-2.txt                the output of each check
      checks.json  before.json                results of the checks after the step, and
                                              of tests before it
      failure.json                            why the attempt failed
      answer-reply.json  answer-4.json        the user's answer about the changes of the
                                              reply, or of a call
      answer-4-0 …                            the accepted content of each file, if not
                                              the proposed one
      beside.jsonl                            the ledger of the attempt in a side tree
      changes.diff                            the changes, for people
    earlier-20261122T101500123456/            an earlier run, after `--start-over`

`.cdd/runs/.private` has the trees of `private_tree.py`.

Other modules keep more there: plans and the Planner's notes (`agents/plan_desk.py`,
`planning_notes.py`), edited steps (`agents/step_editing.py`), the conversation about
the spec (`agents/spec_notes.py`), the whereabouts and trees of runs (`whereabouts.py`,
`travel`), and what comes from a cluster (`cluster`). docs/reference/records.md lists
them all.

A step's folder has the step's first number; it stays when steps are renumbered. An
attempt's folder belongs to `attempt.py`. What an attempt replaced stays in the record
after it is restored. Files of version 0.1 are read by `old_records.py`.

Secrets are removed from texts, except from texts that are used again: replies, contents
of files, names of tests, and paths.
"""

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.engine.attempt import Attempt
from cdd_agent.engine.choices import Choices
from cdd_agent.engine.log import RunLog
from cdd_agent.engine.private_tree import remove_abandoned_trees
from cdd_agent.errors import BadInput
from cdd_agent.files.atomic import (
    ignore_runs,
    remove,
    remove_folder,
    remove_leftovers,
    sync_folder,
)
from cdd_agent.files.hidden_from_models import HiddenFiles
from cdd_agent.files.json_file import JsonFile, read_text, set_aside, stamp, write_text
from cdd_agent.files.paths import expect_no_link_out
from cdd_agent.files.user_key import sign
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.text.redaction import Redactor
from cdd_agent.tickets.store import Ticket
from cdd_agent.verification.baseline import Baseline
from cdd_agent.verification.check_run import CheckRun, remove_abandoned

_KEPT = (
    "lock",
    "holder",
    "checkpoints",
    "contents",
    "socrates",
    "earlier-",
    "whereabouts",
    "travel",
    "arriving",
    "tree",
    "landing",
    "side",
)
"""Prefixes of names that `start_over` leaves."""


class GoingBack(JsonFile, frozen=True):
    """An undo or, with `again`, a redo under way. After a kill it is finished."""

    id: str
    """The undo's id. The state has it once finished."""
    steps: tuple[int, ...]
    """Folder numbers, which survive renumbering."""
    again: bool = False


class RunRecord(Struct, frozen=True):
    """The folder of a ticket's runs, private to this computer and ignored by git."""

    root: Path
    folder: Path
    redactor: Redactor = field(default_factory=Redactor)

    @classmethod
    def of(cls, root: Path, slug: str, redactor: Redactor) -> Self:
        return cls(root, root / ".cdd" / "runs" / slug, redactor)

    @classmethod
    def of_ticket(cls, ticket: Ticket, redactor: Redactor) -> Self:
        return cls(ticket.root, ticket.record, redactor)

    @property
    def log(self) -> RunLog:
        return RunLog(self.folder / "events.jsonl")

    @property
    def slug(self) -> str:
        return self.folder.name

    def prepare(self) -> Sequence[Path]:
        """Create the folder, ignored by git. Returns new folders, innermost first.
        Raises `BadInput`, also if a link in the record leads outside the project.
        """
        expect_no_link_out(self.root, [self.folder, *self._own_places()])
        new = [
            place
            for place in (self.folder, self.folder.parent, self.root / ".cdd")
            if not place.exists()
        ]
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            # it has files' contents, whatever their permissions
            self.folder.chmod(0o700)
        except OSError as error:
            raise BadInput(
                f"{self.folder} could not be created: {error.strerror or error}",
                hint="A run saves its record there. Make the folder writable.",
                refusal=Refusal.DISK,
            ) from error
        ignore_runs(self.root)
        return new

    def _own_places(self) -> Iterator[Path]:
        """Yield all paths inside, except in the run's trees."""
        for folder, inner, files in os.walk(self.folder):
            yield from (Path(folder, name) for name in (*inner, *files))
            if Path(folder) == self.folder:
                inner[:] = [name for name in inner if name not in ("tree", "side")]

    def discard(self, new: Sequence[Path]) -> None:
        """Delete folders that `prepare` created for a refused run, except other
        processes' files.
        """
        for place in new:
            try:
                if place == self.folder:
                    remove_folder(place)
                    continue
                ignore = self.root / ".cdd" / ".gitignore"
                if [*place.iterdir()] == [ignore]:
                    ignore.unlink()
                place.rmdir()
            except (BadInput, OSError):
                break

    def tidy(self) -> None:
        """Delete leftovers of killed writes and checks. The caller has the lock."""
        folders = (
            self.folder,
            self.folder / "versions",
            self.folder / "contents",
            *self.folder.glob("step-*"),
            *self.folder.glob("step-*/attempt-*"),
            *self.folder.glob("checkpoints.git/notes/step-*/attempt-*"),
        )
        for folder in (self.root / ".cdd", *folders):
            remove_leftovers(folder)
            remove_abandoned(folder)
        remove_abandoned_trees(self.root)

    def attempt(self, step: int, number: int, side: Self | None = None) -> Attempt:
        """Return an attempt by step folder and number. `side` is the record of its side
        tree, if any.
        """
        name = f"attempt-{number}"
        folder = self.folder / f"step-{step:02}" / name
        if side is None:
            return Attempt(self.root, folder, self.redactor)
        return Attempt(side.root, folder, self.redactor, side.folder / name)

    @property
    def baseline(self) -> Baseline | None:
        return Baseline.load(self._baseline)

    def save_baseline(self, baseline: Baseline) -> None:
        """Save the results without their outputs."""
        runs = tuple(
            replace(each, run=each.run.as_saved(self.redactor))
            for each in baseline.runs
        )
        replace(baseline, runs=runs).save(self._baseline)

    def save_baseline_output(self, run: CheckRun) -> None:
        path = self.folder / "baseline.txt"
        earlier = read_text(path) or ""
        output = self.redactor.redact(f"$ {run.command}\n{run.output}")
        write_text(path, "\n".join(filter(None, (earlier, output))))

    def set_baseline_aside(self) -> None:
        """Rename the baseline of a run whose state was deleted."""
        if self._baseline.exists():
            set_aside(self._baseline)
        remove(self.folder / "baseline.txt")

    @property
    def state(self) -> Path:
        return self.folder / "state.json"

    @property
    def going_back(self) -> GoingBack | None:
        return GoingBack.load(self._going_back)

    def save_going_back(self, going_back: GoingBack) -> None:
        going_back.save(self._going_back)

    def settle_going_back(self) -> None:
        remove(self._going_back)

    def start_over(self) -> Path:
        """Move the run's files to a new folder, which is returned. Lock, checkpoints,
        spec conversation and whereabouts stay.
        """
        earlier = self.folder / f"earlier-{stamp()}"
        try:
            earlier.mkdir(parents=True)
            for path in self.folder.iterdir():
                if not path.name.startswith(_KEPT):
                    path.rename(earlier / path.name)
            for folder in (earlier, self.folder):
                sync_folder(folder)
        except OSError as error:
            raise BadInput(
                f"{earlier} could not be written: {error.strerror or error}",
                refusal=Refusal.DISK,
            ) from error
        return earlier

    @property
    def choices(self) -> Choices:
        """The user's choice of files. Hidden files count as pinned only if signed here:
        the file may come with a clone.
        """
        choices = Choices.load(self.folder / "choices.json") or Choices()
        if choices.pinned and (not choices.seal or choices.seal != self._seal(choices)):
            hidden = HiddenFiles(self.root)
            pinned = tuple(path for path in choices.pinned if not hidden.why(path))
            choices = replace(choices, pinned=pinned)
        return replace(choices, seal="")

    def save_choices(self, choices: Choices) -> None:
        choices = replace(choices, seal=self._seal(choices))
        choices.save(self.folder / "choices.json")

    def _seal(self, choices: Choices) -> str:
        return sign(json.dumps([self.slug, *choices.pinned]).encode())

    @property
    def _baseline(self) -> Path:
        return self.folder / "baseline.json"

    @property
    def _going_back(self) -> Path:
        return self.folder / "going-back.json"
