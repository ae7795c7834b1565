"""The task that Dask runs on a worker, and the worker's connection to the client
through two Dask queues.

All traffic goes through the scheduler, over connections that workers and client opened,
so neither must be reachable by the other. A worker waits for each answer, so nothing
piles up.
"""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from distributed import Queue, get_client, get_worker

from cdd_agent.cluster.messages import Answer, ClientFailed, ClientGone
from cdd_agent.cluster.worker import carry_out
from cdd_agent.version import VERSION

_PAUSE = 5.0
"""Seconds between two checks whether the answer is still wanted."""


def run_ticket(order: dict[str, Any]) -> dict[str, Any]:
    """Carry out a ticket's run. `order` is a `WorkerOrder`, the result a `WorkerEnd`,
    both as plain values.
    """
    worker = get_worker()
    connection = ClientConnection(
        str(order["inbox"]), str(order["ticket"]), float(order["patience"])
    )
    try:
        scratch = Path(worker.local_directory)
        end = asyncio.run(carry_out(order, connection.ask, scratch, worker.address))
        return end.to_values()
    finally:
        connection.close()


def report_version() -> str:
    return VERSION


class ClientConnection:
    def __init__(self, inbox: str, ticket: str, patience: float) -> None:
        self._ticket, self._patience = ticket, patience
        client = get_client()
        self._name = f"cdd-answers-{uuid.uuid4().hex}"
        self._answers = Queue(self._name, client=client)
        self._inbox = Queue(inbox, client=client)
        self._number = 0
        self._turn = asyncio.Lock()
        self._is_closed = threading.Event()

    async def ask(self, question: Mapping[str, Any]) -> Answer:
        """See `Ask`."""
        async with self._turn:
            asking = asyncio.ensure_future(
                asyncio.to_thread(self._ask_in_thread, dict(question))
            )
            try:
                answer = await asyncio.shield(asking)
            except asyncio.CancelledError:
                # otherwise it would receive the answer to the next question
                await asyncio.wait([asking])
                raise
        if answer.get("gone"):
            raise ClientGone("the client gave the ticket to another worker")
        if "error" in answer:
            raise ClientFailed(str(answer["error"]))
        return answer

    def _ask_in_thread(self, question: dict[str, Any]) -> Answer:
        self._number += 1
        envelope = {
            "ticket": self._ticket,
            "number": self._number,
            "answer_to": self._name,
            "question": question,
        }
        end = time.monotonic() + self._patience
        try:
            self._inbox.put(envelope, timeout=self._patience)
            while not self._is_closed.is_set():
                remaining = end - time.monotonic()
                if remaining <= 0:
                    break
                try:
                    answer = self._answers.get(timeout=min(remaining, _PAUSE))
                except TimeoutError:
                    continue
                if answer["number"] == self._number:
                    return dict(answer["answer"])
        except (OSError, TimeoutError) as error:
            raise ClientGone(f"the scheduler does not answer: {error}") from error
        raise ClientGone(f"the client did not answer for {self._patience:g} s")

    def close(self) -> None:
        self._is_closed.set()
        for queue in (self._answers, self._inbox):
            queue.close()
