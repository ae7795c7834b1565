"""The worker's side: takes a ticket's run from the client, carries it out, and sends it
back after each reply.

Only the client's answers count. When no answer comes, or another worker has the ticket,
the work ends: the client has everything that was paid for, except a reply in transit.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.cluster.cache import Cache
from cdd_agent.cluster.purse import ClientsAccount, calls_shared_by_client
from cdd_agent.cluster.words import (
    PIECE,
    Ask,
    Begin,
    Begun,
    ClientFailed,
    ClientGone,
    Order,
    Over,
    heard,
)
from cdd_agent.engine.engine import Engine
from cdd_agent.engine.ledger import STORE, no_part
from cdd_agent.engine.record import RunRecord
from cdd_agent.errors import BadInput, CddError, ExitCode
from cdd_agent.events.dialogue_events import ReplyDelta, ThinkingDelta
from cdd_agent.events.notices import Notice, NoticeKind, Tone
from cdd_agent.events.step_events import CommandOutput
from cdd_agent.events.stream import Event, to_json
from cdd_agent.frontend import Nobody
from cdd_agent.git.checkpoint import Checkpoints
from cdd_agent.git.command import Git
from cdd_agent.git.new_commit import OUT
from cdd_agent.git.repository import repository_of
from cdd_agent.llm.budget import Limit
from cdd_agent.llm.port import Done, Model, OnEvent, Request
from cdd_agent.llm.wrapper import ModelWrapper
from cdd_agent.project.own_packages import own_packages
from cdd_agent.project.tree_needs import Equipment
from cdd_agent.session.open_project import Project
from cdd_agent.settings.config import Config
from cdd_agent.text.redaction import Redactor
from cdd_agent.tickets.store import Ticket, TicketStore
from cdd_agent.travel.arrival import Arrival
from cdd_agent.travel.bundles import RunHere, bundle
from cdd_agent.travel.manifest import MANIFEST
from cdd_agent.travel.reference import RunReference
from cdd_agent.travel.transfer import utc_now
from cdd_agent.values.typed_values import read
from cdd_agent.version import VERSION
from cdd_agent.wiring.root import Wiring
from cdd_agent.wiring.runs import prepare_model

ENVIRONMENT = "CDD_WORKER_ENVIRONMENT"
"""The variable that names a folder whose `.venv` and `node_modules` the projects' tests
need.
"""
_TICK = 1.0
_SIGN_OF_LIFE = 20
"""Number of signs of life within the time after which a silent side is considered dead.
"""
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
_STREAMS = (ReplyDelta, ThinkingDelta, CommandOutput)


async def carry_out(
    order: Mapping[str, Any], ask: Ask, scratch: Path, name: str
) -> Over:
    """Carry out a ticket's run in a separate folder below `scratch`. Raises no
    `CddError`, but `ClientGone` if the client no longer needs the run.
    """
    if order.get("version") != VERSION:
        words = (
            f"{name} has cdd {VERSION}, and the ticket comes from"
            f" {order.get('version')}"
        )
        return Over(
            attempt=0,
            exit_code=ExitCode.BAD_INPUT,
            words=words,
            not_here=True,
            worker=name,
        )
    attempt = 0
    try:
        known: Order = heard(order, Order)
        store = await Cache.open(known.project)
        answer = await ask(Begin(worker=name, have=await store.known()).told())
        begun: Begun = heard(answer, Begun)
        attempt = begun.attempt
        place = _folder_in(scratch, begun.slug)
        try:
            run = _Run(begun, ask, known.patience, place, name)
            await run.fetch(store)
            return await run.carry_out()
        finally:
            shutil.rmtree(place, ignore_errors=True)
            with suppress(CddError):  # it is only a cache
                await store.tidy()
    except (CddError, OSError) as error:
        words = error.in_a_line if isinstance(error, CddError) else str(error)
        code = error.exit_code if isinstance(error, CddError) else ExitCode.FAILED
        return Over(
            attempt=attempt,
            exit_code=code,
            words=words,
            not_here=_has_no_room(error),
            worker=name,
        )


class _Run(Struct, dict=True):
    """One ticket's run, on this machine."""

    begun: Begun
    ask: Ask
    patience: float
    place: Path
    """Everything of it is below this folder."""
    name: str
    tip: str = ""
    """The commit with the run that the client has."""
    is_stopped: bool = False
    """By the client, who still wants what there is."""
    gone: ClientGone | None = None
    _told: list[Event] = field(default_factory=list)
    """Events that the client has not got yet."""

    @cached_property
    def account(self) -> ClientsAccount:
        return ClientsAccount(self.begun.attempt, self.ask)

    @property
    def root(self) -> Path:
        return self.place / "tree" / self.begun.prefix

    @property
    def _git(self) -> Git:
        return Git(self.place / "tree")

    @property
    def ticket(self) -> Ticket:
        return Ticket(self.begun.slug, self.root / self.begun.folder, self.root)

    async def fetch(self, store: Cache) -> None:
        """Bring the run here, and put it in its place."""
        begun, file = self.begun, self.place / "run.bundle"
        with file.open("wb") as bundle_file:
            while bundle_file.tell() < begun.size:
                question = {
                    "kind": "piece",
                    "attempt": begun.attempt,
                    "offset": bundle_file.tell(),
                }
                data = (await self.ask(question))["data"]
                if not data:
                    raise BadInput("Received an incomplete run")
                bundle_file.write(data)
        await store.know(begun.have)
        await store.take(file, OUT, begun.tip)
        file.unlink()
        manifest = json.loads(
            (await store.git("cat-file", "blob", f"{begun.tip}:{MANIFEST}")).stdout
        )
        self.tip, head = begun.tip, str(manifest["head"])
        await store.know([head])
        (self.place / "tree").mkdir()
        await store.copy(self.place / "tree", head, begun.branch, begun.author)
        self.root.mkdir(parents=True, exist_ok=True)
        config = self._config()
        record = RunRecord.of(
            self.root, begun.slug, Redactor.of_environment(config.commands.hide_env)
        )
        record.prepare()
        reference = await RunReference.open(
            self.root,
            record.folder,
            begun.slug,
            str(store.folder),
            utc_now,
            await repository_of(self.root),
        )
        leave_out = no_part(
            self.root,
            (*TicketStore(self.root, config.tickets_dir).folders, begun.folder),
        )
        checkpoints = await Checkpoints.open(
            self.root, record.folder / STORE, begun.slug, leave_out
        )
        arrival = await Arrival.read(reference, self.tip, record.folder / "arriving")
        try:
            await RunHere(self.ticket, record, checkpoints).put_in_place(arrival)
        finally:
            arrival.discard()

    async def carry_out(self) -> Over:
        work = asyncio.create_task(self._plan())
        beat = asyncio.create_task(self._speak(work))
        budget_used_up, words = False, ""
        try:
            engine = await work
            code, words = (
                engine.exit_code,
                engine.stopped_by.in_a_line if engine.stopped_by else "",
            )
            budget_used_up = self.account.refused
            if engine.stopped_by is not None and _has_no_room(engine.stopped_by):
                return self._over(code, words, not_here=True)
        except asyncio.CancelledError:
            if self.gone is not None:
                raise self.gone from None
            if not self.is_stopped:
                raise
            code = ExitCode.INTERRUPTED
        finally:
            beat.cancel()
            await asyncio.gather(beat, return_exceptions=True)
        await self._tell()
        return self._over(code, words, budget_used_up=budget_used_up)

    def _over(
        self,
        code: int,
        words: str,
        *,
        not_here: bool = False,
        budget_used_up: bool = False,
    ) -> Over:
        return Over(
            attempt=self.begun.attempt,
            exit_code=code,
            words=words,
            not_here=not_here,
            budget_used_up=budget_used_up,
            worker=self.name,
        )

    async def _plan(self) -> Engine:
        """Carry out the run to its end; then the client has the final state."""
        config = self._config()
        project = Project(self.root, config, TicketStore(self.root, config.tickets_dir))
        env = await self._equip()
        limit = Limit(self.begun.tokens, self.begun.usd)
        shared = calls_shared_by_client(limit, self.account)
        engine = Wiring(
            project, Nobody(), self.emit, watched=False, shared=shared
        ).engine(self.ticket)
        runner = engine.runner

        async def keep() -> None:
            await self._keep(engine)

        model: Callable[[], Model] = cache(lambda: AsksWhenKept(runner.model(), keep))
        commands = replace(runner.commands, env=env)
        engine.runner = replace(runner, model=model, saved=keep, commands=commands)
        prepare_model(engine)
        with closing(engine):
            try:
                with engine.recording():
                    await engine.carry_out(attempts=config.max_attempts)
            except asyncio.CancelledError:
                if self.is_stopped:
                    await keep()
                raise
            if engine.stopped_by is None or not _has_no_room(engine.stopped_by):
                await keep()
        return engine

    def emit(self, event: Event) -> None:
        last = self._told[-1] if self._told else None
        if (
            isinstance(event, _STREAMS)
            and isinstance(last, type(event))
            and last.step == event.step
        ):
            self._told[-1] = replace(event, text=last.text + event.text)
        else:
            self._told.append(event)

    async def _keep(self, engine: Engine) -> None:
        """Make sure that the client has the current run. Raises `ClientGone`,
        `CddError`.
        """
        await self._tell()
        head = (await self._git("rev-parse", "HEAD")).stdout.strip()
        run = RunHere(self.ticket, engine.run.record, await engine.run.ledger.open())
        tip, _ = await run.pack(head, self.tip)
        file = self.place / "kept.bundle"
        await bundle(run.checkpoints.snapshots.git, (self.tip,), file)
        known, size = (
            {"kind": "saved", "attempt": self.begun.attempt, "tip": tip},
            file.stat().st_size,
        )
        with file.open("rb") as bundle_file:
            while (offset := bundle_file.tell()) < size:
                data = bundle_file.read(PIECE)
                await self.ask(
                    {
                        **known,
                        "offset": offset,
                        "data": data,
                        "is_last": offset + len(data) == size,
                    }
                )
        file.unlink()
        self.tip = tip

    async def _tell(self) -> None:
        if self._told:
            told, self._told = self._told, []
            lines = [json.dumps(to_json(event), ensure_ascii=False) for event in told]
            await self._say(
                {"kind": "told", "attempt": self.begun.attempt, "events": lines}
            )

    async def _speak(self, work: asyncio.Task[Engine]) -> None:
        """Send events and signs of life; end the work when the client no longer needs
        it.
        """
        clock = asyncio.get_running_loop().time
        last = clock()
        try:
            while not self.is_stopped:
                await asyncio.sleep(_TICK)
                if not self._told and clock() - last <= self.patience / _SIGN_OF_LIFE:
                    continue
                # the client keeps the run and reports the error
                with suppress(ClientFailed):
                    await (
                        self._tell()
                        if self._told
                        else self._say({"kind": "alive", "attempt": self.begun.attempt})
                    )
                last = clock()
        except ClientGone as error:
            self.gone = error
        work.cancel()

    async def _say(self, what: Mapping[str, Any]) -> None:
        answer = await self.ask(what)
        self.is_stopped = self.is_stopped or bool(answer.get("stop"))

    async def _equip(self) -> Mapping[str, str]:
        """Link the folders that tests need from this machine's environment; return the
        variables that commands need.
        """
        folder = _environment()
        if folder is None:
            return {}
        equipment = await Equipment.find_in_folder(folder)
        needs = await equipment.link_into(self.root)
        found = await own_packages(self.root, folder, bases=needs.python_bases)
        if found.names:
            text = (
                f"{', '.join(found.names)} is installed from the folder of"
                f" {ENVIRONMENT} (editable). PYTHONPATH puts "
            )
            text += "the run's own first."
            self.emit(Notice(text, Tone.WARNING, kind=NoticeKind.EDITABLE_INSTALL))
        return found.env(self.root)

    def _config(self) -> Config:
        return read(Config, self.begun.settings)


