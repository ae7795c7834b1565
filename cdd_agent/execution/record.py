"""What a run leaves in `.cdd/runs/<slug>/`: requests, replies, failures, and the journal of what each step wrote.

    step-02/
      attempt-1/  guidance.md  seen.json  request.md  reply.md  output.txt  failure.json
      changes.json  before-0  before-1 …      the files the step wrote, as they were before it

The journal is written before the files are, so that a step can be put back after a kill at any moment.
"""

import contextlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdd_agent.actions.changes import ChangeSet
from cdd_agent.errors import BadInput
from cdd_agent.workspace.files import digest, ignore_runs, read_bytes, write_atomic


@dataclass(frozen=True)
class PutBack:
    """What became of a step's files: `restored` are as before the step, `kept` were edited since and left alone."""

    restored: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()


@dataclass(frozen=True)
class Attempt:
    """One attempt's files. Texts are None until they are saved."""

    folder: Path

    def save_guidance(self, text: str) -> None:
        self._write("guidance.md", text)

    def save_request(self, prompt: str, seen: dict[str, str | None]) -> None:
        """The digests go with the prompt: a reply is applied only to what the model was shown."""
        self._write("seen.json", json.dumps(seen, indent=1))
        self._write("request.md", prompt)

    def save_reply(self, text: str) -> None:
        self._write("reply.md", text)

    def save_partial(self, text: str) -> None:
        """A reply that stopped early: kept to be looked at, never to be applied."""
        self._write("reply-partial.md", text)

    def save_failure(self, detail: str, unseen: frozenset[str]) -> None:
        """Why the reply was no good, and which files the next attempt has to be shown."""
        self._write("failure.json", json.dumps({"detail": detail, "unseen": sorted(unseen)}, indent=1))

    def save_output(self, text: str) -> None:
        self._write("output.txt", text)

    @property
    def guidance(self) -> str:
        return self._read("guidance.md") or ""

    @property
    def reply(self) -> str | None:
        return self._read("reply.md")

    @property
    def failure(self) -> tuple[str, frozenset[str]] | None:
        """What `save_failure` saved."""
        text = self._read("failure.json")
        if text is None:
            return None
        content = _parsed(self.folder / "failure.json", text)
        return str(content.get("detail", "")), frozenset(map(str, content.get("unseen", ())))

    @property
    def seen(self) -> dict[str, str | None]:
        return dict(_parsed(self.folder / "seen.json", self._read("seen.json") or "{}"))

    def _write(self, name: str, text: str) -> None:
        write_atomic(self.folder / name, text.encode("utf-8", errors="replace"))

    def _read(self, name: str) -> str | None:
        data = read_bytes(self.folder / name)
        return None if data is None else data.decode("utf-8", errors="replace")


@dataclass(frozen=True)
class StepRecord:
    """The record of one step, and its journal."""

    root: Path
    folder: Path

    def attempt(self, number: int) -> Attempt:
        return Attempt(self.folder / f"attempt-{number}")

    @property
    def _journal(self) -> Path:
        return self.folder / "changes.json"

    def begin(self, changes: ChangeSet) -> None:
        """Journal what is about to be written, with the content that it replaces."""
        files = []
        for index, change in enumerate(changes.changes):
            if change.before is not None:
                write_atomic(self.folder / f"before-{index}", change.before)
            files.append(
                {
                    "path": str(change.path),
                    "before": digest(change.before),
                    "after": digest(change.after),
                    "new_folders": _missing_folders(self.root, self.root / change.path),
                }
            )
        write_atomic(self._journal, json.dumps({"files": files}, indent=1).encode())

    def put_back(self) -> PutBack:
        """Undo what the journal says was written; harmless when repeated, or when nothing was written.

        Only a file that still holds what the step wrote is put back: anybody's later edit stays.
        """
        data = read_bytes(self._journal)
        if data is None:
            return PutBack()
        restored, kept = [], []
        for index, entry in enumerate(_parsed(self._journal, data.decode("utf-8", errors="replace"))["files"]):
            path = self.root / entry["path"]
            now = digest(read_bytes(path))
            if now == entry["after"]:
                self._restore(path, index, entry)
                restored.append(entry["path"])
            elif now != entry["before"]:
                kept.append(entry["path"])
        self._journal.unlink(missing_ok=True)
        return PutBack(tuple(restored), tuple(kept))

    def _restore(self, path: Path, index: int, entry: dict[str, Any]) -> None:
        before = None if entry["before"] is None else read_bytes(self.folder / f"before-{index}")
        if digest(before) != entry["before"]:
            raise BadInput(
                f"{self.folder / f'before-{index}'} no longer holds what {entry['path']} was before the step",
                hint=f"Put {entry['path']} in order by hand, then remove {self._journal}.",
            )
        if before is not None:
            write_atomic(path, before)
            return
        path.unlink(missing_ok=True)
        for folder in entry["new_folders"]:
            with contextlib.suppress(OSError):  # somebody has put something of their own there
                (self.root / folder).rmdir()


@dataclass(frozen=True)
class RunRecord:
    """The folder of a ticket's runs, private to this machine and ignored by git."""

    root: Path
    folder: Path

    @classmethod
    def of(cls, root: Path, slug: str) -> "RunRecord":
        return cls(root, root / ".cdd" / "runs" / slug)

    def prepare(self) -> None:
        """Make the folder, and see that git ignores it."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(
                f"{self.folder} could not be made: {error.strerror or error}",
                hint="A run keeps its record there; make the project's folder writable.",
            ) from error
        ignore_runs(self.root)

    def step(self, number: int) -> StepRecord:
        return StepRecord(self.root, self.folder / f"step-{number:02}")

    def forget_step(self, number: int) -> None:
        """Start a step's record anew, when the step itself starts anew."""
        folder = self.folder / f"step-{number:02}"
        try:
            if folder.exists():
                shutil.rmtree(folder)
        except OSError as error:
            raise BadInput(f"{folder} could not be removed: {error.strerror or error}") from error


def _missing_folders(root: Path, path: Path) -> list[str]:
    """The folders that writing `path` makes, innermost first, relative to `root`."""
    return [
        parent.relative_to(root).as_posix()
        for parent in path.parents
        if parent != root and parent.is_relative_to(root) and not parent.exists()
    ]


def _parsed(path: Path, text: str) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except ValueError as error:
        raise BadInput(f"{path} is damaged: {error}", hint="It is a run's own record; remove it to go on.") from error
    if not isinstance(content, dict):
        raise BadInput(f"{path} is damaged: it should hold a JSON object", hint="Remove it to go on.")
    return content
