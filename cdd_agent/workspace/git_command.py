"""Running the git program for this program's own purposes, whatever the user or a repository has configured.

Nothing that a repository configures is run, because a project that was only downloaded brings its own `.git/config`:
no pager, no hooks, no file-system monitor, no fetching of what is missing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from cdd_agent.errors import CddError
from cdd_agent.harmless import harmless

if TYPE_CHECKING:
    from cdd_agent.workspace.process import CommandResult

CONFIG = ("core.fsmonitor=false", "core.hooksPath=/dev/null", "core.quotePath=false", "color.ui=false")
ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "",  # a clone that lacks objects does not fetch them
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
HIDDEN = ("GIT_*",)
"""The variables of a git that this program was started by, in a hook or a rebase: they mean that one's repository."""
_SECONDS = 600.0
"""The first checkpoint of a large project reads all of it."""


class GitUnusable(CddError):
    """There is no git, no repository, or git would not answer."""


@dataclass(frozen=True)
class Git:
    """The git program in a folder. `env` says which repository, index and files are meant."""

    folder: Path
    env: Mapping[str, str] = field(default_factory=dict)
    config: tuple[str, ...] = CONFIG

    async def __call__(
        self,
        *arguments: str,
        stdin: Path | None = None,
        stdout: Path | None = None,
        codes: Collection[int] = (0,),
    ) -> CommandResult:
        """Run one git command. Raises `GitUnusable` when it ends with another exit code than these."""
        from cdd_agent.workspace.process import result_of, run_command

        settings = [word for setting in self.config for word in ("-c", setting)]
        argv = ["git", "--no-pager", *settings, *arguments]
        env = {**ENVIRONMENT, **self.env}
        result = await result_of(
            run_command(argv, cwd=self.folder, limit=_SECONDS, env=env, hide=HIDDEN, stdin=stdin, stdout=stdout)
        )
        if result.timed_out or result.return_code not in codes:
            raise refusal(arguments[0], result)
        return result


def refusal(command: str, result: CommandResult) -> GitUnusable:
    """Why a git command did not do what it was told."""
    if result.return_code == 127:
        return GitUnusable("git was not found.", hint="Install git, or see that it is on the PATH.")
    if result.timed_out:
        return GitUnusable(f"git {command} took longer than {result.limit:.0f} s.")
    _, _, why = result.stderr.rpartition("fatal: ")
    return GitUnusable(f"git {command} failed: {harmless(why.strip())}")
