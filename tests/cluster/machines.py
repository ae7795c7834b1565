"""A cluster without Dask: the worker's side and the client's in one process, and a line between them that a test can cut."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cdd_agent.cluster.desk import Desk
from cdd_agent.cluster.place import author_of, project_id, settings_to_send
from cdd_agent.cluster.worker import carry_out
from cdd_agent.cluster.words import Answer, ClientGone, Order, Over
from cdd_agent.config import of_role
from cdd_agent.fleet.place import Ending
from cdd_agent.llm.budget import Limit
from cdd_agent.version import VERSION
from cdd_agent.wiring import open_own_tree, open_project
from tests.projects import SLUG, Sandbox


@dataclass
class Line:
    """Brings questions to a desk. `sent` is all that went over it, in both directions."""

    desk: Desk
    sent: list[object] = field(default_factory=list)
    cut: Callable[[Mapping[str, Any]], bool] = lambda question: False
    """Whether nothing is answered any more, from this question on."""
    is_cut: bool = False

    async def ask(self, question: Mapping[str, Any]) -> Answer:
        self.is_cut = self.is_cut or self.cut(question)
        if self.is_cut:
            raise ClientGone("cut")
        answer = await self.desk.answer(question, 0.0)
        self.sent += [question, answer]
        if answer.get("gone"):
            raise ClientGone("gone")
        assert "error" not in answer, answer
        return answer
