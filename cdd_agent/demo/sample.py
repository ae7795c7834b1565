"""The sample project of `cdd demo`, copied to where it may be changed."""

import asyncio
import shutil
import tempfile
from importlib.resources import as_file, files
from pathlib import Path

from cdd_agent.errors import BadInput
from cdd_agent.workspace.git_command import CONFIG, Git

SLUG = "feature-monthly-report"
_CONFIG = (*CONFIG, "user.name=cdd demo", "user.email=demo@localhost", "commit.gpgsign=false")


def copy_sample() -> Path:
    """Copy the sample into a new temporary folder and put it under git. Raises `BadInput` when the disk refuses."""
    try:
        folder = Path(tempfile.mkdtemp(prefix="cdd-demo-"))
        with as_file(files("cdd_agent.demo").joinpath("project")) as project:
            shutil.copytree(project, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    except OSError as error:
        raise BadInput(
            f"The sample project could not be copied: {error.strerror or error}",
            hint="Set TMPDIR to a folder that is writable and has space.",
        ) from error
    asyncio.run(_put_under_git(folder))
    return folder


async def _put_under_git(folder: Path) -> None:
    """A first commit, so that `git diff` shows afterwards what the run did. Without git there is none."""
    git = Git(folder, config=_CONFIG, seconds=30.0)
    await git.run("init", "--quiet")
    await git.run("add", "--all")
    await git.run("commit", "--quiet", "--message", "The sample project")
