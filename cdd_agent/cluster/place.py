"""A place of other machines: tickets as tasks of Dask distributed, whose scheduler says
which worker takes one and gives it to another when a worker dies.
"""

from __future__ import annotations

import asyncio
import logging
import os
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from distributed import Client, Future, KilledWorker, LocalCluster, Queue
from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.cluster.desk import Desk
from cdd_agent.cluster.identity import author_of, project_id, settings_to_send
from cdd_agent.cluster.task import carry_out, version
from cdd_agent.cluster.words import ClientGone, Order, Over, heard
from cdd_agent.cluster.worker import ENVIRONMENT
from cdd_agent.errors import BadInput, CddError, ExitCode
from cdd_agent.events.notices import Notice, NoticeKind, Tone
from cdd_agent.events.stream import to_json
from cdd_agent.fleet.job import Ending
from cdd_agent.fleet.order import RunOrder, Tell
from cdd_agent.llm.purse import Purse
from cdd_agent.session.open_project import Project, config_without_user
from cdd_agent.settings.models import of_role
from cdd_agent.version import VERSION
from cdd_agent.wiring.runs import open_own_tree

LOCAL = "local"
PATIENCE = "CDD_CLUSTER_PATIENCE"
"""The variable with the seconds without an answer after which a worker takes its client
for dead.
"""
_PATIENCE = 60.0
_TRIES = 5
"""Times that a ticket is given out again after something else than the death of a
worker.
"""
_LOOK = 5.0
_AGAIN = 1.0
_CONNECT = 15.0
_PROBE = 10.0


