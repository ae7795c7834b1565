"""Carry out tickets on other machines, as tasks of Dask distributed. The scheduler
gives each ticket to a worker, and to another one if a worker dies.
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

import dask.config
from distributed import Client, Future, KilledWorker, LocalCluster, Queue
from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.cluster.dask_task import report_version, run_ticket
from cdd_agent.cluster.desk import Desk
from cdd_agent.cluster.equipment import ENVIRONMENT
from cdd_agent.cluster.messages import (
    ClientGone,
    WorkerEnd,
    WorkerOrder,
    decode_message,
)
from cdd_agent.cluster.sent_facts import (
    Sender,
    author_of,
    project_id,
    settings_to_send,
)
from cdd_agent.errors import BadInput, CddError
from cdd_agent.events.notices import Notice, NoticeKind, Tone
from cdd_agent.events.stream import to_json
from cdd_agent.fleet.job import Ending
from cdd_agent.fleet.local_runs import folder_of
from cdd_agent.fleet.order import OnRunEvent, RunOrder
from cdd_agent.llm.purse import Purse
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.session.open_project import Project, config_without_user
from cdd_agent.settings.models import of_role
from cdd_agent.version import VERSION
from cdd_agent.wiring.runs import open_own_tree

LOCAL = "local"
PATIENCE = "CDD_CLUSTER_PATIENCE"
"""Variable with the seconds without an answer after which a worker considers its client
dead.
"""
_PATIENCE = 60.0
_TRIES = 5
"""Submissions of a ticket, except to unfit workers and after deaths of workers."""
_CHECK_SECONDS = 5.0
"""Seconds between two checks of the cluster."""
_RECONNECT_SECONDS = 1.0
_CONNECT_SECONDS = 15.0
_VERSION_SECONDS = 10.0

_QUIET_WORKERS = {
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.admin.tick.interval": "500ms",
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.terminate": False,
    "distributed.worker.profile.enabled": False,
}
"""Dask settings for workers on this machine, which only wait for a process: 4 of them
take 1.5 % of a core instead of 10 %.
"""


class ClusterPlace(Struct):
    """The workers of one Dask cluster. Tickets without a free worker wait with the
    scheduler.
    """

    project: Project
    purse: Purse
    client: Client
    address: str
    """The scheduler's address, or `local`, as the user gave it."""
    patience: float
    refused: dict[str, str] = field(default_factory=dict)
    """The workers that get no tickets, with the reasons."""
    _desks: dict[str, Desk] = field(default_factory=dict)
    _sender: Sender | None = None
    """The same for all tickets; None until the first one is opened."""
    _busy: asyncio.Semaphore = field(
        default_factory=lambda: asyncio.Semaphore(max(2, os.cpu_count() or 2))
    )
    _inbox: str = field(default_factory=lambda: f"cdd-inbox-{uuid.uuid4().hex}")
    _checked_workers: set[str] = field(default_factory=set)
    """Workers whose version is known."""
    _has_warned: bool = False
    """True after the warning that the cluster has no worker."""
    _answer_queues: dict[str, dict[str, Queue]] = field(default_factory=dict)
    """The workers' queues, by the name of the run."""
    _answering: set[asyncio.Task[None]] = field(default_factory=set)
    _listening: asyncio.Task[None] | None = None

    @classmethod
    @asynccontextmanager
    async def open(
        cls, project: Project, purse: Purse, address: str, workers: int
    ) -> AsyncIterator[ClusterPlace]:
        """Connect to the scheduler at an address, or start `workers` on this machine
        (`local`). Raises `BadInput`.
        """
        try:
            patience = float(os.environ.get(PATIENCE) or _PATIENCE)
        except ValueError as error:
            raise BadInput(
                f"{PATIENCE} is not a number of seconds",
                refusal=Refusal.WORKER_UNUSABLE,
            ) from error
        async with _open_scheduler(project.root, address, workers) as scheduler:
            try:
                client = await Client(
                    scheduler,
                    asynchronous=True,
                    timeout=_CONNECT_SECONDS,
                    set_as_default=False,
                )
            except (OSError, TimeoutError, ValueError, TypeError) as error:
                # a `TypeError`: Dask has no certificate for an address with TLS
                raise BadInput(
                    f"No Dask scheduler answers at {address}: {error}",
                    hint="Start one with `dask scheduler`."
                    " See docs/how-to/other-machines.md.",
                    refusal=Refusal.WORKER_UNUSABLE,
                ) from error
            place = cls(project, purse, client, address, patience)
            place._listening = asyncio.create_task(place._listen())
            try:
                yield place
            finally:
                place._listening.cancel()
                await asyncio.gather(
                    place._listening, *place._answering, return_exceptions=True
                )
                await client.close()

    async def carry_out(self, order: RunOrder, on_event: OnRunEvent) -> Ending:
        """See `Place`."""
        job = order.job
        if job.variant:
            raise BadInput(
                "Models are compared only on this machine",
                hint="Leave out `--on`.",
                refusal=Refusal.WORKER_UNUSABLE,
            )
        desk, project = await self._open_desk(order, on_event)
        self._desks[job.name] = desk
        task = WorkerOrder(job.name, project, VERSION, self._inbox, self.patience)
        try:
            end = await self._run_until_done(job.name, desk, task.to_values())
        finally:
            del self._desks[job.name]
            for queue in self._answer_queues.pop(job.name, {}).values():
                queue.close()
            await asyncio.shield(desk.close())
        return desk.ending(end)

    async def _open_desk(
        self, order: RunOrder, on_event: OnRunEvent
    ) -> tuple[Desk, str]:
        """Open the desk of a run. Also return the id of the project."""
        ticket = self.project.tickets.find_slug(order.job.slug)
        config = of_role(config_without_user(self.project), "executor")
        if order.job.model:
            config = replace(config, model=order.job.model)
        settings = settings_to_send(config, self.project.root)
        async with self._busy:
            own = await open_own_tree(self.project, ticket)
            if self._sender is None:
                self._sender = Sender(await author_of(own), await project_id(own))
        desk = Desk(
            project=self.project,
            own=own,
            settings=settings,
            author=self._sender.author,
            purse=self.purse,
            waits=folder_of(self.project.root) / "waits.json",
            on_event=on_event,
            busy=self._busy,
        )
        return desk, self._sender.project

    async def _run_until_done(
        self, name: str, desk: Desk, order: dict[str, Any]
    ) -> WorkerEnd:
        """Submit a run until a worker has carried it out. A worker that is unfit gets
        no further tickets, so its answer is no try. Raises `CddError`.
        """
        tries = 0
        while tries < _TRIES:
            chosen = await self._choose_workers(desk.on_event)
            future = self.client.submit(
                run_ticket,
                order,
                key=f"cdd-{name}-{uuid.uuid4().hex}",
                pure=False,
                workers=chosen or None,
            )
            try:
                end = await self._wait_for_end(future, desk, chosen)
            except asyncio.CancelledError:
                await self._stop(future, desk)
                raise
            finally:
                desk.forget_worker()
                with suppress(OSError):
                    await future.cancel()
            if end is None:
                tries += 1
                continue
            if not end.is_unfit:
                return end
            self.refused[end.worker] = end.reason
            _warn(desk.on_event, f"{name} cannot run on {end.worker}: {end.reason}")
        raise CddError(
            f"{name} was sent to workers {_TRIES} times and never finished",
            refusal=Refusal.WORKER_UNUSABLE,
        )

    async def _stop(self, future: Future, desk: Desk) -> None:
        desk.is_stopping = True
        seconds = self.patience if desk.attempt else 0.1
        with suppress(TimeoutError, asyncio.CancelledError):
            await asyncio.wait_for(_settle(future), seconds)

    async def _wait_for_end(
        self, future: Future, desk: Desk, chosen: list[str]
    ) -> WorkerEnd | None:
        """Return the end of a task; None if it must be submitted again. Raises
        `CddError`.
        """
        settled = asyncio.ensure_future(_settle(future))
        try:
            while not (await asyncio.wait([settled], timeout=_CHECK_SECONDS))[0]:
                if not await self._can_be_run(desk, chosen):
                    return None
        finally:
            settled.cancel()
        if future.status == "finished":
            end: WorkerEnd = decode_message(await future.result(), WorkerEnd)
            is_current = end.attempt in (0, desk.attempt)
            return end if is_current or end.is_unfit else None
        if future.status == "error":
            error = await future.exception()
            if isinstance(error, ClientGone):
                return None
            raise _explain(error) from error
        if not await self._is_connected():
            raise CddError(
                f"The scheduler at {self.address} has stopped",
                hint="All results so far are kept. Run the same command again to"
                " resume.",
                refusal=Refusal.WORKER_UNUSABLE,
            )
        return None

    async def _can_be_run(self, desk: Desk, chosen: list[str]) -> bool:
        """False if all chosen workers are gone: Dask would wait for them. Warns if
        there is no worker at all.
        """
        if self._listening is not None and self._listening.done():
            # raises its error: without the listener, no worker gets an answer
            self._listening.result()
        try:
            workers = await self._find_workers()
        except OSError:
            return True
        await desk.release_lost_worker(workers, self.patience)
        if chosen and not workers.intersection(chosen):
            return False
        if not workers and not desk.worker and not self._has_warned:
            text = f"The cluster at {self.address} has no worker yet. Tickets wait"
            _warn(desk.on_event, f"{text} for one.")
        self._has_warned = not workers
        return True

    async def _is_connected(self) -> bool:
        for _ in range(int(_CONNECT_SECONDS)):
            if self.client.status == "running":
                return True
            await asyncio.sleep(1.0)
        return False

    async def _choose_workers(self, on_event: OnRunEvent) -> list[str]:
        """Return the workers that a task may use; an empty list means any. Raises
        `BadInput` if all are refused.
        """
        workers = await self._find_workers()
        await self._check_versions(workers - self._checked_workers, on_event)
        fit = workers - self.refused.keys()
        if fit == workers:
            return []
        if not fit:
            reasons = "; ".join(
                f"{worker}: {self.refused[worker]}" for worker in sorted(workers)
            )
            raise BadInput(
                f"No worker can run it ({reasons})", refusal=Refusal.WORKER_UNUSABLE
            )
        return sorted(fit)

    async def _check_versions(self, workers: set[str], on_event: OnRunEvent) -> None:
        if not workers:
            return
        asking = self.client.run(report_version, workers=[*workers], on_error="return")
        try:
            answers = await asyncio.wait_for(asking, _VERSION_SECONDS)
        except TimeoutError:
            return
        for worker, version in answers.items():
            self._checked_workers.add(worker)
            if version == VERSION:
                continue
            program = "a cdd without cluster support"
            if isinstance(version, str):
                program = f"cdd {version}"
            self.refused[worker] = f"it has {program}, and this is {VERSION}"
            _warn(on_event, f"The worker {worker} is not used: {self.refused[worker]}.")

    async def _find_workers(self) -> set[str]:
        return {*await self.client.nthreads()}

    async def _listen(self) -> None:
        inbox = None
        while True:
            try:
                inbox = inbox or await Queue(self._inbox, client=self.client)
                envelope = await inbox.get()
            except (OSError, KeyError):
                # the scheduler is gone, and may come back without its queues
                inbox = None
                self._answer_queues.clear()
                await asyncio.sleep(_RECONNECT_SECONDS)
                continue
            task = asyncio.create_task(self._answer(envelope))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)

    async def _answer(self, envelope: dict[str, Any]) -> None:
        desk, name = self._desks.get(envelope["ticket"]), envelope["answer_to"]
        queues, answer = dict[str, Queue](), dict[str, Any](gone=True)
        if desk is not None:
            queues = self._answer_queues.setdefault(envelope["ticket"], {})
            answer = {**await desk.answer(envelope["question"])}
        # a worker without an answer gives up
        with suppress(OSError, KeyError):
            if name not in queues:
                queues[name] = await Queue(name, client=self.client)
            await queues[name].put({"number": envelope["number"], "answer": answer})
            if answer.get("gone"):
                queues.pop(name).close()


def _warn(on_event: OnRunEvent, text: str) -> None:
    on_event(to_json(Notice(text, Tone.WARNING, kind=NoticeKind.NO_WORKER)))


def _explain(error: BaseException) -> CddError:
    if isinstance(error, KilledWorker):
        return CddError(
            f"{error.allowed_failures + 1} workers died while running it",
            hint="Check their logs: the ticket may need more memory than they have.",
            refusal=Refusal.WORKER_UNUSABLE,
        )
    return CddError(
        f"The worker failed: {type(error).__name__}: {error}",
        refusal=Refusal.WORKER_UNUSABLE,
    )


async def _settle(future: Future) -> None:
    """Wait for the end of a task, even a cancelled one."""
    await future.exception()


@asynccontextmanager
async def _open_scheduler(root: Path, address: str, workers: int) -> AsyncIterator[str]:
    """Yield the address of the scheduler. A cluster on this machine is closed at the
    end.
    """
    if address != LOCAL:
        yield address
        return
    dask.config.set(_QUIET_WORKERS)
    cluster = await LocalCluster(
        n_workers=workers,
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
