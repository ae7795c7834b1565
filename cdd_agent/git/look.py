"""GitPython's commands, by which a repository is looked at; each is started as every
other git is (`command.py`).

Of GitPython nothing else is used. Its `Repo` follows GIT_DIR, and reads HEAD, settings
and references in this process: a pipe in the place of one, or an endless file that the
settings include, would stop it for good.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cdd_agent.git.command import Git, refusal
from cdd_agent.process.run import CommandResult

_SECONDS = 20.0
_MOST = 5_000_000
"""Characters of an answer."""


@contextmanager
def _without_git() -> Iterator[None]:
    """GitPython runs `git version` when it is imported, with all variables of this
    process, unless there is no git.
    """
    nowhere = {
        "GIT_PYTHON_GIT_EXECUTABLE": str(Path(__file__).with_name("none")),
        "GIT_PYTHON_REFRESH": "quiet",
    }
    before = {name: os.environ.get(name) for name in nowhere}
    os.environ.update(nowhere)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


with _without_git():
    from git import Git as GitCommands


class LookingGit(GitCommands):
    """A repository's git: `await git.log("--max-count=1")` gives what it answered, a
    `CommandResult`.

    Raises `GitUnusable` when git fails, unless it is called `with_exceptions=False`.
    """

    def __init__(self, folder: Path, settings: Sequence[str]) -> None:
        """`settings` are those of every command, whatever the repository configures."""
        super().__init__(folder)
        self._folder, self._skipped = folder, 1 + 2 * len(settings)
        self.set_persistent_git_options(c=list(settings))

    # GitPython's own starts a process itself, and waits for it
    async def execute(  # type: ignore[override]
        self, command: Sequence[str], with_exceptions: bool = True
    ) -> CommandResult:
        result = await Git(self._folder, config=(), seconds=_SECONDS).run(
            *command[1:], most=_MOST
        )
        if with_exceptions and (result.timed_out or result.return_code):
            raise refusal(command[self._skipped], result)
        return result
