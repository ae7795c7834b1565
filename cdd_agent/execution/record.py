"""What a run leaves in `.cdd/runs/<slug>/`: requests, replies, failures, and the journal of what was written.

    events.jsonl  report.json  report.md      what happened, and what came of it
    baseline.json  baseline.txt               what the project's check said before the run changed anything
    state.json                                the state, once more: the ticket's own file can be rebuilt from it
    planning.json  planning.jsonl  plans/     what the Planner learnt, its log, the plans it replaced
    going-back.json                           while an undo is under way
    lock  holder.json                         while somebody is at work on the ticket: who it is
    socrates.json                             the conversation about the spec, kept by `agents/notebook.py`
    checkpoints.git/                          what the checkpoints need; outside a repository also what is in them
    check-xxxxxxxx/                           while a check runs, here or below: what it reports
    step-02/attempt-1/
      guidance.md  shown.json  request.md  reply.md  output.txt  tests.json  failure.json
      dialogue.json                           what was said before the reply, where the model used tools
      changes.json  before-0  before-1 …      the files the attempt wrote, as they were before it
      call-4.json  call-4-0 …                 and what a command, by a tool's call, made of some of them
      span.json  changes.diff                 the checkpoints before and after it, and what differs
    earlier-20261122T101500123456/            all of this, of a run that was started over

The journal is written before the files are, so that an attempt can be put back after a kill at any moment. What an
attempt replaced stays here also when it is put back: nothing that was in a file is ever only in memory.

Texts are kept without secrets, but for what is used again as it is: replies, what files held, names of tests and paths.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from cdd_agent.actions.changes import ChangeSet, permissions
from cdd_agent.actions.edits import ReplyRefused
from cdd_agent.errors import BadInput
from cdd_agent.execution.checks import remove_abandoned
from cdd_agent.execution.outcomes import SuiteRun
from cdd_agent.execution.run_log import RunLog
from cdd_agent.llm.port import Message
from cdd_agent.workspace.checkpoints import Checkpoint
from cdd_agent.workspace.files import ignore_runs, read_bytes, remove, remove_leftovers, write_atomic
from cdd_agent.workspace.redaction import Redactor
from cdd_agent.workspace.taking_back import (
    Change,
    Contents,
    Entry,
    Piece,
    TakenBack,
    held,
    is_there,
    put_back,
)

_OF_CALL = re.compile(r"call-([0-9]+)(?:-[0-9]+|\.json)")


class _Saved(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


_AnySaved = TypeVar("_AnySaved", bound=_Saved)


class Shown(_Saved):
    """What a prompt was made of: the step's own text and guidance as a digest, and each file's (None: no such file).

    A reply is applied only to the step and the files that the model was shown.
    """

    step: str
    files: dict[str, str | None]


class Failure(_Saved):
    """Why a reply was no good, and which files the next attempt has to be shown."""

    detail: str
    unseen: frozenset[str] = frozenset()


class Baseline(_Saved):
    """What the project's own check said before a run changed anything."""

    step: int
    """The step that it was taken before: the first, unless the run is older than its baseline."""
    command: str | None = None
    """None: there was nothing to run."""
    return_code: int | None = None
    """None: it did not come to its end."""
    seconds: float = 0.0
    problem: str = ""
    """Why its outcome cannot be used, as a clause."""
    tests: SuiteRun | None = None
    already: tuple[tuple[int, int], ...] = ()
    """Steps, with the number of their attempt, whose work was there already."""

    @property
    def is_empty(self) -> bool:
        """Tests were looked for, and there are none."""
        return self.tests is not None and not self.tests.results


class Stretch(_Saved):
    """What an attempt did without an interruption, between two checkpoints."""

    before: Checkpoint
    after: Checkpoint
    own: tuple[str, ...] = ()
    """Files that are no part of it, because the journal put them back, or kept them as somebody else's."""


