"""The one module that starts git, with safe settings.

A downloaded project brings its own `.git/config`, so nothing that it configures may
run: no pager, no hooks, no file-system monitor, no fetching of missing objects.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.errors import CddError
from cdd_agent.process.run import WHOLE, CommandResult, run_command
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.text.sanitize import sanitize_for_display

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
"""Variables to hide. A git hook or rebase that started this program sets them to its
own repository.
"""


class GitUnusable(CddError):
    refusal = Refusal.GIT_UNUSABLE


class NoGit(GitUnusable):
    def __init__(self) -> None:
        super().__init__(
            "git was not found.", hint="Install git, or add it to the PATH."
        )


class NoRepository(GitUnusable):
    def __init__(self, folder: Path) -> None:
        super().__init__(
            f"{folder} is not in a git repository.", hint="Create one with `git init`."
        )
        self.folder = folder


class Git(Struct, frozen=True):
    """The git program in a folder. `env` selects repository, index and files."""

    folder: Path
    env: Mapping[str, str] = field(default_factory=dict)
    config: tuple[str, ...] = CONFIG
    hide: tuple[str, ...] = HIDDEN
    seconds: float = 600.0
    """Time limit of one command. The first checkpoint reads the whole project."""
    noted_in: Path | None = None
    """As for `run_command`, if git writes files that another process may use."""

    async def __call__(
        self,
        *words: str,
        stdin: Path | None = None,
        stdout: Path | None = None,
        most: int | None = None,
        codes: Collection[int] = (0,),
    ) -> CommandResult:
        """Run one git command. Raises `GitUnusable` if its exit code is not in
        `codes`.
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
        """Run one git command, with any exit code. Returns the whole output, or up to
        `most` characters; then git is stopped and the result is `cut`.
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
    if result.return_code == 127:
        return NoGit()
    if result.timed_out:
        return GitUnusable(f"git {command} took longer than {result.limit:.0f} s.")
    _, _, why = result.stderr.rpartition("fatal: ")
    return GitUnusable(f"git {command} failed: {sanitize_for_display(why.strip())}")
