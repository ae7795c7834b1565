"""The client's side of one ticket: sends the run to the worker that asks, and keeps the
results. Each worker that begins gets a number, and only the last one counts: a machine
that was considered dead and comes back receives that answer and changes nothing. A
saved result is on this disk before the worker receives the confirmation. When the run
ends or stops, the result is installed in the run's worktree, the same that `cdd exec
--worktree` creates.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.cluster.words import (
    PIECE,
    Alive,
    Answer,
    AnyQuestion,
    Begin,
    Begun,
    Hold,
    Piece,
    Saved,
    Told,
    Took,
    heard,
)
from cdd_agent.engine.ledger import no_part
from cdd_agent.engine.lock import locked
from cdd_agent.errors import BadInput, BudgetExhausted, CddError
from cdd_agent.events.notices import Notice, NoticeKind, Tone
from cdd_agent.events.stream import Event, to_json
from cdd_agent.files.atomic import remove
from cdd_agent.fleet.order import Tell
from cdd_agent.git.new_commit import OUT
from cdd_agent.llm.port import Usage
from cdd_agent.llm.purse import Purse
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

_MOST_HAVE = 20
_SHORT = 0.05
"""Seconds that a question whether there is room for a call waits here; the worker asks
again.
"""


class Gone(Exception):
    """Whoever asks has the ticket no more."""


class Desk(Struct):
    """The desk of one ticket, while workers carry it out."""

    project: Project
    own: OwnTree
    settings: dict[str, Any]
    author: tuple[str, str]
    purse: Purse
    """The budget of all runs."""
    tell: Tell
    busy: asyncio.Semaphore
    """So much is done here at once, for all tickets."""
    is_stopping: bool = False
    attempt: int = 0
    """The number of the worker who is listened to."""
    worker: str = ""
    sent: str | None = None
    """The commit that this one was given."""
    _run: tuple[RunHere, RunReference] | None = None
    """None until the first worker begins."""
    _locks: ExitStack = field(default_factory=ExitStack)
    _calls: AsyncExitStack = field(default_factory=AsyncExitStack)
    """The worst cost of the running calls."""
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def _prepare(self) -> None:
        """Make the run's own tree ready to be sent. Raises `CddError`."""
        own = self.own
        own.record.prepare()

        def emit(event: Event) -> None:
            self.tell(to_json(event))

        self._locks.enter_context(locked(own.record.folder, own.record.slug, emit))
        await own.make(emit)
        places = (*self.project.tickets.folders, own.ticket.shown(own.ticket.folder))
        here = await in_its_own_tree(own, no_part(own.root, places))
        self._locks.enter_context(locked(here.record.folder, own.ticket.slug, emit))
        self._run = here, await opened(own, self._coming)

    @property
    def kept(self) -> CameBack:
        return CameBack.of(self.own.record.folder)

    def _keep(self, **changes: Any) -> None:
        replace(self.kept, **changes).keep(self.own.record.folder)

    async def answer(self, question: Mapping[str, Any]) -> Answer:
        """The answer to a worker's question. Raises nothing: what is wrong here is in
        the answer.
        """
        try:
            asked: AnyQuestion = heard(question, AnyQuestion)
            async with self._turn:
                if isinstance(asked, Begin):
                    async with self.busy:
                        return await self._begin(asked)
                self._expect_current(asked.attempt)
                match asked:
                    case Piece(offset=offset):
                        return {
                            "data": await in_thread(
                                lambda: self._piece(offset), name="piece"
                            )
                        }
                    case Told(events=events):
                        for line in events:
                            self.tell({**json.loads(line)})
                    case Saved():
                        await self._save(asked)
                    case Hold():
                        return await self._hold(asked)
                    case Took(tokens=tokens, usd=usd, estimated=estimated):
                        self.purse.tally.add(Usage(tokens, 0, estimated, usd))
                        await self._calls.aclose()
                    case Alive():
                        pass
                return {"stop": self.is_stopping}
        except Gone:
            return {"gone": True}
        except CddError as error:
            return {"error": error.in_a_line}
        except OSError as error:
            return {"error": f"The client failed: {error}"}
        except (ValueError, TypeError, LookupError) as error:
            return {"error": f"The client received an invalid message: {error}"}

    def let_go(self) -> None:
        """Listen to no worker any more, until another one begins."""
        self.attempt, self.worker = 0, ""

    def _expect_current(self, attempt: int) -> None:
        if attempt != self.attempt or attempt == 0:
            raise Gone

    async def _begin(self, asked: Begin) -> Answer:
        if self.is_stopping:
            raise Gone
        if self._run is None:
            await self._prepare()
        assert self._run is not None, "it is made ready"
        here, reference = self._run
        kept = self.kept
        text, tone = (
            f"{asked.worker} carries out {self.own.ticket.slug}.",
            Tone.QUIET,
        )
        if self.worker:
            text, tone = (
                (
                    f"{self.worker} was lost. {asked.worker} resumes"
                    f" {self.own.ticket.slug}."
                ),
                Tone.WARNING,
            )
        self.attempt, self.worker = kept.attempt + 1, asked.worker
        self._keep(attempt=self.attempt)
        await self._calls.aclose()
        tip = kept.tip or await self._pack(here)
        self.sent, known = tip, await _known(reference, asked.have)
        await reference.remote.git("update-ref", OUT, tip)
        await bundle(reference.remote.git, known, self._sent)
        begun = Begun(
            attempt=self.attempt,
            slug=self.own.ticket.slug,
            tip=tip,
            size=self._sent.stat().st_size,
            have=known,
            branch=self.own.branch,
            prefix=self.own.prefix,
            folder=self.own.ticket.folder.relative_to(self.own.record.root).as_posix(),
            settings=self.settings,
            tokens=self.purse.limit.tokens,
            usd=self.purse.limit.usd,
            author=self.author,
        )
        self.tell(to_json(Notice(text, tone, kind=NoticeKind.RUN_MOVED)))
        return begun.told()

    @property
    def _sent(self) -> Path:
        return self.own.record.folder / "sent.bundle"

    @property
    def _coming(self) -> Path:
        return self.own.record.folder / "coming.bundle"

    def _piece(self, offset: int) -> bytes:
        with self._sent.open("rb") as file:
            file.seek(offset)
            return file.read(PIECE)

    async def _pack(self, here: RunHere) -> str:
        """The commit with the run as its own tree has it."""
        head = await self.own.trees.commit_of(f"refs/heads/{self.own.branch}")
        assert head is not None, "the tree was made on it"
        tip, project = await here.pack(head, None)
        self._keep(project=project)
        return tip

    async def _hold(self, asked: Hold) -> Answer:
        verdict = "go"
        try:
            async with asyncio.timeout(_SHORT):
                await self._calls.enter_async_context(
                    self.purse.reserve(Usage(asked.tokens, 0, usd=asked.usd))
                )
        except TimeoutError:
            verdict = "wait"
        except BudgetExhausted:
            verdict = "no"
        spent = self.purse.tally.spent
        return {
            "verdict": verdict,
            "tokens": spent.tokens,
            "usd": spent.usd or 0.0,
            "estimated": spent.estimated,
        }

    async def _save(self, saved: Saved) -> None:
        """Keep a part of a bundle, and when it was the last, the run that is in it.
        Raises `Gone`, `CddError`.
        """
        place = self._coming
        try:
            with place.open("r+b" if saved.offset else "wb") as file:
                file.seek(saved.offset)
                file.write(saved.data)
        except OSError as error:
            raise BadInput(
                f"{place} could not be written: {error.strerror or error}"
            ) from error
        if not saved.is_last:
            return
        async with self.busy:
            await self._take(saved)

    async def _take(self, saved: Saved) -> None:
        assert self._run is not None, "a worker has begun"
        _, reference = self._run
        # what the worker builds on
        reference.have = tuple(filter(None, (self.kept.tip or self.sent,)))
        reference.fetched = await reference.remote.fetch(
            OUT, reference.have, MOST_BYTES
        )
        if reference.fetched != saved.tip:
            raise BadInput("Received a different commit than announced")
        self._expect_current(saved.attempt)
        reference.accept()
        await self.own.trees.git("update-ref", reference_of(self.own), saved.tip)
        self._keep(tip=saved.tip)

    async def end(self) -> None:
        """Install the results in the run's worktree and release everything. Raises
        `CddError`; then the next process that uses the tree installs them.
        """
        try:
            if self._run is not None:
                async with self._turn, self.busy:
                    await put_in_place(self.own, *self._run)
                for path in (self._sent, self._coming):
                    remove(path)
        finally:
            await self._calls.aclose()
            self._locks.close()


async def _known(reference: RunReference, have: tuple[str, ...]) -> tuple[str, ...]:
    """Return the commits of a worker that exist here, too."""
    if not have:
        return ()
    asked, told = reference.folder / "asked", reference.folder / "told"
    asked.write_text("".join(f"{commit}\n" for commit in have))
    await reference.git(
        "cat-file",
        "--batch-check=%(objectname) %(objecttype)",
        stdin=asked,
        stdout=told,
    )
    lines = (line.split() for line in told.read_text().splitlines())
    return tuple(line[0] for line in lines if line[1:] == ["commit"])[:_MOST_HAVE]