class Span(_Saved):
    """The checkpoints around what an attempt did."""

    before: Checkpoint
    after: Checkpoint | None = None
    """None while it is under way, and for one that was interrupted."""
    seen: Checkpoint | None = None
    """The last look while it is under way: after a command."""
    earlier: tuple[Stretch, ...] = ()
    """What it did before it was interrupted, and went on."""
    closed: Checkpoint | None = None
    """After it was put back for good: its step was skipped."""
    paths: tuple[str, ...] = ()
    """The files that its reply writes: part of the checkpoints also where git ignores them."""

    @property
    def stretches(self) -> tuple[Stretch, ...]:
        """What it did, as far as that was seen."""
        return (*self.earlier, Stretch(before=self.before, after=self.after)) if self.after else self.interrupted

    @property
    def interrupted(self) -> tuple[Stretch, ...]:
        """The same, if it is interrupted here and put back."""
        last = self.after or self.seen
        return (*self.earlier, Stretch(before=self.before, after=last, own=self.paths)) if last else self.earlier


class GoingBack(_Saved):
    """An undo that is under way, or with `again` a redo: after a kill it is brought to its end."""

    id: str
    """Of the undo, by which it is known whether it was brought to its end."""
    steps: tuple[int, ...]
    """In the order in which they were over."""
    again: bool = False


class _Tests(_Saved):
    tests: SuiteRun


class _Dialogue(_Saved):
    messages: tuple[Message, ...]
    seconds: float = 0.0


class _Copy(_Saved):
    name: str
    permissions: int


class _Made(_Saved):
    files: dict[str, _Copy | None]
    """By path; None for a file that is gone."""


class _Journal(_Saved):
    files: tuple[Change, ...]
    """What was written, in that order; the content before the N-th is in `before-N`.

    A file that was written more than once is there more than once, each time with what it was before the first.
    """

    @field_validator("files")
    @classmethod
    def _are_inside(cls, files: tuple[Change, ...]) -> tuple[Change, ...]:
        for path in (PurePosixPath(change.path) for change in files):
            if path.is_absolute() or ".." in path.parts:
                raise ValueError(f"{path} is not in the project")
        return files


@dataclass(frozen=True)
class Made:
    """A file as a command left it."""

    content: bytes
    permissions: int


def is_file_or_free(place: Path) -> bool:
    """Whether what a command left in a file's place can be told: no link, pipe or the like, and readable."""
    if place.is_symlink():
        return False
    return not place.exists() or place.is_dir() or (place.is_file() and os.access(place, os.R_OK))


def made_at(place: Path) -> Made | None:
    """What is there now; None for no file."""
    content = read_bytes(place) if place.is_file() else None
    return None if content is None else Made(content, permissions(place))


