"""The record of an attempt at a step: request, reply, and failure.

The step's ledger has its changes (`ledger.py`).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.changes.change_set import ChangeSet
from cdd_agent.engine.approval import KeptAnswers
from cdd_agent.engine.ledger_file import LedgerEntry, LedgerFile
from cdd_agent.files.atomic import remove, write_atomic
from cdd_agent.files.json_file import (
    Damaged,
    JsonFile,
    as_json,
    read_text,
    set_aside,
    write_text,
)
from cdd_agent.files.line_ranges import Ranges
from cdd_agent.git.checkpoint import CONTENTS
from cdd_agent.git.content_store import ContentStore
from cdd_agent.llm.port import Message, PromptShare
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.text.redaction import Redactor
from cdd_agent.tickets.status import Evidence, Verification
from cdd_agent.verification.check_run import CheckRun
from cdd_agent.verification.outcomes import Reference, Result, SuiteRun, merge_runs

VERSIONS = "versions"
"""The folder in a run's record for contents before and after steps."""


class Shown(JsonFile, frozen=True):
    """Parts of a prompt: digests of the step with guidance, and of each file (None:
    absent).

    A reply applies only to what the model was shown.
    """

    step: str
    files: dict[str, str | None]
    in_part: dict[str, Ranges] = field(default_factory=dict)
    """Shown lines of files that are shown in part."""
    changed: dict[str, str | None] = field(default_factory=dict)
    """Digests of other files before tools changed them. A dialogue continues only if
    they are unchanged.
    """

    read: dict[str, str | None] = field(default_factory=dict)
    """Digests of other files that tools read in a side tree. They count as shown."""
    criteria: tuple[str, ...] | None = None
    """Digests of the criteria that the step serves. None in older files."""

    @property
    def all_files(self) -> dict[str, str | None]:
        return {**self.read, **self.changed, **self.files}


class RankedContext(JsonFile, frozen=True):
    """Possibly relevant code in a step's first prompt, repeated in later ones."""

    step: str
    """Identifies the step without guidance, and the user's choice of files."""
    text: str = ""
    files: dict[str, str | None] = field(default_factory=dict)
    in_part: dict[str, Ranges] = field(default_factory=dict)
    """As in `Shown`."""
    shares: tuple[PromptShare, ...] = ()


class AttemptFailure(JsonFile, frozen=True):
    """Why an attempt failed, and which files the next prompt must show."""

    detail: str
    unseen: frozenset[str] = frozenset()
    lines: dict[str, Ranges] = field(default_factory=dict)
    """The relevant lines of these files, if not all are relevant."""


class AttemptOutcome(Struct, frozen=True):
    """The end of an attempt. If it failed, `verification` is None and `detail` is the
    text for the model.
    """

    changes: ChangeSet
    verification: Verification | None
    reason: str = ""
    """Why it failed, or why its verification is not stronger."""
    detail: str = ""
    unseen: frozenset[str] = frozenset()
    lines: Mapping[str, Ranges] = field(default_factory=dict)
    """The relevant lines of unseen files, if not all are relevant."""
    insufficient: Verification | None = None
    """The verification, if it failed because the run requires more."""
    evidence: Evidence | None = None
    """None if no check ran."""
    refusal: Refusal | None = None
    is_by_person: bool = False
    """True if the user refused the changes with a reason. The model is asked again, and
    the attempt does not count.
    """

    @property
    def failure(self) -> AttemptFailure:
        return AttemptFailure(
            detail=self.detail, unseen=self.unseen, lines=dict(self.lines)
        )


class _Checks(JsonFile, frozen=True, omit_defaults=True):
    runs: tuple[CheckRun, ...]


class _Tests(JsonFile, frozen=True, omit_defaults=True):
    """The format of version 0.1."""

    tests: SuiteRun
    more: tuple[SuiteRun, ...] = ()
    """Runs of further checks that report tests."""


class _Before(JsonFile, frozen=True):
    otherwise: dict[str, Result | None]


class _Meanwhile(JsonFile, frozen=True):
    words: tuple[str, ...]


class _Dialogue(JsonFile, frozen=True):
    messages: tuple[Message, ...]
    seconds: float = 0.0


def _output_name(place: int) -> str:
    """Return the file name of a check's output. `place` counts from 0."""
    return f"output-{place + 1}.txt" if place else "output.txt"


