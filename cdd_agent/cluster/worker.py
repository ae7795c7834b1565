"""The worker's side of one ticket: fetch the run into a private tree, run `cdd exec
SLUG` there, and relay lines between that process and the client.

Before each model call, the client receives the steps that ended since the previous
call. So another worker can resume with the running step.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from cdd_agent.cluster.messages import (
    PIECE,
    Ask,
    Begin,
    Begun,
    ClientFailed,
    Piece,
    Printed,
    Reaction,
    Saved,
    WorkerEnd,
    WorkerOrder,
    decode_message,
)
from cdd_agent.cluster.project_cache import ProjectCache
from cdd_agent.cluster.provider_waits import add_waits, read_waits
from cdd_agent.engine.ledger import STORE, no_part
from cdd_agent.engine.record import RunRecord
from cdd_agent.errors import BadInput, CddError, ExitCode
from cdd_agent.events.driven_events import QuestionKind
from cdd_agent.fleet.conversation import parse_event, reason_of_end
from cdd_agent.fleet.local_runs import folder_of
from cdd_agent.fleet.order import RunOrder
from cdd_agent.git.checkpoint import Checkpoints
from cdd_agent.git.command import Git
from cdd_agent.git.new_commit import OUT
from cdd_agent.git.repository import Repository, repository_of
from cdd_agent.process.child import Child, ChildEnd
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.settings.config import PROJECT_FILE, Config
from cdd_agent.settings.reading import USER_CONFIG, VARIABLES
from cdd_agent.text.redaction import Redactor
from cdd_agent.tickets.store import Ticket, TicketStore
from cdd_agent.travel.arrival import Arrival
from cdd_agent.travel.bundles import RunHere, bundle
from cdd_agent.travel.manifest import MANIFEST
from cdd_agent.travel.reference import RunReference
from cdd_agent.travel.transfer import utc_now
from cdd_agent.values.typed_values import read
from cdd_agent.version import VERSION

_TICK = 1.0
"""Seconds between two messages, unless the run's process waits for an answer."""
_SIGNS_OF_LIFE = 20
"""Messages within the time after which a silent side counts as dead."""
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
_STREAMS = {"reply_delta", "thinking_delta", "command_output"}
"""Events whose texts are joined."""


async def carry_out(
    values: Mapping[str, Any], ask: Ask, scratch: Path, worker: str
) -> WorkerEnd:
    """Carry out the run of an order in a new folder below `scratch`. Raises
    `ClientGone` if the client no longer needs the run, and no `CddError`.
    """
    if values.get("version") != VERSION:
        reason = f"it has cdd {VERSION}, and this is {values.get('version')}"
        return WorkerEnd(0, ExitCode.BAD_INPUT, reason, is_unfit=True, worker=worker)
    try:
        order: WorkerOrder = decode_message(values, WorkerOrder)
        cache = await ProjectCache.open(order.project)
        commits = await cache.received_commits()
    except (CddError, OSError) as error:
        # no git, no home folder or no space
        reason = _describe(error)
        return WorkerEnd(0, ExitCode.BAD_INPUT, reason, is_unfit=True, worker=worker)
    begun: Begun = decode_message(
        await ask(Begin(worker=worker, have=commits).to_values()), Begun
    )
    place: Path | None = None
    try:
        place = _make_folder(scratch, begun.slug)
        tree = WorkerTree(begun, place)
        await tree.fetch(cache, ask)
        relay = Relay(tree, ask, order.patience)
        end = await relay.run()
        reason = relay.describe(end)
        is_unfit = end.exit_code != ExitCode.DONE and _names_full_disk(reason)
        if not is_unfit:
            await relay.save()
        await relay.report()
        return WorkerEnd(begun.attempt, end.exit_code, reason, is_unfit, worker)
    except (CddError, OSError) as error:
        code = error.exit_code if isinstance(error, CddError) else ExitCode.FAILED
        is_unfit = _is_caused_by_full_disk(error)
        return WorkerEnd(begun.attempt, code, _describe(error), is_unfit, worker)
    finally:
        if place is not None:
            shutil.rmtree(place, ignore_errors=True)
        with suppress(CddError):  # it is only a cache
            await cache.tidy()