@dataclass(frozen=True)
class Attempt:
    """One attempt's files. What was not saved is None."""

    root: Path
    folder: Path
    redactor: Redactor = field(default_factory=Redactor)

    def begin(self, guidance: str) -> None:
        """Start afresh. A record that is there already belongs to a run whose state is gone: it is set aside. One that
        was only just begun when its process was killed is begun again.

        The guidance that a prompt shows, and that identifies it, is the one that is kept.
        """
        if self.folder.exists() and any(path.name != "guidance.md" for path in self.folder.iterdir()):
            set_aside(self.folder)
        self._write("guidance.md", self.redactor.redact(guidance))

    def save_request(self, prompt: str, shown: Shown) -> None:
        self.save_shown(shown)
        self._write("request.md", self.redactor.redact(prompt))

    def save_shown(self, shown: Shown) -> None:
        self._write("shown.json", shown.model_dump_json(indent=1))

    def save_reply(self, text: str) -> None:
        """Word for word: it is what gets applied."""
        self._write("reply.md", text)

    def save_partial(self, text: str) -> None:
        """A reply that stopped early: kept to be looked at, never to be applied."""
        self._write("reply-partial.md", self.redactor.redact(text))

    def save_dialogue(self, messages: Sequence[Message], seconds: float) -> None:
        """All that was said so far, with the request: word for word, as it is what goes on; and what it took."""
        self._write("dialogue.json", as_json(_Dialogue(messages=tuple(messages), seconds=seconds)))

    def drop_dialogue(self) -> None:
        """It cannot go on, and neither can what it led to; both are kept to be looked at."""
        for name in ("dialogue.json", "reply.md"):
            if (self.folder / name).exists():
                set_aside(self.folder / name)

    def save_output(self, text: str) -> None:
        self._write("output.txt", self.redactor.redact(text))

    def save_tests(self, tests: SuiteRun) -> None:
        """What the check saw of each test; the words of failures are in its output."""
        self._write("tests.json", _Tests(tests=replace(tests, texts={})).model_dump_json(indent=1))

    def save_span(self, span: Span) -> None:
        self._write("span.json", span.model_dump_json(indent=1))

    def save_diff(self, text: str) -> None:
        self._write("changes.diff", self.redactor.redact(text))

    def save_failure(self, failure: Failure) -> None:
        presentable = failure.model_copy(update={"detail": self.redactor.redact(failure.detail)})
        self._write("failure.json", as_json(presentable))

    @property
    def guidance(self) -> str:
        return self._read("guidance.md") or ""

    @property
    def reply(self) -> str | None:
        return self._read("reply.md")

    @property
    def dialogue(self) -> tuple[Message, ...]:
        """Empty where the model used no tools."""
        saved = self._load("dialogue.json", _Dialogue)
        return saved.messages if saved else ()

    @property
    def dialogue_seconds(self) -> float:
        """How long the saved rounds took."""
        saved = self._load("dialogue.json", _Dialogue)
        return saved.seconds if saved else 0.0

    @property
    def said(self) -> str:
        """What the model said, and which tools it called, for the next one to learn from."""
        parts: list[str] = []
        for message in self.dialogue:
            if message.role == "assistant":
                parts += [message.content, *(f"→ {call.name} {call.arguments}" for call in message.tool_calls)]
        return "\n\n".join(filter(None, (*parts, self.reply)))

    @property
    def shown(self) -> Shown | None:
        return self._load("shown.json", Shown)

    @property
    def tests(self) -> SuiteRun | None:
        saved = self._load("tests.json", _Tests)
        return saved.tests if saved else None

    @property
    def span(self) -> Span | None:
        return self._load("span.json", Span)

    @property
    def failure(self) -> Failure | None:
        return self._load("failure.json", Failure)

    @contextmanager
    def journalled(self, changes: ChangeSet) -> Iterator[None]:
        """Write down what is about to be written, with the content that it replaces. A refusal, after which nothing of
        it was written, is forgotten again."""
        known = self._journal
        firsts = {change.path: change.before for change in reversed(known)}
        entries = list(known)
        for change in changes.changes:
            place, path = self.root / change.path, str(change.path)
            before = firsts.get(path) if path in firsts else self._keep_before(len(entries), place, change.before)
            like = permissions(self.root / (change.like or change.path))
            after = None if change.after is None else held(change.after, like)
            entries.append(Change(path, before, after))
        self._save_journal(entries)
        try:
            yield
        except ReplyRefused:
            self._save_journal(known)
            raise

    def changed_since(self) -> frozenset[PurePosixPath]:
        """Files that are no longer as the attempt left them, whoever it was."""
        left = {change.path: change.after for change in self._journal}
        return frozenset(PurePosixPath(path) for path in left if not is_there(self.root, path, left[path]))

    def journal_command(self, call: int, made: Mapping[PurePosixPath, Made | None]) -> None:
        """The command that a tool's call ran made something else of files that the attempt wrote: that is the attempt's
        doing, too. It is kept, to be done again."""
        copies: dict[str, _Copy | None] = {}
        for index, (path, file) in enumerate(made.items()):
            copies[str(path)] = _Copy(name=f"call-{call}-{index}", permissions=file.permissions) if file else None
            if file is not None:
                write_atomic(self.folder / f"call-{call}-{index}", file.content)
        self._write(f"call-{call}.json", _Made(files=copies).model_dump_json(indent=1))
        self.journal_made(made)

    def journal_made(self, made: Mapping[PurePosixPath, Made | None]) -> None:
        """Write down what a command made, or will have made, of files that the attempt wrote."""
        entries = list(self._journal)
        firsts = {change.path: change.before for change in reversed(entries)}
        for path, file in made.items():
            after = None if file is None else held(file.content, file.permissions)
            entries.append(Change(str(path), firsts[str(path)], after))
        self._save_journal(entries)

    def forget_commands(self, since: int) -> None:
        """What commands made from this call on, in a round that was interrupted: other calls have their numbers now. It
        is kept to be looked at."""
        for path in self.folder.glob("call-*"):
            found = _OF_CALL.fullmatch(path.name)
            if found and int(found[1]) >= since:
                set_aside(path)

    def made_by_command(self, call: int) -> dict[PurePosixPath, Made | None]:
        """What the command of a call made of the attempt's files, as it was kept."""
        saved = self._load(f"call-{call}.json", _Made)
        copies = saved.files.items() if saved else ()
        return {PurePosixPath(path): self._made(copy) if copy else None for path, copy in copies}

    def _made(self, copy: _Copy) -> Made:
        content = read_bytes(self.folder / copy.name)
        if content is None:
            raise BadInput(f"{self.folder / copy.name} is gone: what a command of the step made of a file")
        return Made(content, copy.permissions)

    def put_back(self, *, forget: bool = True) -> TakenBack:
        """Undo what the journal says was written; harmless when repeated, or when nothing was written.

        Only a file that still holds what the attempt wrote is put back: anybody's later edit stays. Where the journal
        is not forgotten, the same is found when it is repeated.
        """
        journal = self._journal
        if not journal:
            return TakenBack()
        last: dict[str, Change] = {}
        for change in journal:  # a kill may have come before the last of them was written
            if change.path not in last or is_there(self.root, change.path, change.after):
                last[change.path] = change
        back = put_back(self.root, tuple(last.values()), self._contents_before(journal))
        if forget:
            self.forget_journal()
        return back

    def forget_journal(self) -> None:
        """What was written is put back."""
        remove(self.folder / "changes.json")

    @property
    def _journal(self) -> tuple[Change, ...]:
        saved = self._load("changes.json", _Journal)
        return saved.files if saved else ()

    def _save_journal(self, entries: Sequence[Change]) -> None:
        self._write("changes.json", _Journal(files=tuple(entries)).model_dump_json(indent=1))

    def _keep_before(self, number: int, place: Path, content: bytes | None) -> Entry | None:
        if content is None:
            return None
        write_atomic(self.folder / f"before-{number}", content)
        return held(content, permissions(place))

    def _contents_before(self, journal: Sequence[Change]) -> Contents:
        places: dict[str, Piece] = {}
        for index, change in enumerate(journal):
            if change.before is None or change.path in {earlier.path for earlier in journal[:index]}:
                continue
            path = self.folder / f"before-{index}"
            content = read_bytes(path)
            if content is None or held(content, 0).content != change.before.content:
                raise BadInput(
                    f"{path} no longer holds what {change.path} was before the step",
                    hint=f"Put {change.path} in order by hand, then remove {self.folder / 'changes.json'}.",
                )
            places[change.before.content] = Piece(path, 0, len(content))
        return Contents(places)

    def _write(self, name: str, text: str) -> None:
        write_atomic(self.folder / name, text.encode("utf-8", errors="replace"))

    def _read(self, name: str) -> str | None:
        return _read(self.folder / name)

    def _load(self, name: str, kind: type[_AnySaved]) -> _AnySaved | None:
        return _load(self.folder / name, kind)