class AsksWhenKept(ModelWrapper):
    """Asks again in a dialogue only when all that was said before is kept."""

    def __init__(self, model: Model, keep: Callable[[], Any]) -> None:
        super().__init__(model)
        self._keep = keep

    async def reply(self, request: Request, on_event: OnEvent) -> Done:
        if any(message.role == "assistant" for message in request.messages):
            await self._keep()
        return await self.inner.reply(request, on_event)


def _folder_in(scratch: Path, slug: str) -> Path:
    return Path(tempfile.mkdtemp(prefix=f"{slug[:40]}-", dir=scratch)).resolve()


def _environment() -> Path | None:
    named = os.environ.get(ENVIRONMENT)
    return Path(named).resolve() if named else None


def _causes(error: BaseException) -> Iterator[BaseException]:
    found: BaseException | None = error
    while found is not None:
        yield found
        found = found.__cause__


def _has_no_room(error: BaseException) -> bool:
    """True if this machine's disk caused the error."""
    if any(isinstance(cause, ClientFailed) for cause in _causes(error)):
        return False
    words = [os.strerror(number) for number in _NO_ROOM]
    return any(
        (isinstance(cause, OSError) and cause.errno in _NO_ROOM)
        or any(word in str(cause) for word in words)
        for cause in _causes(error)
    )