class Attempt(Struct, frozen=True):
    """An attempt's folder. Unsaved values are None."""

    root: Path
    folder: Path
    redactor: Redactor = field(default_factory=Redactor)
    side: Path | None = None
    """The folder for checkpoints, if the attempt runs in a side tree."""

    @property
    def doings(self) -> Path:
        """The folder for checkpoints and diffs of files in `root`."""
        return self.side or self.folder

    @property
    def number(self) -> int:
        """From 1, among the attempts at the step."""
        return int(self.folder.name.rpartition("-")[2])

    @property
    def is_over(self) -> bool:
        """True if the attempt failed. Otherwise, unless the state says it is completed,
        it continues from its saved reply.
        """
        return self.failure is not None

    @property
    def ledger(self) -> LedgerFile:
        """The step's ledger, or a separate one in a side tree."""
        if self.side is not None:
            return self.ledger_beside
        return LedgerFile(self.folder.parent / "ledger.jsonl")

    @property
    def entries(self) -> tuple[LedgerEntry, ...]:
        """The attempt's entries. Raises `Damaged`."""
        return tuple(
            entry for entry in self.ledger.entries() if entry.attempt == self.number
        )

    @property
    def all_entries(self) -> tuple[LedgerEntry, ...]:
        """All entries by time, including those of the side tree."""
        if self.side is not None:
            return self.entries
        entries = (*self.ledger_beside.entries(), *self.entries)
        return tuple(sorted(entries, key=lambda entry: entry.at))

    @property
    def ledger_beside(self) -> LedgerFile:
        """Changes in a side tree, which are repeated in the user's tree."""
        return LedgerFile(self.folder / "beside.jsonl")

    @property
    def versions(self) -> ContentStore:
        """Contents before and after the run's steps."""
        return ContentStore(self.folder.parent.parent / VERSIONS)

    @property
    def private(self) -> ContentStore:
        """Contents of ignored files. They never leave this computer."""
        return ContentStore(self.folder.parent.parent / CONTENTS)

    @property
    def kept(self) -> Path:
        """The folder for contents that an undo discards."""
        return self.folder.parent.parent / "kept"

    @property
    def answers(self) -> KeptAnswers:
        return KeptAnswers(self.folder)

    def begin(self, guidance: str) -> None:
        """Start an attempt, or restart one that was killed right after its start. A
        record of a run whose state was deleted is renamed.

        Saves the guidance that the prompt shows.
        """
        if self.folder.exists() and any(
            path.name != "guidance.md" for path in self.folder.iterdir()
        ):
            set_aside(self.folder)
        entries = self.ledger.entries()
        earlier = [entry for entry in entries if entry.attempt < self.number]
        if len(earlier) < len(entries):
            set_aside(self.ledger.path)
            for entry in earlier:
                self.ledger.append(entry)
        if guidance:
            self._write("guidance.md", self.redactor.redact(guidance))
        else:
            remove(self.folder / "guidance.md")

    def add_words(self, text: str) -> str:
        """Save a message sent while the model works. Returns it without secrets, as the
        model receives it.
        """
        text = self.redactor.redact(text)
        file = self.folder / "meanwhile.json"
        saved = _Meanwhile.load(file)
        earlier = saved.words if saved else ()
        _Meanwhile(words=(*earlier, text)).save(file)
        return text

    @property
    def all_guidance(self) -> str:
        """The prompt's guidance and later messages."""
        saved = _Meanwhile.load(self.folder / "meanwhile.json")
        words = saved.words if saved else ()
        return "\n\n".join(filter(None, (self.guidance, *words)))

    def save_request(self, prompt: str, shown: Shown) -> None:
        self.save_shown(shown)
        self._write("request.md", self.redactor.redact(prompt))

    def save_shown(self, shown: Shown) -> None:
        shown.save(self.folder / "shown.json")

    def save_context(self, context: RankedContext) -> None:
        context.save(self.folder / "context.json")

    def save_reply(self, text: str) -> None:
        """Save the reply unchanged, because it is applied from here."""
        self._write("reply.md", text)

    def save_partial(self, text: str) -> None:
        """Save a reply that stopped early, for the user. It is never applied."""
        self._write("reply-partial.md", self.redactor.redact(text))

    def save_dialogue(self, messages: Sequence[Message], seconds: float) -> None:
        """Save all messages so far, unchanged because the dialogue continues from them,
        and the seconds that they took.
        """
        write_atomic(
            self.folder / "dialogue.json", as_json(_Dialogue(tuple(messages), seconds))
        )

    def drop_dialogue(self) -> None:
        """Rename the unusable dialogue and its results."""
        for name in ("dialogue.json", "reply.md", "beside.jsonl"):
            if (self.folder / name).exists():
                set_aside(self.folder / name)

    def save_outputs(self, outputs: Sequence[str]) -> None:
        """Save the checks' outputs, and delete those of an interrupted run."""
        for place, text in enumerate(outputs):
            self._write(_output_name(place), self.redactor.redact(text))
        place = len(outputs)
        while (self.folder / _output_name(place)).exists():
            remove(self.folder / _output_name(place))
            place += 1

    def save_checks(self, runs: Sequence[CheckRun], reference: Reference) -> None:
        """Save each check's result, and the earlier results of tests that differ.
        Failure texts are in the outputs.
        """
        saved = tuple(run.as_saved(self.redactor) for run in runs)
        _Checks(runs=saved).save(self.folder / "checks.json")
        tests = [run.tests for run in runs if run.tests is not None]
        if tests:
            otherwise = reference.otherwise(merge_runs(tests))
            _Before(otherwise=otherwise).save(self.folder / "before.json")

    def save_diff(self, text: str) -> None:
        write_text(self.doings / "changes.diff", self.redactor.redact(text))

    def save_failure(self, failure: AttemptFailure) -> None:
        presentable = replace(failure, detail=self.redactor.redact(failure.detail))
        write_atomic(self.folder / "failure.json", as_json(presentable))

    def forget_failure(self) -> None:
        """Delete the failure: the attempt continues from the same reply."""
        remove(self.folder / "failure.json")

    @property
    def guidance(self) -> str:
        return self._read("guidance.md") or ""

    @property
    def reply(self) -> str | None:
        return self._read("reply.md")

    @property
    def dialogue(self) -> tuple[Message, ...]:
        """Empty if the model used no tools."""
        saved = _Dialogue.load(self.folder / "dialogue.json")
        return saved.messages if saved else ()

    @property
    def dialogue_seconds(self) -> float:
        """Time spent in the saved rounds."""
        saved = _Dialogue.load(self.folder / "dialogue.json")
        return saved.seconds if saved else 0.0

    @property
    def said(self) -> str:
        """The model's texts and tool calls, for the next prompt."""
        parts: list[str] = []
        for message in self.dialogue:
            if message.role == "assistant":
                parts += [
                    message.content,
                    *(f"→ {call.name} {call.arguments}" for call in message.tool_calls),
                ]
        return "\n\n".join(filter(None, (*parts, self.reply)))

    @property
    def shown(self) -> Shown | None:
        return Shown.load(self.folder / "shown.json")

    @property
    def context(self) -> RankedContext | None:
        try:
            return RankedContext.load(self.folder / "context.json")
        except Damaged:
            # search the code again
            return None

    def output(self, place: int) -> str:
        """`place` counts from 0. Empty if the check did not run."""
        return self._read(_output_name(place)) or ""

    @property
    def outputs(self) -> str:
        texts: list[str] = []
        while True:
            text = self._read(_output_name(len(texts)))
            if not text:
                return "\n".join(texts)
            texts.append(text)

    @property
    def check_runs(self) -> tuple[CheckRun, ...]:
        """Empty in older records."""
        saved = _Checks.load(self.folder / "checks.json")
        return saved.runs if saved else ()

    @property
    def runs(self) -> tuple[SuiteRun, ...]:
        """Test results of each check that reports them."""
        tests = [run.tests for run in self.check_runs if run.tests is not None]
        if tests:
            return tuple(tests)
        saved = _Tests.load(self.folder / "tests.json")
        return (saved.tests, *saved.more) if saved else ()

    @property
    def tests(self) -> SuiteRun | None:
        """Combined test results; None if no check reports them."""
        runs = self.runs
        return merge_runs(runs) if runs else None

    @property
    def tests_before(self) -> dict[str, Result | None] | None:
        """Earlier results of tests whose result changed. None in older records."""
        saved = _Before.load(self.folder / "before.json")
        return saved.otherwise if saved else None

    @property
    def failure(self) -> AttemptFailure | None:
        return AttemptFailure.load(self.folder / "failure.json")

    def _write(self, name: str, text: str) -> None:
        write_text(self.folder / name, text)

    def _read(self, name: str) -> str | None:
        return read_text(self.folder / name)
