"""`execute_command_tool`: commands for callers with many sessions, each in its
folder.
"""

import os
from pathlib import Path

from cdd_agent.files.paths import PathRefused, confine_folder
from cdd_agent.pattern import Pattern
from cdd_agent.process.policy import CommandRunner, as_tool_answer
from cdd_agent.settings.config import Commands
from cdd_agent.settings.reading import use_switches
from cdd_agent.settings.user_folders import data_folder
from cdd_agent.threads import waited_for

_ID = Pattern(r"[\w@+=,-]([\w .@+=,-]{0,126}[\w@+=,-])?")


def execute_command_tool(
    command: str,
    workspace_id: str,
    agent_id: str,
    session_id: str,
    cwd: str | None = None,
) -> dict[str, object]:
    """Run a command in the session's folder, which is created if missing.

    `cwd` is relative to that folder and cannot leave it. Returns `{"success": True,
    "command", "return_code", "stdout", "stderr", "cwd"}`, also for a command that
    fails, or `{"error": ...}`. Works with or without a running event loop, which it
    blocks.
    """
    # a model may send any type
    if not all(isinstance(text, str) for text in (command, cwd or "")):
        return {"error": "Failed to execute command: `command` and `cwd` are texts"}
    try:
        folder = _session_folder(workspace_id, agent_id, session_id)
        folder.mkdir(parents=True, exist_ok=True)
    except PathRefused as refusal:
        return {"error": refusal.message}
    except OSError as error:
        return {
            "error": (
                "Failed to execute command: the session's folder cannot be created:"
                f" {error.strerror or error}"
            )
        }
    runner = CommandRunner(folder, use_switches(Commands(), os.environ))
    return as_tool_answer(command, waited_for(runner.execute(command, cwd)), cwd or ".")


def _session_folder(*ids: str) -> Path:
    for one in ids:
        if not isinstance(one, str) or not _ID.fullmatch(one):
            raise PathRefused(
                f"{one!r} is not a valid id: use up to 128 letters, digits and"
                " `-_.@+=,`, and no dot at the start"
            )
    base = _base_folder()
    return base.resolve() / confine_folder(base, "/".join(ids))


def _base_folder() -> Path:
    chosen = os.environ.get("CDD_WORKSPACES")
    if chosen:
        return Path(chosen).absolute()
    folder = data_folder()
    if folder is None:
        raise PathRefused("no home folder for sessions; set CDD_WORKSPACES to a folder")
    return folder / "workspaces"
