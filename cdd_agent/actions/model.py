"""The one vocabulary for everything done to a project: actions, what became of each,
and the report of a run.
"""

import os
import platform
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct, to_builtins
from msgspec.structs import force_setattr

from cdd_agent.errors import CddError
from cdd_agent.forms import Written


class _Action(Struct, frozen=True, forbid_unknown_fields=True, tag_field="action"):
    @property
    def action_type(self) -> str:
        """The name of this kind of action: `execute`, `read`, ..."""
        return str(self.__struct_config__.tag)

    def details(self) -> str:
        """All else that a person should see before they say yes to it."""
        return ""

    def to_json(self) -> dict[str, Any]:
        """`{"action": ..., ...}` with the fields that say something: what `ActionPlan`
        reads.
        """
        return {
            name: value
            for name, value in to_builtins(self).items()
            if value is not None
        }


class ExecuteAction(_Action, frozen=True, tag="execute"):
    """Run one command in the project. Nothing carries over from one to the next: no
    folder, no variable.
    """

    command: Written
    cwd: str | None = None
    env: dict[str, str] | None = None

    def title(self) -> str:
        where = f" in {self.cwd}" if self.cwd else ""
        return f"run `{_one_line(self.command)}`{where}"

    def details(self) -> str:
        lines = (
            [] if _one_line(self.command) == self.command.strip() else [self.command]
        )
        return "\n".join(
            [*lines, *(f"{name}={value}" for name, value in (self.env or {}).items())]
        )


class CreateFileAction(_Action, frozen=True, tag="create_file"):
    """Create a file that does not exist yet; missing folders are made."""

    file_path: Written
    content: str = ""

    def title(self) -> str:
        count = len(self.content.splitlines())
        return f"create {self.file_path} ({count} line{'' if count == 1 else 's'})"

    def details(self) -> str:
        return self.content


class EditAction(_Action, frozen=True, tag="edit"):
    """Replace a text in a file by another. The text must be there once; white space
    around its lines may differ.
    """

    file_path: Written
    find: str
    """Empty: the whole file."""
    replace: str

    def title(self) -> str:
        return (
            f"edit {self.file_path}"
            if self.find
            else f"replace the whole of {self.file_path}"
        )

    def details(self) -> str:
        return "\n".join(
            [f"- {line}" for line in self.find.splitlines()]
            + [f"+ {line}" for line in self.replace.splitlines()]
        )


class ReadAction(_Action, frozen=True, tag="read"):
    """Read a file or a folder of the project, or a page of the web."""

    source: Written
    """A path relative to the project, or an http(s) address."""

    def is_remote(self) -> bool:
        """It is a page of the web."""
        return self.source.strip().lower().startswith(("http://", "https://"))

    def title(self) -> str:
        return f"read {self.source}"


class ChatWithUserAction(_Action, frozen=True, tag="chat_with_user"):
    """Ask the person at the other end, and take what they say as the output."""

    prompt: Written

    def title(self) -> str:
        return f"ask you: {_one_line(self.prompt)}"

    def details(self) -> str:
        return "" if _one_line(self.prompt) == self.prompt.strip() else self.prompt


class ResearchAction(_Action, frozen=True, tag="research"):
    """Search the web for one or more queries."""

    queries: Annotated[tuple[Written, ...], Meta(min_length=1)]

    def title(self) -> str:
        return f"search the web: {'; '.join(self.queries)}"


class ParsePlanAction(_Action, frozen=True, tag="parse_plan"):
    """Reading the plan itself. Only reports hold it: its failure is how a wrong plan is
    reported.
    """

    def title(self) -> str:
        return "read the plan"


Action = (
    ExecuteAction
    | CreateFileAction
    | EditAction
    | ReadAction
    | ChatWithUserAction
    | ResearchAction
    | ParsePlanAction
)
"""Something to be done, as a value: every spelling (YAML, a tool call) ends in one of
these. Each has a `title`, the action in a line for people.
"""

KINDS: dict[str, type[Action]] = {
    str(kind.__struct_config__.tag): kind
    for kind in (
        ExecuteAction,
        CreateFileAction,
        EditAction,
        ReadAction,
        ChatWithUserAction,
        ResearchAction,
    )
}
"""The actions that a plan or a model can ask for, by name."""