class ClusterPlace(Struct):
    """The workers of one Dask cluster. Several tickets at once: what no worker is free
    for waits with the scheduler.
    """

    project: Project
    purse: Purse
    client: Client
    on: str
    patience: float
    refused: dict[str, str] = field(default_factory=dict)
    """Workers that tickets are not given to, and why."""
    _desks: dict[str, Desk] = field(default_factory=dict)
    _busy: asyncio.Semaphore = field(
        default_factory=lambda: asyncio.Semaphore(max(2, os.cpu_count() or 2))
    )
    _inbox: str = field(default_factory=lambda: f"cdd-inbox-{uuid.uuid4().hex}")
    _asked: set[str] = field(default_factory=set)
    """Workers whose version is known."""
    _told_of_none: bool = False
    _answers: dict[str, dict[str, Queue]] = field(default_factory=dict)
    """The lines to the workers of each ticket."""
    _answering: set[asyncio.Task[None]] = field(default_factory=set)
    _hearing: asyncio.Task[None] | None = None

    @classmethod
    @asynccontextmanager
    async def open(
        cls, project: Project, purse: Purse, on: str, at_once: int
    ) -> AsyncIterator[ClusterPlace]:
        """Connect to the scheduler at an address, or start `at_once` workers here
        (`local`). Raises `BadInput`.
        """
        try:
            patience = float(os.environ.get(PATIENCE) or _PATIENCE)
        except ValueError as error:
            raise BadInput(f"{PATIENCE} is not a number of seconds") from error
        async with _scheduler(project.root, on, at_once) as address:
            try:
                client = await Client(
                    address, asynchronous=True, timeout=_CONNECT, set_as_default=False
                )
            except (OSError, TimeoutError, ValueError) as error:
                raise BadInput(
                    f"No Dask scheduler answers at {on}: {error}",
                    hint="Start one with `dask scheduler`. See docs/cluster.md.",
                ) from error
            place = cls(project, purse, client, on, patience)
            place._hearing = asyncio.create_task(place._hear())
            try:
                yield place
            finally:
                place._hearing.cancel()
                await asyncio.gather(
                    place._hearing, *place._answering, return_exceptions=True
                )
                await client.close()

    async def carry_out(self, order: RunOrder, tell: Tell) -> Ending:
        job = order.job
        if job.variant:
            raise BadInput(
                "Models are compared only on this machine", hint="Leave out `--on`."
            )
        ticket = self.project.tickets.find_slug(job.slug)
        config = of_role(config_without_user(self.project), "executor")
        if job.model:
            config = replace(config, model=job.model)
        settings = settings_to_send(config, self.project.root)
        async with self._busy:
            own = await open_own_tree(self.project, ticket)
            author, project = await author_of(own), await project_id(own)
        desk = Desk(self.project, own, settings, author, self.purse, tell, self._busy)
        self._desks[job.name] = desk
        task = Order(
            ticket=job.name,
            project=project,
            version=VERSION,
            inbox=self._inbox,
            patience=self.patience,
        ).told()
        try:
            over = await self._carried_out(job.name, desk, task)
        finally:
            del self._desks[job.name]
            for queue in self._answers.pop(job.name, {}).values():
                queue.close()
            await asyncio.shield(desk.end())
        return Ending(ExitCode(over.exit_code), over.words, over.budget_used_up)

    async def _carried_out(self, name: str, desk: Desk, order: dict[str, Any]) -> Over:
        for _ in range(_TRIES):
            good = await self._expect_workers(desk.tell)
            key = f"cdd-{name}-{uuid.uuid4().hex}"
            future = self.client.submit(
                carry_out, order, key=key, pure=False, workers=good or None
            )
            try:
                over = await self._end_of(future, desk, good)
            except asyncio.CancelledError:
                desk.is_stopping = True
                with suppress(TimeoutError, asyncio.CancelledError):
                    await asyncio.wait_for(
                        _settled(future), self.patience if desk.attempt else 0.1
                    )
                raise
            finally:
                desk.let_go()
                with suppress(OSError):
                    await future.cancel()
            if over is None:
                continue
            if not over.not_here:
                return over
            self.refused[over.worker] = over.words
            text = f"{name} cannot run on {over.worker}: {over.words}"
            desk.tell(to_json(Notice(text, Tone.WARNING, kind=NoticeKind.NO_WORKER)))
        raise CddError(f"{name} was sent to workers {_TRIES} times and never finished")

    async def _end_of(self, future: Future, desk: Desk, good: list[str]) -> Over | None:
        """The end of a task; None: it is to be given out again. Raises `CddError`."""
        settled = asyncio.ensure_future(_settled(future))
        try:
            while not (await asyncio.wait([settled], timeout=_LOOK))[0]:
                if self._hearing is not None and self._hearing.done():
                    # a fault: without this, no worker would get an answer
                    self._hearing.result()
                with suppress(OSError):
                    workers = await self._workers()
                    if good and not workers.intersection(good):
                        return None  # Dask would wait for just these
                    if not workers and not desk.worker and not self._told_of_none:
                        text = (
                            f"The cluster at {self.on} has no worker yet. Tickets wait"
                            " for one."
                        )
                        desk.tell(
                            to_json(
                                Notice(text, Tone.WARNING, kind=NoticeKind.NO_WORKER)
                            )
                        )
                    self._told_of_none = not workers
        finally:
            settled.cancel()
        if future.status == "finished":
            over: Over = heard(await future.result(), Over)
            return over if over.attempt in (0, desk.attempt) or over.not_here else None
        if future.status == "error":
            error = await future.exception()
            if isinstance(error, ClientGone):
                return None
            if isinstance(error, KilledWorker):
                raise CddError(
                    f"{error.allowed_failures + 1} workers died while running it",
                    hint=(
                        "Check their logs: the ticket may need more memory than they"
                        " have."
                    ),
                )
            raise CddError(f"The worker failed: {type(error).__name__}: {error}")
        if not await self._is_connected():
            raise CddError(
                f"The scheduler at {self.on} has stopped",
                hint="All results so far are kept. Run the same command again to"
                " resume.",
            )
        return None

    async def _is_connected(self) -> bool:
        for _ in range(int(_CONNECT)):
            if self.client.status == "running":
                return True
            await asyncio.sleep(1.0)
        return False

    async def _expect_workers(self, tell: Tell) -> list[str]:
        """The workers that a task may go to; empty: to any. Raises `BadInput` where all
        are refused.
        """
        known = await self._workers()
        new = known - self._asked
        if new:
            with suppress(TimeoutError):
                asking = self.client.run(version, workers=[*new], on_error="return")
                for worker, answer in (await asyncio.wait_for(asking, _PROBE)).items():
                    self._asked.add(worker)
                    if answer != VERSION:
                        has = (
                            f"cdd {answer}"
                            if isinstance(answer, str)
                            else "a cdd without cluster support"
                        )
                        self.refused[worker] = f"it has {has}, and this is {VERSION}"
                        text = (
                            f"The worker {worker} is not used: {self.refused[worker]}."
                        )
                        tell(
                            to_json(
                                Notice(text, Tone.WARNING, kind=NoticeKind.NO_WORKER)
                            )
                        )
        good = known - self.refused.keys()
        if known and not good:
            why = "; ".join(
                f"{worker}: {self.refused[worker]}" for worker in sorted(known)
            )
            raise BadInput(f"No worker can run it ({why})")
        return sorted(good) if known & self.refused.keys() else []

    async def _workers(self) -> set[str]:
        """The addresses of those that the scheduler has now."""
        return {*await self.client.nthreads()}

    async def _hear(self) -> None:
        """Answer what workers ask, each as soon as it comes."""
        inbox = None
        while True:
            try:
                inbox = inbox or await Queue(self._inbox, client=self.client)
                envelope = await inbox.get()
            except (
                OSError,
                KeyError,
                # the scheduler is gone, and perhaps comes back, without the queues that
                # it had
            ):
                inbox = None
                self._answers.clear()
                await asyncio.sleep(_AGAIN)
                continue
            task = asyncio.create_task(self._answer(envelope))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)

    async def _answer(self, envelope: dict[str, Any]) -> None:
        desk, name = self._desks.get(envelope["ticket"]), envelope["answer_to"]
        answers = self._answers.setdefault(envelope["ticket"], {}) if desk else {}
        answer = await desk.answer(envelope["question"]) if desk else {"gone": True}
        with suppress(OSError, KeyError):  # who has asked will give up
            if name not in answers:
                answers[name] = await Queue(name, client=self.client)
            await answers[name].put({"number": envelope["number"], "answer": answer})
            if answer.get("gone"):
                answers.pop(name).close()


async def _settled(future: Future) -> None:
    await future.exception()  # of one that is cancelled, too


@asynccontextmanager
async def _scheduler(root: Path, on: str, at_once: int) -> AsyncIterator[str]:
    """The address of the scheduler; of a cluster on this machine, which is ended
    then.
    """
    if on != LOCAL:
        yield on
        return
    cluster = await LocalCluster(
        n_workers=at_once,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        asynchronous=True,
        silence_logs=logging.CRITICAL,
        env={ENVIRONMENT: str(root)},
        preload=["cdd_agent.cluster.local_worker"],
    )
    try:
        yield cluster.scheduler_address
    finally:
        await cluster.close()
