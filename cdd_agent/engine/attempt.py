"""The record of one attempt at a step: what the model was asked, what it said, and why
that was no good.

What it changed is in the ledger of its step (`ledger.py`).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.edits.changes import ChangeSet
from cdd_agent.edits.excerpts import Ranges
from cdd_agent.engine.approval import KeptAnswers
from cdd_agent.engine.ledger_file import Entry, LedgerFile
from cdd_agent.files.atomic import remove, write_atomic
from cdd_agent.files.json_file import (
    Damaged,
    JsonFile,
    as_json,
    read_text,
    set_aside,
    write_text,
)
from cdd_agent.git.checkpoint import CONTENTS
from cdd_agent.git.content_store import ContentStore
from cdd_agent.llm.port import Message, PromptShare
from cdd_agent.redaction import Redactor
from cdd_agent.tickets.status import Evidence, Verification
from cdd_agent.verification.outcomes import Reference, Result, SuiteRun, merge_runs

VERSIONS = "versions"
"""The folder of the contents of files, before and after steps, in a run's record."""


class Shown(JsonFile, frozen=True):
    """The parts of a prompt: the step's own text and guidance as a digest, and each
    file's (None: no such file).

    A reply is applied only to the step and the files that the model was shown.
    """

    step: str
    files: dict[str, str | None]
    in_part: dict[str, Ranges] = field(default_factory=dict)
    """The lines that were shown of those of which no others were."""
    changed: dict[str, str | None] = field(default_factory=dict)
    """The same of what tools have changed besides, as it was before: a dialogue goes on
    only where that is there.
    """

    read: dict[str, str | None] = field(default_factory=dict)
    """The same of what else tools have read of it in a tree beside the person's: it
    counts as shown.
    """
    criteria: tuple[str, ...] | None = None
    """The digests of the acceptance criteria that the step serves. None in older
    files.
    """

    @property
    def all_files(self) -> dict[str, str | None]:
        return {**self.read, **self.changed, **self.files}


class RankedContext(JsonFile, frozen=True):
    """The code that a step's first prompt shows because it may be about it: later ones
    show the very same.
    """

    step: str
    """Identifies the step, without guidance, and the files that a person has pinned and
    left out.
    """
    text: str = ""
    files: dict[str, str | None] = field(default_factory=dict)
    in_part: dict[str, Ranges] = field(default_factory=dict)
    """As in `Shown`."""
    shares: tuple[PromptShare, ...] = ()


class AttemptFailure(JsonFile, frozen=True):
    """Why a reply was no good, and which files the next attempt has to be shown."""

    detail: str
    unseen: frozenset[str] = frozenset()
    lines: dict[str, Ranges] = field(default_factory=dict)
    """The lines that matter of those of them of which not all do."""


class AttemptOutcome(Struct, frozen=True):
    """How an attempt ended. `verification` is None when it failed; `detail` is then
    what the model should see.
    """

    changes: ChangeSet
    verification: Verification | None
    reason: str = ""
    """Why it is no better than that."""
    detail: str = ""
    unseen: frozenset[str] = frozenset()
    lines: Mapping[str, Ranges] = field(default_factory=dict)
    """Of files that are unseen those lines that matter, where not all do."""
    insufficient: Verification | None = None
    """How it was verified, where it failed because that is not enough for the run."""
    evidence: Evidence | None = None
    """None where no check was made."""
    is_by_person: bool = False
    """A person has refused the changes, and said why: the model is asked again, however
    many attempts it had.
    """

    @property
    def failure(self) -> AttemptFailure:
        """For the next attempt."""
        return AttemptFailure(
            detail=self.detail, unseen=self.unseen, lines=dict(self.lines)
        )


class _Tests(JsonFile, frozen=True, omit_defaults=True):
    tests: SuiteRun
    more: tuple[SuiteRun, ...] = ()
    """The runs of the step's other checks, if several report their tests."""


class _Before(JsonFile, frozen=True):
    otherwise: dict[str, Result | None]