class ActionStatus(StrEnum):
    """The outcome of an action. `COMPLETED` is for what has no pass or fail: chat."""

    SUCCESS = "SUCCESS"
    FAILURE = "FAILURE"
    COMPLETED = "COMPLETED"


class ActionResult(Struct, frozen=True):
    """One action and what became of it. Raises `ValueError` for any other status."""

    action: Action
    status: ActionStatus
    output: str = ""
    """All that it printed, read or was told; for a failed `create_file` or `edit`, the
    file's present content.
    """
    error: str = ""
    """Why it failed; of a command that did not, what it wrote to standard error."""
    return_code: int | None = None
    """A command's; None for all else."""

    def __post_init__(self) -> None:
        force_setattr(self, "status", ActionStatus(self.status))

    def to_json(self) -> dict[str, Any]:
        code = {} if self.return_code is None else {"return_code": self.return_code}
        return {
            "action": self.action.to_json(),
            "status": str(self.status),
            "output": self.output,
            "error": self.error or None,
            **code,
        }


class RunSummary(Struct, frozen=True):
    """How a run went as a whole; `duration` in seconds."""

    status: ActionStatus
    start_time: datetime
    duration: float


class RunEnvironment(Struct, frozen=True):
    """Where a run took place."""

    os: str
    cwd: str


class ExecutionReport(Struct, frozen=True):
    """The result of every action of a plan, in its order. Raises `TypeError` for logs
    that are no results.
    """

    run_summary: RunSummary
    environment: RunEnvironment
    action_logs: Sequence[ActionResult]

    def __post_init__(self) -> None:
        logs: Any = self.action_logs
        if not isinstance(logs, list | tuple) or not all(
            isinstance(log, ActionResult) for log in logs
        ):
            raise TypeError("action_logs is a list of ActionResult")
        force_setattr(self, "action_logs", tuple(logs))

    @classmethod
    def of(
        cls,
        root: Path,
        logs: Sequence[ActionResult],
        started_at: datetime,
        duration: float,
    ) -> "ExecutionReport":
        """The report of a run in `root`: a failure if any action failed."""
        failed = any(log.status is ActionStatus.FAILURE for log in logs)
        summary = RunSummary(
            ActionStatus.FAILURE if failed else ActionStatus.SUCCESS,
            started_at,
            duration,
        )
        return cls(
            summary,
            RunEnvironment(
                f"{platform.system()} {platform.release()}", os.fspath(root)
            ),
            logs,
        )

    @property
    def failed(self) -> tuple[ActionResult, ...]:
        return tuple(
            log for log in self.action_logs if log.status is ActionStatus.FAILURE
        )

    def to_json(self) -> dict[str, Any]:
        """The report as `cdd run --json` prints it."""
        summary = self.run_summary
        return {
            "run_summary": {
                "status": str(summary.status),
                "start_time": summary.start_time.isoformat(),
                "duration": round(summary.duration, 3),
            },
            "environment": {"os": self.environment.os, "cwd": self.environment.cwd},
            "action_logs": [log.to_json() for log in self.action_logs],
        }


class ActionFailed(CddError):
    """An action could not be done. What it carries is what whoever asked for it needs
    to do better.
    """


class FileAlreadyExistsError(ActionFailed):
    """`create_file` found the file there already; nothing was written."""

    def __init__(self, file_path: str) -> None:
        super().__init__(
            f"{file_path} exists already; nothing was written",
            hint="Use `edit` to change it.",
        )
        self.file_path = file_path


class SearchTextNotFoundError(ActionFailed):
    """An edit did not find its text. `content` is the file's, unchanged; `closest`:
    lines that are alike.
    """

    def __init__(self, content: str, closest: str = "") -> None:
        near = f". The closest lines of the file are\n{closest}" if closest else ""
        super().__init__(
            f"The text to find is not in the file; nothing was changed{near}"
        )
        self.content = content
        self.closest = closest


class MultipleMatchesFoundError(ActionFailed):
    """An edit found its text more than once. `content` is the file's, unchanged."""

    def __init__(self, content: str, lines: Sequence[int] = ()) -> None:
        where = f" (lines {', '.join(map(str, lines))})" if lines else ""
        super().__init__(
            f"The text to find is in the file more than once{where}; nothing was"
            " changed",
            hint="Give more of the lines around it.",
        )
        self.content = content
        self.lines = tuple(lines)


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 100 else line[:99] + "…"