class WorkerTree(Struct):
    """The tree in which a worker carries out one run."""

    begun: Begun
    place: Path
    """The folder of everything that belongs to the run."""
    tip: str = ""
    """The commit with the run that the client has."""

    @property
    def top(self) -> Path:
        return self.place / "tree"

    @property
    def root(self) -> Path:
        return self.top / self.begun.prefix

    @property
    def ticket(self) -> Ticket:
        return Ticket(self.begun.slug, self.root / self.begun.folder, self.root)

    @property
    def config(self) -> Config:
        return read(Config, self.begun.settings)

    @property
    def arguments(self) -> list[str]:
        """The arguments of `cdd` that carry out the run. The client sends only trusted
        settings.
        """
        order = RunOrder(
            self.root,
            self.begun.slug,
            jobs=1,
            trusts_all=True,
            is_driven=True,
            # the client saves the run while a call waits for its answer
            asks_before_calls=True,
        )
        return order.arguments

    @property
    def environment(self) -> dict[str, str]:
        """The worker's variables for the run's process, without the worker's
        settings.
        """
        variables = {k: v for k, v in os.environ.items() if k not in VARIABLES}
        variables[USER_CONFIG] = str(self.place / "no-settings.yaml")
        return variables

    async def fetch(self, cache: ProjectCache, ask: Ask) -> None:
        """Fetch the run from the client and install it. Raises `CddError`, `OSError`,
        `ClientGone`.
        """
        begun, file = self.begun, self.place / "run.bundle"
        with file.open("wb") as bundle_file:
            while bundle_file.tell() < begun.size:
                piece = Piece(begun.attempt, bundle_file.tell())
                data = (await ask(piece.to_values()))["data"]
                if not data:
                    raise BadInput(
                        "Received an incomplete run", refusal=Refusal.WORKER_UNUSABLE
                    )
                bundle_file.write(data)
        await cache.note_commits(begun.have)
        await cache.take_in(file, OUT, begun.tip)
        file.unlink()
        manifest = await cache.git("cat-file", "blob", f"{begun.tip}:{MANIFEST}")
        head = str(json.loads(manifest.stdout)["head"])
        await cache.note_commits([head])
        self.top.mkdir()
        await cache.check_out(self.top, head, begun.branch, begun.author)
        self.root.mkdir(parents=True, exist_ok=True)
        self.tip = begun.tip
        record = self.open_record()
        record.prepare()
        await self._install(record, cache)
        settings = self.root / PROJECT_FILE
        settings.parent.mkdir(exist_ok=True)
        settings.write_text(json.dumps(begun.settings, indent=1))
        (self.place / "no-settings.yaml").touch()

    async def _install(self, record: RunRecord, cache: ProjectCache) -> None:
        repository = await repository_of(self.root)
        reference = await RunReference.open(
            self.root,
            record.folder,
            self.begun.slug,
            str(cache.folder),
            utc_now,
            repository,
        )
        run = await self._open_run(record, repository)
        arrival = await Arrival.read(reference, self.tip, record.folder / "arriving")
        try:
            await run.put_in_place(arrival)
        finally:
            arrival.discard()

    async def pack(self) -> tuple[str, Path]:
        """Pack the current run. Returns its commit, and a bundle of what the client
        lacks. The run's process must be waiting. Raises `CddError`.
        """
        # the run's commands may have changed the repository's settings
        repository = await repository_of(self.root)
        run = await self._open_run(self.open_record(), repository)
        head = (await Git(self.top)("rev-parse", "HEAD")).stdout.strip()
        tip, _ = await run.pack(head, self.tip)
        file = self.place / "saved.bundle"
        await bundle(run.checkpoints.snapshots.git, (self.tip,), file)
        return tip, file

    def open_record(self) -> RunRecord:
        redactor = Redactor.of_environment(self.config.commands.hide_env)
        return RunRecord.of(self.root, self.begun.slug, redactor)

    async def _open_run(
        self, record: RunRecord, repository: Repository | None
    ) -> RunHere:
        store = TicketStore(self.root, self.config.tickets_dir)
        leave_out = no_part(self.root, (*store.folders, self.begun.folder))
        checkpoints = await Checkpoints.open(
            self.root, record.folder / STORE, self.begun.slug, leave_out, repository
        )
        return RunHere(self.ticket, record, checkpoints)


