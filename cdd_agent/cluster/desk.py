"""The client's side of one ticket: send the run to a worker, answer its process, and
save the results.

Each worker that begins gets a number, and only the latest one is answered: a machine
that seemed dead and comes back changes nothing. When the run ends or stops, the result
is installed in the run's worktree, as with `cdd exec --worktree`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.cluster.messages import (
    PIECE,
    Answer,
    AnyQuestion,
    Begin,
    Begun,
    Piece,
    Printed,
    Reaction,
    Saved,
    WorkerEnd,
    decode_message,
)
from cdd_agent.cluster.provider_waits import add_waits, read_waits
from cdd_agent.engine.ledger import no_part
from cdd_agent.engine.lock import locked
from cdd_agent.errors import BadInput, CddError
from cdd_agent.events.notices import Notice, NoticeKind, Tone
from cdd_agent.events.stream import Event, to_json
from cdd_agent.files.atomic import remove
from cdd_agent.fleet.answers import AnswerLine
from cdd_agent.fleet.conversation import RunConversation
from cdd_agent.fleet.job import Ending
from cdd_agent.fleet.order import OnRunEvent
from cdd_agent.git.new_commit import OUT
from cdd_agent.llm.purse import Purse
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.session.open_project import Project
from cdd_agent.threads import in_thread
from cdd_agent.travel.bundles import RunHere, bundle
from cdd_agent.travel.came_back import (
    CameBack,
    in_its_own_tree,
    opened,
    put_in_place,
    reference_of,
)
from cdd_agent.travel.own_tree import OwnTree
from cdd_agent.travel.reference import MOST_BYTES, RunReference

_MOST_COMMITS = 20
"""Commits that a bundle builds on."""
_ANSWER_SECONDS = 0.05
"""Seconds to wait for room for a call."""


class NotCurrent(Exception):
    """The asking worker has lost the ticket."""


class Desk(Struct, dict=True):
    """The desk of one ticket, while workers carry it out."""

    project: Project
    own: OwnTree
    settings: dict[str, Any]
    author: tuple[str, str]
    purse: Purse
    waits: Path
    """The file with the waits of providers."""
    on_event: OnRunEvent
    busy: asyncio.Semaphore
    """Limits the work for all tickets on this machine."""
    is_stopping: bool = False
    attempt: int = 0
    """The number of the current worker; 0 without one."""
    worker: str = ""
    sent: str | None = None
    """The commit that the current worker received."""
    _run: tuple[RunHere, RunReference] | None = None
    """None until the first worker begins."""
    _locks: ExitStack = field(default_factory=ExitStack)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _answers: list[str] = field(default_factory=list)
    """Lines for the run's process."""

    def __post_init__(self) -> None:
        self._has_answer = asyncio.Event()
        self._heard_at = 0.0
        self._conversation = RunConversation(
            self.purse, (), self.on_event, self._queue_answer
        )

    @property
    def came_back(self) -> CameBack:
        return CameBack.of(self.own.record.folder)

    @property
    def _sent_bundle(self) -> Path:
        return self.own.record.folder / "sent.bundle"

    @property
    def _coming_bundle(self) -> Path:
        return self.own.record.folder / "coming.bundle"

    async def answer(self, question: Mapping[str, Any]) -> Answer:
        """Return the answer to a worker's question. Raises nothing: an error is part of
        the answer.
        """
        try:
            message: AnyQuestion = decode_message(question, AnyQuestion)
            async with self._turn:
                return await self._answer(message)
        except NotCurrent:
            return {"gone": True}
        except CddError as error:
            return {"error": error.in_a_line}
        except OSError as error:
            return {"error": f"The client failed: {error}"}
        except (ValueError, TypeError, LookupError) as error:
            return {"error": f"The client received an invalid message: {error}"}

    async def _answer(self, message: AnyQuestion) -> Answer:
        if isinstance(message, Begin):
            async with self.busy:
                begun = await self._begin(message)
            return begun.to_values()
        self._expect_current(message.attempt)
        self._heard_at = asyncio.get_running_loop().time()
        match message:
            case Piece(offset=offset):
                data = await in_thread(partial(self._read_piece, offset), name="piece")
                return {"data": data}
            case Saved():
                await self._save(message)
                return {}
            case Printed():
                reaction = await self._react(message)
                return reaction.to_values()

    async def release_lost_worker(
        self, workers: Collection[str], patience: float
    ) -> None:
        """Release the budget for the worker's calls if it is not in `workers` and was
        silent for `patience` seconds. Other runs may wait for that budget.
        """
        is_lost = bool(self.worker) and self.worker not in workers
        if is_lost and asyncio.get_running_loop().time() > self._heard_at + patience:
            await self._conversation.release_budget()

    def forget_worker(self) -> None:
        """Answer no worker until another one begins."""
        self.attempt, self.worker = 0, ""

    def ending(self, end: WorkerEnd) -> Ending:
        return self._conversation.ending(end.exit_code, end.reason)

    def _expect_current(self, attempt: int) -> None:
        if attempt != self.attempt or attempt == 0:
            raise NotCurrent

    async def _prepare(self) -> tuple[RunHere, RunReference]:
        """Prepare the run's own tree for sending. Raises `CddError`."""
        if self._run is not None:
            return self._run
        own = self.own
        own.record.prepare()

        def emit(event: Event) -> None:
            self.on_event(to_json(event))

        self._locks.enter_context(locked(own.record.folder, own.record.slug, emit))
        await own.make(emit)
        own_paths = (*self.project.tickets.folders, own.ticket.shown(own.ticket.folder))
        run = await in_its_own_tree(own, no_part(own.root, own_paths))
        self._locks.enter_context(locked(run.record.folder, own.ticket.slug, emit))
        self._run = run, await opened(own, self._coming_bundle)
        return self._run

    async def _begin(self, message: Begin) -> Begun:
        if self.is_stopping:
            raise NotCurrent
        run, reference = await self._prepare()
        self._report_begin(message.worker)
        came_back = self.came_back
        self.attempt, self.worker = came_back.attempt + 1, message.worker
        self._heard_at = asyncio.get_running_loop().time()
        self._update_came_back(attempt=self.attempt)
        await self._conversation.release_budget()
        self._answers.clear()
        tip = came_back.tip or await self._pack(run)
        self.sent = tip
        commits = await _find_commits(reference, message.have)
        await reference.remote.git("update-ref", OUT, tip)
        await bundle(reference.remote.git, commits, self._sent_bundle)
        folder = self.own.ticket.folder.relative_to(self.own.record.root)
        return Begun(
            attempt=self.attempt,
            slug=self.own.ticket.slug,
            tip=tip,
            size=self._sent_bundle.stat().st_size,
            have=commits,
            branch=self.own.branch,
            prefix=self.own.prefix,
            folder=folder.as_posix(),
            settings=self.settings,
            author=self.author,
        )

    def _report_begin(self, worker: str) -> None:
        slug = self.own.ticket.slug
        notice = Notice(
            f"{worker} carries out {slug}.", Tone.QUIET, kind=NoticeKind.RUN_MOVED
        )
        if self.worker:
            text = f"{self.worker} was lost. {worker} resumes {slug}."
            notice = Notice(text, Tone.WARNING, kind=NoticeKind.RUN_MOVED)
        self.on_event(to_json(notice))

    async def _pack(self, run: RunHere) -> str:
        head = await self.own.trees.commit_of(f"refs/heads/{self.own.branch}")
        assert head is not None, "the tree was made on it"
        tip, project = await run.pack(head, None)
        self._update_came_back(project=project)
        return tip

    def _update_came_back(self, **changes: Any) -> None:
        replace(self.came_back, **changes).keep(self.own.record.folder)

    def _read_piece(self, offset: int) -> bytes:
        with self._sent_bundle.open("rb") as file:
            file.seek(offset)
            return file.read(PIECE)

    def _queue_answer(self, answer: AnswerLine) -> None:
        self._answers.append(answer.line.decode().rstrip("\n"))
        self._has_answer.set()

    async def _react(self, printed: Printed) -> Reaction:
        """Handle the lines of the run's process. Raises `CddError`."""
        self._has_answer.clear()
        for line in printed.lines:
            self._conversation.receive(line.encode())
        if self._conversation.has_running_calls and not self._answers:
            # a later answer goes with the worker's next question
            with suppress(TimeoutError):
                await asyncio.wait_for(self._has_answer.wait(), _ANSWER_SECONDS)
        add_waits(self.waits, printed.waits)
        answers = tuple(self._answers)
        self._answers.clear()
        waits = read_waits(self.waits, self.own.record.redactor)
        return Reaction(answers, self.is_stopping, waits)

    async def _save(self, saved: Saved) -> None:
        """Save a part of a bundle; after the last part, save its run. Raises
        `NotCurrent`, `CddError`.
        """
        file = self._coming_bundle
        try:
            with file.open("r+b" if saved.offset else "wb") as bundle_file:
                bundle_file.seek(saved.offset)
                bundle_file.write(saved.data)
        except OSError as error:
            raise BadInput(
                f"{file} could not be written: {error.strerror or error}",
                refusal=Refusal.DISK,
            ) from error
        if saved.is_last:
            async with self.busy:
                await self._take_over(saved)

    async def _take_over(self, saved: Saved) -> None:
        """Make the received run the latest. Raises `NotCurrent`, `CddError`."""
        _, reference = await self._prepare()
        base = self.came_back.tip or self.sent
        reference.have = (base,) if base else ()
        reference.fetched = await reference.remote.fetch(
            OUT, reference.have, MOST_BYTES
        )
        if reference.fetched != saved.tip:
            raise BadInput(
                "Received a different commit than announced",
                refusal=Refusal.WORKER_UNUSABLE,
            )
        self._expect_current(saved.attempt)
        reference.accept()
        await self.own.trees.git("update-ref", reference_of(self.own), saved.tip)
        self._update_came_back(tip=saved.tip)

    async def close(self) -> None:
        """Install the results in the run's worktree and release everything. Raises
        `CddError`; then the next process that uses the tree installs them.
        """
        try:
            if self._run is not None:
                async with self._turn, self.busy:
                    await put_in_place(self.own, *self._run)
                for path in (self._sent_bundle, self._coming_bundle):
                    remove(path)
        finally:
            await self._conversation.release_budget()
            self._locks.close()


async def _find_commits(
    reference: RunReference, have: tuple[str, ...]
) -> tuple[str, ...]:
    """Return those of a worker's commits that exist here."""
    if not have:
        return ()
    asked, answers = reference.folder / "asked", reference.folder / "answers"
    asked.write_text("".join(f"{commit}\n" for commit in have))
    await reference.git(
        "cat-file",
        "--batch-check=%(objectname) %(objecttype)",
        stdin=asked,
        stdout=answers,
    )
    commits = list[str]()
    for line in answers.read_text().splitlines():
        name, _, kind = line.partition(" ")
        if kind == "commit":
            commits.append(name)
    return tuple(commits[:_MOST_COMMITS])
