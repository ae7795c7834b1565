"""A conversation with a model that writes a document. Each message is saved at once, so
a kill loses at most the current reply.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

from msgspec import Struct

from cdd_agent.agents.attachments import LineWithFiles, attach_files, room_for_files
from cdd_agent.agents.store import AgentFile
from cdd_agent.dialogue.fitted_prompt import FittedPrompt
from cdd_agent.dialogue.redacted_events import RedactedEvents
from cdd_agent.dialogue.structured import Check, Structured, ask_structured
from cdd_agent.dialogue.token_budget import Omitted
from cdd_agent.dialogue.turns import Added
from cdd_agent.llm.port import Model
from cdd_agent.text.redaction import Redactor

Notes = TypeVar("Notes", bound=Struct)
Reply = TypeVar("Reply", bound=Struct)


def _keep_spelling(value: Any) -> Any:
    return value


class ReplyForm(Struct, Generic[Reply], frozen=True):
    kind: type[Reply]
    check: Check[Reply]
    respell: Callable[[Any], Any] = _keep_spelling
    """Corrects the decoded JSON to the spelling of `kind`."""


class DocumentConversation(Generic[Notes]):
    """The base of the conversations of Socrates and the Planner."""

    def __init__(
        self, file: AgentFile[Notes], root: Path, events: RedactedEvents
    ) -> None:
        """`file` contains the notes, and holds the ticket's lock until it is closed."""
        self.file = file
        self.root = root
        self.events = events
        self.emit = events.emit
        self._omitted = Omitted()

    def close(self) -> None:
        self.file.close()

    @property
    def redactor(self) -> Redactor:
        return self.file.redactor

    async def attach_files(
        self, line: str, model: Model, *, takes_pictures: bool = True
    ) -> LineWithFiles:
        """Attach the files that a line mentions, and report them."""
        sent = await asyncio.to_thread(
            attach_files,
            self.root,
            line,
            room_for_files(model),
            takes_pictures=takes_pictures,
        )
        for notice in sent.notices:
            self.emit(notice)
        return sent

    async def request_reply(
        self,
        prompt: FittedPrompt,
        form: ReplyForm[Reply],
        save: Callable[[Added], None],
    ) -> Structured[Reply]:
        """Report the prompt, and ask the model until its reply passes the check. `save`
        receives each message. Raises the errors of `ask_structured`.
        """
        for notice in self._omitted.new_notices(prompt.left_out):
            self.emit(notice)
        self.emit(prompt.made)
        return await ask_structured(
            prompt.dialogue,
            prompt.messages,
            form.kind,
            check=form.check,
            keep=save,
            respell=form.respell,
        )