class Relay(Struct, dict=True):
    tree: WorkerTree
    ask: Ask
    patience: float
    _lines: list[dict[str, Any]] = field(default_factory=list)
    """Events that the client does not have yet."""
    _is_asking: bool = False
    """The process waits for an answer before a model call."""
    _is_step_unsaved: bool = False
    """A step has ended after the last save."""
    _reported_at: float = 0.0

    def __post_init__(self) -> None:
        self._child = Child(self.receive)
        self._redactor = self.tree.open_record().redactor
        self._is_urgent = asyncio.Event()

    async def run(self) -> ChildEnd:
        """Run the process to its end. Raises `ClientGone`, `CddError`."""
        tree = self.tree
        process = asyncio.create_task(
            self._child.run(tree.arguments, tree.root, tree.environment)
        )
        process.add_done_callback(lambda _: self._is_urgent.set())
        try:
            while not process.done():
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._is_urgent.wait(), _TICK)
                if process.done():
                    break
                self._is_urgent.clear()
                if self._is_asking and self._is_step_unsaved:
                    await self.save()
                await self.report()
            return await process
        finally:
            process.cancel()
            await asyncio.gather(process, return_exceptions=True)

    def receive(self, line: bytes) -> None:
        """Handle a line of the process. Raises `BadChild`."""
        event = parse_event(line)
        kind = event.get("event")
        if kind == "step_finished":
            self._is_step_unsaved = True
        if kind == "call_ended":
            # even without an answer, when the process stops and writes its files
            self._is_asking = False
        if kind == "answer_needed":
            self._is_asking = event.get("kind") == QuestionKind.CALL
            self._is_urgent.set()
        last = self._lines[-1] if self._lines else {}
        if kind in _STREAMS and {**event, "text": ""} == {**last, "text": ""}:
            event = {**event, "text": f"{last['text']}{event['text']}"}
            self._lines.pop()
        self._lines.append(event)

    async def report(self) -> None:
        """Send the lines of the process, or a sign of life, and forward the client's
        answers. Raises `ClientGone`, `ClientFailed`.
        """
        clock = asyncio.get_running_loop().time
        waits_file = folder_of(self.tree.root) / "waits.json"
        waits = read_waits(waits_file, self._redactor)
        is_silent = clock() - self._reported_at < self.patience / _SIGNS_OF_LIFE
        if is_silent and not self._lines and not waits and not self._is_asking:
            return
        lines = tuple(json.dumps(line, ensure_ascii=False) for line in self._lines)
        self._lines.clear()
        printed = Printed(self.tree.begun.attempt, lines, waits)
        answer = await self.ask(printed.to_values())
        self._reported_at = clock()
        reaction: Reaction = decode_message(answer, Reaction)
        add_waits(waits_file, reaction.waits)
        for line in reaction.input:
            self._is_asking = False
            self._child.send(line.encode() + b"\n")
        if reaction.is_stopping:
            self._child.stop()

    def describe(self, end: ChildEnd) -> str:
        """Return why the process ended, without secrets and folders of this machine."""
        reason = reason_of_end(end).replace(f"{self.tree.place}{os.sep}", "")
        return self._redactor.redact(reason)

    async def save(self) -> None:
        """Save the current run on the client's disk. Raises `ClientGone`,
        `CddError`.
        """
        tip, file = await self.tree.pack()
        size = file.stat().st_size
        with file.open("rb") as bundle_file:
            while (offset := bundle_file.tell()) < size:
                data = bundle_file.read(PIECE)
                is_last = offset + len(data) == size
                saved = Saved(self.tree.begun.attempt, tip, offset, data, is_last)
                await self.ask(saved.to_values())
        file.unlink()
        self.tree.tip = tip
        self._is_step_unsaved = False


def _make_folder(scratch: Path, slug: str) -> Path:
    return Path(tempfile.mkdtemp(prefix=f"{slug[:40]}-", dir=scratch)).resolve()


def _describe(error: CddError | OSError) -> str:
    return error.in_a_line if isinstance(error, CddError) else str(error)


def _names_full_disk(text: str) -> bool:
    return any(os.strerror(number) in text for number in _DISK_FULL)


def _is_caused_by_full_disk(error: BaseException) -> bool:
    """True if the disk of this machine caused the error."""
    causes = list(_chain(error))
    if any(isinstance(cause, ClientFailed) for cause in causes):
        return False
    for cause in causes:
        if isinstance(cause, OSError) and cause.errno in _DISK_FULL:
            return True
        if _names_full_disk(str(cause)):
            return True
    return False


def _chain(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__
