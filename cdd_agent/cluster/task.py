"""The task that Dask runs on a worker, and the line on which it asks the client: two
queues of Dask's.

All traffic goes through the scheduler, over connections that workers and client opened,
so neither must be reachable by the other. A question waits for its
answer, so nothing piles up anywhere.
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

from cdd_agent.cluster.words import Answer, ClientFailed, ClientGone
from cdd_agent.cluster.worker import carry_out as carried_out
from cdd_agent.version import VERSION

_LOOK = 5.0
"""Seconds between two looks whether the answer is still wanted."""


def carry_out(order: dict[str, Any]) -> dict[str, Any]:
    """Carry a ticket's run out; how it ended, as an `Over` in plain values."""
    worker = get_worker()
    line = Line(str(order["inbox"]), str(order["ticket"]), float(order["patience"]))
    try:
        scratch = Path(worker.local_directory)
        over = asyncio.run(carried_out(order, line.ask, scratch, worker.address))
        return over.told()
    finally:
        line.close()


def version() -> str:
    """The worker's version of this program."""
    return VERSION


class Line:
    """One task's way to the client."""

    def __init__(self, inbox: str, ticket: str, patience: float) -> None:
        self._ticket, self._patience = ticket, patience
        client = get_client()
        self._name = f"cdd-answers-{uuid.uuid4().hex}"
        self._answers = Queue(self._name, client=client)
        self._inbox = Queue(inbox, client=client)
        self._number = 0
        self._turn = asyncio.Lock()
        self._closed = threading.Event()

    async def ask(self, question: Mapping[str, Any]) -> Answer:
        async with self._turn:
            asking = asyncio.ensure_future(
                asyncio.to_thread(self._answer, dict(question))
            )
            try:
                answer = await asyncio.shield(asking)
            except asyncio.CancelledError:
                # else it would take the answer to the next question
                await asyncio.wait([asking])
                raise
        if answer.get("gone"):
            raise ClientGone("the client has given the ticket to another worker")
        if "error" in answer:
            raise ClientFailed(str(answer["error"]))
        return answer

    def _answer(self, question: dict[str, Any]) -> Answer:
        self._number += 1
        until = time.monotonic() + self._patience
        envelope = {
            "ticket": self._ticket,
            "number": self._number,
            "answer_to": self._name,
            "question": question,
        }
        try:
            self._inbox.put(envelope, timeout=self._patience)
            while not self._closed.is_set() and (left := until - time.monotonic()) > 0:
                try:
                    answer = self._answers.get(timeout=min(left, _LOOK))
                except TimeoutError:
                    continue
                if answer["number"] == self._number:
                    return dict(answer["answer"])
        except (OSError, TimeoutError) as error:
            raise ClientGone(f"the scheduler does not answer: {error}") from error
        raise ClientGone(f"the client did not answer for {self._patience:g} s")

    def close(self) -> None:
        self._closed.set()
        for queue in (self._answers, self._inbox):
            queue.close()
