"""Machines without Dask: the worker's side and the client's in one process, and a line
between them that can be cut.
"""

import asyncio
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cdd_agent.cluster.desk import Desk
from cdd_agent.cluster.messages import (
    Answer,
    ClientFailed,
    ClientGone,
    WorkerEnd,
    WorkerOrder,
    decode_message,
)
from cdd_agent.cluster.sent_facts import author_of, project_id, settings_to_send
from cdd_agent.cluster.worker import carry_out
from cdd_agent.llm.budget import Limit
from cdd_agent.llm.port import Request
from cdd_agent.llm.purse import Purse
from cdd_agent.session.open_project import open_project
from cdd_agent.settings.models import of_role
from cdd_agent.version import VERSION
from cdd_agent.wiring.runs import open_own_tree
from tests.llm.server import Answer as ModelAnswer
from tests.support.projects import SLUG, Sandbox, says
from tests.travel.copies import STEPS, git

Question = Mapping[str, Any]


def made_project(root: Path) -> Sandbox:
    """A project under git, whose ticket of three steps is not committed."""
    root.mkdir(parents=True)
    git(root, "init", "--quiet", "--initial-branch=main")
    (root / "README").write_text("words\n")
    (root / ".gitignore").write_text("local/\n")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message=A project")
    return Sandbox(root.resolve()).write(*STEPS)


def good(request: Request) -> ModelAnswer:
    """The file that the step is about, as it has to be."""
    text = "\n".join(message.content for message in request.messages)
    path = re.findall(r"# Step \d+ of \d+: Make (\S+)", text)[-1]
    return ModelAnswer(says(path, "good"))


async def opened_desk(
    sandbox: Sandbox,
    tell: Callable[[Question], None] = lambda event: None,
    waits: Path | None = None,
) -> Desk:
    project = open_project(sandbox.root, sandbox.flags)
    own = await open_own_tree(project, project.tickets.find(SLUG))
    settings = settings_to_send(of_role(project.config, "executor"), project.root)
    budget = project.config.budget
    purse = Purse(Limit(budget.tokens, budget.usd))
    author = await author_of(own)
    waits = waits or project.root.parent / "waits.json"
    return Desk(
        project, own, settings, author, purse, waits, tell, asyncio.Semaphore(2)
    )


@dataclass
class Machine:
    """A worker, whose line to the client is cut when `cut` says so of a question: it
    has died, for all that the client sees. `said` is all that went over the line, in
    both directions.
    """

    folder: Path
    desk: Desk
    cut: Callable[[Question], bool] = lambda question: False
    said: list[Mapping[str, Any]] = field(default_factory=list)
    is_dead: bool = False

    async def ask(self, question: Question) -> Answer:
        self.is_dead = self.is_dead or self.cut(question)
        if self.is_dead:
            raise ClientGone("the line was cut")
        answer = await self.desk.answer(question)
        self.said += [question, answer]
        if answer.get("gone"):
            raise ClientGone("somebody else has it")
        if "error" in answer:
            raise ClientFailed(str(answer["error"]))
        return answer

    async def works(self, **order: Any) -> WorkerEnd | None:
        """Carries the ticket out; None: nobody wants it any more."""
        self.folder.mkdir(parents=True, exist_ok=True)
        known: dict[str, Any] = {
            "ticket": SLUG,
            "version": VERSION,
            "inbox": "",
            "patience": 20.0,
        }
        known |= order
        if "project" not in order:
            known["project"] = await project_id(self.desk.own)
        decode_message(known, WorkerOrder)
        with suppress(ClientGone):
            return await carry_out(known, self.ask, self.folder, self.folder.name)
        return None
