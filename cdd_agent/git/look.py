"""GitPython's git commands for read-only views of a repository, started like every
other git (`command.py`). docs/architecture.md explains why no other part of GitPython
is used.
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
"""Maximum characters of an answer."""


@contextmanager
def _without_git() -> Iterator[None]:
    """Hide git from GitPython. On import, it would run `git version` with all variables
    of this process.
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
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


with _without_git():
    from git import Git as GitCommands


class LookingGit(GitCommands):
    """A repository's git: `await git.log("--max-count=1")` returns a `CommandResult`.
    Raises `GitUnusable` if git fails, unless called `with_exceptions=False`.
    """

    def __init__(self, folder: Path, settings: Sequence[str]) -> None:
        """`settings` apply to every command and override the repository's
        configuration.
        """
        super().__init__(folder)
        self._git = Git(folder, config=tuple(settings), seconds=_SECONDS)

    # GitPython's own method blocks until the process ends
    async def execute(  # type: ignore[override]
        self, command: Sequence[str], with_exceptions: bool = True
    ) -> CommandResult:
        _, *words = command
        result = await self._git.run(*words, most=_MOST)
        if with_exceptions and (result.timed_out or result.return_code):
            raise refusal(words[0], result)
        return result
