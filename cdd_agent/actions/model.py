"""Actions, their results, and the report of a run."""

import os
import platform
from abc import ABCMeta, abstractmethod
from collections.abc import Sequence
from copy import deepcopy
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, StructMeta, to_builtins
from msgspec.structs import force_setattr

from cdd_agent.errors import CddError
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.values.typed_values import Checked, Written, check_argument

_LONGEST_TITLE = 100

FilePath = Annotated[Written, Meta(description="In the project.")]
Folder = Annotated[str, Meta(description="Folder in the project.")]


class _AbstractStruct(StructMeta, ABCMeta):
    pass


class BaseAction(
    Checked,
    frozen=True,
    forbid_unknown_fields=True,
    tag_field="action",
    metaclass=_AbstractStruct,
):
    """Something to do in a project. Models receive the descriptions of the fields."""

    @property
    def action_type(self) -> str:
        return str(self.__struct_config__.tag)

    @abstractmethod
    def title(self) -> str:
        """Return the action in one line."""

    def details(self) -> str:
        """Return more that the user must see to approve it."""
        return ""

    def to_json(self) -> dict[str, Any]:
        """Return the form that `ActionPlan` reads."""
        written: dict[str, Any] = to_builtins(self)
        return {name: value for name, value in written.items() if value is not None}


class ExecuteAction(BaseAction, frozen=True, tag="execute"):
    command: Annotated[Written, Meta(description="Like `pytest -q`.")]
    cwd: Folder | None = None
    env: Annotated[dict[str, str] | None, Meta(description="Variables.")] = None

    def title(self) -> str:
        title = f"run `{_one_line(self.command)}`"
        return f"{title} in {self.cwd}" if self.cwd else title

    def details(self) -> str:
        lines = [] if _is_one_line(self.command) else [self.command]
        for name, value in (self.env or {}).items():
            lines.append(f"{name}={value}")
        return "\n".join(lines)


class CreateFileAction(BaseAction, frozen=True, tag="create_file"):
    """Create a new file, and its folders."""

    file_path: FilePath
    content: Annotated[str, Meta(description="The whole content.")] = ""

    def title(self) -> str:
        count = len(self.content.splitlines())
        unit = "line" if count == 1 else "lines"
        return f"create {self.file_path} ({count} {unit})"

    def details(self) -> str:
        return self.content


class EditAction(BaseAction, frozen=True, tag="edit"):
    file_path: FilePath
    find: Annotated[str, Meta(description="Exact, unique text; empty: all of it.")]
    replace: Annotated[str, Meta(description="The new text.")]

    def title(self) -> str:
        if not self.find:
            return f"replace the whole of {self.file_path}"
        return f"edit {self.file_path}"

    def details(self) -> str:
        removed = [f"- {line}" for line in self.find.splitlines()]
        added = [f"+ {line}" for line in self.replace.splitlines()]
        return "\n".join(removed + added)


class ReadAction(BaseAction, frozen=True, tag="read"):
    """Read a file or folder of the project, or a web page."""

    source: Annotated[
        Written, Meta(description="In the project, or an http(s) address.")
    ]

    def is_remote(self) -> bool:
        return self.source.strip().lower().startswith(("http://", "https://"))

    def title(self) -> str:
        return f"read {self.source}"


class ChatWithUserAction(BaseAction, frozen=True, tag="chat_with_user"):
    prompt: Annotated[Written, Meta(description="The question.")]

    def title(self) -> str:
        return f"ask you: {_one_line(self.prompt)}"

    def details(self) -> str:
        return "" if _is_one_line(self.prompt) else self.prompt


class ResearchAction(BaseAction, frozen=True, tag="research"):
    queries: Annotated[
        tuple[Written, ...], Meta(min_length=1, description="One search for each.")
    ]

    def title(self) -> str:
        return f"search the web: {'; '.join(self.queries)}"


class ParsePlanAction(BaseAction, frozen=True, tag="parse_plan"):
    """Failure to read a plan. Only in reports."""

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

KINDS: dict[str, type[Action]] = {
    "execute": ExecuteAction,
    "create_file": CreateFileAction,
    "edit": EditAction,
    "read": ReadAction,
    "chat_with_user": ChatWithUserAction,
    "research": ResearchAction,
}
"""Actions that plans and models can ask for, by name."""