class _Meanwhile(JsonFile, frozen=True):
    words: tuple[str, ...]


class _Dialogue(JsonFile, frozen=True):
    messages: tuple[Message, ...]
    seconds: float = 0.0


def _output_name(place: int) -> str:
    """Return the file name of the output of the check at this place, from 0."""
    return f"output-{place + 1}.txt" if place else "output.txt"


class Attempt(Struct, frozen=True):
    """One attempt's folder. What was not saved is None."""

    root: Path
    folder: Path
    redactor: Redactor = field(default_factory=Redactor)
    side: Path | None = None
    """Where it is kept what the attempt does to files, while it is made in a tree
    beside the person's.
    """

    @property
    def doings(self) -> Path:
        """The folder of what it does to the files of its `root`."""
        return self.side or self.folder

    @property
    def number(self) -> int:
        """Its number among the attempts at its step, from 1."""
        return int(self.folder.name.rpartition("-")[2])

    @property
    def is_over(self) -> bool:
        """True if it failed: the next reply is another attempt. An attempt that is
        neither over nor completed in the state continues from its saved reply.
        """
        return self.failure is not None

    @property
    def ledger(self) -> LedgerFile:
        """What it changes is entered here: in the ledger of the step, or, in a tree
        beside the person's, in one of its own.
        """
        if self.side is not None:
            return self.ledger_beside
        return LedgerFile(self.folder.parent / "ledger.jsonl")

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Its entries in the ledger. Raises `Damaged`."""
        return tuple(
            entry for entry in self.ledger.entries() if entry.attempt == self.number
        )

    @property
    def all_entries(self) -> tuple[Entry, ...]:
        """The same, with those of a tree beside the person's, in the order of time."""
        if self.side is not None:
            return self.entries
        entries = (*self.ledger_beside.entries(), *self.entries)
        return tuple(sorted(entries, key=lambda entry: entry.at))

    @property
    def ledger_beside(self) -> LedgerFile:
        """What it changed in a tree beside the person's, to be done again in theirs."""
        return LedgerFile(self.folder / "beside.jsonl")

    @property
    def versions(self) -> ContentStore:
        """The contents of files that steps of this run changed, before and after."""
        return ContentStore(self.folder.parent.parent / VERSIONS)

    @property
    def private(self) -> ContentStore:
        """The same of files that git ignores. They never leave this computer."""
        return ContentStore(self.folder.parent.parent / CONTENTS)

    @property
    def kept(self) -> Path:
        """The folder for what an undo discards."""
        return self.folder.parent.parent / "kept"

    @property
    def answers(self) -> KeptAnswers:
        return KeptAnswers(self.folder)

    def begin(self, guidance: str) -> None:
        """Start afresh. A record that is there already belongs to a run whose state is
        gone: it is set aside. One that was only just begun when its process was killed
        is begun again.

        The guidance that a prompt shows, and that identifies it, is the one that is
        kept.
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
        """Keep words that a person has said while the model was at it; as they are
        kept, the model gets them.
        """
        text = self.redactor.redact(text)
        saved = _Meanwhile.load(self.folder / "meanwhile.json")
        _Meanwhile(words=(*(saved.words if saved else ()), text)).save(
            self.folder / "meanwhile.json"
        )
        return text

    @property
    def all_guidance(self) -> str:
        """That of its prompt, and what was said since."""
        saved = _Meanwhile.load(self.folder / "meanwhile.json")
        return "\n\n".join(
            filter(None, (self.guidance, *(saved.words if saved else ())))
        )

    def save_request(self, prompt: str, shown: Shown) -> None:
        self.save_shown(shown)
        self._write("request.md", self.redactor.redact(prompt))

    def save_shown(self, shown: Shown) -> None:
        shown.save(self.folder / "shown.json")

    def save_context(self, context: RankedContext) -> None:
        context.save(self.folder / "context.json")

    def save_reply(self, text: str) -> None:
        """Word for word: it is what gets applied."""
        self._write("reply.md", text)

    def save_partial(self, text: str) -> None:
        """A reply that stopped early: kept to be looked at, never to be applied."""
        self._write("reply-partial.md", self.redactor.redact(text))

    def save_dialogue(self, messages: Sequence[Message], seconds: float) -> None:
        """All that was said so far, with the request: word for word, as it is what goes
        on; and what it took.
        """
        write_atomic(
            self.folder / "dialogue.json", as_json(_Dialogue(tuple(messages), seconds))
        )

    def drop_dialogue(self) -> None:
        """It cannot go on, and neither can what it led to; both are kept to be looked
        at.
        """
        for name in ("dialogue.json", "reply.md", "beside.jsonl"):
            if (self.folder / name).exists():
                set_aside(self.folder / name)

    def save_outputs(self, outputs: Sequence[str]) -> None:
        """Save the output of each check that ran, and remove those of an interrupted
        run.
        """
        for place, text in enumerate(outputs):
            self._write(_output_name(place), self.redactor.redact(text))
        place = len(outputs)
        while (self.folder / _output_name(place)).exists():
            remove(self.folder / _output_name(place))
            place += 1

    def save_tests(self, runs: Sequence[SuiteRun], known: Reference) -> None:
        """Save the result of each test, and the earlier results that differ. The texts
        of failures are in the outputs.
        """
        first, *more = (replace(run, texts={}) for run in runs)
        _Tests(tests=first, more=tuple(more)).save(self.folder / "tests.json")
        otherwise = known.otherwise(merge_runs(runs))
        _Before(otherwise=otherwise).save(self.folder / "before.json")

    def save_diff(self, text: str) -> None:
        write_text(self.doings / "changes.diff", self.redactor.redact(text))

    def save_failure(self, failure: AttemptFailure) -> None:
        presentable = replace(failure, detail=self.redactor.redact(failure.detail))
        write_atomic(self.folder / "failure.json", as_json(presentable))

    def forget_failure(self) -> None:
        """It goes on from the same reply."""
        remove(self.folder / "failure.json")

    @property
    def guidance(self) -> str:
        return self._read("guidance.md") or ""

    @property
    def reply(self) -> str | None:
        return self._read("reply.md")

    @property
    def dialogue(self) -> tuple[Message, ...]:
        """Empty where the model used no tools."""
        saved = _Dialogue.load(self.folder / "dialogue.json")
        return saved.messages if saved else ()

    @property
    def dialogue_seconds(self) -> float:
        """How long the saved rounds took."""
        saved = _Dialogue.load(self.folder / "dialogue.json")
        return saved.seconds if saved else 0.0

    @property
    def said(self) -> str:
        """The model's words, and which tools it called, for the next one to learn
        from.
        """
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
        except Damaged:  # it is found once more
            return None

    def output(self, place: int) -> str:
        """Return the output of the check at this place, from 0; empty if it did not
        run.
        """
        return self._read(_output_name(place)) or ""

    @property
    def outputs(self) -> str:
        """The outputs of all checks as one text."""
        texts: list[str] = []
        while text := self._read(_output_name(len(texts))):
            texts.append(text)
        return "\n".join(texts)

    @property
    def runs(self) -> tuple[SuiteRun, ...]:
        """The tests of each check that reports them."""
        saved = _Tests.load(self.folder / "tests.json")
        return (saved.tests, *saved.more) if saved else ()

    @property
    def tests(self) -> SuiteRun | None:
        """The tests of all checks together; None if no check reports them."""
        runs = self.runs
        return merge_runs(runs) if runs else None

    @property
    def tests_before(self) -> dict[str, Result | None] | None:
        """Of those that its check saw, the ones that were not the same before the step;
        not in older records.
        """
        saved = _Before.load(self.folder / "before.json")
        return saved.otherwise if saved else None

    @property
    def failure(self) -> AttemptFailure | None:
        return AttemptFailure.load(self.folder / "failure.json")

    def _write(self, name: str, text: str) -> None:
        write_text(self.folder / name, text)

    def _read(self, name: str) -> str | None:
        return read_text(self.folder / name)
