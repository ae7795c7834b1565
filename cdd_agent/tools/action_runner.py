"""Doing actions: each ends in one `ActionResult`, whatever happens."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from cdd_agent.actions.model import (
    Action,
    ActionFailed,
    ActionResult,
    ActionStatus,
    ChatWithUserAction,
    CreateFileAction,
    EditAction,
    ExecuteAction,
    FileAlreadyExistsError,
    MultipleMatchesFoundError,
    ReadAction,
    ResearchAction,
    SearchTextNotFoundError,
)
from cdd_agent.edits.build import creation, edit
from cdd_agent.edits.changes import ChangeSet
from cdd_agent.errors import CddError
from cdd_agent.files.read import read_source
from cdd_agent.process.policy import CommandRunner
from cdd_agent.process.run import Hear, unheard
from cdd_agent.web.search import IWebSearcher, research

if TYPE_CHECKING:
    from cdd_agent.web.pages import PageReader

Permit = Callable[[ChangeSet], Awaitable[tuple[ChangeSet, str]]]
"""Which of these changes may be written, and what is to be said of the others."""


async def _permitted(changes: ChangeSet) -> tuple[ChangeSet, str]:
    return changes, ""


class ActionRunner(Struct, frozen=True):
    """Does actions in a project, one at a time. Nothing carries over from one to the
    next.
    """

    root: Path
    commands: CommandRunner
    pages: "PageReader"
    searcher: IWebSearcher
    ask: Callable[[str], Awaitable[str]]
    """Asks the person; raises `NotApproved` where there is nobody."""
    protected: Callable[[Path], bool] = lambda place: False
    """Tells of a resolved place that no action may write to it."""
    permit: Permit = _permitted
    wrote: Callable[[ChangeSet], None] = lambda changes: None
    """Is told of changes that were written."""
    hear: Hear = unheard
    """Is given the output of commands as it comes."""

    async def run(self, action: Action) -> ActionResult:
        """Do it. A failure is a result, not an exception."""
        try:
            return await self._result(action)
        except CddError as error:
            why = "\n".join(filter(None, (error.message, error.hint)))
            return ActionResult(
                action, ActionStatus.FAILURE, self._present_content(action, error), why
            )

    async def _result(self, action: Action) -> ActionResult:
        match action:
            case ExecuteAction(command=command, cwd=cwd, env=env):
                result = await self.commands.run(
                    command, cwd=cwd, env=env, hear=self.hear
                )
                if result.return_code == 0 and not result.timed_out:
                    return ActionResult(
                        action,
                        ActionStatus.SUCCESS,
                        result.stdout,
                        result.stderr,
                        result.return_code,
                    )
                return ActionResult(
                    action,
                    ActionStatus.FAILURE,
                    result.stdout,
                    result.failure,
                    result.return_code,
                )
            case CreateFileAction(file_path=path, content=content):
                changes = await asyncio.to_thread(
                    creation, self.root, path, content, self.protected
                )
                return await self._write(action, changes)
            case EditAction(file_path=path, find=find, replace=replace):
                changes = await asyncio.to_thread(
                    edit, self.root, path, find, replace, self.protected
                )
                return await self._write(action, changes)
            case ReadAction(source=source) if action.is_remote():
                return ActionResult(
                    action,
                    ActionStatus.SUCCESS,
                    (await self.pages.read(source.strip())).as_text(),
                )
            case ReadAction(source=source) if "://" in source:
                raise ActionFailed(
                    f"{source} cannot be read: only http and https addresses can"
                )
            case ReadAction(source=source):
                text = await asyncio.to_thread(read_source, self.root, source)
                return ActionResult(action, ActionStatus.SUCCESS, text.as_text())
            case ChatWithUserAction(prompt=prompt):
                return ActionResult(
                    action, ActionStatus.COMPLETED, await self.ask(prompt)
                )
            case ResearchAction(queries=queries):
                report = await research(self.searcher, queries)
                return ActionResult(action, ActionStatus.SUCCESS, report.as_text())
            case _:
                raise TypeError(
                    f"{action.action_type} is not done by anyone; only reports hold it"
                )

    async def _write(self, action: Action, changes: ChangeSet) -> ActionResult:
        permitted, said = (
            await self.permit(changes) if changes.changes else (changes, "")
        )
        if changes.changes and not permitted.changes:
            raise ActionFailed(f"{said}; nothing was written")
        permitted.apply(self.root)
        self.wrote(permitted)
        return ActionResult(
            action,
            ActionStatus.SUCCESS,
            "\n".join(filter(None, (*permitted.notes, said))),
        )

    def _present_content(self, action: Action, error: CddError) -> str:
        """The file as `read` would show it, where whoever asked for the change needs to
        see it to do better.
        """
        needs_it = (
            FileAlreadyExistsError | SearchTextNotFoundError | MultipleMatchesFoundError
        )
        if not isinstance(error, needs_it) or not isinstance(
            action, CreateFileAction | EditAction
        ):
            return ""
        try:
            return read_source(self.root, action.file_path).text
        except CddError as unreadable:
            return unreadable.message
