"""The record of a ticket's runs, in `.cdd/runs/<slug>/`: requests, replies, failures,
ledgers of what was changed.

    events.jsonl  report.json  report.md      what happened, and what came of it
    baseline.json  baseline.txt               what the project's check said before the
                                              run changed anything
    state.json                                the state, once more: the ticket's own
                                              file can be rebuilt from it
    planning.json  planning.jsonl  plans/     what the Planner learnt, its log, the
                                              plans that were replaced
    edits/                                    steps' texts that a person edits, by
                                              `agents/step_editing.py`
    choices.json                              the files that a person wants prompts to
                                              show, and to leave out
    going-back.json                           while an undo is under way
    lock  holder.json                         while somebody is at work on the ticket:
                                              who it is
    socrates.json                             the conversation about the spec, kept by
                                              `agents/notebook.py`
    whereabouts.json  travel.git/  arriving/  of a run that travels between copies of
                                              the project
    checkpoints.git/                          what the checkpoints need; outside a
                                              repository also what is in them
    versions/                                 contents of files that steps changed,
                                              before and after
    contents/                                 the same of ignored files; they never
                                              travel
    kept/                                     files that going back has discarded
    side/                                     while steps run side by side: their trees,
                                              see `side_tree.py`
    running-xxxx                              while a command runs: its process, to be
                                              ended after a kill
    check-xxxxxxxx/                           while a check runs, here or below: what it
                                              reports
    step-02/ledger.jsonl                      what the attempts at the step changed, see
                                              `ledger_file.py`
    step-02/attempt-1/
      guidance.md  shown.json  request.md  reply.md  output.txt  tests.json
      before.json  failure.json
      context.json                            the code that was found for it, for the
                                              step's next attempts
      meanwhile.json                          what a person said to it while it was
                                              under way, and the model heard
      dialogue.json                           what was said before the reply, where the
                                              model used tools
      command.json                            the call whose command was started last
      answer-reply.json  answer-4.json        what a person answered about the changes
                                              of the reply, or of a call
      answer-4-0 …                            and what they took of each file, where
                                              that is not what was proposed
      beside.jsonl                            the ledger of the attempt in a side tree
      changes.diff                            what it changed, for people
    earlier-20261122T101500123456/            all of this, of a run that was started
                                              over

A step's folder has the number that it had at first; it stays when steps are renumbered.

The folder of an attempt is `attempt.py`'s. What an attempt replaced stays here also
when it is restored: nothing that was in a file is ever only in memory. `old_records.py`
knows the files of version 0.1.

Texts are kept without secrets, but for what is used again as it is: replies, what files
held, names of tests and paths.
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
from cdd_agent.errors import BadInput
from cdd_agent.files.atomic import (
    ignore_runs,
    remove,
    remove_folder,
    remove_leftovers,
    sync_folder,
)
from cdd_agent.files.hidden_from_models import HiddenFiles
from cdd_agent.files.json_file import JsonFile, set_aside, stamp, write_text
from cdd_agent.files.paths import expect_no_link_out
from cdd_agent.redaction import Redactor
from cdd_agent.tickets.store import Ticket
from cdd_agent.user_key import sign
from cdd_agent.verification.baseline import Baseline
from cdd_agent.verification.checks import remove_abandoned

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
"""Beginnings of the names of what is not set aside with a run."""


class GoingBack(JsonFile, frozen=True):
    """An undo that is under way, or with `again` a redo: after a kill it is brought to
    its end.
    """

    id: str
    """Of the undo, by which it is known whether it was brought to its end."""
    steps: tuple[int, ...]
    """By the numbers of their folders: those stay when steps are renumbered."""
    again: bool = False


class RunRecord(Struct, frozen=True):
    """The folder of a ticket's runs, private to this machine and ignored by git."""

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
        """Make the folder, and see that git ignores it. Returns the folders that are
        new, the innermost first. Raises `BadInput`, also if a link in the record leads
        out of the project.
        """
        expect_no_link_out(self.root, [self.folder, *self._own_places()])
        new = [
            place
            for place in (self.folder, self.folder.parent, self.root / ".cdd")
            if not place.exists()
        ]
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            # it holds what files held, whatever their own permissions
            self.folder.chmod(0o700)
        except OSError as error:
            raise BadInput(
                f"{self.folder} could not be made: {error.strerror or error}",
                hint=(
                    "A run keeps its record there; make the project's folder writable."
                ),
            ) from error
        ignore_runs(self.root)
        return new

    def _own_places(self) -> Iterator[Path]:
        """Yield all that is in the folder, but not what is in the run's trees."""
        for folder, inner, files in os.walk(self.folder):
            yield from (Path(folder, name) for name in (*inner, *files))
            if Path(folder) == self.folder:
                inner[:] = [name for name in inner if name not in ("tree", "side")]

    def discard(self, new: Sequence[Path]) -> None:
        """Remove the folder and the others that `prepare` made, where what it was for
        is refused. What somebody else has begun there meanwhile stays.
        """
        for place in new:
            try:
                if place == self.folder:
                    remove_folder(place)
                    continue
                if [*place.iterdir()] == [ignore := self.root / ".cdd" / ".gitignore"]:
                    ignore.unlink()
                place.rmdir()
            except (BadInput, OSError):
                break

    def tidy(self) -> None:
        """Remove what writes and checks left whose run was killed in the middle. To be
        called by who has the lock.
        """
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

    def attempt(self, step: int, number: int, side: Self | None = None) -> Attempt:
        """An attempt at the step with this folder; `side` is the record of the tree
        that it is made in, if it is not the person's own.
        """
        name = f"attempt-{number}"
        root, doings = (side.root, side.folder / name) if side else (self.root, None)
        return Attempt(
            root, self.folder / f"step-{step:02}" / name, self.redactor, doings
        )

    @property
    def baseline(self) -> Baseline | None:
        return Baseline.load(self._baseline)

    def save_baseline(self, baseline: Baseline, output: str) -> None:
        write_text(self.folder / "baseline.txt", self.redactor.redact(output))
        tests = replace(baseline.tests, texts={}) if baseline.tests else None
        replace(baseline, tests=tests).save(self._baseline)

    def set_baseline_aside(self) -> None:
        """Of a run whose state is gone."""
        if self._baseline.exists():
            set_aside(self._baseline)

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
        """Set aside what there is of a run; where it is now. The lock, the checkpoints'
        store, what Socrates keeps and what is known of its travels stay.
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
                f"{earlier} could not be filled: {error.strerror or error}"
            ) from error
        return earlier

    @property
    def choices(self) -> Choices:
        """The user's choice of files. A hidden file counts as pinned only if the user
        did that here: the file may have come with a clone.
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
