"""Carry out actions. Each ends in one `ActionResult`, whatever happens."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
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
from cdd_agent.changes.build import creation, edit
from cdd_agent.changes.change_set import ChangeSet
from cdd_agent.errors import CddError
from cdd_agent.files.read import read_source
from cdd_agent.process.policy import IShellExecutor, execute_inside
from cdd_agent.web.search import IWebSearcher, research

if TYPE_CHECKING:
    from cdd_agent.web.pages import PageReader

Permit = Callable[[ChangeSet], Awaitable[tuple[ChangeSet, str]]]
"""Returns the changes that may be written, and a message about the others."""
Writing = Callable[[ChangeSet, str], AbstractContextManager[None]]
"""Entered while changes are written, with the title of their action. May raise
`CddError`: then nothing is written.
"""
_WITH_CONTENT = (
    FileAlreadyExistsError,
    SearchTextNotFoundError,
    MultipleMatchesFoundError,
)
"""Failures reported with the file's content, which the next attempt needs."""


async def _permit_all(changes: ChangeSet) -> tuple[ChangeSet, str]:
    return changes, ""


class ActionRunner(Struct, frozen=True):
    """Carries out actions in a project, one at a time. Actions share no state."""

    root: Path
    executor: IShellExecutor
    pages: "PageReader"
    searcher: IWebSearcher
    ask: Callable[[str], Awaitable[str]]
    """Asks the user. Raises `NotApproved` without a user."""
    protected: Callable[[Path], bool] = lambda place: False
    """True for a resolved path that no action may write to."""
    permit: Permit = _permit_all
    writing: Writing = lambda changes, title: nullcontext()
    wrote: Callable[[ChangeSet], None] = lambda changes: None
    """Receives the written changes."""

    async def run(self, action: Action) -> ActionResult:
        """Carry out an action. A failure is a result, not an exception."""
        try:
            return await self._carry_out(action)
        except CddError as error:
            reason = f"{error.message}\n{error.hint}" if error.hint else error.message
            content = await asyncio.to_thread(self._content_for, error, action)
            return ActionResult(action, ActionStatus.FAILURE, content, reason)

    async def _carry_out(self, action: Action) -> ActionResult:
        status, output = ActionStatus.SUCCESS, ""
        match action:
            case ExecuteAction():
                return await self._execute(action)
            case CreateFileAction():
                changes = await asyncio.to_thread(
                    creation,
                    self.root,
                    action.file_path,
                    action.content,
                    self.protected,
                )
                output = await self._write(changes, action.title())
            case EditAction():
                changes = await asyncio.to_thread(
                    edit,
                    self.root,
                    action.file_path,
                    action.find,
                    action.replace,
                    self.protected,
                )
                output = await self._write(changes, action.title())
            case ReadAction():
                output = await self._read(action)
            case ChatWithUserAction():
                status = ActionStatus.COMPLETED
                output = await self.ask(action.prompt)
            case ResearchAction():
                report = await research(self.searcher, action.queries)
                output = report.as_text()
            case _:
                raise TypeError(f"{action.action_type} occurs only in reports")
        return ActionResult(action, status, output)

    async def _execute(self, action: ExecuteAction) -> ActionResult:
        result = await execute_inside(
            self.root, self.executor, action.command, action.cwd, action.env
        )
        status, error = ActionStatus.FAILURE, result.failure
        if result.return_code == 0 and not result.timed_out:
            status, error = ActionStatus.SUCCESS, result.stderr
        return ActionResult(action, status, result.stdout, error, result.return_code)

    async def _read(self, action: ReadAction) -> str:
        source = action.source
        if action.is_remote():
            return (await self.pages.read(source.strip())).as_text()
        if "://" in source:
            raise ActionFailed(
                f"{source} cannot be read: only http and https addresses can"
            )
        return (await asyncio.to_thread(read_source, self.root, source)).as_text()

    async def _write(self, changes: ChangeSet, title: str) -> str:
        permitted, remark = changes, ""
        if changes.changes:
            permitted, remark = await self.permit(changes)
            if not permitted.changes:
                raise ActionFailed(f"{remark}; nothing was written")
        if permitted.changes:
            with self.writing(permitted, title):
                permitted.apply(self.root)
        self.wrote(permitted)
        remarks = [*permitted.notes, remark]
        return "\n".join(filter(None, remarks))

    def _content_for(self, error: CddError, action: Action) -> str:
        """Return the content of the action's file, as `read` shows it, or nothing."""
        if not isinstance(error, _WITH_CONTENT):
            return ""
        if not isinstance(action, CreateFileAction | EditAction):
            return ""
        try:
            return read_source(self.root, action.file_path).text
        except CddError as unreadable:
            return unreadable.message
