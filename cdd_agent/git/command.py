"""The one place that starts git for this program's own purposes, whatever the user or a
repository has configured.

Nothing that a repository configures is run, because a project that was only downloaded
brings its own `.git/config`: no pager, no hooks, no file-system monitor, no fetching of
what is missing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.errors import CddError
from cdd_agent.process.run import WHOLE, CommandResult, run_command
from cdd_agent.sanitize import sanitize_for_display

CONFIG = (
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.quotePath=false",
    "color.ui=false",
)
ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "",  # a clone that lacks objects does not fetch them
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
HIDDEN = ("GIT_*",)
"""The variables of a git that this program was started by, in a hook or a rebase: they
mean that one's repository.
"""


class GitUnusable(CddError):
    """There is no git, no repository, or git would not answer."""


class NoGit(GitUnusable):
    """The program is not installed, or not on the PATH."""

    def __init__(self) -> None:
        super().__init__(
            "git was not found.", hint="Install git, or see that it is on the PATH."
        )


class NoRepository(GitUnusable):
    """The folder is in no git repository."""

    def __init__(self, folder: Path) -> None:
        super().__init__(
            f"{folder} is in no git repository.", hint="`git init` makes one."
        )
        self.folder = folder


class Git(Struct, frozen=True):
    """The git program in a folder. `env` says which repository, index and files are
    meant.
    """

    folder: Path
    env: Mapping[str, str] = field(default_factory=dict)
    config: tuple[str, ...] = CONFIG
    hide: tuple[str, ...] = HIDDEN
    seconds: float = 600.0
    """For one command: the first checkpoint of a large project reads all of it."""
    noted_in: Path | None = None
    """As for `run_command`, where git writes into files that somebody may go on with.
    """

    async def __call__(
        self,
        *words: str,
        stdin: Path | None = None,
        stdout: Path | None = None,
        most: int | None = None,
        codes: Collection[int] = (0,),
    ) -> CommandResult:
        """As `run`. Raises `GitUnusable` when git ends with another exit code than
        these.
        """
        result = await self.run(*words, stdin=stdin, stdout=stdout, most=most)
        if result.timed_out or result.return_code not in codes:
            raise refusal(words[0], result)
        return result

    async def run(
        self,
        *words: str,
        stdin: Path | None = None,
        stdout: Path | None = None,
        most: int | None = None,
    ) -> CommandResult:
        """Run one git command, however it ends. The result has all that it wrote; of
        more than `most` characters it has so many, is `cut`, and git is stopped.
        """
        result = await run_command(
            ["git", *self._settings, *words],
            cwd=self.folder,
            limit=self.seconds,
            env={**ENVIRONMENT, **self.env},
            hide=self.hide,
            stdin=stdin,
            stdout=stdout,
            most=WHOLE if most is None else most,
            noted_in=self.noted_in,
        )
        return replace(result, return_code=0) if result.cut else result

    @property
    def _settings(self) -> list[str]:
        return [
            "--no-pager",
            *(word for setting in self.config for word in ("-c", setting)),
        ]


def refusal(command: str, result: CommandResult) -> GitUnusable:
    """Why a git command did not do what it was told."""
    if result.return_code == 127:
        return NoGit()
    if result.timed_out:
        return GitUnusable(f"git {command} took longer than {result.limit:.0f} s.")
    _, _, why = result.stderr.rpartition("fatal: ")
    return GitUnusable(f"git {command} failed: {sanitize_for_display(why.strip())}")