@dataclass(frozen=True)
class RunRecord:
    """The folder of a ticket's runs, private to this machine and ignored by git."""

    root: Path
    folder: Path
    redactor: Redactor = field(default_factory=Redactor)

    @classmethod
    def of(cls, root: Path, slug: str, redactor: Redactor) -> "RunRecord":
        return cls(root, root / ".cdd" / "runs" / slug, redactor)

    @property
    def log(self) -> RunLog:
        return RunLog(self.folder / "events.jsonl")

    @property
    def slug(self) -> str:
        return self.folder.name

    def prepare(self) -> None:
        """Make the folder, and see that git ignores it."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.folder.chmod(0o700)  # it holds what files held, whatever their own permissions
        except OSError as error:
            raise BadInput(
                f"{self.folder} could not be made: {error.strerror or error}",
                hint="A run keeps its record there; make the project's folder writable.",
            ) from error
        ignore_runs(self.root)

    def tidy(self) -> None:
        """Remove what writes and checks left whose run was killed in the middle. To be called by who has the lock."""
        folders = (self.folder, *self.folder.glob("step-*"), *self.folder.glob("step-*/attempt-*"))
        for folder in (self.root / ".cdd", *folders):
            remove_leftovers(folder)
            remove_abandoned(folder)

    @property
    def baseline(self) -> Baseline | None:
        return _load(self._baseline, Baseline)

    def save_baseline(self, baseline: Baseline, output: str) -> None:
        write_atomic(self.folder / "baseline.txt", self.redactor.redact(output).encode("utf-8", errors="replace"))
        tests = replace(baseline.tests, texts={}) if baseline.tests else None
        saved = baseline.model_copy(update={"tests": tests})
        write_atomic(self._baseline, saved.model_dump_json(indent=1).encode("utf-8", errors="replace"))

    @property
    def state(self) -> Path:
        return self.folder / "state.json"

    @property
    def going_back(self) -> GoingBack | None:
        return _load(self._going_back, GoingBack)

    def save_going_back(self, going_back: GoingBack) -> None:
        write_atomic(self._going_back, going_back.model_dump_json(indent=1).encode())

    def settle_going_back(self) -> None:
        remove(self._going_back)

    @property
    def _going_back(self) -> Path:
        return self.folder / "going-back.json"

    def start_over(self) -> Path:
        """Set aside what there is of a run; where it is now. The lock, the checkpoints' store and what Socrates keeps
        stay."""
        earlier = self.folder / f"earlier-{stamp()}"
        try:
            earlier.mkdir(parents=True)
            for path in self.folder.iterdir():
                if not path.name.startswith(("lock", "holder", "checkpoints", "socrates", "earlier-")):
                    path.rename(earlier / path.name)
        except OSError as error:
            raise BadInput(f"{earlier} could not be filled: {error.strerror or error}") from error
        return earlier

    def set_baseline_aside(self) -> None:
        """Of a run whose state is gone."""
        if self._baseline.exists():
            set_aside(self._baseline)

    @property
    def _baseline(self) -> Path:
        return self.folder / "baseline.json"

    def attempt(self, step: int, number: int) -> Attempt:
        return Attempt(self.root, self.folder / f"step-{step:02}" / f"attempt-{number}", self.redactor)


def _read(path: Path) -> str | None:
    data = read_bytes(path)
    return None if data is None else data.decode("utf-8", errors="replace")


def _load(path: Path, kind: type[_AnySaved]) -> _AnySaved | None:
    text = _read(path)
    if text is None:
        return None
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        raise BadInput(
            f"{path} is damaged: {error.errors()[0]['msg']}",
            hint="It is a run's own record. Look at it, and move it away to go on.",
        ) from error


def as_json(saved: BaseModel) -> str:
    """Texts from models and tools as JSON, also those with half of a character, which pydantic's own writer refuses."""
    return json.dumps(saved.model_dump(mode="json"), ensure_ascii=False, indent=1)


def aside_of(path: Path) -> Path:
    """A name beside a path that nothing has yet."""
    return path.with_name(f"{path.stem}.aside-{stamp()}{path.suffix}")


def set_aside(path: Path) -> Path:
    """Rename a file or folder that must neither be used nor lost. Returns where it is now."""
    aside = aside_of(path)
    try:
        path.rename(aside)
    except OSError as error:
        raise BadInput(f"{path} could not be set aside: {error.strerror or error}") from error
    return aside


def stamp() -> str:
    """The present moment as a name that sorts by time."""
    return datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