class ActionStatus(StrEnum):
    """The outcome of an action. An answered chat is `COMPLETED`."""

    SUCCESS = "SUCCESS"
    FAILURE = "FAILURE"
    COMPLETED = "COMPLETED"


class ActionResult(Checked, frozen=True):
    """A copy of an action, and its outcome."""

    action: Action
    status: ActionStatus
    output: str = ""
    """Printed, read or answered text; for a failed `create_file` or `edit`, the file's
    content.
    """
    error: str = ""
    """Why it failed; for a successful command, its standard error."""
    return_code: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        force_setattr(self, "action", deepcopy(self.action))

    def to_json(self) -> dict[str, Any]:
        result: dict[str, Any] = {
            "action": self.action.to_json(),
            "status": str(self.status),
            "output": self.output,
            "error": self.error or None,
        }
        if self.return_code is not None:
            result["return_code"] = self.return_code
        return result


class RunSummary(Checked, frozen=True):
    status: ActionStatus
    start_time: datetime
    duration: Annotated[float, Meta(ge=0)]
    """In seconds."""


class RunEnvironment(Checked, frozen=True):
    os: Written
    cwd: Written


class ExecutionReport(Checked, frozen=True):
    """The results of the actions of a plan, in its order."""

    run_summary: RunSummary
    environment: RunEnvironment
    action_logs: list[ActionResult]

    @classmethod
    def from_logs(
        cls,
        root: Path,
        logs: Sequence[ActionResult],
        started_at: datetime,
        duration: float,
    ) -> "ExecutionReport":
        """Return the report of a run in `root`. It failed if an action did."""
        status = ActionStatus.SUCCESS
        if any(log.status is ActionStatus.FAILURE for log in logs):
            status = ActionStatus.FAILURE
        system = f"{platform.system()} {platform.release()}"
        return cls(
            RunSummary(status, started_at, duration),
            RunEnvironment(system, os.fspath(root)),
            list(logs),
        )

    @property
    def failures(self) -> int:
        """The number of failed actions."""
        return sum(log.status is ActionStatus.FAILURE for log in self.action_logs)

    def to_json(self) -> dict[str, Any]:
        """Return the report as `cdd run --json` prints it."""
        summary = self.run_summary
        return {
            "run_summary": {
                "status": str(summary.status),
                "start_time": summary.start_time.isoformat(),
                "duration": round(summary.duration, 3),
            },
            "environment": to_builtins(self.environment),
            "action_logs": [log.to_json() for log in self.action_logs],
        }


class ActionFailed(CddError):
    """An action that could not be carried out."""

    refusal = Refusal.ACTION_FAILED


class FileAlreadyExistsError(ActionFailed):
    """`create_file` found an existing file, and wrote nothing."""

    def __init__(self, file_path: str) -> None:
        self.file_path: str = check_argument("file_path", Written, file_path)
        super().__init__(
            f"{file_path} exists already; nothing was written",
            hint="Use `edit` to change it.",
        )


class SearchTextNotFoundError(ActionFailed):
    """An edit did not find its text in the `content` of the file. `closest` are the
    most similar lines, `difference` says how they differ, without a full stop.
    """

    def __init__(self, content: str, closest: str = "", difference: str = "") -> None:
        self.content: str = check_argument("content", str, content)
        self.closest: str = check_argument("closest", str, closest)
        self.difference: str = check_argument("difference", str, difference)
        message = "The text to find is not in the file; nothing was changed"
        if difference:
            message += f". {difference}"
        if closest:
            message += f". The closest lines of the file are\n{closest}"
        super().__init__(message)


class MultipleMatchesFoundError(ActionFailed):
    """An edit found its text at several `lines` of the `content` of the file."""

    def __init__(self, content: str, lines: Sequence[int] = ()) -> None:
        self.content: str = check_argument("content", str, content)
        self.lines: tuple[int, ...] = check_argument("lines", tuple[int, ...], lines)
        places = f" (lines {', '.join(map(str, lines))})" if lines else ""
        super().__init__(
            f"The text to find is in the file more than once{places}; nothing was"
            " changed",
            hint="Give more of the lines around it.",
        )


def _is_one_line(text: str) -> bool:
    return _one_line(text) == text.strip()


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    if len(line) <= _LONGEST_TITLE:
        return line
    return line[: _LONGEST_TITLE - 1] + "…"
